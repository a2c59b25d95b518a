//! What a text says, however it is written: temporary tables, names with escapes, backslashes.

use super::{Both, Step, TWO};

const OFF: &str = "ALTER DATABASE postgres SET standard_conforming_strings = off";

#[test]
fn a_table_that_a_query_makes_is_temporary_however_that_is_said() {
    let Some(both) = Both::start("a_table_that_a_query_makes") else {
        return;
    };
    let look: Step<'_> = (1, &["Q:select * from leak"]);
    let own: Step<'_> = (0, &["Q:select * from leak"]);
    let dropped: Step<'_> = (0, &["Q:drop table leak"]);
    let explain = "explain (analyze, buffers off, costs off, timing off, summary off)";
    for make in [
        "select 1 as secret into temp leak",
        "select 1 as secret into local temp leak",
        "select 1 as secret into local temporary table leak",
        "select 1 as secret into global temp leak",
        "select 1 as secret into global temporary leak",
        "(select 1 as secret into temp leak)",
        "((select 1 as secret into local temp leak))",
        "with a as (select 1 as secret) select * into local temp leak from a",
        &format!("{explain} select 1 as secret into temp leak"),
        &format!("{explain} (select 1 as secret into local temp leak)"),
        &format!("{explain} create temp table leak as select 1 as secret"),
        &format!("{explain} create local temp table leak as select 1 as secret"),
    ] {
        let (simple, unnamed, named) = (
            format!("Q:{make}"),
            format!("P:={make}"),
            format!("P:l={make}"),
        );
        let ways: [&[&str]; 3] = [
            &[&simple],
            &[&unnamed, "B:=", "E:", "S"],
            &[&named, "B:=l", "E:", "C:l", "S"],
        ];
        for way in ways {
            both.compare(TWO, &[(0, way), look, own, dropped, look, own]);
        }
    }
    let prepare: Step<'_> = (
        0,
        &["P:l=create temp table leak as select 1 as secret", "S"],
    );
    let run = format!("Q:{explain} execute l");
    both.compare(TWO, &[prepare, (0, &[&run]), look, own]);
    let prepare: Step<'_> = (0, &["P:l=select 1 as secret", "S"]);
    let run = format!("Q:{explain} create local temp table leak as execute l");
    both.compare(TWO, &[prepare, (0, &[&run]), look, own]);
}

#[test]
fn a_setting_is_the_clients_own_however_its_text_is_written() {
    let Some(both) = Both::start("a_setting_is_the_clients_own_however") else {
        return;
    };
    let look: Step<'_> = (1, &["Q:show work_mem"]);
    let own: Step<'_> = (0, &["Q:show work_mem"]);
    for set in [
        "select U&\"set\\005fconfig\"('work_mem','7MB',false)",
        "select U&\"set!005fconfig\" uescape '!' ('work_mem','7MB',false)",
        "select pg_catalog.u&\"set\\005fconfig\"('work_mem','7MB',false)",
        "set U&\"work\\005fmem\" = '7MB'",
        // A number before PostgreSQL 16 knows no such one; it says so.
        "select 0x1e--it's\n; set work_mem = '7MB'",
    ] {
        let set = format!("Q:{set}");
        both.compare(TWO, &[(0, &[&set]), look, own]);
    }
}

/// The same where a backslash takes the next byte, because the database says so or the transaction.
#[test]
fn a_backslash_is_what_the_session_has_it_be() {
    let name = "a_backslash_is_what_the_session_has_it_be";
    let Some(both) = Both::start_with(name, OFF) else {
        return;
    };
    let look: Step<'_> = (1, &["Q:show work_mem"]);
    let own: Step<'_> = (0, &["Q:show work_mem"]);
    let on: Step<'_> = (0, &["Q:set standard_conforming_strings = on"]);
    let scripts: [&[Step<'_>]; 6] = [
        &[(0, &["Q:select 'O\\'Brien'; set work_mem = '7MB'"])],
        &[(
            0,
            &[
                "P:=select 'O\\'Brien', set_config('work_mem','7MB',false)",
                "B:=",
                "E:",
                "S",
            ],
        )],
        &[
            (
                0,
                &[
                    "P:l=select 'it\\'s', set_config('work_mem','7MB',false)",
                    "S",
                ],
            ),
            (0, &["B:=l", "E:", "S"]),
        ],
        &[
            (0, &["P:l=set work_mem = '7MB'", "S"]),
            (0, &["Q:select 'O\\'Brien'; execute l"]),
        ],
        &[
            on,
            (0, &["Q:select 'O\\'; set work_mem = '7MB'; select 'x'"]),
        ],
        &[(
            0,
            &[
                "P:=set standard_conforming_strings = on",
                "B:=",
                "E:",
                "P:=select 'O\\', set_config('work_mem','7MB',false), 'x'",
                "B:=",
                "E:",
                "S",
            ],
        )],
    ];
    for script in scripts {
        both.compare(TWO, &[script, &[look, own]].concat());
    }
    // It ties none of them to one of the two connections.
    let four: [&[(&str, &str)]; 4] = [&[]; 4];
    let says: [Step<'_>; 4] =
        [0, 1, 2, 3].map(|client| (client, &["Q:select 'O\\'Brien'"] as &[&str]));
    both.compare(&four, &[says, says].concat());
}

#[test]
fn a_backslash_is_what_the_transaction_has_it_be() {
    let Some(both) = Both::start("a_backslash_is_what_the_transaction_has") else {
        return;
    };
    let look: Step<'_> = (1, &["Q:show work_mem"]);
    let own: Step<'_> = (0, &["Q:show work_mem"]);
    let commit: Step<'_> = (0, &["Q:commit"]);
    let sets: &[&str] = &["Q:select 'O\\'Brien'; set work_mem = '7MB'"];
    for begin in [
        "Q:begin; set local standard_conforming_strings = off",
        "Q:begin; select set_config('standard_conforming_strings','off',true)",
    ] {
        both.compare(TWO, &[(0, &[begin]), (0, sets), commit, look, own]);
        let ahead = [&[begin], sets].concat();
        both.compare(TWO, &[(0, &ahead), commit, look, own]);
    }
}
