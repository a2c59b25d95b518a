//! What an operator does with a gate that runs, and what clients notice of it: psql, a real
//! PostgreSQL, the gate between them.

mod guesses;
mod pauses;
mod pgbouncer;
mod reloads;
mod stopping;
mod strangers;

use std::thread;
use std::time::Duration;

use crate::support::{Database, Gate, Talk, printed, said, transactions, until};

const ADMINS: &str = "admins = [\"postgres\"]\nwatchers = [\"bob\"]\n";

fn start(test: &str) -> Option<(Database, Gate)> {
    start_with(test, &transactions(4))
}

fn start_with(test: &str, config: &str) -> Option<(Database, Gate)> {
    let database = Database::start(test)?;
    database.ask("CREATE ROLE bob LOGIN");
    database.ask("CREATE ROLE ann LOGIN");
    let gate = Gate::before(&database, &format!("{ADMINS}{config}"));
    Some((database, gate))
}

/// What psql says of a command that fails, as a user.
fn fails(gate: &Gate, database: &Database, user: &str, name: &str, sql: &str) -> String {
    let mut psql = gate.psql(database, user);
    let output = psql.args(["-d", name, "-c", sql]).output().unwrap();
    assert!(!output.status.success(), "{sql}");
    said(&output)
}

#[test]
fn every_table_can_be_shown_and_watchers_may_only_look() {
    let Some((database, gate)) = start("every_table_can_be_shown") else {
        return;
    };
    gate.ask(&database, &["SELECT 1", "SELECT 2"]);
    let help = gate.admin(&database, "SHOW HELP");
    let names: Vec<&str> = help
        .lines()
        .filter_map(|line| line.split('|').next())
        .collect();
    assert!(names.len() >= 19, "{help}");
    for name in names {
        let mut psql = gate.psql(&database, "bob");
        let shown = printed(
            psql.args(["-d", "pgbouncer", "-P", "tuples_only=off"])
                .args(["-c", &format!("SHOW {name}")]),
        );
        assert!(shown.lines().count() >= 2, "{name}: {shown}");
    }
    let stats = gate.admin(&database, "SHOW STATS");
    let fields: Vec<&str> = stats.split('|').collect();
    assert_eq!(
        (fields[0], fields[2], fields[3]),
        ("postgres", "2", "2"),
        "{stats}"
    );
    assert!(fails(&gate, &database, "bob", "sooner", "PAUSE").contains("watchers may only SHOW"));
    assert!(fails(&gate, &database, "ann", "sooner", "SHOW STATS").contains("may not use"));
    let nonsense = fails(&gate, &database, "postgres", "sooner", "SELECT 1");
    assert!(nonsense.contains("invalid command"), "{nonsense}");
    let unknown = fails(&gate, &database, "postgres", "sooner", "SHOW NONSENSE");
    assert!(
        unknown.contains("SHOW HELP lists what can be shown"),
        "{unknown}"
    );
}

#[test]
fn a_pause_lets_transactions_end_and_nobody_is_dropped() {
    let Some((database, gate)) = start("a_pause_lets_transactions_end") else {
        return;
    };
    let mut inside = Talk::begin(&mut gate.psql(&database, "postgres"));
    inside.ask("BEGIN; SELECT 1");
    thread::scope(|scope| {
        let pause = scope.spawn(|| gate.admin(&database, "PAUSE"));
        until("it is paused", || {
            gate.admin(&database, "SHOW STATE").contains("paused|yes")
        });
        assert!(!pause.is_finished());
        let waiting = scope.spawn(|| gate.ask(&database, &["SELECT 'waited'"]));
        until("somebody waits", || {
            gate.admin(&database, "SHOW LISTS")
                .contains("waiting_clients|1")
        });
        assert_eq!(inside.ask("SELECT 2; COMMIT"), "2\nCOMMIT");
        pause.join().unwrap();
        // The reason for a pause: the server is replaced, and no client notices.
        database.stop("fast");
        database.restart();
        thread::sleep(Duration::from_millis(100));
        assert!(!waiting.is_finished());
        gate.admin(&database, "RESUME");
        assert_eq!(waiting.join().unwrap(), "waited");
    });
    assert_eq!(inside.ask("SELECT 3"), "3");
}

