//! Requests with a path that says how long they take, on real servers: the long one begins at the back, and
//! the short one goes before it although neither has used anything.

use super::{ONE_AT_A_TIME, PATIENCE, nice, until};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{MutexGuard, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use sooner_kernel::workers::lacks_for_workers;
use sooner_kernel::{capability, process_table};
use sooner_testbed::{OwnedChild, nginx, php, port, program, skip};

const WORKERS: u32 = 4;
/// Processor time of a request, ms.
const SHORT_MS: u64 = 5;
const LONG_MS: u64 = 900;
/// By what it has used, a request falls to the second level after so many ms, and to the third. By
/// what it lacks it is on the third from twice the first on.
const BOUNDS_MS: [u64; 2] = [300, 500];
/// What it is for both: burns so many milliseconds of processor time as the path ends with, and says
/// before that it will use as many as `say` is.
const SCRIPT: &str = r#"<?php
function used() {
  $u = getrusage();
  return $u['ru_utime.tv_sec'] + $u['ru_stime.tv_sec'] + ($u['ru_utime.tv_usec'] + $u['ru_stime.tv_usec']) / 1e6;
}
if (isset($_GET['say'])) file_put_contents('/proc/self/comm', "sooner {$_GET['say']}ms");
$until = used() + (int)basename(strtok($_SERVER['REQUEST_URI'], '?')) / 1000;
while (used() < $until) { for ($i = 0; $i < 500; $i++); }
echo 'ok';
"#;
const APPLICATION: &str = r#"
import time
def app(environ, start_response):
    if "say=" in environ["QUERY_STRING"]:
        with open("/proc/thread-self/comm", "w") as name:
            name.write("sooner %sms" % environ["QUERY_STRING"].split("say=")[1])
    until = time.process_time() + int(environ["PATH_INFO"].rsplit("/", 1)[1]) / 1000
    while time.process_time() < until:
        pass
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    Gunicorn,
    Apache,
    PhpFpm,
}

struct Site {
    address: SocketAddr,
    process: OwnedChild,
    _front: Option<nginx::Nginx>,
    _folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// The command of a server, and what it lacks.
fn command(wanted: Program, at: &Path, address: SocketAddr) -> Result<Vec<String>, &'static str> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let folder = at.display();
    match wanted {
        Program::Gunicorn => {
            if program::missing(&["gunicorn"]) {
                return Err("needs gunicorn");
            }
            fs::write(at.join("burn.py"), APPLICATION).unwrap();
            let (workers, address) = (WORKERS.to_string(), address.to_string());
            Ok(words(&[
                "gunicorn",
                "--workers",
                &workers,
                "--bind",
                &address,
                "burn:app",
                "--worker-tmp-dir",
                "/dev/shm",
            ]))
        }
        Program::Apache => {
            let dumpable = format!("CoreDumpDirectory {folder}\n");
            let more = [&*dumpable, "FallbackResource /burn.php\n"];
            let config = php::write_apache(at, address, WORKERS, more).unwrap();
            let config = config.ok_or("needs libapache2-mod-php")?;
            let config = config.display().to_string();
            Ok(words(&["apache2", "-D", "FOREGROUND", "-f", &config]))
        }
        Program::PhpFpm => {
            let fpm = php::fpm().ok_or("needs php-fpm")?;
            let config = php::write_pool(at, WORKERS, "process.dumpable = yes\n").unwrap();
            let config = config.display().to_string();
            Ok(words(&[&fpm.display().to_string(), "-F", "-y", &config]))
        }
    }
}

