//! Conversations of two clients with one server connection, message by message.

mod any_answer;
mod open_batches;
mod own_mistakes;
mod passed_on;
mod session_changes;

use super::*;
use crate::parameters::Parameters;
use crate::session::Unnamed;
use crate::wire::{
    FrontendMessage, Splitter, look_at_backend, look_at_frontend, write_close_statement,
    write_describe_statement, write_parse, write_query, write_sync,
};

/// Both sides of a turn, each message a word.
struct Conversation {
    client: ClientState,
    server: ServerState,
    all: RefCell<Statements>,
}

impl Conversation {
    fn new(statements_max: usize) -> Self {
        Self {
            client: ClientState::default(),
            server: ServerState::new(statements_max, Parameters::new()),
            all: RefCell::default(),
        }
    }

    /// Another client comes to the same server connection.
    fn next_client(&mut self) {
        self.client = ClientState::default();
    }

    /// Plays a turn, and says `o` behind it where it is over.
    fn turn(&mut self, events: &str) -> String {
        let mut rewriter = Rewriter::new(&mut self.client, &mut self.server, &self.all);
        let mut said = play(&mut rewriter, events);
        if rewriter.is_over() {
            said.push("o".into());
        }
        said.join(" ")
    }
}

/// Plays a part of a turn: `c:` words of the client, `s:` of the server; gives what each says to
/// the other. `w:` is a word that the client would say: whether it has to wait.
fn play(rewriter: &mut Rewriter<'_>, events: &str) -> Vec<String> {
    let mut said = Vec::new();
    for event in events.split_whitespace() {
        let (side, word) = event.split_at(2);
        let (mut bytes, mut out) = (BytesMut::new(), BytesMut::new());
        if side == "w:" {
            write_word(&mut bytes, word);
            let piece = Splitter::new(look_at_frontend).next(&bytes);
            let waits = rewriter.must_wait(&piece.unwrap().unwrap(), &mut out);
            let put_in = words(&out, look_at_frontend);
            said.push(if waits { "waits" } else { "goes" }.to_owned() + &put_in);
        } else if side == "c:" {
            write_word(&mut bytes, word);
            let mut splitter = Splitter::new(look_at_frontend);
            let piece = splitter.next(&bytes).unwrap().unwrap();
            let taken = rewriter.from_client(&piece, &mut out).unwrap();
            let held = if taken == Forwarded::NotYet { "?" } else { "" };
            said.push(format!("c:{}{held}", words(&out, look_at_frontend)));
        } else {
            bytes.extend_from_slice(&answer(word));
            let mut splitter = Splitter::new(look_at_backend);
            let piece = splitter.next(&bytes).unwrap().unwrap();
            rewriter.from_server(&piece, &mut out).unwrap();
            let mut asked = BytesMut::new();
            rewriter.follow_up(&mut asked);
            let (shown, asked) = (
                words(&out, look_at_backend),
                words(&asked, look_at_frontend),
            );
            let asked = if asked.is_empty() {
                asked
            } else {
                format!("/{asked}")
            };
            said.push(format!("s:{shown}{asked}"));
        }
    }
    said
}

/// `Q` query, `S` Sync, `H` Flush, `E` Execute, `d` a row, `c` CopyDone; `Pname=text`, `Bname`,
/// `Dname`, `Cname`.
fn write_word(out: &mut BytesMut, word: &str) {
    let rest = &word[1..];
    match &word[..1] {
        "Q" => write_query(out, rest.as_bytes()),
        "S" => write_sync(out),
        "H" => write_flush(out),
        "E" => out.extend_from_slice(b"E\0\0\0\x09\0\0\0\0\0"),
        "c" => out.extend_from_slice(b"c\0\0\0\x04"),
        "d" => out.extend_from_slice(b"d\0\0\0\x06x\n"),
        "P" => {
            let (name, text) = rest.split_once('=').unwrap();
            write_parse(out, name.as_bytes(), format!("{text}\0\0\0").as_bytes());
        }
        "B" => {
            let body = format!("\0{rest}\0\0\0\0\0\0\0");
            out.extend_from_slice(b"B");
            out.extend_from_slice(&(4 + body.len() as i32).to_be_bytes());
            out.extend_from_slice(body.as_bytes());
        }
        "D" => write_describe_statement(out, rest.as_bytes()),
        "C" => write_close_statement(out, rest.as_bytes()),
        _ => panic!("{word}"),
    }
}

