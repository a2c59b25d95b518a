//! Settings that end with a transaction, that make tables temporary, that a process or a first packet
//! may not have.

use std::path::Path;

use super::{Both, Clients, Session, Step, TWO};

/// They are settings of one transaction, whatever SET says, and none tells what a seed is.
#[test]
fn what_ends_with_a_transaction_is_not_given_back() {
    let Some(both) = Both::start("what_ends_with_a_transaction_is_not") else {
        return;
    };
    let look: &[&str] = &[
        "Q:show transaction_read_only",
        "Q:show transaction_isolation",
        "Q:show transaction_deferrable",
    ];
    for (set, defaults) in [
        (
            "set transaction_read_only=on",
            "set default_transaction_read_only=on",
        ),
        (
            "begin;set transaction_read_only=on;commit",
            "set session characteristics as transaction read only",
        ),
        (
            "select set_config('transaction_read_only','on',false)",
            "set default_transaction_read_only=on",
        ),
        (
            "reset transaction_read_only",
            "set default_transaction_read_only=on",
        ),
        (
            "set transaction_isolation='serializable'",
            "set default_transaction_isolation='repeatable read'",
        ),
        (
            "set transaction_deferrable=on",
            "set default_transaction_deferrable=on",
        ),
        ("set seed to 0.5", "set work_mem='3MB'"),
        ("select set_config('seed','0.5',false) is null", "select 1"),
        ("reset seed", "select 1"),
    ] {
        let [set, defaults] = [set, defaults].map(|sql| format!("Q:{sql}"));
        for first in [0, 1] {
            let [set, defaults]: [&[&str]; 2] = [&[&set], &[&defaults]];
            let mut script: Vec<Step<'_>> = vec![(0, set), (1, defaults)];
            script.swap(0, first);
            script.extend([0, 1, 0].map(|client| (client, look)));
            both.compare(TWO, &script);
        }
    }
    let clients: &Clients<'_> = &[
        &[("options", "-c transaction_read_only=on -c seed=0.5")],
        &[],
    ];
    let defaults: Step<'_> = (1, &["Q:set default_transaction_read_only=on"]);
    both.compare(clients, &[(0, look), defaults, (0, look), (1, look)]);
}

