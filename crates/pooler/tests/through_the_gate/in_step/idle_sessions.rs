//! idle_session_timeout, which ends the session of the client that has it, and no server connection
//! that other clients use.

use std::thread::sleep;
use std::time::Duration;

use super::{Both, Session};
use crate::support::GATE_PORT;

const PROCESSES: &str = "SELECT string_agg(pid::text, ',') FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
const SHOW: &str = "Q:show idle_session_timeout";

#[test]
fn a_client_that_is_idle_for_too_long_loses_its_own_session_only() {
    let Some(both) = Both::start("a_client_that_is_idle_for_too_long") else {
        return;
    };
    let (database, gate) = (&both.database, &both.gate);
    let mut other = Session::begin(gate.folder(), GATE_PORT, &[]).0;
    other.say(&["Q:select 1"]);
    let ways: [(&[(&str, &str)], &str); 5] = [
        (&[("idle_session_timeout", "1000")], "Q:select 1"),
        (&[("options", "-c idle_session_timeout=1.0s")], "Q:select 1"),
        (&[], "Q:set idle_session_timeout = '1s'"),
        (
            &[],
            "Q:select set_config('idle_session_timeout', '1s', false) is null",
        ),
        (
            &[("idle_session_timeout", "1h")],
            "Q:set idle_session_timeout to 1000",
        ),
    ];
    for (parameters, set) in ways {
        let run = |folder, port| {
            let mut client = Session::begin(folder, port, parameters).0;
            let shown = client.say(&[set, SHOW]);
            let processes = database.ask(PROCESSES);
            [shown, client.hear(1), processes]
        };
        let [shown, ended, _] = run(database.folder(), 5432);
        assert!(ended.contains("57P05"), "{ended}");
        let [shown_there, ended_there, processes] = run(gate.folder(), GATE_PORT);
        assert_eq!(
            (shown_there, ended_there),
            (shown, ended),
            "{parameters:?} {set}"
        );
        sleep(Duration::from_millis(1500));
        assert_eq!(database.ask(PROCESSES), processes, "{parameters:?} {set}");
        let shown = other.say(&[SHOW]);
        assert!(shown.contains("\u{1}0"), "{shown:?}");
    }
}

/// One in a transaction, or that keeps its server connection, is the server's to end.
#[test]
fn only_what_is_idle_outside_a_transaction_is_an_idle_session() {
    let Some(both) = Both::start("only_what_is_idle_outside_a_transaction") else {
        return;
    };
    let set = "Q:set idle_session_timeout = '1s'";
    for (folder, port) in [
        (both.database.folder(), 5432),
        (both.gate.folder(), GATE_PORT),
    ] {
        let mut tied = Session::begin(folder, port, &[]).0;
        tied.say(&["Q:listen news", set]);
        let mut reset = Session::begin(folder, port, &[]).0;
        reset.say(&[set, "Q:reset idle_session_timeout"]);
        let ended = tied.hear(1);
        assert!(ended.contains("57P05"), "{port}: {ended}");
        let mut inside = Session::begin(folder, port, &[]).0;
        inside.say(&[set, "Q:begin"]);
        sleep(Duration::from_millis(1500));
        let still_there = inside.say(&["Q:rollback"]);
        assert!(still_there.contains("ROLLBACK"), "{port}: {still_there}");
        let still_there = reset.say(&[SHOW]);
        assert!(still_there.contains("SHOW"), "{port}: {still_there}");
    }
}