#[test]
fn server_connections_are_replaced_when_somebody_says_so() {
    let Some((database, gate)) = start_with("server_connections_are_replaced", &transactions(1))
    else {
        return;
    };
    let mut client = Talk::begin(&mut gate.psql(&database, "postgres"));
    let pid = "SELECT pg_backend_pid()";
    let first = client.ask(pid);
    assert_eq!(client.ask(pid), first);
    gate.admin(&database, "RECONNECT");
    let second = client.ask(pid);
    assert_ne!(second, first);
    client.ask("BEGIN");
    gate.admin(&database, "RECONNECT postgres");
    assert_eq!(client.ask(pid), second);
    client.ask("COMMIT");
    assert_ne!(client.ask(pid), second);
}

#[test]
fn clients_are_sent_away_or_ended_when_somebody_says_so() {
    let Some((database, gate)) = start("clients_are_sent_away_or_ended") else {
        return;
    };
    gate.admin(&database, "DISABLE postgres");
    let away = fails(&gate, &database, "ann", "postgres", "SELECT 1");
    assert!(away.contains("takes no clients"), "{away}");
    gate.admin(&database, "ENABLE postgres");
    let mut ann = gate.psql(&database, "ann");
    let mut sleeper = ann.args(["-c", "SELECT pg_sleep(50)"]);
    sleeper = sleeper.stderr(std::process::Stdio::piped());
    let sleeper = sleeper.spawn().unwrap();
    let clients = || gate.admin(&database, "SHOW CLIENTS");
    until("ann works", || clients().contains("C|ann|postgres|active"));
    let all = clients();
    let line = all.lines().find(|line| line.starts_with("C|ann")).unwrap();
    let number = line.split('|').nth(13).unwrap();
    gate.admin(&database, &format!("KILL_CLIENT {number}"));
    let output = sleeper.wait_with_output().unwrap();
    assert!(
        said(&output).contains("terminating connection"),
        "{}",
        said(&output)
    );
    let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(50)' AND state = 'active'";
    until("what it ran has ended", || database.ask(sleeping) == "0");
}

#[test]
fn another_configuration_takes_effect_and_a_wrong_one_none() {
    let Some((database, gate)) = start_with("another_configuration", &transactions(1)) else {
        return;
    };
    let mut inside = Talk::begin(&mut gate.psql(&database, "postgres"));
    inside.ask("BEGIN");
    let limit = || {
        gate.admin(&database, "SHOW GATES")
            .split('|')
            .nth(1)
            .map(str::to_owned)
    };
    assert_eq!(limit().as_deref(), Some("1"));
    gate.rewrite(|text| text.replace("transactions = 1", "transactions = many"));
    let wrong = fails(&gate, &database, "postgres", "sooner", "RELOAD");
    assert!(
        wrong.contains("syntax") || wrong.contains("transactions"),
        "{wrong}"
    );
    assert_eq!(limit().as_deref(), Some("1"));
    gate.rewrite(|text| text.replace("transactions = many", "transactions = 2"));
    gate.admin(&database, "RELOAD");
    assert_eq!(limit().as_deref(), Some("2"));
    assert_eq!(gate.ask(&database, &["SELECT 'beside'"]), "beside");
    // The same name, somewhere else: who is here is not dropped, and goes there with its next
    // transaction.
    gate.rewrite(|text| text.replace("server = ", "name_there = \"template1\"\nserver = "));
    gate.admin(&database, "RELOAD");
    assert_eq!(inside.ask("SELECT current_database()"), "postgres");
    inside.ask("COMMIT");
    assert_eq!(inside.ask("SELECT current_database()"), "template1");
}

