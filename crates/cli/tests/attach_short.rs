//! `sooner attach postgres` where the system or the server has nothing left for it, or does not
//! show it the server: one clear line.

use std::process::{Command, Output};

use rustix::process::geteuid;
use sooner_testbed::postgres::{Database, said};
use sooner_testbed::skip;

const SOONER: &str = env!("CARGO_BIN_EXE_sooner");

fn output(words: &[&str]) -> Output {
    Command::new(words[0]).args(&words[1..]).output().unwrap()
}

fn is_root(test: &str) -> bool {
    if !geteuid().is_root() {
        skip(test, "needs root");
    }
    geteuid().is_root()
}

#[test]
fn without_a_thread_left_it_says_so() {
    let test = "without_a_thread_left_it_says_so";
    if !is_root(test) {
        return;
    }
    // Root has as many as it likes; this is a user of no other process.
    let user = ["setpriv", "--reuid", "54321", "--clear-groups"];
    if !output(&[&user[..], &[SOONER, "--version"]].concat())
        .status
        .success()
    {
        skip(test, "another user cannot run the program where it is");
        return;
    }
    let end = [
        "prlimit",
        "--nproc=1",
        SOONER,
        "attach",
        "postgres",
        "--explain",
    ];
    let found = output(&[&user[..], &end].concat());
    assert_eq!(found.status.code(), Some(2));
    assert!(
        said(&found).contains("Resource temporarily unavailable"),
        "{}",
        said(&found)
    );
}

#[test]
fn a_server_in_a_pid_namespace_that_is_not_seen_is_named() {
    let test = "a_server_in_a_pid_namespace_that_is_not_seen_is_named";
    let Some(database) = Database::start(test).filter(|_| is_root(test)) else {
        return;
    };
    let data = database.folder().join("data").display().to_string();
    let inside = [
        "unshare",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
        SOONER,
    ];
    let end = [
        "attach",
        "postgres",
        "--explain",
        "--for",
        "1s",
        "--data",
        &data,
    ];
    let found = output(&[&inside[..], &end].concat());
    let told = said(&found);
    assert_eq!(found.status.code(), Some(2), "{told}");
    assert!(
        told.contains("PID namespace that is not visible") && told.lines().count() == 1,
        "{told}"
    );
}

#[test]
fn another_role_is_advised_only_where_it_could_help() {
    let test = "another_role_is_advised_only_where_it_could_help";
    let Some(database) = Database::start(test) else {
        return;
    };
    database.ask("CREATE ROLE full LOGIN IN ROLE pg_monitor CONNECTION LIMIT 0");
    let data = database.folder().join("data").display().to_string();
    for (role, words, is_advised) in [
        ("full", "too many connections for role", false),
        ("missing", "role \"missing\" does not exist", true),
    ] {
        let end = [
            "attach",
            "postgres",
            "--explain",
            "--data",
            &data,
            "--user",
            role,
        ];
        let found = output(&[&[SOONER], &end[..]].concat());
        let told = said(&found);
        assert_eq!(found.status.code(), Some(2), "{told}");
        assert!(told.contains(words) && told.lines().count() == 1, "{told}");
        assert_eq!(told.contains("PGPASSWORD"), is_advised, "{told}");
    }
}