/// `1` `2` `3` complete, `I` ready, `T` ready in a transaction, `E` error, `P` that of a changed
/// plan, `G` rows are expected, `A` DISCARD ALL is done, `R` RESET, `W` SET, `K` ROLLBACK, `d`
/// DEALLOCATE; `t` parameters (none), `r` a column, `n` none.
fn answer(word: &str) -> Vec<u8> {
    match word {
        "I" => b"Z\0\0\0\x05I".to_vec(),
        error if error.starts_with('E') => {
            let body = format!("C26000\0M{}\0\0", &error[1..]);
            let length = (4 + body.len() as i32).to_be_bytes();
            [b"E", &length[..], body.as_bytes()].concat()
        }
        "T" => b"Z\0\0\0\x05T".to_vec(),
        "P" => b"E\0\0\0\x0cC0A000\0\0".to_vec(),
        "G" => b"G\0\0\0\x07\0\0\0".to_vec(),
        "t" => b"t\0\0\0\x06\0\0".to_vec(),
        "n" => b"n\0\0\0\x04".to_vec(),
        "r" => b"T\0\0\0\x1a\0\x01x\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0".to_vec(),
        "R" => b"C\0\0\0\x0aRESET\0".to_vec(),
        "W" => b"C\0\0\0\x08SET\0".to_vec(),
        "K" => b"C\0\0\0\x0dROLLBACK\0".to_vec(),
        "d" => b"C\0\0\0\x0fDEALLOCATE\0".to_vec(),
        "A" => b"C\0\0\0\x10DISCARD ALL\0".to_vec(),
        digit => [digit.as_bytes(), b"\0\0\0\x04"].concat(),
    }
}

/// The messages by their tags, with the statement's name where one is named.
fn words(bytes: &[u8], look: fn(u8) -> crate::wire::Look) -> String {
    let (mut splitter, mut rest, mut words) = (Splitter::new(look), bytes, Vec::new());
    while let Some(piece) = splitter.next(rest).unwrap() {
        rest = &rest[piece.bytes.len()..];
        let word = error_word(piece.tag, piece.body());
        if !word.is_empty() {
            words.push(format!("E({word})"));
            continue;
        }
        let name = match FrontendMessage::read(piece.tag, piece.body(), true) {
            Ok(FrontendMessage::Parse { name, .. }) => name,
            Ok(FrontendMessage::Bind { statement, .. }) => statement,
            Ok(FrontendMessage::Describe(_, name) | FrontendMessage::Close(_, name)) => name,
            Ok(FrontendMessage::Query(sql)) if contains(sql, b"/**/") => sql,
            _ => b"",
        };
        let name = String::from_utf8_lossy(name).replace("sooner_", "#");
        words.push(format!("{}{name}", char::from(piece.tag)));
    }
    words.join(",")
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|bytes| bytes == word)
}

/// What an error says, or its code if that is not 26000.
fn error_word(tag: u8, body: &[u8]) -> String {
    if tag != b'E' {
        return String::new();
    }
    let fields: Vec<_> = body.split(|byte| *byte == 0).collect();
    let of = |kind: u8| {
        let mut found = fields.iter().filter(|field| field.first() == Some(&kind));
        let field = found.next().map(|field| &field[1..]);
        field.map(|field| String::from_utf8_lossy(field).into_owned())
    };
    let words = of(b'M').filter(|words| !words.is_empty() && !words.contains("cached plan"));
    words
        .or_else(|| of(b'C').filter(|code| code != "26000"))
        .unwrap_or_default()
}

#[test]
fn a_named_statement_has_our_name_on_the_server() {
    let mut talk = Conversation::new(10);
    let first = "c:Pa=SELECT c:Ba c:E c:S s:1 s:t s:r s:2 s:I";
    let said = "c:P#1 c:D#1,B#1 c:E c:S s:1 s: s: s:2 s:Z o";
    assert_eq!(talk.turn(first), said);
    assert_eq!(talk.turn("c:Ba c:S s:2 s:I"), "c:B#1 c:S s:2 s:Z o");
    let described = "c:Da c:S s:t s:r s:I";
    assert_eq!(talk.turn(described), "c:D#1 c:S s:t s:T s:Z o");
    // what the client describes itself is not described twice
    let first = "c:Pb=SELECT c:Db c:S s:1 s:t s:n s:I";
    assert_eq!(talk.turn(first), "c:P#2 c:D#2 c:S s:1 s:t s:n s:Z o");
}