#[test]
fn a_wait_can_be_bounded_and_the_line_is_kept() {
    let config = "[limits]\ntransactions = 1\nquery_wait_seconds = 1\n";
    let Some((database, gate)) = start_with("a_wait_can_be_bounded", config) else {
        return;
    };
    let mut inside = Talk::begin(&mut gate.psql(&database, "postgres"));
    inside.ask("BEGIN");
    let waited = fails(&gate, &database, "ann", "postgres", "SELECT 1");
    assert!(waited.contains("waited 1 s for a turn"), "{waited}");
    inside.ask("COMMIT");
    assert_eq!(gate.ask(&database, &["SELECT 4"]), "4");
}

#[test]
fn users_and_databases_have_bounds_of_their_own() {
    let config =
        "[limits]\ntransactions = 8\n[[user]]\nname = \"ann\"\ntransactions = 1\nclients = 2\n";
    let Some((database, gate)) = start_with("users_and_databases_have_bounds", config) else {
        return;
    };
    let mut first = Talk::begin(&mut gate.psql(&database, "ann"));
    first.ask("BEGIN");
    // Others are not held up by it.
    assert_eq!(gate.ask(&database, &["SELECT 1"]), "1");
    let mut psql = gate.psql(&database, "ann");
    let mut second = psql.args(["-c", "SELECT 'second'"]);
    second = second.stdout(std::process::Stdio::piped());
    let second = second.spawn().unwrap();
    until("ann waits", || {
        gate.admin(&database, "SHOW POOLS")
            .contains("postgres|ann|1|1|")
    });
    let third = fails(&gate, &database, "ann", "postgres", "SELECT 3");
    assert!(
        third.contains("2 clients of user \"ann\" are connected already"),
        "{third}"
    );
    first.ask("COMMIT");
    let output = second.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "second");
}

#[test]
fn a_database_that_gets_another_bound_counts_who_is_inside() {
    let test = "a_database_that_gets_another_bound";
    let Some((database, gate)) = start_with(test, &transactions(8)) else {
        return;
    };
    let bounded = |transactions: u32| {
        gate.rewrite(|text| {
            let plain = text.replace("[[database]]\ntransactions = 2\n", "[[database]]\n");
            let bounded = format!("[[database]]\ntransactions = {transactions}\n");
            plain.replace("[[database]]\n", &bounded)
        });
        gate.admin(&database, "RELOAD");
    };
    bounded(2);
    let mut inside = [0, 1].map(|_| {
        let mut talk = Talk::begin(&mut gate.psql(&database, "ann"));
        talk.ask("BEGIN");
        talk
    });
    bounded(1);
    let mut third = Talk::begin(&mut gate.psql(&database, "ann"));
    third.say("SELECT 3");
    let waits = || {
        let pools = gate.admin(&database, "SHOW POOLS");
        pools.contains("postgres|ann|2|1|") || pools.contains("postgres|ann|1|1|")
    };
    until("the third waits", waits);
    inside[0].ask("COMMIT");
    assert!(waits(), "one inside is as many as may be");
    inside[1].ask("COMMIT");
    assert_eq!(third.hear().trim(), "3");
}

