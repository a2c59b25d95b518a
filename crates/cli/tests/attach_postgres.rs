//! `sooner attach postgres` beside a real PostgreSQL.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use sooner_testbed::postgres::{DATABASE_PORT, Database, Talk, printed, said};

fn attach(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(["attach", "postgres"]).args(arguments);
    command.env_remove("PGUSER").output().unwrap()
}

fn data(database: &Database) -> String {
    database.folder().join("data").display().to_string()
}

/// What `--explain --json` finds with these flags besides.
fn explained(database: &Database, more: &[&str]) -> Value {
    let flags = ["--explain", "--json", "--cost", "10", "--data"];
    let folder = data(database);
    let output = attach(&[&flags, &[folder.as_str()][..], more].concat());
    let found = serde_json::from_slice(&output.stdout);
    found.unwrap_or_else(|_| panic!("{}", said(&output)))
}

fn talk(database: &Database, name: &str) -> Talk {
    let mut psql = database.psql(database.folder(), DATABASE_PORT, "postgres");
    Talk::begin(psql.env("PGAPPNAME", name))
}

fn at_a_time(row: &Value, part: &str) -> f64 {
    let parts = row["parts"].as_array().unwrap();
    let own = parts.iter().find(|own| own["part"] == part);
    own.map_or(0.0, |own| own["at_a_time"].as_f64().unwrap())
}

#[test]
fn sessions_that_wait_are_told_apart_by_what_they_wait_for() {
    let test = "sessions_that_wait_are_told_apart_by_what_they_wait_for";
    let Some(database) = Database::start(test) else {
        return;
    };
    database.ask("CREATE TABLE t AS SELECT generate_series(1, 3) id, 0 v");
    let mut holder = talk(&database, "holder");
    holder.ask("BEGIN");
    holder.ask("LOCK TABLE t IN ROW SHARE MODE; SELECT pg_advisory_lock(7); UPDATE t SET v = 1 WHERE id = 1");
    let mut waiting: Vec<Talk> = [
        "UPDATE t SET v = 2 WHERE id = 1",
        "UPDATE t SET v = 3 WHERE id = 1",
        "SELECT pg_advisory_lock(7)",
        "LOCK TABLE t IN EXCLUSIVE MODE",
        "SELECT pg_sleep(20)",
    ]
    .iter()
    .map(|sql| {
        let mut talk = talk(&database, "waiter");
        talk.ask("BEGIN");
        talk.say(sql);
        talk
    })
    .collect();
    let found = explained(&database, &["--for", "2s"]);
    for (part, expected) in [
        ("row_locks", 2.0),
        ("advisory_locks", 1.0),
        ("table_locks", 1.0),
        ("other", 1.0),
        ("client", 1.0),
        ("running", 0.0),
    ] {
        let seen = at_a_time(&found["all"], part);
        assert!((seen - expected).abs() < 0.1, "{part}: {seen} in {found}");
    }
    let active = &found["by_active"][0];
    assert_eq!((&active["from"], &active["to"]), (&5.into(), &8.into()));
    // In the words of tables as well.
    let output = attach(&["--explain", "--for", "1s", "--data", &data(&database)]);
    let text = String::from_utf8(output.stdout).unwrap();
    for words in ["advisory locks", "Lock:tuple", "Timeout:PgSleep", "5 to 8"] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    for talk in waiting.drain(..).chain([holder]) {
        talk.kill();
    }
}

/// pgbench with so many clients that call themselves `name` and repeat a statement for 13 s.
fn bench(database: &Database, (name, clients, sql): (&str, &str, &str)) -> Child {
    let script = database.folder().join(name);
    fs::write(&script, sql).unwrap();
    let mut pgbench = database.program("pgbench");
    pgbench.arg("-h").arg(database.folder());
    pgbench.args(["-U", "postgres", "-n", "-T", "13", "-c", clients, "-f"]);
    pgbench.arg(script).arg("postgres");
    let pgbench = pgbench.env("PGAPPNAME", name).stdout(Stdio::piped());
    pgbench.spawn().unwrap()
}

/// The number behind these words.
fn figure(text: &str, behind: &str) -> f64 {
    let rest = text.split_once(behind).unwrap().1;
    let word = rest.split_ascii_whitespace().next().unwrap();
    word.parse().unwrap()
}

/// A row's figures beside those that pgbench prints.
fn compare(row: &Value, printed: &str) {
    for (key, behind) in [("per_sec", "tps = "), ("mean_ms", "latency average = ")] {
        let (seen, counted) = (row[key].as_f64().unwrap(), figure(printed, behind));
        assert!(
            (seen / counted - 1.0).abs() < 0.3,
            "{key}: {seen} of {counted} in {row}"
        );
    }
}

