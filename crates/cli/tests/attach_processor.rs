//! `sooner attach postgres` beside a real PostgreSQL: which of its processes the processor goes to
//! first, and that all is put back.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
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
fn who_holds_what_a_high_one_waits_for_is_raised_as_long_as_it_does() {
    let test = "who_holds_what_a_high_one_waits_for_is_raised_as_long_as_it_does";
    let Some((database, _turn)) = database(test) else {
        return;
    };
    database.ask("CREATE TABLE t AS SELECT 1 AS id");
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
}

#[test]
fn a_gate_tells_which_transaction_runs() {
    let test = "a_gate_tells_which_transaction_runs";
    let Some((database, _turn)) = database(test) else {
        return;
    };
    let socket: PathBuf = database.folder().join("gate.sock");
    let path = socket.display().to_string();
    // Of no session of the server's own: only the gate knows.
    let classes = CLASSES.replace(
        "application_name = [\"high\"]",
        "comment = { kind = [\"pay\"] }",
    );
    let mut child = attached(&database, &classes, &["--gate", &path, "--cost", "0.01"]);
    let config = format!("priorities = \"{path}\"\n{classes}[limits]\ntransactions = 1\n");
    let gate = Gate::start(Path::new(env!("CARGO_BIN_EXE_sooner")), &database, &config);
    let mut talk = Talk::begin(&mut gate.psql(&database, "postgres"));
    let pid: u32 = talk.ask("SELECT pg_backend_pid()").parse().unwrap();
    let ordinary = standing(pid);
    let gate_is_told = || status_of(&child)["gates"] == 1;
    until("the gate is connected", gate_is_told);
    for _ in 0..3 {
        assert_eq!(
            talk.ask("SELECT pg_backend_pid() /*kind='pay'*/"),
            pid.to_string()
        );
        until("it is raised", || standing(pid) != ordinary);
        talk.ask("SELECT 1");
        until("it is put back", || standing(pid) == ordinary);
    }
    talk.ask("SELECT 1 /*kind='pay'*/");
    until("it is raised", || standing(pid) != ordinary);
    drop(talk);
    drop(gate);
    // With the gate its sessions go; what stays is of no class.
    end(&mut child, Signal::TERM);
    assert!(!socket.exists());
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
    for (classes, more, words) in [
        ("", &[][..], "no class goes before another"),
        (
            "[[class]]\nname = \"late\"\npriority = 150\nuser = [\"x\"]\n",
            &[],
            "no class goes before another",
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
            "[[class]]\nname = \"a\"\npriority = 0\n",
            &[],
            "classes.toml:3: class.priority",
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
    let _child = attached(&database, CLASSES, &[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(["attach", "postgres", "--data"]);
    command
        .arg(database.folder().join("data"))
        .arg("--config")
        .arg(&file);
    fs::write(&file, CLASSES).unwrap();
    let output = command.output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("is attached to this server already"),
        "{told}"
    );
}