#[test]
fn classes_decide_who_goes_first() {
    let classes = "[[class]]\nname = \"high\"\npriority = 1\nuser = [\"ann\"]\n\
                   [[class]]\nname = \"report\"\npriority = 2\napplication_name = [\"report\"]\n";
    let config = format!("{}{classes}", transactions(1));
    let Some((database, gate)) = start_with("classes_decide_who_goes_first", &config) else {
        return;
    };
    database.ask("CREATE TABLE came (n serial, who text)");
    database.ask("GRANT ALL ON came, came_n_seq TO public");
    let mut inside = Talk::begin(&mut gate.psql(&database, "postgres"));
    // So that no client waits for the parameters of a first connection.
    for user in ["bob", "ann"] {
        let mut psql = gate.psql(&database, user);
        printed(psql.args(["-c", "SELECT 1"]));
    }
    let names = [("bob", ""), ("bob", "report"), ("ann", "")];
    let mut clients: Vec<Talk> = Vec::new();
    for (user, name) in names {
        let mut psql = gate.psql(&database, user);
        let mut talk = Talk::begin(psql.env("PGAPPNAME", name));
        talk.ask("SELECT 1");
        clients.push(talk);
    }
    inside.ask("BEGIN");
    for (at, client) in clients.iter_mut().enumerate() {
        let who = format!("{}{}", names[at].0, names[at].1);
        client.say(&format!("INSERT INTO came (who) VALUES ('{who}')"));
        until("it waits", || {
            let lists = gate.admin(&database, "SHOW LISTS");
            lists.contains(&format!("waiting_clients|{}", at + 1))
        });
    }
    inside.ask("COMMIT");
    for client in &mut clients {
        client.hear();
    }
    let came = "SELECT string_agg(who, ' ' ORDER BY n) FROM came";
    assert_eq!(database.ask(came), "ann bobreport bob");
    let shown = gate.admin(&database, "SHOW CLASSES");
    let counts: Vec<(&str, &str)> = shown
        .lines()
        .map(|line| line.split('|').collect::<Vec<_>>())
        .map(|fields| (fields[0], fields[5]))
        .collect();
    assert_eq!(counts[1], ("report", "2"), "{shown}");
}

#[test]
fn secrets_are_looked_up_in_the_database() {
    let config = "auth = \"scram\"\n[auth_query]\nuser = \"postgres\"\n";
    let Some((database, gate)) = start_with("secrets_are_looked_up", config) else {
        return;
    };
    database.ask("ALTER ROLE ann PASSWORD 'pencil'");
    database.require("scram-sha-256", "ann");
    let with = |user: &str, password: &str| {
        let mut psql = gate.psql(&database, user);
        let output = psql
            .env("PGPASSWORD", password)
            .args(["-c", "SELECT current_user"]);
        output.output().unwrap()
    };
    let right = with("ann", "pencil");
    assert_eq!(
        String::from_utf8_lossy(&right.stdout).trim(),
        "ann",
        "{}",
        said(&right)
    );
    for (user, password) in [
        ("ann", "pen"),
        ("bob", ""),
        ("bob", "pencil"),
        ("nobody", "pencil"),
    ] {
        assert!(!with(user, password).status.success(), "{user}");
    }
    // A new password counts at once.
    database.ask("ALTER ROLE ann PASSWORD 'brush'");
    assert!(with("ann", "brush").status.success());
}

#[test]
fn the_first_rule_that_fits_decides_who_may_come() {
    let config = "[[rule]]\nuser = [\"ann\"]\nauth = \"reject\"\n[[rule]]\ntransport = \"unix\"\nauth = \"trust\"\n";
    let Some((database, gate)) = start_with("the_first_rule_that_fits", config) else {
        return;
    };
    assert_eq!(gate.ask(&database, &["SELECT 1"]), "1");
    let ann = fails(&gate, &database, "ann", "postgres", "SELECT 1");
    assert!(
        ann.contains("no rule lets user \"ann\" into database \"postgres\""),
        "{ann}"
    );
    let mut tcp = database.psql(std::path::Path::new("127.0.0.1"), gate.port(), "postgres");
    let tcp = tcp.args(["-c", "SELECT 1"]).output().unwrap();
    assert!(said(&tcp).contains("from 127.0.0.1"), "{}", said(&tcp));
}

#[test]
fn old_server_connections_are_replaced_and_dead_ones_not_lent() {
    let config =
        "[limits]\ntransactions = 2\nserver_lifetime_seconds = 1\nserver_check_seconds = 0\n";
    let Some((database, gate)) = start_with("old_server_connections", config) else {
        return;
    };
    let mut client = Talk::begin(&mut gate.psql(&database, "postgres"));
    let first = client.ask("SELECT pg_backend_pid()");
    until("it is closed", || {
        let alive = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {first}");
        database.ask(&alive) == "0"
    });
    let second = client.ask("SELECT pg_backend_pid()");
    assert_ne!(first, second);
    database.ask(&format!("SELECT pg_terminate_backend({second})"));
    assert_eq!(client.ask("SELECT 'again'"), "again");
}

