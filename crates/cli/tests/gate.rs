//! `sooner gate` as a process: its configuration, its signals, its console, its metrics. What it
//! does before a database is tested in the crate `postgres`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sooner_testbed::skip;
use sooner_testbed::{ChildGuard, port};
use tempfile::TempDir;

fn sooner(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args(arguments)
        .output()
        .unwrap()
}

fn folder_with(config: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("gate.toml"), config).unwrap();
    folder
}

fn config_at(folder: &Path) -> String {
    folder.join("gate.toml").display().to_string()
}

/// A gate that runs; ended when dropped.
struct Running {
    child: ChildGuard,
    ready: String,
    said: BufReader<std::process::ChildStderr>,
}

impl Running {
    fn start(folder: &Path) -> Running {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sooner"))
            .args(["gate", "--config", &config_at(folder)])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut ready).unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let ready = ready.trim().to_owned();
        let mut running = Running {
            child: ChildGuard(child),
            ready,
            said,
        };
        assert!(
            running.ready.starts_with("ready: clients at "),
            "{:?} {}",
            running.ready.clone(),
            running.line()
        );
        running
    }

    fn signal(&self, signal: Signal) {
        let id = Pid::from_raw(self.child.id() as i32).unwrap();
        kill_process(id, signal).unwrap();
    }

    /// None of the servers here is there, which a gate says and waits for.
    fn says_that_nobody_answers(&mut self) {
        let line = self.line();
        assert!(line.contains("does not answer"), "{line}");
    }

    /// The next line of its log.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Its exit code, once it has ended.
    fn end(&mut self) -> Option<i32> {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(30) {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not end");
    }
}

