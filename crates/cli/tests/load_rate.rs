//! `sooner load rate`, `load trace` and a log's replay as processes, against nginx: its access log
//! says how many requests came.

mod log;
mod stopped;

use assert_cmd::Command;
use serde_json::Value;
use sooner_testbed::{nginx, port, program, skip};
use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Long enough for a busy machine.
const LOG_WAIT: Duration = Duration::from_secs(10);

fn load(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("sooner").expect("the program is built");
    command.arg("load").args(args);
    command
}

struct Site {
    _nginx: nginx::Nginx,
    folder: tempfile::TempDir,
    address: SocketAddr,
}

impl Site {
    /// nginx with an access log of the combined form; `None` where there is none.
    fn start(test: &str) -> Option<Site> {
        if program::find(&["nginx"]).is_none() {
            skip(test, "no nginx");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let [address] = port::free_ones().unwrap();
        let log = folder.path().join("access.log");
        let http = format!(
            "access_log {} combined;\nserver {{ listen {address}; \
             location /missing {{ return 404; }} \
             location / {{ return 200 \"$request_method $http_x_test\\n\"; }} }}\n",
            log.display()
        );
        let nginx = nginx::Nginx::start(folder.path(), &http, address).unwrap();
        Some(Site {
            _nginx: nginx,
            folder,
            address,
        })
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("access.log")
    }

    /// The requests in the log, once there are so many.
    fn requests(&self, count: usize) -> Vec<String> {
        let begin = Instant::now();
        loop {
            let text = fs::read_to_string(self.log()).unwrap_or_default();
            if text.lines().count() >= count || begin.elapsed() > LOG_WAIT {
                let request = |line: &str| line.split('"').nth(1).unwrap().to_owned();
                return text.lines().map(request).collect();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Runs it; gives the exit code and the run of its JSON.
fn run(args: &[&str]) -> (Option<i32>, Value) {
    let output = load(args).arg("--json").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value = serde_json::from_slice(&output.stdout).expect(&said);
    (output.status.code(), report["runs"][0].clone())
}

/// A machine that is busy may send late; nothing else may be doubted.
fn assert_valid_or_late(run: &Value) {
    let reason = run["verdict_reason"].as_str().unwrap();
    let is_late = reason.contains("late or more") || reason.contains("of a core");
    assert!(run["verdict"] == "VALID" || is_late, "{run}");
}

#[test]
fn the_servers_log_has_as_many_requests_as_were_sent() {
    let Some(site) = Site::start("the_servers_log") else {
        return;
    };
    let timeline = site.folder.path().join("timeline");
    let hgrm = site.folder.path().join("out.hgrm");
    let files = [
        "--timeline",
        timeline.to_str().unwrap(),
        "--hgrm",
        hgrm.to_str().unwrap(),
    ];
    let url = site.url("/a");
    let fixed = ["rate", &url, "--rate", "300", "--for", "2s"];
    let (_, ran) = run(&[&fixed[..], &files[..]].concat());
    assert_valid_or_late(&ran);
    assert_eq!((&ran["sent"], &ran["answered"]), (&600.into(), &600.into()));
    assert_eq!(ran["resent"], 0);
    assert_eq!(site.requests(600).len(), 600);
    assert_eq!(ran["statuses"]["200"], 600);
    let lines = fs::read_to_string(timeline).unwrap();
    let seconds: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    let sent: u64 = seconds
        .iter()
        .map(|second| second["sent"].as_u64().unwrap())
        .sum();
    assert_eq!((sent, seconds[0]["second"].as_u64()), (600, Some(1)));
    assert!(
        fs::read_to_string(hgrm)
            .unwrap()
            .contains("Total count    =          600]")
    );
}

#[test]
fn methods_fields_bodies_and_weights_reach_the_server() {
    let Some(site) = Site::start("methods_fields_bodies") else {
        return;
    };
    let list = site.folder.path().join("urls");
    let text = format!("4 {}\n1 PUT {}\n", site.url("/get"), site.url("/put"));
    fs::write(&list, text).unwrap();
    let words = [
        "rate",
        "--urls",
        list.to_str().unwrap(),
        "--rate",
        "200",
        "--for",
        "1s",
    ];
    let (_, ran) = run(&[&words[..], &["-H", "x-test: 1", "--constant"]].concat());
    assert_eq!(ran["answered"], 200, "{ran}");
    let requests = site.requests(200);
    let puts = requests
        .iter()
        .filter(|line| *line == "PUT /put HTTP/1.1")
        .count();
    assert!((20..60).contains(&puts), "{puts}");
    let url = site.url("/post");
    let (_, ran) = run(&["rate", &url, "--rate", "20", "--for", "1s", "-d", "a=1"]);
    assert_eq!(ran["answered"], 20, "{ran}");
    assert_eq!(site.requests(220)[219], "POST /post HTTP/1.1");
    let url = site.url("/head");
    let (_, ran) = run(&["rate", &url, "--rate", "20", "--for", "1s", "-X", "head"]);
    assert_eq!(ran["answered"], 20, "{ran}");
    assert_eq!(site.requests(240)[239], "HEAD /head HTTP/1.1");
}

#[test]
fn what_was_expected_decides_the_exit_code() {
    let Some(site) = Site::start("what_was_expected") else {
        return;
    };
    let with = |path: &str, expect: &str| {
        let url = site.url(path);
        let words = [
            "rate", &url, "--rate", "50", "--for", "1s", "--expect", expect,
        ];
        run(&words)
    };
    let (code, ran) = with("/", "p99<30s,errors<0.1%,rate>=49/s");
    assert_valid_or_late(&ran);
    assert!(code == Some(0) || ran["verdict"] == "INVALID", "{ran}");
    assert!(
        ran["expectations"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["is_met"] == true),
        "{ran}"
    );
    let (code, ran) = with("/", "p99<1us");
    assert_eq!(
        (code, &ran["expectations"][0]["is_met"]),
        (Some(1), &false.into())
    );
    let (code, ran) = with("/missing", "errors>=50");
    assert_valid_or_late(&ran);
    assert!(code == Some(0) || ran["verdict"] == "INVALID", "{ran}");
    let (code, ran) = with("/missing", "p99<30s");
    assert_eq!((code, &ran["verdict"]), (Some(1), &"INVALID".into()));
    assert!(
        ran["verdict_reason"]
            .as_str()
            .unwrap()
            .contains("status 404"),
        "{ran}"
    );
}

#[test]
fn bad_input_is_one_line_each() {
    let here = "http://127.0.0.1:9/";
    let fixed: [&str; 6] = ["rate", here, "--rate", "5", "--for", "1s"];
    let of = |more: &[&'static str]| [&fixed[..], more].concat();
    let closed = vec!["closed", here, "--connections", "2", "--for", "1s"];
    let cases: [(Vec<&str>, &str); 17] = [
        (of(&[]), "connection refused; start the server there"),
        (closed, "connection refused; start the server there"),
        (of(&["--expect", "p99<200"]), "write 200ms or 200s"),
        (of(&["-H", "accept"]), "NAME: VALUE"),
        (of(&["-X", "G T"]), "is not a method"),
        (of(&["-d", "@/no/such"]), "@/no/such: cannot read the body"),
        (
            of(&["-d", "30s"]),
            "--data: `30s` is the length of a run, and not a body; write --for 30s",
        ),
        (
            of(&["--data", "1m"]),
            "write --for 1m, or to send it as the body",
        ),
        (of(&["-d", "30"]), "connection refused; start the server"),
        (
            vec!["rate", here, "--rate", "5", "-d", "30"],
            "--for TIME is missing, and -d is --data here",
        ),
        (of(&["--urls", "/no/such"]), "--urls /no/such"),
        (of(&["--warm-up", "1s"]), "shorter warm-up"),
        (of(&["--hgrm", "/no/such/file"]), "--hgrm /no/such/file"),
        (
            of(&["--timeline", "/no/such/file"]),
            "--timeline /no/such/file",
        ),
        (vec!["rate", here, "--rate", "5"], "--for TIME is missing"),
        (vec!["rate", here, "--stage", "5:1s"], "write TIME:RATE"),
        (
            vec!["rate", "127.0.0.1:9", "--rate", "5", "--for", "1s"],
            "give one like http://",
        ),
    ];
    for (words, right) in cases {
        let output = load(&words).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), said.lines().count()),
            (Some(2), 1),
            "{words:?}: {said}"
        );
        assert!(
            said.contains(right) && output.stdout.is_empty(),
            "{words:?}: {said}"
        );
    }
}

#[test]
fn ctrl_c_prints_what_there_is_so_far() {
    let Some(site) = Site::start("ctrl_c_prints") else {
        return;
    };
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args([
            "load",
            "rate",
            &site.url("/"),
            "--rate",
            "100",
            "--for",
            "10min",
            "--json",
        ])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    assert!(site.requests(20).len() >= 20);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ran = &report["runs"][0];
    assert!(ran["answered"].as_u64().unwrap() >= 19, "{ran}");
    assert!(
        ran["verdict_reason"]
            .as_str()
            .unwrap()
            .starts_with("stopped after"),
        "{ran}"
    );
}

/// A log of combined lines: 30 requests in 2 s, one a POST, one no request.
fn logged(site: &Site) -> PathBuf {
    let path = site.folder.path().join("old.log");
    let line = |second: usize, request: &str, bytes: usize| {
        format!(
            "10.0.0.{second} - - [10/Oct/2000:13:55:3{second} +0000] \"{request}\" 200 {bytes} \"-\" \"x\"\n"
        )
    };
    let mut text = String::new();
    for nth in 0..28 {
        text += &line(
            nth / 14,
            &format!("GET /page/{}?a=b HTTP/1.1", nth % 7),
            100 + nth,
        );
    }
    text += &line(1, "POST /form HTTP/1.1", 9);
    text += &line(1, r"\x16\x03", 0);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_logs_requests_are_sent_again() {
    let Some(site) = Site::start("a_logs_requests") else {
        return;
    };
    let old = logged(&site);
    let url = site.url("/base");
    let fixed = ["replay", old.to_str().unwrap(), "--url", &url];
    let (_, ran) = run(&[&fixed[..], &["--speed", "2x"]].concat());
    assert_valid_or_late(&ran);
    assert_eq!(
        (&ran["arrivals"], &ran["sent"]),
        (&"log".into(), &28.into())
    );
    let requests = site.requests(28);
    assert_eq!(
        (requests.len(), requests[0].as_str()),
        (28, "GET /base/page/0?a=b HTTP/1.1")
    );
    let first = ran["remarks"][0].as_str().unwrap();
    assert!(first.starts_with("28 requests for "), "{first}");
    for remark in ran["remarks"].as_array().unwrap() {
        let remark = remark.as_str().unwrap();
        assert_eq!(remark, remark.trim());
    }
    let remarks = ran["remarks"].to_string();
    for words in [
        "POST 1; --all-methods",
        "1 lines do not say",
        "29 requests have no finer time",
    ] {
        assert!(remarks.contains(words), "{remarks}");
    }
    let (_, ran) = run(&[
        &fixed[..],
        &["--all-methods", "--rate", "100", "--for", "1s"],
    ]
    .concat());
    assert_eq!(ran["sent"], 100, "{ran}");
    let posts = site.requests(128);
    assert!(
        posts.iter().any(|line| line == "POST /base/form HTTP/1.1"),
        "{posts:?}"
    );
}

#[test]
fn a_replay_says_which_unit_it_assumes_and_takes_another() {
    let Some(site) = Site::start("a_replay_says_which_unit") else {
        return;
    };
    let old = site.folder.path().join("old.json");
    let line = r#"{"ts":1795668729.25,"remote_addr":"h","request":"GET /a HTTP/1.1","status":200,"size":5,"duration":20}"#;
    fs::write(&old, format!("{line}\n")).unwrap();
    let url = site.url("/");
    let fixed = ["replay", old.to_str().unwrap(), "--url", &url];
    for (flags, is_assumed) in [(&[][..], true), (&["--time-taken", "ms"][..], false)] {
        let (_, ran) = run(&[&fixed[..], flags].concat());
        let remarks = ran["remarks"].to_string();
        let says_so = remarks.contains("which is assumed to be seconds");
        assert_eq!(
            (&ran["sent"], says_so),
            (&1.into(), is_assumed),
            "{remarks}"
        );
    }
}

#[test]
fn flags_of_traces_and_of_logs_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    fs::write(&log, "nothing of a log\n").unwrap();
    let log = log.to_str().unwrap();
    let url = ["--url", "http://127.0.0.1:9"];
    let cases: [(&[&str], &str); 6] = [
        (
            &["replay", "epa", "--time-taken", "ms"],
            "--time-taken is for access logs",
        ),
        (
            &["replay", log],
            "no line is a request that can be sent; the first:",
        ),
        (&["replay", log, "--rho", "0.9"], "--rho with an access log"),
        (
            &["replay", "epa", "--speed", "2x"],
            "--speed is for access logs",
        ),
        (&["replay", log, "--speed", "fast"], "write for example 2x"),
        (
            &["replay", "nope.log"],
            "`nope.log` is neither built in nor a file",
        ),
    ];
    for (words, right) in cases {
        let output = load(&[words, &url[..]].concat()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), said.lines().count()),
            (Some(2), 1),
            "{said}"
        );
        assert!(said.contains(right), "{said}");
    }
}

#[test]
fn a_trace_is_made_of_a_log_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let packed = folder.path().join("log.gz");
    let line = |second: usize, path: &str, bytes: usize| {
        format!("h - - [10/Oct/2000:13:55:3{second} +0000] \"GET {path} HTTP/1.0\" 200 {bytes}\n")
    };
    let text = [
        line(0, "/a.html", 700),
        line(2, "/b.gif", 20),
        line(5, "/a.html", 900),
    ]
    .concat();
    let mut packer = flate2::read::GzEncoder::new(text.as_bytes(), flate2::Compression::fast());
    let mut bytes = Vec::new();
    packer.read_to_end(&mut bytes).unwrap();
    fs::write(&packed, bytes).unwrap();
    let name = folder.path().join("day");
    let name = name.to_str().unwrap();
    let output = load(&["trace", packed.to_str().unwrap(), "-o", name])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("3 requests of 2 objects by 1 clients"),
        "{said}"
    );
    assert!(
        said.contains("not in the log: 3 requests have no finer time than a second"),
        "{said}"
    );
    let root = folder.path().join("root");
    let trace = format!("{name}.csv.gz");
    load(&["mkroot", &trace, root.to_str().unwrap()])
        .assert()
        .success();
    assert_eq!(
        fs::metadata(root.join("objects/0.html")).unwrap().len(),
        900
    );
    let lost = load(&["trace", packed.to_str().unwrap(), "-o", "/no/such/name"])
        .output()
        .unwrap();
    assert_eq!(lost.status.code(), Some(2));
}
