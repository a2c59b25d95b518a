//! What `sooner gate` adds to a statement, beside PgBouncer and nobody: a private PostgreSQL, the same pgbench by turns, socket files on both sides.
//!
//! The proxies have a core each to themselves and their clients the same one as the database's, so that what a proxy costs is seen and not
//! what is left of the machine.

use std::process::{Command, Stdio};

use anyhow::ensure;
use serde_json::json;

use super::Effort;
use super::check::{Checks, median, spread};
use super::link::Running;
use super::postgres::{DATABASE_PORT, Folder, GATE_PORT, OTHERS_CORE, pgbench_figure};
use super::proc::cpu_seconds;
use super::record::Record;

const PGBOUNCER_PORT: &str = "6543";
const PGBOUNCER_BY_SESSION_PORT: &str = "6544";
const GATE_BY_SESSION_PORT: &str = "6433";
/// Server connections of either proxy.
const LIMIT: &str = "20";
/// Of PgBouncer's throughput that the gate's may have at least.
const THROUGHPUT_MIN: f64 = 0.95;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    PgBouncer,
    Gate,
    PgBouncerBySession,
    GateBySession,
}

impl Way {
    const ALL: [Self; 5] = [
        Self::Direct,
        Self::PgBouncer,
        Self::Gate,
        Self::PgBouncerBySession,
        Self::GateBySession,
    ];

    /// Whether statements are sent so: the simple protocol is compared in transaction mode, and Debian's PgBouncer 1.18 cannot have prepared
    /// statements there.
    fn speaks(self, protocol: &str) -> bool {
        match self {
            Self::Direct | Self::Gate => true,
            Self::PgBouncer => protocol == "simple",
            Self::PgBouncerBySession | Self::GateBySession => protocol == "prepared",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::PgBouncer => "PgBouncer",
            Self::Gate => "sooner gate",
            Self::PgBouncerBySession => "PgBouncer, by session",
            Self::GateBySession => "sooner gate, by session",
        }
    }

    fn port(self) -> &'static str {
        match self {
            Self::Direct => DATABASE_PORT,
            Self::PgBouncer => PGBOUNCER_PORT,
            Self::Gate => GATE_PORT,
            Self::PgBouncerBySession => PGBOUNCER_BY_SESSION_PORT,
            Self::GateBySession => GATE_BY_SESSION_PORT,
        }
    }
}

/// What one pgbench has shown.
struct Measured {
    latency_us: f64,
    per_sec: f64,
    /// Of the proxy, us a transaction; 0 without one.
    cpu_us: f64,
}

