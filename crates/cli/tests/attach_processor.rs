//! `sooner attach postgres` beside a real PostgreSQL: which of its processes the processor goes to
//! first, and that all is put back.

mod gates;
mod lowered;

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sooner_kernel::capability;
use sooner_testbed::postgres::{DATABASE_PORT, Database, Gate, Talk, until};
use sooner_testbed::{OwnedChild, skip};

const PATIENCE: Duration = Duration::from_secs(30);
const CLASSES: &str = "[[class]]\nname = \"high\"\npriority = 1\napplication_name = [\"high\"]\n\
                       [[class]]\nname = \"rest\"\npriority = 2\n";

/// They find and clean what the others of this user have attached.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A database, and the right to attach to it; none, after saying why, where it cannot be done here.
fn database(test: &str) -> Option<(Database, MutexGuard<'static, ()>)> {
    if !capability::has_sys_nice() {
        skip(test, "needs CAP_SYS_NICE");
        return None;
    }
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    Some((Database::start(test)?, turn))
}

/// `sooner attach postgres` that is ready.
fn attached(database: &Database, classes: &str, more: &[&str]) -> OwnedChild {
    let file = database.folder().join("classes.toml");
    fs::write(&file, classes).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(["attach", "postgres", "--data"]);
    command.arg(database.folder().join("data"));
    command.arg("--config").arg(file).args(more);
    let mut child = OwnedChild::spawn(&mut command).unwrap();
    let line = child.next_line(PATIENCE);
    let line = line.unwrap_or_else(|_| panic!("it ended: {}", child.message()));
    assert!(line.starts_with("ready: PostgreSQL"), "{line}");
    child
}

/// A session that calls itself so, and its process.
fn session(database: &Database, name: &str) -> (Talk, u32) {
    let mut psql = database.psql(database.folder(), DATABASE_PORT, "postgres");
    let mut talk = Talk::begin(psql.env("PGAPPNAME", name));
    let pid = talk.ask("SELECT pg_backend_pid()").parse().unwrap();
    (talk, pid)
}

/// All that says how the processor treats a process: policy, priority, nice value, autogroup's.
fn standing(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let autogroup = fs::read_to_string(format!("/proc/{pid}/autogroup")).unwrap_or_default();
    let autogroup = autogroup.rsplit(' ').next().unwrap().trim().to_owned();
    format!(
        "policy {} priority {} nice {} autogroup {autogroup}",
        fields[38], fields[37], fields[16]
    )
}

/// What `attach status` says of it.
fn status_of(child: &OwnedChild) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    let output = command
        .args(["attach", "status", "--json"])
        .output()
        .unwrap();
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let mut own = all.into_iter().filter(|one| one["pid"] == child.id());
    own.next().unwrap_or_default()
}

/// The first line of its postmaster.pid.
fn database_pid(database: &Database) -> u32 {
    let text = fs::read_to_string(database.folder().join("data/postmaster.pid")).unwrap();
    text.lines().next().unwrap().trim().parse().unwrap()
}

fn end(child: &mut OwnedChild, signal: Signal) {
    let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
    kill_process(pid, signal).unwrap();
    until("it has ended", || child.has_ended());
}

#[test]
fn sessions_of_a_class_go_first_and_are_put_back() {
    let Some((database, _turn)) = database("sessions_of_a_class_go_first_and_are_put_back") else {
        return;
    };
    let (_low, low_pid) = session(&database, "rest");
    let ordinary = standing(low_pid);
    let means: [&[&str]; 2] = [&[], &["--mechanism", "round-robin"]];
    for (more, ends_by) in means.into_iter().zip([Signal::TERM, Signal::KILL]) {
        let mut child = attached(&database, CLASSES, more);
        let (_high, high_pid) = session(&database, "high");
        until("the high one is raised", || standing(high_pid) != ordinary);
        assert_eq!(standing(low_pid), ordinary);
        assert_eq!(
            status_of(&child)["server_pid"],
            serde_json::json!(database_pid(&database))
        );
        end(&mut child, ends_by);
        if ends_by == Signal::KILL {
            assert_ne!(standing(high_pid), ordinary, "no one could put it back");
            // The next start does.
            let mut child = attached(&database, CLASSES, &["--mechanism", "round-robin"]);
            end(&mut child, Signal::INT);
            let told = child.message();
            assert!(
                told.contains("put back what a killed one changed"),
                "{told}"
            );
        }
        assert_eq!(standing(high_pid), ordinary);
    }
}

