//! `sooner attach web` and `sooner serve` before an uplink of a rate that they have to find, and
//! where an attachment only looks.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use crate::attach_in_use::{PORT, SOONER, attach_by, nginx_with, top, until};
use crate::host::{ADDRESS, DEVICE, Host};
use rustix::process::Signal;
use serde_json::Value;
use sooner_kernel::classifier::lacks_for_delays;
use sooner_kernel::netns;
use sooner_testbed::namespace::Namespace;
use sooner_testbed::{ChildGuard, skip};

const CLIENTS: u32 = 8;
const ADMIN_PORT: u16 = 9090;
/// Ahead of what else this machine does: who waits for the processor does not fill a link, and the
/// search rightly looks for no more.
const FIRST: [&str; 2] = ["-n", "-15"];

/// A host, a router that limits the link to the clients, and these; None, after saying why, where
/// it cannot be tried here.
struct Site {
    host: Host,
    router: Namespace,
    clients: Namespace,
}

impl Site {
    fn start(name: &str, rate: &str) -> Option<Site> {
        let host = Host::new(name)?;
        let beside = |what: &str| Namespace::make(&format!("{}-{what}", host.namespace.name()));
        let (router, clients) = (beside("router").unwrap(), beside("clients").unwrap());
        host.printed("ip", &["link", "set", "s1", "netns", router.name()]);
        router.address("s1", "10.78.0.2/24").unwrap();
        router.join("r1", &clients, "c0").unwrap();
        router.address("r1", "10.80.0.254/24").unwrap();
        for client in 1..=CLIENTS {
            clients
                .address("c0", &format!("10.80.0.{client}/24"))
                .unwrap();
        }
        clients.ip("route add default via 10.80.0.254").unwrap();
        host.namespace
            .ip("route add 10.80.0.0/24 via 10.78.0.2 congctl cubic")
            .unwrap();
        let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
        let status = router.command("sh").args(["-c", forward]).status();
        assert!(status.unwrap().success());
        let site = Site {
            host,
            router,
            clients,
        };
        site.tc("qdisc add dev r1 root handle 1: htb default 1");
        site.tc(&format!(
            "class add dev r1 parent 1: classid 1:1 htb {}",
            of_rate(rate)
        ));
        site.tc("qdisc add dev r1 parent 1:1 pfifo limit 60");
        Some(site)
    }

    /// Sooner on the host, before other processes.
    fn sooner(&self) -> Command {
        let mut command = self.host.inside("nice");
        command.args(FIRST).arg(SOONER);
        command
    }

    fn tc(&self, words: &str) {
        let status = self.router.command("tc").args(words.split(' ')).status();
        assert!(status.unwrap().success(), "tc {words}");
    }

    /// The router lets through so much from now on.
    fn limit(&self, rate: &str) {
        let class = "class change dev r1 parent 1: classid 1:1 htb";
        self.tc(&format!("{class} {}", of_rate(rate)));
    }

    fn downloads(&self, seconds: u32) -> ChildGuard {
        self.downloads_of(CLIENTS, 6, seconds)
    }

    fn downloads_of(&self, clients: u32, connections: u32, seconds: u32) -> ChildGuard {
        let mut command = self.clients.command("nice");
        command.args(FIRST).arg(SOONER);
        let file = format!("http://{ADDRESS}:{PORT}/large");
        let from: Vec<String> = (1..=clients)
            .map(|client| format!("10.80.0.{client}"))
            .collect();
        command.args([
            "load",
            "closed",
            "--json",
            "--url",
            &file,
            "--from",
            &from.join(","),
        ]);
        command.args(["--connections", &connections.to_string()]);
        command.args(["--for", &seconds.to_string()]);
        ChildGuard(command.stdout(std::process::Stdio::null()).spawn().unwrap())
    }

    /// Waits until it believes this of the link, about.
    fn until_found(&self, mbit: f64) -> Value {
        until(&format!("{mbit} Mbit/s are found"), || {
            let uplink = top(&self.host)["uplink"].clone();
            is_about(&uplink, mbit, 0.1).then_some(uplink)
        })
    }
}

