//! wget, which goes on with a file that it has a part of.

use super::client::{Client, command, is_missing, run};
use super::site::{LARGE_BYTES, Site};
use super::table::{Case, Got};
use super::way::Way;
use std::fs;
use std::process::Command;

/// What a failed request ends with; the table has some.
const EXIT_SERVER_SAID_NO: i32 = 8;

#[test]
fn wget_agrees_with_the_files() {
    if is_missing("wget_agrees_with_the_files", &["wget", "--version"], "wget") {
        return;
    }
    let wget = Client {
        ways: Way::HTTP1,
        // It takes only ranges that it asks for itself.
        cannot: &["one range"],
        unpacks: false,
        connections_max: |_| None,
        ask: |site, way, cases| cases.iter().map(|case| ask(site, way, case)).collect(),
    };
    wget.check();
}

#[test]
fn wget_goes_on_with_a_part_and_keeps_its_connection() {
    let test = "wget_goes_on_with_a_part_and_keeps_its_connection";
    if is_missing(test, &["wget", "--version"], "wget") {
        return;
    }
    for &way in Way::HTTP1 {
        let site = Site::start();
        let (part, large) = (site.scratch("part"), site.content("large.bin"));
        fs::write(&part, &large[..1_000_000]).unwrap();
        run(wget(&site)
            .arg("--continue")
            .arg("--output-document")
            .arg(&part)
            .arg(site.url(way, "/large.bin")));
        assert!(fs::read(&part).unwrap() == large, "{way:?}");
        let visits = site.stop();
        assert_eq!(visits.last(), (206, LARGE_BYTES as u64 - 1_000_000));

        let site = Site::start();
        let paths = ["/text.txt", "/large.bin", "/text.txt"];
        let urls = paths.map(|path| site.url(way, path));
        let output = run(wget(&site).args(["--output-document", "-"]).args(urls));
        let text = site.content("text.txt");
        assert!(
            output.stdout == [&text[..], &large, &text].concat(),
            "{way:?}"
        );
        let visits = site.stop();
        visits.check(way);
        assert_eq!((visits.count(), visits.connections()), (3, 1), "{way:?}");
    }
}

fn wget(site: &Site) -> Command {
    let mut wget = command("wget");
    wget.args(["--no-config", "--quiet", "--tries=1", "--timeout=60"])
        .arg("--ca-certificate")
        .arg(site.authority());
    wget
}

fn ask(site: &Site, way: Way, case: &Case) -> Got {
    let body = site.scratch("body");
    // It leaves no body where none came.
    let _ = fs::remove_file(&body);
    let mut wget = wget(site);
    // It waits for the body of an answer that has none (304), as long as the connection lasts.
    wget.args([
        "--server-response",
        "--content-on-error",
        "--no-http-keep-alive",
    ]);
    if case.method == "HEAD" {
        wget.arg("--spider");
    } else {
        wget.arg("--output-document").arg(&body);
    }
    for (name, value) in &case.fields {
        wget.arg("--header").arg(format!("{name}: {value}"));
    }
    let output = wget.arg(site.url(way, case.path)).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | EXIT_SERVER_SAID_NO)),
        "{case:?}: {code:?}: {said}"
    );
    Got::read(&said, &body)
}
