//! Conversations as strings, one letter an event, and after each event what the turn is.

use super::*;

/// Plays a conversation and says after each event: `-` not over, `o` over, `!` out of step; `x`
/// dropped, `w` waits, `W` waits and a Flush is sent, `b` a probe; `h` hidden from the client, `?`
/// a probe is sent, `g` the gate's own. The client: the types of its messages, `G` before an Execute
/// or a query that may be a COPY; `y` `z` the gate's own Bind and Execute. The server in its own case: `1` `2` `3` complete, `T` described, `C` done, `I`
/// `O` `E` ready in no, an open or a failed transaction, `R` rows are expected, `!` an error.
fn played(events: &str) -> String {
    let mut pipeline = Pipeline::default();
    let mut said = String::new();
    for (number, half) in events.split('|').enumerate() {
        for event in half.chars() {
            let client = number % 2 == 0;
            said.push(if client {
                from_client(&mut pipeline, event)
            } else {
                from_server(&mut pipeline, event)
            });
        }
        said.push('|');
    }
    said.pop();
    said
}

fn from_client(pipeline: &mut Pipeline, event: char) -> char {
    let (tag, may_copy) = match event {
        'e' => ('E', true),
        'q' => ('Q', true),
        tag => (tag, false),
    };
    match pipeline.verdict(tag as u8) {
        Verdict::Drop => return 'x',
        Verdict::Wait { flush: false } => return 'w',
        Verdict::Probe => {
            pipeline.probed();
            return 'b';
        }
        Verdict::Wait { flush: true } => {
            pipeline.flushed();
            return 'W';
        }
        Verdict::Pass => {}
    }
    match tag {
        'P' => pipeline.sent(Sent::Parse, 0),
        'B' => pipeline.sent(Sent::Bind, 0),
        'D' => pipeline.sent(Sent::Describe, 0),
        'E' => pipeline.sent(Sent::Execute, 0),
        'y' => pipeline.sent(Sent::OwnBind, 0),
        'z' => pipeline.sent(Sent::OwnExecute, 0),
        'C' => pipeline.sent(Sent::Close, 0),
        'S' => pipeline.sent(Sent::Sync, 0),
        'Q' => pipeline.sent(Sent::Query, 0),
        'F' => pipeline.sent(Sent::FunctionCall, 0),
        'c' | 'f' => {
            pipeline.copy_ended();
            false
        }
        'H' => {
            pipeline.flushed();
            false
        }
        _ => false,
    };
    if may_copy {
        pipeline.may_copy();
    }
    over(pipeline)
}

fn over(pipeline: &Pipeline) -> char {
    if pipeline.is_over() { 'o' } else { '-' }
}

fn from_server(pipeline: &mut Pipeline, event: char) -> char {
    let answered = match event {
        '1' => Answered::Parsed,
        '2' => Answered::Bound,
        '3' => Answered::Closed,
        'T' => Answered::Described,
        'C' => Answered::Executed,
        'I' => Answered::Ready(TransactionStatus::Idle),
        'O' => Answered::Ready(TransactionStatus::Open),
        'E' => Answered::Ready(TransactionStatus::Failed),
        'R' => Answered::CopyIn,
        _ => Answered::Error,
    };
    match pipeline.answered(answered) {
        Ok(AnswerTo::Client) => over(pipeline),
        Ok(AnswerTo::Gate) => 'g',
        Ok(AnswerTo::Probe) if pipeline.is_over() => 'O',
        Ok(AnswerTo::Probe) => 'h',
        Ok(AnswerTo::Doubt) => '?',
        Err(OutOfStep) => '!',
    }
}

#[test]
fn a_query_is_a_turn_and_a_transaction_keeps_it() {
    assert_eq!(played("Q|CI"), "-|-o");
    assert_eq!(played("Q|CO|Q|CO|Q|CI"), "-|--|-|--|-|-o");
    assert_eq!(played("Q|CO|Q|!E|Q|CI"), "-|--|-|--|-|-o");
    assert_eq!(played("QF|CII"), "--|--o");
}

#[test]
fn a_cycle_of_the_extended_protocol_ends_with_its_sync() {
    assert_eq!(played("PBDES|12TCI"), "-----|----o");
    assert_eq!(played("PBE|12C|S|I"), "---|---|-|o");
    assert_eq!(played("PSPBESQ|1I12CITCI"), "-------|--------o");
    // A query ends it as well, once it is known that it is not skipped.
    assert_eq!(played("PBEQ|12C|Q|CI"), "---W|---|-|-o");
    assert_eq!(played("PF|1|F|I"), "-W|-|-|o");
}

