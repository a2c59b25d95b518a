//! `sooner advise` as a process: traces written out as logs, every format, and mistakes in one
//! line.

use serde_json::Value;
use sooner_testbed::skip;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn advise(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.arg("advise").args(words).output().unwrap()
}

fn json(log: &Path, more: &[&str]) -> Value {
    let output = advise(&[&[log.to_str().unwrap(), "--json"], more].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Seconds, bytes, client and status of a trace that ships.
fn trace(name: &str) -> Vec<(u64, u64, u64, u16)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../data")
        .join(name);
    let mut text = String::new();
    flate2::read::GzDecoder::new(fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        (
            fields[0].parse::<f64>().unwrap() as u64,
            fields[1].parse().unwrap(),
            fields[2].parse().unwrap(),
            fields[4].parse().unwrap(),
        )
    };
    text.lines().skip(1).map(row).collect()
}

/// As a combined log of a day that begins at midnight.
fn combined(trace: &[(u64, u64, u64, u16)]) -> String {
    let line = |(at, bytes, client, status): &(u64, u64, u64, u16)| {
        let (hour, minute, second) = (at / 3600 % 24, at / 60 % 60, at % 60);
        format!(
            "10.{}.{}.{} - - [{:02}/Aug/1995:{hour:02}:{minute:02}:{second:02} +0000] \"GET /x HTTP/1.0\" {status} {bytes} \"-\" \"agent\"\n",
            client >> 16,
            client >> 8 & 255,
            client & 255,
            1 + at / 86_400
        )
    };
    trace.iter().map(line).collect()
}

fn near(found: &Value, expected: f64, tolerance: f64) {
    let found = found.as_f64().unwrap();
    assert!(
        (found / expected - 1.0).abs() < tolerance,
        "{found}, expected {expected}"
    );
}

#[test]
fn traces_have_their_known_figures() {
    let dir = tempfile::tempdir().unwrap();
    for (name, mean, c2, top, requests) in [
        ("epa_19950829.csv.gz", 6534.3, 90.4, 0.514, 47_727),
        ("nasa_19950709.csv.gz", 21_381.8, 15.3, 0.322, 35_272),
    ] {
        let log = dir.path().join(name);
        fs::write(&log, combined(&trace(name))).unwrap();
        let found = json(&log, &["--uplink", "1mbit"]);
        let survey = &found["survey"];
        assert_eq!(survey["requests"], requests);
        assert_eq!(survey["other_lines"], 0);
        near(&survey["sizes"]["mean_bytes"], mean, 1e-3);
        near(&survey["sizes"]["c2"], c2, 3e-3);
        near(&survey["sizes"]["top_1_percent_share"], top, 1e-2);
        let scenarios = found["scenarios"].as_array().unwrap();
        let last = scenarios.last().unwrap();
        near(&last["busiest_hour_load"], 0.95, 1e-6);
        let mean = |policy: usize| {
            last["outcomes"][policy]["mean_response_ms"]
                .as_f64()
                .unwrap()
        };
        assert!(
            mean(0) > 1.5 * mean(1),
            "FAIR {} and SRPT {}",
            mean(0),
            mean(1)
        );
        let said = found["advice"].to_string();
        assert!(
            said.contains("sooner attach web --dev DEVICE --uplink"),
            "{said}"
        );
    }
}

/// The same requests in every form.
#[test]
fn all_forms_say_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let all: Vec<_> = trace("epa_19950829.csv.gz")
        .into_iter()
        .take(3000)
        .collect();
    let text = combined(&all);
    let figures = |log: &Path| json(log, &["--uplink", "1mbit"])["survey"]["sizes"].clone();
    let plain = dir.path().join("plain.log");
    fs::write(&plain, &text).unwrap();
    let expected = figures(&plain);

    let gz = dir.path().join("log.gz");
    let mut encoder =
        flate2::write::GzEncoder::new(fs::File::create(&gz).unwrap(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap();
    assert_eq!(figures(&gz), expected);

    let common: String = text
        .lines()
        .map(|line| line.split(" \"-\"").next().unwrap().to_owned() + "\n")
        .collect();
    let host = dir.path().join("host.log");
    fs::write(
        &host,
        text.lines()
            .map(|line| format!("www.example.org:443 {line} 1250\n"))
            .collect::<String>(),
    )
    .unwrap();
    assert_eq!(figures(&host), expected);
    let plain_common = dir.path().join("common.log");
    fs::write(&plain_common, common).unwrap();
    assert_eq!(figures(&plain_common), expected);

    let caddy: String = all
        .iter()
        .map(|(at, bytes, client, status)| {
            format!("{{\"ts\":{at}.5,\"request\":{{\"remote_ip\":\"10.0.0.{client}\"}},\"duration\":0.25,\"size\":{bytes},\"status\":{status}}}\n")
        })
        .collect();
    let caddy_log = dir.path().join("caddy.log");
    fs::write(&caddy_log, caddy).unwrap();
    assert_eq!(figures(&caddy_log), expected);
}

#[test]
fn zstd_is_read_too() {
    // "127.0.0.1 - - [01/Jan/2026:00:00:00 +0000] \"GET / HTTP/1.1\" 200 5\n" in one raw block:
    // magic, header, window, block of 68 bytes.
    let line = b"127.0.0.1 - - [01/Jan/2026:00:00:00 +0000] \"GET / HTTP/1.1\" 200 5\n";
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    let header = (line.len() as u32) << 3 | 1;
    frame.extend_from_slice(&header.to_le_bytes()[..3]);
    frame.extend_from_slice(line);
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("access.log.zst");
    fs::write(&log, frame).unwrap();
    assert_eq!(json(&log, &["--uplink", "1mbit"])["survey"]["requests"], 1);
}

#[test]
fn rotated_logs_are_put_in_order_and_broken_ones_count_as_far_as_they_go() {
    let dir = tempfile::tempdir().unwrap();
    let text = combined(&trace("epa_19950829.csv.gz"));
    let (first, second) = text.split_at(text[..text.len() / 2].rfind('\n').unwrap() + 1);
    let older = dir.path().join("access.log.1");
    let newer = dir.path().join("access.log");
    fs::write(&older, first).unwrap();
    fs::write(&newer, second).unwrap();
    let found = json(&newer, &[older.to_str().unwrap(), "--uplink", "1mbit"]);
    assert_eq!(
        (
            &found["survey"]["requests"],
            &found["survey"]["backward_lines"]
        ),
        (&47_727.into(), &0.into())
    );

    let whole = dir.path().join("whole.gz");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    let bytes = encoder.finish().unwrap();
    fs::write(&whole, &bytes[..bytes.len() / 2]).unwrap();
    let found = json(&whole, &["--uplink", "1mbit"]);
    let requests = found["survey"]["requests"].as_u64().unwrap();
    assert!((10_000..47_000).contains(&requests), "{requests}");
    assert!(
        found["survey"]["broken_files"][0]
            .as_str()
            .unwrap()
            .contains("whole.gz: read to line")
    );
}

#[test]
fn other_lines_are_counted_and_the_first_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("mixed.log");
    let text = combined(&trace("epa_19950829.csv.gz")[..200]);
    fs::write(&log, format!("nginx starting\x1b[31m\n{text}oops\n")).unwrap();
    let output = advise(&[log.to_str().unwrap(), "--uplink", "100mbit"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("200 requests") && text.contains("2 lines were not understood"),
        "{text}"
    );
    assert!(
        text.contains("mixed.log:1: in no known format: nginx starting [31m"),
        "{text}"
    );
    assert!(
        text.starts_with("link by hour, 0 to 23 UTC: ")
            && text.contains("\n- Scheduling would not help now"),
        "{text}"
    );
    let assumed =
        "assumed: 200 lines as combined: its time is that of the request; the whole log, ";
    assert!(text.contains(assumed), "{text}");
    assert!(text.contains("all 200 requests are simulated"), "{text}");
}

#[test]
fn mistakes_are_one_line_each() {
    let dir = tempfile::tempdir().unwrap();
    let nothing: PathBuf = dir.path().join("nothing.log");
    fs::write(&nothing, "no request here\n").unwrap();
    let nothing = nothing.to_str().unwrap();
    let requests = dir.path().join("requests.log");
    fs::write(&requests, combined(&trace("epa_19950829.csv.gz")[..200])).unwrap();
    let requests = requests.to_str().unwrap();
    for (words, expected) in [
        (&["--uplink", "1mbit"][..], "LOG is missing"),
        (&[nothing], "no line is a request in a known format"),
        (&[requests], "requests.log: no line has a time taken"),
        (
            &[nothing, "--uplink", "1mbit"],
            "no line is a request in a known format; the first: ",
        ),
        (
            &[nothing, "--uplink", "1mbit"],
            "nothing.log:1: in no known format: no request here",
        ),
        (
            &[requests, "--uplink", "1bit"],
            "--uplink: the busiest hour",
        ),
        (&["-", "-", "--uplink", "1mbit"], "give it once"),
        (
            &[
                requests,
                "--uplink",
                "1mbit",
                "--html",
                "/nowhere/page.html",
            ],
            "--html /nowhere/page.html: No such file",
        ),
        (
            &["/nowhere/access.log", "--uplink", "1mbit"],
            "/nowhere/access.log: No such file",
        ),
        (
            &[dir.path().to_str().unwrap(), "--uplink", "1mbit"],
            "is a directory",
        ),
        (&[nothing, "--uplink", "fast"], "fast"),
    ] {
        let output = advise(words);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {text}");
        assert!(
            text.lines().count() == 1 && text.contains(expected),
            "{words:?}: {text}"
        );
    }
}

/// Requests and lines that were not understood of a log that comes on standard input.
fn piped(content: &[u8], log: &str) -> (u64, u64) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args(["advise", log, "--uplink", "1mbit", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let content = content.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&content));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |name: &str| found["survey"][name].as_u64().unwrap();
    (of("requests"), of("other_lines"))
}

#[test]
fn a_pipe_gives_every_line_once() {
    let text = combined(&trace("epa_19950829.csv.gz")[..5000]);
    for log in ["-", "/dev/stdin", "/proc/self/fd/0"] {
        assert_eq!(piped(text.as_bytes(), log), (5000, 0), "{log}");
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    let member = encoder.finish().unwrap();
    assert_eq!(
        piped(&[&member[..], &member[..]].concat(), "-"),
        (10_000, 0)
    );
}

/// Line ends, marks and gaps as programs on other systems and crashes leave them.
#[test]
fn no_line_is_lost_for_what_stands_around_it() {
    let text = combined(&trace("epa_19950829.csv.gz")[..100]);
    let text = text.trim_end();
    let crlf = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    assert_eq!(piped(crlf.as_bytes(), "-"), (100, 0));
    let zeros = [vec![0; 3_000_000], text.as_bytes().to_vec()].concat();
    assert_eq!(piped(&zeros, "-"), (100, 0));
    let long = format!("{}\n{text}", "x".repeat(3_000_000));
    assert_eq!(piped(long.as_bytes(), "-"), (100, 1));
    let long_agent = text.replacen("\"agent\"", &format!("\"{}\"", "a".repeat(200_000)), 1);
    assert_eq!(piped(long_agent.as_bytes(), "-"), (100, 0));
}

#[test]
fn every_zstd_frame_is_read_as_zstd_reads_it() {
    let name = "every_zstd_frame_is_read_as_zstd_reads_it";
    if Command::new("zstd").arg("--version").output().is_err() {
        skip(name, "no zstd; install zstd");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let all = trace("epa_19950829.csv.gz");
    let mut packed = Vec::new();
    for (part, level) in all[..3000].chunks(1000).zip(["-1", "-19", "--no-check"]) {
        let plain = dir.path().join("part");
        fs::write(&plain, combined(part)).unwrap();
        let frame = Command::new("zstd")
            .args(["-q", "-c", level])
            .arg(&plain)
            .output();
        packed.extend(frame.unwrap().stdout);
        // A frame that is to be skipped, as pzstd writes.
        packed.extend(b"\x5e\x2a\x4d\x18\x02\0\0\0xy");
    }
    assert_eq!(piped(&packed, "-"), (3000, 0));
    let log = dir.path().join("access.log.zst");
    fs::write(&log, &packed[..packed.len() - 40]).unwrap();
    let found = json(&log, &["--uplink", "1mbit"]);
    let broken = found["survey"]["broken_files"][0].as_str().unwrap();
    assert!(broken.contains("access.log.zst: read to line"), "{broken}");
}

#[test]
fn other_forms_are_named_with_what_reads_them() {
    let dir = tempfile::tempdir().unwrap();
    for (first, expected) in [
        (
            &b"\xfd7zXZ\0\0"[..],
            "is xz, which Sooner does not read; use: xz -dc ",
        ),
        (
            b"BZh91AY&SY",
            "is bzip2, which Sooner does not read; use: bzip2 -dc ",
        ),
        (
            b"\x04\x22\x4d\x18d@",
            "is lz4, which Sooner does not read; use: lz4 -dc ",
        ),
        (b"\xff\xfe1\x002\0", "use: iconv -f UTF-16 -t UTF-8 "),
    ] {
        let log = dir.path().join("access.log");
        fs::write(&log, first).unwrap();
        let output = advise(&[log.to_str().unwrap(), "--uplink", "1mbit"]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(
            text.contains(expected) && text.lines().count() == 1,
            "{text}"
        );
        assert!(text.contains(" | sooner advise -"), "{text}");
    }
}

/// Logs of two servers, and one that is named twice.
#[test]
fn logs_that_overlap_are_merged() {
    let dir = tempfile::tempdir().unwrap();
    let all = &trace("epa_19950829.csv.gz")[..5000];
    let parts: [Vec<_>; 2] = [0, 1].map(|part| {
        let every_other = all.iter().skip(part).step_by(2);
        every_other.copied().collect()
    });
    let paths = ["one.log", "two.log"].map(|name| dir.path().join(name));
    for (path, part) in paths.iter().zip(&parts) {
        fs::write(path, combined(part)).unwrap();
    }
    let [one, two] = paths.each_ref().map(|path| path.to_str().unwrap());
    let merged = json(&paths[1], &[one, two, "--uplink", "1mbit"]);
    let whole = dir.path().join("whole.log");
    fs::write(&whole, combined(all)).unwrap();
    let whole = json(&whole, &["--uplink", "1mbit"]);
    for figure in ["requests", "users", "load_by_minute", "backward_lines"] {
        assert_eq!(
            merged["survey"][figure], whole["survey"][figure],
            "{figure}"
        );
    }
    assert_eq!(merged["survey"]["repeated_files"][0], two);
}

#[test]
fn a_page_that_was_there_stays_until_the_new_one_is() {
    let dir = tempfile::tempdir().unwrap();
    let (log, page) = (dir.path().join("access.log"), dir.path().join("page.html"));
    fs::write(&page, "the old page").unwrap();
    let words = |log: &Path| {
        let log = log.to_str().unwrap().to_owned();
        let page = page.to_str().unwrap().to_owned();
        let output = advise(&[&log, "--uplink", "1mbit", "--html", &page]);
        output.status.code()
    };
    fs::write(&log, "no request here\n").unwrap();
    assert_eq!(words(&log), Some(2));
    assert_eq!(fs::read_to_string(&page).unwrap(), "the old page");
    fs::write(&log, combined(&trace("epa_19950829.csv.gz")[..200])).unwrap();
    assert_eq!(words(&log), Some(0));
    assert!(fs::read_to_string(&page).unwrap().contains("</html>"));
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
}

/// Requests of 0 to 5 s, 40 of each of five clients, in the order of their ends.
fn timed_lines() -> Vec<String> {
    let mut lines: Vec<(u64, String)> = (0..200_u64)
        .map(|n| {
            let (at_ms, took_ms) = (n * 700, n * n * 37 % 5000);
            let end_ms = 1_790_000_000_000 + at_ms + took_ms;
            let line = format!(
                "10.0.0.{} - - [{}.{:03}] \"GET /x HTTP/1.1\" 200 100 \"-\" \"x\" rt={}.{:03}",
                n % 5,
                end_ms / 1000,
                end_ms % 1000,
                took_ms / 1000,
                took_ms % 1000
            );
            (end_ms, line)
        })
        .collect();
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

#[test]
fn users_do_not_depend_on_the_order_of_lines() {
    let folder = tempfile::tempdir().unwrap();
    let users = |name: &str, lines: &[String]| {
        let log = folder.path().join(name);
        fs::write(&log, lines.join("\n") + "\n").unwrap();
        json(&log, &["--uplink", "10mbit"])["survey"]["users"].clone()
    };
    let sorted = timed_lines();
    let mixed: Vec<String> = (0..200).map(|n| sorted[n * 77 % 200].clone()).collect();
    let expected = users("sorted", &sorted);
    assert_eq!(expected["late_requests"], 0, "{expected}");
    assert_eq!(users("mixed", &mixed), expected);
}

#[test]
fn what_holds_no_line_says_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("x.log");
    for (content, words) in [
        (vec![], "the log is empty"),
        (vec![0; 300_000], "bytes of zero"),
    ] {
        fs::write(&log, content).unwrap();
        let output = advise(&[log.to_str().unwrap()]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(words), "{said}");
    }
}