#[test]
fn what_looks_at_the_others_has_no_real_time() {
    let Some((database, _turn)) = database("what_looks_at_the_others_has_no_real_time") else {
        return;
    };
    let (_low, low_pid) = session(&database, "rest");
    let mut child = attached(
        &database,
        CLASSES,
        &["--mechanism", "round-robin", "--inherit"],
    );
    let (_high, high_pid) = session(&database, "high");
    let ordinary = standing(low_pid);
    until("the high one is raised", || standing(high_pid) != ordinary);
    let own =
        database.ask("SELECT pid FROM pg_stat_activity WHERE application_name = 'sooner attach'");
    // It would keep a processor from one that it waits for, for most of a second.
    let own = standing(own.parse().unwrap());
    assert!(own.starts_with("policy 0 priority 0 nice -10 "), "{own}");
    end(&mut child, Signal::TERM);
}

#[test]
fn who_holds_what_a_high_one_waits_for_is_raised_as_long_as_it_does() {
    let test = "who_holds_what_a_high_one_waits_for_is_raised_as_long_as_it_does";
    let Some((database, _turn)) = database(test) else {
        return;
    };
    database.ask("CREATE TABLE t AS SELECT 1 AS id");
    // Of a user who would like to run something as the role that is attached.
    database.ask("CREATE TABLE fooled (by_whom text)");
    database.ask(
        "CREATE FUNCTION public.unnest(int4[]) RETURNS SETOF int4 LANGUAGE plpgsql AS \
         'BEGIN INSERT INTO public.fooled VALUES (current_user); \
         RETURN QUERY SELECT * FROM pg_catalog.unnest($1); END'",
    );
    let _child = attached(&database, CLASSES, &["--inherit"]);
    let (mut first, first_pid) = session(&database, "rest");
    let (mut second, second_pid) = session(&database, "rest");
    let (mut high, high_pid) = session(&database, "high");
    let ordinary = standing(first_pid);
    until("the high one is raised", || standing(high_pid) != ordinary);
    first.ask("BEGIN");
    first.ask("UPDATE t SET id = 2");
    second.ask("BEGIN");
    second.say("UPDATE t SET id = 3");
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    until("the second one waits", || database.ask(waiting) == "1");
    assert_eq!(
        [first_pid, second_pid].map(standing),
        [ordinary.clone(), ordinary.clone()]
    );
    high.say("UPDATE t SET id = 4");
    // The whole chain.
    until("the holder is raised", || standing(first_pid) != ordinary);
    until("and who is before it", || standing(second_pid) != ordinary);
    first.ask("ROLLBACK");
    until("the holder is put back", || standing(first_pid) == ordinary);
    until("the one that has the row now is raised", || {
        standing(second_pid) != ordinary
    });
    second.hear();
    second.ask("ROLLBACK");
    until("the second one is put back", || {
        standing(second_pid) == ordinary
    });
    high.hear();
    assert_eq!(database.ask("SELECT count(*) FROM fooled"), "0");
}

#[test]
fn parallel_workers_go_with_the_session_that_they_help() {
    let test = "parallel_workers_go_with_the_session_that_they_help";
    let Some((database, _turn)) = database(test) else {
        return;
    };
    database.ask("CREATE TABLE t AS SELECT g, repeat('x', 1000) FROM generate_series(1, 4000) g");
    let _child = attached(&database, CLASSES, &["--cost", "10"]);
    let (_low, low_pid) = session(&database, "rest");
    let ordinary = standing(low_pid);
    let (mut high, _) = session(&database, "high");
    for setting in [
        "parallel_setup_cost = 0",
        "parallel_tuple_cost = 0",
        "min_parallel_table_scan_size = 0",
        "parallel_leader_participation = off",
    ] {
        high.ask(&format!("SET {setting}"));
    }
    high.say("SELECT count(pg_sleep(0.005)) FROM t");
    let workers = "SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'parallel worker'";
    until("there is a worker", || !database.ask(workers).is_empty());
    let worker: u32 = database.ask(workers).parse().unwrap();
    until("it is raised", || standing(worker) != ordinary);
    high.kill();
}