#[test]
fn bad_input_is_one_line_with_its_place() {
    for (config, expected) in [
        ("", "database: there is no database"),
        (
            "[[database]]\nname = \"x\"\nserver = \"db\"\n",
            "gate.toml:3: database.server: ",
        ),
        (
            "[limits]\ntransaction = 1\n",
            "gate.toml:2: limits.transaction: unknown key; did you mean `transactions`?",
        ),
        (
            "users = \"nobody.txt\"\n[[database]]\nname = \"*\"\nserver = \"postgresql://db\"\n",
            "gate.toml:1: users: cannot read ",
        ),
        (
            "[[tls]]\ncertificate = \"a.pem\"\nkey = \"b.pem\"\n[[database]]\nname = \"*\"\nserver = \"postgresql://db\"\n[[rule]]\n",
            "gate.toml:2: tls.certificate: there is no file ",
        ),
        (
            "[[database]]\nname = \"*\"\nserver = \"postgresql://db?sslmode=verify-full&sslrootcert=no.pem\"\n[[rule]]\n",
            "gate.toml:3: database.server: no certificate can be read from ",
        ),
        (
            "[[database]]\nname = \"*\"\nserver = \"postgresql://db\"\n",
            "no client could log in",
        ),
    ] {
        let folder = folder_with(config);
        let output = sooner(&["gate", "--config", &config_at(folder.path())]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{config}: {said}");
        assert!(
            said.contains(expected) && said.trim().lines().count() == 1,
            "{said}"
        );
    }
    let output = sooner(&[
        "gate",
        "--backend",
        "postgresql://db",
        "--auth",
        "trust",
        "--check",
    ]);
    assert!(output.status.success());
}

#[test]
fn a_check_refuses_admins_who_can_never_come_in_and_the_gate_warns() {
    let config = |more: &str| {
        format!(
            "listen = [\"./.s.PGSQL.6432\"]\nadmins = [\"dba\", \"ann\"]\nwatchers = [\"bob\"]\n[auth_query]\nuser = \"asker\"\n{more}\
             [[database]]\nname = \"*\"\nserver = \"postgresql://127.0.0.1:1\"\n[[user]]\nname = \"ann\"\npassword = \"x\"\n"
        )
    };
    let folder = folder_with(&config(""));
    let at = config_at(folder.path());
    for arguments in [
        &["gate", "--config", &at, "--check"][..],
        &["gate", "check", &at],
    ] {
        let output = sooner(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        let lines: Vec<&str> = said.lines().collect();
        let begins = [
            "2: admins: \"dba\" can never",
            "3: watchers: \"bob\" can never",
        ];
        assert_eq!(lines.len(), begins.len(), "{said}");
        for (line, begin) in lines.iter().zip(begins) {
            assert!(
                line.starts_with(&format!("sooner: {at}:{begin} enter the console: ")),
                "{said}"
            );
        }
    }
    let mut gate = Running::start(folder.path());
    assert!(gate.line().contains("\"dba\" can never enter the console"));
    drop(gate);
    fs::write(
        folder.path().join("gate.toml"),
        config("database = \"auth\"\n"),
    )
    .unwrap();
    let output = sooner(&["gate", "--config", &at, "--check"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn several_mistakes_are_told_at_once() {
    let server = "server = \"postgresql://db\"\n";
    for (config, expected) in [
        (
            format!(
                "pool_mode = \"session\"\n[[database]]\nname = \"*\"\n{server}[[class]]\nname = \"a\"\nusers = [\"x\"]\ntarget = \"30ms\"\n"
            ),
            &[
                "1: pool_mode: PgBouncer's name; here it is mode",
                "7: class.users: unknown key; did you mean `user`?",
                "8: class.target: targets have names",
            ][..],
        ),
        (
            format!(
                "auth = \"trust\"\n[[database]]\nname = \"sooner\"\n{server}[[rule]]\ntransport = \"tls\"\n"
            ),
            &["3: database.name: ", "6: rule.transport: "],
        ),
    ] {
        let folder = folder_with(&config);
        let at = config_at(folder.path());
        for arguments in [&["gate", "--config", &at][..], &["gate", "check", &at]] {
            let output = sooner(arguments);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{said}");
            let lines: Vec<&str> = said.lines().collect();
            assert_eq!(lines.len(), expected.len(), "{said}");
            for (line, begin) in lines.iter().zip(expected) {
                assert!(line.starts_with(&format!("sooner: {at}:{begin}")), "{said}");
            }
        }
    }
}

fn listening_at(place: &str) -> String {
    format!(
        "auth = \"trust\"\nlisten = [\"{place}\"]\n[[database]]\nname = \"*\"\nserver = \"postgresql://127.0.0.1:1\"\n"
    )
}

#[test]
fn places_to_listen_at_are_taken_as_people_write_them() {
    let port = port::free().unwrap().port();
    for (place, expected) in [
        (port.to_string(), "write 127.0.0.1:"),
        ("localhost".into(), "it has no port; write localhost:6432"),
        ("::1".into(), "it has no port; write [::1]:6432"),
        ("127.0.0.1:99999".into(), "neither an address with a port"),
        ("/tmp".into(), "directory"),
        ("/no/such/socket".into(), "directory"),
    ] {
        let backend = [
            "gate",
            "--backend",
            "postgresql://127.0.0.1:1",
            "--auth",
            "trust",
            "--listen",
            &place,
        ];
        let output = sooner(&backend);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains(expected) && said.lines().count() == 1,
            "{said}"
        );
        assert!(said.starts_with("sooner: --listen: `"), "{said}");
        let folder = folder_with(&listening_at(&place));
        let at = config_at(folder.path());
        for arguments in [
            &["gate", "--config", &at][..],
            &["gate", "--config", &at, "--check"],
            &["gate", "check", &at],
        ] {
            let output = sooner(arguments);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
            let begin = format!("sooner: {at}:2: listen: `{place}`: ");
            assert!(
                said.starts_with(&begin) && said.contains(expected),
                "{said}"
            );
        }
    }
    for place in [
        format!("*:{port}"),
        format!(":{port}"),
        format!("localhost:{port}"),
    ] {
        let folder = folder_with(&listening_at(&place));
        let mut gate = Running::start(folder.path());
        assert!(TcpStream::connect(("127.0.0.1", port)).is_ok(), "{place}");
        gate.signal(Signal::TERM);
        assert_eq!(gate.end(), Some(0));
    }
}

#[test]
fn a_gate_without_a_file_can_be_looked_into() {
    let folder = TempDir::new().unwrap();
    let users = folder.path().join("users.txt");
    fs::write(&users, "\"ann\" \"pencil\"\n").unwrap();
    let port = port::free().unwrap().port();
    let at = format!("127.0.0.1:{port}");
    let mut child = Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args([
            "gate",
            "--backend",
            "postgresql://127.0.0.1:1",
            "--admin",
            "ann",
            "--listen",
            &at,
            "--users",
        ])
        .arg(&users)
        .env("XDG_RUNTIME_DIR", folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut ready)
        .unwrap();
    let top = |arguments: &[&str]| {
        let top = Command::new(env!("CARGO_BIN_EXE_sooner"))
            .args(["gate", "top", "--count", "1"])
            .args(arguments)
            .env("PGPASSWORD", "pencil")
            .output();
        top.unwrap()
    };
    let stranger = top(&["--gate", &at]);
    let said = String::from_utf8_lossy(&stranger.stderr).into_owned();
    assert!(said.contains("give --user NAME with PGPASSWORD"), "{said}");
    assert!(top(&["--gate", &at, "--user", "ann"]).status.success());
    let own = folder
        .path()
        .join("sooner-gate")
        .join(format!(".s.PGSQL.{port}"));
    let by_file = top(&["--gate", &own.display().to_string()]);
    assert!(by_file.status.success(), "{by_file:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_gate_is_watched_reloaded_and_stopped() {
    let port = port::free().unwrap().port();
    let config = |limit: &str| {
        format!(
            "auth = \"trust\"\nlisten = [\"./.s.PGSQL.6432\"]\nmetrics = \"127.0.0.1:{port}\"\n[limits]\ntransactions = {limit}\n\
             [[database]]\nname = \"*\"\nserver = \"postgresql:///?host=/nowhere\"\n[[class]]\nname = \"high\"\npriority = 1\nuser = [\"ann\"]\n"
        )
    };
    let folder = folder_with(&config("7"));
    let mut gate = Running::start(folder.path());
    gate.says_that_nobody_answers();
    let socket = folder.path().join(".s.PGSQL.6432");
    let at = socket.display().to_string();
    let top = sooner(&["gate", "top", "--gate", &at, "--json", "--count", "2"]);
    let text = String::from_utf8(top.stdout).unwrap();
    let looks: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        looks.len(),
        2,
        "{text} {}",
        String::from_utf8_lossy(&top.stderr)
    );
    assert_eq!(looks[0]["state"], "active");
    assert_eq!(looks[1]["classes"][0]["name"], "high");
    let table = sooner(&["gate", "top", "--gate", &at, "--count", "1"]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(
        table.contains("total p99") && table.contains("high"),
        "{table}"
    );
    let mut http = TcpStream::connect(("127.0.0.1", port)).unwrap();
    http.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut metrics = String::new();
    http.read_to_string(&mut metrics).unwrap();
    assert!(
        metrics.contains("sooner_gate_clients{doing=\"idle\"} 0"),
        "{metrics}"
    );
    // A client that only looks whether the gate listens is no news: the next line is about what
    // comes next.
    drop(std::os::unix::net::UnixStream::connect(&socket).unwrap());
    thread::sleep(Duration::from_millis(100));
    fs::write(folder.path().join("gate.toml"), config("many")).unwrap();
    gate.signal(Signal::HUP);
    let line = gate.line();
    assert!(line.contains("the old configuration stays"), "{line}");
    fs::write(folder.path().join("gate.toml"), config("8")).unwrap();
    gate.signal(Signal::HUP);
    assert_eq!(gate.line(), "sooner gate: the configuration was read again");
    gate.signal(Signal::TERM);
    assert_eq!(gate.end(), Some(0));
    assert!(!socket.exists());
    let gone = sooner(&["gate", "top", "--gate", &at, "--count", "1"]);
    assert_eq!(gone.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&gone.stderr).contains("no gate at"));
}

#[test]
fn a_second_gate_does_not_take_the_socket_of_the_first() {
    let config = "auth = \"trust\"\nlisten = [\"./.s.PGSQL.6432\"]\n[[database]]\nname = \"*\"\nserver = \"postgresql://127.0.0.1:1\"\n";
    let folder = folder_with(config);
    let mut first = Running::start(folder.path());
    let second = sooner(&["gate", "--config", &config_at(folder.path())]);
    assert_eq!(second.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&second.stderr).contains("another process already listens there")
    );
    // What a crash leaves is no obstacle.
    first.signal(Signal::KILL);
    first.end();
    let mut third = Running::start(folder.path());
    third.signal(Signal::INT);
    assert_eq!(third.end(), Some(0));
}

#[test]
fn root_becomes_another_user_for_good() {
    if !rustix::process::geteuid().is_root() {
        skip("root_becomes_another_user_for_good", "needs root");
        return;
    }
    let config = |user: &str, limit: usize| {
        format!(
            "auth = \"trust\"\nsystem_user = \"{user}\"\nlisten = [\"./.s.PGSQL.6432\"]\n[limits]\ntransactions = {limit}\n\
             [[database]]\nname = \"*\"\nserver = \"postgresql:///?host=/nowhere\"\n"
        )
    };
    let folder = folder_with(&config("nobody", 7));
    // Its parent lets every user through.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut gate = Running::start(folder.path());
    gate.says_that_nobody_answers();
    assert!(gate.ready.ends_with("; as nobody"), "{}", gate.ready);
    let status = fs::read_to_string(format!("/proc/{}/status", gate.child.id())).unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace()
            .skip(1)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let nobody = "65534 65534 65534 65534";
    assert_eq!([field("Uid:"), field("Gid:")], [nobody, nobody], "{status}");
    assert_eq!(field("CapEff:"), "0000000000000000");
    let socket = folder.path().join(".s.PGSQL.6432");
    assert_eq!(fs::metadata(&socket).unwrap().uid(), 65534);
    fs::write(folder.path().join("gate.toml"), config("daemon", 8)).unwrap();
    gate.signal(Signal::HUP);
    assert_eq!(
        gate.line(),
        "sooner gate: system_user: changed; takes effect at the next start"
    );
    assert_eq!(gate.line(), "sooner gate: the configuration was read again");
    // Root may look inside all the same.
    let at = socket.display().to_string();
    let top = sooner(&["gate", "top", "--gate", &at, "--count", "1"]);
    assert!(
        top.status.success(),
        "{}",
        String::from_utf8_lossy(&top.stderr)
    );
    let nowhere = folder_with(&config("no-such-user", 1));
    let output = sooner(&["gate", "--check", "--config", &config_at(nowhere.path())]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("gate.toml:2: system_user: there is no user no-such-user"),
        "{said}"
    );
}
