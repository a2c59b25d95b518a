//! Errors about statements: those that are the client's own, and those that show that the gate is
//! wrong about the server connection.

use super::*;

#[test]
fn a_clients_own_mistake_leaves_the_connection_to_others() {
    let mut talk = Conversation::new(10);
    talk.turn("c:Pa=1 c:S s:1 s:t s:r s:I");
    for mistake in [
        "c:Bnone c:S s:Enone s:I",
        "c:Dnone c:S s:Enone s:I",
        "c:B c:S s:3 s:E s:I",
        "c:Bsooner_1 c:S s:Esooner_!1 s:I",
        "c:Pa=2 c:S s:3 s:1 s:Esooner_~0 s:I",
        "c:QEXECUTE/**/none s:Enone s:I",
        "c:QDEALLOCATE/**/none s:Enone s:I",
        "c:QPREPARE/**/a s:3 s:1 s:Esooner_~0 s:I",
    ] {
        talk.turn(mistake);
        assert!(!talk.server.is_tainted, "{mistake}");
    }
    // Nor does one that the gate has brought about, because the columns are others now.
    talk.server = ServerState::new(10, Parameters::new());
    let said = talk.turn("c:Ba s:1 s:t s:n c:Ba c:S s:3 s:Esooner_1 s:I");
    assert!(said.ends_with("s:E(0A000) s:Z o"), "{said}");
    assert!(!talk.server.is_tainted);
}

#[test]
fn an_error_about_what_was_believed_to_be_there_shows_that_it_is_not() {
    let prepared = "c:Pa=1 c:S s:1 s:t s:r s:I";
    for (statements_max, is_new, events) in [
        (10, false, "c:Ba c:S s:Esooner_1 s:I"),
        (10, false, "c:Da c:S s:Esooner_1 s:I"),
        (10, false, "c:QEXECUTE/**/a s:Esooner_1 s:I"),
        // It is there already.
        (10, true, "c:Ba s:Esooner_1 c:Ba c:S s:I"),
        // Behind the Bind that fails it would have been closed.
        (1, false, "c:Ba c:Pb=2 c:S s:Esooner_1 s:I"),
    ] {
        let mut talk = Conversation::new(statements_max);
        talk.turn(prepared);
        if is_new {
            talk.server = ServerState::new(statements_max, Parameters::new());
        }
        talk.turn(events);
        assert!(talk.server.is_tainted, "{events}");
    }
}
