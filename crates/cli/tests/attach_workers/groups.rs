//! Workers that the kernel does not weigh as one.

use super::{ONE_AT_A_TIME, PATIENCE, until};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::PoisonError;

use rustix::process::Signal;
use sooner_kernel::{capability, process_table};
use sooner_testbed::{OwnedChild, program, skip};

/// Where control groups of version 1 have weights, and those of version 2.
const PLACES: [(&str, &str); 2] = [
    ("/sys/fs/cgroup/cpu", "cpu.shares"),
    ("/sys/fs/cgroup", "cpu.weight"),
];

/// A control group with a weight, which goes when this is dropped.
struct ControlGroup {
    folder: PathBuf,
    weight: &'static str,
}

impl ControlGroup {
    /// None where there can be none.
    fn create(name: &str) -> Option<ControlGroup> {
        PLACES.into_iter().find_map(|(place, weight)| {
            let name = format!("sooner-test-{}-{name}", std::process::id());
            let folder = Path::new(place).join(name);
            fs::create_dir(&folder).ok()?;
            let group = ControlGroup { folder, weight };
            group.folder.join(weight).exists().then_some(group)
        })
    }

    fn take(&self, pid: u32) {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    fn weight(&self) -> u64 {
        let text = fs::read_to_string(self.folder.join(self.weight)).unwrap();
        text.trim().parse().unwrap()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

/// A server with so many workers that do nothing.
fn idle_server(workers: usize) -> OwnedChild {
    let script = "sleep 600 & ".repeat(workers) + "wait";
    let server = OwnedChild::spawn(Command::new("sh").args(["-c", &script])).unwrap();
    until("its workers are there", || {
        process_table::children(server.id()).unwrap().len() == workers
    });
    server
}

fn attached(server: &OwnedChild) -> OwnedChild {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(["attach", "cpu", "--pid", &server.id().to_string()]);
    let mut attached = OwnedChild::spawn(&mut command).unwrap();
    let line = attached.next_line(PATIENCE);
    let line = line.unwrap_or_else(|_| panic!("it ended: {}", attached.message()));
    assert!(line.starts_with("ready: "), "{line}");
    attached
}

fn end(mut attached: OwnedChild, mut server: OwnedChild) {
    attached.end_by(Signal::TERM);
    assert!(attached.end().unwrap().success());
    for worker in process_table::children(server.id()).unwrap() {
        super::members::end(worker);
    }
    server.end();
}

#[test]
fn each_control_group_gets_the_weight() {
    let test = "each_control_group_gets_the_weight";
    if !capability::has_sys_nice() {
        return skip(test, "needs CAP_SYS_NICE");
    }
    let groups = ["a", "b"].map(ControlGroup::create);
    let [Some(first), Some(second)] = &groups else {
        return skip(test, "needs control groups with a weight");
    };
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let server = idle_server(4);
    let workers = process_table::children(server.id()).unwrap();
    workers[..2].iter().for_each(|worker| first.take(*worker));
    workers[2..].iter().for_each(|worker| second.take(*worker));
    let usual = first.weight();
    let mut attached = attached(&server);
    assert_eq!([first.weight(), second.weight()], [4 * usual; 2]);
    let mut said = std::iter::from_fn(|| attached.next_message(PATIENCE).ok());
    assert!(said.any(|line| line.contains("several groups")));
    end(attached, server);
    assert_eq!([first.weight(), second.weight()], [usual; 2]);
    until("they are empty", || {
        groups.iter().flatten().all(|group| {
            fs::read_to_string(group.folder.join("cgroup.procs")).is_ok_and(|it| it.is_empty())
        })
    });
}

#[test]
fn a_worker_in_no_session_beside_others_is_refused() {
    let test = "a_worker_in_no_session_beside_others_is_refused";
    if !capability::has_sys_nice() {
        return skip(test, "needs CAP_SYS_NICE");
    }
    // The machine's first process is in none, and what belongs to it is in many.
    let first = fs::read_to_string("/proc/1/autogroup").unwrap_or_else(|_| "a".into());
    let own = fs::read_to_string("/proc/self/autogroup").unwrap_or_default();
    let in_session = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/autogroup")).is_ok_and(|group| !group.is_empty())
    };
    let has_others = process_table::children(1).is_ok_and(|all| all.iter().any(in_session));
    let is_weighed = !own.is_empty() && super::members::weighs_sessions();
    if !first.is_empty() || !has_others || !is_weighed {
        return skip(
            test,
            "the first process is in a session, or none of its own is, or they are not weighed",
        );
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let output = Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args(["attach", "cpu", "--pid", "1", "--explain", "--for", "1s"])
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("sessions, and the kernel"), "{message}");
}

#[test]
fn it_says_how_many_workers_are_left_out() {
    let test = "it_says_how_many_workers_are_left_out";
    if !capability::has_sys_nice() {
        return skip(test, "needs CAP_SYS_NICE");
    }
    if program::missing(&["chrt"]) {
        return skip(test, "needs util-linux");
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let server = idle_server(8);
    let worker = process_table::children(server.id()).unwrap()[3].to_string();
    let mut set = Command::new("chrt");
    set.args(["--rr", "--pid", "1", &worker]);
    assert!(set.status().unwrap().success());
    let mut attached = attached(&server);
    let mut said = std::iter::from_fn(|| attached.next_message(PATIENCE).ok());
    assert!(said.any(|line| line.contains("1 of 8 workers are not ordered")));
    end(attached, server);
}