impl Site {
    /// None, after saying why, where it cannot be done here.
    fn start(test: &str, wanted: Program) -> Option<Site> {
        if !capability::has_sys_nice() {
            skip(test, "needs CAP_SYS_NICE");
            return None;
        }
        if let Some(lacks) = lacks_for_workers() {
            skip(test, &format!("needs {lacks}"));
            return None;
        }
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        php::open_to_all(at).unwrap();
        fs::create_dir(at.join("root")).unwrap();
        fs::write(at.join("root/burn.php"), SCRIPT).unwrap();
        let address = port::free().unwrap();
        let words = match command(wanted, at, address) {
            Ok(words) => words,
            Err(lacks) => {
                skip(test, lacks);
                return None;
            }
        };
        let last = thread::available_parallelism().map_or(0, |count| count.get() - 1);
        let mut command = Command::new("taskset");
        command.args(["-c", &last.to_string()]).args(words);
        command.current_dir(at).stderr(Stdio::null());
        let process = OwnedChild::spawn(&mut command).unwrap();
        let front = match wanted {
            Program::PhpFpm if program::missing(&["nginx"]) => {
                skip(test, "needs nginx");
                return None;
            }
            Program::PhpFpm => Some(front(at, address)),
            _ => None,
        };
        let site = Site {
            address,
            process,
            _front: front,
            _folder: folder,
            _turn: turn,
        };
        until("the server answers", || {
            site.workers().len() >= WORKERS as usize && ask(address, "/first/1").is_some()
        });
        Some(site)
    }

    fn workers(&self) -> Vec<u32> {
        process_table::children(self.process.id()).unwrap()
    }

    fn attach(&self, more: &[&str]) -> OwnedChild {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
        let bounds = format!("{}ms,{}ms", BOUNDS_MS[0], BOUNDS_MS[1]);
        command.args(["attach", "cpu", "--pid", &self.process.id().to_string()]);
        command.args(["--bounds", &bounds]).args(more);
        let mut child = OwnedChild::spawn(&mut command).unwrap();
        let line = child.next_line(PATIENCE);
        let line = line.unwrap_or_else(|_| panic!("it ended: {}", child.message()));
        assert!(line.starts_with("ready: "), "{line}");
        child
    }
}

/// nginx, which hands all requests to one script.
fn front(folder: &Path, address: SocketAddr) -> nginx::Nginx {
    let at = folder.display();
    let own = folder.join("nginx");
    fs::create_dir(&own).unwrap();
    let http = format!(
        "  access_log off;\n  server {{\n    listen {address};\n    location / {{\n      \
         include /etc/nginx/fastcgi_params;\n      \
         fastcgi_param SCRIPT_FILENAME {at}/root/burn.php;\n      \
         fastcgi_pass unix:{at}/fpm.sock;\n    }}\n  }}\n"
    );
    nginx::Nginx::start(&own, &http, address).unwrap()
}

