//! Who goes first where classes have targets or weights, and how many go in where that is not
//! configured: psql and pgbench, a real PostgreSQL, the gate between them.

mod meanwhile;

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use sooner_pooler::priorities::{FRAME_BYTES, Told};
use sooner_testbed::postgres::DATABASE_PORT;

use crate::support::{Database, Gate, Talk, printed, said, transactions, until};

const PATIENCE: Duration = Duration::from_secs(30);

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

/// Until so many wait.
fn until_waiting(gate: &Gate, database: &Database, count: usize) {
    until("it waits", || {
        let lists = gate.admin(database, "SHOW LISTS");
        lists.contains(&format!("waiting_clients|{count}"))
    });
}

/// The order in which clients of these users go in that all wait for `hold` while another client
/// has the only place; by their first letters.
fn order_of(database: &Database, gate: &Gate, users: &[&str], hold: Duration) -> String {
    order_after(database, gate, users, || thread::sleep(hold))
}

/// The same of those who wait while something is done.
fn order_after(
    database: &Database,
    gate: &Gate,
    users: &[&str],
    meanwhile: impl FnOnce(),
) -> String {
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
        until_waiting(gate, database, at + 1);
    }
    meanwhile();
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

/// What SHOW TARGETS has of a class: its target, µs, what was achieved, µs, and that in parts in a
/// hundred.
fn status(gate: &Gate, database: &Database, class: &str) -> [u64; 3] {
    let shown = gate.admin(database, "SHOW TARGETS");
    let line = shown
        .lines()
        .find(|line| line.split('|').nth(1) == Some(class));
    let fields: Vec<&str> = line.unwrap_or_default().split('|').collect();
    [3, 4, 5].map(|at| fields[at].parse().unwrap_or_else(|_| panic!("{shown}")))
}

#[test]
fn whom_lateness_costs_is_said_by_late_and_what_was_achieved_is_told() {
    let classes = "[[class]]\nname = \"long\"\nuser = [\"ann\"]\npriority = 1\ntarget = { mean = \"300ms\" }\n\
                   [[class]]\nname = \"short\"\nuser = [\"bob\"]\npriority = 2\ntarget = { mean = \"60ms\" }\n";
    let Some((database, gate)) = start("whom_lateness_costs", classes) else {
        return;
    };
    let users = ["postgres", "bob", "ann"];
    let hold = Duration::from_millis(600);
    let begin = Instant::now();
    // Both are late.
    assert_eq!(order_of(&database, &gate, &users, hold), "abp");
    for (class, target_us) in [("long", 300_000), ("short", 60_000)] {
        let [target, achieved, percent] = status(&gate, &database, class);
        assert_eq!(target, target_us);
        // The mean of two: one that slept, and one that waited besides.
        let least = (20_000 + 600_000) / 2;
        let most = begin.elapsed().as_micros();
        assert!(
            achieved >= least && u128::from(achieved) < most,
            "{achieved}"
        );
        assert!(percent.abs_diff(achieved * 100 / target) <= 1, "{percent}");
    }

    // One by about its target, the other by many times its own.
    gate.rewrite(|text| format!("late = \"in-proportion\"\n{text}"));
    gate.admin(&database, "RELOAD");
    assert_eq!(order_of(&database, &gate, &users, hold), "bap");
}

#[test]
fn what_is_expected_to_be_short_goes_first_or_last() {
    let Some((database, gate)) = start("what_is_expected_to_be_short", "") else {
        return;
    };
    let order_by = |order: &str| {
        gate.rewrite(|text| {
            let rest = text.lines().filter(|line| !line.starts_with("order = "));
            let rest: Vec<&str> = rest.collect();
            format!("order = \"{order}\"\n{}\n", rest.join("\n"))
        });
        gate.admin(&database, "RELOAD");
    };
    // What is said of itself is read where the order depends on it.
    order_by("shortest");
    let mut inside = Talk::begin(&mut gate.psql(&database, "postgres"));
    let mut clients = ["0.3", "0.05"].map(|seconds| {
        let mut client = Talk::begin(&mut gate.psql(&database, "ann"));
        // Its kind is the statement without its numbers, but for the comment.
        let sql =
            format!("SELECT nextval('came_n_seq'), pg_sleep({seconds}) /*route='{seconds}'*/");
        client.ask(&sql);
        (client, sql)
    });
    for (order, expected) in [
        ("shortest", [true, false]),
        ("longest", [false, true]),
        ("boost", [true, false]),
        ("fifo", [false, true]),
        ("nudge", [true, false]),
    ] {
        order_by(order);
        inside.ask("BEGIN");
        for (at, (client, sql)) in clients.iter_mut().enumerate() {
            client.say(sql);
            until_waiting(&gate, &database, at + 1);
        }
        inside.ask("COMMIT");
        let [long, short] = clients.each_mut().map(|(client, _)| {
            let heard = client.hear();
            heard.split('|').next().unwrap().parse::<u64>().unwrap()
        });
        assert_eq!([short < long, long < short], expected, "{order}");
    }
}