/// Whether so much is believed of the link, about.
fn is_about(uplink: &Value, mbit: f64, share: f64) -> bool {
    let carries = uplink["carries_bits_per_sec"].as_f64();
    // A trial may find out that the queue is another's.
    let is_found = uplink["state"] != "trial";
    is_found && carries.is_some_and(|carries| (carries / 1e6 - mbit).abs() < share * mbit)
}

/// None, after saying why, where delays cannot be measured.
fn may_measure(test: &str) -> Option<()> {
    let Some(what) = lacks_for_delays() else {
        return Some(());
    };
    skip(test, &format!("needs {what}"));
    None
}

fn of_rate(rate: &str) -> String {
    format!("rate {rate} burst 1600 cburst 1600 quantum 1514")
}

#[test]
fn an_uplink_that_a_router_limits_is_found_and_followed() {
    let test = "an_uplink_that_a_router_limits_is_found_and_followed";
    let Some(site) = may_measure(test).and_then(|()| Site::start("attach-auto", "8mbit")) else {
        return;
    };
    let namespace = &site.host.namespace;
    let Some(_nginx) = nginx_with(&site.host, namespace, ADDRESS, test, ("", "")) else {
        return;
    };
    let before = (site.host.qdiscs(), site.host.link());
    let (running, ready) = attach_by(site.sooner(), "auto:500mbit", &[]);
    assert!(
        ready.contains("a rate that is found, at most 500 Mbit/s"),
        "{ready}"
    );
    let uplink = &top(&site.host)["uplink"];
    assert_eq!(uplink["state"], "open", "{uplink}");
    assert_eq!(uplink["carries_bits_per_sec"], Value::Null, "{uplink}");
    let downloads = site.downloads(120);
    let uplink = site.until_found(8.0);
    assert_eq!(uplink["most_bits_per_sec"], 500_000_000, "{uplink}");
    let why = &uplink["decisions"][0]["why"];
    let reasons = [
        "all clients wait: the link is full",
        "packets are lost and clients may wait: trying less",
    ];
    assert!(reasons.iter().any(|reason| why == reason), "{uplink}");
    site.limit("4mbit");
    site.until_found(4.0);
    site.limit("8mbit");
    site.until_found(8.0);
    // Without traffic nothing changes.
    drop(downloads);
    thread::sleep(Duration::from_secs(2));
    let decided = || top(&site.host)["uplink"]["decided"].clone();
    let so_far = decided();
    thread::sleep(Duration::from_secs(3));
    assert_eq!(decided(), so_far);
    let prometheus = site
        .host
        .inside(SOONER)
        .args(["attach", "top", "--prometheus", "--dev", DEVICE])
        .output();
    let text = String::from_utf8(prometheus.unwrap().stdout).unwrap();
    assert!(
        text.contains("sooner_attach_uplink_carries_bytes{"),
        "{text} {}",
        top(&site.host)["uplink"]
    );
    running.end(Signal::TERM).unwrap();
    assert_eq!((site.host.qdiscs(), site.host.link()), before);
}

#[test]
fn one_client_that_came_before_is_found() {
    let test = "one_client_that_came_before_is_found";
    let site = may_measure(test).and_then(|()| Site::start("attach-auto-one", "8mbit"));
    let Some(site) = site else {
        return;
    };
    let namespace = &site.host.namespace;
    let Some(_nginx) = nginx_with(&site.host, namespace, ADDRESS, test, ("", "")) else {
        return;
    };
    // Their first delays are those of a full queue, and there is no other client.
    let _downloads = site.downloads_of(1, 3, 120);
    thread::sleep(Duration::from_secs(4));
    let (running, _) = attach_by(site.sooner(), "auto:500mbit", &[]);
    site.until_found(8.0);
    running.end(Signal::TERM).unwrap();
}

#[test]
fn where_it_only_looks_nothing_changes_and_it_says_what_it_would_do() {
    let test = "where_it_only_looks_nothing_changes_and_it_says_what_it_would_do";
    let Some(site) = may_measure(test).and_then(|()| Site::start("attach-observe", "8mbit")) else {
        return;
    };
    let namespace = &site.host.namespace;
    let Some(_nginx) = nginx_with(&site.host, namespace, ADDRESS, test, ("", "")) else {
        return;
    };
    let before = (site.host.qdiscs(), site.host.link());
    let (running, ready) = attach_by(site.sooner(), "auto", &["--observe"]);
    assert!(ready.contains("are observed and not ordered"), "{ready}");
    let _downloads = site.downloads(60);
    let uplink = until("it would do something", || {
        let uplink = top(&site.host)["uplink"].clone();
        (uplink["decided"].as_u64()? > 0).then_some(uplink)
    });
    assert_eq!(uplink["observes"], true, "{uplink}");
    assert_eq!(uplink["state"], "open", "{uplink}");
    assert_eq!((site.host.qdiscs(), site.host.link()), before);
    assert!(top(&site.host)["responses"].as_u64().unwrap() > 0);
    running.end(Signal::TERM).unwrap();
    assert_eq!((site.host.qdiscs(), site.host.link()), before);
}

