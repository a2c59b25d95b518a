//! h2spec: what RFC 9113 and RFC 7541 demand of a server, case by case, in clear text and over TLS.

use super::backend;
use super::client::command;
use super::site::{Site, noise};
use super::way::Way;
use sooner_testbed::junit::{self, Outcome};
use sooner_testbed::skip;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Where `cargo xtask test` and `cargo xtask h2spec` build it.
const H2SPEC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/h2spec/h2spec");
/// All cases of the pinned version, strict ones included. Fewer have ended before their end.
const CASES: usize = 146;
/// Seconds that h2spec waits for an answer: on a busy machine, too, a server has answered by then.
/// Only failures take as long.
const ANSWER_SECONDS_MAX: &str = "10";
/// For all cases; they take seconds.
const PATIENCE: Duration = Duration::from_secs(300);
/// Longer than the windows of a client that says nothing of them (65535 bytes). Some cases send
/// frames for a stream that they believe to be open: of one with this answer that is certain, as
/// the answer cannot end before the client has opened a window.
const BODY_BYTES: usize = 100_000;

/// What h2spec requests, and the cases that this server fails there, each for a reason.
struct Target {
    path: &'static str,
    /// Cases and reasons; in clear text only where the reason says so.
    excepted: &'static [(&'static str, Excepted)],
}

/// Why a case may fail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Excepted {
    /// In clear text, what does not begin with HTTP/2's preface is HTTP/1.1, and is answered so:
    /// status 400, and the end of the connection. h2spec wants the connection to be closed, but
    /// takes the answer's text for a frame that is cut.
    ClearTextIsHttp1,
    /// A POST to a file is answered (405) when its head has come, and what comes of it later is not
    /// looked at, which RFC 9113, 8.1 allows. h2spec wants to hear what is wrong with its body or
    /// its trailers, and does only when they come before the answer is sent.
    AnsweredEarly,
}

const TARGETS: [Target; 2] = [
    Target {
        path: "/two-windows.bin",
        excepted: &[
            ("http2/3.5/2", Excepted::ClearTextIsHttp1),
            ("http2/8.1/1", Excepted::AnsweredEarly),
            ("http2/8.1.2.1/3", Excepted::AnsweredEarly),
            ("http2/8.1.2.6/1", Excepted::AnsweredEarly),
            ("http2/8.1.2.6/2", Excepted::AnsweredEarly),
        ],
    },
    // Its backend answers nothing early.
    Target {
        path: "/backend/",
        excepted: &[("http2/3.5/2", Excepted::ClearTextIsHttp1)],
    },
];

impl Target {
    fn is_excepted(&self, case: &str, way: Way) -> bool {
        self.excepted.iter().any(|(excepted, reason)| {
            *excepted == case && (*reason != Excepted::ClearTextIsHttp1 || !way.is_tls())
        })
    }
}

#[test]
fn http2_in_clear_text_conforms() {
    check("http2_in_clear_text_conforms", Way::Clear2);
}

#[test]
fn http2_over_tls_conforms() {
    check("http2_over_tls_conforms", Way::Tls2);
}

fn check(test: &str, way: Way) {
    if !Path::new(H2SPEC).exists() {
        skip(test, "no h2spec; with Go, cargo xtask h2spec builds it");
        return;
    }
    let backend = backend::start(BODY_BYTES);
    let site = Site::start_with(&format!(
        "[[upstream]]\nname = \"backend\"\nservers = [\"http://{backend}\"]\n\
         [[route]]\npath = \"/backend/\"\nupstream = \"backend\"\n"
    ));
    fs::write(site.file("two-windows.bin"), noise(BODY_BYTES)).unwrap();
    for target in &TARGETS {
        let mut failures = outcomes(&site, way, target.path);
        failures
            .retain(|outcome| outcome.failure.is_some() && !target.is_excepted(&outcome.case, way));
        let path = target.path;
        assert!(failures.is_empty(), "{way:?} {path}: {failures:#?}");
    }
}

/// What h2spec says of every case.
fn outcomes(site: &Site, way: Way, path: &str) -> Vec<Outcome> {
    let (report, printed) = (site.scratch("report.xml"), site.scratch("printed"));
    // One of another run must not stand for that of this one.
    let _ = fs::remove_file(&report);
    let mut h2spec = command(H2SPEC);
    h2spec
        .args(["--strict", "--path", path, "--timeout", ANSWER_SECONDS_MAX])
        .args(["--host", "127.0.0.1", "--port", &site.port(way).to_string()])
        .arg("--junit-report")
        .arg(&report)
        .stdin(Stdio::null())
        .stdout(File::create(&printed).unwrap());
    if way.is_tls() {
        h2spec.args(["--tls", "--insecure"]);
    }
    let status = wait(h2spec.spawn().unwrap());
    let printed = fs::read_to_string(&printed).unwrap();
    let Ok(report) = fs::read_to_string(report) else {
        panic!("{way:?}: h2spec ended before its end: {status:?}: {printed}");
    };
    let outcomes = junit::read(&report);
    assert_eq!(outcomes.len(), CASES, "{way:?}: {printed}");
    outcomes
}

/// Waits for the end of `child`, and ends it when it takes too long.
fn wait(mut child: Child) -> Option<ExitStatus> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if started.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
