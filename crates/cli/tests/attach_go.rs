//! `sooner attach` before Caddy, a server in Go: what a connection in HTTP/2 under TLS has had is
//! counted by the records that Go makes, small ones first.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::attach_in_use::{PORT, SOONER, attach_by, clients, top, until};
use crate::host::{ADDRESS, Host};
use rustix::process::Signal;
use serde_json::Value;
use sooner_kernel::classifier::lacks_for_tls;
use sooner_testbed::certificate::Certificate;
use sooner_testbed::namespace::Namespace;
use sooner_testbed::{OwnedChild, program, skip};

const FILES: [(&str, usize); 3] = [("small", 1_000), ("middle", 30_000), ("large", 200_000)];

/// Caddy with the files, once it answers.
fn caddy(host: &Host, clients: &Namespace, made: &Certificate) -> OwnedChild {
    let root = host.root.path();
    for (name, bytes) in FILES {
        fs::write(root.join(name), vec![b'#'; bytes]).unwrap();
    }
    let config = format!(
        "{{\n admin off\n auto_https off\n}}\nhttps://{ADDRESS}:{PORT} {{\n tls {} {}\n root * {}\n file_server\n}}\n",
        made.certificate.display(),
        made.key.display(),
        root.display()
    );
    fs::write(root.join("Caddyfile"), config).unwrap();
    let mut command: Command = host.namespace.command("caddy");
    command.args(["run", "--adapter", "caddyfile", "--config"]);
    command.arg(root.join("Caddyfile"));
    command.env("HOME", root).env("XDG_DATA_HOME", root);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let running = OwnedChild::spawn(&mut command).unwrap();
    until("it answers", || {
        curl(clients, &[], &["small"])
            .ends_with("200")
            .then_some(())
    });
    running
}

/// The version and status of the last answer that curl gets for these files over one connection.
fn curl(clients: &Namespace, flags: &[&str], files: &[&str]) -> String {
    let mut command = clients.command("curl");
    command
        .args(["--silent", "--insecure", "--http2"])
        .args(flags);
    command.args(["--write-out", "%{http_version}:%{http_code} "]);
    for file in files {
        let url = format!("https://{ADDRESS}:{PORT}/{file}");
        command.args([&url, "--output", "/dev/null"]);
    }
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// What `attach top` says once every response is over.
fn settled(host: &Host) -> Value {
    // What was seen is collected ten times a second.
    thread::sleep(Duration::from_millis(300));
    until("all responses are over", || {
        Some(top(host)).filter(|all| all["under_way"] == 0)
    })
}

fn number(all: &Value, name: &str) -> u64 {
    all[name].as_u64().unwrap()
}

#[test]
fn caddy_hands_lengths_over() {
    let test = "caddy_hands_lengths_over";
    if program::find(&["caddy"]).is_none() || program::find(&["curl"]).is_none() {
        return skip(test, "needs the packages caddy and curl");
    }
    if let Some(what) = lacks_for_tls() {
        return skip(test, &format!("needs {what}"));
    }
    let Some(host) = Host::new("attach-caddy") else {
        return;
    };
    let clients = clients(&host);
    let made = Certificate::make(host.root.path(), &[ADDRESS]).unwrap();
    let _caddy = caddy(&host, &clients, &made);
    let (attached, ready) = attach_by(host.inside(SOONER), "10mbit", &[]);
    assert!(ready.contains("under TLS before "), "{ready}");
    for (flags, version) in [(&[][..], "TLS 1.3"), (&["--tls-max", "1.2"], "TLS 1.2")] {
        // The first response of a connection has its length as well as those that follow.
        for (name, _) in FILES {
            let before = settled(&host);
            assert_eq!(curl(&clients, flags, &[name]), "2:200");
            let after = settled(&host);
            let added = |name: &str| number(&after, name) - number(&before, name);
            assert_eq!(added("sized_by_tls"), 1, "{version}, {name}: {after}");
        }
        let before = settled(&host);
        let all = ["small", "large", "middle", "large", "small"];
        assert_eq!(curl(&clients, flags, &all), ["2:200"; 5].join(" "));
        let after = settled(&host);
        let added = |name: &str| number(&after, name) - number(&before, name);
        assert_eq!(added("sized_by_tls"), 5, "{version}: {after}");
        assert_eq!(number(&after, "broken_responses"), 0, "{version}: {after}");
        assert_eq!(number(&after, "wrong_lengths"), 0, "{version}: {after}");
    }
    // Several at once are one response, of known length where one of them is.
    for _ in 0..5 {
        let files = ["large", "small", "large", "small", "middle", "small"];
        let got = curl(&clients, &["--parallel"], &files);
        assert_eq!(got.matches("2:200").count(), 6, "{got}");
    }
    let all = settled(&host);
    assert_eq!(number(&all, "broken_responses"), 0, "{all}");
    assert!(
        number(&all, "sized_responses") <= number(&all, "responses"),
        "{all}"
    );
    for class in all["sizes"].as_array().unwrap() {
        let (ended, compared) = (&class["responses"], &class["compared_responses"]);
        assert!(compared.as_u64() <= ended.as_u64(), "{class}");
    }
    attached.end(Signal::TERM).unwrap();
}
