//! `sooner attach cpu` beside a real gunicorn: short requests first, and that all is put back.

mod counted;
mod groups;
mod known;
mod members;
mod restarted;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sooner_kernel::workers::lacks_for_workers;
use sooner_kernel::{capability, process_table};
use sooner_testbed::program;
use sooner_testbed::{OwnedChild, port, skip};

const PATIENCE: Duration = Duration::from_secs(30);
/// Burns so many milliseconds of processor time as the path says; then, where the query says so,
/// begins a program that begins another.
const APPLICATION: &str = r#"
import subprocess, time
def app(environ, start_response):
    ms = int(environ["PATH_INFO"][1:] or 0)
    until = time.process_time() + ms / 1000
    while time.process_time() < until:
        pass
    if environ["QUERY_STRING"] == "begin":
        subprocess.Popen(["sh", "-c", "sleep 60 & wait"])
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"#;

/// They find and clean what the others of this user have attached.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// gunicorn with so many workers on the last processor.
struct Server {
    folder: tempfile::TempDir,
    address: SocketAddr,
    workers: u32,
    process: OwnedChild,
    _turn: MutexGuard<'static, ()>,
}

impl Server {
    /// None, after saying why, where it cannot be done here.
    fn start(test: &str, workers: u32) -> Option<Server> {
        if !capability::has_sys_nice() {
            skip(test, "needs CAP_SYS_NICE");
            return None;
        }
        if program::missing(&["gunicorn"]) {
            skip(test, "needs gunicorn");
            return None;
        }
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("burn.py"), APPLICATION).unwrap();
        let address = port::free().unwrap();
        let process = Server::process(&folder, address, workers, &[]);
        Some(Server {
            folder,
            address,
            workers,
            process,
            _turn: turn,
        })
    }

    /// `within` is the command that runs it.
    fn process(
        folder: &tempfile::TempDir,
        address: SocketAddr,
        workers: u32,
        within: &[&str],
    ) -> OwnedChild {
        let last = thread::available_parallelism().map_or(0, |count| count.get() - 1);
        let mut words = within.iter().copied().chain(["taskset", "-c"]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args([&last.to_string(), "gunicorn"]);
        command.args(["--workers", &workers.to_string(), "--bind"]);
        command.arg(address.to_string()).arg("burn:app");
        command.args(["--worker-tmp-dir", "/dev/shm", "--timeout", "120"]);
        command.current_dir(folder.path()).stderr(Stdio::null());
        let process = OwnedChild::spawn(&mut command).unwrap();
        let begin = Instant::now();
        // Each worker is ready once it has answered; the kernel deals connections out.
        let are_there = || {
            let children = process_table::children(process.id()).unwrap();
            children.len() >= workers as usize || !within.is_empty()
        };
        while !are_there() || ask(address, 0).is_none() {
            assert!(begin.elapsed() < PATIENCE, "gunicorn does not answer");
            sleep(Duration::from_millis(50));
        }
        process
    }

    fn restart(&mut self) {
        self.process.end_by(Signal::TERM);
        self.process.end();
        self.process = Server::process(&self.folder, self.address, self.workers, &[]);
    }

    fn workers(&self) -> Vec<u32> {
        process_table::children(self.process.id()).unwrap()
    }

    /// All that says how the processor treats the server's processes.
    fn standing(&self) -> Vec<String> {
        let mut all = self.workers();
        all.push(self.process.id());
        all.sort_unstable();
        all.into_iter().map(standing).collect()
    }

    fn attach(&self, more: &[&str]) -> OwnedChild {
        self.attach_within(&[], more)
    }

    /// `within` is the command that runs it.
    fn attach_within(&self, within: &[&str], more: &[&str]) -> OwnedChild {
        let own = [env!("CARGO_BIN_EXE_sooner"), "attach", "cpu", "--port"];
        let mut words = within.iter().copied().chain(own);
        let mut command = Command::new(words.next().unwrap());
        let port = self.address.port().to_string();
        command.args(words).arg(&port).args(more);
        let mut child = OwnedChild::spawn(&mut command).unwrap();
        let line = child.next_line(PATIENCE);
        let line = line.unwrap_or_else(|_| panic!("it ended: {}", child.message()));
        assert!(line.starts_with("ready: "), "{line}");
        child
    }
}

