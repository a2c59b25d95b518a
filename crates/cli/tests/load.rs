//! `sooner load` as a process: bad input is one line and exit code 2, results are on stdout.

use assert_cmd::Command;
use std::fs;

fn load(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("sooner").expect("the program is built");
    command.arg("load").args(args);
    command
}

/// The one line that a refused command says.
fn refusal(args: &[&str]) -> String {
    let output = load(args).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert!(output.stdout.is_empty(), "{args:?}");
    let message = String::from_utf8(output.stderr).expect("messages are text");
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

const HERE: &str = "http://127.0.0.1:9";

#[test]
fn bad_input_is_one_line_with_a_remedy() {
    let replay = |changed: &[&str]| {
        refusal(
            &[
                &["replay", "epa", "--uplink", "10mbit", "--for", "10"],
                changed,
            ]
            .concat(),
        )
    };
    let cases: [(&[&str], &str); 9] = [
        (&["--url", HERE], "--rho"),
        (
            &["--url", HERE, "--rho", "0.9", "--schedule", "0.2,1.2,10,10"],
            "do not go together",
        ),
        (&["--url", HERE, "--rho", "0"], "above 0"),
        (
            &["--url", "ftp://127.0.0.1", "--rho", "0.9"],
            "http://127.0.0.1:8080",
        ),
        (
            &["--url", HERE, "--rho", "0.9", "--streams", "4"],
            "--http2",
        ),
        (
            &[
                "--url",
                "https://127.0.0.1:9",
                "--rho",
                "0.9",
                "--ca",
                "/no/such.pem",
            ],
            "/no/such.pem",
        ),
        (
            &["--url", HERE, "--rho", "0.9", "--warm-up", "10"],
            "--warm-up",
        ),
        (&["--url", HERE, "--rho", "0.9"], "connection refused"),
        (&["--url", HERE, "--schedule", "W11"], "W1 to W10"),
    ];
    for (changed, words) in cases {
        let message = replay(changed);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn flags_of_one_model_are_refused_with_another() {
    let replay = |flags: &str| {
        let fixed = "replay epa --uplink 10mbit --for 10 --url";
        let words = fixed.split(' ').chain([HERE]).chain(flags.split(' '));
        refusal(&words.collect::<Vec<_>>())
    };
    for (flags, words) in [
        ("--model closed", "--users N"),
        (
            "--model closed --users 5 --rho 0.9",
            "--rho with --model closed",
        ),
        ("--model closed --users 5 --schedule W1", "--schedule with"),
        ("--model closed --users 5 --poisson", "--think"),
        (
            "--model closed --users 5 --crowd 9000,0.5",
            "--crowd with --model closed",
        ),
        ("--rho 0.9 --crowd 9000", "like 100kB,0.5"),
        ("--model closed --users 0", "from 1 to 100000"),
        ("--model closed --users 5 --stay 0.5", "partly-open"),
        ("--model partly-open --rho 0.9", "--requests-per-visit"),
        ("--model partly-open --stay 0.5", "--rho LOAD"),
        (
            "--model partly-open --stay 1 --rho 0.9",
            "probability from 0",
        ),
        (
            "--model partly-open --stay 0.5 --rho 0.9 --users 5",
            "--users with --model partly-open",
        ),
        ("--rho 0.9 --think 5", "--think with --model open"),
        ("--rho 0.9 --stay 0.5", "--stay with --model open"),
        ("--model half-open", "partly-open"),
        ("--rho 0.9 --reloads 2", "--patience"),
        ("--rho 0.9 --patience 0", "write 0.1s or more"),
        ("--rho 0.9 --patience 5 --http2", "--patience with --http2"),
        ("--rho 0.9 --mss 1500", "from 88 to 1460"),
        ("--rho 0.9 --from here", "invalid IP address"),
        ("--rho 0.9 --from 127.0.0.1,192.0.2.1", "192.0.2.1"),
    ] {
        let message = replay(flags);
        assert!(message.contains(words), "{flags}: {message}");
    }
}

#[test]
fn units_traces_and_times_are_checked() {
    let replay = |trace: &str, uplink: &str, seconds: &str| {
        let flags = [
            "--url", HERE, "--rho", "0.9", "--uplink", uplink, "--for", seconds,
        ];
        refusal(&[&["replay", trace], &flags[..]].concat())
    };
    assert!(replay("epa", "10mb", "10").contains("write 10mbit, or 10MB/s"));
    assert!(replay("epb", "10mbit", "10").contains("epa"));
    assert!(replay("epa", "10mbit", "ten").contains("not a length of time"));
    assert!(replay("epa", "10mbit", "0").contains("write 1s or more"));
    assert!(
        refusal(&["closed", "--url", HERE, "--connections", "0", "--for", "1"])
            .contains("from 1 to")
    );
}

#[test]
fn a_model_file_that_cannot_be_played_is_named_with_its_key() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let model = folder.path().join("model.toml");
    let play = |text: &str, flags: &[&str]| {
        fs::write(&model, text).unwrap();
        let path = model.to_str().unwrap();
        refusal(&[&["model", path, "--url", HERE, "--for", "5"], flags].concat())
    };
    let open = "sizes = \"trace:epa\"\nschedule = 0.8\n";
    assert!(play(open, &[]).contains("give --uplink RATE"));
    assert!(play(open, &["--uplink", "10mbit"]).contains("connection refused"));
    assert!(play("schedule = 0.8\n", &[]).contains("model.toml:sizes: is missing"));
    let thinking = "sizes = \"surge\"\nuplink = \"10mbit\"\n[users]\nkind = \"closed\"\nusers = 5\nthink = \"det:mean=1\"\n";
    let message = play(thinking, &[]);
    assert!(
        message.contains("model.toml: users.think: `det:mean=1`"),
        "{message}"
    );
}

#[test]
fn mkroot_writes_the_files_of_a_trace() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let trace = folder.path().join("tiny.csv");
    fs::write(
        &trace,
        "t,bytes,client,object,status\n0,1000,0,0,200\n1,20,0,1,200\n",
    )
    .unwrap();
    let objects = "object,requests,max_bytes,ext\n0,1,1000,html\n1,1,20,gif\n";
    fs::write(folder.path().join("tiny.objects.csv"), objects).unwrap();
    let root = folder.path().join("root");
    load(&["mkroot", trace.to_str().unwrap(), root.to_str().unwrap()])
        .assert()
        .success();
    assert_eq!(
        fs::metadata(root.join("objects/0.html")).unwrap().len(),
        1000
    );
    assert_eq!(fs::metadata(root.join("objects/1.gif")).unwrap().len(), 20);
}

/// A server that answers every request alike, on a port of its own; it lives as long as the test
/// process.
fn serving(answer: &'static str) -> String {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                while matches!(stream.read(&mut request), Ok(1..)) {
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    format!("http://{address}/")
}

#[test]
fn what_may_not_be_believed_ends_with_exit_code_1() {
    let run = |url: &str| {
        let words = ["closed", "--url", url, "--connections", "2", "--for", "1s"];
        let output = load(&words).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let (code, said) = run(&serving("HTTP/1.1 103 Early Hints\r\n\r\n"));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("no request was answered"), "{said}");
    let (code, said) = run(&serving(
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ));
    assert!(said.contains("errors       0"), "{said}");
    // 1 says that a busy machine was the bottleneck.
    assert!(code == Some(0) || said.contains("of a core"), "{said}");
}

#[test]
fn ctrl_c_prints_what_there_is() {
    let url = serving("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args([
            "load",
            "closed",
            "--url",
            &url,
            "--connections",
            "1",
            "--for",
            "600",
            "--json",
        ])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &report["runs"][0];
    assert!(run["all"]["completed"].as_u64().unwrap() > 0, "{run}");
    // Of the same part of the run.
    assert_eq!(run["response"]["n"], run["all"]["completed"], "{run}");
    assert_eq!(run["statuses"]["200"], run["all"]["completed"], "{run}");
    assert!(
        run["verdict_reason"]
            .as_str()
            .unwrap()
            .starts_with("stopped:"),
        "{run}"
    );
}

