//! `sooner load tpcc` and `tpcw` before a real PostgreSQL: its data, its users, its checks, and what it says when something is wrong.

#[path = "../../postgres/tests/support/mod.rs"]
mod support;

use std::process::{Command, Output};

use serde_json::Value;
use support::{Database, said};

fn load(kit: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(["load", kit]).args(arguments);
    command.output().unwrap()
}

fn tpcc(arguments: &[&str]) -> Output {
    load("tpcc", arguments)
}

fn url_of(database: &Database) -> String {
    let folder = database.folder().display();
    format!("postgresql:///postgres?host={folder}&user=postgres")
}

/// A database with one small warehouse.
fn filled(test: &str) -> Option<(Database, String)> {
    let database = Database::start(test)?;
    let url = url_of(&database);
    let small = [
        "--warehouses",
        "1",
        "--customers",
        "30",
        "--items",
        "200",
        "--seed",
        "7",
    ];
    let output = tpcc(&[&["fill", "--url", &url], &small[..]].concat());
    assert!(output.status.success(), "{}", said(&output));
    Some((database, url))
}

/// Runs for two seconds, and gives the report.
fn measured(kit: &str, url: &str, arguments: &[&str]) -> Value {
    let always = [
        "run",
        "--url",
        url,
        "--for",
        "2",
        "--warm-up",
        "0.2",
        "--json",
    ];
    let output = load(kit, &[&always, arguments].concat());
    let printed = String::from_utf8_lossy(&output.stdout);
    // Another program on this machine may have held the generator up.
    let is_fine = output.status.success() || printed.contains("ms late");
    assert!(is_fine, "{printed}{}", said(&output));
    serde_json::from_str(&printed).unwrap()
}