#[test]
fn each_parse_goes_to_the_server() {
    let mut talk = Conversation::new(10);
    talk.turn("c:Pa=1 c:S s:1 s:t s:n s:I");
    talk.next_client();
    // the same name for something else
    let other = "c:Pa=2 c:S s:1 s:t s:n s:I";
    assert_eq!(talk.turn(other), "c:P#2 c:D#2,S s:1 s: s: s:Z o");
    // another name for the same
    talk.next_client();
    assert_eq!(
        talk.turn("c:Pb=1 c:Bb c:S s:1 s:t s:n s:2 s:I"),
        "c:P#3 c:D#3,B#3 c:S s:1 s: s: s:2 s:Z o"
    );
    // the first is of no more use, and goes with the next that is prepared
    let next = "c:Pc=3 c:S s:3 s:1 s:t s:n s:I";
    assert_eq!(talk.turn(next), "c:C#1,P#4 c:D#4,S s: s:1 s: s: s:Z o");
}

#[test]
fn a_server_that_does_not_know_it_is_asked_whether_it_is_still_the_same() {
    let mut talk = Conversation::new(10);
    talk.turn("c:Pa=1 c:S s:1 s:t s:r s:I");
    talk.server = ServerState::new(10, Parameters::new());
    assert_eq!(
        talk.turn("c:Ba s:1 s:t s:r c:Ba c:S s:2 s:I"),
        "c:P#1,D#1,H? s: s: s: c:B#1 c:S s:2 s:Z o"
    );
    // it has other columns now: as on one connection, 0A000 and not what the client does not expect
    talk.server = ServerState::new(10, Parameters::new());
    assert_eq!(
        talk.turn("c:Ba s:1 s:t s:n c:Ba c:E c:S s:3 s:E s:I"),
        "c:P#1,D#1,H? s: s: s: c:C#1,B#1 c:E c:S s: s:E(0A000) s:Z o"
    );
    // it cannot be prepared any more, and the rest is skipped
    assert_eq!(
        talk.turn("c:Ba s:E c:Ba c:E c:S s:I"),
        "c:P#1,D#1,H? s:E c: c: c:S s:Z o"
    );
}

#[test]
fn another_clients_serves_where_it_was_prepared_later_and_is_the_same() {
    let mut talk = Conversation::new(10);
    talk.turn("c:Pa=1 c:S s:1 s:t s:r s:I");
    let first = std::mem::take(&mut talk.client);
    let described = |column: &str| format!("c:Pa=1 c:S s:1 s:t s:{column} s:I");
    talk.server = ServerState::new(10, Parameters::new());
    talk.turn(&described("r"));
    talk.client = first;
    assert_eq!(talk.turn("c:Ba c:S s:2 s:I"), "c:B#2 c:S s:2 s:Z o");
    // one that has other columns does not
    let first = std::mem::take(&mut talk.client);
    talk.server = ServerState::new(10, Parameters::new());
    talk.turn(&described("n"));
    talk.client = first;
    let asked = "c:Ba s:1 s:t s:r c:Ba c:S s:2 s:I";
    let said = "c:P#1,D#1,H? s: s: s: c:B#1 c:S s:2 s:Z o";
    assert_eq!(talk.turn(asked), said);
}

#[test]
fn a_full_server_lets_the_oldest_go() {
    let mut talk = Conversation::new(1);
    talk.turn("c:Pa=1 c:S s:1 s:t s:n s:I");
    let second = "c:Pb=2 c:S s:3 s:1 s:t s:n s:I";
    assert_eq!(talk.turn(second), "c:C#1,P#2 c:D#2,S s: s:1 s: s: s:Z o");
}

