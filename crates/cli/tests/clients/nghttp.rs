//! nghttp, which shows every frame of HTTP/2.

use super::client::{Client, command, is_missing, run};
use super::site::Site;
use super::table::{Case, Got};
use super::way::Way;
use std::process::Command;

const PACKAGE: &str = "nghttp2-client";

#[test]
fn nghttp_agrees_with_the_files() {
    if is_missing(
        "nghttp_agrees_with_the_files",
        &["nghttp", "--version"],
        PACKAGE,
    ) {
        return;
    }
    let client = Client {
        ways: Way::HTTP2,
        cannot: &[],
        unpacks: true,
        connections_max: |_| None,
        ask: |site, way, cases| cases.iter().map(|case| ask(site, way, case)).collect(),
    };
    client.check();
}

#[test]
fn nghttp_asks_for_several_at_once() {
    if is_missing(
        "nghttp_asks_for_several_at_once",
        &["nghttp", "--version"],
        PACKAGE,
    ) {
        return;
    }
    for &way in Way::HTTP2 {
        let site = Site::start();
        let paths = ["/large.bin", "/text.txt", "/style.css", "/"];
        let urls = paths.map(|path| site.url(way, path));
        let output = run(nghttp().args(["--null-out", "--stat"]).args(urls));
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(printed.matches(" 200 ").count(), paths.len(), "{printed}");
        let visits = site.stop();
        visits.check(way);
        assert_eq!(
            (visits.count(), visits.connections()),
            (paths.len(), 1),
            "{way:?}"
        );
    }
}

fn nghttp() -> Command {
    let mut nghttp = command("nghttp");
    nghttp.args(["--no-verify-peer", "--timeout=60s"]);
    nghttp
}

/// Asks twice: for the head, which is printed among the frames, and for the body.
fn ask(site: &Site, way: Way, case: &Case) -> Got {
    let told = |how: &[&str]| {
        let mut nghttp = nghttp();
        nghttp
            .args(how)
            .arg(format!("--header=:method: {}", case.method));
        for (name, value) in &case.fields {
            nghttp.arg(format!("--header={name}: {value}"));
        }
        run(nghttp.arg(site.url(way, case.path))).stdout
    };
    let frames = String::from_utf8_lossy(&told(&["--null-out", "--verbose"])).into_owned();
    let fields = frames.lines().filter_map(field);
    let mut fields: Vec<(String, String)> = fields.collect();
    let status = fields.iter().position(|(name, _)| name == ":status");
    let (_, status) = fields.remove(status.unwrap_or_else(|| panic!("{case:?}: {frames}")));
    Got {
        status: status.parse().unwrap(),
        fields,
        body: told(&[]),
    }
}

/// `[  0.001] recv (stream_id=13) content-length: 5`.
fn field(line: &str) -> Option<(String, String)> {
    let (_, line) = line.split_once("] recv (stream_id=")?;
    let (_, line) = line.split_once(") ")?;
    // The name of a pseudo field begins with a colon.
    let colon = 1 + line.get(1..)?.find(": ")?;
    Some((line[..colon].to_owned(), line[colon + 2..].to_owned()))
}