/// `closed` at the URLs of a file of this content, for 1 s.
fn closed_at(urls: &[u8]) -> std::process::Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("urls.txt");
    fs::write(&path, urls).unwrap();
    let path = path.to_str().unwrap();
    load(&["closed", "--urls", path, "-c", "2", "-d", "1s"])
        .output()
        .unwrap()
}

#[test]
fn a_mistake_in_a_file_of_urls_has_its_line_and_no_password() {
    for (urls, words) in [
        ("\n127.0.0.1:9\n", "urls.txt:2: `127.0.0.1:9`: write"),
        (
            "#\n\nPOST http://127.0.0.1:9/ @/no/such\n",
            "urls.txt:3: @/no/such",
        ),
        (
            "http://127.0.0.1:9/\nftp://127.0.0.1/\n",
            "urls.txt:2: ftp://127.0.0.1",
        ),
        ("http://user:geheim@127.0.0.1:9/\n", "authorization: Basic"),
        (
            "http://user:geheim@127.0.0.1:9/ x y\n",
            "urls.txt:1: `http://127.0.0.1:9/ x y`",
        ),
    ] {
        let output = closed_at(urls.as_bytes());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains(words) && !said.contains("geheim"),
            "{words}: {said}"
        );
    }
}

#[test]
fn urls_come_with_a_byte_order_mark_and_from_standard_input() {
    let url = serving("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let answered = |output: std::process::Output| {
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains("errors       0"), "{said}{:?}", output.stderr);
    };
    answered(closed_at(format!("\u{feff}{url}\r\n").as_bytes()));
    let mut command = load(&["closed", "--urls", "-", "-c", "2", "-d", "1s"]);
    answered(command.write_stdin(format!("{url}\n")).output().unwrap());
}

