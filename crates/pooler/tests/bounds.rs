//! What bounds a class of transactions: psql, a real PostgreSQL, the gate between them.

use std::thread;

use crate::support::{Database, Gate, Talk, printed, said, transactions, until};

/// One class for a role, which matters more than the others and is bounded so.
fn start(test: &str, bounds: &str) -> Option<(Database, Gate)> {
    let database = Database::start(test)?;
    database.ask("CREATE ROLE ann LOGIN");
    let class = format!("[[class]]\nname = \"batch\"\nuser = [\"ann\"]\npriority = 1\n{bounds}\n");
    let limits = transactions(2);
    let gate = Gate::before(
        &database,
        &format!("admins = [\"postgres\"]\n{class}{limits}"),
    );
    Some((database, gate))
}

/// A column of the class's row.
fn shown(gate: &Gate, database: &Database, column: &str) -> String {
    let mut psql = gate.psql(database, "postgres");
    let table = printed(psql.args([
        "-d",
        "sooner",
        "--no-align",
        "-P",
        "tuples_only=off",
        "-P",
        "footer=off",
        "-c",
        "SHOW CLASSES",
    ]));
    let mut lines = table.lines();
    let names = lines.next().expect("names");
    let at = names.split('|').position(|name| name == column);
    let row = lines
        .find(|line| line.starts_with("batch"))
        .expect("its row");
    let value = row.split('|').nth(at.expect(column));
    value.expect("a value").to_owned()
}

fn until_shown(gate: &Gate, database: &Database, column: &str, value: &str) {
    let mut last = String::new();
    until(column, || {
        let before = std::mem::replace(&mut last, shown(gate, database, column));
        if last != before {
            println!("{column} is {last}, and is to be {value}");
        }
        last == value
    });
}

#[test]
fn others_pass_a_class_of_which_as_many_are_inside_as_may_be() {
    let Some((database, gate)) = start("others_pass_a_class", "transactions = 1") else {
        return;
    };
    let mut first = Talk::begin(&mut gate.psql(&database, "ann"));
    first.ask("BEGIN");
    let mut second = Talk::begin(&mut gate.psql(&database, "ann"));
    second.say("SELECT 2");
    until_shown(&gate, &database, "waiting", "1");
    assert_eq!(shown(&gate, &database, "transactions_max"), "1");
    // The other place is free, and others have it.
    let mut other = gate.psql(&database, "postgres");
    assert_eq!(printed(other.args(["-c", "SELECT 3"])).trim(), "3");
    assert_eq!(shown(&gate, &database, "waiting"), "1");

    // A cap that is raised lets in who waits for it.
    gate.rewrite(|text| text.replace("transactions = 1\n", "transactions = 2\n"));
    gate.admin(&database, "RELOAD");
    assert_eq!(second.hear().trim(), "2");
    first.ask("COMMIT");
}