/// What the server says of itself.
fn status(host: &Host) -> Option<Value> {
    let ask = || {
        let mut stream = TcpStream::connect((ADDRESS, ADMIN_PORT))?;
        let request = format!("GET /status.json HTTP/1.0\r\nHost: {ADDRESS}\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    let text = netns::inside(host.namespace.name(), ask).ok()?;
    let (_, body) = text.split_once("\r\n\r\n")?;
    serde_json::from_str(body).ok()
}

#[test]
fn serve_finds_the_rate_without_privilege() {
    let Some(site) = Site::start("serve-auto", "8mbit") else {
        return;
    };
    let root = site.host.root.path();
    fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(root.join("large"), vec![b'#'; 200_000]).unwrap();
    let mut command = site.host.inside("nice");
    command.args(FIRST).arg("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all", SOONER, "serve"]);
    command
        .arg(root)
        .args(["--listen", &format!("{ADDRESS}:{PORT}")]);
    command.args(["--admin", &format!("{ADDRESS}:{ADMIN_PORT}"), "--quiet"]);
    let running = ChildGuard(command.args(["--uplink", "auto:500mbit"]).spawn().unwrap());
    let found = until("it answers", || {
        Some(status(&site.host)?["uplink"]["found"].clone())
    });
    assert_eq!(found["state"], "open", "{found}");
    let _downloads = site.downloads(60);
    let until_found = |mbit: f64| {
        until(&format!("{mbit} Mbit/s are found"), || {
            let found = status(&site.host)?["uplink"]["found"].clone();
            eprintln!("{found}");
            is_about(&found, mbit, 0.2).then_some(())
        });
    };
    until_found(8.0);
    site.limit("4mbit");
    until_found(4.0);
    // More is found by what arrives without a wait, on a path as short as this one too.
    site.limit("8mbit");
    until_found(8.0);
    running.end(Signal::TERM).unwrap();
}

fn refused(arguments: &[&str]) -> Output {
    let mut command = Command::new(SOONER);
    command.args(["attach", "web"]).args(arguments);
    command.output().unwrap()
}

#[test]
fn a_wrong_uplink_is_one_line() {
    for (arguments, said) in [
        (
            &["--dev", "eth9", "--uplink", "automatic"][..],
            "auto:100mbit for a maximum",
        ),
        (&["--dev", "eth9", "--uplink", "auto:"], "behind `auto:`"),
        (
            &["--dev", "eth9", "--uplink", "auto:fast"],
            "behind `auto:`",
        ),
        (
            &["--dev", "eth9", "--uplink", "fast"],
            "or auto, where the rate is unknown",
        ),
        (
            &["--dev", "lo", "--uplink", "auto", "--observe", "--no-shape"],
            "--no-shape",
        ),
    ] {
        let output = refused(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
}

#[test]
fn what_cannot_be_found_is_refused_before_anything_is_changed() {
    let Some(host) = Host::new("attach-auto-refused") else {
        return;
    };
    let before = (host.qdiscs(), host.link());
    let port = PORT.to_string();
    let refused = |device: &str, more: &[&str]| {
        let mut command = host.inside(SOONER);
        command.args([
            "attach",
            "web",
            "--dev",
            device,
            "--forward",
            "--port",
            &port,
        ]);
        let output = command
            .args(["--uplink", "auto"])
            .args(more)
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    };
    let error = refused(DEVICE, &["--no-shape"]);
    assert!(error.contains("limits the link itself"), "{error}");
    let error = refused("lo", &[]);
    assert!(error.contains("loopback"), "{error}");
    assert_eq!((host.qdiscs(), host.link()), before);
}
