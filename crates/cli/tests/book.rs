//! The documents: every block marked `sh` is run as it stands, and what dashboards and alert rules
//! ask for is what the program tells.

use sooner_testbed::child::OwnedChild;
use sooner_testbed::exposition::{asked, told};
use sooner_testbed::port;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The page's blocks of this kind, put together.
fn blocks(page: &str, kind: &str) -> Vec<String> {
    let opening = format!("\n```{kind}\n");
    page.split(&opening)
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next())
        .map(str::to_owned)
        .collect()
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("docs") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|kind| kind == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn every_block_marked_sh_runs_as_it_stands() {
    let program = Path::new(env!("CARGO_BIN_EXE_sooner"));
    let path = format!(
        "{}:{}",
        program.parent().expect("a folder").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut run = 0;
    for page in pages(&Path::new(ROOT).join("docs")) {
        let text = fs::read_to_string(&page).expect("a page");
        let blocks = blocks(&text, "sh");
        if blocks.is_empty() {
            continue;
        }
        run += blocks.len();
        let folder = tempfile::tempdir().expect("a folder");
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &blocks.join("\n")])
            .current_dir(folder.path())
            .env("PATH", &path)
            .output()
            .expect("bash");
        assert!(
            output.status.success(),
            "{}: {}\n{}",
            page.display(),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    assert!(run >= 8, "only {run} blocks were run");
}

/// What an admin address tells.
fn metrics(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).expect("the admin address");
    write!(stream, "GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n").expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.contains(" 200 "), "{answer}");
    answer
}

/// A dashboard and its alert rules.
fn packaged(name: &str) -> [String; 2] {
    let read = |path: String| fs::read_to_string(&path).unwrap_or_else(|_| panic!("{path}"));
    [
        read(format!("{ROOT}/packaging/grafana/{name}.json")),
        read(format!("{ROOT}/packaging/prometheus/{name}.yml")),
    ]
}

#[test]
fn dashboard_and_alerts_of_serve_ask_for_what_a_server_tells() {
    let folder = tempfile::tempdir().expect("a folder");
    let [site, admin] = port::free_ones::<2>().expect("ports");
    let config = folder.path().join("sooner.toml");
    let text = format!(
        "listen = [\"{site}\"]\n[uplink]\nrate = \"10mbit\"\n[admin]\nlisten = \"{admin}\"\n\
         [[site]]\n[[upstream]]\nname = \"app\"\nservers = [\"http://{site}\"]\n\
         [[class]]\nname = \"gold\"\ntarget = {{ mean = \"30ms\" }}\n\
         [[route]]\npath = \"/\"\nupstream = \"app\"\n"
    );
    fs::write(&config, text).expect("a file");
    let mut server = OwnedChild::spawn(
        Command::new(env!("CARGO_BIN_EXE_sooner"))
            .args(["serve", "--config"])
            .arg(&config),
    )
    .expect("a server");
    server.next_message(Duration::from_secs(20)).expect("ready");
    let mut missing = Vec::new();
    // Some are of the last seconds, and there only after the first.
    for _ in 0..100 {
        let told = told(&metrics(admin));
        assert!(told.len() > 30, "{told:?}");
        missing = packaged("serve")
            .iter()
            .flat_map(|text| asked(text).difference(&told).cloned().collect::<Vec<_>>())
            .collect();
        if missing.is_empty() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("not told: {missing:?}");
}

fn manifest(name: &str) -> String {
    fs::read_to_string(format!("{ROOT}/packaging/kubernetes/{name}")).expect(name)
}

#[test]
fn the_sidecars_configuration_is_right() {
    let text = manifest("sidecar.yaml");
    let (_, rest) = text
        .split_once("sooner.toml: |\n")
        .expect("a configuration");
    let (inner, _) = rest.split_once("\n---").expect("its end");
    let config: String = inner
        .lines()
        .map(|line| format!("{}\n", line.trim_start()))
        .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sooner.toml");
    fs::write(&path, config).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args(["serve", "--check", "--config"])
        .arg(&path)
        .output()
        .expect("the program");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn the_daemon_sets_flags_exist() {
    let text = manifest("daemonset.yaml");
    let (_, rest) = text.split_once("args:\n").expect("arguments");
    let words: Vec<&str> = rest
        .lines()
        .map(str::trim)
        .take_while(|line| line.starts_with("- ") || line.starts_with('#'))
        .filter_map(|line| line.strip_prefix("- "))
        .collect();
    assert_eq!(&words[..2], ["attach", "web"]);
    let output = Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args(["attach", "web", "--help"])
        .output()
        .expect("the program");
    let help = String::from_utf8(output.stdout).expect("text");
    for flag in words[2..].iter().filter_map(|word| word.split('=').next()) {
        assert!(
            help.split_whitespace().any(|word| word == flag),
            "no flag {flag}"
        );
    }
}
