//! curl, which speaks in every way, keeps its connection, and shows what came as it came.

use super::client::{Client, command, is_missing, run};
use super::site::Site;
use super::table::{Case, Got};
use super::way::Way;
use std::fs;

#[test]
fn curl_agrees_with_the_files() {
    if is_missing("curl_agrees_with_the_files", &["curl", "--version"], "curl") {
        return;
    }
    let curl = Client {
        ways: Way::ALL,
        cannot: &[],
        unpacks: false,
        connections_max: |way| (way != Way::Clear2).then_some(1),
        ask: |site, way, cases| match way {
            // curl 7.88 cannot take up such a connection again, whatever the server is.
            Way::Clear2 => cases
                .chunks(1)
                .flat_map(|case| ask(site, way, case))
                .collect(),
            _ => ask(site, way, cases),
        },
    };
    curl.check();
}

fn ask(site: &Site, way: Way, cases: &[Case]) -> Vec<Got> {
    let files = |case: &Case| {
        let file = |what: &str| site.scratch(&format!("{}.{what}", case.name));
        (file("head"), file("body"))
    };
    let mut curl = command("curl");
    for (nth, case) in cases.iter().enumerate() {
        let (head, body) = files(case);
        // Nothing from its user's configuration; then one request after the other.
        curl.arg(if nth == 0 { "--disable" } else { "--next" })
            .args(["--silent", "--show-error", "--max-time", "60"])
            .arg(protocol(way))
            .arg("--cacert")
            .arg(site.authority())
            .arg("--dump-header")
            .arg(head)
            .args(fields(case));
        if case.method == "HEAD" {
            // It would write the head as the body.
            curl.args(["--head", "--output", "/dev/null"]);
        } else {
            curl.arg("--output").arg(body);
        }
        curl.arg(site.url(way, case.path));
    }
    run(&mut curl);
    let read = |case| {
        let (head, body) = files(case);
        Got::read(&fs::read_to_string(head).unwrap(), &body)
    };
    cases.iter().map(read).collect()
}

fn fields(case: &Case) -> impl Iterator<Item = String> {
    let fields = case.fields.iter();
    fields.flat_map(|(name, value)| ["--header".to_owned(), format!("{name}: {value}")])
}

fn protocol(way: Way) -> &'static str {
    match way {
        Way::Clear1 | Way::Tls1 => "--http1.1",
        Way::Clear2 => "--http2-prior-knowledge",
        Way::Tls2 => "--http2",
    }
}
