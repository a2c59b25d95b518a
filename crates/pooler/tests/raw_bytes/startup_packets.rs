//! Startup packets and passwords of any bytes, and which of two values of a setting counts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sooner_testbed::postgres::DATABASE_PORT;
use tempfile::TempDir;

use super::{Both, Parameter, Session, message, query, text};
use crate::support::{Database, GATE_PORT, Gate, until};

#[test]
fn a_client_may_call_itself_by_any_bytes() {
    let Some(both) = Both::start("a_client_may_call_itself_by_any_bytes") else {
        return;
    };
    let show = [
        query("SHOW application_name"),
        query("SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()"),
        query("SHOW application_name"),
    ];
    for name in [
        &b"caf\xe9"[..],
        b"\xff\xfe \x01 it's a \\",
        b"caf\xc3\xa9",
        b"\x83\\",
    ] {
        let [straight, through] = both.tell(&[("application_name", name)], &show);
        assert!(straight.contains("D:"), "{straight}");
        assert_eq!(through, straight, "{}", text(name));
        let option = [b"-c application_name=", &as_word(name)[..]].concat();
        let [straight, through] = both.tell(&[("options", &option)], &show);
        assert_eq!(through, straight, "{}", text(&option));
    }
}

/// As a word of `options`.
fn as_word(value: &[u8]) -> Vec<u8> {
    let escaped = |byte: &u8| match byte {
        b' ' | b'\\' => vec![b'\\', *byte],
        byte => vec![*byte],
    };
    value.iter().flat_map(escaped).collect()
}

/// A database that keeps bytes as they are, where any text may be a setting's.
#[test]
fn a_setting_may_have_any_bytes_where_the_database_takes_them() {
    let Some(both) = Both::start("a_setting_may_have_any_bytes") else {
        return;
    };
    for (name, encoding) in [("bytes", "SQL_ASCII"), ("latin", "LATIN1")] {
        let sql = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING {encoding}");
        both.database.ask(&sql);
    }
    let show = [query("SHOW app.owner"), query("SHOW search_path")];
    for database in [&b"bytes"[..], b"latin"] {
        for parameters in [
            [("app.owner", &b"caf\xe9"[..]), ("search_path", b"caf\xe9")],
            [
                ("options", b"-c app.owner=caf\xe9"),
                ("search_path", b"\xa0x"),
            ],
            [
                ("options", b"-c search_path=caf\xe9,\\ b"),
                ("app.owner", b"x"),
            ],
        ] {
            let parameters = [&parameters[..], &[("database", database)]].concat();
            let [straight, through] = both.tell(&parameters, &show);
            assert!(!straight.contains("E:"), "{straight}");
            assert_eq!(through, straight, "{parameters:?}");
        }
    }
}

/// These decide which server connection a client gets, and the gate keeps them as UTF-8.
#[test]
fn names_of_users_and_databases_are_utf8() {
    let Some(both) = Both::start("names_of_users_and_databases_are_utf8") else {
        return;
    };
    // The database is in UTF-8 as well, and the gate sets by SQL what it is asked for.
    let [_, through] = both.tell(&[("app.owner", b"caf\xe9")], &[]);
    assert!(through.starts_with("R E:FATAL/22021/"), "{through}");
    for name in ["user", "database"] {
        let [straight, through] = both.tell(&[(name, b"caf\xe9")], &[]);
        assert!(
            straight.starts_with("E:FATAL") || straight.starts_with("R E:FATAL"),
            "{straight}"
        );
        assert!(through.starts_with("E:FATAL/08P01/"), "{through}");
        assert!(through.contains("is not UTF-8"), "{through}");
    }
}