#[test]
fn who_waits_is_of_the_class_that_counts_now() {
    let Some((database, gate)) = start("who_waits_is_of_the_class", "") else {
        return;
    };
    let users = ["postgres", "ann", "ann", "bob"];
    let order = order_after(&database, &gate, &users, || {
        gate.rewrite(|text| {
            let class = |user: &str, priority: u8| {
                format!(
                    "[[class]]\nname = \"{user}\"\nuser = [\"{user}\"]\npriority = {priority}\n"
                )
            };
            text + &class("ann", 2) + &class("bob", 1)
        });
        gate.admin(&database, "RELOAD");
    });
    assert_eq!(order, "baap");
}

#[test]
fn who_was_in_the_way_of_others_is_counted_apart() {
    let Some((database, gate)) = start("who_was_in_the_way", "") else {
        return;
    };
    database.ask("INSERT INTO came DEFAULT VALUES");
    gate.rewrite(|text| text.replace("transactions = 1", "transactions = 2"));
    gate.admin(&database, "RELOAD");
    let mut psql = gate.psql(&database, "ann");
    let mut one = Talk::begin(psql.args(["-v", "ON_ERROR_STOP=0"]));
    one.ask("BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(one.ask("SELECT count(*) FROM came"), "1");
    let mut other = Talk::begin(&mut gate.psql(&database, "bob"));
    other.ask("UPDATE came SET who = 'b'");
    // 40001; then what is merely wrong.
    one.ask("UPDATE came SET who = 'a'");
    one.ask("ROLLBACK");
    one.ask("SELECT 1 / 0");
    assert_eq!(one.ask("SELECT who FROM came"), "b");
    let shown = gate.admin(&database, "SHOW CLASSES");
    let all = shown.lines().next_back().unwrap_or_default();
    let fields: Vec<&str> = all.split('|').collect();
    assert_eq!((fields[5], fields[21]), ("4", "1"), "{shown}");
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
fn who_had_the_least_of_late_goes_first() {
    let Some((database, gate)) = start("who_had_the_least_of_late", "") else {
        return;
    };
    let users = ["bob", "bob", "bob", "ann", "bob", "ann"];
    let order = order_of(&database, &gate, &users, Duration::ZERO);
    assert_eq!(order, "bbbaba", "who came first");
    // From now on: bob has had more than a busy machine adds to what ann takes.
    gate.rewrite(|text| format!("share_by = \"user\"\n{text}"));
    gate.admin(&database, "RELOAD");
    printed(
        gate.psql(&database, "bob")
            .args(["-c", "SELECT pg_sleep(1)"]),
    );
    let order = order_of(&database, &gate, &users, Duration::ZERO);
    assert_eq!(order, "aabbbb");
    let shown = gate.admin(&database, "SHOW CONFIG");
    assert!(shown.contains("share_by|user"), "{shown}");
}

/// What SHOW CLASSES has of transactions of each class.
fn counts(gate: &Gate, database: &Database) -> Vec<(String, String)> {
    let shown = gate.admin(database, "SHOW CLASSES");
    let fields = |line: &str| {
        let fields: Vec<&str> = line.split('|').collect();
        (fields[0].to_owned(), fields[5].to_owned())
    };
    shown.lines().map(fields).collect()
}

#[test]
fn a_transaction_says_its_class_before_it_is_let_in() {
    let classes = "[[class]]\nname = \"near\"\naddress = [\"127.0.0.0/8\"]\n\
                   [[class]]\nname = \"word\"\nsession = [\"gold\"]\n\
                   [[class]]\nname = \"comment\"\ncomment.route = [\"/pay*\"]\n\
                   [[class]]\nname = \"shape\"\nstatement = [\"select count(*)*\"]\n";
    let Some((database, gate)) = start("a_transaction_says_its_class", classes) else {
        return;
    };
    let mut one = Talk::begin(&mut gate.psql(&database, "ann"));
    let mut other = Talk::begin(&mut gate.psql(&database, "ann"));
    let one_said = one.ask("SELECT 1 /*route='%2Fpay%2Fnow'*/");
    assert_eq!(one_said, "1");
    assert_eq!(one.ask("SELECT count(*) FROM came"), "0");
    assert_eq!(one.ask("SELECT COUNT(*) /* again */ FROM came"), "0");
    one.ask("SET sooner.class = 'gold'");
    assert_eq!(one.ask("SELECT 'by word'"), "by word");
    // The one server connection has it no more when another client comes.
    let inherited = other.ask("SELECT current_setting('sooner.class', true)");
    assert_eq!(inherited, "");
    one.ask("BEGIN; SET LOCAL work_mem = '1MB'; SET sooner.class = 'tin'; ROLLBACK");
    one.ask("RESET sooner.class");
    assert_eq!(one.ask("SELECT 'in none'"), "in none");
    let mut psql = gate.psql(&database, "ann");
    let first = psql.env("PGOPTIONS", "-c sooner.class=gold");
    printed(first.args(["-c", "SELECT 1"]));
    let mut near = database.psql(Path::new("127.0.0.1"), gate.port(), "ann");
    printed(near.args(["-c", "SELECT 1 /*route='%2Fpay'*/"]));
    let counts = counts(&gate, &database);
    let of = |name: &str| {
        let found = counts.iter().find(|(known, _)| known == name);
        found.map(|(_, count)| count.as_str()).unwrap_or_default()
    };
    // By word: one, two that are rolled back together and the one that takes it back; another
    // session's from its beginning.
    assert_eq!(
        (of("near"), of("word"), of("comment"), of("shape")),
        ("1", "4", "1", "2"),
        "{counts:?}"
    );
    let lists = gate.admin(&database, "SHOW CLIENTS");
    assert!(!lists.contains("a setting"), "{lists}");
    let statements = gate.admin(&database, "SHOW STATEMENTS");
    assert!(
        statements.contains("|select count(*) from came\n"),
        "{statements}"
    );
    assert!(statements.contains("/pay/now|1|"), "{statements}");
}

#[test]
fn who_keeps_its_connection_says_its_class_as_well() {
    let classes = "[[class]]\nname = \"comment\"\ncomment.route = [\"/pay*\"]\n\
                   [[class]]\nname = \"shape\"\nstatement = [\"select count(*)*\"]\n\
                   [[class]]\nname = \"rest\"\ndatabase = [\"*\"]\napplication_name = [\"psq*\"]\n";
    let Some((database, gate)) = start("who_keeps_its_connection_says", classes) else {
        return;
    };
    let mut one = Talk::begin(&mut gate.psql(&database, "ann"));
    one.ask("LISTEN news");
    assert_eq!(one.ask("SELECT 1 /*route='%2Fpay'*/"), "1");
    assert_eq!(one.ask("SELECT count(*) FROM came"), "0");
    assert_eq!(one.ask("SELECT count(*) FROM came"), "0");
    assert_eq!(one.ask("SELECT 2"), "2");
    let counts = counts(&gate, &database);
    let count = |name: &str| counts.iter().find(|(known, _)| known == name);
    let of = |name: &str| count(name).map(|(_, count)| count.as_str());
    assert_eq!(
        (of("comment"), of("shape"), of("rest")),
        (Some("1"), Some("2"), Some("2")),
        "{counts:?}"
    );
}

#[test]
fn a_limit_that_nobody_says_is_looked_for() {
    let config = "admins = [\"postgres\"]\n[limits]\ntransactions = \"auto\"\ntransactions_max = 8\nthroughput_loss = 0.3\n";
    let Some(database) = Database::start("a_limit_that_nobody_says") else {
        return;
    };
    let gate = Gate::before(&database, config);
    let limit = || {
        let gates = gate.admin(&database, "SHOW GATES");
        gates.split('|').nth(1).map(str::to_owned)
    };
    assert_eq!(gate.ask(&database, &["SELECT 1"]), "1");
    let first = limit();
    // Each takes as long however many others there are.
    let script = database.folder().join("sleep.sql");
    fs::write(&script, "SELECT pg_sleep(0.01);\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).unwrap();
    let many = ["-n", "-c", "16", "-T", "5", "postgres", "-f"];
    // With so much to lose a second is enough to be sure, unless the machine is busy with something
    // else.
    for _ in 0..30 {
        let printed = printed(gate.program(&database, "pgbench").args(many).arg(&script));
        assert!(
            printed.contains("number of failed transactions: 0"),
            "{printed}"
        );
        if limit() != first {
            break;
        }
    }
    let now: u32 = limit().unwrap().parse().unwrap();
    assert!(limit() != first && (1..=8).contains(&now), "{now}");
}

#[test]
fn who_listens_takes_no_place_from_a_limit_that_is_found() {
    let config =
        "admins = [\"postgres\"]\n[limits]\ntransactions = \"auto\"\ntransactions_max = 2\n";
    let Some(database) = Database::start("who_listens_takes_no_place") else {
        return;
    };
    let gate = Gate::before(&database, config);
    let mut listeners: Vec<Talk> = (0..2)
        .map(|_| Talk::begin(&mut gate.psql(&database, "postgres")))
        .collect();
    for listener in &mut listeners {
        listener.ask("LISTEN news");
    }
    // Both places are theirs, and they have nothing to do.
    assert_eq!(gate.ask(&database, &["SELECT 'in'"]), "in");
    assert_eq!(listeners[0].ask("SELECT 'again'"), "again");
    assert_eq!(gate.ask(&database, &["SELECT 'in'"]), "in");
}

#[test]
fn who_waits_while_classes_change_has_its_class_among_the_new_ones() {
    let Some((database, gate)) = start("who_waits_while_classes_change", "") else {
        return;
    };
    let with = |before: &str| {
        format!("{before}[[class]]\nname = \"anns\"\nuser = [\"ann\"]\npriority = 1\n")
    };
    gate.rewrite(|text| text.to_owned() + &with(""));
    gate.admin(&database, "RELOAD");
    gate.admin(&database, "PAUSE");
    let mut ann = Talk::begin(&mut gate.psql(&database, "ann"));
    ann.say("SELECT 'here'");
    until_waiting(&gate, &database, 1);
    let other = "[[class]]\nname = \"bobs\"\nuser = [\"bob\"]\npriority = 2\n";
    gate.rewrite(|text| text.replace(&with(""), &with(other)));
    gate.admin(&database, "RELOAD");
    gate.admin(&database, "RESUME");
    assert_eq!(ann.hear(), "here");
    let counts = counts(&gate, &database);
    let of = |name: &str| counts.iter().find(|(known, _)| known == name).cloned();
    assert_eq!(of("anns"), Some(("anns".into(), "1".into())), "{counts:?}");
    assert_ne!(of("bobs").map(|(_, count)| count), Some("1".into()));
}

/// The next priority that a socket is told, within a while.
fn next_told(attached: &mut UnixStream) -> u8 {
    let mut frame = [0; FRAME_BYTES];
    attached.read_exact(&mut frame).unwrap();
    Told::read(frame).unwrap().priority
}

#[test]
fn a_process_is_told_its_priority_before_it_makes_the_settings() {
    let test = "a_process_is_told_its_priority_before_it_makes_the_settings";
    let Some(database) = Database::start(test) else {
        return;
    };
    let socket = database.folder().join("attached.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).unwrap();
    let config = format!(
        "priorities = \"{}\"\n\
         [[class]]\nname = \"high\"\npriority = 1\napplication_name = [\"high\"]\n\
         [[class]]\nname = \"rest\"\npriority = 2\napplication_name = [\"rest\"]\n{}",
        socket.display(),
        transactions(1)
    );
    let gate = Gate::before(&database, &config);
    let (mut attached, _) = listener.accept().unwrap();
    attached.set_read_timeout(Some(PATIENCE)).unwrap();
    let client = |name, options| {
        let mut psql = gate.psql(&database, "postgres");
        Talk::begin(psql.env("PGAPPNAME", name).env("PGOPTIONS", options))
    };
    let mut rest = client("rest", "");
    // The gate connects to it once a second.
    attached.set_nonblocking(true).unwrap();
    until("it is told", || {
        rest.ask("SELECT 1");
        let mut frames = [0; 64 * FRAME_BYTES];
        let count = attached.read(&mut frames).unwrap_or(0);
        let last = frames[..count].chunks_exact(FRAME_BYTES).last();
        let last = last.and_then(|frame| Told::read(frame.try_into().ok()?));
        last.is_some_and(|told| told.priority == 2)
    });
    attached.set_nonblocking(false).unwrap();
    let mut high = client("high", "-c default_tablespace=pg_default");
    let mut stranger =
        Talk::begin(&mut database.psql(database.folder(), DATABASE_PORT, "postgres"));
    stranger.ask("BEGIN");
    stranger.ask("LOCK pg_catalog.pg_tablespace IN ACCESS EXCLUSIVE MODE");
    high.say("SELECT 1");
    // The setting waits for the lock, and the transaction for the setting.
    assert_eq!(next_told(&mut attached), 1);
    stranger.ask("COMMIT");
    assert_eq!(high.hear(), "1");
    rest.ask("SELECT 1");
    assert_eq!(next_told(&mut attached), 2);
}