#[test]
fn a_lower_class_does_not_wait_for_ever() {
    let classes = "[[class]]\nname = \"high\"\npriority = 1\nuser = [\"postgres\"]\n";
    let config = format!("{}{classes}", transactions(1));
    let Some((database, gate)) = start_with("a_lower_class_does_not_wait", &config) else {
        return;
    };
    let pgbench = || gate.program(&database, "pgbench");
    printed(pgbench().args(["-i", "-q", "postgres"]));
    let mut psql = gate.psql(&database, "bob");
    let mut low = Talk::begin(psql.env("PGAPPNAME", "low"));
    low.ask("SELECT 1");
    thread::scope(|scope| {
        let high = scope.spawn(|| {
            let eight = ["-n", "-S", "-c", "8", "-T", "8", "postgres"];
            printed(pgbench().args(eight))
        });
        until("the high ones are many", || {
            gate.admin(&database, "SHOW CLASSES").contains("high|1|8|")
        });
        // Each waits for a place in which a client of the other class could always go.
        for _ in 0..3 {
            assert_eq!(low.ask("SELECT 2"), "2");
        }
        assert!(!high.is_finished());
        high.join().unwrap();
    });
}

#[test]
fn what_waits_can_be_cancelled() {
    let Some((database, gate)) = start_with("what_waits_can_be_cancelled", &transactions(1)) else {
        return;
    };
    let mut inside = Talk::begin(&mut gate.psql(&database, "postgres"));
    inside.ask("SELECT 1");
    // psql asks for a cancellation when it is interrupted, and ends.
    let mut psql = gate.psql(&database, "ann");
    let commands = [
        "-c",
        "SELECT 'first'",
        "-c",
        "SELECT pg_sleep(0.1)",
        "-c",
        "SELECT 'never'",
    ];
    printed(psql.args(["-c", "SELECT 1"]));
    inside.ask("BEGIN");
    let mut psql = gate.psql(&database, "ann");
    let ann = psql.args(commands).stderr(std::process::Stdio::piped());
    let ann = ann.stdout(std::process::Stdio::piped()).spawn().unwrap();
    until("ann waits", || {
        gate.admin(&database, "SHOW LISTS")
            .contains("waiting_clients|1")
    });
    crate::support::signal_child_of(ann.id(), "-INT");
    until("nobody waits", || {
        gate.admin(&database, "SHOW LISTS")
            .contains("waiting_clients|0")
    });
    let output = ann.wait_with_output().unwrap();
    let words = "Cancel request sent\nERROR:  canceling statement due to user request";
    assert_eq!(
        (said(&output).as_str(), &output.stdout[..]),
        (words, &b""[..])
    );
    inside.ask("COMMIT");
    assert_eq!(gate.ask(&database, &["SELECT 'now'"]), "now");
}

#[test]
fn no_constant_is_shown_whatever_a_backslash_is() {
    let config = "order = \"shortest\"\n";
    let Some((database, gate)) = start_with("no_constant_is_shown", config) else {
        return;
    };
    let off = "SET standard_conforming_strings = off";
    for constants in [
        "'it\\'s secret'",
        "'it\\'s secret', 'it\\'s'",
        "E'it\\'s'\n'\\' secret'",
        "$a$it\\'s secret$a$, '\\'', N'\\' secret'",
    ] {
        let sql = format!("SELECT {constants} AS shown");
        gate.ask(&database, &[off, &sql]);
    }
    gate.ask(&database, &["SELECT 'a\\', 'secret' AS shown"]);
    let statements = gate.admin(&database, "SHOW STATEMENTS");
    assert!(statements.contains("select ? as shown"), "{statements}");
    assert!(!statements.contains("secret"), "{statements}");
}
