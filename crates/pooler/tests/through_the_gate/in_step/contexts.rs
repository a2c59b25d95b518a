//! What a constant means is settled when its text is prepared: also where the client has other
//! settings when it is used, on a server connection that does not know the statement.

use super::{Both, Step, TWO};

const TEXTS: [(&str, &str, &str); 5] = [
    (
        "select '2000-01-01 00:00'::timestamptz at time zone 'UTC'",
        "timezone = 'Asia/Tokyo'",
        "timezone",
    ),
    (
        "select extract(month from '01/02/2000'::date)",
        "datestyle = 'SQL, DMY'",
        "datestyle",
    ),
    (
        "with a as (select extract(hour from interval '-1 1:00:00') as h) select h from a",
        "intervalstyle = 'sql_standard'",
        "intervalstyle",
    ),
    (
        "select ascii('é'), length($$éé$$)",
        "client_encoding = 'latin1'",
        "client_encoding",
    ),
    (
        "select 1 as \"é\", ascii('é')",
        "client_encoding = 'latin1'",
        "client_encoding",
    ),
];

const OTHER: Step<'_> = (1, &["Q:begin"]);
const OTHERS_END: Step<'_> = (1, &["Q:commit"]);

#[test]
fn a_constant_means_what_it_did_when_its_client_prepared_it() {
    let Some(both) = Both::start("a_constant_means_what_it_did") else {
        return;
    };
    for (text, set, name) in TEXTS {
        let [named, unnamed, set, show] = [
            format!("P:a={text}"),
            format!("P:={text}"),
            format!("P:z=set {set}"),
            format!("Q:show {name}"),
        ];
        let sets: Step<'_> = (0, &[&set, "B:=z", "E:", "S"]);
        let show: Step<'_> = (0, &[&show]);
        for (parse, run) in [
            (&named, &["B:=a", "E:", "S"]),
            (&unnamed, &["B:=", "E:", "S"]),
        ] {
            let (prepare, described): (Step<'_>, Step<'_>) = (
                (0, &[parse, "S"]),
                (0, &[parse, if parse == &named { "D:a" } else { "D:" }, "S"]),
            );
            let run: Step<'_> = (0, run);
            for prepare in [prepare, described] {
                // The other client has the connection that knows it.
                both.compare(
                    TWO,
                    &[prepare, sets, OTHER, run, show, OTHERS_END, run, show],
                );
                both.compare(
                    TWO,
                    &[prepare, OTHER, sets, run, show, OTHERS_END, run, show],
                );
            }
        }
    }
}

const PREPARE: &[&str] = &[
    "P:a=select '2000-01-01 00:00'::timestamptz at time zone 'UTC'",
    "S",
];
const RUN: &[&str] = &["B:=a", "E:", "S"];
const SHOW: &[&str] = &["Q:show timezone"];
const BEGIN: &[&str] = &["Q:begin"];
const COMMIT: &[&str] = &["Q:commit"];
const TOKYO: &[&str] = &["Q:set timezone = 'Asia/Tokyo'"];

/// Compares what a client is answered that has prepared the statement elsewhere.
fn compare(both: &Both, script: &[&[&str]]) {
    let script = script.iter().map(|words| (0, *words));
    let begin = [(0, PREPARE), OTHER];
    let end = [(0, SHOW), OTHERS_END, (0, RUN), (0, SHOW)];
    let all: Vec<Step<'_>> = begin.into_iter().chain(script).chain(end).collect();
    both.compare(TWO, &all);
}

#[test]
fn the_settings_of_a_transaction_stay_what_its_client_has_set() {
    let Some(both) = Both::start("the_settings_of_a_transaction_stay") else {
        return;
    };
    let scripts: [&[&[&str]]; 5] = [
        &[BEGIN, TOKYO, RUN, SHOW, COMMIT],
        &[BEGIN, TOKYO, RUN, &["Q:rollback"]],
        &[
            BEGIN,
            &["Q:set local timezone = 'Asia/Tokyo'"],
            RUN,
            SHOW,
            COMMIT,
        ],
        &[
            TOKYO,
            BEGIN,
            RUN,
            &["Q:set timezone = 'Europe/Rome'"],
            SHOW,
            COMMIT,
        ],
        &[
            TOKYO,
            &["Q:begin; savepoint s"],
            RUN,
            &["Q:rollback to s"],
            SHOW,
            RUN,
            &["Q:reset timezone"],
            SHOW,
            COMMIT,
        ],
    ];
    for script in scripts {
        compare(&both, script);
    }
}

#[test]
fn what_is_prepared_once_more_fails_and_is_executed_as_without_the_gate() {
    let Some(both) = Both::start("what_is_prepared_once_more") else {
        return;
    };
    let batch: &[&str] = &[
        "B:=a",
        "E:",
        "B:=a",
        "E:",
        "P:b=select '1'",
        "B:=b",
        "E:",
        "S",
        "S",
    ];
    let by_name: &[&str] = &["P:e=execute a", "B:=e", "E:", "S"];
    let scripts: [&[&[&str]]; 3] = [
        &[TOKYO, &["Q:begin; select 1/0"], RUN, &["Q:rollback"], RUN],
        &[TOKYO, by_name],
        &[TOKYO, batch],
    ];
    for script in scripts {
        compare(&both, script);
    }
    let gone: &[&str] = &["P:a=select n, '2000-01-01'::timestamptz from gone", "S"];
    let script: &[Step<'_>] = &[
        (0, &["Q:create table gone (n int)"]),
        (0, gone),
        OTHER,
        (0, TOKYO),
        (0, &["Q:drop table gone"]),
        (0, RUN),
        (0, SHOW),
        OTHERS_END,
    ];
    both.compare(TWO, script);
}
