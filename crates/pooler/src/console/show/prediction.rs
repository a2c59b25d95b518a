//! How well times inside were expected, and what each order would give by that.

use crate::console::table::{Field, Table};
use crate::pooler::Pooler;

const COLUMNS: [&str; 21] = [
    "server",
    "#transactions",
    "#ranked_percent",
    "#ranked_by_kind_percent",
    "#fifo_wait_us",
    "#expected_wait_us",
    "#perfect_wait_us",
    "order",
    "#played_transactions",
    "#fifo_mean_us",
    "#fifo_p99_us",
    "#shortest_mean_us",
    "#shortest_p99_us",
    "#boost_mean_us",
    "#boost_p99_us",
    "#hrrn_mean_us",
    "#hrrn_p99_us",
    "#nudge_mean_us",
    "#nudge_p99_us",
    "#perfect_mean_us",
    "#perfect_p99_us",
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
            let named = played.figures.iter().find(|one| {
                let name = columns[0].trim_start_matches('#');
                name.strip_suffix("_mean_us") == Some(one.name())
            });
            row.push(named.map(|one| one.mean_ns / 1000).into());
            row.push(named.map(|one| one.p99_ns / 1000).into());
        }
        table.row(row);
    }
    table
}