/// How long a request takes; none where it gets no answer.
fn ask(address: SocketAddr, ms: u32) -> Option<Duration> {
    ask_for(address, &ms.to_string())
}

/// The same of a path without its first `/`.
fn ask_for(address: SocketAddr, path: &str) -> Option<Duration> {
    let begin = Instant::now();
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET /{path} HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    answer.ends_with(b"ok").then(|| begin.elapsed())
}

fn standing(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let autogroup = fs::read_to_string(format!("/proc/{pid}/autogroup")).unwrap_or_default();
    let autogroup = autogroup.rsplit(' ').next().unwrap().trim().to_owned();
    format!(
        "policy {} nice {} autogroup {autogroup}",
        fields[38], fields[16]
    )
}

fn nice(pid: u32) -> i32 {
    sooner_kernel::priority::nice(pid).unwrap()
}

/// Whether it is on the top level: with less before others where nothing weighs the server as one,
/// as where its session is the one of the first process.
fn is_on_top(pid: u32) -> bool {
    let is_on = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    let has_session = is_on.is_ok_and(|text| text.trim() == "1")
        && fs::read_to_string(format!("/proc/{pid}/autogroup")).is_ok_and(|text| !text.is_empty());
    let is_weighed = has_session || is_in_a_control_group(pid);
    nice(pid) == if is_weighed { -20 } else { -6 }
}

fn is_in_a_control_group(pid: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let of_processors = |line: &&str| line.starts_with("0::") || line.contains(":cpu");
    let mut lines = text.lines().filter(of_processors);
    lines.any(|line| !line.ends_with(":/"))
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(20));
    }
}

/// The median of short requests beside long ones; all are answered.
fn short_beside_long(address: SocketAddr) -> Duration {
    thread::scope(|scope| {
        let long: Vec<_> = (0..3)
            .map(|_| scope.spawn(move || ask(address, 900)))
            .collect();
        sleep(Duration::from_millis(400));
        let mut short: Vec<Duration> = (0..7).map(|_| ask(address, 20).unwrap()).collect();
        short.sort_unstable();
        for one in long {
            assert!(one.join().unwrap().is_some());
        }
        short[3]
    })
}

#[test]
fn short_requests_go_first_and_all_is_put_back() {
    let test = "short_requests_go_first_and_all_is_put_back";
    // Without programs it orders only where three of ten workers wait for requests.
    let workers = lacks_for_workers().map_or(5, |_| 12);
    let Some(server) = Server::start(test, workers) else {
        return;
    };
    let before = server.standing();
    let plain = short_beside_long(server.address);
    let mut attached = server.attach(&["--bounds", "60ms,200ms"]);
    for worker in server.workers() {
        assert!(is_on_top(worker), "{}", standing(worker));
    }
    let ordered = thread::scope(|scope| {
        let ordered = scope.spawn(|| short_beside_long(server.address));
        // The long ones fall, whichever workers have them.
        let workers = server.workers();
        until("three on the last level", || {
            workers.iter().filter(|worker| nice(**worker) == 15).count() == 3
        });
        ordered.join().unwrap()
    });
    assert!(
        ordered.as_secs_f64() < 0.7 * plain.as_secs_f64(),
        "{ordered:?} of {plain:?}"
    );
    // And stand on top again when they are done.
    until("all on top", || server.workers().into_iter().all(is_on_top));
    attached.end_by(Signal::TERM);
    assert!(attached.end().unwrap().success());
    assert_eq!(server.standing(), before);
}

