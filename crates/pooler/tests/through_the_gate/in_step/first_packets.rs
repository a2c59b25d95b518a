//! First packets: options as a server process reads them, settings that only a new process takes, and
//! what the server remarks on them.

use std::path::Path;

use super::{Both, Session};
use crate::support::{GATE_PORT, said};

fn told(folder: &Path, port: u16, parameter: (&str, &str)) -> String {
    Session::begin(folder, port, &[parameter]).1
}

/// A server process of the gate's has begun already.
#[test]
fn what_only_a_new_process_takes_is_refused_by_its_name() {
    let Some(both) = Both::start("what_only_a_new_process_takes") else {
        return;
    };
    let sql =
        "SELECT name, setting FROM pg_settings WHERE context IN ('backend', 'superuser-backend')";
    let settings = both.database.ask(sql);
    assert!(settings.contains("log_connections|"), "{settings}");
    let libraries = "local_preload_libraries|nosuch\nsession_preload_libraries|nosuch";
    for (name, value) in [&*settings, libraries]
        .iter()
        .flat_map(|lines| lines.lines())
        .filter_map(|line| line.split_once('|'))
    {
        let option = format!("-c {}={value}", name.to_uppercase());
        for parameter in [(name, value), ("options", &option)] {
            let told = told(both.gate.folder(), GATE_PORT, parameter);
            let words = format!("E:FATAL/0A000/{name:?} counts only when a server process begins");
            assert!(
                told.to_lowercase().starts_with(&words.to_lowercase()),
                "{parameter:?}: {told}"
            );
        }
    }
    // No library is loaded by these.
    for parameter in [
        ("local_preload_libraries", ""),
        ("options", "-c session_preload_libraries="),
    ] {
        let told = told(both.gate.folder(), GATE_PORT, parameter);
        assert!(told.starts_with("R Z"), "{parameter:?}: {told}");
    }
}

#[test]
fn options_end_where_a_process_says_so() {
    let Some(both) = Both::start("options_end_where_a_process_says_so") else {
        return;
    };
    for (options, is_taken) in [
        ("--", true),
        ("  -- ", true),
        ("-c work_mem=5MB --", true),
        ("-c work_mem=5MB -- -c nosuch=1", false),
        ("-- x", false),
        ("-", false),
    ] {
        for (folder, port) in [
            (both.database.folder(), 5432),
            (both.gate.folder(), GATE_PORT),
        ] {
            let told = told(folder, port, ("options", options));
            assert_eq!(told.starts_with("R Z"), is_taken, "{options:?}: {told}");
        }
    }
}

/// A client hears once what the server remarks on its first packet.
#[test]
fn a_notice_about_a_first_packet_reaches_its_client() {
    let Some(both) = Both::start("a_notice_about_a_first_packet") else {
        return;
    };
    let hear = |folder: &Path, port| {
        let mut psql = both.database.psql(folder, port, "postgres");
        psql.env("PGAPPNAME", "x".repeat(70));
        said(
            &psql
                .args(["-c", "SELECT 1", "-c", "SELECT 2"])
                .output()
                .unwrap(),
        )
    };
    let straight = hear(both.database.folder(), 5432);
    assert!(straight.contains("will be truncated"), "{straight}");
    assert_eq!(hear(both.gate.folder(), GATE_PORT), straight);
    assert_eq!(hear(both.gate.folder(), GATE_PORT), straight, "again");
}

/// By `parse_bool` of PostgreSQL's `bool.c`, and the word for one database.
#[test]
fn what_is_said_of_replication_is_read_as_by_a_process() {
    let Some(both) = Both::start("what_is_said_of_replication") else {
        return;
    };
    for (value, is_wanted) in [
        ("off", Some(false)),
        ("OF", Some(false)),
        ("False", Some(false)),
        ("n", Some(false)),
        ("0", Some(false)),
        ("o", None),
        ("", None),
        ("00", None),
        ("offf", None),
        ("DATABASE", None),
        ("logical", None),
        ("tr", Some(true)),
        ("ON", Some(true)),
        ("database", Some(true)),
    ] {
        let parameter = ("replication", value);
        let straight = told(both.database.folder(), 5432, parameter);
        let through = told(both.gate.folder(), GATE_PORT, parameter);
        let is_unknown = straight.starts_with("E:FATAL/22023");
        assert_eq!(is_unknown, is_wanted.is_none(), "{value:?}: {straight}");
        match is_wanted {
            Some(true) => assert!(through.starts_with("E:FATAL/0A000"), "{value:?}: {through}"),
            Some(false) | None => assert_eq!(through, straight, "{value:?}"),
        }
    }
}
