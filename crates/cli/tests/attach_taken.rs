//! `sooner attach web` while others are at work on its device: what is taken away from it, a second
//! attachment, another name, limits of the operator's, and users who may not see it.

use std::fs;
use std::io::Read;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use crate::attach::{Attaches, PORT, assert_refused, started};
use crate::host::{DEVICE, Host};
use rustix::process::Signal;
use serde_json::Value;
use sooner_testbed::{ChildGuard, program, skip};

/// How long it may take to notice; it looks once a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits until it has ended by itself; its code, and what it said on standard error.
fn ended(mut running: ChildGuard) -> (Option<i32>, String) {
    let start = Instant::now();
    let status = loop {
        if let Some(status) = running.0.try_wait().unwrap() {
            break status;
        }
        assert!(start.elapsed() < PATIENCE, "it goes on");
        thread::sleep(Duration::from_millis(50));
    };
    let mut said = String::new();
    let mut stderr = running.0.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    (status.code(), said)
}

fn tc(host: &Host, words: &str) {
    let words: Vec<&str> = words.split(' ').collect();
    let output = host.inside("tc").args(&words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn it_ends_when_its_bands_are_taken_away() {
    let Some(host) = Host::new("attach-bands-taken") else {
        return;
    };
    let _listener = host.listener();
    let before = host.everything();
    let others = "qdisc replace dev s0 root handle 9: tbf rate 9mbit burst 20k latency 50ms";
    let ways: [(&str, &[&str]); 3] = [
        ("10mbit", &[][..]),
        ("10mbit", &["--clsact"]),
        ("auto", &[]),
    ];
    for (rate, way) in ways {
        for (command, now) in [
            ("qdisc del dev s0 root", "the default noqueue"),
            (others, "tbf 9:"),
        ] {
            let (running, ready, _) = host.attach_at(rate, way);
            assert!(ready.starts_with("ready:"), "{ready}");
            tc(&host, command);
            let (code, said) = ended(running);
            assert_eq!((code, said.lines().count()), (Some(2), 1), "{said}");
            let words = format!("the bands were taken away from device `s0`, which has {now} now");
            assert!(said.contains(&words), "{said}");
            if command == others {
                assert!(
                    host.qdiscs().starts_with("qdisc tbf 9:"),
                    "{}",
                    host.qdiscs()
                );
                tc(&host, "qdisc del dev s0 root");
            }
            assert_eq!(host.everything(), before);
        }
    }
}

#[test]
fn it_ends_when_its_programs_are_taken_away() {
    let Some(host) = Host::new("attach-programs-taken") else {
        return;
    };
    let _listener = host.listener();
    let before = host.everything();
    let commands: [(&[&str], bool); 4] = [
        (&["filter del dev s0 egress"], false),
        (&["filter del dev s0 ingress"], false),
        (&["qdisc del dev s0 clsact"], false),
        // The operator's own one stays.
        (
            &["qdisc del dev s0 clsact", "qdisc add dev s0 clsact"],
            true,
        ),
    ];
    for (commands, stays) in commands {
        let (running, ready, _) = host.attach(&["--clsact"]);
        assert!(ready.starts_with("ready:"), "{ready}");
        commands.iter().for_each(|command| tc(&host, command));
        let (code, said) = ended(running);
        assert_eq!((code, said.lines().count()), (Some(2), 1), "{said}");
        assert!(
            said.contains("programs were taken away from device `s0`"),
            "{said}"
        );
        assert_eq!(host.qdiscs().contains("clsact"), stays, "{}", host.qdiscs());
        if stays {
            tc(&host, "qdisc del dev s0 clsact");
        }
        assert_eq!(host.everything(), before);
    }
}

/// The numbers of the links by which a process's programs hang on devices.
fn links(pid: u32) -> Vec<String> {
    let folder = fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap();
    let texts = folder.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    let value = |text: &str, key: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(key));
        found.map(|value| value.trim().to_owned())
    };
    texts
        .filter(|text| value(text, "link_type:").as_deref() == Some("tcx"))
        .filter_map(|text| value(&text, "link_id:"))
        .collect()
}

