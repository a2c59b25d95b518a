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
    until(column, || shown(gate, database, column) == value);
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

/// pgbench of the bounded class beside pgbench of the others. Each statement of the class fails where
/// another one of it runs.
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
