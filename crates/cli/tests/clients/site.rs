//! A folder that the real server serves, in clear text and over TLS, and its files to compare with.

use super::visits::Visits;
use super::way::Way;
use flate2::{Compression, write::GzEncoder};
use rcgen::KeyUsagePurpose::{CrlSign, KeyCertSign};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustix::process::{Pid, Signal, kill_process};
use sooner_testbed::ChildGuard;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The size of `large.bin`.
pub const LARGE_BYTES: usize = 5_000_000;

/// Who asks for tags, not for files.
const PROBE: &str = "probe";

const CONFIG: &str = r#"
listen = ["127.0.0.1:0"]
listen_tls = ["127.0.0.1:0"]

[uplink]
rate = "1gbit"
mechanism = "user-space"

[log]
access = "access.log"

[[tls]]
certificate = "server.pem"
key = "server.key"

[[site]]
root = "root"
precompressed = ["gzip"]
"#;

/// A server with its folder; ends when dropped.
pub struct Site {
    folder: TempDir,
    child: ChildGuard,
    clear_url: String,
    tls_url: String,
}

impl Site {
    /// Serves the files that the table is about.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// The same with more configuration.
    pub fn start_with(tables: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("root")).unwrap();
        write_files(&folder.path().join("root"));
        write_certificates(folder.path());
        let config = folder.path().join("sooner.toml");
        fs::write(&config, format!("{CONFIG}{tables}")).unwrap();
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("sooner"))
            .args(["serve", "--config"])
            .arg(config)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        said.read_line(&mut line).unwrap();
        let url = |scheme: &str| {
            let mut words = line.split([' ', ';', ',']).map(str::trim_end);
            let url = words.find(|word| word.starts_with(scheme));
            url.unwrap_or_else(|| panic!("{line}")).to_owned()
        };
        let (clear_url, tls_url) = (url("http://"), url("https://"));
        Self {
            folder,
            child: ChildGuard(child),
            clear_url,
            tls_url,
        }
    }

    pub fn url(&self, way: Way, path: &str) -> String {
        let base = if way.is_tls() {
            &self.tls_url
        } else {
            &self.clear_url
        };
        format!("{base}{path}")
    }

    /// The port on which the server is spoken to in this way.
    pub fn port(&self, way: Way) -> u16 {
        let url = self.url(way, "");
        url.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// A served file.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("root").join(name)
    }

    /// What is in a served file.
    pub fn content(&self, name: &str) -> Vec<u8> {
        fs::read(self.file(name)).unwrap()
    }

    /// A place for what a client leaves behind.
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The certificate that clients are to trust.
    pub fn authority(&self) -> PathBuf {
        self.scratch("authority.pem")
    }

    /// The tag (ETag) of the file at `path`.
    pub fn tag(&self, path: &str) -> String {
        let address = self.clear_url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("HEAD {path} HTTP/1.0\r\nuser-agent: {PROBE}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = String::new();
        stream.read_to_string(&mut head).unwrap();
        let tag = head.lines().find_map(|line| line.strip_prefix("etag: "));
        tag.unwrap_or_else(|| panic!("{head}")).to_owned()
    }

    /// Stops the server, and gives what it logged.
    pub fn stop(mut self) -> Visits {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
        let log = fs::read_to_string(self.scratch("access.log")).unwrap();
        Visits::read(&log, PROBE)
    }
}

fn write_files(root: &Path) {
    let lines =
        |count: usize| -> String { (0..count).map(|line| format!("line {line}\n")).collect() };
    let style = lines(2_000);
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(style.as_bytes()).unwrap();
    for (name, content) in [
        (
            "index.html",
            b"<!doctype html><title>Index</title>\n".to_vec(),
        ),
        ("text.txt", lines(1_000).into_bytes()),
        ("a bü.txt", b"escaped\n".to_vec()),
        ("style.css", style.into_bytes()),
        ("style.css.gz", packed.finish().unwrap()),
        ("large.bin", noise(LARGE_BYTES)),
    ] {
        fs::write(root.join(name), content).unwrap();
    }
}

/// Bytes without a pattern, so that none can stand for others.
pub fn noise(count: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 24) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// An authority, and a certificate of its for this machine.
fn write_certificates(folder: &Path) {
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyCertSign, CrlSign];
    parameters
        .distinguished_name
        .push(DnType::CommonName, "Authority");
    let authority = CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    parameters
        .distinguished_name
        .push(DnType::CommonName, "Server");
    // Python's TLS insists on it.
    parameters.use_authority_key_identifier_extension = true;
    let certificate = parameters.signed_by(&key, &authority).unwrap();
    fs::write(folder.join("authority.pem"), authority.pem()).unwrap();
    fs::write(folder.join("server.pem"), certificate.pem()).unwrap();
    fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
}