#[test]
fn the_worker_that_orders_lock_queues_goes_before_those_that_wait_there() {
    let test = "the_worker_that_orders_lock_queues_goes_before_those_that_wait_there";
    let Some((database, _turn)) = database(test) else {
        return;
    };
    if !database.restart_with_library(test, "sooner_locks") {
        return;
    }
    // Its number is in the header of its file.
    let map = fs::read(database.folder().join("data/sooner_locks.map")).unwrap();
    let worker = u32::from_ne_bytes(map[28..32].try_into().unwrap());
    let ordinary = standing(worker);
    let mut child = attached(&database, CLASSES, &[]);
    until("it looks", || status_of(&child)["looks"].as_u64() > Some(2));
    assert_eq!(standing(worker), ordinary, "while none goes first");
    let _high = session(&database, "high");
    until("it is raised", || standing(worker) != ordinary);
    end(&mut child, Signal::TERM);
    assert_eq!(standing(worker), ordinary);
}

#[test]
fn a_server_that_is_gone_is_waited_for_where_status_sees_it() {
    let test = "a_server_that_is_gone_is_waited_for_where_status_sees_it";
    let Some((database, _turn)) = database(test) else {
        return;
    };
    let mut child = attached(&database, CLASSES, &[]);
    assert_eq!(status_of(&child)["is_waiting"], false);
    let server = Pid::from_raw(database_pid(&database).cast_signed()).unwrap();
    kill_process(server, Signal::INT).unwrap();
    until("it waits", || status_of(&child)["is_waiting"] == true);
    end(&mut child, Signal::TERM);
}

#[test]
fn a_signal_ends_it_while_it_waits_for_a_server_that_says_nothing() {
    let test = "a_signal_ends_it_while_it_waits_for_a_server_that_says_nothing";
    let Some((database, _turn)) = database(test) else {
        return;
    };
    let server = Pid::from_raw(database_pid(&database).cast_signed()).unwrap();
    kill_process(server, Signal::STOP).unwrap();
    let file = database.folder().join("classes.toml");
    fs::write(&file, CLASSES).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(["attach", "postgres", "--data"]);
    command.arg(database.folder().join("data"));
    command.arg("--config").arg(file);
    let mut child = OwnedChild::spawn(&mut command).unwrap();
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    // Only then it listens to signals, bit 15 of those that it catches.
    until("it listens", || {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let mut lines = text
            .lines()
            .filter_map(|line| line.strip_prefix("SigCgt:\t"));
        let caught = lines
            .next()
            .map(|mask| u64::from_str_radix(mask, 16).unwrap());
        caught.is_some_and(|mask| mask & (1 << 14) != 0)
    });
    sleep(Duration::from_millis(200));
    end(&mut child, Signal::TERM);
    kill_process(server, Signal::CONT).unwrap();
}

