//! Workers that end, and servers that nothing can be done for.

use super::{ONE_AT_A_TIME, PATIENCE, Server, until};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::PoisonError;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sooner_kernel::{capability, process_table};
use sooner_testbed::{OwnedChild, port, program, skip};

/// Workers of the only attachment.
fn counted() -> u64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    let output = command.args(["attach", "top", "--json"]).output().unwrap();
    let top: Value = serde_json::from_slice(&output.stdout).unwrap();
    top["workers"].as_u64().unwrap()
}

pub fn weighs_sessions() -> bool {
    let is_on = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    is_on.is_ok_and(|text| text.trim() == "1") && !super::is_in_a_control_group(std::process::id())
}

/// Ends a process of another session, which is not ended with the one that began it.
pub fn end(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn workers_that_have_ended_are_not_counted() {
    let Some(server) = Server::start("workers_that_have_ended_are_not_counted", 5) else {
        return;
    };
    let mut attached = server.attach(&[]);
    assert_eq!(counted(), 5);
    // gunicorn ends a worker at each of these.
    for left in [4, 3] {
        server.process.signal(Signal::TTOU).unwrap();
        until("gunicorn ends one", || server.workers().len() == left);
        until("it is forgotten", || counted() == left as u64);
    }
    attached.end_by(Signal::TERM);
    assert!(attached.end().unwrap().success());
}

/// What workers of this server have begun, however far, and has not ended.
fn begun(server: &Server) -> Vec<u32> {
    let mut found = Vec::new();
    let mut line = server.workers();
    while let Some(pid) = line.pop() {
        let children = process_table::children(pid).unwrap_or_default();
        line.extend(&children);
        found.extend(children);
    }
    // One that has ended has no words, and its number until its parent asks for it.
    found.retain(|pid| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|it| !it.is_empty()));
    found
}

/// Of a server that is nicer than others, so that their value tells it from others.
#[test]
fn what_a_worker_begins_is_as_the_worker_was() {
    let test = "what_a_worker_begins_is_as_the_worker_was";
    // Without programs it orders only where three of ten workers wait for requests.
    let Some(mut server) = Server::start(test, 4) else {
        return;
    };
    server.process.end();
    server.process = Server::process(&server.folder, server.address, 4, &["nice", "-n", "3"]);
    for more in [&["--bounds", "60ms,200ms"][..], &["--no-bpf"]] {
        let mut attached = server.attach(more);
        for path in ["0?begin", "400?begin"] {
            super::ask_for(server.address, path).unwrap();
        }
        until("both have begun two", || begun(&server).len() == 4);
        until("each is as the worker was", || {
            begun(&server).iter().all(|pid| super::nice(*pid) == 3)
        });
        attached.end_by(Signal::TERM);
        assert!(attached.end().unwrap().success());
        let workers = server.workers();
        assert!(workers.iter().all(|pid| super::nice(*pid) == 3));
        begun(&server).into_iter().for_each(end);
        until("they have ended", || begun(&server).is_empty());
    }
}

#[test]
fn it_says_where_no_worker_can_be_ordered() {
    let test = "it_says_where_no_worker_can_be_ordered";
    if !capability::has_sys_nice() {
        return skip(test, "needs CAP_SYS_NICE");
    }
    if program::missing(&["chrt"]) {
        return skip(test, "needs util-linux");
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // Nice values have no effect on a policy of either kind.
    for (policy, number) in [(["--fifo", "1"], 1), (["--idle", "0"], 5)] {
        no_worker_is_ordered(&policy, number);
    }
}

fn no_worker_is_ordered(policy: &[&str], number: u32) {
    let mut command = Command::new("chrt");
    command.args(policy).args(["sleep", "600"]);
    let mut worker = OwnedChild::spawn(&mut command).unwrap();
    let shown = format!("policy {number} ");
    until("it has its policy", || {
        super::standing(worker.id()).starts_with(&shown)
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(["attach", "cpu", "--pid", &worker.id().to_string()]);
    let mut attached = OwnedChild::spawn(&mut command).unwrap();
    let line = attached.next_line(PATIENCE).unwrap();
    assert!(line.contains("0 workers"), "{line}");
    let mut said = std::iter::from_fn(|| attached.next_message(PATIENCE).ok());
    assert!(said.any(|line| line.contains("nothing is ordered: each worker")));
    attached.end_by(Signal::TERM);
    assert!(attached.end().unwrap().success());
    worker.end();
}

#[test]
fn several_sessions_are_refused_before_anything_is_tried() {
    let test = "several_sessions_are_refused_before_anything_is_tried";
    if !capability::has_sys_nice() {
        return skip(test, "needs CAP_SYS_NICE");
    }
    if !weighs_sessions() {
        return skip(test, "sessions are not weighed here");
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new("sh");
    command.args(["-c", "setsid sleep 600 & setsid sleep 600 & wait"]);
    let mut server = OwnedChild::spawn(&mut command).unwrap();
    let session = |pid: u32| process_table::birth(pid).map_or(0, |birth| birth.session);
    until("each has a session", || {
        let workers = process_table::children(server.id()).unwrap();
        workers.len() == 2 && workers.iter().all(|worker| session(*worker) == *worker)
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(["attach", "cpu", "--pid", &server.id().to_string()]);
    let output = command.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("in 2 sessions"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    process_table::children(server.id())
        .unwrap()
        .into_iter()
        .for_each(end);
    server.end();
}

/// A server in a session of its own that does nothing but listen.
fn front(address: SocketAddr) -> OwnedChild {
    let port = address.port().to_string();
    let mut command = Command::new("setsid");
    command.args(["--wait", "python3", "-m", "http.server", &port]);
    command.args(["--bind", &address.ip().to_string()]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let front = OwnedChild::spawn(&mut command).unwrap();
    until("it listens", || TcpStream::connect(address).is_ok());
    front
}

/// The process that setsid has begun.
fn listener(front: &OwnedChild) -> u32 {
    let children = process_table::children(front.id()).unwrap();
    children.first().copied().unwrap_or(front.id())
}

#[test]
fn a_front_that_begins_again_gets_its_weight_again() {
    let test = "a_front_that_begins_again_gets_its_weight_again";
    if program::missing(&["setsid", "python3"]) {
        return skip(test, "needs util-linux and python3");
    }
    let Some(server) = Server::start(test, 2) else {
        return;
    };
    if !weighs_sessions() {
        return skip(test, "sessions are not weighed here");
    }
    let address = port::free().unwrap();
    let mut first = front(address);
    let usual = super::standing(listener(&first));
    let port = address.port().to_string();
    // Without programs it looks for what is new every second.
    let mut attached = server.attach(&["--front-port", &port, "--no-bpf"]);
    let weighed = super::standing(listener(&first));
    assert_ne!(weighed, usual);
    end(listener(&first));
    first.end();
    let mut second = front(address);
    until("it has its weight", || {
        super::standing(listener(&second)) == weighed
    });
    attached.end_by(Signal::TERM);
    assert!(attached.end().unwrap().success());
    assert_eq!(super::standing(listener(&second)), usual);
    end(listener(&second));
    second.end();
}