/// As in a container into which the operator steps: the session of that was begun outside.
#[test]
fn it_works_in_a_namespace_of_processes() {
    let test = "it_works_in_a_namespace_of_processes";
    let Some(mut server) = Server::start(test, 2) else {
        return;
    };
    if program::missing(&["unshare", "nsenter"]) {
        skip(test, "needs util-linux");
        return;
    }
    server.process.end();
    let apart = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
    server.process = Server::process(&server.folder, server.address, 2, &apart);
    // unshare waits for its child, whatever else it is told.
    server.process.end_by(Signal::KILL);
    let [first] = server.workers()[..] else {
        panic!("unshare has one child");
    };
    let workers = process_table::children(first).unwrap();
    let standing = || -> Vec<String> { workers.iter().copied().map(standing).collect() };
    let before = standing();
    let within = [
        "nsenter",
        "--pid",
        "--mount",
        "--target",
        &first.to_string(),
    ];
    let mut attached = server.attach_within(&within, &[]);
    until("all on top", || workers.iter().copied().all(is_on_top));
    // nsenter does not pass signals on.
    for own in process_table::children(attached.id()).unwrap() {
        kill_process(Pid::from_raw(own.cast_signed()).unwrap(), Signal::TERM).unwrap();
    }
    until("it ends", || attached.has_ended());
    assert!(attached.end().unwrap().success());
    assert_eq!(standing(), before);
}

