//! A folder with a configuration, and the server that is started from it.

use assert_cmd::Command as Checked;
use rustix::process::{Pid, Signal, kill_process};
use sooner_testbed::ChildGuard;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

/// A folder with two document roots and a configuration file.
pub struct ConfigFolder {
    pub folder: TempDir,
}

impl ConfigFolder {
    pub fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for root in ["one", "two"] {
            fs::create_dir(folder.path().join(root)).unwrap();
            fs::write(folder.path().join(root).join("a.txt"), root).unwrap();
        }
        let place = Self { folder };
        place.write(config);
        place
    }

    pub fn write(&self, config: &str) {
        fs::write(self.file(), config).unwrap();
    }

    pub fn file(&self) -> PathBuf {
        self.folder.path().join("sooner.toml")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `--check`; the code, standard output and standard error.
    pub fn check(&self) -> (Option<i32>, String, String) {
        self.check_with(&[])
    }

    pub fn check_with(&self, flags: &[&str]) -> (Option<i32>, String, String) {
        self.checked("--check", flags)
    }

    /// The same for `--check-reload`.
    pub fn check_reload(&self) -> (Option<i32>, String, String) {
        self.checked("--check-reload", &[])
    }

    fn checked(&self, check: &str, flags: &[&str]) -> (Option<i32>, String, String) {
        let output = Checked::cargo_bin("sooner")
            .unwrap()
            .args(["serve", check, "--config"])
            .arg(self.file())
            .args(flags)
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
    pub fn refusal(&self, config: &str) -> String {
        self.write(config);
        let (code, output, said) = self.check();
        assert_eq!((code, output.as_str()), (Some(2), ""), "{config}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        let prefix = format!("sooner: {}:", self.file().display());
        let line = said.strip_prefix(&prefix).expect(&said);
        line.trim_end()
            .replace(self.folder.path().to_str().unwrap(), "PLACE")
    }

    pub fn start(&self, flags: &[&str]) -> Server {
        self.start_under(flags, &[])
    }

    pub fn start_under(&self, flags: &[&str], environment: &[(&str, &Path)]) -> Server {
        self.spawn(flags, environment).ready()
    }

    /// A server that may have something to say before it is ready.
    pub fn spawn(&self, flags: &[&str], environment: &[(&str, &Path)]) -> Server {
        let child = Command::new(assert_cmd::cargo::cargo_bin("sooner"))
            .args(["serve", "--config"])
            .arg(self.file())
            .args(flags)
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Server::of(child, String::new())
    }
}

/// A started server.
pub struct Server {
    pub child: ChildGuard,
    said: Option<BufReader<ChildStderr>>,
    pub ready_line: String,
    pub address: String,
}

impl Server {
    /// A process that will be one.
    pub fn of(mut child: Child, address: String) -> Self {
        let said = BufReader::new(child.stderr.take().unwrap());
        Self {
            child: ChildGuard(child),
            said: Some(said),
            ready_line: String::new(),
            address,
        }
    }

    /// Reads the line that says that it is ready, and where.
    pub fn ready(mut self) -> Self {
        self.ready_line = self.says();
        self.address = self
            .ready_line
            .split([' ', ';'])
            .find_map(|word| word.trim_end().strip_prefix("http://"))
            .unwrap_or_else(|| panic!("{}", self.ready_line))
            .to_owned();
        self
    }

    pub fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The next line on standard error.
    pub fn says(&mut self) -> String {
        let mut line = String::new();
        let said = self.said.as_mut().expect("a thread reads its lines");
        let length = said.read_line(&mut line).unwrap();
        assert_ne!(length, 0, "it has ended");
        line
    }

    /// The lines on standard error from now on, read by a thread.
    pub fn lines(&mut self) -> Receiver<String> {
        let (told, lines) = channel();
        let said = self.said.take().expect("a thread reads its lines");
        std::thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                let _ = told.send(line);
            }
        });
        lines
    }

    pub fn get(&self) -> String {
        body(&self.address)
    }

    /// Asks until the answer is this one; every request must be answered.
    pub fn get_until(&self, expected: &str) {
        while self.get() != expected {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn stop(mut self) -> Option<i32> {
        self.send(Signal::TERM);
        self.child.wait().unwrap().code()
    }
}

/// The body of `/a.txt`, from a connection of its own.
pub fn body(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /a.txt HTTP/1.0\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.0 200"), "{response}");
    response.split_once("\r\n\r\n").unwrap().1.to_owned()
}

pub const LISTEN: &str = "listen = [\"127.0.0.1:0\"]\n";

pub fn serving(root: &str) -> String {
    format!("{LISTEN}root = \"{root}\"\n")
}

/// Writes a certificate for `a.example` that ends in `year`, and its key.
pub fn certify(place: &ConfigFolder, name: &str, year: i32) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec!["a.example".into()]).unwrap();
    parameters.not_before = rcgen::date_time_ymd(2000, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(year, 1, 1);
    let certificate = parameters.self_signed(&key).unwrap();
    fs::write(place.path(&format!("{name}.pem")), certificate.pem()).unwrap();
    fs::write(place.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
}

/// A configuration that shows the certificate of one name with the key of another, from line 5 on.
pub fn with_tls(certificate: &str, key: &str) -> String {
    format!(
        "root = \"one\"\nlisten_tls = [\"127.0.0.1:0\"]\n\n[[tls]]\ncertificate = \"{certificate}.pem\"\nkey = \"{key}.key\"\n"
    )
}