#[test]
fn a_table_is_temporary_by_the_search_path_as_well() {
    let Some(both) = Both::start("a_table_is_temporary_by_the_search_path") else {
        return;
    };
    let look: Step<'_> = (1, &["Q:select * from leak"]);
    let own: Step<'_> = (0, &["Q:select * from leak"]);
    let makes: [&[&str]; 4] = [
        &["Q:create table leak as select 1 as secret"],
        &["Q:create view leak as select 1 as secret"],
        &["Q:select 1 as secret into leak"],
        &["P:l=select 1 as secret into leak", "B:=l", "E:", "S"],
    ];
    for path in [
        "set search_path=pg_temp",
        "set search_path='pg_temp'",
        "set search_path='pg_temp','public'",
        "set schema 'pg_temp'",
        "select set_config('search_path','pg_temp, public',false)",
    ] {
        let path = format!("Q:{path}");
        for make in makes {
            both.compare(TWO, &[(0, &[&path]), (0, make), look, own]);
        }
        let begin = format!("Q:begin;{}", &path[2..]);
        let make = makes[0];
        let in_block: Step<'_> = (0, &["Q:commit"]);
        both.compare(TWO, &[(0, &[&begin]), (0, make), in_block, look, own]);
        let reset: Step<'_> = (0, &["Q:set search_path=pg_temp,public; commit"]);
        both.compare(TWO, &[(0, &[&begin]), (0, make), reset, look, own]);
    }
    for local in [
        "begin; set local search_path='pg_temp'",
        "begin; select set_config('search_path', 'pg_temp', true)",
    ] {
        let local = format!("Q:{local}");
        let steps: [Step<'_>; 3] = [(0, &[&local]), (0, makes[0]), (0, &["Q:commit"])];
        both.compare(TWO, &[&steps[..], &[look, own]].concat());
    }
    let clients: &Clients<'_> = &[&[("options", "-c search_path=pg_temp,public")], &[]];
    both.compare(clients, &[(0, makes[0]), look, own]);
    let dropped: Step<'_> = (0, &["Q:drop table leak"]);
    both.compare(
        clients,
        &[(0, makes[0]), look, dropped, (0, makes[1]), look, own],
    );
    let discarded: Step<'_> = (0, &["Q:discard all"]);
    both.compare(
        clients,
        &[(0, makes[0]), discarded, (0, makes[1]), look, own],
    );
}

#[test]
fn what_a_first_packet_may_not_ask_for_is_fatal() {
    let Some(both) = Both::start("what_a_first_packet_may_not_ask_for") else {
        return;
    };
    for parameter in [
        ("work_mem", "abc"),
        ("DateStyle", "bogus"),
        ("nosuch", "1"),
        ("options", "-c max_connections=5"),
        ("options", "-c temp_buffers=abc"),
        ("options", "-c transaction_isolation=serializable"),
        ("seed", "7"),
        ("transaction_read_only", "maybe"),
    ] {
        let told = |folder: &Path, port| Session::begin(folder, port, &[parameter]).1;
        let straight = told(both.database.folder(), 5432);
        let through = told(both.gate.folder(), 6432);
        // PostgreSQL 18 takes it in a first packet, and the gate does not (docs/gate/sessions.md).
        if straight.starts_with("R Z") && parameter.1.contains("transaction_isolation") {
            assert!(through.starts_with("R E:FATAL"), "{through}");
            continue;
        }
        assert!(
            straight.starts_with("R E:FATAL"),
            "{parameter:?}: {straight}"
        );
        assert_eq!(through, straight, "{parameter:?}");
    }
}

/// No process takes temp_buffers once it has used temporary tables, whichever client did.
#[test]
fn temp_buffers_are_those_of_a_client_where_others_use_temporary_tables() {
    let Some(both) = Both::start("temp_buffers_are_those_of_a_client") else {
        return;
    };
    let uses: Step<'_> = (
        1,
        &["Q:create temp table tb(a int); insert into tb values(1); drop table tb"],
    );
    let show: Step<'_> = (0, &["Q:show temp_buffers"]);
    let set: Step<'_> = (0, &["Q:set temp_buffers=300"]);
    both.compare(TWO, &[set, uses, show, uses, show, (1, show.1)]);
    both.compare(TWO, &[uses, set, show, (1, show.1), show]);
    let bound: &[&str] = &["P:=set temp_buffers=300", "B:=", "E:", "S"];
    both.compare(TWO, &[uses, (0, bound), show]);
    for parameter in [("temp_buffers", "300"), ("options", "-c temp_buffers=300")] {
        let clients: &Clients<'_> = &[&[parameter], &[]];
        both.compare(clients, &[show, uses, show, uses, show, (1, show.1)]);
    }
}

/// A serializable transaction that only reads and may be deferred waits for those that write.
#[test]
fn no_question_of_the_gates_own_waits_for_other_transactions() {
    let Some(both) = Both::start("no_question_of_the_gates_own_waits") else {
        return;
    };
    let clients: &Clients<'_> = &[&[], &[], &[("options", "-c work_mem=5MB")]];
    let deferrable = "Q:set session characteristics as transaction isolation level serializable, \
        read only, deferrable";
    let each: &[&str] = &[
        "Q:set default_transaction_deferrable = on; set default_transaction_read_only = on",
        "Q:set default_transaction_isolation = serializable",
    ];
    let writes: Step<'_> = (
        1,
        &[
            "Q:begin isolation level serializable",
            "Q:select count(*) > 0 from pg_class",
        ],
    );
    for sets in [&[deferrable][..], each] {
        both.compare(
            clients,
            &[
                writes,
                (0, sets),
                (0, &["Q:show default_transaction_deferrable"]),
                (2, &["Q:show work_mem"]),
                (2, &["Q:select 1"]),
                (0, &["Q:show default_transaction_isolation"]),
                (1, &["Q:commit"]),
                (0, &["Q:select 1"]),
            ],
        );
    }
}