#[test]
fn requests_are_counted_while_it_only_looks() {
    let test = "requests_are_counted_while_it_only_looks";
    let Some(server) = Server::start(test, 2) else {
        return;
    };
    if let Some(lacks) = lacks_for_workers() {
        skip(test, &format!("needs {lacks}"));
        return;
    }
    let before = server.standing();
    let mut attached = server.attach(&["--observe"]);
    for _ in 0..130 {
        ask(server.address, 5).unwrap();
    }
    let look = || -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
        let output = command.args(["attach", "top", "--json"]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    until("130 requests", || {
        look()["requests"].as_u64().unwrap() >= 128
    });
    let seen = look();
    assert!(seen["requests"].as_u64().unwrap() <= 130, "{seen}");
    let used_ms = seen["used_p50_ms"].as_f64().unwrap();
    assert!((5.0..9.0).contains(&used_ms), "{seen}");
    assert_eq!(
        (&seen["changes"], &seen["observes"]),
        (&0.into(), &true.into())
    );
    assert_eq!(server.standing(), before);
    attached.end_by(Signal::TERM);
    assert!(attached.end().unwrap().success());
}

#[test]
fn a_kill_leaves_nothing() {
    let Some(server) = Server::start("a_kill_leaves_nothing", 2) else {
        return;
    };
    let before = server.standing();
    let changed = || server.workers().into_iter().any(is_on_top);
    let below = |above: &OwnedChild| process_table::children(above.id()).unwrap()[0];
    let kill = |pid: u32| {
        let pid = Pid::from_raw(pid.cast_signed()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    };
    // The one that orders: the one above puts back.
    let mut attached = server.attach(&[]);
    assert!(changed());
    kill(below(&attached));
    until("its end", || attached.has_ended());
    assert_eq!(attached.end().unwrap().code(), Some(1));
    assert_eq!(server.standing(), before);
    assert!(attached.message().contains("restored"));
    // The one above: the one that orders ends.
    let attached = server.attach(&[]);
    kill(attached.id());
    until("put back", || server.standing() == before);
    // Both: the next start puts back, or `remove`.
    let attached = server.attach(&[]);
    let ids = [attached.id(), below(&attached)];
    // The one below is told of the other's end; it is killed first.
    ids.iter().rev().for_each(|pid| kill(*pid));
    drop(attached);
    let remove = Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args(["attach", "remove", "--cpu"])
        .output()
        .unwrap();
    assert!(remove.status.success(), "{remove:?}");
    assert_eq!(server.standing(), before);
}

#[test]
fn a_server_that_is_restarted_is_found_again() {
    let test = "a_server_that_is_restarted_is_found_again";
    let Some(mut server) = Server::start(test, 2) else {
        return;
    };
    let session = || standing(std::process::id());
    let before = session();
    let mut attached = server.attach(&[]);
    server.restart();
    let line = attached.next_line(PATIENCE);
    let line = line.unwrap_or_else(|_| panic!("it ended: {}", attached.message()));
    assert!(line.starts_with("ready: "), "{line}");
    until("new workers on top", || {
        server.workers().into_iter().all(is_on_top)
    });
    // A worker that is killed is replaced, and the new one is on top as well.
    let first = server.workers()[0];
    kill_process(Pid::from_raw(first.cast_signed()).unwrap(), Signal::KILL).unwrap();
    until("a new worker on top", || {
        let workers = server.workers();
        workers.len() == 2 && !workers.contains(&first) && workers.into_iter().all(is_on_top)
    });
    attached.end_by(Signal::TERM);
    assert!(attached.end().unwrap().success());
    assert!(server.workers().iter().all(|worker| nice(*worker) == 0));
    // The session that the first ones were in is this one.
    assert_eq!(session(), before);
}

/// As --explain does: a script that looks for a while goes on then, and has figures.
#[test]
fn who_observes_for_a_while_gets_a_report() {
    let Some(server) = Server::start("who_observes_for_a_while_gets_a_report", 2) else {
        return;
    };
    let before = server.standing();
    let port = server.address.port().to_string();
    let observe = |more: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_sooner"))
            .args(["attach", "cpu", "--port", &port, "--observe", "--for", "1s"])
            .args(more)
            .output()
            .unwrap()
    };
    let output = observe(&["--json"]);
    assert!(output.status.success(), "{output:?}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["workers"], 2, "{seen}");
    let text = String::from_utf8(observe(&[]).stdout).unwrap();
    assert!(text.lines().count() > 1, "{text}");
    assert!(!text.contains("ready:"), "{text}");
    assert_eq!(server.standing(), before);
}

#[test]
fn mistakes_are_one_line_and_change_nothing() {
    let Some(server) = Server::start("mistakes_are_one_line_and_change_nothing", 1) else {
        return;
    };
    let before = server.standing();
    let port = server.address.port().to_string();
    let cases: [(&[&str], &str); 12] = [
        (&[], "--pid"),
        (&["--pid", "4194304"], "no process 4194304"),
        (&["--pid", "0"], "number from 1 to"),
        (&["--pid", "-1"], "number from 1 to"),
        (&["--cgroup", "no/such"], "no control group `no/such`"),
        (&["--port", &port, "--share", "20"], "50 to 99"),
        (&["--port", &port, "--rw", "3"], "--rule changes"),
        (
            &["--port", &port, "--bounds", "9ms,3ms"],
            "longer than the first",
        ),
        (
            &["--port", &port, "--rule", "changes", "--no-bpf"],
            "BPF programs",
        ),
        (&["--port", &port, "--json"], "--explain"),
        (
            &["--port", &port, "--realtime", "--for", "2s"],
            "--realtime",
        ),
        (&["--port", &port, "--realtime", "--json"], "--realtime"),
    ];
    // Where the kernel's own are seen, 2 is the one that begins the others.
    let kernel: (&[&str], &str) = (&["--pid", "2"], "a thread of the kernel");
    let sees_kernel = std::fs::read("/proc/2/cmdline").is_ok_and(|words| words.is_empty());
    for (arguments, wanted) in cases.into_iter().chain(sees_kernel.then_some(kernel)) {
        let output = Command::new(env!("CARGO_BIN_EXE_sooner"))
            .args(["attach", "cpu"])
            .args(arguments)
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(wanted), "{arguments:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
    }
    // A second one is refused.
    let _attached = server.attach(&[]);
    let output = Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args(["attach", "cpu", "--port", &port])
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("is attached"), "{message}");
    drop(_attached);
    until("put back", || server.standing() == before);
}
