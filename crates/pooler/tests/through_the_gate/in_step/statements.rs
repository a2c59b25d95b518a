//! Statements that name others, and names that are gone.

use super::{Both, Step, TWO};

const FIRST: Step<'_> = (0, &["P:s2=select 1", "S"]);
const RUN: Step<'_> = (0, &["B:=s1", "E:", "S"]);
const IS_THERE: Step<'_> = (0, &["B:=s2", "E:", "S"]);

/// What is prepared names others by the names that they have when it runs.
#[test]
fn a_prepared_deallocate_takes_effect_when_it_runs() {
    let Some(both) = Both::start("a_prepared_deallocate") else {
        return;
    };
    let scripts: [&[Step<'_>]; 10] = [
        &[
            (0, &["P:s1=deallocate s2", "S"]),
            IS_THERE,
            RUN,
            IS_THERE,
            RUN,
        ],
        &[(0, &["P:s1=deallocate s2", "D:s1", "S"]), RUN, IS_THERE],
        &[(0, &["P:=deallocate s2", "S"]), IS_THERE],
        &[(0, &["P:=deallocate s2", "D:", "S"]), IS_THERE],
        &[(0, &["P:=deallocate s2", "B:=", "E:", "S"]), IS_THERE],
        &[
            (0, &["P:s1=deallocate s2", "B:=s1", "E:", "S"]),
            FIRST,
            RUN,
            RUN,
        ],
        &[(0, &["P:s1=deallocate s2", "C:s1", "S"]), IS_THERE],
        &[
            (0, &["Q:begin"]),
            (0, &["P:s1=deallocate s2", "S"]),
            (0, &["Q:rollback"]),
            IS_THERE,
            RUN,
            IS_THERE,
        ],
        &[(0, &["P:s1=deallocate s2", "B:=s1", "S"]), IS_THERE],
        &[
            (0, &["P:s1=deallocate s2", "B:=s1", "D:s1", "E:", "S"]),
            IS_THERE,
        ],
    ];
    for script in scripts {
        both.compare(TWO, &[&[FIRST], script].concat());
    }
}

#[test]
fn what_is_prepared_names_statements_when_it_runs() {
    let Some(both) = Both::start("what_is_prepared_names_statements") else {
        return;
    };
    let scripts: [&[Step<'_>]; 7] = [
        &[(0, &["P:s1=prepare s2(int) as select 5", "S"]), IS_THERE],
        &[
            (0, &["P:k=prepare s2 as select 2", "B:=k", "E:", "S"]),
            (0, &["B:=k", "D:k", "E:", "S"]),
            IS_THERE,
        ],
        &[(0, &["P:=prepare s2 as select 2", "D:", "S"]), IS_THERE],
        &[
            (0, &["P:s1=execute s2", "S"]),
            RUN,
            (0, &["D:s1", "S"]),
            RUN,
        ],
        &[
            (0, &["P:s1=execute s2", "D:s1", "S"]),
            (0, &["Q:deallocate s2"]),
            RUN,
            (0, &["P:s2=select 7, 8", "S"]),
            (0, &["D:s1", "S"]),
            RUN,
        ],
        &[
            (0, &["P:s1=execute s2", "B:=s1", "E:", "B:=nix", "S"]),
            (0, &["P:s1=execute s2", "S"]),
            (0, &["b:=s1", "E:", "S"]),
            RUN,
        ],
        &[
            (0, &["P:=execute s2", "S"]),
            (1, &["P:s2=select 3", "S"]),
            (1, &["Q:begin"]),
            (0, &["B:=", "E:", "S"]),
            (1, &["Q:execute s2"]),
            (1, &["Q:commit"]),
        ],
    ];
    for script in scripts {
        both.compare(TWO, &[&[FIRST], script].concat());
    }
}

#[test]
fn what_forgets_all_statements_does_so_in_any_batch() {
    let Some(both) = Both::start("what_forgets_all_statements") else {
        return;
    };
    let first: Step<'_> = (0, &["P:w=select 1", "S"]);
    let is_there: Step<'_> = (0, &["B:=w", "E:", "S"]);
    let again: Step<'_> = (0, &["B:=k", "E:", "S"]);
    for all in ["deallocate all", "discard all"] {
        let (unnamed, named) = (format!("P:={all}"), format!("P:k={all}"));
        let scripts: [&[Step<'_>]; 9] = [
            &[(0, &[&unnamed, "B:c1=", "E:c1", "c:c1", "S"])],
            &[(0, &[&unnamed, "B:c1=", "E:c1", "C:", "S"])],
            &[(0, &[&named, "B:=k", "E:", "S"]), again],
            &[(0, &[&named, "B:c1=k", "E:c1", "c:c1", "S"]), again],
            &[(0, &[&named, "B:=k", "E:", "C:k", "S"]), again],
            &[(0, &[&named, "S"]), again, again],
            &[(0, &[&unnamed, "B:=", "E:", "B:=w", "E:", "S"])],
            &[(
                0,
                &[&unnamed, "B:=", "E:", "P:w=select 2", "B:=w", "E:", "S"],
            )],
            &[
                (0, &[&named, "B:=k", "E:", "S", "P:k=select 3", "S"]),
                again,
            ],
        ];
        for script in scripts {
            both.compare(TWO, &[&[first], script, &[is_there]].concat());
        }
    }
}

/// What names a statement that is not there leaves a connection that the gate does not lend again.
#[test]
fn what_names_others_is_described_in_a_failed_transaction_elsewhere() {
    let Some(both) = Both::start("what_names_others_is_described") else {
        return;
    };
    let fails: &[Step<'_>] = &[
        (0, &["Q:execute nix"]),
        (0, &["Q:begin"]),
        (0, &["Q:select 1/0"]),
        (0, &["D:s1", "S"]),
        (0, &["B:=s1", "E:", "S"]),
        (0, &["Q:rollback"]),
        (0, &["D:s1", "S"]),
    ];
    for text in [
        "execute nix",
        "execute s2",
        "deallocate s2",
        "deallocate nix",
        "prepare s2 as select 1",
        "prepare nix as select 1",
    ] {
        let parse = format!("P:s1={text}");
        let parse: &[&str] = &[&parse, "S"];
        both.compare(TWO, &[&[FIRST, (0, parse)], fails].concat());
    }
}

#[test]
fn errors_name_what_is_closed_behind_them() {
    let Some(both) = Both::start("errors_name_what_is_closed") else {
        return;
    };
    let scripts: [&[Step<'_>]; 4] = [
        &[(0, &["P:s3=select 1", "b:=s3", "C:s3", "S"])],
        &[
            (0, &["P:s3=select 1", "S"]),
            (0, &["b:=s3", "C:s3", "P:s3=select 2", "S"]),
        ],
        &[
            (0, &["P:s3=select 1", "S"]),
            (0, &["P:=deallocate s3", "b:=s3", "B:=", "E:", "S"]),
        ],
        &[
            (0, &["Q:listen a"]),
            (0, &["P:s3=select 1", "S"]),
            (0, &["b:=s3", "C:s3", "S"]),
        ],
    ];
    for script in scripts {
        both.compare(TWO, script);
    }
}

/// What a constant means is settled when its text is prepared, and the server says with the end of
/// the cycle only which settings it has.
#[test]
fn a_constant_means_what_it_does_under_its_own_clients_settings() {
    let Some(both) = Both::start("a_constant_means_what_it_does") else {
        return;
    };
    let text = "P:a=select '2000-01-01 00:00'::timestamptz = '2000-01-01 00:00+09'::timestamptz";
    let zone = "P:=set timezone = 'Asia/Tokyo'";
    let run: Step<'_> = (1, &["B:=a", "E:", "S"]);
    let own: Step<'_> = (0, &["B:=a", "E:", "S"]);
    let three = &[&[][..]; 3];
    let prepares: [&[Step<'_>]; 3] = [
        &[(0, &[zone, "B:=", "E:", text, "S"])],
        // Prepared before, and by the gate once more.
        &[
            (0, &[text, "S"]),
            (0, &[zone, "B:=", "E:", "B:=a", "E:", "S"]),
        ],
        &[
            (0, &["Q:begin; set timezone = 'Asia/Tokyo'"]),
            (0, &["P:=rollback", "B:=", "E:", text, "S"]),
        ],
    ];
    for prepare in prepares {
        // Each of the two connections is the other client's once.
        both.compare(
            three,
            &[
                &[(1, &[text, "S"] as &[&str]), (1, &["Q:begin"])],
                prepare,
                &[
                    (1, &["Q:commit"]),
                    (2, &["Q:begin"]),
                    run,
                    (0, &["Q:begin"]),
                    (2, &["Q:commit"]),
                    run,
                    (0, &["Q:commit"]),
                    own,
                ],
            ]
            .concat(),
        );
    }
}

/// DropAllPreparedStatements of PostgreSQL's `prepare.c` looks at those with a name.
#[test]
fn what_forgets_all_statements_keeps_the_one_without_a_name() {
    let Some(both) = Both::start("what_forgets_all_statements_keeps") else {
        return;
    };
    let other: Step<'_> = (1, &["Q:select 5"]);
    let runs: Step<'_> = (0, &["B:=", "E:", "S"]);
    let described: Step<'_> = (0, &["D:", "S"]);
    for all in ["deallocate all", "discard all"] {
        let (unnamed, named) = (format!("P:={all}"), format!("P:k={all}"));
        let forgets: Step<'_> = (0, &["B:=k", "E:", "S"]);
        let prepared: Step<'_> = (0, &[&named, "P:=select 7", "S"]);
        let scripts: [&[Step<'_>]; 5] = [
            &[prepared, forgets, runs, forgets],
            &[prepared, forgets, other, described, runs],
            &[(0, &[&unnamed, "B:=", "E:", "S"]), runs, other, runs],
            &[
                (0, &[&named, "P:=select 7", "B:=k", "E:", "B:=", "E:", "S"]),
                runs,
            ],
            &[prepared, (0, &[&format!("Q:{all}")]), runs],
        ];
        for script in scripts {
            both.compare(TWO, script);
        }
    }
}
