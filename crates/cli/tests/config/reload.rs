//! SIGHUP and SIGUSR1, and signals that mean nothing: what changes while it serves, and what stays.

use super::place::{ConfigFolder, LISTEN, body, certify, serving, with_tls};
use rustix::process::Signal;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

#[test]
fn a_new_certificate_that_will_not_do_leaves_the_old_one() {
    let place = ConfigFolder::new("");
    certify(&place, "good", 2100);
    certify(&place, "other", 2100);
    place.write(&format!("{LISTEN}{}", with_tls("good", "good")));
    let mut server = place.start(&[]);
    place.write(&format!("{LISTEN}{}", with_tls("good", "other")));
    server.send(Signal::HUP);
    let refusal = server.says();
    assert!(
        refusal.contains("sooner.toml:7: tls.key: ") && refusal.contains("is not that of"),
        "{refusal}"
    );
    assert_eq!(server.get(), "one");
}

#[test]
fn a_certificate_that_has_expired_stops_neither_start_nor_reload() {
    let place = ConfigFolder::new("");
    certify(&place, "old", 2020);
    let config = format!("{LISTEN}{}", with_tls("old", "old"));
    place.write(&config);
    let is_told = |line: &str| {
        let begin = "sooner.toml:6: tls.certificate: the certificate of ";
        assert!(
            line.contains(begin) && line.contains("old.pem expired on Wed, 01 Jan 2020"),
            "{line}"
        );
    };
    let mut starting = place.spawn(&[], &[]);
    is_told(&starting.says());
    let mut server = starting.ready();
    assert_eq!(server.get(), "one");
    place.write(&config.replace("\"one\"", "\"two\""));
    server.send(Signal::HUP);
    is_told(&server.says());
    server.get_until("two");
}

#[test]
fn a_reload_takes_what_only_a_start_needs() {
    let place = ConfigFolder::new(&serving("one"));
    let server = place.start(&[]);
    place.write(
        "root = \"two\"\nlisten = [\"192.0.2.1:80\"]\n[uplink]\nrate = \"10mbit\"\n\
         device = \"no-such0\"\n[log]\naccess = \"/no/such/folder/log\"\n",
    );
    let (code, output, said) = place.check();
    assert_eq!((code, output.as_str()), (Some(2), ""), "{said}");
    let (code, output, said) = place.check_reload();
    let expected = format!("{}: ok\n", place.file().display());
    assert_eq!((code, output), (Some(0), expected), "{said}");
    let begins = [
        "2: listen: cannot listen on 192.0.2.1:80: ",
        "5: uplink.device: no network device `no-such0`",
        "7: log.access: cannot open /no/such/folder/log: ",
    ];
    assert_eq!(said.lines().count(), begins.len(), "{said}");
    for (line, begin) in said.lines().zip(begins) {
        let begin = format!("sooner: {}:{begin}", place.file().display());
        assert!(line.starts_with(&begin), "{said}");
        let end = "; a reload works all the same, the next start would fail";
        assert!(line.ends_with(end), "{said}");
    }
    server.send(Signal::HUP);
    server.get_until("two");
}

#[test]
fn a_reload_changes_what_is_served_and_fails_no_request() {
    let place = ConfigFolder::new(&serving("one"));
    let mut server = place.start(&[]);
    let (done, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let body = body(&server.address);
                    assert!(body == "one" || body == "two", "{body}");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for root in ["two", "one", "two", "one", "two"] {
            place.write(&serving(root));
            server.send(Signal::HUP);
            server.get_until(root);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(answered.load(Ordering::Relaxed) > 0);

    place.write("root = \"three\"");
    server.send(Signal::HUP);
    let refusal = server.says();
    assert!(
        refusal.contains("sooner.toml:1: root: ") && refusal.contains("stays"),
        "{refusal}"
    );
    assert_eq!(server.get(), "two");

    place.write("listen = [\"127.0.0.2:0\"]\nroot = \"one\"");
    server.send(Signal::HUP);
    let remark = server.says();
    assert!(
        remark.contains("listen") && remark.contains("next start"),
        "{remark}"
    );
    server.get_until("one");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_reload_leaves_a_connection_that_is_open() {
    let place = ConfigFolder::new(&serving("one"));
    let server = place.start(&[]);
    let mut kept = BufReader::new(TcpStream::connect(&server.address).unwrap());
    let ask = |kept: &mut BufReader<TcpStream>| {
        let request = b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n";
        kept.get_mut().write_all(request).unwrap();
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert_ne!(
                kept.read_line(&mut line).unwrap(),
                0,
                "the connection was closed"
            );
        }
        let mut body = [0; 3];
        kept.read_exact(&mut body).unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    };
    assert_eq!(ask(&mut kept), "one");
    place.write(&serving("two"));
    server.send(Signal::HUP);
    server.get_until("two");
    assert_eq!(ask(&mut kept), "two");
}

#[test]
fn a_renamed_log_is_opened_anew_on_demand() {
    let place = ConfigFolder::new(&format!(
        "{}[log]\naccess = \"access.log\"\n",
        serving("one")
    ));
    let server = place.start(&[]);
    server.get();
    fs::rename(place.path("access.log"), place.path("access.log.1")).unwrap();
    server.get();
    server.send(Signal::USR1);
    while !place.path("access.log").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    server.get();
    assert_eq!(server.stop(), Some(0));
    let lines = |name| {
        fs::read_to_string(place.path(name))
            .unwrap()
            .lines()
            .count()
    };
    assert_eq!((lines("access.log.1"), lines("access.log")), (2, 1));
}

#[test]
fn signals_that_mean_nothing_are_named_and_change_nothing() {
    let place = ConfigFolder::new(&serving("one"));
    let mut server = place.start(&[]);
    for (signal, name) in [(Signal::USR2, "SIGUSR2"), (Signal::ALARM, "SIGALRM")] {
        server.send(signal);
        let said = server.says();
        assert!(
            said.contains(&format!("{name} means nothing here")),
            "{said}"
        );
        assert_eq!(server.get(), "one");
    }
    server.send(Signal::QUIT);
    assert_eq!(server.stop(), Some(0));
}