#[test]
fn what_cannot_be_attached_to_is_one_line_and_changes_nothing() {
    let test = "what_cannot_be_attached_to_is_one_line_and_changes_nothing";
    let Some((database, _turn)) = database(test) else {
        return;
    };
    let (_talk, pid) = session(&database, "high");
    let before = standing(pid);
    let file = database.folder().join("classes.toml");
    let precious = database.folder().join("of-value");
    fs::write(&precious, "of value").unwrap();
    let of_value = precious.display().to_string();
    for (classes, more, words) in [
        ("", &[][..], "no class goes before another"),
        (
            "[[class]]\nname = \"late\"\npriority = 150\nuser = [\"x\"]\n",
            &[],
            "no class goes before another",
        ),
        (
            CLASSES,
            &["--lower"],
            "--lower: no class has a priority above 100",
        ),
        (
            CLASSES,
            &["--mechanism", "fifo"],
            "round-robin, autogroup or nice",
        ),
        (
            CLASSES,
            &["--gate", "/nowhere/x.sock"],
            "--gate /nowhere/x.sock",
        ),
        (
            CLASSES,
            &["--gate", "/tmp/x.sock", "--gate-user", "nobody_here"],
            "nobody_here",
        ),
        (
            CLASSES,
            &["--gate", &of_value],
            "a file that is not a socket is already there",
        ),
        (
            "[[class]]\nname = \"a\"\npriority = 0\n",
            &[],
            "classes.toml:3: class.priority",
        ),
        (
            "[[class]]\nname = \"a\"\npriority = 1\nwait_target = \"1s\"\n",
            &[],
            "classes.toml:4: class.wait_target: a gate does that",
        ),
    ] {
        fs::write(&file, classes).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
        command.args(["attach", "postgres", "--data"]);
        command
            .arg(database.folder().join("data"))
            .arg("--config")
            .arg(&file);
        let output = command.args(more).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(words) && told.lines().count() <= 3, "{told}");
        assert_eq!(standing(pid), before);
    }
    assert_eq!(fs::read_to_string(&precious).unwrap(), "of value");
}

#[test]
fn what_began_at_the_same_moment_is_one_attachment() {
    let test = "what_began_at_the_same_moment_is_one_attachment";
    let Some((database, _turn)) = database(test) else {
        return;
    };
    let file = database.folder().join("classes.toml");
    fs::write(&file, CLASSES).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(["attach", "postgres", "--data"]);
    command.arg(database.folder().join("data"));
    command.arg("--config").arg(file);
    // They disturb each other's tests of what works; this has an effect all the same.
    command.args(["--mechanism", "round-robin"]);
    let mut all = [(); 3].map(|()| OwnedChild::spawn(&mut command).unwrap());
    let lines = all.each_mut().map(|child| child.next_line(PATIENCE));
    let ready = lines.iter().filter(|line| line.is_ok()).count();
    let told = all.each_mut().map(|child| {
        child.end();
        child.message()
    });
    assert_eq!(ready, 1, "{told:?}");
    let words = ["is attached to this server already", "no mechanism gives"];
    let refused = |told: &&String| words.iter().any(|words| told.contains(words));
    assert_eq!(told.iter().filter(refused).count(), 2, "{told:?}");
}

#[test]
fn a_server_with_a_policy_of_its_own_keeps_it() {
    let test = "a_server_with_a_policy_of_its_own_keeps_it";
    let Some((database, _turn)) = database(test) else {
        return;
    };
    let server = database_pid(&database).to_string();
    let chrt = |arguments: &[&str]| Command::new("chrt").args(arguments).status().unwrap();
    assert!(chrt(&["--batch", "--pid", "0", &server]).success());
    let means = ["--mechanism", "round-robin"];
    for ends_by in [Signal::TERM, Signal::KILL] {
        let mut child = attached(&database, CLASSES, &means);
        let (_high, high) = session(&database, "high");
        until("it is raised", || standing(high).starts_with("policy 2"));
        end(&mut child, ends_by);
        if ends_by == Signal::KILL {
            end(&mut attached(&database, CLASSES, &means), Signal::TERM);
        }
        let now = standing(high);
        assert!(now.starts_with("policy 3"), "{now}");
    }
    // What has real time goes first by itself, and whatever were tried would seem to work.
    assert!(chrt(&["--fifo", "--pid", "1", &server]).success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(["attach", "postgres", "--data"]);
    command.arg(database.folder().join("data")).arg("--config");
    command.arg(database.folder().join("classes.toml"));
    let told = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert_eq!(
        told.matches("it has real time already").count(),
        3,
        "{told}"
    );
}

#[test]
fn a_server_has_one_attachment() {
    let Some((database, _turn)) = database("a_server_has_one_attachment") else {
        return;
    };
    let _child = attached(&database, CLASSES, &[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(["attach", "postgres", "--data"]);
    command.arg(database.folder().join("data"));
    command.arg("--config");
    command.arg(database.folder().join("classes.toml"));
    let output = command.output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("is attached to this server already"),
        "{told}"
    );
}
