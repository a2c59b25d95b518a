//! Programs people use. One that is not installed is skipped, and that is said.

use super::support::Site;
use sooner_testbed::skip;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::{Command, Stdio};

/// What `program` prints; `None` if it is not installed.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let is_installed = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok();
    if !is_installed {
        // The harness names a test's thread after it.
        let test = std::thread::current();
        let test = test.name().unwrap_or(program);
        skip(test, &format!("{program} is not installed"));
        return None;
    }
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn curl_gets_files() {
    let site = Site::start();
    site.write("a", "hello");
    let url = format!("http://{}/a", site.address);
    let what = "%{http_version} %{response_code} %{size_download}";
    let arguments = ["-sS", "--http2-prior-knowledge", "-w", what, &url];
    if let Some(printed) = run("curl", &arguments) {
        assert_eq!(printed, "hello2 200 5");
    }
}

#[test]
fn curl_gets_what_it_does_not_escape() {
    let mut site = Site::start_with("[log]\naccess = 'FOLDER/log'");
    site.write("caf\u{e9}", "hello");
    // They may be no text.
    let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    for (target, status) in [
        (text(b"/caf\xc3\xa9?q=\"<a>\"`{|}"), "200"),
        (text(b"/caf\xe9?q=\xe9"), "404"),
        (text(b"/<`>\"?a"), "404"),
    ] {
        let mut url = OsString::from(format!("http://{}", site.address));
        url.push(&target);
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-g", "--http2-prior-knowledge", "-o", "/dev/null"]);
        curl.args(["-w", "%{http_version} %{response_code}"])
            .arg(&url);
        let output = curl.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(printed, format!("2 {status}"), "{target:?} {output:?}");
    }
    let lines = site.log_lines();
    assert_eq!(lines.len(), 3);
    // Bytes that are no ASCII it escapes itself.
    assert_eq!(lines[0]["target"], "/caf%c3%a9?q=%22%3Ca%3E%22`{|}");
}

#[test]
fn nghttp_gets_a_page_and_its_parts() {
    let site = Site::start();
    site.write(
        "index.html",
        "<link rel=stylesheet href=style.css><img src=picture.png>",
    );
    site.write("style.css", "body {}");
    site.write("picture.png", vec![0; 100_000]);
    let url = format!("http://{}/", site.address);
    if let Some(printed) = run("nghttp", &["-n", "-a", "-s", &url]) {
        assert_eq!(printed.matches(" 200 ").count(), 3, "{printed}");
    }
}

#[test]
fn h2load_has_no_failures() {
    let site = Site::start();
    site.write("a", vec![b'a'; 1000]);
    let url = format!("http://{}/a", site.address);
    if let Some(printed) = run("h2load", &["-n", "5000", "-c", "10", "-m", "50", &url]) {
        assert!(printed.contains("5000 succeeded, 0 failed"), "{printed}");
    }
}

#[test]
fn curl_reads_an_answer_that_comes_before_its_upload_is_over() {
    let site = Site::start_with(
        "[limits]\nbody_bytes = 1000\n\
         [[upstream]]\nname = \"app\"\nservers = [\"http://127.0.0.1:1\"]\n\
         [[route]]\npath = \"/app/\"\nupstream = \"app\"",
    );
    site.write("a", "hello");
    let upload = site.outside().join("upload");
    let long = format!("x: {}", "x".repeat(20_000));
    for bytes in [500, 70_000, 4_000_000] {
        std::fs::write(&upload, vec![0; bytes]).unwrap();
        let data = format!("@{}", upload.display());
        for (path, field, status) in [
            ("a", "x: y", "405"),
            ("a", &long[..], "431"),
            ("app/x", "x: y", if bytes > 1000 { "413" } else { "502" }),
        ] {
            for expect in ["expect:", "expect: 100-continue"] {
                let url = format!("http://{}/{path}", site.address);
                let arguments = [
                    "-sS",
                    "--http2-prior-knowledge",
                    "-o",
                    "/dev/null",
                    "-w",
                    "%{http_version} %{response_code}",
                    "-H",
                    field,
                    "-H",
                    expect,
                    "--data-binary",
                    &data,
                    &url,
                ];
                let Some(printed) = run("curl", &arguments) else {
                    return;
                };
                let what = format!("{bytes} bytes to {path}, {expect}");
                assert_eq!(printed, format!("2 {status}"), "{what}");
            }
        }
    }
}
