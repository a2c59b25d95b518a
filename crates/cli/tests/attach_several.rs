//! `sooner attach top` where several things are attached: devices, and workers of servers.

use std::io::Read;
use std::process::{Command, Output};

use crate::attach::{Attaches, PORT, assert_refused, started};
use crate::host::{ADDRESS, DEVICE, Host};
use rustix::process::Signal;
use serde_json::Value;
use sooner_testbed::{ChildGuard, OwnedChild};

/// The command in the host's namespace, with a `/run` in this folder: what other tests attach
/// stays out of sight.
fn apart(host: &Host, words: &[&str]) -> Command {
    let mut command = host.inside("sh");
    let run = host.root.path().join("run");
    std::fs::create_dir_all(&run).unwrap();
    command.args(["-c", "mount --bind \"$0\" /run && exec \"$@\""]);
    command
        .arg(run)
        .arg(env!("CARGO_BIN_EXE_sooner"))
        .arg("attach");
    command.args(words);
    command
}

fn said(host: &Host, words: &[&str]) -> Output {
    apart(host, words).output().unwrap()
}

fn json(host: &Host, words: &[&str]) -> Value {
    let output = said(host, &[&["top", "--json"], words].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(host: &Host, words: &[&str]) -> String {
    let output = said(host, words);
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A server of which nothing but its processes is looked at.
fn server() -> OwnedChild {
    OwnedChild::spawn(Command::new("sh").args(["-c", "sleep 300 & wait"])).unwrap()
}

fn workers(host: &Host, server: &OwnedChild) -> ChildGuard {
    let pid = server.id().to_string();
    let words = ["cpu", "--observe", "--no-bpf", "--pid", &pid];
    let (running, ready, before) = started(apart(host, &words));
    assert!(ready.starts_with("ready:"), "{ready}{before}");
    running
}

fn device(host: &Host, name: &str) -> ChildGuard {
    let words = ["web", "--dev", name, "--uplink", "10mbit", "--port", PORT];
    let (running, ready, before) = started(apart(host, &words));
    assert!(ready.starts_with("ready:"), "{ready}{before}");
    running
}

#[test]
fn each_of_several_is_chosen_by_a_flag_that_the_message_names() {
    let Some(host) = Host::new("attach-several") else {
        return;
    };
    let _listener = host.listener();
    let on_device = device(&host, DEVICE);
    assert!(text(&host, &["top"]).starts_with("s0: port 8080"));
    let servers = [server(), server()];
    let pids = [0, 1].map(|at: usize| servers[at].id().to_string());
    let first = workers(&host, &servers[0]);
    let both = [format!("--dev s0, --cpu --pid {} (sh)", pids[0])];
    let both = both.each_ref().map(String::as_str);
    for words in [&["top"][..], &["top", "--json"], &["top", "--once"]] {
        assert_refused(&said(&host, words), &both);
    }
    assert_eq!(json(&host, &["--web"])["device"], "s0");
    assert_eq!(json(&host, &["--dev", "s0"])["device"], "s0");
    assert_eq!(json(&host, &["--cpu"])["server_pid"].to_string(), pids[0]);
    let second = workers(&host, &servers[1]);
    let each = pids.each_ref().map(|pid| format!("--cpu --pid {pid} (sh)"));
    let each = each.each_ref().map(String::as_str);
    assert_refused(&said(&host, &["top", "--cpu"]), &each);
    for pid in &pids {
        assert_eq!(json(&host, &["--pid", pid])["server_pid"].to_string(), *pid);
        let page = text(&host, &["top", "--once", "--cpu", "--pid", pid]);
        assert!(page.contains(&format!("(process {pid})")), "{page}");
    }
    // What is not there is told from what is.
    let absent = said(&host, &["top", "--postgres"]);
    assert_refused(
        &absent,
        &["no PostgreSQL server", "--dev s0", each[0], each[1]],
    );
    let absent = said(&host, &["top", "--cpu", "--pid", "1"]);
    assert_refused(&absent, &["process 1", each[0]]);
    for running in [on_device, first, second] {
        running.end(Signal::TERM).unwrap();
    }
}

#[test]
fn metrics_are_of_all_devices_and_of_nothing_else() {
    let Some(host) = Host::new("attach-metrics") else {
        return;
    };
    let _listener = host.listener();
    let server = server();
    let of_workers = workers(&host, &server);
    assert_refused(&said(&host, &["top", "--prometheus"]), &["use --json"]);
    let on_s0 = device(&host, DEVICE);
    let of = |name: &str| format!("sooner_attach_responses_total{{device=\"{name}\"}} 0.0");
    assert!(text(&host, &["top", "--prometheus"]).contains(&of("s0")));
    let on_s1 = device(&host, "s1");
    let all = text(&host, &["top", "--prometheus"]);
    assert!(all.contains(&of("s0")) && all.contains(&of("s1")), "{all}");
    let one = text(&host, &["top", "--prometheus", "--dev", "s1"]);
    assert!(!one.contains(&of("s0")) && one.contains(&of("s1")), "{one}");
    for running in [on_s0, on_s1, of_workers] {
        running.end(Signal::TERM).unwrap();
    }
}

#[test]
fn a_device_is_known_by_its_other_names() {
    let Some(host) = Host::new("attach-altname") else {
        return;
    };
    let _listener = host.listener();
    let long = "a-name-that-is-longer-than-fifteen-letters";
    let property = format!("link property add dev {DEVICE} altname {long}");
    host.namespace.ip(&property).unwrap();
    let running = device(&host, long);
    for name in [long, DEVICE] {
        assert_eq!(json(&host, &["--dev", name])["device"], "s0");
        let status = text(&host, &["status", "--dev", name]);
        assert!(status.starts_with("s0: port 8080"), "{status}");
    }
    running.end(Signal::KILL).unwrap();
    for name in [long, DEVICE] {
        let status = text(&host, &["status", "--dev", name]);
        assert!(status.starts_with("s0: a killed process left"), "{status}");
    }
    let removed = text(&host, &["remove", "--dev", long]);
    assert_eq!(removed, "s0: what a killed process left is gone\n");
}

/// What it says on standard error from its start to its end.
fn heard(host: &Host, words: &[&str]) -> String {
    let web = ["web", "--dev", DEVICE, "--uplink", "10mbit"];
    heard_from(host, &[&web[..], words].concat())
}

fn heard_from(host: &Host, words: &[&str]) -> String {
    let (mut running, ready, before) = started(apart(host, words));
    assert!(ready.starts_with("ready:"), "{ready}{before}");
    let mut stderr = running.0.stderr.take().unwrap();
    running.end(Signal::TERM).unwrap();
    let mut all = String::new();
    stderr.read_to_string(&mut all).unwrap();
    all
}

#[test]
fn a_named_port_without_a_listener_is_hinted_at_once() {
    let Some(host) = Host::new("attach-silent") else {
        return;
    };
    let _listener = host.listener();
    let hint = |ports: &str| {
        let later = "a server that begins there later is ordered as well";
        format!("sooner attach: nothing listens on port {ports} now; {later}\n")
    };
    assert_eq!(heard(&host, &["--port", "8080"]), "");
    assert_eq!(heard(&host, &["--port", "8080,81,81"]), hint("81"));
    assert_eq!(heard(&host, &["--port", "82,8080,81"]), hint("81 and 82"));
    let cpu = ["cpu", "--observe", "--no-bpf", "--port"];
    let of_workers = |more: &[&str]| heard_from(&host, &[&cpu[..], more].concat());
    assert!(!of_workers(&["8080"]).contains("nothing listens"));
    let told = of_workers(&["8080,81", "--front-port", "82"]);
    assert!(told.contains(&hint("81 and 82")), "{told}");
    // Those that stand in the program are no claim.
    let root = host.root.path().display().to_string();
    let mut serve = host.inside(env!("CARGO_BIN_EXE_sooner"));
    serve.args(["serve", &root, "--listen", &format!("{ADDRESS}:80")]);
    let mut serve = OwnedChild::spawn(&mut serve).unwrap();
    crate::attach_in_use::until("it listens", || {
        let sockets = host.printed("ss", &["-Htln"]);
        sockets.contains(":80 ").then_some(())
    });
    assert_eq!(heard(&host, &[]), "");
    assert_eq!(heard(&host, &["--port", "80,443"]), hint("443"));
    serve.end();
}

#[test]
fn what_a_kill_left_is_restored_while_others_live() {
    let Some(host) = Host::new("attach-killed") else {
        return;
    };
    let _listener = host.listener();
    let servers = [server(), server()];
    let first = workers(&host, &servers[0]);
    let second = workers(&host, &servers[1]);
    let (living, killed) = (device(&host, DEVICE), device(&host, "s1"));
    killed.end(Signal::KILL).unwrap();
    let nothing = "no killed process left anything changed\n";
    // As the unit of another server does when it stops.
    assert_eq!(text(&host, &["remove", "--cpu", "--killed"]), nothing);
    let removed = text(&host, &["remove", "--killed"]);
    assert_eq!(removed, "s1: what a killed process left is gone\n");
    assert_eq!(text(&host, &["remove", "--killed"]), nothing);
    let status = text(&host, &["status"]);
    assert_eq!(status.lines().count(), 3, "{status}");
    // One of a kind, by its server.
    let pids = [0, 1].map(|at: usize| servers[at].id().to_string());
    let removed = text(&host, &["remove", "--pid", "1"]);
    let nothing = "nothing is attached to a server with first process 1\n";
    assert_eq!(removed, nothing);
    let removed = text(&host, &["remove", "--cpu", "--pid", &pids[0]]);
    assert!(removed.starts_with(&format!("cpu-{}: process", pids[0])));
    assert_eq!(removed.lines().count(), 1, "{removed}");
    let status = text(&host, &["status"]);
    let is_shown = pids.map(|pid| status.contains(&format!("(process {pid})")));
    assert_eq!(is_shown, [false, true], "{status}");
    drop(first);
    for running in [living, second] {
        running.end(Signal::TERM).unwrap();
    }
}

#[test]
fn a_unit_that_stops_ends_no_attachment_of_another() {
    for (kind, unit) in [
        (
            "cpu",
            include_str!("../../../packaging/sooner-attach-cpu.service"),
        ),
        (
            "postgres",
            include_str!("../../../packaging/sooner-attach-postgres.service"),
        ),
    ] {
        let mut lines = unit.lines();
        let line = lines.find(|line| line.starts_with("ExecStopPost="));
        let wanted = format!("ExecStopPost=-/usr/bin/sooner attach remove --{kind} --killed");
        assert_eq!(line, Some(wanted.as_str()));
    }
}

#[test]
fn one_that_does_not_answer_hides_and_spares_no_other() {
    let Some(host) = Host::new("attach-stopped") else {
        return;
    };
    let _listener = host.listener();
    let server = server();
    let of_workers = workers(&host, &server);
    let (stopped, living) = (device(&host, "s1"), device(&host, DEVICE));
    stopped.signal(Signal::STOP).unwrap();
    let unanswered = "cannot find out what is attached to s1: its process does not answer";
    let said_beside = |words: &[&str]| {
        let output = said(&host, words);
        assert_refused(&output, &[]);
        let shown = String::from_utf8(output.stdout).unwrap();
        (shown, String::from_utf8(output.stderr).unwrap())
    };
    let (shown, problem) = said_beside(&["status"]);
    let of_server = format!("(process {})", server.id());
    assert!(
        shown.contains("s0: port") && shown.contains(&of_server),
        "{shown}"
    );
    assert!(problem.contains(unanswered), "{problem}");
    let (shown, problem) = said_beside(&["status", "--json"]);
    let shown: Vec<Value> = serde_json::from_str(&shown).unwrap();
    assert_eq!((shown.len(), problem.contains(unanswered)), (2, true));
    let (shown, problem) = said_beside(&["top", "--prometheus"]);
    assert!(shown.contains("device=\"s0\"") && problem.contains(unanswered));
    assert_eq!(json(&host, &["--cpu"])["server_pid"], server.id());
    let (shown, problem) = said_beside(&["remove"]);
    assert!(shown.contains("s0: process"), "{shown}");
    assert!(shown.contains(&format!("cpu-{}: process", server.id())));
    assert!(problem.contains("has not ended 10 s after"), "{problem}");
    // Asked to already, it ends when it goes on.
    stopped.end(Signal::CONT).unwrap();
    drop((living, of_workers));
}
