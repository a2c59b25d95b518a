//! `sooner serve`. In user space it works as the user `nobody`, without any capability, as an
//! operator without root would run it; where the kernel's bands take part it is root.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use super::{PORT, Setting, TLS_PORT};
use crate::hosts::{Hosts, SERVER_ADDRESS};

/// The number of the user `nobody` and of the group `nogroup`.
const NOBODY: &str = "65534";

/// Where responses are put in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Turns to write, without privilege.
    UserSpace,
    /// The kernel's priority bands.
    Bands,
    /// Turns above, bands below.
    Both,
}

impl Mechanism {
    /// Whether it limits the link itself, in the kernel.
    pub fn shapes(self) -> bool {
        self != Mechanism::UserSpace
    }

    /// Whether it changes queueing disciplines.
    pub fn needs_root(self) -> bool {
        self.shapes()
    }

    /// As `--mechanism` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::UserSpace => "user-space",
            Mechanism::Bands => "bands",
            Mechanism::Both => "both",
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mechanism {
    type Err = ();

    fn from_str(name: &str) -> Result<Mechanism, ()> {
        let all = [Mechanism::UserSpace, Mechanism::Bands, Mechanism::Both];
        all.into_iter()
            .find(|mechanism| mechanism.name() == name)
            .ok_or(())
    }
}

/// As it is shown in tables.
pub fn label(policy: &str, mechanism: Mechanism, extra: &[String]) -> String {
    let place = match mechanism {
        Mechanism::UserSpace => "user space",
        Mechanism::Bands => "bands",
        Mechanism::Both => "user space and bands",
    };
    let policy = policy.to_uppercase();
    if extra.is_empty() {
        return format!("Sooner {policy}, {place}");
    }
    format!("Sooner {policy}, {place}, {}", extra.join(" "))
}

/// The arguments behind `sooner`.
pub fn arguments(
    setting: &Setting<'_>,
    policy: &str,
    mechanism: Mechanism,
    extra: &[String],
) -> Vec<String> {
    let log = setting.folder.join("access.log");
    let words = [
        "serve",
        &setting.root.display().to_string(),
        "--listen",
        &format!("{SERVER_ADDRESS}:{PORT}"),
        "--policy",
        policy,
        "--mechanism",
        mechanism.name(),
        "--access-log",
        &log.display().to_string(),
        "--log-format",
        "combined",
        // Less than the patience of the process that ends it: a server that is killed could not
        // take its bands away.
        "--grace",
        "1",
        "--quiet",
    ];
    let mut words = words.map(String::from).to_vec();
    // An experiment may say another rate, or none.
    if !extra.iter().any(|word| word == "--uplink") {
        let rate = format!("{}bit", setting.rate_bits_per_sec);
        words.extend(["--uplink".into(), rate]);
    }
    if let Some(tls) = &setting.options.tls {
        let listen = format!("{SERVER_ADDRESS}:{TLS_PORT}");
        let files = [&tls.certificate, &tls.key].map(|file| file.display().to_string());
        let [certificate, key] = files;
        words.extend(["--listen-tls".into(), listen]);
        words.extend(["--certificate".into(), certificate, "--key".into(), key]);
    }
    words.extend(extra.iter().cloned());
    words
}

/// The command that runs it.
pub fn command(
    hosts: &Hosts,
    setting: &Setting<'_>,
    policy: &str,
    mechanism: Mechanism,
    extra: &[String],
) -> io::Result<Command> {
    let mut command = if mechanism.needs_root() {
        hosts.on_server(&setting.options.program)
    } else {
        std::os::unix::fs::chown(&setting.folder, NOBODY.parse().ok(), NOBODY.parse().ok())?;
        let program = readable_copy(&setting.options.program, &setting.options.scratch)?;
        let mut command = hosts.on_server("setpriv");
        command.args([
            &format!("--reuid={NOBODY}"),
            &format!("--regid={NOBODY}"),
            "--clear-groups",
            "--bounding-set=-all",
            "--inh-caps=-all",
        ]);
        command.arg(program);
        command
    };
    command.args(arguments(setting, policy, mechanism, extra));
    Ok(command)
}

/// A copy of the program that the user `nobody` may run too, wherever the program lies; made once.
fn readable_copy(program: &Path, scratch: &Path) -> io::Result<PathBuf> {
    let copy = scratch.join("sooner");
    let is_older = |copied: fs::Metadata| -> io::Result<bool> {
        Ok(copied.modified()? < fs::metadata(program)?.modified()?)
    };
    if fs::metadata(&copy).map_or(Ok(true), is_older)? {
        // Beside and renamed: one that still runs cannot be written to.
        let beside = scratch.join("sooner.new");
        fs::copy(program, &beside)?;
        fs::rename(&beside, &copy)?;
    }
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_says_policy_and_place() {
        assert_eq!(
            label("srpt", Mechanism::UserSpace, &[]),
            "Sooner SRPT, user space"
        );
        let extra = ["--replace-qdisc".to_string()];
        assert_eq!(
            label("fair", Mechanism::Both, &extra),
            "Sooner FAIR, user space and bands, --replace-qdisc"
        );
    }

    #[test]
    fn a_copy_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        fs::write(&program, "one").unwrap();
        let scratch = folder.path().join("scratch");
        fs::create_dir(&scratch).unwrap();
        let copy = readable_copy(&program, &scratch).unwrap();
        let made = fs::metadata(&copy).unwrap().modified().unwrap();
        readable_copy(&program, &scratch).unwrap();
        assert_eq!(fs::metadata(&copy).unwrap().modified().unwrap(), made);
        assert_eq!(fs::read_to_string(&copy).unwrap(), "one");
    }
}