#[test]
fn what_failed_is_not_known() {
    let mut talk = Conversation::new(10);
    let failed = "c:P#1 c:D#1,S s:E s:Z o";
    assert_eq!(talk.turn("c:Pa=bad c:S s:E s:I"), failed);
    // the name is free, and the text is tried again
    let again = "c:P#2 c:D#2,S s:1 s: s: s:Z o";
    assert_eq!(talk.turn("c:Pa=bad c:S s:1 s:t s:n s:I"), again);
    // what is in the next cycle is not touched by a failure in this one
    let two = "c:Ba c:E c:S c:Pb=2 c:S s:2 s:E s:I s:1 s:t s:n s:I";
    let said = "c:B#2 c:E c:S c:P#3 c:D#3,S s:2 s:E s:Z s:1 s: s: s:Z o";
    assert_eq!(talk.turn(two), said);
    assert_eq!(talk.turn("c:Bb c:S s:2 s:I"), "c:B#3 c:S s:2 s:Z o");
}

#[test]
fn what_comes_behind_a_failure_is_skipped_and_not_believed() {
    let mut talk = Conversation::new(10);
    let said = "c:E c:P#1 s:E c: c:S s:Z o";
    assert_eq!(talk.turn("c:E c:Pa=1 s:E c:Pb=2 c:S s:I"), said);
    assert!(talk.client.statements.is_empty() && talk.server.statements.is_empty());
    // nor is anything prepared that would never be answered
    talk.turn("c:Pa=1 c:S s:1 s:t s:n s:I");
    talk.server = ServerState::new(10, Parameters::new());
    let said = "c:E s:E c: c: c:S s:Z o";
    assert_eq!(talk.turn("c:E s:E c:Ba c:Da c:S s:I"), said);
}

#[test]
fn a_close_that_was_put_in_and_skipped_did_not_happen() {
    let mut talk = Conversation::new(1);
    talk.turn("c:Pa=1 c:S s:1 s:t s:n s:I");
    // Execute fails before the Close of #1 and the Parse of #2 are read
    talk.turn("c:E c:Pb=2 c:S s:E s:I");
    assert_eq!(talk.turn("c:Ba c:S s:2 s:I"), "c:B#1 c:S s:2 s:Z o");
}

#[test]
fn mistakes_are_left_to_the_server() {
    let mut talk = Conversation::new(10);
    let unknown = "c:Bnone c:S s:E s:Z o";
    assert_eq!(talk.turn("c:Bnone c:S s:E s:I"), unknown);
    talk.turn("c:Pa=1 c:S s:1 s:t s:n s:I");
    // a name that is taken: a statement that surely exists has to stand in for it
    let taken = "c:C#~0,P#~0,P#~0 c:S s: s: s:E(a) s:Z o";
    assert_eq!(talk.turn("c:Pa=2 c:S s:3 s:1 s:Esooner_~0 s:I"), taken);
    assert_eq!(talk.turn("c:Ba c:S s:2 s:I"), "c:B#1 c:S s:2 s:Z o");
    // PostgreSQL looks at 63 bytes of a name
    let long = "n".repeat(63);
    talk.turn(&format!("c:P{long}=1 c:S s:1 s:t s:n s:I"));
    let said = talk.turn(&format!("c:B{long}x c:S s:2 s:I"));
    assert_eq!(said, "c:B#3 c:S s:2 s:Z o");
}

#[test]
fn errors_have_the_clients_names() {
    let mut talk = Conversation::new(10);
    talk.turn("c:Pmine=1 c:S s:1 s:t s:n s:I");
    let said = "c:B#1 c:S s:E(mine) s:Z o";
    assert_eq!(talk.turn("c:Bmine c:S s:Esooner_1 s:I"), said);
    let said = "c:B#!1 c:S s:E(sooner_1) s:Z o";
    assert_eq!(talk.turn("c:Bsooner_1 c:S s:Esooner_!1 s:I"), said);
    // what is no statement of this connection stays
    let said = "c:E c:S s:E(sooner_9) s:Z o";
    assert_eq!(talk.turn("c:E c:S s:Esooner_9 s:I"), said);
}

