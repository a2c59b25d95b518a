//! What the BPF programs of `sooner attach` cost a packet, with up to a million connections.

use super::Effort;
use super::check::Checks;
use super::crate_bench::printed_by;
use super::parse::figure;
use super::record::Record;

/// Full packets in a gigabit, a second: 1448 bytes of payload, 1538 on the wire.
const PACKETS_PER_GIGABIT: f64 = 1e9 / 8.0 / 1538.0;
/// A packet among a million connections, of which a sixteenth are remembered, in packets of one: making room and memory far from the processor.
const GROWTH_MAX: f64 = 40.0;

/// Runs the kernel crate's own benchmark and keeps what it prints.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("classifier", "classifier")?;
    let rows = printed_by("sooner-kernel", "classifier", effort)?;
    let mut table = String::from(
        "| connections | packet | ns | of a core, a Gbit/s of them |\n|---|---|---|---|\n",
    );
    let mut part = Checks::default();
    for row in &rows {
        record.add(row)?;
        let Some(packet) = row["packet"].as_str() else {
            continue;
        };
        let (flows, cost_ns) = (figure(row, "/flows"), figure(row, "/packet_ns"));
        let share = cost_ns * 1e-9 * PACKETS_PER_GIGABIT;
        table += &format!(
            "| {flows} | {packet} | {cost_ns:.0} | {:.1} % |\n",
            100.0 * share
        );
        let one = rows.iter().find(|other| other["packet"] == row["packet"]);
        if let (true, Some(one)) = (flows == 1e6, one) {
            part.at_most(
                &format!("{packet}: among 1 000 000 connections / of one"),
                cost_ns / figure(one, "/packet_ns"),
                GROWTH_MAX,
            );
        }
    }
    record.table("classifier", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}
