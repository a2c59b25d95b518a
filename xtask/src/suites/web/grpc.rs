//! A client of gRPC (grpcio) with its server behind a route, which is spoken to over HTTP/2.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::super::run::Run;
use super::super::servers::die_with_us;
use super::super::{Suite, fetch};
use super::backend::Backend;
use super::needs;
use super::pair::{Kind, Route, Setup, Way, free_port};
use super::visit::{Counted, compare};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "grpc",
    about: "grpcio's client and server; needs python3 and Python's index",
    prepare,
    run,
};

const PATIENCE_S: u32 = 60;
const SERVER: &str = include_str!("scripts/grpc_server.py");
const CLIENT: &str = include_str!("scripts/grpc_client.py");
const SERVICE: &str = "/suite.Echo";
const CASES: [&str; 14] = [
    "echo",
    "sizes",
    "compressed",
    "refused",
    "unknown method",
    "no such service",
    "deadline",
    "server stream",
    "stream that breaks",
    "client stream",
    "chat",
    "cancelled",
    "parallel",
    "backend dies",
];

fn prepare(folder: &Path) -> Result<()> {
    needs::debian(&[])?;
    fetch::python(folder, &["grpcio==1.85.3"])
}

fn run(run: &mut Run) -> Result<()> {
    run.version("grpcio", &needs::python_version(&run.folder, "grpcio")?);
    let python = needs::in_environment(&run.folder, "python");
    let scratch = tempfile::tempdir()?;
    let root = scratch.path().join("root");
    std::fs::create_dir(&root)?;
    let port = free_port()?;
    let routes = [Route {
        path: SERVICE,
        port,
        kind: Kind::Grpc,
    }];
    let setup = Setup {
        root: &root,
        routes: &routes,
    };
    for case in CASES {
        compare(run, case, &Way::ALL, &setup, |visit| {
            let mut serve = die_with_us();
            serve.arg(&python);
            serve.args(["-c", SERVER, &port.to_string()]);
            let _backend = Backend::start(&mut serve, scratch.path())?;
            let mut client = Command::new(&python);
            client.args(["-c", CLIENT]);
            match visit.way {
                Way::Clear => client
                    .arg(format!("127.0.0.1:{}", visit.server.clear2))
                    .arg(case),
                Way::Tls => {
                    let address = format!("127.0.0.1:{}", visit.server.tls);
                    client.args([&address, case]).arg(&visit.authority)
                }
            };
            let output = visit.run("client", PATIENCE_S, &client)?;
            visit.text(&output.stdout);
            Ok(Counted::Nothing)
        })?;
    }
    Ok(())
}
