//! testssl.sh's findings about TLS: none may be graver than nginx's with the same certificate and
//! versions.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::super::case::{Case, Tried};
use super::super::run::Run;
use super::super::{Suite, fetch};
use super::needs::{self, program};
use super::pair::{Server, Setup, Way, Which};
use super::visit::{is_chosen, limited};
use sooner_testbed::certificate::Certificate;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "testssl",
    about: "testssl.sh's findings beside nginx's; needs testssl.sh",
    prepare,
    run,
};

const PATIENCE_S: u32 = 900;
/// From harmless to grave. What is not among them (`WARN`) says that a check could not be made.
const SEVERITIES: [&str; 6] = ["OK", "INFO", "LOW", "MEDIUM", "HIGH", "CRITICAL"];
const ABSENT: &str = "absent";

/// What testssl.sh says of one thing.
#[derive(Deserialize)]
struct Finding {
    id: String,
    severity: String,
    finding: String,
}

fn prepare(_: &Path) -> Result<()> {
    needs::debian(&[program("testssl", "testssl.sh")])
}

fn run(run: &mut Run) -> Result<()> {
    run.version(
        "testssl.sh",
        &fetch::installed_version("testssl.sh").unwrap_or_default(),
    );
    run.version(
        "nginx",
        &fetch::installed_version("nginx").unwrap_or_default(),
    );
    let scratch = tempfile::tempdir()?;
    let root = scratch.path().join("root");
    fs::create_dir(&root)?;
    fs::write(root.join("index.html"), "<!DOCTYPE html><title>x</title>\n")?;
    let setup = Setup {
        root: &root,
        routes: &[],
    };
    let authority =
        Certificate::of_authority(&run.folder, &["localhost", "127.0.0.1"])?.certificate;
    let findings = |which| {
        let folder = scratch.path().join(Which::name(which));
        let server = Server::start(run, which, &setup, &folder)?;
        findings(&server, &authority, &folder)
    };
    let (nginx, sooner) = (findings(Which::Nginx)?, findings(Which::Sooner)?);
    for (name, found) in &sooner {
        if !is_chosen(run, name) {
            continue;
        }
        let reference = nginx.get(name);
        let severity = reference.map_or(ABSENT, |finding| &finding.severity);
        let tried = Tried {
            way: Way::Tls.name().to_owned(),
            outcome: found.severity.clone(),
            repeated: false,
            differences: if gravity(&found.severity) > gravity(severity) {
                vec![format!(
                    "{severity} -> {}: {} (nginx: {})",
                    found.severity,
                    found.finding,
                    reference.map_or("", |finding| &finding.finding)
                )]
            } else {
                Vec::new()
            },
        };
        run.case(&Case {
            name: name.clone(),
            reference: severity.to_owned(),
            tried: vec![tried],
        })?;
    }
    Ok(())
}

/// What cannot be checked counts as little as what is right, and so does what the other does not
/// have.
fn gravity(severity: &str) -> usize {
    let place = SEVERITIES.iter().position(|known| *known == severity);
    place.unwrap_or_default().max(1)
}

fn findings(server: &Server, authority: &Path, folder: &Path) -> Result<BTreeMap<String, Finding>> {
    let report = folder.join("report.json");
    let mut testssl = Command::new("testssl");
    testssl
        .args([
            "--quiet",
            "--color",
            "0",
            "--warnings",
            "off",
            "--nodns",
            "none",
        ])
        .args([
            "--connect-timeout",
            "10",
            "--openssl-timeout",
            "10",
            "--ip",
            "127.0.0.1",
        ])
        .arg("--add-ca")
        .arg(authority)
        .arg("--jsonfile")
        .arg(&report)
        .arg(format!("https://localhost:{}/", server.tls));
    let output = limited(PATIENCE_S, &testssl, folder)?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    fs::write(folder.join("printed"), &said)?;
    let text = fs::read_to_string(&report).with_context(|| format!("testssl.sh: {said}"))?;
    let findings: Vec<Finding> =
        serde_json::from_str(&text).with_context(|| format!("testssl.sh: {text}"))?;
    let named = findings
        .into_iter()
        .map(|finding| (finding.id.clone(), finding));
    Ok(named.collect())
}
