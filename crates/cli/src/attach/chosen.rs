//! What is attached, and the one of it that `sooner attach top` shows.

use super::{Partly, cpu_table, postgres_table, processes, web, web_table};
use anyhow::{Result, bail};
use clap::Args;
use sooner_attach::cpu::changes::Changes;
use sooner_attach::cpu::snapshot::Snapshot as WorkersSnapshot;
use sooner_attach::postgres::leftovers::Leftovers;
use sooner_attach::postgres::snapshot::Snapshot as ServerSnapshot;
use sooner_attach::web::snapshot::Snapshot as DeviceSnapshot;
use sooner_operate::say_as;

/// Flags that choose one of several, in the words of `attach remove`.
#[derive(Args)]
pub struct Choice {
    /// Device to watch; required where several have an attachment
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["postgres", "cpu", "server_pid"])]
    dev: Option<String>,
    /// Watch what is attached to a network device
    #[arg(long, conflicts_with_all = ["postgres", "cpu", "server_pid"])]
    web: bool,
    /// Watch what is attached to a PostgreSQL server
    #[arg(long, conflicts_with = "cpu")]
    postgres: bool,
    /// Watch what is attached to the workers of a server
    #[arg(long)]
    cpu: bool,
    /// Process ID of the first process of the server to watch, as `attach status` prints it
    #[arg(long = "pid", value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    server_pid: Option<u32>,
}

impl Choice {
    /// The device that was named.
    pub fn device(&self) -> Option<&str> {
        self.dev.as_deref()
    }

    /// The one that is chosen; none where nothing is attached. An error names all that could be
    /// meant, and the flags that choose each; or those that do not answer, where it may be one.
    pub fn one(&self) -> Result<Option<Snapshot>> {
        let (all, problems) = attached(self.device())?;
        let (mut chosen, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|one| self.allows(one));
        match (chosen.len(), others.is_empty()) {
            (0, _) if !problems.is_empty() => bail!("{}", problems.join("; ")),
            (0, true) => Ok(None),
            (0, false) => bail!("{}; choose one: {}", self.absent(), flags(&others)),
            (1, _) => {
                for problem in problems {
                    say_as("sooner attach", problem);
                }
                Ok(chosen.pop())
            }
            _ => bail!(
                "several things are attached; choose one: {}",
                flags(&chosen)
            ),
        }
    }

    fn allows(&self, one: &Snapshot) -> bool {
        let kind = self.kind().is_none_or(|kind| kind == one.kind());
        let server = self.server_pid.is_none() || self.server_pid == one.server_pid();
        kind && server
    }

    fn kind(&self) -> Option<Kind> {
        match (self.web, self.postgres, self.cpu) {
            (true, _, _) => Some(Kind::Device),
            (_, true, _) => Some(Kind::Server),
            (_, _, true) => Some(Kind::Workers),
            _ => None,
        }
    }

    /// What is not there.
    fn absent(&self) -> String {
        let what = match self.kind() {
            Some(Kind::Device) => "device",
            Some(Kind::Server) => "PostgreSQL server",
            Some(Kind::Workers) => "server with workers",
            None => "server",
        };
        match self.server_pid {
            Some(pid) => format!("no {what} with first process {pid} has an attachment"),
            None => format!("no {what} has an attachment"),
        }
    }
}

fn flags(all: &[Snapshot]) -> String {
    let all: Vec<String> = all.iter().map(Snapshot::flags).collect();
    all.join(", ")
}

/// What an attachment is to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Device,
    Server,
    Workers,
}

/// Something that is attached.
pub enum Snapshot {
    /// To a device.
    Device(Box<DeviceSnapshot>),
    /// To a PostgreSQL server.
    Server(ServerSnapshot),
    /// To the workers of a server.
    Workers(Box<WorkersSnapshot>),
}

impl Snapshot {
    /// Its figures.
    pub fn json(&self) -> Result<serde_json::Value> {
        Ok(match self {
            Self::Device(device) => serde_json::to_value(device)?,
            Self::Server(server) => serde_json::to_value(server)?,
            Self::Workers(workers) => serde_json::to_value(workers)?,
        })
    }

    /// For `attach status`.
    pub fn status_line(&self) -> String {
        match self {
            Self::Device(device) => web_table::status_line(device),
            Self::Server(server) => postgres_table::status_line(server),
            Self::Workers(workers) => cpu_table::status_line(workers),
        }
    }

    /// For `attach top`.
    pub fn page(&self) -> String {
        match self {
            Self::Device(device) => web_table::page(device),
            Self::Server(server) => postgres_table::page(server),
            Self::Workers(workers) => cpu_table::page(workers),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Device(_) => Kind::Device,
            Self::Server(_) => Kind::Server,
            Self::Workers(_) => Kind::Workers,
        }
    }

    /// The first process of its server; none of a device.
    fn server_pid(&self) -> Option<u32> {
        match self {
            Self::Device(_) => None,
            Self::Server(server) => Some(server.server_pid),
            Self::Workers(workers) => Some(workers.server_pid),
        }
    }

    /// The flags of [`Choice`] that choose this one, and what it is.
    fn flags(&self) -> String {
        match self {
            Self::Device(device) => format!("--dev {}", device.device),
            Self::Server(server) => format!(
                "--postgres --pid {} (PostgreSQL {})",
                server.server_pid, server.version
            ),
            Self::Workers(workers) => {
                format!("--cpu --pid {} ({})", workers.server_pid, workers.program)
            }
        }
    }
}

/// All that answer; with a device, only its own.
pub fn attached(device: Option<&str>) -> Result<Partly<Snapshot>> {
    let (devices, mut problems) = web::attached(device)?;
    let devices = devices.into_iter().map(Box::new).map(Snapshot::Device);
    let mut found: Vec<Snapshot> = devices.collect();
    if device.is_none() {
        let (servers, failed) = processes::attached::<Leftovers, _>()?;
        found.extend(servers.into_iter().map(Snapshot::Server));
        problems.extend(failed);
        let (workers, failed) = processes::attached::<Changes, _>()?;
        found.extend(workers.into_iter().map(Box::new).map(Snapshot::Workers));
        problems.extend(failed);
    }
    Ok((found, problems))
}
