//! Drivers that people use: each runs a script of what it can do, straight and through a gate, and
//! may not notice the difference.
//!
//! A script prints one line a step. Its connections take turns, and beside it a pgbench changes
//! settings and prepares statements of its own, so that with two server connections no client stays
//! with one.

mod place;
mod psql_script;
mod tokio_postgres_script;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{Database, Gate, said, transactions};
use place::{Bridge, ScriptTarget};

/// Where Debian's modules are found, whatever other `python3` there is.
const PYTHON: &str = "/usr/bin/python3";
/// Debian's; and what `cargo xtask test` has unpacked where Debian's cannot be installed, because
/// Node is not Debian's.
const NODE_MODULES: [&str; 2] = [
    "/usr/share/nodejs",
    concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../target/debian/usr/share/nodejs"
    ),
];
const JDBC: &str = "/usr/share/java/postgresql.jar";
const GO_SOURCES: &str = "/usr/share/gocode";

#[test]
fn psql() {
    compare("psql", 85, psql_script::run);
}

#[test]
fn psycopg() {
    let import = ["-c", "import psycopg"];
    if is_missing(
        "psycopg",
        Command::new(PYTHON).args(import),
        "python3-psycopg",
    ) {
        return;
    }
    compare("psycopg", 42, |place| {
        place.printed(place.command(PYTHON).arg(script("psycopg3")))
    });
}

#[test]
fn asyncpg() {
    let import = ["-c", "import asyncpg"];
    if is_missing(
        "asyncpg",
        Command::new(PYTHON).args(import),
        "python3-asyncpg",
    ) {
        return;
    }
    compare("asyncpg", 26, |place| {
        place.printed(place.command(PYTHON).arg(script("asyncpg_script.py")))
    });
}

#[test]
fn node_postgres() {
    let modules = NODE_MODULES.join(":");
    let mut require = Command::new("node");
    require.args(["-e", "require('pg'); require('pg-query-stream')"]);
    if is_missing(
        "node_postgres",
        require.env("NODE_PATH", &modules),
        "node-pg",
    ) {
        return;
    }
    compare("node_postgres", 23, |place| {
        let mut node = place.command("node");
        node.arg(script("node_postgres.js"));
        place.printed(node.env("NODE_PATH", &modules))
    });
}

#[test]
fn pgjdbc() {
    let mut javac = Command::new("javac");
    if is_missing("pgjdbc", javac.arg("-version"), "default-jdk-headless")
        || is_absent("pgjdbc", JDBC, "libpostgresql-jdbc-java")
    {
        return;
    }
    compare("pgjdbc", 22, |place| {
        // It knows no socket files.
        let bridge = Bridge::to(place);
        let mut java = place.command("java");
        java.args(["-cp", JDBC]).arg(script("Jdbc.java"));
        java.env("PGHOST", "127.0.0.1").env("PGPORT", bridge.port());
        place.printed(&mut java)
    });
}

#[test]
fn lib_pq() {
    let source = Path::new(GO_SOURCES).join("src/github.com/lib/pq");
    if is_missing("lib_pq", Command::new("go").arg("version"), "golang-go")
        || is_absent("lib_pq", &source, "golang-github-lib-pq-dev")
    {
        return;
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lib_pq");
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&program).arg(".");
    go.env("GO111MODULE", "off").env("GOPATH", GO_SOURCES);
    go.env("GOFLAGS", "").env("GOTOOLCHAIN", "local");
    let built = go.current_dir(script("libpq")).output().unwrap();
    assert!(built.status.success(), "{}", said(&built));
    compare("lib_pq", 24, |place| {
        place.printed(&mut place.command(program.to_str().unwrap()))
    });
}

#[test]
fn tokio_postgres() {
    compare("tokio_postgres", 25, tokio_postgres_script::run);
}

/// Runs a script in both ways, and compares what it prints.
fn compare(test: &str, steps: usize, run: impl Fn(&ScriptTarget) -> String) {
    let Some(database) = Database::start(test) else {
        return;
    };
    let straight = run(&ScriptTarget::straight(&database));
    database.ask(
        "SET client_min_messages TO error; DROP SCHEMA public CASCADE; DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA public",
    );
    let gate = Gate::before(&database, &transactions(2));
    let others = Others::begin(&database, &gate);
    let through = run(&ScriptTarget::through(&gate, &database));
    drop(others);
    for (straight, through) in straight.lines().zip(through.lines()) {
        assert_eq!(through, straight, "the gate is on the left");
    }
    for all in [straight, through] {
        assert_eq!(all.lines().count(), steps, "so many steps: {all}");
    }
}

/// Other clients of the gate, until dropped.
struct Others(Child);

impl Others {
    fn begin(database: &Database, gate: &Gate) -> Others {
        let mut pgbench = gate.program(database, "pgbench");
        pgbench.args([
            "-n", "-M", "prepared", "-c", "2", "-j", "2", "-T", "50", "-f",
        ]);
        pgbench.arg(script("others.sql")).arg("postgres");
        pgbench.stdout(Stdio::null()).stderr(Stdio::null());
        Others(pgbench.spawn().unwrap())
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        // It is below `timeout`, which passes the signal on.
        let id = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/drivers")
        .join(name)
}

/// Whether a driver is not there, as a command tells; then says so in the way `cargo xtask test`
/// counts.
fn is_missing(test: &str, command: &mut Command, package: &str) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.stderr(Stdio::null()).status();
    let is_missing = !status.is_ok_and(|status| status.success());
    if is_missing {
        eprintln!("skipped: {test}: no {package}; as root: apt-get install {package}");
    }
    is_missing
}

/// The same of a file.
fn is_absent(test: &str, path: impl AsRef<Path>, package: &str) -> bool {
    let mut command = Command::new("test");
    is_missing(test, command.arg("-e").arg(path.as_ref()), package)
}
