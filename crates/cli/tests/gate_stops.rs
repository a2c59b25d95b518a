//! How a gate ends, and what it says before it begins: the last clients, files that it made, places
//! that the machine has not, a password that is not given.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use sooner_testbed::postgres::{Database, until};
use sooner_testbed::skip;
use sooner_testbed::{ChildGuard, port};
use tempfile::TempDir;

fn sooner(arguments: &[&str]) -> Output {
    let mut sooner = Command::new(env!("CARGO_BIN_EXE_sooner"));
    sooner.env_remove("PGPASSWORD").args(arguments);
    sooner.output().unwrap()
}

fn folder_with(config: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.path().join("gate.toml"), config).unwrap();
    folder
}

/// Starts one, and waits until it is ready.
fn start(folder: &Path) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args(["gate", "--config"])
        .arg(folder.join("gate.toml"))
        .env("XDG_RUNTIME_DIR", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut ready).unwrap();
    assert!(ready.starts_with("ready: "), "{ready}");
    child
}

fn terminate(child: &Child) {
    let id = Pid::from_raw(child.id() as i32).unwrap();
    kill_process(id, Signal::TERM).unwrap();
}

#[test]
fn who_is_left_when_the_grace_is_over_is_told_why() {
    let Some(database) = Database::start("who_is_left_when_the_grace_is_over") else {
        return;
    };
    let server = database.folder().display();
    let folder = folder_with(&format!(
        "auth = \"trust\"\nlisten = [\"./.s.PGSQL.6432\"]\n[limits]\ngrace_seconds = 1\n[[database]]\nname = \"*\"\nserver = \"postgresql:///?host={server}\"\n"
    ));
    let mut gate = ChildGuard(start(folder.path()));
    let mut psql = database.psql(folder.path(), 6432, "postgres");
    psql.args(["-c", "SELECT pg_sleep(600)"]);
    let client = psql.stderr(Stdio::piped()).stdout(Stdio::null());
    let mut client = client.stdin(Stdio::null()).spawn().unwrap();
    let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'";
    until("it sleeps", || database.ask(sleeping).trim() == "1");
    terminate(&gate);
    let mut told = String::new();
    let mut from = client.stderr.take().unwrap();
    from.read_to_string(&mut told).unwrap();
    client.wait().unwrap();
    let words = "terminating connection due to administrator command";
    assert!(told.contains(words), "{told}");
    assert!(gate.wait().unwrap().success());
    assert_eq!(database.ask(sleeping).trim(), "0");
    let mut log = String::new();
    let mut said = gate.stderr.take().unwrap();
    said.read_to_string(&mut log).unwrap();
    for line in [
        "stopping: 1 client may end",
        "limits.grace_seconds (1 s) are over: ending 1 client, and what runs for them",
    ] {
        assert!(log.contains(line), "{log}");
    }
}

#[test]
fn the_private_socket_file_goes_with_a_gate_that_became_another_user() {
    if !rustix::process::geteuid().is_root() {
        skip("the_private_socket_file_goes", "needs root");
        return;
    }
    let at = port::free().unwrap();
    let folder = folder_with(&format!(
        "auth = \"trust\"\nsystem_user = \"nobody\"\nlisten = [\"{at}\"]\n[[database]]\nname = \"*\"\nserver = \"postgresql:///?host=/nowhere\"\n"
    ));
    let own = folder.path().join("sooner-gate");
    let socket = own.join(format!(".s.PGSQL.{}", at.port()));
    // The second one finds the folder that the first has given away.
    for _ in 0..2 {
        let mut gate = ChildGuard(start(folder.path()));
        assert!(socket.exists());
        let place = socket.display().to_string();
        let top = sooner(&["gate", "top", "--gate", &place, "--count", "1"]);
        assert!(top.status.success(), "{top:?}");
        let mode = fs::metadata(&own).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        terminate(&gate);
        assert!(gate.wait().unwrap().success());
        assert!(!socket.exists());
    }
}

#[test]
fn a_check_refuses_an_address_that_the_machine_has_not() {
    // Of the block for documentation (RFC 5737).
    let folder = folder_with(
        "auth = \"trust\"\nlisten = [\"192.0.2.1:6432\"]\n[[database]]\nname = \"*\"\nserver = \"postgresql://127.0.0.1:1\"\n",
    );
    let at = folder.path().join("gate.toml").display().to_string();
    for arguments in [
        &["gate", "--config", &at, "--check"][..],
        &["gate", "check", &at],
    ] {
        let output = sooner(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("gate.toml:2: listen: `192.0.2.1:6432`: "),
            "{said}"
        );
    }
}

#[test]
fn the_check_before_a_reload_refuses_what_a_reload_refuses() {
    let config = |users: &str| {
        format!(
            "{users}listen = [\"192.0.2.1:6432\"]\nadmins = [\"dba\"]\n[auth_query]\nuser = \"asker\"\n[[database]]\nname = \"*\"\nserver = \"postgresql://127.0.0.1:1\"\n"
        )
    };
    let checked = |users: &str| {
        let folder = folder_with(&config(users));
        let at = folder.path().join("gate.toml").display().to_string();
        let output = sooner(&["gate", "--config", &at, "--check-reload"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let (code, said) = checked("");
    assert_eq!(code, Some(0), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(
        lines[0].contains("gate.toml:2: admins: \"dba\" can never enter"),
        "{said}"
    );
    let begin = "gate.toml:1: listen: `192.0.2.1:6432`: ";
    let end = "; a reload works all the same, the next start would fail";
    assert!(
        lines[1].contains(begin) && lines[1].ends_with(end),
        "{said}"
    );
    let (code, said) = checked("users = \"none.txt\"\n");
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("gate.toml:1: users: cannot read ") && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn who_gives_no_password_is_told_where_it_goes() {
    let at = port::free().unwrap();
    let folder = folder_with(&format!(
        "listen = [\"{at}\"]\nadmins = [\"adm\"]\n[[user]]\nname = \"adm\"\npassword = \"x\"\n[[database]]\nname = \"*\"\nserver = \"postgresql:///?host=/nowhere\"\n"
    ));
    let _gate = ChildGuard(start(folder.path()));
    let place = at.to_string();
    let top = [
        "gate", "top", "--gate", &place, "--user", "adm", "--count", "1",
    ];
    let output = sooner(&top);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("; set PGPASSWORD"), "{said}");
    assert!(!said.contains("no gate at"), "{said}");
}
