//! All seconds of one run in a few figures.

use serde::{Deserialize, Serialize};

use super::mib::TcpCounters;
use super::row::{Counter, QueueCounter};

/// The counters of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CountersSummary {
    /// How many times was counted.
    pub samples: u64,
    /// Mean of the open connections over the samples.
    pub mean_open_connections: f64,
    /// Most open connections in a sample.
    pub max_open_connections: u32,
    /// Most connections in the SYN queue in a sample.
    pub max_syn_received_connections: u32,
    /// Most connections in the accept queue in a sample.
    pub max_accept_queue_connections: u32,
    /// How many could wait to be accepted.
    pub accept_queue_limit: Option<u32>,
    /// When the listener first dropped something, since the sampler's start.
    pub first_listen_drop_s: Option<f64>,
    /// What TCP counted in the whole run.
    pub tcp: TcpCounters,
    /// Packets the queues of the device had no room for.
    pub queue_dropped_packets: u64,
    /// Most packets that waited in the queues of the device in a sample.
    pub max_backlog_packets: u64,
    /// Most bytes that waited in the queues of the device in a sample.
    pub max_backlog_bytes: u64,
    /// Processor time of the server's processes.
    pub cpu_s: f64,
    /// Time that the server's threads waited for a processor.
    pub cpu_wait_s: f64,
    /// How often the server's threads got a processor.
    pub slices: u64,
    /// Most resident memory of the server's processes in a sample; what they share is counted for
    /// each.
    pub max_resident_bytes: u64,
}

impl CountersSummary {
    /// Takes the next row; rows come in the order of time.
    pub fn add(&mut self, row: &Counter) {
        let open = row.connections.open;
        self.samples += 1;
        self.mean_open_connections +=
            (f64::from(open) - self.mean_open_connections) / self.samples as f64;
        self.max_open_connections = self.max_open_connections.max(open);
        self.max_syn_received_connections = self
            .max_syn_received_connections
            .max(row.connections.syn_received);
        self.max_accept_queue_connections = self
            .max_accept_queue_connections
            .max(row.connections.accept_queue);
        self.accept_queue_limit = self.accept_queue_limit.or(row.accept_queue_limit);
        if row.tcp.listen_drops > 0 {
            self.first_listen_drop_s.get_or_insert(row.time_s);
        }
        self.tcp = row.tcp;
        let leaves = |amount: fn(&QueueCounter) -> u64| -> u64 {
            row.queues
                .iter()
                .filter(|queue| queue.is_leaf)
                .map(amount)
                .sum()
        };
        // A server that ends takes its bands and their counts along.
        self.queue_dropped_packets = self
            .queue_dropped_packets
            .max(leaves(|queue| queue.dropped_packets));
        self.max_backlog_packets = self
            .max_backlog_packets
            .max(leaves(|queue| queue.backlog_packets));
        self.max_backlog_bytes = self
            .max_backlog_bytes
            .max(leaves(|queue| queue.backlog_bytes));
        self.cpu_s = self.cpu_s.max(row.cpu_s);
        self.cpu_wait_s = self.cpu_wait_s.max(row.cpu_wait_s);
        self.slices = self.slices.max(row.slices);
        self.max_resident_bytes = self.max_resident_bytes.max(row.resident_bytes);
    }

    /// The summary of rows in the order of time.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Counter>) -> CountersSummary {
        let mut summary = CountersSummary::default();
        rows.into_iter().for_each(|row| summary.add(row));
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(time_s: f64, open: u32, listen_drops: u64, dropped_packets: u64) -> Counter {
        let mut row = Counter {
            time_s,
            cpu_s: time_s / 10.0,
            ..Counter::default()
        };
        row.connections.open = open;
        row.tcp.listen_drops = listen_drops;
        let queue = |is_leaf| QueueCounter {
            is_leaf,
            dropped_packets,
            backlog_packets: 3,
            ..QueueCounter::default()
        };
        row.queues = vec![queue(false), queue(true), queue(true)];
        row
    }

    #[test]
    fn a_run_is_told_by_its_extremes_and_its_last_counts() {
        let rows = [row(1.0, 10, 0, 0), row(2.0, 30, 4, 5), row(3.0, 20, 9, 7)];
        let summary = CountersSummary::of(&rows);
        assert_eq!((summary.samples, summary.max_open_connections), (3, 30));
        assert!((summary.mean_open_connections - 20.0).abs() < 1e-9);
        assert_eq!(summary.first_listen_drop_s, Some(2.0));
        assert_eq!(summary.tcp.listen_drops, 9);
        assert_eq!(
            (summary.queue_dropped_packets, summary.max_backlog_packets),
            (14, 6)
        );
        assert!((summary.cpu_s - 0.3).abs() < 1e-9);
    }
}