#[test]
fn it_ends_when_a_link_of_its_programs_is_detached() {
    let test = "it_ends_when_a_link_of_its_programs_is_detached";
    let Some(host) = Host::new("attach-links-taken") else {
        return;
    };
    let Some(bpftool) = program::find(&["bpftool", "/usr/sbin/bpftool"]) else {
        return skip(test, "needs bpftool");
    };
    let _listener = host.listener();
    let before = host.everything();
    for which in [0, 1] {
        let (running, ready, _) = host.attach(&[]);
        if !ready.contains("(TCX") {
            return skip(test, "needs Linux 6.6");
        }
        let links = links(running.0.id());
        assert_eq!(links.len(), 2, "{links:?}");
        let mut detach = Command::new(&bpftool);
        let detached = detach.args(["link", "detach", "id", &links[which]]);
        assert!(detached.status().unwrap().success());
        let (code, said) = ended(running);
        assert_eq!((code, said.lines().count()), (Some(2), 1), "{said}");
        assert!(
            said.contains("programs were taken away from device `s0`"),
            "{said}"
        );
        assert_eq!(host.everything(), before);
    }
}

#[test]
fn a_device_takes_one_attachment_whether_it_looks_or_orders() {
    let Some(host) = Host::new("attach-one") else {
        return;
    };
    let _listener = host.listener();
    let before = host.everything();
    let on = ["web", "--dev", DEVICE, "--uplink", "10mbit", "--port", PORT];
    let looks = ["--observe"];
    for first in [&[][..], &looks, &["--observe", "--clsact"]] {
        let (running, ready, _) = host.attach(first);
        assert!(ready.starts_with("ready:"), "{ready}");
        let during = host.everything();
        for second in [&[][..], &looks] {
            let refused = host.said(&[&on, second].concat());
            let pid = running.0.id().to_string();
            assert_refused(&refused, &["device `s0`", &pid, "stop it first"]);
            assert_eq!(host.everything(), during);
        }
        assert!(text(&host.said(&["status"])).starts_with("s0: port 8080"));
        assert!(text(&host.said(&["remove"])).contains("has ended"));
        assert_eq!(ended(running).0, Some(0));
        assert_eq!(host.everything(), before);
    }
}

#[test]
fn after_a_kill_status_says_what_is_left_and_what_undoes_it() {
    let Some(host) = Host::new("attach-status-kill") else {
        return;
    };
    let _listener = host.listener();
    for way in [&[][..], &["--clsact"], &["--clsact", "--observe"]] {
        host.attach(way).0.end(Signal::KILL).unwrap();
        let status = host.said(&["status"]);
        let words = text(&status);
        assert!(
            status.status.success() && words.starts_with("s0: a killed process left"),
            "{words}"
        );
        assert!(
            words.contains("`sooner attach remove --killed` undoes that"),
            "{words}"
        );
        let found = text(&host.said(&["status", "--json", "--dev", DEVICE]));
        let found: Value = serde_json::from_str(&found).unwrap();
        assert_eq!(found[0]["device"], DEVICE);
        assert_eq!(found[0]["undo"], "sooner attach remove --killed");
        assert_refused(&host.said(&["top"]), &["s0: a killed process left"]);
        let removed = host.said(&["remove", "--killed"]);
        assert!(text(&removed).contains("is gone"));
        assert_eq!(text(&host.said(&["status"])), "nothing is attached\n");
        assert_eq!(text(&host.said(&["status", "--json"])), "[]\n");
    }
}