/// The options come first, then what stands in the packet beside them, whatever the case of names.
#[test]
fn the_last_value_of_a_setting_counts() {
    let Some(both) = Both::start("the_last_value_of_a_setting_counts") else {
        return;
    };
    let cases: [(&str, &[Parameter<'_>]); 7] = [
        (
            "timezone",
            &[("timezone", b"Asia/Tokyo"), ("options", b"-c TimeZone=UTC")],
        ),
        (
            "timezone",
            &[("options", b"-c timezone=UTC"), ("TimeZone", b"Asia/Tokyo")],
        ),
        (
            "timezone",
            &[("options", b"-c TimeZone=UTC -c TIMEZONE=Asia/Tokyo")],
        ),
        (
            "work_mem",
            &[
                ("Work_Mem", b"5MB"),
                ("WORK_MEM", b"6MB"),
                ("work_mem", b"7MB"),
            ],
        ),
        (
            "work_mem",
            &[("work_mem", b"5MB"), ("options", b"--WORK-MEM=8MB")],
        ),
        ("work_mem", &[("work_mem", b"7MB"), ("WORK_MEM", b"6MB")]),
        (
            "application_name",
            &[
                ("options", b"-c APPLICATION_NAME=first"),
                ("Application_Name", b"second"),
            ],
        ),
    ];
    for (name, parameters) in cases {
        let show = [query(format!("SHOW {name}")), query("SELECT 1")];
        let [straight, through] = both.tell(parameters, &show);
        assert_eq!(through, straight, "{parameters:?}");
    }
}

/// PostgreSQL knows this setting from 16 on, and reports it.
#[test]
fn the_iterations_of_new_passwords_are_a_clients_own() {
    let Some(both) = Both::start("the_iterations_of_new_passwords") else {
        return;
    };
    let show = [query("SHOW scram_iterations"), query("SELECT 1")];
    let ways: [&[Parameter<'_>]; 3] = [
        &[("options", b"-c scram_iterations=10000")],
        &[("scram_iterations", b"5000")],
        &[],
    ];
    for parameters in ways.iter().chain(&ways) {
        let [straight, through] = both.tell(parameters, &show);
        assert_eq!(through, straight, "{parameters:?}");
    }
    let set = |value: u32| vec![query(format!("SET scram_iterations = {value}"))];
    let shows = || vec![query("SHOW scram_iterations")];
    both.compare(&[
        (0, set(7000)),
        (1, shows()),
        (0, shows()),
        (1, set(8000)),
        (0, shows()),
        (0, vec![query("RESET scram_iterations")]),
        (1, shows()),
        (0, shows()),
    ]);
}

/// What psql, or another client with a terminal that is not UTF-8, has read.
const PASSWORD: &[u8] = b"stra\xdfe";

/// How the database has this user prove who it is: the number of its first request.
fn first_request(folder: &Path, user: &str) -> Option<u8> {
    let mut session = Session::open(folder, DATABASE_PORT, &[("user", user.as_bytes())]);
    session.next().map(|(_, body)| body[3])
}

/// The answer to a password in clear text, and to a query then.
fn log_in(folder: &Path, port: u16, user: &str, password: &[u8]) -> String {
    let mut session = Session::open(folder, port, &[("user", user.as_bytes())]);
    let asked = session.next();
    assert_eq!(asked, Some((b'R', vec![0, 0, 0, 3])));
    session.send(&[message(b'p', &[password, b"\0"].concat())]);
    let told = session.hear(1);
    if told.contains("E:") {
        return told;
    }
    format!("{told} {}", session.say(&[query("SELECT current_user")]))
}

/// Two roles with this password, and a line for each as a file of users has it.
fn with_roles(database: &Database) -> String {
    let sql = "CREATE DATABASE bytes TEMPLATE template0 ENCODING SQL_ASCII";
    database.ask(sql);
    // Only such a database takes these bytes from a client.
    let bytes: &[Parameter<'_>] = &[("database", b"bytes")];
    let mut direct = Session::begin(database.folder(), DATABASE_PORT, bytes).0;
    let role = |name: &str, encryption: &str| {
        let set = format!("SET password_encryption = '{encryption}'; ");
        let role = format!("CREATE ROLE {name} LOGIN PASSWORD '");
        query([set.as_bytes(), role.as_bytes(), PASSWORD, b"'"].concat())
    };
    let made = direct.say(&[role("ann", "scram-sha-256"), role("bob", "md5")]);
    assert!(!made.contains("E:"), "{made}");
    database.ask("SELECT format('\"%s\" \"%s\"', rolname, rolpassword) FROM pg_authid WHERE rolname IN ('ann', 'bob')")
}

#[test]
fn a_password_may_have_any_bytes() {
    let Some(database) = Database::start("a_password_may_have_any_bytes") else {
        return;
    };
    let users = with_roles(&database);
    let require = |method: &str, user: &str, request: u8| {
        database.require(method, user);
        until("the rule is in force", || {
            first_request(database.folder(), user) == Some(request)
        });
    };
    for (user, method, request) in [
        ("ann", "password", 3),
        ("ann", "scram-sha-256", 10),
        ("bob", "password", 3),
        ("bob", "md5", 5),
    ] {
        let folder = TempDir::new().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.path().join("users.txt"), &users).unwrap();
        let server = format!("postgresql:///?host={}", database.folder().display());
        let gate = Gate::at(
            &server,
            "auth = \"password\"\nusers = \"users.txt\"\n",
            folder,
        );
        let wrong = [b"stra\xc3\x9fe", &b"strasse"[..], b"\xff", b"stra\xdfe\0x"];
        for password in wrong.into_iter().chain([PASSWORD]) {
            require("password", user, 3);
            let straight = log_in(database.folder(), DATABASE_PORT, user, password);
            // How the gate itself logs in.
            require(method, user, request);
            let through = log_in(gate.folder(), GATE_PORT, user, password);
            let code = |told: &str| told.split('/').nth(1).map(str::to_owned);
            assert_eq!(straight.contains("E:"), password != PASSWORD, "{straight}");
            assert_eq!(code(&through), code(&straight), "{user}: {through}");
        }
    }
}
