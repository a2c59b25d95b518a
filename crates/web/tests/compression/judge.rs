//! nginx's gzip beside ours: the same files, the same requests, the same heads.

use super::support::*;
use sooner_testbed::nginx::{self, Nginx};
use sooner_testbed::{port, skip};
use std::net::SocketAddr;

/// nginx serving the same folder.
fn beside(site: &Site) -> Option<(Nginx, SocketAddr)> {
    if !nginx::has_modules(&[]) {
        skip("judge", "needs the package nginx");
        return None;
    }
    let root = site.path("");
    for folder in [site.outside(), root.as_path()] {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder, permissions).unwrap();
    }
    let address = port::free().unwrap();
    let http = format!(
        "access_log off; types {{ text/html html; text/css css; application/json json; \
         image/png png; image/svg+xml svg; }} \
         gzip on; gzip_vary on; gzip_min_length 1024; gzip_http_version 1.0; \
         gzip_types text/css application/json image/svg+xml; \
         server {{ listen {address}; root {}; }}\n",
        root.display()
    );
    let nginx = Nginx::start(site.outside(), &http, address).unwrap();
    Some((nginx, address))
}

/// What of a head has to be the same.
#[derive(Debug, PartialEq, Eq)]
struct Facts {
    status: u16,
    coding: Option<String>,
    varies: bool,
    has_weak_tag: Option<bool>,
    has_ranges: bool,
    has_length: bool,
}

fn facts(got: &Got) -> Facts {
    Facts {
        status: got.status,
        coding: got.header("content-encoding").map(str::to_owned),
        varies: got.varies(),
        has_weak_tag: got.header("etag").map(|tag| tag.starts_with("W/")),
        has_ranges: got.header("accept-ranges").is_some(),
        has_length: got.header("content-length").is_some(),
    }
}

#[test]
fn heads_are_those_of_nginx() {
    if !has_curl() {
        return;
    }
    let site = Site::start_with("compress = true\n[compression]\ncodings = ['gzip']");
    for name in ["a.html", "a.css", "a.json", "a.svg", "a.png"] {
        site.write(name, text(20_000));
    }
    site.write("tiny.html", text(1023));
    site.write("least.html", text(1024));
    site.write("empty.html", "");
    let Some((_nginx, nginx)) = beside(&site) else {
        return;
    };
    let paths = [
        "a.html",
        "a.css",
        "a.json",
        "a.svg",
        "a.png",
        "tiny.html",
        "least.html",
        "empty.html",
    ];
    for path in paths.map(|path| format!("/{path}")) {
        for accept in [
            "gzip",
            "gzip;q=0",
            "identity",
            "br",
            "*",
            "gzip;q=0.001, br;q=1",
        ] {
            let header = format!("accept-encoding: {accept}");
            for version in ["--http1.0", "--http1.1"] {
                let arguments = ["-H", &header, version];
                let [ours, theirs] =
                    [site.address, nginx].map(|address| curl(address, &path, &arguments));
                let (mut ours, mut theirs) = (facts(&ours), facts(&theirs));
                // nginx reads no star; and it compresses anew each time, so it knows no length.
                if accept == "*" {
                    theirs = facts(&curl(
                        nginx,
                        &path,
                        &["-H", "accept-encoding: gzip", version],
                    ));
                }
                if ours.coding.is_some() {
                    (ours.has_length, theirs.has_length) = (false, false);
                }
                assert_eq!(ours, theirs, "{path} {accept} {version}");
            }
        }
    }
}

#[test]
fn conditions_are_answered_as_nginx_does() {
    if !has_curl() {
        return;
    }
    let site = Site::start_with("compress = true\n[compression]\ncodings = ['gzip']");
    site.write("a.html", text(20_000));
    let Some((_nginx, nginx)) = beside(&site) else {
        return;
    };
    let [ours, theirs] = [site.address, nginx].map(|address| {
        let gzip = ["-H", "accept-encoding: gzip"];
        let ask = |more: &[&str]| curl(address, "/a.html", &[&gzip[..], more].concat());
        let tag = ask(&[]).header("etag").unwrap().to_owned();
        let strong = tag.strip_prefix("W/").unwrap().to_owned();
        [
            format!("if-none-match: {tag}"),
            format!("if-none-match: {strong}"),
            "if-none-match: \"other\"".to_owned(),
            "if-none-match: *".to_owned(),
        ]
        .map(|condition| {
            let got = ask(&["-H", &condition]);
            let coding = got.header("content-encoding").map(str::to_owned);
            (got.status, coding, got.body.is_empty())
        })
    });
    assert_eq!(ours, theirs);
}