#[test]
fn no_client_reaches_anothers_statement_by_our_name() {
    let mut talk = Conversation::new(10);
    talk.turn("c:Pa=1 c:S s:1 s:t s:n s:I");
    talk.next_client();
    let said = "c:B#!1 c:D#!1 c:C#!1 c:S s:E s:Z o";
    assert_eq!(
        talk.turn("c:Bsooner_1 c:Dsooner_1 c:Csooner_1 c:S s:E s:I"),
        said
    );
    // under that name of its own it has one of its own
    assert_eq!(
        talk.turn("c:Psooner_1=2 c:S s:1 s:t s:n s:I"),
        "c:P#2 c:D#2,S s:1 s: s: s:Z o"
    );
    talk.next_client();
    let by_sql = talk.turn("c:QEXECUTE/**/sooner_1 s:E s:I");
    assert_eq!(by_sql, "c:QEXECUTE/**/\"#!1\" s:E s:Z o");
}

#[test]
fn closing_it_leaves_it_to_others() {
    let mut talk = Conversation::new(10);
    talk.turn("c:Pa=1 c:S s:1 s:t s:n s:I");
    assert_eq!(talk.turn("c:Ca c:S s:3 s:I"), "c:C#0 c:S s:3 s:Z o");
    // a Close that was skipped did not happen
    talk.turn("c:Pa=1 c:S s:1 s:t s:n s:I");
    talk.turn("c:E c:Ca c:S s:E s:I");
    assert_eq!(talk.turn("c:Ba c:S s:2 s:I"), "c:B#2 c:S s:2 s:Z o");
    // what no other client can use is closed
    talk.client.pinned_by = Some("LISTEN");
    talk.turn("c:Pb=2 c:S s:3 s:1 s:t s:n s:I");
    talk.turn("c:E c:Cb c:S s:E s:I");
    assert_eq!(talk.turn("c:Cb c:S s:3 s:I"), "c:C#3 c:S s:3 s:Z o");
}

#[test]
fn the_statement_without_a_name_follows_its_client() {
    let mut talk = Conversation::new(10);
    assert_eq!(talk.turn("c:P=1 c:S s:1 s:I"), "c:P c:S s:1 s:Z o");
    assert_eq!(talk.turn("c:B c:S s:2 s:I"), "c:B c:S s:2 s:Z o");
    // a command of the gate's own has taken its place
    talk.server.unnamed = Unnamed::Absent;
    assert_eq!(talk.turn("c:B c:S s:1 s:2 s:I"), "c:P,B c:S s: s:2 s:Z o");
    // where the client knows the columns of one, the gate asks for them again
    talk.turn("c:D c:S s:t s:r s:I");
    talk.server.unnamed = Unnamed::Absent;
    let asked = talk.turn("c:B s:1 s:t s:r c:B c:S s:2 s:I");
    assert_eq!(asked, "c:P,D,H? s: s: s: c:B c:S s:2 s:Z o");
    // another client has none, and does not reach this one's
    talk.next_client();
    let none = "c:C,B c:S s: s:E s:Z o";
    assert_eq!(talk.turn("c:B c:S s:3 s:E s:I"), none);
    // a query takes its place
    talk.turn("c:P=1 c:S s:1 s:I");
    talk.turn("c:QSELECT s:I");
    assert_eq!(talk.turn("c:B c:S s:3 s:E s:I"), none);
}

#[test]
fn the_statement_without_a_name_survives_a_parse_that_was_skipped() {
    let mut talk = Conversation::new(10);
    talk.turn("c:P=1 c:S s:1 s:I");
    talk.turn("c:Bnone c:P=2 c:S s:E s:I");
    assert_eq!(talk.client.statements.named(b"").unwrap().sql(), b"1");
    // one that was read is gone, and so is what failed
    talk.turn("c:P=bad c:S s:E s:I");
    assert!(talk.client.statements.is_empty());
    // where the first cycle is skipped, what the second puts in its place is not there before
    talk.turn("c:P=1 c:S s:1 s:I");
    talk.turn("c:Bnone c:P=2 c:S c:E c:P=3 c:S s:E s:I s:E s:I");
    assert_eq!(talk.client.statements.named(b"").unwrap().sql(), b"1");
}