#[test]
fn a_user_who_may_not_see_it_is_told() {
    let Some(host) = Host::new("attach-unseen") else {
        return;
    };
    let _listener = host.listener();
    let (running, _, _) = host.attach(&[]);
    for words in [
        &["status"][..],
        &["status", "--json"],
        &["top"],
        &["top", "--json"],
        &["remove"],
    ] {
        let mut command = host.inside("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command
            .arg(env!("CARGO_BIN_EXE_sooner"))
            .arg("attach")
            .args(words);
        let output = command.output().unwrap();
        assert_refused(&output, &["cannot be seen", "/run/sooner", "sudo"]);
        assert_eq!(text(&output), "", "{words:?}");
    }
    running.end(Signal::TERM).unwrap();
}

#[test]
fn a_new_name_of_its_device_is_followed() {
    let Some(host) = Host::new("attach-renamed") else {
        return;
    };
    let _listener = host.listener();
    let before = host.everything();
    let (running, _, _) = host.attach(&[]);
    let rename = |from: &str, to: &str| {
        for words in [&["down"][..], &["name", to]] {
            host.printed("ip", &[&["link", "set", from], words].concat());
        }
        host.printed("ip", &["link", "set", to, "up"]);
    };
    rename(DEVICE, "new0");
    let start = Instant::now();
    while !text(&host.said(&["status"])).starts_with("new0: port 8080") {
        assert!(
            start.elapsed() < PATIENCE,
            "{}",
            text(&host.said(&["status"]))
        );
        thread::sleep(Duration::from_millis(50));
    }
    let top: Value = serde_json::from_slice(&host.said(&["top", "--json"]).stdout).unwrap();
    assert_eq!(top["device"], "new0");
    let removed = host.said(&["remove", "--dev", "new0"]);
    assert!(text(&removed).starts_with("new0: process"), "{removed:?}");
    assert_eq!(ended(running).0, Some(0));
    rename("new0", DEVICE);
    assert_eq!(host.everything(), before);
}

#[test]
fn limits_that_the_operator_sets_meanwhile_stay() {
    let Some(host) = Host::new("attach-limits") else {
        return;
    };
    let _listener = host.listener();
    let before = host.link();
    let (running, _, _) = host.attach(&[]);
    host.printed("ip", &["link", "set", DEVICE, "gso_max_segs", "77"]);
    running.end(Signal::TERM).unwrap();
    let after = host.link();
    assert!(after.contains("gso_max_segs 77"), "{after}");
    assert_eq!(
        after.replace("gso_max_segs 77", "gso_max_segs 65535"),
        before
    );
}

#[test]
fn what_cannot_be_seen_for_want_of_a_capability_is_named() {
    let Some(host) = Host::new("attach-ptrace") else {
        return;
    };
    let listener = host.listener();
    let without = |words: &[&str]| {
        let mut command = host.inside("setpriv");
        let kept = "--bounding-set=-all,+net_admin,+bpf,+perfmon,+sys_nice";
        command.args([kept, "--inh-caps=-all", "--"]);
        command
            .arg(env!("CARGO_BIN_EXE_sooner"))
            .arg("attach")
            .args(words);
        command
    };
    let pid = listener.0.id().to_string();
    let by_pid = ["web", "--dev", DEVICE, "--uplink", "10mbit", "--pid", &pid];
    let refused = without(&by_pid).output().unwrap();
    assert_refused(
        &refused,
        &["cannot list the sockets", "needs CAP_SYS_PTRACE", "--port"],
    );
    let refused = without(&["cpu", "--port", PORT]).output().unwrap();
    assert_refused(
        &refused,
        &["port 8080 cannot be seen", "needs CAP_SYS_PTRACE"],
    );
    let by_port = ["web", "--dev", DEVICE, "--uplink", "10mbit", "--port", PORT];
    let (running, ready, _) = started(without(&by_port));
    let words = "not under TLS everywhere: which process listens on port 8080 cannot be seen; that needs CAP_SYS_PTRACE";
    assert!(ready.contains(words), "{ready}");
    running.end(Signal::TERM).unwrap();
}

#[test]
fn remove_of_one_device_leaves_what_was_left_on_another() {
    let Some(host) = Host::new("attach-one") else {
        return;
    };
    let _listener = host.listener();
    host.namespace
        .ip("link add t0 type veth peer name t1")
        .unwrap();
    host.namespace.ip("link set t0 up").unwrap();
    let standing = || {
        ["qdisc", "filter"].map(|what| {
            let egress = if what == "filter" {
                &["egress"][..]
            } else {
                &[]
            };
            host.printed("tc", &[&[what, "show", "dev", "t0"][..], egress].concat())
        })
    };
    let before = standing();
    let on = ["web", "--dev", "t0", "--uplink", "10mbit", "--port", PORT];
    for way in [&[][..], &["--clsact"]] {
        let (running, _, _) = started(host.sooner(&[&on[..], way].concat()));
        running.end(Signal::KILL).unwrap();
        let left = standing();
        assert!(left[0].contains("htb 5005:"), "{left:?}");
        let removed = host.said(&["remove", "--dev", DEVICE]);
        assert_eq!(removed.stdout, b"nothing is attached\n");
        assert_eq!(standing(), left, "the other device is left alone");
        let removed = host.said(&["remove", "--dev", "t0"]);
        let words = "t0: what a killed process left is gone\n";
        assert_eq!(String::from_utf8_lossy(&removed.stdout), words);
        assert_eq!(standing(), before);
    }
}

/// As in a container that hides it.
#[test]
fn a_host_without_sys_is_told_apart_from_an_old_kernel() {
    let Some(host) = Host::new("attach-sys") else {
        return;
    };
    let _listener = host.listener();
    let mut command = host.inside("unshare");
    command.args(["--mount", "sh", "-c"]);
    command.args(["mount -t tmpfs none /sys && exec \"$@\"", "sh"]);
    command.args([env!("CARGO_BIN_EXE_sooner"), "attach", "web", "--dev"]);
    command.args([DEVICE, "--uplink", "10mbit", "--port", PORT]);
    let (running, ready, _) = started(command);
    assert!(!ready.contains("CONFIG_"), "{ready}");
    assert!(ready.contains("needs /sys"), "{ready}");
    running.end(Signal::TERM).unwrap();
}