fn is_clean(url: &str) -> bool {
    let output = tpcc(&["check", "--url", url]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(printed.lines().count(), 10, "{printed}");
    assert_eq!(output.status.success(), !printed.contains("WRONG"));
    output.status.success()
}

#[test]
fn the_data_is_right_before_and_after_users_of_every_model() {
    let Some((database, url)) = filled("the_data_is_right_before_and_after") else {
        return;
    };
    assert!(is_clean(&url));
    let closed = measured("tpcc", &url, &["--users", "8", "--class", "high=0.25"]);
    assert_eq!(closed["verdict"], "VALID", "{closed}");
    let n = |group: &Value| group["n"].as_u64().unwrap();
    let all = n(&closed["all"]) as f64;
    let classes = closed["classes"].as_array().unwrap();
    let of_high = n(&classes[0]) as f64 / all;
    assert!((0.15..0.35).contains(&of_high), "{closed}");
    let kinds = closed["kinds"].as_array().unwrap();
    let of_kind: Vec<f64> = kinds.iter().map(|kind| n(kind) as f64 / all).collect();
    // 45, 43, 4, 4 and 4 in a hundred.
    assert!(of_kind[0] > 0.3 && of_kind[1] > 0.3, "{of_kind:?}");
    assert!(of_kind.iter().all(|share| *share > 0.0), "{of_kind:?}");
    assert!(is_clean(&url));

    let serializable = ["--users", "6", "--isolation", "serializable"];
    let again = measured("tpcc", &url, &serializable);
    // They stand in each other's way, are tried again, and all end.
    assert!(again["all"]["retries"].as_u64().unwrap() > 0, "{again}");
    assert_eq!(again["errors"], serde_json::json!({}));
    let open = ["--model", "open", "--rate", "50", "--sessions", "20"];
    let open = measured("tpcc", &url, &open);
    assert!((60..140).contains(&n(&open["all"])), "{open}");
    let partly = [
        "--model",
        "partly-open",
        "--rate",
        "10",
        "--visit",
        "5",
        "--sessions",
        "12",
    ];
    let by_kind = [&partly[..], &["--class", "buys=new_order", "--remarks"]].concat();
    let partly = measured("tpcc", &url, &by_kind);
    assert_eq!(partly["classes"][0]["n"], partly["kinds"][0]["n"]);
    let unnamed = ["--users", "4", "--statements", "unnamed"];
    assert!(n(&measured("tpcc", &url, &unnamed)["all"]) > 0);
    assert!(is_clean(&url));

    database.ask("UPDATE warehouse SET w_ytd = w_ytd + 1");
    assert!(!is_clean(&url));
    let output = tpcc(&["check", "--url", &url, "--json"]);
    let checks: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(checks[0]["violations"], 1, "{checks}");
}

#[test]
fn a_bookstore_is_visited_and_every_order_is_paid() {
    let test = "a_bookstore_is_visited";
    let Some(database) = Database::start(test) else {
        return;
    };
    let url = url_of(&database);
    let small = ["--items", "300", "--customers", "200"];
    let output = load("tpcw", &[&["fill", "--url", &url], &small[..]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let is_clean = || {
        let output = load("tpcw", &["check", "--url", &url]);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(printed.lines().count(), 7, "{printed}{}", said(&output));
        output.status.success()
    };
    assert!(is_clean());
    for mix in ["browsing", "shopping", "ordering"] {
        let run = measured("tpcw", &url, &["--mix", mix, "--users", "8"]);
        assert_eq!(run["verdict"], "VALID", "{run}");
        let kinds = run["kinds"].as_array().unwrap().iter();
        let came = kinds.filter(|kind| kind["n"].as_u64() > Some(0)).count();
        assert!(came >= 10, "{run}");
        assert!(is_clean(), "{mix}");
    }
    database.ask("UPDATE cc_xacts SET cx_amount = cx_amount + 1 WHERE cx_o_id = 7");
    assert!(!is_clean());
}

/// What it says, in one line; nothing is printed and the exit code is 2.
fn refused(arguments: &[&str]) -> String {
    let output = tpcc(arguments);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    said
}

#[test]
fn what_cannot_be_is_one_line() {
    let Some((_database, url)) = filled("what_cannot_be_is_one_line") else {
        return;
    };
    let run = |more: &[&str]| refused(&[&["run", "--url", &url, "--for", "1"], more].concat());
    let expectations = [
        (run(&[]), "--users says how many"),
        (run(&["--model", "open"]), "--rate says how many"),
        (run(&["--users", "2", "--rate", "3"]), "--rate is for"),
        (
            run(&["--users", "2", "--class", "high=2"]),
            "a share is above 0 and at most 1",
        ),
        (
            run(&["--users", "2", "--class", "a=0.6", "--class", "b=0.6"]),
            "more than all there is",
        ),
        (run(&["--users", "2", "--class", "a=order"]), "no kind"),
        (
            run(&["--users", "2", "--class", "a=0.1", "--class", "a=0.2"]),
            "twice",
        ),
        (
            run(&["--users", "2", "--model", "open", "--rate", "1"]),
            "--users is for",
        ),
        (run(&["--users", "2", "--visit", "3"]), "--visit is for"),
        (
            run(&["--users", "2", "--sessions", "3"]),
            "--sessions is for",
        ),
        (
            refused(&["run", "--url", "here", "--users", "1", "--for", "1"]),
            "write postgresql://",
        ),
        (refused(&["fill", "--url", &url]), "there are tables called"),
        (run(&["--mix", "all"]), "unexpected argument '--mix'"),
    ];
    for (said, expected) in &expectations {
        assert!(said.contains(expected), "{said:?} instead of {expected:?}");
        assert_eq!(
            said.lines()
                .filter(|line| !line.is_empty() && !line.starts_with("For more"))
                .count(),
            1,
            "{said}"
        );
    }
}

#[test]
fn a_database_that_cannot_be_used_is_one_line_too() {
    let Some(database) = Database::start("a_database_that_cannot_be_used") else {
        return;
    };
    let url = url_of(&database);
    database.ask("CREATE DATABASE empty");
    let empty = url.replace("/postgres?", "/empty?");
    let output = tpcc(&["check", "--url", &empty]);
    assert!(!output.status.success());
    assert!(said(&output).contains("fill"), "{}", said(&output));
    database.stop("immediate");
    let output = tpcc(&["check", "--url", &url]);
    assert!(
        !output.status.success() && said(&output).lines().count() == 1,
        "{}",
        said(&output)
    );
}
