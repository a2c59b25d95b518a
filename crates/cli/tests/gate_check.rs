//! `sooner gate check` beside a gate that runs before a real PostgreSQL.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;

use serde_json::Value;
use sooner_testbed::postgres::{Database, Gate, printed, said, until};

const CLASSES: &str = "[[class]]\nname = \"high\"\npriority = 1\nuser = [\"ann\"]\ntarget = { HIGH }\n\
                       [[class]]\nname = \"low\"\npriority = 2\ntarget = { LOW }\n";

const TWO_AT_A_TIME: &str = "[limits]\ntransactions = 2\n";

fn gate_before(database: &Database, config: &str) -> Gate {
    Gate::start(Path::new(env!("CARGO_BIN_EXE_sooner")), database, config)
}

/// Checks a configuration with these targets against a gate, while there is load.
fn check(gate: &Gate, high: &str, low: &str, more: &[&str]) -> Output {
    let file = gate.folder().join("wanted.toml");
    let classes = CLASSES.replace("HIGH", high).replace("LOW", low);
    let classes = classes.replace("target = {  }\n", "");
    let database = "auth = \"trust\"\n[[database]]\nname = \"*\"\nserver = \"postgresql://db\"\n";
    fs::write(&file, format!("{database}{classes}")).unwrap();
    let at = gate.folder().join(".s.PGSQL.6432");
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(["gate", "check"]).arg(&file);
    command.arg("--gate").arg(at).args(["--user", "postgres"]);
    command.args(more).output().unwrap()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(output)))
}

fn says(output: &Output, words: &str) {
    assert!(said(output).contains(words), "{}", said(output));
}

/// What each order would have given jobs of 10 ms, two at a time, of which twelve are here.
fn orders_are_told(report: &Value) {
    assert_eq!(report["order"], "fifo");
    assert!(report["played_transactions"].as_u64() > Some(0), "{report}");
    let names = ["fifo", "shortest", "boost", "hrrn", "nudge", "perfect"];
    for (at, name) in names.iter().enumerate() {
        let order = &report["orders"][at];
        assert_eq!(&order["order"], name);
        assert!(order["mean_ms"].as_f64() >= Some(10.0), "{report}");
    }
    // All take the same, so there is no better order.
    let mean_ms = |at: usize| report["orders"][at]["mean_ms"].as_f64();
    assert!(mean_ms(5) <= mean_ms(0).map(|fifo| 1.1 * fifo), "{report}");
}

#[test]
fn targets_are_held_against_what_a_gate_sees() {
    let Some(database) = Database::start("targets_are_held_against") else {
        return;
    };
    database.ask("CREATE ROLE ann LOGIN");
    let plain = CLASSES
        .replace("target = { HIGH }\n", "")
        .replace("target = { LOW }\n", "");
    let gate = gate_before(
        &database,
        &format!("admins = [\"postgres\"]\n{}{plain}", TWO_AT_A_TIME),
    );
    let script = database.folder().join("sleep.sql");
    fs::write(&script, "SELECT pg_sleep(0.01);\n").unwrap();
    database.give(&script);
    let nothing = check(&gate, "mean = \"1s\"", "", &["--observe", "1s"]);
    says(&nothing, "no transaction arrived within 1 s");
    let no_target = check(&gate, "", "", &["--observe", "1s"]);
    assert_eq!(no_target.status.code(), Some(2));
    says(
        &no_target,
        "wanted.toml: class.target: no class has a target",
    );
    thread::scope(|scope| {
        for user in ["ann", "postgres"] {
            let (gate, database, script) = (&gate, &database, &script);
            let many = ["-n", "-c", "6", "-T", "14", "-U", user, "postgres", "-f"];
            scope.spawn(move || printed(gate.program(database, "pgbench").args(many).arg(script)));
        }
        until("both are here", || {
            let shown = gate.admin(&database, "SHOW CLASSES");
            shown.contains("high|1|6|") && shown.contains("low|2|6|")
        });
        let observe = ["--observe", "2", "--json"];
        // Six of each, two at a time, 10 ms each: 60 ms in the mean.
        let loose = check(&gate, "mean = \"200ms\"", "p95 = \"900ms\"", &observe);
        assert_eq!(report(&loose)["verdict"], "FEASIBLE", "{}", report(&loose));
        assert!(loose.status.success());
        let loose = report(&loose);
        orders_are_told(&loose);
        let tight = check(&gate, "mean = \"15ms\"", "mean = \"16ms\"", &observe);
        let tight_report = report(&tight);
        assert_eq!(
            (tight.status.code(), &tight_report["verdict"]),
            (Some(1), &"NOT FEASIBLE".into())
        );
        let factor = tight_report["relax_all_by"].as_f64().unwrap();
        assert!(factor > 2.0, "{tight_report}");
        assert!(tight_report["classes"][1]["relaxed_mean_ms"].as_f64() > Some(16.0));
        let below = check(&gate, "mean = \"1ms\"", "", &["--observe", "1"]);
        let words = String::from_utf8_lossy(&below.stdout).into_owned();
        assert!(
            words.contains("wanted.toml:9: class.target.mean: high: 1.00 ms cannot be met: a job"),
            "{words}"
        );
        assert!(
            words.contains("what each order would have given the last"),
            "{words}"
        );
        assert_eq!(below.status.code(), Some(1));
    });
    gate.rewrite(|text| text.replace("name = \"low\"", "name = \"other\""));
    gate.admin(&database, "RELOAD");
    let others = check(&gate, "mean = \"1s\"", "", &["--observe", "1"]);
    assert_eq!(others.status.code(), Some(2));
    says(&others, "has other classes (high, other, )");
}

