//! Encodings in which the second byte of a character may be a backslash, a brace or an ASCII letter.

use super::{Both, Step, bind, execute, parse, query, run, sync};

/// Each with a character of which the second byte is a backslash.
const WITH_BACKSLASH: [(&str, &[u8]); 5] = [
    ("SJIS", b"\x83\\"),
    ("SHIFT_JIS_2004", b"\x83\\"),
    ("BIG5", b"\xa4\\"),
    ("GBK", b"\x81\\"),
    ("GB18030", b"\x81\\"),
];

fn in_encoding(name: &str) -> Step {
    (0, vec![query(format!("SET client_encoding = '{name}'"))])
}

/// The other client has the setting that its session begins with, and the first has its own.
fn looks() -> [Step; 3] {
    let show = || vec![query("SHOW work_mem")];
    [(1, show()), (0, show()), (1, show())]
}

#[test]
fn a_change_behind_a_letter_that_ends_in_a_backslash_is_followed() {
    let Some(both) = Both::start("a_change_behind_a_letter") else {
        return;
    };
    for (encoding, letter) in WITH_BACKSLASH {
        let constant = [b"SELECT length(E'", letter, b"'); "].concat();
        let tag = [b"SELECT length($", letter, b"$ ' $", letter, b"$); "].concat();
        for before in [&constant, &tag] {
            let sql = [before, &b"SET work_mem = '11MB'; SELECT 'x'"[..]].concat();
            let simple = vec![query(sql)];
            let mut steps = vec![in_encoding(encoding), (0, simple)];
            steps.extend(looks());
            let answers = both.compare(&steps);
            assert!(answers[1].contains("C:SET"), "{encoding}: {answers:?}");
            assert!(answers[3].contains("11MB"), "{encoding}: {answers:?}");
        }
    }
}

#[test]
fn a_prepared_change_behind_such_a_letter_is_followed() {
    let Some(both) = Both::start("a_prepared_change_behind_such_a_letter") else {
        return;
    };
    for (encoding, letter) in WITH_BACKSLASH {
        let begin = [b"SELECT E'", letter].concat();
        let sql = [
            &begin,
            &b"' || set_config('work_mem', '12MB', false) || 'x'"[..],
        ]
        .concat();
        for (name, ahead) in [(&b""[..], false), (b"s", false), (b"s", true)] {
            let prepare = parse(name, &sql);
            let mut steps = vec![in_encoding(encoding)];
            if ahead {
                steps.push((0, vec![prepare, sync()]));
                steps.push((0, run(name)));
            } else {
                steps.push((0, vec![prepare, bind(name), execute(), sync()]));
            }
            steps.extend(looks());
            let answers = both.compare(&steps);
            let own = &answers[answers.len() - 2];
            assert!(own.contains("12MB"), "{encoding}: {answers:?}");
        }
    }
}

/// How the second text reads depends on an answer that has not come when it is sent.
#[test]
fn a_text_behind_a_change_of_the_encoding_is_followed() {
    let Some(both) = Both::start("a_text_behind_a_change_of_the_encoding") else {
        return;
    };
    for (encoding, letter) in WITH_BACKSLASH {
        let sql = [
            b"SELECT length(E'",
            letter,
            b"'); SET work_mem = '13MB'; SELECT 'x'",
        ]
        .concat();
        let (_, mut ahead) = in_encoding(encoding);
        ahead.push(query(&sql));
        let mut steps = vec![(0, ahead)];
        steps.extend(looks());
        let answers = both.compare(&steps);
        assert!(answers[2].contains("13MB"), "{encoding}: {answers:?}");
        // Back to the first encoding, in the same way.
        // In Shift JIS, and where all letters have two bytes, the last is half a letter.
        let letter = "\u{3042}";
        let plain =
            format!("SELECT length(E'{letter}\\'; SET app.x = 1; --'); SET work_mem = '14MB'");
        let back = vec![query("SET client_encoding = 'UTF8'"), query(plain)];
        let mut steps = vec![in_encoding(encoding), (0, back)];
        steps.extend(looks());
        let answers = both.compare(&steps);
        assert!(answers[3].contains("14MB"), "{encoding}: {answers:?}");
    }
}

/// A name keeps its bytes: what is put in its place on the server belongs to it.
#[test]
fn statements_are_named_in_any_encoding() {
    let Some(both) = Both::start("statements_are_named_in_any_encoding") else {
        return;
    };
    // Katakana SO and A of Shift JIS: the second bytes are a backslash and an `A`.
    for name in [&b"\x83\\"[..], b"\x83\x41", b"a\x83\\b\x83\x41"] {
        for quote in [&b""[..], b"\""] {
            let command = |word: &str| query([word.as_bytes(), b" ", quote, name, quote].concat());
            let steps = [
                in_encoding("SJIS"),
                (0, vec![parse(name, "SELECT 5"), sync()]),
                (0, vec![command("EXECUTE")]),
                (0, vec![command("EXPLAIN (COSTS OFF) EXECUTE")]),
                (1, vec![query("BEGIN; SELECT 1")]),
                (0, vec![command("EXECUTE")]),
                (1, vec![query("COMMIT")]),
                (0, vec![command("DEALLOCATE")]),
                (0, run(name)),
            ];
            let answers = both.compare(&steps);
            assert!(answers[2].contains("5"), "{answers:?}");
            assert!(answers[7].contains("C:DEALLOCATE"), "{answers:?}");
        }
    }
}
