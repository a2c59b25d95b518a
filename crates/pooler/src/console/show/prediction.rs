//! How well times inside were expected, and what each order would give by that.

use crate::console::table::{Field, Table, bare};
use crate::pooler::Pooler;

const COLUMNS: [&str; 21] = [
    "server",
    "transactions int8",
    "ranked_percent int8",
    "ranked_by_kind_percent int8",
    "fifo_wait_us int8",
    "expected_wait_us int8",
    "perfect_wait_us int8",
    "order",
    "played_transactions int8",
    "fifo_mean_us int8",
    "fifo_p99_us int8",
    "shortest_mean_us int8",
    "shortest_p99_us int8",
    "boost_mean_us int8",
    "boost_p99_us int8",
    "hrrn_mean_us int8",
    "hrrn_p99_us int8",
    "nudge_mean_us int8",
    "nudge_p99_us int8",
    "perfect_mean_us int8",
    "perfect_p99_us int8",
];
/// The first of those that are about orders.
const FIRST_ORDER: usize = 9;

/// Percentages are of pairs that were ranked rightly; waits are means in an imagined queue, and so
/// are the response times of each order.
pub fn prediction(pooler: &Pooler) -> Table {
    let mut table = Table::new(&COLUMNS);
    let percent = |share: f64| (100.0 * share).round() as u64;
    for upstream in pooler.upstreams() {
        let quality = upstream.limiter.quality();
        let waits = quality.shadows;
        let order = quality.order.map_or("", |order| order.name());
        let played = quality.played.unwrap_or_default();
        let mut row: Vec<Field> = vec![
            upstream.address.to_string().into(),
            quality.jobs.into(),
            quality.ranked_rightly.map(percent).into(),
            quality.ranked_rightly_by_kind.map(percent).into(),
            waits.map(|waits| waits.fcfs_ns / 1000).into(),
            waits.map(|waits| waits.predicted_ns / 1000).into(),
            waits.map(|waits| waits.perfect_ns / 1000).into(),
            order.to_owned().into(),
            played.jobs.into(),
        ];
        for columns in COLUMNS[FIRST_ORDER..].chunks(2) {
            let named = played
                .figures
                .iter()
                .find(|one| bare(columns[0]).strip_suffix("_mean_us") == Some(one.name()));
            row.push(named.map(|one| one.mean_ns / 1000).into());
            row.push(named.map(|one| one.p99_ns / 1000).into());
        }
        table.row(row);
    }
    table
}