#[test]
fn urls_that_no_connection_requests_are_told() {
    let url = serving("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    for (urls, said) in [
        (
            format!("{url}a\n98 {url}b\n{url}c\n"),
            "sooner: never requested, for want of a connection: 2 of 3 URLs; give a larger -c\n",
        ),
        (format!("{url}a\n{url}b\n"), ""),
    ] {
        let output = closed_at(urls.as_bytes());
        assert_eq!(String::from_utf8(output.stderr).unwrap(), said, "{urls}");
    }
}

#[test]
fn heads_with_many_folded_and_spaced_fields_are_answers() {
    let fields: &'static str = Box::leak(
        format!(
            "HTTP/1.1 200 OK\r\n{}content-length : 2\r\n\r\nok",
            "x-a: b,\r\n\tc\r\n".repeat(100)
        )
        .into_boxed_str(),
    );
    let url = serving(fields);
    let output = load(&["closed", &url, "-c", "2", "-d", "1s"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("errors       0"), "{said}");
}

#[test]
fn a_log_in_another_form_is_unpacked_into_the_same_command() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("x.log.bz2");
    fs::write(&log, "BZh91AY&SY").unwrap();
    let log = log.to_str().unwrap();
    let said = refusal(&["replay", log, "--url", HERE]);
    assert!(said.contains("| sooner load replay -"), "{said}");
    let out = folder.path().join("out");
    let said = refusal(&["trace", log, "-o", out.to_str().unwrap()]);
    assert!(said.contains("| sooner load trace -o NAME -"), "{said}");
}

#[test]
fn flags_that_would_have_no_effect_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("x.log");
    fs::write(
        &log,
        "1.1.1.1 - - [29/Nov/2026:06:00:00 +0000] \"GET / HTTP/1.1\" 200 1\n",
    )
    .unwrap();
    let log = log.to_str().unwrap();
    for more in [&["--constant"][..], &["--constant", "--speed", "2x"]] {
        let words = [&["replay", log, "--url", HERE], more].concat();
        let output = load(&words).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--rate"), "{said}");
    }
    let traces = [
        "replay", "epa", "--url", HERE, "--rho", "0.5", "--uplink", "1mbit",
    ];
    let output = load(&[&traces[..], &["--for", "1s", "--constant"]].concat());
    let output = { output }.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let none = folder.path().join("none.pem");
    fs::write(&none, "no certificate").unwrap();
    let none = none.to_str().unwrap();
    let said = refusal(&["closed", HERE, "-c", "1", "-d", "1s", "--ca", none]);
    assert!(said.contains("give a PEM file"), "{said}");
}

