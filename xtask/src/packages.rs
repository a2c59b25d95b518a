//! Programs of other people that the tests use, and the Debian packages they come in.

use crate::process;
use anyhow::Result;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What a test needs, its Debian package, and what it is for.
pub struct Need {
    pub wanted: Wanted,
    pub package: &'static str,
    pub what_for: &'static str,
}

/// Something that may be there or not.
pub enum Wanted {
    /// A program on the PATH.
    Program(&'static str),
    /// A file.
    File(&'static str),
    /// A module that `python3` can import.
    PythonModule(&'static str),
}

impl Wanted {
    fn is_there(&self) -> bool {
        match self {
            Self::Program(name) => process::is_installed(name),
            Self::File(path) => std::path::Path::new(path).exists(),
            Self::PythonModule(name) => {
                let import = format!("import {name}");
                process::output(Command::new("python3").args(["-c", &import])).is_ok()
            }
        }
    }
}

/// What `cargo xtask test` uses. What is missing is skipped by the tests that would use it.
pub const FOR_TESTS: &[Need] = &[
    program("c++", "g++", "the fuzzer's engine"),
    program("ip", "iproute2", "tests in network namespaces"),
    program("tc", "iproute2", "tests of kernel bands"),
    program(
        "nginx",
        "nginx-light",
        "tests of the load generator over TLS and HTTP/2",
    ),
    program("openssl", "openssl", "tests of TLS"),
    program(
        "htpasswd",
        "apache2-utils",
        "files of passwords as people make them",
    ),
    program("curl", "curl", CLIENT),
    program("wget", "wget", CLIENT),
    program("node", "nodejs", CLIENT),
    Need {
        wanted: Wanted::PythonModule("requests"),
        package: "python3-requests",
        what_for: CLIENT,
    },
    program(
        "gunicorn",
        "gunicorn",
        "tests of workers that the processor goes to first",
    ),
    program(
        "linux.uml",
        "user-mode-linux",
        "tests of the lab in a guest",
    ),
    program("nghttp", "nghttp2-client", CLIENT),
    program("chromium", "chromium", CLIENT),
    program("go", "golang-go", "h2spec, which tests HTTP/2"),
    program(
        "valgrind",
        "valgrind",
        "instruction counts of the simulator",
    ),
    program(
        "pg_ctlcluster",
        "postgresql",
        "tests of the gate before a PostgreSQL",
    ),
    program(
        "check_postgres",
        "check-postgres",
        "tests of the gate's console by what monitors PgBouncer",
    ),
    file(
        "/usr/include/postgresql/15/server/postgres.h",
        "postgresql-server-dev-15",
        "tests of the extension sooner_locks",
    ),
    file(
        "/usr/lib/python3/dist-packages/psycopg2/__init__.py",
        "python3-psycopg2",
        "tests of the extension sooner_locks",
    ),
    file(
        "/usr/lib/python3/dist-packages/pip/__init__.py",
        "python3-pip",
        "tests of the gate before PostgreSQL 16 and 18",
    ),
    file(
        "/usr/lib/python3/dist-packages/psycopg/__init__.py",
        "python3-psycopg",
        DRIVER,
    ),
    file(
        "/usr/lib/python3/dist-packages/asyncpg/__init__.py",
        "python3-asyncpg",
        DRIVER,
    ),
    program("javac", "default-jdk-headless", DRIVER),
    file(
        "/usr/share/java/postgresql.jar",
        "libpostgresql-jdbc-java",
        DRIVER,
    ),
    file(
        "/usr/share/gocode/src/github.com/lib/pq/conn.go",
        "golang-github-lib-pq-dev",
        DRIVER,
    ),
    program("lintian", "lintian", PACKAGE),
    program("mandoc", "mandoc", PACKAGE),
    program("mmdebstrap", "mmdebstrap", PACKAGE),
    program("skopeo", "skopeo", PACKAGE),
    program("umoci", "umoci", PACKAGE),
    program("clang", "clang", BPF),
    program("llvm-objdump", "llvm", BPF),
    file("/usr/include/bpf/bpf_helpers.h", "libbpf-dev", BPF),
];

const PACKAGE: &str = "the check of what is given away";
const BPF: &str = "the check that the BPF object is what its source says";
const DRIVER: &str = "tests of the gate with drivers that people use";
const CLIENT: &str = "tests of the server with programs that people use";

const fn program(name: &'static str, package: &'static str, what_for: &'static str) -> Need {
    Need {
        wanted: Wanted::Program(name),
        package,
        what_for,
    }
}

const fn file(path: &'static str, package: &'static str, what_for: &'static str) -> Need {
    Need {
        wanted: Wanted::File(path),
        package,
        what_for,
    }
}

/// The driver of Node for PostgreSQL, with what it needs of others.
const NODE_POSTGRES: [&str; 3] = ["node-pg", "node-split2", "node-xtend"];

/// Unpacks the driver of Node below `target/debian`: Debian's cannot be installed beside a Node
/// that is not Debian's. Where it cannot be had, says so.
pub fn unpack_node_postgres() {
    let into = process::root().join("target/debian");
    if into.join("usr/share/nodejs/pg").exists() || !process::is_installed("apt-get") {
        return;
    }
    if let Err(error) = unpack(&NODE_POSTGRES, &into) {
        println!("cannot have node-pg ({DRIVER}): {error:#}");
    }
}

fn unpack(packages: &[&str], into: &Path) -> Result<()> {
    fs::create_dir_all(into)?;
    if is_root() {
        apt_get(&["update"]);
    }
    let mut download = Command::new("apt-get");
    download.args(["--quiet=2", "download"]).args(packages);
    process::run(download.current_dir(into))?;
    for entry in fs::read_dir(into)? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "deb") {
            process::run(Command::new("dpkg").arg("-x").args([path.as_path(), into]))?;
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// What of these is not there.
pub fn missing(needs: &[Need]) -> impl Iterator<Item = &Need> {
    needs.iter().filter(|need| !need.wanted.is_there())
}

/// Installs what is missing with apt, when we are root on a Debian system; says what stays missing.
pub fn install(needs: &[Need]) {
    let mut packages: Vec<&str> = missing(needs).map(|need| need.package).collect();
    if packages.is_empty() {
        println!("nothing to install");
        return;
    }
    packages.sort_unstable();
    packages.dedup();
    if is_root() && process::is_installed("apt-get") {
        apt_get(&["update"]);
        apt_get(
            &[
                &["install", "--yes", "--no-install-recommends"],
                packages.as_slice(),
            ]
            .concat(),
        );
    }
    for Need {
        package, what_for, ..
    } in missing(needs)
    {
        println!("missing: {package}, for {what_for}; as root: apt-get install {package}");
    }
}

/// Whether this process may change the system.
pub fn is_root() -> bool {
    process::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn apt_get(arguments: &[&str]) {
    let mut command = Command::new("apt-get");
    command
        .arg("--quiet=2")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    // What could not be installed is told by the programs that are still missing.
    if let Err(error) = process::run(&mut command) {
        println!("apt-get: {error}");
    }
}
