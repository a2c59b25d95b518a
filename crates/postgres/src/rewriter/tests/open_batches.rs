//! Batches of which the server has answered all and the client has not sent the Sync.

use super::*;

/// PostgreSQL has a transaction open from the first message of a batch to its Sync.
#[test]
fn a_batch_without_its_end_is_an_open_transaction() {
    let mut talk = Conversation::new(10);
    let mut rewriter = Rewriter::new(&mut talk.client, &mut talk.server, &talk.all);
    let mut idle = |events: &str| {
        play(&mut rewriter, events);
        (rewriter.is_idle_in_transaction(), rewriter.is_unsynced())
    };
    assert_eq!(idle(""), (false, false));
    assert_eq!(idle("c:P=1 c:B c:E c:H"), (false, true), "it is busy");
    assert_eq!(idle("s:1 s:2 s:W"), (true, true));
    assert_eq!(idle("c:S"), (false, false));
    assert_eq!(idle("s:I"), (false, false));
    // One that has failed as well: its client keeps the server connection.
    assert_eq!(idle("c:Bnone c:H s:E"), (true, true));
    assert_eq!(idle("c:S s:I"), (false, false));
    assert_eq!(idle("c:QBEGIN s:W s:T"), (true, false));
}