#[test]
fn a_configuration_alone_is_looked_at() {
    let Some(database) = Database::start("a_configuration_alone") else {
        return;
    };
    let gate = gate_before(&database, "");
    let right = check(&gate, "mean = \"1s\"", "", &[]);
    assert!(right.status.success(), "{}", said(&right));
    let wrong = check(&gate, "mean = \"1 parsec\"", "", &[]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        said(&wrong)
            .contains("wanted.toml:9: class.target.mean: `1 parsec` is not a length of time"),
        "{}",
        said(&wrong)
    );
}

#[test]
fn classes_of_several_servers_are_not_added_up() {
    let Some(database) = Database::start("classes_of_several_servers") else {
        return;
    };
    // The same database by another address, which is another server to the gate.
    let again = database.folder().join("again");
    symlink(database.folder(), &again).unwrap();
    let other = format!(
        "[[database]]\nname = \"again\"\nname_there = \"postgres\"\nserver = \"postgresql:///?host={}\"\n",
        again.display()
    );
    let gate = gate_before(
        &database,
        &format!("admins = [\"postgres\"]\n{}{other}", TWO_AT_A_TIME),
    );
    for name in ["postgres", "again"] {
        let mut psql = gate.psql(&database, "postgres");
        assert_eq!(printed(psql.args(["-d", name, "-c", "SELECT 1"])), "1");
    }
    let refused = check(&gate, "mean = \"1s\"", "", &["--observe", "1s"]);
    assert_eq!(refused.status.code(), Some(2));
    let words = said(&refused);
    assert!(
        words.contains("the running gate has 2 servers (") && words.lines().count() == 1,
        "{words}"
    );
}

#[test]
fn a_gate_is_watched_for_whole_seconds() {
    for time in ["500ms", "0", "1 parsec", "soon"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
        command.args(["gate", "check", "gate.toml", "--observe", time]);
        let output = command.output().unwrap();
        let words = said(&output);
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(
            words.contains("--observe: ") && words.lines().count() == 1,
            "{words}"
        );
    }
}

#[test]
fn a_check_looks_at_the_servers_and_says_what_they_lack() {
    let Some(database) = Database::start("a_check_looks_at_the_servers") else {
        return;
    };
    let check = |limit: &str| {
        let backend = format!("postgresql:///?host={}", database.folder().display());
        let flags = ["--auth", "trust", "--limit", limit, "--check"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
        command.args(["gate", "--backend", &backend]).args(flags);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        said(&output)
    };
    assert_eq!(check("20"), "");
    let told = check("500");
    let words = "allows 47 connections (max_connections 50, of which 3 are reserved), and limits.transactions is 500";
    assert!(told.contains(words) && told.lines().count() == 1, "{told}");
    database.stop("fast");
    let told = check("20");
    assert!(
        told.contains("does not answer") && told.lines().count() == 1,
        "{told}"
    );
}