#[test]
fn a_command_of_the_gates_own_is_answered_to_the_gate() {
    assert_eq!(played("PyzPBES|12C12CI"), "-------|-gg---o");
    assert_eq!(played("PBEyz|12C2C|S|I"), "-----|---gg|-|o");
    assert_eq!(played("PyzPBES|12!I"), "-------|-g-o");
}

#[test]
fn after_an_error_everything_up_to_the_next_sync_is_skipped() {
    assert_eq!(played("PBES|1!I"), "----|--o");
    assert_eq!(played("PBEQ|1!|QFPBdcHS|I"), "---W|--|xxxxxxx-|o");
    // Of two Syncs that were sent the first ends it.
    assert_eq!(played("PSPS|!I1I"), "----|---o");
    // An error in a query, or at a Sync, skips nothing.
    assert_eq!(
        played("QPBES|!I12CI"),
        "-----|------o".replace("------o", "-----o")
    );
    assert_eq!(played("PBES|12C!I"), "----|----o");
}

#[test]
fn rows_belong_to_the_copy_that_waits_for_them() {
    assert_eq!(played("qd|R|ddc|CI"), "-w|-|---|-o");
    assert_eq!(played("qdS|RCI"), "-ww|--o");
    // Two of them in one query.
    assert_eq!(played("q|R|dcd|CR|dcQ|CI"), "-|-|--w|--|--w|-o");
    // In the extended protocol the first Sync is read as one between rows.
    assert_eq!(played("PBeS|12R|Sdc|C|S|I"), "---W|---|---|-|-|o");
    assert_eq!(played("PBe|12R|dcS|CI"), "---|---|---|-o");
    // Without a COPY they are nothing.
    assert_eq!(played("dcfQ|CI"), "xxx-|-o");
    assert_eq!(played("H"), "o");
}

#[test]
fn a_copy_that_fails_ends_where_the_server_says() {
    assert_eq!(played("q|R|d|!I|dcQ|CI"), "-|-|-|-o|xx-|-o");
    assert_eq!(played("PBe|12R|d|!|dcQS|I"), "---|---|-|-|xxx-|o");
    assert_eq!(played("PBe|12R|dcS|!I"), "---|---|---|-o");
}

#[test]
fn a_probe_tells_which_syncs_were_rows() {
    // Read with the rows: only the probe's own are answered, and the skipping goes on.
    assert_eq!(
        played("PBe|12R|Sd|!|S|I3I|Q|"),
        "---|---|--|?|w|hhh|x|".replace("|S|", "")
    );
    assert_eq!(played("PBe|12R|SdcS|!I3I|QS|I"), "---|---|---W|?hhh|x-|o");
    // Answered: the first is the client's, and nothing is skipped any more.
    assert_eq!(played("PBe|12R|Sd|!II3I|Q|CI"), "---|---|--|?h-hO|-|-o");
    assert_eq!(played("q|R|SSd|!III3I"), "-|-|---|?-h-hO");
    assert_eq!(played("q|R|SSd|!IIII3I"), "-|-|---|?-h--hO");
}

#[test]
fn what_is_no_row_ends_a_copy_and_the_session() {
    // Unless the COPY had failed before: then it is what it is.
    assert_eq!(played("q|R|dHP|!I1"), "-|-|-x-|---");
    assert_eq!(played("PBe|12R|PdS|!I"), "---|---|-x-|-o");
    assert_eq!(played("q|R|dQ|!ICI"), "-|-|--|---o");
    // Where that cannot be known the probe comes first, and tells.
    assert_eq!(played("PBe|12R|Q|!I3I|QS|I"), "---|---|b|-hhh|x-|o");
    assert_eq!(played("PBe|12R|SQ|!II3I|Q|CI"), "---|---|-b|-h-hO|-|-o");
}

#[test]
fn unanswered_messages_are_bounded_and_then_waited_for() {
    let many = "P".repeat(UNANSWERED_MAX);
    let said = played(&format!("{many}PP|1|P"));
    assert!(said.ends_with("Ww|-|-"), "{}", &said[said.len() - 20..]);
    let mut pipeline = Pipeline::default();
    pipeline.sent(Sent::Parse, KEPT_BYTES_MAX);
    assert_eq!(pipeline.verdict(b'B'), Verdict::Wait { flush: true });
    assert_eq!(pipeline.answered(Answered::Parsed), Ok(AnswerTo::Client));
    assert_eq!(pipeline.verdict(b'B'), Verdict::Pass);
}

#[test]
fn an_answer_too_many_is_noticed() {
    assert_eq!(played("|I"), "|!");
    assert_eq!(played("Q|II"), "-|o!");
    assert_eq!(played("P|2"), "-|!");
}

#[test]
fn a_copy_that_was_not_foreseen_keeps_the_connection() {
    assert_eq!(played("QQ|RCII"), "--|----");
}
