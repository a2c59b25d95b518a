//! Sockets that a service manager opened before it started this process (systemd's
//! sd_listen_fds(3)).

use std::env;
use std::io;
use std::os::fd::OwnedFd;

use thiserror::Error;

use crate::raw;

/// The first descriptor that is passed.
const FIRST: i32 = 3;
/// More would be a mistake.
const COUNT_MAX: usize = 1024;
/// What systemd calls a socket that was given no name.
const NO_NAME: &str = "unknown";

/// A socket that was passed.
#[derive(Debug)]
pub struct PassedSocket {
    /// What `FileDescriptorName=` calls it; by default the name of the socket unit.
    pub name: String,
    /// The socket.
    pub socket: OwnedFd,
}

/// Why passed sockets cannot be used.
#[derive(Debug, Error)]
pub enum ActivationError {
    /// `LISTEN_FDS` is no number, or too large.
    #[error(
        "LISTEN_FDS={text} is not a number of sockets from 0 to {COUNT_MAX}; only a service manager sets it"
    )]
    Count {
        /// What it says.
        text: String,
    },
    /// There are names for more or fewer sockets.
    #[error(
        "LISTEN_FDNAMES has {names} names for {sockets} sockets; only a service manager sets it"
    )]
    Names {
        /// How many names.
        names: usize,
        /// How many sockets.
        sockets: usize,
    },
    /// A descriptor is not open.
    #[error(
        "LISTEN_FDS promises {sockets} sockets from descriptor {FIRST} on, and they are not there: {error}"
    )]
    NotOpen {
        /// How many were promised.
        sockets: usize,
        /// What the system said.
        error: io::Error,
    },
}

/// Takes over the sockets that were passed to this process; none when there are none, or when they
/// were taken already.
pub fn take() -> Result<Vec<PassedSocket>, ActivationError> {
    let variable = |name| env::var(name).ok();
    let names = passed_names(
        variable("LISTEN_PID").as_deref(),
        variable("LISTEN_FDS").as_deref(),
        variable("LISTEN_FDNAMES").as_deref(),
        std::process::id(),
    )?;
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let sockets = raw::inherit(FIRST, names.len()).map_err(|error| ActivationError::NotOpen {
        sockets: names.len(),
        error,
    })?;
    let passed = names.into_iter().zip(sockets.unwrap_or_default());
    Ok(passed
        .map(|(name, socket)| PassedSocket { name, socket })
        .collect())
}

/// The names of the sockets that the environment promises to the process `own_pid`.
fn passed_names(
    pid: Option<&str>,
    count: Option<&str>,
    names: Option<&str>,
    own_pid: u32,
) -> Result<Vec<String>, ActivationError> {
    // Left over from a parent that was started so: not for us.
    if pid.and_then(|pid| pid.parse().ok()) != Some(own_pid) {
        return Ok(Vec::new());
    }
    let Some(text) = count else {
        return Ok(Vec::new());
    };
    let sockets = text
        .parse()
        .ok()
        .filter(|count| *count <= COUNT_MAX)
        .ok_or_else(|| ActivationError::Count {
            text: text.to_owned(),
        })?;
    let Some(names) = names.filter(|_| sockets > 0) else {
        return Ok(vec![NO_NAME.to_owned(); sockets]);
    };
    let names: Vec<_> = names.split(':').map(str::to_owned).collect();
    if names.len() != sockets {
        return Err(ActivationError::Names {
            names: names.len(),
            sockets,
        });
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_meant_for_us() {
        let none = Vec::<String>::new();
        assert_eq!(passed_names(None, None, None, 7).unwrap(), none);
        assert_eq!(passed_names(Some("8"), Some("1"), None, 7).unwrap(), none);
        assert_eq!(passed_names(Some("7"), None, None, 7).unwrap(), none);
        assert_eq!(
            passed_names(Some("7"), Some("0"), Some(""), 7).unwrap(),
            none
        );
        assert_eq!(
            passed_names(Some("7"), Some("2"), None, 7).unwrap(),
            ["unknown", "unknown"]
        );
        assert_eq!(
            passed_names(Some("7"), Some("2"), Some("http:https"), 7).unwrap(),
            ["http", "https"]
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for count in ["", "-1", "x", "1025", "99999999999999999999"] {
            let error = passed_names(Some("7"), Some(count), None, 7).unwrap_err();
            assert!(matches!(error, ActivationError::Count { .. }), "{count}");
        }
        let error = passed_names(Some("7"), Some("2"), Some("one"), 7).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("LISTEN_FDNAMES has 1 names for 2")
        );
    }
}