#[test]
fn sql_and_the_protocol_share_the_names_of_statements() {
    let mut talk = Conversation::new(10);
    talk.turn("c:Pa=1 c:S s:1 s:t s:n s:I");
    assert_eq!(talk.turn("c:QEXECUTE/**/a s:I"), "c:QEXECUTE/**/#1 s:Z o");
    // where it is not known it is prepared first
    talk.server = ServerState::new(10, Parameters::new());
    assert_eq!(
        talk.turn("c:QEXECUTE/**/A s:1 s:t s:n c:QEXECUTE/**/A s:I"),
        "c:P#1,D#1,H? s: s: s: c:QEXECUTE/**/#1 s:Z o"
    );
    // and where it cannot be, that is the answer
    talk.server = ServerState::new(10, Parameters::new());
    assert_eq!(
        talk.turn("c:QEXECUTE/**/a s:E c:QEXECUTE/**/a s:I"),
        "c:P#1,D#1,H? s:E c:S s:Z o"
    );
    // one that is taken
    let taken = talk.turn("c:QPREPARE/**/a s:3 s:1 s:Esooner_~0 s:I");
    assert_eq!(taken, "c:C#~0,P#~0,QPREPARE/**/\"#~0\" s: s: s:E(a) s:Z o");
    assert_eq!(
        talk.turn("c:QDEALLOCATE/**/a s:3 s:1 s:E s:I"),
        "c:C#~0,P#~0,QDEALLOCATE/**/\"#~0\" s: s: s:E s:Z o"
    );
    assert_eq!(talk.client.statements.len(), 1, "that was refused");
    talk.turn("c:QDEALLOCATE/**/a s:3 s:1 s:d s:I");
    assert!(talk.client.statements.is_empty());
    // what was prepared by SQL has its name on the server, and so has what follows
    talk.turn("c:QPREPARE/**/b s:I");
    assert_eq!(talk.turn("c:Pb=2 c:S s:E s:I"), "c:Pb c:S s:E s:Z o");
}

#[test]
fn a_copy_that_fails_with_syncs_on_their_way_is_probed_and_nobody_sees_it() {
    let mut talk = Conversation::new(10);
    let begin = "c:P=COPY/**/t/**/FROM/**/STDIN c:B c:E w:S s:1 s:2 s:G c:S c:d";
    let said = "c:P c:B c:E waitsH s:1 s:2 s:G c:S c:d";
    let well = talk.turn(&format!("{begin} c:c w:S s:K c:S s:I"));
    assert_eq!(well, format!("{said} c:c waitsH s:C c:S s:Z o"));
    // The Sync was read with the rows, or answered.
    let read = talk.turn(&format!("{begin} s:E w:c s:I s:3 s:I c:c c:Q1 c:S s:I"));
    let probe = "s:E/S,C#0,S waits";
    assert_eq!(read, format!("{said} {probe} s: s: s: c: c: c:S s:Z o"));
    let answered = talk.turn(&format!("{begin} s:E w:c s:I s:I s:3 s:I"));
    assert_eq!(answered, format!("{said} {probe} s: s:Z s: s: o"));
}

#[test]
fn what_is_skipped_goes_to_no_server_and_leaves_nothing() {
    let mut talk = Conversation::new(10);
    let said = talk.turn("c:P=1 c:E w:QLISTEN s:1 s:E c:QLISTEN c:Pa=2 c:Ca c:S s:I");
    assert_eq!(said, "c:P c:E waitsH s:1 s:E c: c: c: c:S s:Z o");
    assert!(talk.client.pinned_by.is_none() && talk.client.statements.named(b"a").is_err());
    assert_eq!(talk.turn("c:B c:S s:2 s:I"), "c:B c:S s:2 s:Z o");
}

/// Which statement goes depends on whether the one before it came: in a transaction that has failed
/// it did not.
#[test]
fn what_needs_room_waits_for_what_is_being_prepared() {
    let mut talk = Conversation::new(1);
    talk.turn("c:Pa=one c:S s:1 s:t s:n s:I");
    talk.turn("c:Pb=two c:S s:3 s:1 s:t s:n s:I");
    assert_eq!(
        talk.turn("c:Pc=three c:S w:Ba w:Bb s:3 s:1 s:t s:n s:I w:Bb"),
        "c:C#2,P#3 c:D#3,S waits waits s: s:1 s: s: s:Z goes o"
    );
}

#[test]
fn messages_without_an_answer_are_held_back_and_flushed() {
    let mut talk = Conversation::new(4);
    let many = "c:E ".repeat(1024);
    let said = talk.turn(&format!("{many} w:E w:E s:K w:E"));
    assert!(said.ends_with("waitsH waits s:C goes"), "{said}");
}
