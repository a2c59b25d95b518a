//! Why hosts and links could not be set up.

use std::io;

use thiserror::Error;

/// Why hosts and links could not be set up; nothing of them is left when it is returned.
#[derive(Debug, Error)]
pub enum HostsError {
    /// The process may not make network namespaces.
    #[error(
        "hosts and links need root with CAP_NET_ADMIN and CAP_SYS_ADMIN, for network namespaces: run it with sudo; `sooner demo` needs no privilege"
    )]
    NotPermitted,
    /// A program that sets up links is not installed.
    #[error("cannot run `{program}`: install the package {package}")]
    MissingProgram {
        /// Its name.
        program: String,
        /// Where Debian and its relatives have it.
        package: &'static str,
    },
    /// The requested hosts and links are not possible.
    #[error("hosts and links: {0}")]
    Spec(String),
    /// A program said no.
    #[error("{command}: {message}")]
    Command {
        /// The command with its arguments.
        command: String,
        /// What it wrote to standard error.
        message: String,
    },
    /// The kernel lacks what limits a link.
    #[error(
        "this kernel has no queueing discipline that limits a rate ({kinds}): load one of the modules sch_htb and sch_tbf, or let the server shape (`sooner` in user space)"
    )]
    NoShaper {
        /// Those that were tried.
        kinds: String,
    },
    /// The kernel lacks netem.
    #[error(
        "netem: this kernel does not have it: load the module sch_netem, say delay and loss by `clients`, which an emulator makes, or measure in a guest that has it (sooner lab run NAME --guest)"
    )]
    NoNetem,
    /// The kernel does not have the congestion control.
    #[error(
        "congestion control `{name}` is not there ({available} are): load the module tcp_{name}, or name another"
    )]
    CongestionControl {
        /// The requested one.
        name: String,
        /// Those that could have been.
        available: String,
    },
    /// The first retransmission timeout cannot be set here.
    #[error(
        "initial_rto_ms = {asked_ms}: this kernel cannot be told ({source}); it takes a BPF program of type sock_ops on a cgroup of version 2, with CAP_BPF; without it the first timeout is 1 s"
    )]
    InitialRto {
        /// The requested timeout.
        asked_ms: u64,
        /// What failed.
        source: io::Error,
    },
    /// The emulator did not come up or ended.
    #[error("the network emulator {0}")]
    Emulator(String),
    /// A file, process or namespace could not be used.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: String,
        /// What the system answered.
        source: io::Error,
    },
}

impl HostsError {
    /// The system's answer while doing `what`.
    pub(crate) fn system(what: impl Into<String>, source: io::Error) -> HostsError {
        HostsError::System {
            what: what.into(),
            source,
        }
    }
}
