//! `--check`, and what a start refuses.

use super::place::{ConfigFolder, certify, serving, with_tls};
use assert_cmd::Command as Checked;
use rustix::process::geteuid;
use sooner_testbed::skip;
use std::fs;
use std::process::Command;

#[test]
fn a_right_configuration_is_ok_and_nothing_is_started() {
    let place = ConfigFolder::new(&serving("one"));
    let (code, output, said) = place.check();
    let expected = format!("{}: ok\n", place.file().display());
    assert_eq!((code, output, said.as_str()), (Some(0), expected, ""));
}

#[test]
fn a_log_is_not_made_by_a_check() {
    let place = ConfigFolder::new(&format!(
        "{}[log]\naccess = \"access.log\"\n",
        serving("one")
    ));
    assert_eq!(place.check().0, Some(0));
    assert!(!place.path("access.log").exists());
}

#[test]
fn a_log_that_only_root_would_not_open_gets_a_remark() {
    if !geteuid().is_root() {
        let test = "a_log_that_only_root_would_not_open_gets_a_remark";
        return skip(test, "needs root");
    }
    let place = ConfigFolder::new(&format!(
        "{}[log]\naccess = \"access.log\"\n",
        serving("one")
    ));
    std::os::unix::fs::symlink("/dev/null", place.path("access.log")).unwrap();
    let (code, output, said) = place.check();
    let expected = format!("{}: ok\n", place.file().display());
    assert_eq!((code, output), (Some(0), expected), "{said}");
    let expected = format!(
        "log.access: {} is a symbolic link: root would not follow it; if the server starts as \
         root, name its target, or - for standard output\n",
        place.path("access.log").display()
    );
    assert!(said.ends_with(&expected), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_wrong_configuration_is_one_line_with_its_place() {
    let place = ConfigFolder::new("");
    for (config, expected) in [
        (
            "root = \"three\"",
            "1: root: no directory PLACE/three: name an existing one",
        ),
        (
            "root = \"one/a.txt\"",
            "1: root: PLACE/one/a.txt is not a directory",
        ),
        (
            "root = \"one\"\n[uplink]\nrate = \"10mbt\"",
            "3: uplink.rate: rate `10mbt`: `mbt` is not a unit of a rate; use bit, kbit, mbit, gbit or MB/s, as in 100mbit",
        ),
        (
            "root = \"one\"\nuser = \"no-such-user\"",
            "2: user: there is no user no-such-user in /etc/passwd",
        ),
        (
            "root = \"one\"\nlisten = [\"192.0.2.1:80\"]",
            "2: listen: cannot listen on 192.0.2.1:80: this machine does not have that address",
        ),
        (
            "root = \"one\"\n[log]\naccess = \"/no/such/folder/log\"",
            "3: log.access: cannot open /no/such/folder/log: ",
        ),
        (
            "[[site]]\nroot = \"one\"\n[[site.auth]]\nfile = \"two/a.txt\"",
            "4: site.auth.file: PLACE/two/a.txt:1: a line is NAME:HASH, as htpasswd makes it",
        ),
        (
            "[[site]]\nroot = \"one\"\n[[site.expires]]\nafter = \"1 day\"",
            "4: site.expires.after: \"1 day\" is not a lifetime; write 30d, 1h30m,",
        ),
        (
            "[[site]]\nroot = \"one\"\nhosts = [\"a.example\"]\n[[site]]\nroot = \"two\"\nhosts = [\"A.example\"]",
            "6: site.hosts: \"A.example\" is named before; a host belongs to one site",
        ),
        (
            "[[site]]\nroot = \"one\"\nhosts = [\"a.example\"]\n[[site]]\nroot = \"three\"\nhosts = [\"b.example\"]",
            "5: site.root: no directory PLACE/three",
        ),
        (
            "[[upstream]]\nname = \"app\"\nservers = [\"http://127.0.0.1:1\"]\n[[route]]\npath = \"/a\"\nupstream = \"apq\"",
            "6: route.upstream: no upstream is called `apq`; there are: app",
        ),
        (
            "[[upstream]]\nname = \"app\"\nservers = [\"http://127.0.0.1:1\"]\n[[route]]\npath = \"/a\"\nupstream = \"app\"\n[[route]]\npath = \"/a\"\nupstream = \"app\"",
            "8: route.path: `/a` at every host has a route already; ",
        ),
        (
            "[[upstream]]\nname = \"app\"\nservers = [\"ftp://127.0.0.1:1\"]\n[[route]]\npath = \"/a\"\nupstream = \"app\"",
            "3: upstream.servers: `ftp://127.0.0.1:1` is not a server: write ",
        ),
    ] {
        let line = place.refusal(config);
        assert!(line.starts_with(expected), "{line}");
    }
}

#[test]
fn what_is_wrong_about_a_limit_or_a_target_is_one_line() {
    let place = ConfigFolder::new("");
    let upstream = "[[route]]\npath = \"/\"\nupstream = \"app\"\n[[upstream]]\nname = \"app\"\nservers = [\"http://127.0.0.1:1\"]\n";
    let loss = "8: upstream.throughput_loss: out of range; write 0.01 (the least that can be told from chance) to 0.5";
    let alone = "has an effect only with limit = \"auto\"; write that as well, or leave this out";
    for (keys, expected) in [
        (
            "limit = \"auto\"\nlimit = 8",
            "8: limit: given twice; keep one of them",
        ),
        (
            "limit = [\"auto\", 8]",
            "7: upstream.limit: write a whole number from 1 on, or \"auto\"",
        ),
        (
            "limit = \"auto:64\"",
            "7: upstream.limit: \"auto:64\" cannot be; write a whole number from 1 on, or \"auto\"",
        ),
        (
            "limit = 99999999999999999999",
            "7: upstream.limit: the value `99999999999999999999` does not fit; write a smaller number",
        ),
        (
            "limit = 8\nlimit_max = 64",
            &format!("8: upstream.limit_max: {alone}"),
        ),
        (
            "limit = 8\nthroughput_loss = 0.1",
            &format!("8: upstream.throughput_loss: {alone}"),
        ),
        (
            "order = \"auto\"",
            "7: upstream.order: order = \"auto\" compares orders before a limit, and there is none: write limit = \"auto\" or a number as well, or another order",
        ),
        ("limit = \"auto\"\nthroughput_loss = 0.9", loss),
        ("limit = \"auto\"\nthroughput_loss = nan", loss),
        (
            "limit = \"auto\"\nlimit_max = 0",
            "8: upstream.limit_max: the value `0` does not fit; write a whole number, 1 or more",
        ),
        (
            "[[class]]\nname = \"a\"\ntarget = \"30ms\"",
            "9: class.target: targets have names; write target = { mean = \"30ms\" }, or { mean = \"30ms\", p95 = \"120ms\" }",
        ),
        (
            "[[class]]\nname = \"a\"\ntarget = { mean = 30 }",
            "9: class.target.mean: a time has a unit and stands in quotes; write mean = \"30ms\" (us, ms, s or min)",
        ),
        (
            "[[class]]\nname = \"a\"\nlongest = 2",
            "9: class.longest: a time has a unit and stands in quotes; write longest = \"30ms\" (us, ms, s or min)",
        ),
        (
            "[[class]]\nname = \"a\"\ntarget = { p99.9 = \"1s\" }",
            "9: class.target.p99: a percentile with a dot stands in quotes; write \"p99.9\" = \"30ms\"",
        ),
    ] {
        let line = place.refusal(&format!("{upstream}{keys}\n"));
        assert_eq!(line, expected, "{keys}");
    }
}

#[test]
fn a_certificate_that_will_not_do_is_placed() {
    let place = ConfigFolder::new("");
    certify(&place, "good", 2100);
    certify(&place, "other", 2100);
    place.write(&with_tls("good", "good"));
    assert_eq!(place.check().0, Some(0), "{:?}", place.check());
    for (config, expected) in [
        (with_tls("good", "other"), "6: tls.key: "),
        (with_tls("none", "good"), "5: tls.certificate: "),
        (with_tls("good", "none"), "6: tls.key: "),
    ] {
        let line = place.refusal(&config);
        assert!(line.starts_with(expected), "{line}");
    }
}

#[test]
fn a_certificate_that_has_expired_is_a_warning() {
    let place = ConfigFolder::new(&with_tls("old", "old"));
    certify(&place, "old", 2020);
    for (code, output, said) in [place.check(), place.check_reload()] {
        let expected = format!("{}: ok\n", place.file().display());
        assert_eq!((code, output), (Some(0), expected), "{said}");
        let begin = "sooner.toml:5: tls.certificate: the certificate of ";
        let end = "old.pem expired on Wed, 01 Jan 2020 00:00:00 GMT: clients may refuse it; \
                   renew it\n";
        assert!(said.contains(begin) && said.ends_with(end), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn what_a_reload_refuses_its_check_refuses() {
    let place = ConfigFolder::new("");
    certify(&place, "good", 2100);
    certify(&place, "other", 2100);
    let device = "[uplink]\nrate = \"10mbit\"\ndevice = \"no-such0\"\n";
    for (config, expected) in [
        (format!("root = \"three\"\n{device}"), ":1: root: "),
        (
            "root = \"one\"\nuser = \"no-such-user\"".into(),
            ":2: user: ",
        ),
        (with_tls("good", "other"), ":6: tls.key: "),
        ("rot = \"one\"".into(), ":1: rot: "),
    ] {
        place.write(&config);
        let (code, output, said) = place.check_reload();
        assert_eq!((code, output.as_str()), (Some(2), ""), "{config}: {said}");
        assert!(
            said.contains(expected) && said.lines().count() == 1,
            "{said}"
        );
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let place = ConfigFolder::new("");
    fs::remove_file(place.file()).unwrap();
    let (code, _, said) = place.check();
    assert_eq!(code, Some(2));
    assert!(said.contains("sooner.toml") && said.lines().count() == 1);
}

#[test]
fn a_port_without_the_right_to_it_is_placed() {
    let unprivileged = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    let has_privileged_ports = unprivileged.is_ok_and(|port| port.trim() != "0");
    let without = Command::new("setpriv").arg("--version").output();
    if !has_privileged_ports || !geteuid().is_root() || without.is_err() {
        skip(
            "a_port_without_the_right_to_it_is_placed",
            "needs root and setpriv (util-linux), and privileged ports",
        );
        return;
    }
    let place =
        ConfigFolder::new("root = \"one\"\nlisten = [\n  \"127.0.0.1:8080\",\n  \"127.0.0.1:79\"]");
    for (check, code) in [("--check", 2), ("--check-reload", 0)] {
        let output = Command::new("setpriv")
            .args(["--bounding-set=-net_bind_service", "--inh-caps=-all"])
            .arg(assert_cmd::cargo::cargo_bin("sooner"))
            .args(["serve", check, "--config"])
            .arg(place.file())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(
            said.contains("sooner.toml:4: listen: cannot listen on 127.0.0.1:79: no permission"),
            "{said}"
        );
    }
}

#[test]
fn a_wrong_flag_is_said_to_be_one() {
    let place = ConfigFolder::new(&serving("one"));
    let output = Checked::cargo_bin("sooner")
        .unwrap()
        .args(["serve", "--check", "--mechanism", "bands", "--config"])
        .arg(place.file())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("sooner: --mechanism: "), "{said}");
}
