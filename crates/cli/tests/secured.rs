//! `sooner load` against `sooner serve`, both as processes: TLS and HTTP/2, counted alike on both
//! sides.

use sooner_testbed::ChildGuard;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Thirty objects of 2 to 60 kB, in their turn.
fn write_trace(folder: &Path) {
    let mut requests = String::from("t,bytes,client,object,status\n");
    let mut objects = String::from("object,requests,max_bytes,ext\n");
    for object in 0..30 {
        objects += &format!("{object},50,{},html\n", 2_000 * (object + 1));
    }
    for nth in 0..1_500 {
        let object = nth * 7 % 30;
        requests += &format!("{},{},0,{object},200\n", nth / 10, 2_000 * (object + 1));
    }
    fs::write(folder.join("small.csv"), requests).unwrap();
    fs::write(folder.join("small.objects.csv"), objects).unwrap();
}

/// A server with TLS; ended when dropped.
struct Server {
    _child: ChildGuard,
    url: String,
}

impl Server {
    fn start(folder: &Path, root: &Path) -> Self {
        let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate_file, key_file) = (folder.join("c.pem"), folder.join("k.pem"));
        fs::write(&certificate_file, key.cert.pem()).unwrap();
        fs::write(&key_file, key.signing_key.serialize_pem()).unwrap();
        let mut child = sooner()
            .arg("serve")
            .arg(root)
            .args(["--listen-tls", "127.0.0.1:0", "--uplink", "50mbit"])
            .arg("--certificate")
            .arg(&certificate_file)
            .arg("--key")
            .arg(&key_file)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line
            .split([' ', ';', ','])
            .map(str::trim_end)
            .find(|word| word.starts_with("https://"))
            .unwrap_or_else(|| panic!("{line}"));
        Self {
            url: url.to_owned(),
            _child: ChildGuard(child),
        }
    }
}

fn sooner() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin("sooner"))
}

#[test]
fn every_way_to_speak_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    write_trace(folder.path());
    let (trace, root) = (folder.path().join("small.csv"), folder.path().join("root"));
    let made = sooner()
        .args(["load", "mkroot"])
        .args([&trace, &root])
        .output()
        .unwrap();
    assert!(made.status.success());
    let server = Server::start(folder.path(), &root);
    let ways: [(&[&str], &str); 4] = [
        (&[], "HTTP/1.1 over TLS"),
        (&["--requests-per-connection", "5"], "HTTP/1.1 over TLS"),
        (&["--http2"], "HTTP/2 over TLS"),
        (&["--http2", "--streams", "10"], "HTTP/2 over TLS"),
    ];
    for (way, protocol) in ways {
        let output = sooner()
            .args(["load", "replay"])
            .arg(&trace)
            .args(["--url", &server.url, "--insecure", "--poisson", "--json"])
            .args(["--uplink", "50mbit", "--rho", "0.5", "--for", "2"])
            .args(way)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // 1 says that a busy machine was late.
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "{way:?}: {said}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&said);
        let run = &report["runs"][0];
        assert_eq!(run["protocol"], protocol);
        assert_eq!(run["all"]["errors"], 0, "{way:?}: {run}");
        assert!(run["opening_bytes"].as_u64().unwrap() > 500, "{way:?}");
    }
}
