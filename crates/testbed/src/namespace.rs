//! A network namespace of a test's own, by `ip` (iproute2); needs root.

use std::process::Command;

use anyhow::{Context, Result, ensure};

/// A namespace with its loopback up; removed when dropped, with the devices that are in it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes one.
    pub fn make(name: &str) -> Result<Namespace> {
        ip(&["netns", "add", name])?;
        let namespace = Namespace { name: name.into() };
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    /// Its name, as `ip netns` lists it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that runs inside.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Runs `ip` inside; the words are separated by single spaces.
    pub fn ip(&self, words: &str) -> Result<String> {
        output("ip", &self.words(words))
    }

    /// Runs `tc` inside; the words are separated by single spaces.
    pub fn tc(&self, words: &str) -> Result<String> {
        output("tc", &self.words(words))
    }

    /// Joins a device here to one of another namespace, both down yet.
    pub fn join(&self, device: &str, other: &Namespace, other_device: &str) -> Result<()> {
        let other = &other.name;
        self.ip(&format!(
            "link add {device} type veth peer name {other_device} netns {other}"
        ))?;
        Ok(())
    }

    /// Gives a device an address with the length of its network (`10.0.0.1/24`), and brings it up.
    pub fn address(&self, device: &str, address: &str) -> Result<()> {
        self.ip(&format!("addr add {address} dev {device}"))?;
        self.ip(&format!("link set {device} up"))?;
        Ok(())
    }

    fn words<'a>(&'a self, words: &'a str) -> Vec<&'a str> {
        ["-n", &self.name]
            .into_iter()
            .chain(words.split(' '))
            .collect()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // A test that failed has failed already.
        let _ = ip(&["netns", "del", &self.name]);
    }
}

/// Runs `ip`, which must succeed.
pub fn ip(words: &[&str]) -> Result<()> {
    output("ip", words).map(drop)
}

fn output(program: &str, words: &[&str]) -> Result<String> {
    let output = Command::new(program).args(words).output();
    let output =
        output.with_context(|| format!("cannot run `{program}`: install the package iproute2"))?;
    let message = String::from_utf8_lossy(&output.stderr);
    let line = words.join(" ");
    ensure!(
        output.status.success(),
        "{program} {line}: {}",
        message.trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
