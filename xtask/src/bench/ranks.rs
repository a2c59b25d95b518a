//! What a policy costs with up to a million jobs waiting.

use super::Effort;
use super::check::Checks;
use super::crate_bench::printed_by;
use super::parse::figure;
use super::record::Record;

/// A turn among a million jobs in turns among a thousand: logarithmic growth is 2, the rest is memory far from the processor.
const GROWTH_MAX: f64 = 40.0;

/// Runs the policy crate's own benchmark and keeps what it prints.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("ranks", "ranks")?;
    let rows = printed_by("sooner-policy", "ranks", effort)?;
    let mut table = String::from("| policy | jobs waiting | ns a turn |\n|---|---|---|\n");
    let mut part = Checks::default();
    for row in &rows {
        record.add(row)?;
        let (policy, jobs) = (
            row["policy"].as_str().unwrap_or_default(),
            figure(row, "/jobs"),
        );
        table += &format!("| {policy} | {jobs} | {:.0} |\n", figure(row, "/turn_ns"));
        let thousand = rows
            .iter()
            .find(|other| other["policy"] == row["policy"] && figure(other, "/jobs") == 1e3);
        if let (true, Some(thousand)) = (jobs == 1e6, thousand) {
            let growth = figure(row, "/turn_ns") / figure(thousand, "/turn_ns");
            part.at_most(
                &format!("{policy}: a turn among 1 000 000 jobs / among 1 000"),
                growth,
                GROWTH_MAX,
            );
        }
    }
    record.table("ranks", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}
