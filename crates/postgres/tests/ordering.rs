//! Who goes first where classes have targets or weights, and how many go in where nobody says it: psql and pgbench, a real PostgreSQL, the gate
//! between them.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

use support::{Database, Gate, Talk, printed, said, transactions};

/// Three roles, each its own class where the configuration says so, and a table of who came.
fn start(test: &str, config: &str) -> Option<(Database, Gate)> {
    let database = Database::start(test)?;
    for role in ["ann", "bob"] {
        database.ask(&format!("CREATE ROLE {role} LOGIN"));
    }
    database.ask("CREATE TABLE came (n serial, who text DEFAULT left(current_user, 1))");
    database.ask("GRANT ALL ON came, came_n_seq TO public");
    let gate = Gate::before(
        &database,
        &format!("admins = [\"postgres\"]\n{}{config}", transactions(1)),
    );
    Some((database, gate))
}

/// The order in which clients of these users go in who all wait for `hold` while somebody else has the only place; by their first letters.
fn order_of(database: &Database, gate: &Gate, users: &[&str], hold: Duration) -> String {
    let mut inside = Talk::begin(&mut gate.psql(database, "postgres"));
    let mut clients: Vec<Talk> = users
        .iter()
        .map(|user| {
            let mut client = Talk::begin(&mut gate.psql(database, user));
            client.ask("SELECT pg_sleep(0.02)");
            client
        })
        .collect();
    database.ask("TRUNCATE came");
    inside.ask("BEGIN");
    for (at, client) in clients.iter_mut().enumerate() {
        client.say("INSERT INTO came DEFAULT VALUES RETURNING pg_sleep(0.02)");
        support::until("it waits", || {
            let lists = gate.admin(database, "SHOW LISTS");
            lists.contains(&format!("waiting_clients|{}", at + 1))
        });
    }
    thread::sleep(hold);
    inside.ask("COMMIT");
    for client in &mut clients {
        client.hear();
    }
    database.ask("SELECT string_agg(who, '' ORDER BY n) FROM came")
}

const TARGETS: &str = "[[class]]\nname = \"soon\"\nuser = [\"ann\"]\ntarget = { mean = \"300ms\" }\n\
                       [[class]]\nname = \"slack\"\nuser = [\"bob\"]\ntarget = { p95 = \"1min\" }\n";

#[test]
fn who_is_due_goes_first_and_who_has_time_last() {
    let Some((database, gate)) = start("who_is_due_goes_first", TARGETS) else {
        return;
    };
    let users = ["bob", "postgres", "ann"];
    let hold = Duration::from_millis(500);
    assert_eq!(order_of(&database, &gate, &users, hold), "apb");
    let shown = gate.admin(&database, "SHOW TARGETS");
    let second = |line: &str| line.split('|').nth(1).map(str::to_owned);
    let names: Vec<_> = shown.lines().filter_map(second).collect();
    assert_eq!(names, ["soon", "slack"], "{shown}");

    // Two that exclude each other: the targets in force stay.
    gate.rewrite(|text| text.replace("target = { p95", "weight = 2\ntarget = { p95"));
    let mut psql = gate.psql(&database, "postgres");
    let refused = psql.args(["-d", "sooner", "-c", "RELOAD"]).output();
    let refused = said(&refused.unwrap());
    assert!(refused.contains("weight"), "{refused}");
    assert_eq!(order_of(&database, &gate, &users, hold), "apb");

    gate.rewrite(|text| text.replace("weight = 2\n", "").replace("1min", "1ms"));
    gate.admin(&database, "RELOAD");
    assert_eq!(order_of(&database, &gate, &users, hold), "bap");
}

#[test]
fn a_weight_is_a_part_of_the_server() {
    let classes = "[[class]]\nname = \"much\"\nuser = [\"ann\"]\nweight = 3\n\
                   [[class]]\nname = \"little\"\nuser = [\"bob\"]\nweight = 1\n";
    let Some((database, gate)) = start("a_weight_is_a_part", classes) else {
        return;
    };
    let users = ["bob", "bob", "bob", "bob", "ann", "ann", "ann", "ann"];
    let order = order_of(&database, &gate, &users, Duration::ZERO);
    let of_bob = order[..4].matches('b').count();
    assert!((1..=2).contains(&of_bob), "{order}");
    assert!(order.ends_with('b'), "{order}");
}

#[test]
fn a_limit_that_nobody_says_is_looked_for() {
    let config =
        "admins = [\"postgres\"]\n[limits]\ntransactions = \"auto\"\ntransactions_max = 8\n";
    let Some(database) = Database::start("a_limit_that_nobody_says") else {
        return;
    };
    let gate = Gate::before(&database, config);
    let limit = || {
        let gates = gate.admin(&database, "SHOW GATES");
        gates.split('|').nth(1).map(str::to_owned)
    };
    assert_eq!(gate.ask(&database, &["SELECT 1"]), "1");
    assert_eq!(limit().as_deref(), Some("8"));
    // As many at a time as there are places, however few these are: nothing may be saved.
    let script = database.folder().join("sleep.sql");
    fs::write(&script, "SELECT pg_sleep(0.01);\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).unwrap();
    let mut tried = vec!["8".to_owned()];
    thread::scope(|scope| {
        let load = scope.spawn(|| {
            let many = ["-n", "-c", "16", "-T", "30", "postgres", "-f"];
            printed(gate.program(&database, "pgbench").args(many).arg(&script))
        });
        while !load.is_finished() {
            let now = limit().unwrap();
            if tried.last() != Some(&now) {
                tried.push(now);
            }
            thread::sleep(Duration::from_millis(50));
        }
        let printed = load.join().unwrap();
        assert!(
            printed.contains("number of failed transactions: 0"),
            "{printed}"
        );
    });
    assert_eq!(tried[..2], ["8", "4"]);
    let last: u32 = tried.last().unwrap().parse().unwrap();
    assert!(last >= 7, "{tried:?}");
}