/// pgbench of the bounded class beside pgbench of the others. Each statement of the class fails
/// where another one of it runs.
#[test]
fn no_more_of_a_class_run_than_its_cap_while_others_run_besides() {
    let Some((database, gate)) = start("no_more_of_a_class_run", "transactions = 1") else {
        return;
    };
    let alone = "SELECT 1 / pg_try_advisory_xact_lock(7)::int, pg_sleep(0.002);\n";
    let scripts = [("ann", alone), ("postgres", "SELECT pg_sleep(0.002);\n")];
    let benches = scripts.map(|(user, script)| {
        let path = gate.folder().join(format!("{user}.sql"));
        std::fs::write(&path, script).unwrap();
        let mut pgbench = gate.program(&database, "pgbench");
        pgbench.args(["-U", user, "-n", "-c", "4", "-t", "100", "-f"]);
        pgbench.arg(path).arg("postgres");
        thread::spawn(move || pgbench.output().unwrap())
    });
    for bench in benches {
        let output = bench.join().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
}

const SLOW: &str = "SELECT pg_sleep(30)";

#[test]
fn who_runs_too_long_gives_its_place_up_and_goes_on() {
    let bounds = "transactions = 2\nlongest = \"100ms\"";
    let Some((database, gate)) = start("who_runs_too_long", bounds) else {
        return;
    };
    // Both places; and one of them does nothing at all.
    let mut slow = Talk::begin(&mut gate.psql(&database, "ann"));
    slow.say(SLOW);
    let mut idle = Talk::begin(&mut gate.psql(&database, "ann"));
    idle.ask("BEGIN");
    let mut others = ["SELECT 1", "SELECT 2"].map(|sql| {
        let mut other = Talk::begin(&mut gate.psql(&database, "postgres"));
        other.say(sql);
        other
    });
    let answers = others
        .each_mut()
        .map(|other| other.hear().trim().to_owned());
    assert_eq!(answers, ["1", "2"]);
    until_shown(&gate, &database, "overlong", "2");
    assert_eq!(shown(&gate, &database, "cancelled"), "0");
    assert_eq!(shown(&gate, &database, "inside"), "2");
    // Of its class there are as many as may be, whatever they gave up.
    let mut third = Talk::begin(&mut gate.psql(&database, "ann"));
    third.say("SELECT 3");
    until_shown(&gate, &database, "waiting", "1");
    idle.ask("COMMIT");
    assert_eq!(third.hear().trim(), "3");
    // The places are as they were when all have left.
    slow.kill();
    until("there are two places", || {
        gate.admin(&database, "SHOW GATES").contains("|2|0|0|")
    });
}

#[test]
fn a_statement_that_runs_too_long_is_cancelled_where_that_is_said() {
    let bounds = "longest = \"100ms\"\nlongest_action = \"cancel\"";
    let Some((database, gate)) = start("a_statement_that_runs_too_long", bounds) else {
        return;
    };
    let mut slow = gate.psql(&database, "ann");
    let slow = slow.args(["-v", "VERBOSITY=verbose", "-c", SLOW]).output();
    let error = said(&slow.unwrap());
    assert!(error.contains("57014"), "{error}");
    assert_eq!(shown(&gate, &database, "overlong"), "1");
    assert_eq!(shown(&gate, &database, "cancelled"), "1");
    // Others may take as long as they like, and so may short ones in a long transaction.
    let mut other = gate.psql(&database, "postgres");
    printed(other.args(["-c", "SELECT pg_sleep(0.3)"]));
    let mut long = Talk::begin(&mut gate.psql(&database, "ann"));
    long.ask("BEGIN");
    for _ in 0..4 {
        long.ask("SELECT pg_sleep(0.05)");
    }
    assert_eq!(long.ask("SELECT 5").trim(), "5");
    long.ask("COMMIT");
    assert_eq!(shown(&gate, &database, "cancelled"), "1");
}

#[test]
fn where_it_is_only_observed_none_waits_and_the_wait_is_told() {
    let bounds = "transactions = 1\nlongest = \"50ms\"\nlongest_action = \"cancel\"";
    let Some(database) = Database::start("where_it_is_only_observed") else {
        return;
    };
    database.ask("CREATE ROLE ann LOGIN");
    let class = format!("[[class]]\nname = \"batch\"\nuser = [\"ann\"]\n{bounds}\n");
    let config = format!(
        "observe = true\nadmins = [\"postgres\"]\n{class}{}",
        transactions(1)
    );
    let gate = Gate::before(&database, &config);
    printed(gate.psql(&database, "postgres").args(["-c", "SELECT 1"]));
    let mut all: Vec<Talk> = (0..3)
        .map(|_| {
            let mut talk = Talk::begin(&mut gate.psql(&database, "ann"));
            // A login goes in as well: of several at once, all but one would wait.
            talk.ask("\\echo in");
            talk
        })
        .collect();
    for talk in &mut all {
        talk.ask("BEGIN");
    }
    // All are inside at once, for longer than any of them may be.
    assert_eq!(shown(&gate, &database, "inside"), "3");
    for talk in &mut all {
        talk.ask("SELECT pg_sleep(0.1)");
        talk.ask("COMMIT");
    }
    until_shown(&gate, &database, "would_wait", "2");
    assert_eq!(shown(&gate, &database, "overlong"), "3");
    assert_eq!(shown(&gate, &database, "cancelled"), "0");
    let config = gate.admin(&database, "SHOW CONFIG");
    assert!(config.contains("observe|true|false"), "{config}");

    // And then it is held.
    gate.rewrite(|text| {
        text.replace("observe = true", "observe = false")
            .replace("50ms", "1min")
    });
    gate.admin(&database, "RELOAD");
    let [one, other] = &mut all[..2] else {
        unreachable!("there are three");
    };
    one.ask("BEGIN");
    other.say("SELECT 7");
    until_shown(&gate, &database, "waiting", "1");
    assert_eq!(shown(&gate, &database, "would_wait"), "");
    one.ask("COMMIT");
    assert_eq!(other.hear().trim(), "7");
}
