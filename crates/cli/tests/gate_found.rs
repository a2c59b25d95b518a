//! Which gate `sooner gate top` and `gate check --observe` look at, where none is named: the one
//! that runs, found by its socket file.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use sooner_testbed::{ChildGuard, port, program, skip};
use tempfile::TempDir;

/// A gate at a free port, with this folder as its user's own.
fn start(folder: &Path) -> (ChildGuard, PathBuf) {
    let at = port::free().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args(["gate", "--backend", "postgresql:///?host=/nowhere"])
        .args(["--auth", "trust", "--listen", &at.to_string()])
        .env("XDG_RUNTIME_DIR", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut ready).unwrap();
    assert!(ready.starts_with("ready: "), "{ready}");
    (ChildGuard(child), socket(folder, at.port()))
}

fn socket(folder: &Path, port: u16) -> PathBuf {
    folder.join(format!("sooner-gate/.s.PGSQL.{port}"))
}

/// What a process that is gone leaves.
fn leave_stale(folder: &Path, port: u16) -> PathBuf {
    let path = socket(folder, port);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mode = fs::Permissions::from_mode(0o700);
    fs::set_permissions(path.parent().unwrap(), mode).unwrap();
    drop(UnixListener::bind(&path).unwrap());
    path
}

fn gate(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sooner"))
        .arg("gate")
        .args(arguments)
        .current_dir(folder)
        .env("XDG_RUNTIME_DIR", folder)
        .env_remove("PGPASSWORD")
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_only_gate_that_runs_is_found_at_any_port() {
    let folder = TempDir::new().unwrap();
    leave_stale(folder.path(), 6432);
    let (_gate, path) = start(folder.path());
    let top = gate(folder.path(), &["top", "--count", "1"]);
    let printed = String::from_utf8_lossy(&top.stdout).into_owned();
    assert!(top.status.success(), "{}", said(&top));
    assert!(
        printed.starts_with(&format!("{} is active", path.display())),
        "{printed}"
    );
    let config = "auth = \"trust\"\nlisten = [\"./.s.PGSQL.1\"]\n[[database]]\nname = \"*\"\n\
        server = \"postgresql:///?host=/nowhere\"\n[[class]]\nname = \"a\"\nuser = [\"a\"]\n\
        target = { mean = \"1ms\" }\n";
    fs::write(folder.path().join("gate.toml"), config).unwrap();
    let check = gate(folder.path(), &["check", "gate.toml", "--observe", "1s"]);
    let said = said(&check);
    assert!(
        said.contains("the running gate has other classes"),
        "{said}"
    );
}

#[test]
fn of_several_gates_one_has_to_be_chosen() {
    let folder = TempDir::new().unwrap();
    let stale = leave_stale(folder.path(), 6432);
    let (_one, first) = start(folder.path());
    let (_other, second) = start(folder.path());
    let top = gate(folder.path(), &["top", "--count", "1"]);
    let said = said(&top);
    assert_eq!(top.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    for path in [first, second] {
        assert!(said.contains(&path.display().to_string()), "{said}");
    }
    assert!(!said.contains(&stale.display().to_string()), "{said}");
    assert!(said.contains("choose one with --gate"), "{said}");
}

#[test]
fn anything_with_a_slash_is_a_path_and_so_is_a_socket_file_here() {
    let folder = TempDir::new().unwrap();
    let (_gate, path) = start(folder.path());
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    for at in [
        format!("sooner-gate/{name}"),
        format!("./sooner-gate/{name}"),
    ] {
        let top = gate(folder.path(), &["top", "--count", "1", "--gate", &at]);
        assert!(top.status.success(), "{at}: {}", said(&top));
    }
    let here = path.parent().unwrap();
    let top = gate(here, &["top", "--count", "1", "--gate", &name]);
    assert!(top.status.success(), "{name}: {}", said(&top));
    let url = "postgresql://127.0.0.1:6432";
    let top = gate(here, &["top", "--count", "1", "--gate", url]);
    assert!(said(&top).contains("neither an address"), "{}", said(&top));
}

#[test]
fn a_start_removes_the_socket_files_of_dead_gates() {
    let folder = TempDir::new().unwrap();
    let old = leave_stale(folder.path(), 7001);
    let fresh = leave_stale(folder.path(), 7002);
    let other = folder.path().join("sooner-gate/notes.txt");
    fs::write(&other, "mine").unwrap();
    let (_one, first) = start(folder.path());
    for path in [&old, &other, &first] {
        let mut touch = Command::new("touch");
        let touched = touch.args(["-d", "1 hour ago"]).arg(path).status();
        assert!(touched.unwrap().success());
    }
    let (_other, second) = start(folder.path());
    assert!(!old.exists());
    // One that has only just been made may belong to a gate that is about to listen.
    assert!(fresh.exists() && other.exists() && first.exists() && second.exists());
}

/// PgBouncer and `sooner gate top` alone in a network, where the default port is free, and without
/// the sockets of gates that other tests run.
const BESIDE_PGBOUNCER: &str = "
    ip link set lo up
    mount -t tmpfs tmpfs /run
    pgbouncer -q -d -u nobody pgbouncer.ini
    for wait in 1 2 3 4 5 6 7 8 9; do test -S .s.PGSQL.6432 || sleep 0.3; done
    \"$1\" gate top --count 1
    PGPASSWORD=x \"$1\" gate top --count 1 --user ann
    PGPASSWORD=x \"$1\" gate top --count 1 --user ann --gate 127.0.0.1:6432
    kill $(cat pgbouncer.pid)";

#[test]
fn pgbouncer_is_not_called_a_gate() {
    let name = "pgbouncer_is_not_called_a_gate";
    if !rustix::process::geteuid().is_root() || program::missing(&["pgbouncer", "unshare", "ip"]) {
        return skip(name, "needs root, pgbouncer, unshare and ip");
    }
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let ini = format!(
        "[databases]\npostgres = host=/nowhere\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
         unix_socket_dir = {0}\npidfile = {0}/pgbouncer.pid\nlogfile = {0}/log\nauth_type = md5\n\
         auth_file = users.txt\nadmin_users = ann\n",
        folder.path().display()
    );
    fs::write(folder.path().join("pgbouncer.ini"), ini).unwrap();
    fs::write(folder.path().join("users.txt"), "\"ann\" \"x\"\n").unwrap();
    // The gate's own folder is there, and empty.
    fs::remove_file(leave_stale(folder.path(), 1)).unwrap();
    let output = Command::new("unshare")
        .args(["-nm", "sh", "-c", BESIDE_PGBOUNCER, "sh"])
        .arg(env!("CARGO_BIN_EXE_sooner"))
        .current_dir(folder.path())
        .env("XDG_RUNTIME_DIR", folder.path())
        .env_remove("PGPASSWORD")
        .output()
        .unwrap();
    let said = said(&output);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(!said.contains("the gate at"), "{said}");
    for line in &lines[..2] {
        assert!(line.contains("no gate of this user was found"), "{said}");
    }
    assert!(lines[0].contains("wants a password"), "{said}");
    assert!(lines[2].contains("127.0.0.1:6432 says: "), "{said}");
}