#[test]
fn classes_and_kinds_have_the_figures_that_pgbench_has() {
    let test = "classes_and_kinds_have_the_figures_that_pgbench_has";
    let Some(database) = Database::start(test) else {
        return;
    };
    // The server counts a transaction at once that has read a table.
    database.ask("CREATE TABLE ticks AS SELECT 1 AS one");
    let classes = database.folder().join("classes.toml");
    fs::write(
        &classes,
        "[[class]]\nname = \"gold\"\npriority = 1\napplication_name = [\"till\"]\n\
         [[class]]\nname = \"rest\"\npriority = 2\n",
    )
    .unwrap();
    let scripts = [
        (
            "till",
            "2",
            "SELECT pg_sleep(0.02) FROM ticks /*kind='tick'*/",
        ),
        (
            "report",
            "1",
            "SELECT pg_sleep(0.05) FROM ticks /*kind='long'*/",
        ),
    ];
    let running = scripts.map(|script| bench(&database, script));
    let page = database.folder().join("page.html");
    let page_flag = page.display().to_string();
    // Sessions add what they have done to the server's count within a second: a tenth of this.
    let found = explained(
        &database,
        &[
            "--for",
            "10s",
            "--config",
            &classes.display().to_string(),
            "--html",
            &page_flag,
        ],
    );
    for (at, (pgbench, (name, kind))) in running
        .into_iter()
        .zip([("gold", "tick"), ("rest", "long")])
        .enumerate()
    {
        let text = String::from_utf8(pgbench.wait_with_output().unwrap().stdout).unwrap();
        let class = &found["classes"][at];
        assert_eq!(
            (&class["name"], &class["kinds"][0]["name"]),
            (&name.into(), &kind.into())
        );
        for row in [class, &class["kinds"][0]] {
            compare(row, &text);
        }
    }
    assert_eq!(found["advice"][0]["class"], "gold");
    assert_eq!(
        found["advice"][0]["knob"],
        Value::Null,
        "it waits for no other"
    );
    assert!(found["cost"]["share"].as_f64().unwrap() < 0.2);
    assert!(
        fs::read_to_string(page)
            .unwrap()
            .contains("nothing to gain inside")
    );
}

#[test]
fn what_cannot_be_looked_into_is_one_line() {
    let test = "what_cannot_be_looked_into_is_one_line";
    let (Some(database), Some(_other)) = (Database::start(test), Database::start(test)) else {
        return;
    };
    database.ask("CREATE ROLE plain LOGIN");
    let folder = data(&database);
    let classes = database.folder().join("wrong.toml");
    let wrong = |text: &str| -> PathBuf {
        fs::write(&classes, text).unwrap();
        classes.clone()
    };
    let by_session = wrong("[[class]]\nname = \"a\"\nsession = [\"x\"]\n")
        .display()
        .to_string();
    for (flags, words) in [
        (vec!["--data", "/nowhere"], "/nowhere/postmaster.pid"),
        (vec!["--pid", "1"], "process 1 is not a PostgreSQL server"),
        (vec![], "choose one with --pid or --data"),
        (vec!["--url", "postgres//x"], "write postgresql://"),
        (
            vec!["--data", &folder, "--user", "plain"],
            "GRANT pg_monitor TO \"plain\"",
        ),
        (
            vec!["--data", &folder, "--user", "nobody_here"],
            "role \"nobody_here\" does not exist",
        ),
        (
            vec!["--data", &folder, "--cost", "0"],
            "--cost 0 is out of range",
        ),
        (
            vec!["--data", &folder, "--config", &by_session],
            "wrong.toml:2: class.session",
        ),
        (
            vec!["--url", "postgresql:///x?host=/nowhere"],
            "cannot connect to /nowhere/.s.PGSQL.5432",
        ),
    ] {
        let output = attach(&[&["--explain", "--for", "1s"], &flags[..]].concat());
        let told = said(&output);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {told}");
        assert!(
            told.contains(words) && told.lines().count() == 1,
            "{flags:?}: {told}"
        );
    }
    printed(
        database
            .psql(database.folder(), DATABASE_PORT, "postgres")
            .args(["-c", "GRANT pg_monitor TO plain"]),
    );
    let output = attach(&[
        "--explain",
        "--for",
        "1s",
        "--data",
        &folder,
        "--user",
        "plain",
    ]);
    assert_eq!(
        output.status.code(),
        Some(1),
        "nothing ran: {}",
        said(&output)
    );
}