/// Whether a request is answered, alone on its connection.
fn ask(address: SocketAddr, path: &str) -> Option<()> {
    let mut stream = TcpStream::connect(address).ok()?;
    // In one piece, as clients send it.
    let request = format!("GET {path} HTTP/1.0\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    answer.ends_with(b"ok").then_some(())
}

/// Requests of one connection, one after the other.
fn ask_again_and_again(address: SocketAddr, paths: &[String]) {
    let mut stream = BufReader::new(TcpStream::connect(address).unwrap());
    for path in paths {
        let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n");
        stream.get_mut().write_all(request.as_bytes()).unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(stream.read_line(&mut line).unwrap() > 0, "it closes");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        assert_eq!(body, b"ok");
    }
}

fn short() -> String {
    format!("/short/{SHORT_MS}?page=7")
}

fn long() -> String {
    format!("/long/{LONG_MS}?page=8")
}

fn top() -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    let output = command.args(["attach", "top", "--json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Processor time of a process, ms.
fn used_ms(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    let used_ns: u64 = text.split_whitespace().next().unwrap().parse().unwrap();
    used_ns / 1_000_000
}

/// What a worker had used of its request at most when it was first seen on the last level, ms: two
/// long requests at once. A short one comes then, and is answered before both.
fn used_when_last(site: &Site, long: &str) -> u64 {
    let begin = Instant::now();
    loop {
        assert!(begin.elapsed() < PATIENCE, "none falls: {}", top());
        // One worker may have taken both, and goes before none.
        if let Some(used_ms) = two_at_once(site, long) {
            return used_ms;
        }
    }
}

fn two_at_once(site: &Site, long: &str) -> Option<u64> {
    let workers = site.workers();
    until("all on top", || {
        workers.iter().all(|worker| nice(*worker) < 0)
    });
    let before: Vec<u64> = workers.iter().map(|worker| used_ms(*worker)).collect();
    let address = site.address;
    thread::scope(|scope| {
        let both = [0, 1].map(|_| scope.spawn(move || ask(address, long)));
        let mut used_when_last = None;
        while used_when_last.is_none() && !both.iter().any(|one| one.is_finished()) {
            // Before the look at its level, so that it is not more than it was then.
            let now: Vec<u64> = workers.iter().map(|worker| used_ms(*worker)).collect();
            let used = now.iter().zip(&before).map(|(now, before)| now - before);
            let mut last = workers
                .iter()
                .zip(used)
                .filter(|(pid, _)| nice(**pid) == 15);
            used_when_last = last.next().map(|(_, used)| used);
            sleep(Duration::from_millis(1));
        }
        if used_when_last.is_some() {
            ask(address, &short()).unwrap();
            assert!(
                !both.iter().any(|one| one.is_finished()),
                "a long one is over"
            );
        }
        for one in both {
            assert!(one.join().unwrap().is_some());
        }
        used_when_last
    })
}

/// Long ones begin at the back by what their like used, and only by what they use without.
fn a_path_is_told_from_another(test: &str, wanted: Program) {
    let Some(site) = Site::start(test, wanted) else {
        return;
    };
    let mut attached = site.attach(&[]);
    let paths: Vec<String> = (0..8).flat_map(|_| [short(), long()]).collect();
    match wanted {
        // Each on a connection of its own, and all on one.
        Program::Apache => ask_again_and_again(site.address, &paths),
        _ => paths
            .iter()
            .for_each(|path| ask(site.address, path).unwrap()),
    }
    until("all are over", || top()["requests"].as_u64() >= Some(15));
    let used_ms = used_when_last(&site, &long());
    assert!(used_ms < BOUNDS_MS[0], "{used_ms} ms: {}", top());
    until("all are over", || top()["requests"].as_u64() >= Some(18));
    let seen = top();
    assert!(seen["requests_by_history"].as_u64() >= Some(3), "{seen}");
    // The first request is not seen.
    assert_eq!(seen["kinds"], 2, "{seen}");
    // All pairs of two kinds, and half of those of one, as far as these are not alike: 0.77 of eight
    // of each.
    assert!(seen["ranked_rightly_share"].as_f64() > Some(0.7), "{seen}");
    attached.end_by(Signal::TERM);
    assert!(attached.end().unwrap().success());
    assert!(site.workers().iter().all(|worker| nice(*worker) == 0));
    let mut attached = site.attach(&["--rule", "used"]);
    paths
        .iter()
        .for_each(|path| ask(site.address, path).unwrap());
    let used_ms = used_when_last(&site, &long());
    assert!(used_ms >= BOUNDS_MS[0], "{used_ms} ms");
    assert_eq!(top()["requests_by_history"], 0);
    // Where the application says it, without any history.
    let said = format!("{}&say={LONG_MS}", long());
    let used_ms = used_when_last(&site, &said);
    assert!(used_ms < BOUNDS_MS[0], "{used_ms} ms: {}", top());
    attached.end_by(Signal::TERM);
    assert!(attached.end().unwrap().success());
}

#[test]
fn a_path_is_told_from_another_on_gunicorn() {
    let test = "a_path_is_told_from_another_on_gunicorn";
    a_path_is_told_from_another(test, Program::Gunicorn);
}

#[test]
fn a_path_is_told_from_another_on_apache() {
    let test = "a_path_is_told_from_another_on_apache";
    a_path_is_told_from_another(test, Program::Apache);
}

#[test]
fn a_path_is_told_from_another_on_php_fpm() {
    let test = "a_path_is_told_from_another_on_php_fpm";
    a_path_is_told_from_another(test, Program::PhpFpm);
}
