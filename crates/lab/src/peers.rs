//! The web servers that are compared, each well configured, on the server's host of a set of
//! [`Hosts`].
//!
//! All listen on port 8080 of the server's address, and with a certificate for TLS on 8443; they
//! log every request, keep nothing between runs, and end with everything they started when their
//! [`Running`] is dropped. FAIR is what the peers do; ours is run with any of its policies and
//! mechanisms.

mod apache;
mod attached;
mod caddy;
mod name;
mod nginx;
mod node;
mod queued;
mod running;
mod sooner;

use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

use crate::hosts::{Hosts, HostsError, Shaper};
pub use name::PeerNameError;
use queued::Queue;
pub use running::Running;
pub use sooner::Mechanism;
use sooner_testbed::certificate::Certificate;
use sooner_testbed::program;

/// A stand-in of a server that batches, in Python.
pub const BATCHING: &str = include_str!("peers/batching.py");
/// Where all of them listen in clear text.
pub const PORT: u16 = 8080;
/// Where they listen for TLS.
pub const TLS_PORT: u16 = 8443;

/// A web server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// nginx with one worker, sendfile, tcp_nopush and open_file_cache.
    Nginx {
        /// Requests at a time; more are refused with status 503. None: all are let in.
        limit_conn: Option<NonZeroU32>,
    },
    /// nginx before another nginx that has the files, as before an application server.
    NginxProxy {
        /// Whether that one sends a response no faster than 500 KB a second.
        is_slow: bool,
    },
    /// Apache that gives its threads back while a response waits to be written.
    ApacheEvent,
    /// Apache with one process a connection, as in 2003.
    ApachePrefork,
    /// Caddy with its file server.
    Caddy,
    /// Node with a file server of its standard library.
    Node {
        /// Whether its responses do not say how long they are (chunked).
        is_chunked: bool,
    },
    /// A server that knows nothing of `sooner attach web` beside it.
    Attached {
        /// The server.
        server: Box<Peer>,
        /// More flags of `sooner attach web`.
        extra: Vec<String>,
    },
    /// A server behind what an operator put before the device.
    Queued {
        /// The server.
        server: Box<Peer>,
        /// What.
        queue: Queue,
    },
    /// `sooner serve`.
    Sooner {
        /// Who goes first: a name that `--policy` takes.
        policy: String,
        /// Where responses are put in order.
        mechanism: Mechanism,
        /// More flags of `sooner serve`.
        extra: Vec<String>,
    },
}

/// What an experiment asks of every server.
#[derive(Clone, Debug)]
pub struct PeerOptions {
    /// The `sooner` program.
    pub program: PathBuf,
    /// A folder that all users may enter, for configurations and logs; the caller that made it
    /// removes it.
    pub scratch: PathBuf,
    /// Connections that may wait to be accepted.
    pub backlog: u32,
    /// Whether a connection may carry more than one request.
    pub keep_alive: bool,
    /// Requests that Apache works on at once (`MaxRequestWorkers`); none: 1024 threads or 512
    /// processes.
    pub workers: Option<u32>,
    /// What TLS is spoken with on [`TLS_PORT`]; none: it is not spoken.
    pub tls: Option<Certificate>,
    /// Whether HTTP/2 is offered there too, by the servers that have it here: nginx and ours, which
    /// always does.
    pub http2: bool,
}

impl PeerOptions {
    /// What an operator of today would have: a backlog of 4096, connections that stay open.
    pub fn new(program: &Path, scratch: &Path) -> PeerOptions {
        PeerOptions {
            program: program.into(),
            scratch: scratch.into(),
            backlog: 4096,
            keep_alive: true,
            workers: None,
            tls: None,
            http2: false,
        }
    }
}

