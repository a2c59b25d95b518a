//! Becoming another user, and taking over passed sockets: each in a process of its own, which is
//! this test program started again.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use sooner_kernel::privilege::{Account, AccountError, Keep, PrivilegeError, become_user};
use sooner_kernel::{activation, capability};
use sooner_testbed::skip;

/// Set for the test that is to do what its parent only starts.
const INSIDE: &str = "SOONER_TEST_INSIDE";

fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Runs the test `name` of this program in a process of its own.
fn run_inside(name: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("privilege::{name}")])
        .args(["--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

/// Whether the test can run; says why not.
fn is_root(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        // Written past the test harness, which would keep it to itself.
        skip(test, "needs root to become another user");
    }
    is_root
}

fn somebody() -> Account {
    Account {
        user: "somebody".into(),
        uid: 54_321,
        gid: 54_322,
        groups: vec![54_323],
    }
}

/// The lines of this thread's status that say who it is.
fn identity() -> String {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let lines = status.lines().filter(|line| {
        ["Uid:", "Gid:", "Groups:"]
            .iter()
            .any(|key| line.starts_with(key))
    });
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("; ")
}

const IDENTITY: &str = "Uid: 54321 54321 54321 54321; Gid: 54322 54322 54322 54322; Groups: 54323";

#[test]
fn all_threads_become_the_user_for_good() {
    if !is_inside() {
        if is_root("all_threads_become_the_user_for_good") {
            run_inside("all_threads_become_the_user_for_good");
        }
        return;
    }
    // The harness's own thread is older than this one.
    become_user(&somebody(), Keep::Nothing).unwrap();
    assert_eq!(identity(), IDENTITY);
    assert_eq!(std::thread::spawn(identity).join().unwrap(), IDENTITY);
    let main = fs::read_to_string("/proc/self/status").unwrap();
    assert!(main.contains("Uid:\t54321\t54321\t54321\t54321"), "{main}");
    assert!(!capability::has_net_admin() && !capability::has_net_bind_service());
    let root = Account {
        uid: 0,
        gid: 0,
        ..somebody()
    };
    assert!(matches!(
        become_user(&root, Keep::Nothing),
        Err(PrivilegeError::NotPermitted { .. })
    ));
    become_user(&somebody(), Keep::Nothing).unwrap();
}

#[test]
fn net_admin_can_be_kept() {
    if !is_inside() {
        if is_root("net_admin_can_be_kept") && capability::has_net_admin() {
            run_inside("net_admin_can_be_kept");
        }
        return;
    }
    become_user(&somebody(), Keep::NetAdmin).unwrap();
    assert_eq!(identity(), IDENTITY);
    assert!(capability::has_net_admin());
    assert!(!capability::has_net_bind_service() && !capability::has_sys_admin());
    let at_thread_start = std::thread::spawn(capability::has_net_admin);
    assert!(at_thread_start.join().unwrap());
    assert_eq!(
        fs::File::open("/etc/shadow").unwrap_err().kind(),
        io::ErrorKind::PermissionDenied
    );
}

#[test]
fn root_is_not_another_user() {
    assert_eq!(
        Account::find_in("root", "root:x:0:0::/:/bin/sh", ""),
        Err(AccountError::Root {
            user: "root".into()
        })
    );
}

#[test]
fn passed_sockets_are_taken_once() {
    if !is_inside() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // The shell has the process number that the program will have.
        let status = Command::new("sh")
            .args([
                "-c",
                "exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=https exec \"$0\" --exact privilege::passed_sockets_are_taken_once --test-threads=1",
            ])
            .arg(std::env::current_exe().unwrap())
            .env(INSIDE, port.to_string())
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let mut passed = activation::take().unwrap();
    assert!(activation::take().unwrap().is_empty());
    let passed_socket = passed.remove(0);
    assert_eq!((passed_socket.name.as_str(), passed.len()), ("https", 0));
    let listener = TcpListener::from(passed_socket.socket);
    let port = listener.local_addr().unwrap().port();
    assert_eq!(std::env::var(INSIDE).unwrap(), port.to_string());
}
