//! Logins that ask for what another one has asked for: the gate knows what the server reports to
//! them, and no server is asked.

use super::logins::told;
use super::{PATIENCE, Session};
use crate::support::{Database, GATE_PORT, Gate, Talk, transactions};
use std::thread;

/// As drivers send them: settings that the server does not report, or writes otherwise.
const FIRST_PACKETS: [&[(&str, &str)]; 5] = [
    // lib/pq
    &[
        ("client_encoding", "UTF8"),
        ("datestyle", "ISO, MDY"),
        ("extra_float_digits", "2"),
    ],
    // sqlx
    &[
        ("DateStyle", "ISO, MDY"),
        ("client_encoding", "UTF8"),
        ("TimeZone", "UTC"),
        ("extra_float_digits", "2"),
    ],
    // pgjdbc
    &[
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO"),
        ("TimeZone", "Europe/Rome"),
        ("extra_float_digits", "2"),
        ("application_name", "PostgreSQL JDBC Driver"),
    ],
    &[(
        "options",
        "-c statement_timeout=5000 -c search_path=pg_catalog",
    )],
    &[
        ("application_name", "caf\u{e9}"),
        ("client_encoding", "LATIN1"),
    ],
];

fn start(name: &str) -> Option<(Database, Gate)> {
    let database = Database::start(name)?;
    let config = format!("admins = [\"postgres\"]\n{}", transactions(1));
    let gate = Gate::before(&database, &config);
    Some((database, gate))
}

#[test]
fn a_login_like_an_earlier_one_is_answered_in_a_pause() {
    let Some((database, gate)) = start("a_login_like_an_earlier_one") else {
        return;
    };
    let here = |parameters: &[(&str, &str)]| told(gate.folder(), GATE_PORT, parameters);
    let there = FIRST_PACKETS.map(|parameters| told(database.folder(), 5432, parameters));
    assert_eq!(FIRST_PACKETS.map(here), there);
    gate.admin(&database, "PAUSE");
    assert_eq!(FIRST_PACKETS.map(here), there);
    // One that has another name only is like it.
    let other = [("extra_float_digits", "2"), ("application_name", "other")];
    let digits = [other[0]];
    gate.admin(&database, "RESUME");
    here(&[("extra_float_digits", "2"), ("application_name", "one")]);
    here(&digits);
    here(FIRST_PACKETS[3]);
    gate.admin(&database, "PAUSE");
    assert_eq!(here(&other), told(database.folder(), 5432, &other));
    assert_eq!(here(&digits), told(database.folder(), 5432, &digits));
    // What it has asked for it has when it is let in.
    let (mut client, _) = Session::begin(gate.folder(), GATE_PORT, FIRST_PACKETS[3]);
    let asking = thread::spawn(move || {
        let shown = client.say(&["Q:show statement_timeout"]);
        (client, shown)
    });
    thread::sleep(PATIENCE / 100);
    assert!(!asking.is_finished(), "it does not wait");
    gate.admin(&database, "RESUME");
    let (mut client, shown) = asking.join().unwrap();
    assert!(shown.contains("5s"), "{shown}");
    let shown = client.say(&["Q:show search_path"]);
    assert!(shown.contains("pg_catalog"), "{shown}");
}

#[test]
fn logins_like_an_earlier_one_open_no_session() {
    let Some((database, gate)) = start("logins_like_an_earlier_one_open_no") else {
        return;
    };
    database.ask("CREATE ROLE ann LOGIN");
    let mut holder = Talk::begin(&mut gate.psql(&database, "ann"));
    holder.ask("BEGIN");
    let sessions = || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'ann'";
        let servers = gate.admin(&database, "SHOW SERVERS");
        (database.ask(sql), servers.lines().count())
    };
    for own in FIRST_PACKETS {
        let parameters = [&[("user", "ann")][..], own].concat();
        let first = told(gate.folder(), GATE_PORT, &parameters);
        let before = sessions();
        for _ in 0..10 {
            assert_eq!(told(gate.folder(), GATE_PORT, &parameters), first);
        }
        assert_eq!(sessions(), before, "{own:?}");
    }
    holder.ask("COMMIT");
}

#[test]
fn what_a_server_reported_is_forgotten_when_its_defaults_are_others() {
    let Some((database, gate)) = start("what_a_server_reported_is_forgotten") else {
        return;
    };
    // No server reports it, so what is told is remembered.
    let digits = [("extra_float_digits", "2")];
    for order in ["MDY", "DMY", "YMD"] {
        database.ask(&format!(
            "ALTER DATABASE postgres SET DateStyle = 'SQL, {order}'"
        ));
        gate.admin(&database, "RECONNECT");
        let there = told(database.folder(), 5432, &digits);
        assert!(there.contains(&format!("DateStyle SQL, {order} ")));
        for _ in 0..2 {
            assert_eq!(told(gate.folder(), GATE_PORT, &digits), there);
        }
    }
}

#[test]
fn what_became_wrong_since_an_earlier_login_is_refused_with_the_transaction() {
    let Some((database, gate)) = start("what_became_wrong_since_an_earlier") else {
        return;
    };
    database.ask("CREATE TEXT SEARCH CONFIGURATION public.own (COPY = simple)");
    let parameters = [("options", "-c default_text_search_config=public.own")];
    let (mut client, welcome) = Session::begin(gate.folder(), GATE_PORT, &parameters);
    let shows = ["Q:show default_text_search_config"];
    assert!(client.say(&shows).contains("own"));
    // No server connection has it any more when it goes.
    gate.ask(&database, &["SELECT 1"]);
    database.ask("DROP TEXT SEARCH CONFIGURATION public.own");
    let (mut client, told) = Session::begin(gate.folder(), GATE_PORT, &parameters);
    assert_eq!(told, welcome);
    let refused = client.say(&shows);
    assert!(
        refused.starts_with("E:FATAL") && refused.contains("default_text_search_config"),
        "{refused}"
    );
    assert_eq!(gate.ask(&database, &["SELECT 2"]), "2");
}

#[test]
fn a_login_with_a_role_is_answered_by_the_server_each_time() {
    let Some((database, gate)) = start("a_login_with_a_role_is_answered") else {
        return;
    };
    database.ask("CREATE ROLE bob");
    let parameters = [("options", "-c role=bob")];
    let here = || told(gate.folder(), GATE_PORT, &parameters);
    assert!(here().contains(&"is_superuser off ".to_owned()));
    gate.ask(&database, &["SELECT 1"]);
    database.ask("ALTER ROLE bob SUPERUSER");
    assert!(here().contains(&"is_superuser on ".to_owned()));
    gate.ask(&database, &["SELECT 1"]);
    database.ask("DROP ROLE bob");
    let refused = here().concat();
    assert!(refused.contains("does not exist"), "{refused}");
}