/// Why a server did not start.
#[derive(Debug, Error)]
pub enum PeerError {
    /// It is not installed.
    #[error("{label} is not installed: install the package {package}, or leave it out")]
    Missing {
        /// The server.
        label: String,
        /// Where Debian and its relatives have it.
        package: &'static str,
    },
    /// Its mechanism and the hosts do not go together.
    #[error("{label} {needs}")]
    Shaper {
        /// The server.
        label: String,
        /// What it needs.
        needs: &'static str,
    },
    /// It ended, or does not answer.
    #[error("{label} {what}")]
    Start {
        /// The server.
        label: String,
        /// What happened, with what it wrote.
        what: String,
    },
    /// The hosts refused something.
    #[error(transparent)]
    Hosts(#[from] HostsError),
    /// A file or process could not be made.
    #[error("{label}: {source}")]
    System {
        /// The server.
        label: String,
        /// What the system answered.
        source: io::Error,
    },
}

/// What a configuration is made of.
struct Setting<'a> {
    root: &'a Path,
    rate_bits_per_sec: u64,
    options: &'a PeerOptions,
    /// Where its own files go.
    folder: PathBuf,
}

impl Peer {
    /// As it is shown in tables.
    pub fn label(&self) -> String {
        match self {
            Peer::Nginx { limit_conn: None } => "nginx".into(),
            Peer::Nginx {
                limit_conn: Some(count),
            } => format!("nginx, at most {count} at a time"),
            Peer::NginxProxy { is_slow } => {
                format!("nginx, {} backend", nginx::speed(*is_slow))
            }
            Peer::ApacheEvent => "Apache event".into(),
            Peer::ApachePrefork => "Apache prefork".into(),
            Peer::Caddy => "Caddy".into(),
            Peer::Node { is_chunked: false } => "Node".into(),
            Peer::Node { is_chunked: true } => "Node, chunked".into(),
            Peer::Attached { server, extra } => {
                let name = format!("{} + attach", server.label());
                [&[name][..], extra].concat().join(" ")
            }
            Peer::Queued { server, queue } => format!("{} + {queue}", server.label()),
            Peer::Sooner {
                policy,
                mechanism,
                extra,
            } => sooner::label(policy, *mechanism, extra),
        }
    }

