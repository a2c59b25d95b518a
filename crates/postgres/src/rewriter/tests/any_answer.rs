//! Servers that answer what they like, and messages of ours that fail.

use super::*;

/// The description that is put in may fail where the Parse did not: what comes behind is skipped.
#[test]
fn a_query_waits_for_the_description_before_it_and_is_answered() {
    let mut talk = Conversation::new(2);
    let said = talk.turn("c:Pa=1 s:1 w:QSELECT s:Eno w:QSELECT c:QSELECT s:I");
    assert_eq!(said, "c:P#1 s:1 waitsD#1,H s:E(no) goes c:S s:Z o");
    let said = talk.turn("c:Pb=1 s:1 w:QSELECT s:t s:n w:QSELECT c:QSELECT s:W s:I");
    assert_eq!(said, "c:P#2 s:1 waitsD#2,H s: s: goes c:Q s:CET s:Z o");
}

const CLIENT_WORDS: [&str; 16] = [
    "QSELECT",
    "QLISTEN",
    "QCOPY",
    "QEXECUTE a",
    "S",
    "E",
    "c",
    "d",
    "Pa=1",
    "P=2",
    "Ba",
    "B",
    "Da",
    "Ca",
    "Pk=DEALLOCATE a",
    "Bk",
];
const SERVER_WORDS: [&str; 16] = [
    "1", "2", "3", "I", "I", "T", "Eno", "P", "G", "t", "n", "r", "W", "K", "d", "A",
];

proptest::proptest! {
    /// A server that answers anything: what holds between two messages is asserted inside.
    #[test]
    fn any_answer_is_passed_on_or_ends_the_connection(
        events in proptest::collection::vec((proptest::bool::ANY, 0usize..16), 0..60),
    ) {
        let mut talk = Conversation::new(1);
        let mut rewriter = Rewriter::new(&mut talk.client, &mut talk.server, &talk.all);
        let mut out = BytesMut::new();
        for (is_client, index) in events {
            let mut bytes = BytesMut::new();
            if is_client {
                write_word(&mut bytes, CLIENT_WORDS[index % CLIENT_WORDS.len()]);
                let piece = Splitter::new(look_at_frontend).next(&bytes).unwrap().unwrap();
                if !rewriter.must_wait(&piece, &mut out) {
                    rewriter.from_client(&piece, &mut out).unwrap();
                }
            } else {
                bytes.extend_from_slice(&answer(SERVER_WORDS[index]));
                let piece = Splitter::new(look_at_backend).next(&bytes).unwrap().unwrap();
                if rewriter.from_server(&piece, &mut out).is_err() {
                    break;
                }
                rewriter.follow_up(&mut out);
            }
        }
    }
}
