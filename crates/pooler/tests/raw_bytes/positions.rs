//! Where an error is, in the text as the client has sent it: the gate puts names of its own into
//! commands that name prepared statements.

use super::{Both, Step, bind, execute, parse, query, sync};

fn prepared(name: &[u8]) -> Step {
    (0, vec![parse(name, "SELECT $1::int"), sync()])
}

#[test]
fn an_error_is_where_the_client_has_written_it() {
    let Some(both) = Both::start("an_error_is_where_the_client_has_written_it") else {
        return;
    };
    let longest = "s".repeat(63);
    for name in ["s1", "\u{e9}t\u{e9}", &longest] {
        for sql in [
            "EXECUTE \"s1\"(nosuch)",
            "SELECT nosuch; EXECUTE \"s1\"(1)",
            "/* \u{e9} */ EXECUTE /* \u{65e5} */ \"s1\"(1 + nosuch)",
            "EXECUTE \"s1\"(1); EXECUTE \"s1\"(nosuch)",
            "EXECUTE \"s1\"(1); SELECT '\u{e9}'; EXECUTE \"s1\"(2); SELECT nosuch",
            "EXPLAIN (COSTS OFF) EXECUTE \"s1\"(nosuch)",
            "CREATE TEMP TABLE t AS EXECUTE \"s1\"(nosuch)",
            "PREPARE \"s1\" AS SELECT nosuch",
            "DEALLOCATE \"s1\"; SELECT nosuch",
            "EXECUTE \"s1\"(1); DEALLOCATE \"s1\"; SELECT nosuch",
            "EXECUTE \"s1\"(1) nosuch",
            "EXECUTE sooner_7(nosuch)",
            "EXECUTE sooner_7; EXECUTE \"s1\"(nosuch)",
            "SELECT nosuch",
        ] {
            let sql = sql.replace("s1", name);
            let gone = (0, vec![query("DEALLOCATE ALL")]);
            let answers = both.compare(&[
                prepared(name.as_bytes()),
                (0, vec![query(&sql)]),
                (0, vec![query("SELECT nosuch")]),
                gone,
            ]);
            assert!(answers[1].contains("E:"), "{sql}: {answers:?}");
        }
    }
}

#[test]
fn an_error_of_what_is_prepared_is_where_the_client_has_written_it() {
    let Some(both) = Both::start("an_error_of_what_is_prepared_is_where") else {
        return;
    };
    let run = || [bind(b""), execute()].concat();
    let naming = |sql: &str| [parse(b"", sql), run()].concat();
    let gone = || (0, vec![query("DEALLOCATE ALL")]);
    let wrong = "/* \u{e9} */ EXECUTE s1(nosuch)";
    let table = "CREATE TABLE wrong (a nosuchtype)";
    for cycle in [
        vec![naming(wrong), sync()],
        vec![naming("EXECUTE s1(1)"), naming(wrong), sync()],
        vec![naming("EXECUTE s1(1)"), sync(), naming(wrong), sync()],
        // What names no statement stands behind what does.
        vec![naming("EXECUTE s1(1)"), naming(table), sync()],
        vec![naming("EXECUTE s1(1)"), parse(b"", "SELECT nosuch"), sync()],
        vec![naming("EXECUTE s1(1)"), query("SELECT nosuch"), sync()],
        vec![naming("EXECUTE s1(1)"), query(wrong), sync()],
        vec![naming(table), sync(), naming(wrong), sync()],
        // All are sent before the first is answered.
        vec![query(wrong), query(table), query("EXECUTE s1(1, nosuch)")],
        vec![query(table), query(wrong), naming(wrong), sync()],
    ] {
        let answers = both.compare(&[prepared(b"s1"), (0, cycle), gone()]);
        assert!(answers[1].contains("/@"), "{answers:?}");
    }
    let named = |sql: &str| vec![parse(b"n", sql), sync()];
    let answers = both.compare(&[
        prepared(b"s1"),
        (0, named(wrong)),
        (1, vec![query("BEGIN; SELECT 1")]),
        (0, vec![bind(b"n"), execute(), sync()]),
        (1, vec![query("COMMIT")]),
        (0, vec![bind(b"n"), execute(), sync()]),
    ]);
    assert!(answers[5].contains("/@"), "{answers:?}");
}

/// PostgreSQL counts characters.
#[test]
fn an_error_is_counted_in_characters_of_the_clients_encoding() {
    let Some(both) = Both::start("an_error_is_counted_in_characters") else {
        return;
    };
    for (encoding, letters) in [
        ("LATIN1", &b"\xe9\xe8"[..]),
        ("UTF8", b"\xc3\xa9\xe6\x97\xa5"),
        ("SJIS", b"\x83\\\x83\x41\xb1"),
        ("BIG5", b"\xa4\\\xa4\xa4"),
        ("GB18030", b"\x81\\\x81\x30\x81\x34"),
        ("EUC_JP", b"\xa5\xbd\x8e\xb1\x8f\xb0\xa1"),
        ("EUC_KR", b"\xb0\xa1"),
    ] {
        let name = &letters[..letters.len().min(2)];
        let sql = [
            b"/* ",
            letters,
            b" */ EXECUTE s1(1); EXECUTE \"",
            name,
            b"\"(1); SELECT '",
            letters,
            b"', nosuch",
        ]
        .concat();
        let answers = both.compare(&[
            (
                0,
                vec![query(format!("SET client_encoding = '{encoding}'"))],
            ),
            prepared(b"s1"),
            prepared(name),
            (0, vec![query(sql)]),
            (0, vec![query("DEALLOCATE ALL")]),
        ]);
        assert!(answers[3].contains("/@"), "{encoding}: {answers:?}");
    }
}