    /// The package that has it, when it is not there.
    pub fn missing(&self) -> Option<&'static str> {
        match self {
            Peer::Nginx { .. } | Peer::NginxProxy { .. } => {
                program::missing(&nginx::PROGRAMS).then_some("nginx")
            }
            Peer::ApacheEvent | Peer::ApachePrefork => {
                apache::is_missing().then_some("apache2-bin")
            }
            Peer::Caddy => program::missing(&caddy::PROGRAMS).then_some("caddy"),
            Peer::Node { .. } => program::missing(&node::PROGRAMS).then_some("nodejs"),
            Peer::Queued {
                queue: Queue::Nftables,
                ..
            } if program::missing(&["nft"]) => Some("nftables"),
            Peer::Attached { server, .. } | Peer::Queued { server, .. } => server.missing(),
            Peer::Sooner { mechanism, .. } => {
                (!mechanism.needs_root() && program::missing(&["setpriv"])).then_some("util-linux")
            }
        }
    }

    /// What this kernel lacks for it, in words.
    pub fn lacks(&self) -> Option<String> {
        match self {
            Peer::Queued { queue, .. } => queue.lacks(),
            _ => None,
        }
    }

    /// Who has to limit the link for this server.
    pub fn shaper(&self) -> Shaper {
        match self {
            Peer::Attached { .. } | Peer::Queued { .. } => Shaper::Server,
            Peer::Sooner { mechanism, .. } if mechanism.shapes() => Shaper::Server,
            _ => Shaper::Host,
        }
    }

    /// The configuration, or the command line, as a report shows it.
    pub fn config_text(
        &self,
        root: &Path,
        rate_bits_per_sec: u64,
        options: &PeerOptions,
    ) -> String {
        self.text(&self.setting(root, rate_bits_per_sec, options))
    }

    fn text(&self, setting: &Setting<'_>) -> String {
        match self {
            Peer::Nginx { limit_conn } => nginx::config(setting, *limit_conn),
            Peer::NginxProxy { is_slow } => nginx::proxy_config(setting, *is_slow),
            Peer::ApacheEvent => apache::config(setting, apache::Mpm::Event),
            Peer::ApachePrefork => apache::config(setting, apache::Mpm::Prefork),
            Peer::Caddy => caddy::config(setting),
            Peer::Node { is_chunked } => node::config(setting, *is_chunked),
            Peer::Attached { server, extra } => {
                let words = attached::arguments(setting.options, setting.rate_bits_per_sec, extra);
                format!("{}\nsooner {}\n", server.text(setting), words.join(" "))
            }
            Peer::Queued { server, queue } => {
                let commands = queue.commands(setting.rate_bits_per_sec).join("\n");
                format!("{}\n{commands}\n", server.text(setting))
            }
            Peer::Sooner {
                policy,
                mechanism,
                extra,
            } => {
                let words = sooner::arguments(setting, policy, *mechanism, extra);
                format!("sooner {}\n", words.join(" "))
            }
        }
    }

    /// Starts it with the files below `root` and waits until it answers. All users must be able to
    /// read them: most servers do not work as root. The rate is told to ours alone.
    pub fn start(
        &self,
        hosts: &Hosts,
        root: &Path,
        rate_bits_per_sec: u64,
        options: &PeerOptions,
    ) -> Result<Running, PeerError> {
        self.check(hosts)?;
        self.start_unchecked(hosts, root, rate_bits_per_sec, options)
    }

    /// The same on hosts with a link that is limited by what is put before their device afterwards.
    pub fn start_unshaped(
        &self,
        hosts: &Hosts,
        root: &Path,
        options: &PeerOptions,
    ) -> Result<Running, PeerError> {
        self.start_unchecked(hosts, root, hosts.spec().rate_bits_per_sec, options)
    }

    fn start_unchecked(
        &self,
        hosts: &Hosts,
        root: &Path,
        rate_bits_per_sec: u64,
        options: &PeerOptions,
    ) -> Result<Running, PeerError> {
        // The lesser of this and what a server asks for counts; Caddy asks for no number of its
        // own.
        let limit = hosts.spec().somaxconn.unwrap_or(options.backlog);
        hosts.limit_accept_queues(limit.min(options.backlog))?;
        let setting = self.setting(root, rate_bits_per_sec, options);
        let failed = |source| PeerError::System {
            label: self.label(),
            source,
        };
        fs::create_dir_all(&setting.folder).map_err(failed)?;
        if let Peer::Queued { queue, .. } = self {
            queue.put_up(hosts, rate_bits_per_sec).map_err(failed)?;
        }
        let mut command = self.command(hosts, &setting).map_err(failed)?;
        let running = Running::start(&mut command, self.label(), hosts, root)?;
        match self {
            Peer::Attached { extra, .. } => {
                let command = attached::command(hosts, options, rate_bits_per_sec, extra);
                running.with_beside(command)
            }
            _ => Ok(running),
        }
    }

    fn check(&self, hosts: &Hosts) -> Result<(), PeerError> {
        let label = self.label();
        if let Some(package) = self.missing() {
            return Err(PeerError::Missing { label, package });
        }
        let needs = match (self.shaper(), hosts.spec().shaper) {
            (Shaper::Server, Shaper::Host) => {
                "limits the link itself: the hosts must leave it to the server"
            }
            (Shaper::Host, Shaper::Server) => "does not limit the link: the hosts must",
            _ => return Ok(()),
        };
        Err(PeerError::Shaper { label, needs })
    }

    fn command(&self, hosts: &Hosts, setting: &Setting<'_>) -> io::Result<Command> {
        match self {
            Peer::Nginx { .. } | Peer::NginxProxy { .. } => {
                nginx::command(hosts, setting, &self.text(setting))
            }
            Peer::ApacheEvent => apache::command(hosts, setting, apache::Mpm::Event),
            Peer::ApachePrefork => apache::command(hosts, setting, apache::Mpm::Prefork),
            Peer::Caddy => caddy::command(hosts, setting),
            Peer::Node { is_chunked } => node::command(hosts, setting, *is_chunked),
            Peer::Attached { server, .. } | Peer::Queued { server, .. } => {
                server.command(hosts, setting)
            }
            Peer::Sooner {
                policy,
                mechanism,
                extra,
            } => sooner::command(hosts, setting, policy, *mechanism, extra),
        }
    }

    fn setting<'a>(
        &self,
        root: &'a Path,
        rate_bits_per_sec: u64,
        options: &'a PeerOptions,
    ) -> Setting<'a> {
        let name: String = self
            .to_string()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        Setting {
            root,
            rate_bits_per_sec,
            options,
            folder: options.scratch.join(name),
        }
    }
}
