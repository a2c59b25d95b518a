//! Ports and processes as /proc shows them, and what is refused.

use super::*;
use proptest::prelude::*;
use std::net::{TcpListener, UdpSocket};

const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:01BB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0
   1: 0100007F:01BB 0200007F:C000 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 20 4 30 10 -1
";

#[test]
fn only_listeners_count() {
    let found: Vec<_> = listeners_in(TABLE, 0x0a).collect();
    let wanted = Listener {
        port: 443,
        inode: 4711,
    };
    assert_eq!(found, [wanted]);
}

#[test]
fn a_group_has_the_processes_of_those_below_it() {
    let root = tempfile::tempdir().unwrap();
    let service = root.path().join("system.slice/web.service");
    fs::create_dir_all(service.join("workers")).unwrap();
    fs::write(service.join("cgroup.procs"), "7\n").unwrap();
    fs::write(service.join("workers/cgroup.procs"), "8\n9\n").unwrap();
    let folder = service.display().to_string();
    for name in [
        "web.service",
        "system.slice/web.service",
        "/system.slice/web.service",
        &folder,
    ] {
        let found = members_below(root.path(), name);
        assert_eq!(found, Some(BTreeSet::from([7, 8, 9])), "{name}");
    }
    assert_eq!(members_below(root.path(), "db.service"), None);
}

#[test]
fn the_whole_machine_is_no_group() {
    let root = tempfile::tempdir().unwrap();
    let slice = root.path().join("system.slice");
    fs::create_dir_all(&slice).unwrap();
    for folder in [root.path(), &slice] {
        fs::write(folder.join("cgroup.procs"), "7\n").unwrap();
    }
    let above = format!("{}/..", slice.display());
    let all = root.path().display().to_string();
    for name in ["", "/", "//", ".", "..", "system.slice/..", &above, &all] {
        assert_eq!(members_below(root.path(), name), None, "{name:?}");
    }
    let found = members_below(root.path(), "system.slice");
    assert_eq!(found, Some(BTreeSet::from([7])));
    let refused = of(&Servers::Group(String::new())).unwrap_err();
    assert!(refused.to_string().starts_with("no control group ``"));
}

#[test]
fn ports_of_another_network_namespace_are_not_taken_for_those_of_this_one() {
    let test = "ports_of_another_network_namespace_are_not_taken_for_those_of_this_one";
    if !capability::has_sys_admin() {
        return sooner_testbed::skip(test, "needs CAP_SYS_ADMIN");
    }
    let _listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = std::process::id();
    assert!(of(&Servers::Process(own)).is_ok());
    // A thread in a namespace of its own: the process is in another one then.
    let from_there = || {
        let process = of(&Servers::Process(own));
        let group = of_group("control group `x`", BTreeSet::from([own]));
        let beside = beside_or_of(&[8443, 443, 443], &Servers::Process(own));
        assert_eq!(beside.unwrap(), [443, 8443]);
        Ok([process.map(drop), group.map(drop)])
    };
    let refused = netns::in_new(from_there).unwrap();
    for (refused, who) in refused.into_iter().zip(["process", "control group `x`"]) {
        let words = refused.unwrap_err().to_string();
        assert!(words.starts_with(who), "{words}");
        assert!(words.contains("in another network namespace"), "{words}");
        assert!(words.contains("--port"), "{words}");
    }
}

#[test]
fn this_process_is_found_by_its_ports() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("[::1]:0").unwrap();
    let ports = of(&Servers::Process(std::process::id())).unwrap();
    for port in [tcp.local_addr(), udp.local_addr()].map(|address| address.unwrap().port()) {
        assert!(ports.contains(&port), "{port} {ports:?}");
        assert!(of(&Servers::Ports(vec![port])).is_ok());
    }
}

#[test]
fn what_listens_for_services_that_it_begins_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let manager = folder.path().join("systemd");
    std::os::unix::fs::symlink("/bin/bash", &manager).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let flags = rustix::io::FdFlags::empty();
    rustix::io::fcntl_setfd(&listener, flags).unwrap();
    let mut manager = std::process::Command::new(manager)
        .args(["-c", "sleep 60 & wait"])
        .spawn()
        .unwrap();
    let service = loop {
        let children = process_table::children(manager.id()).unwrap();
        let begun = children.first().copied();
        match begun.filter(|pid| process_table::name(*pid).is_ok_and(|it| it == "sleep")) {
            Some(service) => break service,
            None => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    };
    let found = processes(&[port]);
    let is_found = [manager.id(), service].map(|pid| found.contains(&pid));
    assert_eq!(is_found, [false, true]);
    // Named by itself it is taken for what it is, and what it has begun is not of it.
    let family = family(&Servers::Process(manager.id()));
    assert_eq!(family, BTreeSet::from([manager.id()]));
    let service = rustix::process::Pid::from_raw(service.cast_signed()).unwrap();
    rustix::process::kill_process(service, rustix::process::Signal::KILL).unwrap();
    manager.wait().unwrap();
}

#[test]
fn mistakes_say_what_would_be_right() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let silent = of(&Servers::Ports(vec![port, 1])).unwrap_err().to_string();
    assert!(silent.contains(&format!("port {port} or 1;")), "{silent}");
    assert_eq!(list(&[80, 80]), "80");
    let many: Vec<u16> = (1..=400).collect();
    assert_eq!(
        list(&many),
        "1 or 2 or 3 or 4 or 5 or 6 or 7 or one of 393 others"
    );
    let process = of(&Servers::Process(u32::MAX)).unwrap_err().to_string();
    assert!(process.starts_with("no process 4294967295;"), "{process}");
    let group = of(&Servers::Group("no/such".into()))
        .unwrap_err()
        .to_string();
    assert!(group.starts_with("no control group `no/such`;"), "{group}");
    assert_eq!(of(&Servers::Behind(vec![443, 80])).unwrap(), [80, 443]);
    let beside = beside_or_of(&[80], &Servers::Process(u32::MAX));
    assert!(beside.unwrap_err().to_string().starts_with("no process "));
}

proptest! {
    #[test]
    fn any_text_is_read(text: String) {
        let _ = listeners_in(&text, 0x0a).count();
        let _ = socket_inode(Path::new(&text));
    }
}