#[test]
fn a_log_without_a_request_of_use_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = |request: &str, bytes: u32| {
        format!("h - - [10/Oct/2000:13:55:36 +0000] \"{request}\" 200 {bytes}\n")
    };
    let no_size = r#"{"ts":1795668729.25,"path":"/","status":200,"duration":0.5}"#;
    let (trace, replay) = (&["-o", "day"][..], &["--url", HERE][..]);
    for (content, command, flags, words) in [
        (String::new(), "trace", trace, "; the log is empty"),
        (String::new(), "replay", replay, "; the log is empty"),
        (
            "# nothing\n\n".into(),
            "trace",
            trace,
            "; it has nothing but comments",
        ),
        ("of no log\n".into(), "trace", trace, "; the first: "),
        ("of no log\n".into(), "replay", replay, "; the first: "),
        (
            line("GET /a HTTP/1.1", 0),
            "trace",
            trace,
            "; 1 requests have a response of 0 bytes",
        ),
        (no_size.into(), "trace", trace, "; 1 requests have no size"),
        (
            line(r"\x16\x03", 5) + "of no log\n",
            "trace",
            trace,
            "; 1 lines do not say what was requested; 1 lines are in no known format; the first: ",
        ),
        (
            line("POST /a HTTP/1.1", 5),
            "replay",
            replay,
            "; 1 requests are no GET and no HEAD",
        ),
    ] {
        let log = folder.path().join("access.log");
        fs::write(&log, &content).expect("space");
        let log = log.to_str().expect("a name");
        let said = refusal(&[&[command, log], flags].concat());
        assert!(
            said.contains(&format!("{log}: no line is a request")) && said.contains(words),
            "{command} of {content:?}: {said}"
        );
    }
}

#[test]
fn files_that_cannot_be_written_are_told_before_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("access.log");
    let line = r#"h - - [16/Nov/2026:10:12:09 +0000] "GET /a HTTP/1.1" 200 5"#;
    fs::write(&log, format!("{line}\n")).expect("space");
    let name = folder.path().join("day");
    fs::create_dir(folder.path().join("day.paths.csv.gz")).expect("a folder");
    let (log, name) = (log.to_str().expect("text"), name.to_str().expect("text"));
    let said = refusal(&["trace", log, "-o", name]);
    assert!(said.contains("day.paths.csv.gz"), "{said}");
    assert!(!folder.path().join("day.csv.gz").exists());

    let replay = ["replay", "epa", "--url", HERE, "--rho", "0.9", "--for", "5"];
    let samples = ["--uplink", "10mbit", "--samples", "/no/such/samples"];
    let said = refusal(&[&replay[..], &samples].concat());
    // No server is there either, which is found later.
    assert!(said.contains("--samples /no/such/samples: "), "{said}");
}

#[test]
fn a_trace_says_which_unit_it_assumes_and_takes_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log.json");
    let line = |took: u32| {
        format!(
            r#"{{"ts":1795668729.25,"remote_addr":"h","request":"GET /a HTTP/1.1","status":200,"size":5,"duration":{took}}}"#
        )
    };
    fs::write(&log, format!("{}\n{}\n", line(5000), line(0))).expect("space");
    let (log, name) = (log.to_str().expect("a name"), folder.path().join("day"));
    let fixed = ["trace", log, "-o", name.to_str().expect("a name")];
    let said = |flags: &[&str]| {
        let output = load(&[&fixed[..], flags].concat()).output().expect("it");
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).expect("text")
    };
    let assumed = said(&[]);
    assert!(
        assumed.contains("in 5000 s")
            && assumed.contains("not in the log: 2 requests have a time taken without its unit"),
        "{assumed}"
    );
    let given = said(&["--time-taken", "ms"]);
    assert!(
        given.contains("in 5 s") && !given.contains("without its unit"),
        "{given}"
    );
}
