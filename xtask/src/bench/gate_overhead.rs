//! What classes, targets and the controller cost beside a fixed limit alone: processor time of the gate for a transaction, and throughput.
//!
//! The smallest transaction there is, one lookup by key, 40 users for 20 places, so that there is a queue to order; a gate for each way, by turns.

use std::fs::{self, File};
use std::process::Stdio;

use anyhow::ensure;
use serde_json::json;

use super::Effort;
use super::check::{Checks, spread};
use super::link::Running;
use super::postgres::{DATABASE_PORT, Folder, OTHERS_CORE, pgbench_figure};
use super::proc::cpu_seconds;
use super::record::Record;
use super::slices::ratio;
use super::stolen::undisturbed;

const CLIENTS: &str = "40";
const SCRIPT: &str = "\\set aid random(1, 1000000)\n\
    SELECT abalance FROM pgbench_accounts WHERE aid = :aid /*route='balance',kind='lookup'*/;\n";
const FIXED: &str = "a fixed limit";
const CONTROLLER: &str = "the controller";
/// What each way has in its configuration besides the limit; the first is what the others are held against.
const WAYS: [(&str, &str); 6] = [
    (FIXED, ""),
    (
        "a class by application_name",
        "[[class]]\nname = \"one\"\npriority = 1\napplication_name = [\"pgbench\"]\n",
    ),
    (
        "a class by comment",
        "[[class]]\nname = \"one\"\npriority = 1\ncomment = { route = [\"balance\"] }\n",
    ),
    (
        "a class by statement",
        "[[class]]\nname = \"one\"\npriority = 1\nstatement = [\"select abalance from pgbench_accounts*\"]\n",
    ),
    (
        "a class with targets",
        "[[class]]\nname = \"one\"\npriority = 1\napplication_name = [\"pgbench\"]\ntarget = { mean = \"5ms\", p95 = \"20ms\" }\n",
    ),
    (CONTROLLER, ""),
];
/// Of the processor time with a fixed limit alone.
const CPU_MAX: f64 = 1.15;
/// Of the throughput.
const RATE_MIN: f64 = 0.95;

/// Of a turn in which processor time was stolen.
const TRIES_MAX: u32 = 5;

/// A gate with its name and the port of its socket file.
type Named = (Running, &'static str, String);

/// Each way by turns, simple and prepared.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("gate-overhead", "gate-overhead")?;
    let folder = Folder::new()?;
    let _database = folder.database_with(&["-c", "max_connections=250"])?;
    fs::write(folder.path().join("lookup.sql"), SCRIPT)?;
    pgbench(
        &folder,
        DATABASE_PORT,
        &["-i", "-q", "-s", "10", "postgres"],
    )?;
    let gates = gates(&folder)?;
    let mut text = String::from(
        "| protocol | way | processor time of the gate, us a transaction | of a fixed limit's | transactions a second | of a fixed limit's |\n|---|---|---|---|---|---|\n",
    );
    let mut own = Checks::default();
    for protocol in ["simple", "prepared"] {
        let turns = match effort.quick {
            true => 1,
            false => 9 * effort.repetitions,
        };
        let mut all = vec![(Vec::new(), Vec::new()); gates.len()];
        for turn in 0..turns {
            for ((gate, name, port), (cpu, rates)) in gates.iter().zip(&mut all) {
                let (cpu_us, rate) =
                    undisturbed(TRIES_MAX, || measure(&folder, gate, port, protocol))?;
                record.add(&json!({"protocol": protocol, "way": name, "turn": turn, "gate_cpu_us": cpu_us, "transactions_per_sec": rate}))?;
                cpu.push(cpu_us);
                rates.push(rate);
            }
        }
        text += &rows(protocol, &all, &mut own);
    }
    record.table("gate-overhead", &format!("{text}\n{}", own.table()))?;
    checks.extend(own);
    Ok(())
}

/// One for each way, all at once: who is not asked does nothing.
fn gates(folder: &Folder) -> anyhow::Result<Vec<Named>> {
    let mut gates = Vec::new();
    for (number, (name, classes)) in (7000_u32..).zip(WAYS) {
        let limit = match name {
            CONTROLLER => "\"auto\"\ntransactions_max = 20",
            _ => "20",
        };
        let port = number.to_string();
        let config = folder.path().join(format!("gate-{port}.toml"));
        let text = format!("[limits]\ntransactions = {limit}\n{classes}");
        fs::write(&config, text)?;
        let log = File::create(folder.path().join(format!("gate-{port}.log")))?;
        let config = config.display().to_string();
        let gate = folder.gate_with(&port, &["--config", &config], log)?;
        gates.push((gate, name, port));
    }
    Ok(gates)
}

/// The figures of each way, held against those of the first.
fn rows(protocol: &str, all: &[(Vec<f64>, Vec<f64>)], checks: &mut Checks) -> String {
    let mut text = String::new();
    for ((name, _), (cpu, rates)) in WAYS.into_iter().zip(all) {
        let (of_cpu, cpu_half) = ratio(cpu, &all[0].0);
        let (of_rate, rate_half) = ratio(rates, &all[0].1);
        text += &format!(
            "| {protocol} | {name} | {} | {of_cpu:.3} (± {cpu_half:.3}) | {} | {of_rate:.3} (± {rate_half:.3}) |\n",
            spread(cpu, 1),
            spread(rates, 0)
        );
        if name == FIXED {
            continue;
        }
        let what = |what: &str| format!("{protocol}, {name}: {what} / with a fixed limit");
        checks.at_most(&what("processor time of the gate"), of_cpu, CPU_MAX);
        // The controller may give up to a twentieth; that is another experiment.
        if name != CONTROLLER {
            checks.at_least(&what("throughput"), of_rate, RATE_MIN);
        }
    }
    text
}

/// Processor time of the gate, us a transaction, and transactions a second.
fn measure(
    folder: &Folder,
    gate: &Running,
    port: &str,
    protocol: &str,
) -> anyhow::Result<(f64, f64)> {
    let before = cpu_seconds(gate.id());
    let script = folder.path().join("lookup.sql").display().to_string();
    let said = pgbench(
        folder,
        port,
        &[
            "-n", "-f", &script, "-M", protocol, "-c", CLIENTS, "-T", "1", "postgres",
        ],
    )?;
    let spent = cpu_seconds(gate.id()) - before;
    let transactions = pgbench_figure(&said, "actually processed: ")?;
    let rate = pgbench_figure(&said, "tps = ")?;
    Ok((spent * 1e6 / transactions, rate))
}

fn pgbench(folder: &Folder, port: &str, flags: &[&str]) -> anyhow::Result<String> {
    let mut command = folder.program(OTHERS_CORE, &folder.programs.join("pgbench"));
    command.arg("-h").arg(folder.path());
    command.args(["-p", port, "-U", "postgres"]).args(flags);
    let output = command.stderr(Stdio::piped()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "pgbench through {port}: {}",
        said.trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
