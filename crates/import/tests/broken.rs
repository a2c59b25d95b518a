//! Broken files, and right ones like them, given to `nginx -t` and to the import: what nginx refuses
//! the import refuses, with the line, and what nginx takes it takes.

mod cases;

use cases::{BROKEN, Place, RIGHT};
use sooner_import::{NginxFiles, import_nginx};
use sooner_testbed::{nginx, skip};
use std::fs;
use std::path::Path;
use std::process::Command;

/// What the two say of a file; `None` where they take it.
struct Said {
    nginx: Option<String>,
    ours: Option<String>,
}

/// A configuration with `text` from its second line on.
fn configuration(folder: &Path, place: Place, text: &str) -> String {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {}; ", folder.join(kind).display()))
        .concat();
    let http = format!("http {{ {temporary}access_log off;");
    let server = "server { listen 18080; ";
    let events = "events { } ";
    match place {
        Place::Main => format!("{events}\n{text}\n{http} {server} }} }}"),
        Place::Events => format!("events {{\n{text}\n}} {http} {server} }} }}"),
        Place::Http => format!("{events}{http}\n{text}\n{server} }} }}"),
        Place::Upstream => format!("{events}{http} upstream u {{\n{text}\n}} {server} }} }}"),
        Place::Bare => format!("{events}{http} server {{\n{text}\n}} }}"),
        Place::Server => format!("{events}{http} {server}\n{text}\n}} }}"),
        Place::Location => format!("{events}{http} {server} location /a {{\n{text}\n}} }} }}"),
    }
}

fn said(folder: &Path, place: Place, text: &str) -> Said {
    let text = configuration(folder, place, text);
    let file = folder.join("nginx.conf");
    fs::write(&file, &text).unwrap();
    let mut nginx = Command::new("nginx");
    nginx.args(["-t", "-q", "-e", "stderr", "-p"]).arg(folder);
    nginx.arg("-c").arg(&file);
    if !text.contains("pid ") {
        let pid = format!("pid {};", folder.join("pid").display());
        nginx.args(["-g", &pid]);
    }
    let output = nginx.output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    let files = NginxFiles {
        folder,
        read: &|path| fs::read_to_string(path),
        list: &|_| Ok(Vec::new()),
    };
    let ours = import_nginx("nginx.conf", files);
    Said {
        nginx: (!output.status.success()).then_some(words),
        ours: ours.err().map(|error| error.to_string()),
    }
}

#[test]
fn what_nginx_refuses_is_refused() {
    const MODULES: [&str; 4] = [
        "http_ssl_module",
        "http_v2_module",
        "http_realip_module",
        "http_gzip_static_module",
    ];
    if !nginx::has_modules(&MODULES) {
        skip(
            "what_nginx_refuses_is_refused",
            "no nginx with ssl, v2, realip and gzip_static; as root: apt-get install nginx-light",
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for (place, text, hint) in BROKEN {
        let said = said(folder.path(), *place, text);
        if said.nginx.is_none() {
            wrong.push(format!("nginx takes {place:?} {text}"));
        }
        match said.ours {
            None => wrong.push(format!("taken: {place:?} {text}")),
            Some(ours) => {
                let begin = ours.split(": ").next().unwrap_or_default();
                let line: usize = begin.rsplit(':').next().unwrap().parse().unwrap_or(0);
                // A brace too early is behind it.
                let is_there = (2..=2 + text.lines().count()).contains(&line);
                if !is_there || !ours.contains(hint) || ours.contains('\n') {
                    wrong.push(format!("{place:?} {text}\n  {hint}\n  {ours}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(BROKEN.len() >= 50);
}

#[test]
fn what_nginx_takes_is_taken() {
    if !nginx::has_modules(&["http_ssl_module", "http_v2_module", "http_realip_module"]) {
        skip(
            "what_nginx_takes_is_taken",
            "no nginx with ssl, v2 and realip; as root: apt-get install nginx-light",
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for (place, text) in RIGHT {
        let said = said(folder.path(), *place, text);
        for refused in [said.nginx, said.ours].into_iter().flatten() {
            wrong.push(format!("{place:?} {text}\n  {refused}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_like_public_ones_are_taken() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nginx");
    let mut taken = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_file() {
            continue;
        }
        let files = NginxFiles {
            folder: &folder,
            // Some include what comes with nginx.
            read: &|path| Ok(fs::read_to_string(path).unwrap_or_default()),
            list: &|_| Ok(Vec::new()),
        };
        let imported = import_nginx(path.to_str().unwrap(), files);
        imported.unwrap_or_else(|error| panic!("{error}"));
        taken += 1;
    }
    assert!(taken >= 25, "{taken}");
}