/// Latency at one client, throughput at twenty, simple and prepared.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("gate", "gate")?;
    let folder = Folder::new()?;
    let _database = folder.database()?;
    folder.fill()?;
    let proxies = [
        None,
        Some(folder.pgbouncer(PGBOUNCER_PORT, "transaction", LIMIT)?),
        Some(folder.gate(GATE_PORT, &["--limit", LIMIT])?),
        Some(folder.pgbouncer(PGBOUNCER_BY_SESSION_PORT, "session", LIMIT)?),
        Some(folder.gate(
            GATE_BY_SESSION_PORT,
            &["--limit", LIMIT, "--mode", "session"],
        )?),
    ];
    let mut table = String::from(
        "| protocol | clients | way | latency, us | transactions a second | processor time of the proxy, us a transaction |\n|---|---|---|---|---|---|\n",
    );
    let mut part = Checks::default();
    for (protocol, clients) in [
        ("simple", 1),
        ("simple", 20),
        ("prepared", 1),
        ("prepared", 20),
    ] {
        let mut all = [const { Vec::new() }; Way::ALL.len()];
        for repetition in 0..effort.repetitions.max(if effort.quick { 1 } else { 5 }) {
            for (index, way) in Way::ALL.into_iter().enumerate() {
                if !way.speaks(protocol) {
                    continue;
                }
                let proxy = proxies[index].as_ref();
                let measured = folder.pgbench(way, protocol, clients, proxy, effort.quick)?;
                record.add(&json!({"protocol": protocol, "clients": clients, "way": way.name(), "repetition": repetition,
                    "latency_us": measured.latency_us, "transactions_per_sec": measured.per_sec, "proxy_cpu_us": measured.cpu_us}))?;
                all[index].push(measured);
            }
        }
        let of = |index: usize, figure: fn(&Measured) -> f64| {
            all[index].iter().map(figure).collect::<Vec<_>>()
        };
        for (index, way) in Way::ALL.into_iter().enumerate() {
            if all[index].is_empty() {
                continue;
            }
            table += &format!(
                "| {protocol} | {clients} | {} | {} | {} | {} |\n",
                way.name(),
                spread(&of(index, |one| one.latency_us), 0),
                spread(&of(index, |one| one.per_sec), 0),
                spread(&of(index, |one| one.cpu_us), 1),
            );
        }
        let latency = |way: Way| {
            let index = Way::ALL.iter().position(|own| *own == way);
            index.map_or(f64::NAN, |index| median(&of(index, |one| one.latency_us)))
        };
        judge(&mut part, protocol, clients, latency);
    }
    record.table("gate", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

/// Holds the gate against PgBouncer: the latency that each adds for one client, their throughput for several, which is the inverse of latency.
fn judge(part: &mut Checks, protocol: &str, clients: u32, latency: impl Fn(Way) -> f64) {
    let (pgbouncer, gate) = match protocol {
        "simple" => (Way::PgBouncer, Way::Gate),
        _ => (Way::PgBouncerBySession, Way::GateBySession),
    };
    let (direct, pgbouncer, gate) = (latency(Way::Direct), latency(pgbouncer), latency(gate));
    match clients {
        1 => part.at_most(
            &format!("{protocol}, 1 client: latency added / PgBouncer's"),
            (gate - direct) / (pgbouncer - direct),
            1.0,
        ),
        _ => part.at_least(
            &format!("{protocol}, {clients} clients: throughput / PgBouncer's"),
            pgbouncer / gate,
            THROUGHPUT_MIN,
        ),
    }
}

impl Folder {
    fn fill(&self) -> anyhow::Result<()> {
        let mut fill = self.pgbench_through(Way::Direct);
        ensure!(
            fill.args(["-i", "-q", "-s", "10", "postgres"])
                .stderr(Stdio::null())
                .status()?
                .success(),
            "pgbench -i failed"
        );
        Ok(())
    }

    fn pgbench_through(&self, way: Way) -> Command {
        let mut command = self.program(OTHERS_CORE, &self.programs.join("pgbench"));
        command
            .arg("-h")
            .arg(self.path())
            .args(["-p", way.port(), "-U", "postgres"]);
        command
    }

    fn pgbench(
        &self,
        way: Way,
        protocol: &str,
        clients: u32,
        proxy: Option<&Running>,
        quick: bool,
    ) -> anyhow::Result<Measured> {
        let cpu = || proxy.map_or(0.0, |proxy| cpu_seconds(proxy.id()));
        let seconds = if quick { "1" } else { "5" };
        let before = cpu();
        let mut command = self.pgbench_through(way);
        command.args([
            "-n",
            "-S",
            "-M",
            protocol,
            "-c",
            &clients.to_string(),
            "-T",
            seconds,
            "postgres",
        ]);
        let output = command.output()?;
        let spent = cpu() - before;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success(),
            "pgbench through {}: {}",
            way.name(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let transactions = pgbench_figure(&said, "actually processed: ")?;
        Ok(Measured {
            latency_us: pgbench_figure(&said, "latency average = ")? * 1000.0,
            per_sec: pgbench_figure(&said, "tps = ")?,
            cpu_us: spent * 1e6 / transactions,
        })
    }
}
