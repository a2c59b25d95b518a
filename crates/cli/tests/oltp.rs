//! `sooner load tpcc` and `tpcw` before a real PostgreSQL: its data, its users, its checks, and
//! what it says when something is wrong.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use sooner_testbed::postgres::{DATABASE_PORT, Database, said, until};

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

/// A database with a small bookstore.
fn bookstore(test: &str) -> Option<(Database, String)> {
    let database = Database::start(test)?;
    let url = url_of(&database);
    let small = ["--items", "300", "--customers", "200"];
    let output = load("tpcw", &[&["fill", "--url", &url], &small[..]].concat());
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

/// Whether `n` of `all` may well be a share of `share`: within five deviations. A busy machine
/// runs few, and few say little.
fn is_drawn(n: u64, all: u64, share: f64) -> bool {
    assert!(all > 20, "{all} transactions say nothing");
    let deviation = (all as f64 * share * (1.0 - share)).sqrt();
    (n as f64 - all as f64 * share).abs() <= 5.0 * deviation
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
    let all = n(&closed["all"]);
    let classes = closed["classes"].as_array().unwrap();
    assert!(is_drawn(n(&classes[0]), all, 0.25), "{closed}");
    let kinds = closed["kinds"].as_array().unwrap();
    assert_eq!(kinds.len(), 5, "{closed}");
    for (kind, share) in kinds.iter().zip([0.45, 0.43, 0.04, 0.04, 0.04]) {
        assert!(is_drawn(n(kind), all, share), "{share}: {closed}");
    }
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
fn autovacuum_has_nothing_to_read_again_beside_the_first_users() {
    let test = "autovacuum_has_nothing_to_read_again";
    for filled in [filled, bookstore] {
        let Some((database, _)) = filled(test) else {
            return;
        };
        let unread = database.ask(
            "SELECT relname, relpages - relallvisible FROM pg_class
            WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relallvisible < relpages",
        );
        assert_eq!(unread, "");
    }
}

#[test]
fn rows_that_are_gone_are_wrong() {
    let Some((database, url)) = filled("rows_that_are_gone_are_wrong") else {
        return;
    };
    let wrong = |sql: &str| {
        database.ask(sql);
        let output = tpcc(&["check", "--url", &url]);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let wrong = printed.lines().filter(|line| line.contains("WRONG"));
        let number = |line: &str| {
            line.split_once(':')
                .unwrap()
                .0
                .rsplit(' ')
                .next()
                .map(str::to_owned)
        };
        let numbers: Vec<String> = wrong.filter_map(number).collect();
        numbers.join(" ")
    };
    assert_eq!(
        wrong(
            "DELETE FROM orders WHERE o_d_id = 3; DELETE FROM order_line WHERE ol_d_id = 3; DELETE FROM new_order WHERE no_d_id = 3;
             UPDATE customer SET c_balance = -c_ytd_payment WHERE c_d_id = 3"
        ),
        "2"
    );
    assert_eq!(wrong("INSERT INTO new_order VALUES (1, 3, 1)"), "2 3");
    assert_eq!(wrong("DELETE FROM history"), "2 3 8 9 10");
    assert_eq!(wrong("DELETE FROM district"), "1 3 8 10");
}

/// An older order may stay behind a newer one, where two deliveries were there and the one that had
/// it was taken back.
#[test]
fn an_order_that_stays_behind_is_no_mistake() {
    let Some((database, url)) = filled("an_order_that_stays_behind") else {
        return;
    };
    database.ask(
        "DELETE FROM new_order WHERE no_d_id = 1 AND no_o_id > 22;
         UPDATE orders SET o_carrier_id = 1 WHERE o_d_id = 1 AND o_id > 22;
         UPDATE order_line SET ol_delivery_d = now() WHERE ol_d_id = 1 AND ol_o_id > 22;
         UPDATE customer SET c_balance = c_balance + (SELECT coalesce(sum(ol_amount), 0) FROM orders JOIN order_line
           ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE o_d_id = 1 AND o_c_id = c_id AND o_id > 22) WHERE c_d_id = 1",
    );
    assert!(is_clean(&url));
}

/// What a run says when its users lose some of their connections before anything is measured.
fn disturbed(database: &Database, url: &str, lost: u32, model: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(["load", "tpcc", "run", "--url", url, "--json"]);
    command.args(["--for", "1", "--warm-up", "3"]).args(model);
    let mut users = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(users.stderr.take().unwrap());
    said.read_line(&mut line).unwrap();
    assert!(line.contains("users are here"), "{line}");
    let gone = database.ask(&format!(
        "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = 'rest' LIMIT {lost}) AS chosen"
    ));
    assert_eq!(gone, lost.to_string());
    let output = users.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn users_that_are_lost_before_the_measurement_are_told() {
    let Some((database, url)) = filled("users_that_are_lost") else {
        return;
    };
    let open = ["--model", "open", "--rate", "20", "--sessions", "4"];
    let pausing = ["--users", "4", "--think", "1000000"];
    for (model, lost) in [
        (&["--users", "4"][..], 2),
        (&pausing, 2),
        (&open, 2),
        (&open, 4),
    ] {
        let report = disturbed(&database, &url, lost, model);
        assert_eq!(report["verdict"], "INVALID", "{report}");
        let reason = format!("{lost} users lost their connections");
        assert_eq!(report["verdict_reason"], reason, "{model:?}");
    }
}

#[test]
fn a_bookstore_is_visited_and_every_order_is_paid() {
    let Some((database, url)) = bookstore("a_bookstore_is_visited") else {
        return;
    };
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

#[test]
fn customers_who_came_later_or_are_missing_stop_no_bookstore() {
    let Some((database, url)) = bookstore("customers_who_came_later") else {
        return;
    };
    // Numbers of a sequence that was taken back do not come again.
    database.ask(
        "SELECT setval('customer_c_id_seq', 100000);
         INSERT INTO customer (c_uname, c_addr_id, c_discount) SELECT 'later', 1, 0 FROM generate_series(1, 2000)",
    );
    let ordering = ["--mix", "ordering", "--users", "8"];
    let run = measured("tpcw", &url, &ordering);
    assert_eq!(run["errors"], serde_json::json!({}));

    database.ask("DELETE FROM customer WHERE c_id <= 150");
    let always = ["run", "--url", &url, "--for", "2", "--json"];
    let output = load("tpcw", &[&always, &ordering[..]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(run["errors"]["02000"].as_u64() > Some(0), "{run}");
    database.ask("DELETE FROM customer");
    let output = load("tpcw", &[&always, &ordering[..]].concat());
    assert!(
        said(&output).contains("there are no customers"),
        "{}",
        said(&output)
    );
}

/// What a run says of one session that is wanted far more often than it can be had.
fn overloaded(database: &Database, url: &str, model: &str) -> Value {
    let payments = || {
        let counted = database.ask("SELECT count(*) FROM history");
        counted.parse::<u64>().unwrap()
    };
    let before = payments();
    let always = "--rate 20000 --sessions 1 --for 1 --warm-up 0 --json";
    let words = format!("run --url {url} {always} --model {model}");
    let output = tpcc(&words.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |at: &str| report.pointer(at).and_then(Value::as_u64).unwrap();
    assert!(count("/not_begun") > 0, "{report}");
    // At the end one ran, at most, and no other was begun after it.
    let running = count("/incompletes") - count("/not_begun");
    assert!(running <= 1, "{report}");
    assert_eq!(report["kinds"][1]["name"], "payment");
    let late = payments() - before - count("/kinds/1/n");
    assert!(late <= running, "{late} after the end: {report}");
    report
}

#[test]
fn more_than_can_be_done_ends_with_its_time_and_is_told() {
    let Some((database, url)) = filled("more_than_can_be_done") else {
        return;
    };
    let open = overloaded(&database, &url, "open");
    let count = |at: &str| open.pointer(at).and_then(Value::as_u64).unwrap();
    let came = count("/all/n") + count("/incompletes");
    assert!((19_000..21_000).contains(&came), "{open}");
    let reason = open["verdict_reason"].as_str().unwrap();
    // Another program on this machine may have held the generator up.
    let is_told = reason.contains("were not begun: the system was overloaded");
    assert!(is_told || reason.contains("ms late"), "{open}");
    let at_least_ms = &open["all"]["mean_response_at_least_ms"];
    assert!(at_least_ms.as_f64() > Some(0.0), "{open}");
    overloaded(&database, &url, "partly-open --visit 3 --think 0.01");
    assert!(is_clean(&url));
}

/// What a run says that Ctrl-C ends while both of its sessions wait for another transaction's lock.
fn stuck(database: &Database, url: &str, model: &str) -> Value {
    let words = format!("run --url {url} --for 1000 --warm-up 0 --json {model}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(["load", "tpcc"]).args(words.split(' '));
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = run.spawn().unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(run.stderr.take().unwrap());
    said.read_line(&mut line).unwrap();
    assert!(line.contains("users are here"), "{line}");
    // Most kinds need a district, and what needs none goes on.
    let hold = "BEGIN; LOCK TABLE district; SELECT pg_sleep(50)";
    let mut psql = database.psql(database.folder(), DATABASE_PORT, "postgres");
    let psql = psql.args(["-c", hold]).stdout(Stdio::null());
    let mut holder = psql.stderr(Stdio::null()).spawn().unwrap();
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE application_name = 'rest' AND wait_event_type = 'Lock'";
    until("both sessions wait", || database.ask(waiting) == "2");
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = run.wait_with_output().unwrap();
    database
        .ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
    holder.wait().unwrap();
    assert_eq!(output.status.code(), Some(1));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn what_ctrl_c_finds_under_way_is_incomplete() {
    let Some((database, url)) = filled("what_ctrl_c_finds_under_way") else {
        return;
    };
    let models = ["--users 2", "--model open --rate 1000 --sessions 2"];
    for (model, waits) in models.into_iter().zip([false, true]) {
        let report = stuck(&database, &url, model);
        let count = |at: &str| report[at].as_u64().unwrap();
        assert_eq!(report["verdict"], "INVALID", "{report}");
        assert_eq!(count("incompletes") - count("not_begun"), 2, "{report}");
        assert_eq!(count("not_begun") > 0, waits, "{report}");
    }
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
        (run(&[]), "--users is missing"),
        (run(&["--model", "open"]), "--rate is missing"),
        (run(&["--users", "2", "--rate", "3"]), "--rate needs"),
        (
            run(&["--users", "2", "--class", "high=2"]),
            "a share is above 0 and at most 1",
        ),
        (
            run(&["--users", "2", "--class", "a=0.6", "--class", "b=0.6"]),
            "give at most 1 together",
        ),
        (run(&["--users", "2", "--class", "a=order"]), "no kind"),
        (
            run(&["--users", "2", "--class", "a=0.1", "--class", "a=0.2"]),
            "twice",
        ),
        (
            run(&["--users", "2", "--model", "open", "--rate", "1"]),
            "--users needs",
        ),
        (run(&["--users", "2", "--visit", "3"]), "--visit needs"),
        (
            run(&["--users", "2", "--sessions", "3"]),
            "--sessions needs",
        ),
        (
            refused(&["run", "--url", "here", "--users", "1", "--for", "1"]),
            "write postgresql://",
        ),
        (refused(&["fill", "--url", &url]), "there are tables called"),
        (run(&["--mix", "all"]), "there is no flag --mix"),
    ];
    are_lines(&expectations);
}

/// Each is one line that contains what is expected.
fn are_lines(expectations: &[(String, &str)]) {
    for (said, expected) in expectations {
        assert!(said.contains(expected), "{said:?} instead of {expected:?}");
        let counts = |line: &&str| !line.is_empty() && !line.starts_with("For more");
        assert_eq!(said.lines().filter(counts).count(), 1, "{said}");
    }
}

#[test]
fn what_is_too_much_is_one_line() {
    let run = |more: &str| {
        let always = "run --url postgresql://nobody@127.0.0.1:1/none --for";
        let words = format!("{always} {more}");
        refused(&words.split(' ').collect::<Vec<_>>())
    };
    are_lines(&[
        (run("1 --model open --rate 1e-20"), "0.000001 to 1000000"),
        (run("1 --model open --rate 1e20"), "0.000001 to 1000000"),
        (run("1 --model partly-open --rate nan"), "0.000001 to"),
        (run("1 --users 2 --think 1e19"), "more than a year"),
        (run("1e19 --users 2"), "more than a year"),
        (run("1 --warm-up 1e19 --users 2"), "more than a year"),
        (run("1 --users 2 --class it's=0.1"), "letters, digits"),
        (run("1 --users 2 --class a*/=0.1"), "letters, digits"),
        (run("1 --users 2"), "127.0.0.1:1: "),
        (run("1 --users 2"), "refused"),
    ]);
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
    let said = said(&output);
    assert!(
        !output.status.success() && said.lines().count() == 1,
        "{said}"
    );
    assert!(said.contains("/.s.PGSQL."), "{said}");
}
