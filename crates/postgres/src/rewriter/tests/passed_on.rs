//! Statements that the gate does not keep: too long, or too many.

use super::*;
use crate::session::PossibleChanges;
use crate::wire::STATEMENT_BYTES_MAX;

/// Why a client is tied that has one.
const KEPT: Option<&str> = Some("a long statement, or many");
const EXECUTED: &str = "c:B c:E c:S s:2 s:W s:I";

/// A Parse of more than is kept, with this before its text, in a turn of its own.
fn prepares(name_and_text: &str) -> String {
    let long = "x".repeat(STATEMENT_BYTES_MAX);
    format!("c:P{name_and_text}{long} c:S s:1 s:I")
}

#[test]
fn what_was_bound_ties_its_client_no_longer_and_is_no_other_clients() {
    let mut talk = Conversation::new(10);
    let executes = prepares("=").replace("c:S s:1", "c:B c:E c:S s:1 s:2 s:W");
    assert_eq!(talk.turn(&executes), "c:P c:B c:E c:S s:1 s:2 s:CET s:Z o");
    assert_eq!(talk.client.tied_by(), None);
    // A client that keeps its server connection has it there, as in PostgreSQL.
    let there = "c:B c:S s:2 s:Z o";
    assert_eq!(talk.turn("c:B c:S s:2 s:I"), there);
    let none = "c:C,B c:S s: s:E s:Z o";
    let first = std::mem::take(&mut talk.client);
    assert_eq!(talk.turn("c:B c:S s:3 s:E s:I"), none);
    // Elsewhere the first has none, and no other client's.
    talk.turn(&executes);
    talk.client = first;
    assert_eq!(talk.turn("c:B c:S s:3 s:E s:I"), none);
}

#[test]
fn what_is_yet_to_be_bound_ties_its_client() {
    let mut talk = Conversation::new(10);
    // As drivers do that ask for the types first.
    talk.turn(&prepares("="));
    talk.turn("c:D c:S s:t s:n s:I");
    assert_eq!(talk.client.tied_by(), KEPT);
    assert_eq!(talk.turn(EXECUTED), "c:B c:E c:S s:2 s:CET s:Z o");
    assert_eq!(talk.client.tied_by(), None);
    for end in [
        "c:P=1 c:S s:1 s:I",
        "c:QSELECT s:I",
        "c:C c:S s:3 s:I",
        "c:QDISCARD/**/ALL s:A s:I",
        "c:P=DISCARD/**/ALL c:B c:E c:S s:1 s:2 s:A s:I",
    ] {
        talk.turn(&prepares("="));
        assert_eq!(talk.client.tied_by(), KEPT);
        talk.turn(end);
        assert_eq!(talk.client.tied_by(), None, "{end}");
        assert!(!matches!(talk.server.unnamed, Unnamed::PassedOn(_)));
    }
    // By the extended protocol PostgreSQL keeps the statement without a name.
    talk.turn(&prepares("="));
    talk.turn("c:Pa=DISCARD/**/ALL c:S s:1 s:t s:n s:I");
    talk.turn("c:Ba c:E c:S s:2 s:A s:I");
    assert!(talk.client.has_discarded && !talk.server.is_tainted);
    assert_eq!(talk.client.tied_by(), KEPT);
}

#[test]
fn what_failed_or_was_skipped_leaves_the_statement_before_it() {
    let mut talk = Conversation::new(10);
    let fails = prepares("=").replace("s:1", "s:E");
    talk.turn(&fails);
    assert_eq!(talk.client.tied_by(), None);
    assert_eq!(talk.turn("c:B c:S s:3 s:E s:I"), "c:C,B c:S s: s:E s:Z o");
    talk.turn("c:P=1 c:S s:1 s:I");
    let skipped = format!("c:Bnone {fails}");
    let said = talk.turn(&skipped.replace("s:E", "w:B s:E"));
    assert_eq!(said, "c:Bnone c:P c:S waits s:E s:Z o");
    assert_eq!(talk.client.tied_by(), None);
    assert_eq!(talk.client.statements.named(b"").unwrap().sql(), b"1");
    assert_eq!(talk.turn("c:B c:S s:2 s:I"), "c:B c:S s:2 s:Z o");
}

#[test]
fn with_a_name_it_ties_its_client_for_as_long_as_the_server_has_it() {
    let mut talk = Conversation::new(10);
    let asks = |talk: &mut Conversation, events: &str| {
        talk.client.changes = PossibleChanges::default();
        talk.turn(events);
        talk.client.changes.ties.contains(Tie::PreparedUnkept)
    };
    assert!(asks(&mut talk, &prepares("a=")), "it may have failed");
    assert_eq!(talk.client.tied_by(), KEPT);
    assert!(!asks(&mut talk, "c:Ba c:E c:S s:2 s:W s:I"));
    // One that is kept beside it needs no question.
    let kept = talk.turn("c:Pb=1 c:S s:1 s:t s:n s:I");
    assert_eq!(kept, "c:P#1 c:D#1,S s:1 s: s: s:Z o");
    assert!(!asks(&mut talk, "c:Cb c:S s:3 s:I"));
    for end in [
        "c:Ca c:S s:3 s:I",
        "c:QDEALLOCATE/**/a s:d s:I",
        "c:QDEALLOCATE/**/ALL s:W s:I",
    ] {
        assert!(asks(&mut talk, end), "{end}");
    }
    talk.turn("c:QDISCARD/**/ALL s:A s:I");
    assert_eq!(talk.client.tied_by(), None);
}

#[test]
fn a_name_like_ours_is_not_ours() {
    let mut talk = Conversation::new(10);
    let said = talk.turn(&prepares("sooner_7="));
    assert_eq!(said, "c:P#!7 c:S s:1 s:Z o");
    assert_eq!(talk.turn("c:Bsooner_7 c:S s:2 s:I"), "c:B#!7 c:S s:2 s:Z o");
    assert_eq!(talk.turn("c:Csooner_7 c:S s:3 s:I"), "c:C#!7 c:S s:3 s:Z o");
}

#[test]
fn what_it_leaves_behind_is_noted_each_time_that_it_is_bound() {
    for name in ["", "a"] {
        let mut talk = Conversation::new(10);
        talk.turn(&prepares(&format!(
            "{name}=SELECT/**/set_config('a.b','1',false),"
        )));
        for _ in 0..2 {
            talk.client.changes = PossibleChanges::default();
            talk.turn(&EXECUTED.replace("c:B", &format!("c:B{name}")));
            let changes = &talk.client.changes.parameters;
            assert!(changes.contains_key(&b"a.b"[..]), "{name}");
        }
    }
}
