//! `sooner serve --config FILE`: looked at by `--check`, changed by SIGHUP, under flags, under a supervisor.

use assert_cmd::Command as Checked;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// A folder with two document roots and a configuration file.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for root in ["one", "two"] {
            fs::create_dir(folder.path().join(root)).unwrap();
            fs::write(folder.path().join(root).join("a.txt"), root).unwrap();
        }
        let place = Self { folder };
        place.write(config);
        place
    }

    fn write(&self, config: &str) {
        fs::write(self.file(), config).unwrap();
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("sooner.toml")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `--check`; the code, standard output and standard error.
    fn check(&self) -> (Option<i32>, String, String) {
        let output = Checked::cargo_bin("sooner")
            .unwrap()
            .args(["serve", "--check", "--config"])
            .arg(self.file())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    /// The line that refuses this configuration, without the file's name before the line number.
    fn refusal(&self, config: &str) -> String {
        self.write(config);
        let (code, output, said) = self.check();
        assert_eq!((code, output.as_str()), (Some(2), ""), "{config}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        let prefix = format!("sooner: {}:", self.file().display());
        let line = said.strip_prefix(&prefix).expect(&said);
        line.trim_end()
            .replace(self.folder.path().to_str().unwrap(), "PLACE")
    }

    fn start(&self, flags: &[&str]) -> Server {
        self.start_under(flags, &[])
    }

    fn start_under(&self, flags: &[&str], environment: &[(&str, &Path)]) -> Server {
        let child = Command::new(assert_cmd::cargo::cargo_bin("sooner"))
            .args(["serve", "--config"])
            .arg(self.file())
            .args(flags)
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut server = Server::of(child, String::new());
        server.ready_line = server.says();
        server.address = server
            .ready_line
            .split([' ', ';'])
            .find_map(|word| word.trim_end().strip_prefix("http://"))
            .unwrap_or_else(|| panic!("{}", server.ready_line))
            .to_owned();
        server
    }
}

/// A started server.
struct Server {
    child: Child,
    said: BufReader<ChildStderr>,
    ready_line: String,
    address: String,
}

impl Server {
    /// A process that will be one.
    fn of(mut child: Child, address: String) -> Self {
        let said = BufReader::new(child.stderr.take().unwrap());
        Self {
            child,
            said,
            ready_line: String::new(),
            address,
        }
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The next line on standard error.
    fn says(&mut self) -> String {
        let mut line = String::new();
        let length = self.said.read_line(&mut line).unwrap();
        assert_ne!(length, 0, "it has ended");
        line
    }

    fn get(&self) -> String {
        body(&self.address)
    }

    /// Asks until the answer is this one; every request must be answered.
    fn get_until(&self, expected: &str) {
        while self.get() != expected {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn stop(mut self) -> Option<i32> {
        self.send(Signal::TERM);
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The body of `/a.txt`, from a connection of its own.
fn body(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /a.txt HTTP/1.0\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.0 200"), "{response}");
    response.split_once("\r\n\r\n").unwrap().1.to_owned()
}

const LISTEN: &str = "listen = [\"127.0.0.1:0\"]\n";

fn serving(root: &str) -> String {
    format!("{LISTEN}root = \"{root}\"\n")
}

#[test]
fn a_right_configuration_is_ok_and_nothing_is_started() {
    let place = Place::new(&serving("one"));
    let (code, output, said) = place.check();
    let expected = format!("{}: ok\n", place.file().display());
    assert_eq!((code, output, said.as_str()), (Some(0), expected, ""));
}

#[test]
fn a_log_is_not_made_by_a_check() {
    let place = Place::new(&format!(
        "{}[log]\naccess = \"access.log\"\n",
        serving("one")
    ));
    assert_eq!(place.check().0, Some(0));
    assert!(!place.path("access.log").exists());
}

#[test]
fn a_wrong_configuration_is_one_line_with_its_place() {
    let place = Place::new("");
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
            "root = \"one\"\n[uplink]\nrate = \"10mbps\"",
            "3: uplink.rate: rate `10mbps`: unknown unit `mbps`; use bit, kbit, mbit or gbit, as in 100mbit",
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
            "[[site]]\nroot = \"one\"\nhosts = [\"a.example\"]\n[[site]]\nroot = \"two\"\nhosts = [\"A.example\"]",
            "6: site.hosts: \"A.example\" is named before: ",
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
            "3: upstream.servers: `ftp://127.0.0.1:1` is no server: write ",
        ),
    ] {
        let line = place.refusal(config);
        assert!(line.starts_with(expected), "{line}");
    }
}

/// Writes a certificate for `a.example` that ends in `year`, and its key.
fn certify(place: &Place, name: &str, year: i32) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec!["a.example".into()]).unwrap();
    parameters.not_before = rcgen::date_time_ymd(2000, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(year, 1, 1);
    let certificate = parameters.self_signed(&key).unwrap();
    fs::write(place.path(&format!("{name}.pem")), certificate.pem()).unwrap();
    fs::write(place.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
}

/// A configuration that shows the certificate of one name with the key of another, from line 5 on.
fn with_tls(certificate: &str, key: &str) -> String {
    format!(
        "root = \"one\"\nlisten_tls = [\"127.0.0.1:0\"]\n\n[[tls]]\ncertificate = \"{certificate}.pem\"\nkey = \"{key}.key\"\n"
    )
}

#[test]
fn a_certificate_that_will_not_do_is_placed() {
    let place = Place::new("");
    certify(&place, "good", 2100);
    certify(&place, "other", 2100);
    certify(&place, "old", 2020);
    place.write(&with_tls("good", "good"));
    assert_eq!(place.check().0, Some(0), "{:?}", place.check());
    for (config, expected) in [
        (
            with_tls("old", "old"),
            "5: tls.certificate: the certificate of ",
        ),
        (with_tls("good", "other"), "6: tls.key: "),
        (with_tls("none", "good"), "5: tls.certificate: "),
        (with_tls("good", "none"), "6: tls.key: "),
    ] {
        let line = place.refusal(&config);
        assert!(line.starts_with(expected), "{line}");
    }
}

#[test]
fn a_new_certificate_that_will_not_do_leaves_the_old_one() {
    let place = Place::new("");
    certify(&place, "good", 2100);
    certify(&place, "old", 2020);
    place.write(&format!("{LISTEN}{}", with_tls("good", "good")));
    let mut server = place.start(&[]);
    place.write(&format!("{LISTEN}{}", with_tls("old", "old")));
    server.send(Signal::HUP);
    let refusal = server.says();
    assert!(
        refusal.contains("sooner.toml:6: tls.certificate: ") && refusal.contains("expired"),
        "{refusal}"
    );
    assert_eq!(server.get(), "one");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let place = Place::new("");
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
        eprintln!(
            "skipped: a_port_without_the_right_to_it_is_placed: needs root and setpriv (util-linux), and privileged ports"
        );
        return;
    }
    let place =
        Place::new("root = \"one\"\nlisten = [\n  \"127.0.0.1:8080\",\n  \"127.0.0.1:79\"]");
    let output = Command::new("setpriv")
        .args(["--bounding-set=-net_bind_service", "--inh-caps=-all"])
        .arg(assert_cmd::cargo::cargo_bin("sooner"))
        .args(["serve", "--check", "--config"])
        .arg(place.file())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("sooner.toml:4: listen: cannot listen on 127.0.0.1:79: no permission"),
        "{said}"
    );
}

#[test]
fn flags_go_over_the_file() {
    let config = format!(
        "{}[uplink]\nrate = \"10mbit\"\npolicy = \"las\"\nmechanism = \"user-space\"\n",
        serving("one")
    );
    let place = Place::new(&config);
    let as_written = place.start(&[]);
    assert!(
        as_written.ready_line.contains("las") && as_written.ready_line.contains("10mbit"),
        "{}",
        as_written.ready_line
    );
    let two = place.path("two");
    let flags = [
        "--policy",
        "fcfs",
        "--uplink",
        "20mbit",
        two.to_str().unwrap(),
    ];
    let overruled = place.start(&flags);
    assert!(
        overruled.ready_line.contains("fcfs") && overruled.ready_line.contains("20mbit"),
        "{}",
        overruled.ready_line
    );
    assert_eq!(
        (as_written.get(), overruled.get()),
        ("one".into(), "two".into())
    );
}

#[test]
fn a_wrong_flag_is_said_to_be_one() {
    let place = Place::new(&serving("one"));
    let output = Checked::cargo_bin("sooner")
        .unwrap()
        .args(["serve", "--check", "--mechanism", "bands", "--config"])
        .arg(place.file())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("sooner: command line: uplink.mechanism: "),
        "{said}"
    );
}

#[test]
fn a_reload_changes_what_is_served_and_fails_no_request() {
    let place = Place::new(&serving("one"));
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
    let place = Place::new(&serving("one"));
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
    let place = Place::new(&format!(
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
fn a_supervisor_is_told_of_every_step() {
    let place = Place::new(&serving("one"));
    let name = place.path("notify");
    let supervisor = UnixDatagram::bind(&name).unwrap();
    let next = || {
        let mut state = [0; 500];
        let length = supervisor.recv(&mut state).unwrap();
        String::from_utf8_lossy(&state[..length]).into_owned()
    };
    let server = place.start_under(&[], &[("NOTIFY_SOCKET", &name)]);
    let ready = next();
    let main_pid = format!("MAINPID={}\n", server.child.id());
    assert!(
        ready.starts_with("READY=1\n") && ready.contains(&main_pid),
        "{ready}"
    );
    server.send(Signal::HUP);
    let reloading = next();
    assert!(
        reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="),
        "{reloading}"
    );
    assert!(next().starts_with("READY=1\n"));
    assert_eq!(server.stop(), Some(0));
    assert!(next().starts_with("STOPPING=1"));
}

#[test]
fn a_second_signal_ends_at_once_and_the_first_lets_responses_end() {
    let place = Place::new(&format!(
        "{}[limits]\ngrace_seconds = 1000\n",
        serving("one")
    ));
    fs::File::create(place.path("one/large"))
        .unwrap()
        .set_len(256 << 20)
        .unwrap();
    let mut server = place.start(&[]);
    let mut busy = TcpStream::connect(&server.address).unwrap();
    busy.write_all(b"GET /large HTTP/1.0\r\n\r\n").unwrap();
    busy.read_exact(&mut [0; 100]).unwrap();
    server.send(Signal::TERM);
    while TcpStream::connect(&server.address).is_ok() {
        std::thread::yield_now();
    }
    assert!(server.child.try_wait().unwrap().is_none());
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn root_becomes_the_user_and_serves_on() {
    if !geteuid().is_root() {
        eprintln!("skipped: root_becomes_the_user_and_serves_on: needs root");
        return;
    }
    let place = Place::new(&format!("{}user = \"nobody\"\n", serving("one")));
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(place.folder.path(), everybody).unwrap();
    let server = place.start(&[]);
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let ids = status
        .lines()
        .find(|line| line.starts_with("Uid:"))
        .unwrap();
    assert!(ids.split_whitespace().skip(1).all(|id| id != "0"), "{ids}");
    assert_eq!(server.get(), "one");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_service_manager_can_hold_the_address() {
    const ACTIVATE: &str = "systemd-socket-activate";
    if Command::new(ACTIVATE).arg("--version").output().is_err() {
        eprintln!("skipped: a_service_manager_can_hold_the_address: no {ACTIVATE} (systemd)");
        return;
    }
    let place = Place::new("root = \"one\"\nlisten = [\"192.0.2.1:80\"]");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let child = Command::new(ACTIVATE)
        .args(["-l", &address])
        .arg(assert_cmd::cargo::cargo_bin("sooner"))
        .args(["serve", "--config"])
        .arg(place.file())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut server = Server::of(child, address);
    while TcpStream::connect(&server.address).is_err() {
        std::thread::yield_now();
    }
    assert_eq!(server.get(), "one");
    let ready = std::iter::repeat_with(|| server.says()).find(|line| line.contains("serving"));
    let url = format!("http://{}", server.address);
    assert!(ready.is_some_and(|line| line.contains(&url)));
    assert_eq!(server.stop(), Some(0));
}
