//! What each order would have given the last transactions of a gate that runs, as it says itself.

use crate::output;
use anyhow::Result;
use serde::Serialize;
use sooner_pooler::config::Endpoint;
use sooner_pooler::{Answer, ConsoleClient};
use sooner_report::columns::aligned;
use sooner_report::number;

const NAMES: [&str; 6] = ["fifo", "shortest", "boost", "hrrn", "nudge", "perfect"];

/// What was played.
#[derive(Default, Serialize)]
pub struct Orders {
    /// The order in force; empty where targets or weights say it.
    pub order: String,
    /// Of how many transactions.
    pub played_transactions: u64,
    /// Empty before anything was played.
    pub orders: Vec<OrderRow>,
}

/// What the transactions would have taken under an order, waiting included, ms.
#[derive(Serialize)]
pub struct OrderRow {
    /// Its name; `perfect` is the shortest first with perfect knowledge.
    pub order: &'static str,
    /// In the mean.
    pub mean_ms: f64,
    /// 99 of 100.
    pub p99_ms: f64,
}

/// Asks a gate that has one server.
pub async fn ask(console: &mut ConsoleClient, place: &Endpoint) -> Result<Orders> {
    let answer = console.ask(place, "SHOW PREDICTION").await;
    let answer = answer.map_err(anyhow::Error::msg)?;
    Ok(answer
        .rows
        .first()
        .map_or_else(Orders::default, |row| Orders::read(&answer, row)))
}

impl Orders {
    fn read(answer: &Answer, row: &[Option<String>]) -> Self {
        let ms = |column: String| {
            let us: f64 = answer.field(row, &column).parse().ok()?;
            Some(us / 1000.0)
        };
        let figures = |order: &'static str| {
            Some(OrderRow {
                order,
                mean_ms: ms(format!("{order}_mean_us"))?,
                p99_ms: ms(format!("{order}_p99_us"))?,
            })
        };
        let played = answer.field(row, "played_transactions");
        Self {
            order: answer.field(row, "order").to_owned(),
            played_transactions: played.parse().unwrap_or(0),
            orders: NAMES.into_iter().filter_map(figures).collect(),
        }
    }

    /// A table, where something was played.
    pub fn print(&self) -> Result<()> {
        if self.orders.is_empty() {
            return Ok(());
        }
        let head = ["order", "mean", "p99", ""];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(self.orders.iter().map(|row| {
            let is_taken = row.order == self.order;
            vec![
                row.order.to_owned(),
                number::duration(row.mean_ms),
                number::duration(row.p99_ms),
                if is_taken { "in force" } else { "" }.to_owned(),
            ]
        }));
        output::line(format_args!(
            "what each order would have given the last {} transactions, without classes:",
            self.played_transactions
        ))?;
        output::line(aligned(&rows))?;
        // With targets, `order` is empty: the gate tells statements apart then.
        if self.order == "fifo" {
            output::line(
                "the gate does not tell statements apart at the moment, so expectations are those of classes and clients; with targets it does",
            )?;
        }
        Ok(())
    }
}
