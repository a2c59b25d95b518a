//! `ip` and `tc` (iproute2), one call each.

use std::io;
use std::process::{Command, Stdio};

use super::error::HostsError;

/// Runs `ip` with these words.
pub fn ip(words: &[&str]) -> Result<(), HostsError> {
    run("ip", words)
}

/// Runs `ip` in a namespace.
pub fn ip_in(namespace: &str, words: &[&str]) -> Result<(), HostsError> {
    ip(&[&["-n", namespace], words].concat())
}

/// Runs `tc` in a namespace; the words are separated by single spaces.
pub fn tc_in(namespace: &str, words: &str) -> Result<(), HostsError> {
    let words: Vec<&str> = words.split(' ').collect();
    run("tc", &[&["-n", namespace], &words[..]].concat())
}

/// Whether `tc` failed because the kernel does not have the kind of qdisc.
pub fn is_unknown_kind(error: &HostsError) -> bool {
    match error {
        HostsError::Command { message, .. } => {
            message.contains("kind is unknown") || message.contains("Unknown qdisc")
        }
        _ => false,
    }
}

fn run(program: &str, words: &[&str]) -> Result<(), HostsError> {
    let output = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| cannot_run(program, error))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(HostsError::Command {
        command: format!("{program} {}", words.join(" ")),
        message: text.trim().replace('\n', "; "),
    })
}

/// The error of a program that did not start.
fn cannot_run(program: &str, error: io::Error) -> HostsError {
    match error.kind() {
        io::ErrorKind::NotFound => HostsError::MissingProgram {
            program: program.into(),
            package: "iproute2",
        },
        _ => HostsError::system(format!("cannot run {program}"), error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_its_package() {
        let error = run("sooner-no-such-ip", &["link"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot run `sooner-no-such-ip`: install the package iproute2"
        );
    }

    #[test]
    fn a_refusal_is_passed_on_with_the_command() {
        let error = run("false", &["a", "b"]).unwrap_err().to_string();
        assert!(error.starts_with("false a b: "), "{error}");
    }

    #[test]
    fn a_kind_the_kernel_lacks_is_told_from_other_refusals() {
        let refusal = |message: &str| HostsError::Command {
            command: "tc".into(),
            message: message.into(),
        };
        assert!(is_unknown_kind(&refusal(
            "Error: Specified qdisc kind is unknown."
        )));
        assert!(!is_unknown_kind(&refusal(
            "Error: Exclusivity flag on, cannot modify."
        )));
    }
}
