//! One second of counters.

use serde::{Deserialize, Serialize};
use sooner_kernel::qdisc::Queue;

use super::mib::TcpCounters;
use super::sockets::Connections;

/// What was counted up to one moment of a run; one line of JSON each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counter {
    /// Since the sampler's start.
    pub time_s: f64,
    /// Connections at this moment.
    pub connections: Connections,
    /// How many may wait to be accepted; none where the kernel does not tell (no sock_diag), or no
    /// socket listens any more.
    pub accept_queue_limit: Option<u32>,
    /// Since the sampler's start.
    pub tcp: TcpCounters,
    /// The queues of the server's device.
    pub queues: Vec<QueueCounter>,
    /// Processor time of the server's processes since the sampler's start, user and kernel.
    pub cpu_s: f64,
    /// Time that the server's threads waited for a processor since the sampler's start: where it is
    /// large, others held the server up.
    pub cpu_wait_s: f64,
    /// How often the server's threads got a processor since the sampler's start.
    pub slices: u64,
    /// Resident memory of the server's processes at this moment; what they share is counted for
    /// each.
    pub resident_bytes: u64,
}

/// A queueing discipline or class; a band is a class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueCounter {
    /// What it is: `htb class 5005:10`, `pfifo 10:`.
    pub name: String,
    /// Whether nothing hangs below it, so that adding up the leaves counts each packet once.
    pub is_leaf: bool,
    /// Packets that wait at this moment.
    pub backlog_packets: u64,
    /// Bytes that wait at this moment, link headers included.
    pub backlog_bytes: u64,
    /// Packets there was no room for, since the sampler's start.
    pub dropped_packets: u64,
    /// Packets sent since the sampler's start.
    pub sent_packets: u64,
    /// Bytes sent since the sampler's start, link headers included.
    pub sent_bytes: u64,
}

/// The queues now, with what they counted since `earlier`; one that was not there then counts from
/// nothing.
pub fn queue_counters(now: &[Queue], earlier: &[Queue]) -> Vec<QueueCounter> {
    now.iter()
        .map(|queue| {
            let before = earlier.iter().find(|before| is_same(before, queue));
            let since =
                |count: fn(&Queue) -> u64| count(queue).saturating_sub(before.map_or(0, count));
            QueueCounter {
                name: name(queue),
                is_leaf: !queue.is_class && !now.iter().any(|other| is_below(other, queue)),
                backlog_packets: queue.backlog_packets,
                backlog_bytes: queue.backlog_bytes,
                dropped_packets: since(|queue| queue.dropped_packets),
                sent_packets: since(|queue| queue.sent_packets),
                sent_bytes: since(|queue| queue.sent_bytes),
            }
        })
        .collect()
}

fn is_same(one: &Queue, other: &Queue) -> bool {
    one.kind == other.kind && one.handle == other.handle && one.is_class == other.is_class
}

/// Whether one qdisc hangs below a class of the other: that class has the other's major number.
fn is_below(one: &Queue, other: &Queue) -> bool {
    !one.is_class && one.handle != other.handle && one.parent.0 >> 16 == other.handle.0 >> 16
}

fn name(queue: &Queue) -> String {
    let class = if queue.is_class { "class " } else { "" };
    format!("{} {class}{}", queue.kind, queue.handle)
}

#[cfg(test)]
mod tests {
    use sooner_kernel::qdisc::Handle;

    use super::*;

    fn queue(kind: &str, handle: u32, parent: u32, sent_packets: u64) -> Queue {
        Queue {
            kind: kind.into(),
            handle: Handle(handle),
            parent: Handle(parent),
            is_class: parent == handle >> 16 << 16,
            sent_bytes: sent_packets * 100,
            sent_packets,
            dropped_packets: sent_packets,
            backlog_bytes: 7,
            backlog_packets: 1,
        }
    }

    #[test]
    fn counts_begin_at_the_start_and_backlogs_are_now() {
        let earlier = [queue("htb", 0x1_0000, u32::MAX, 5)];
        let now = [
            queue("htb", 0x1_0000, u32::MAX, 8),
            queue("pfifo", 0xA_0000, 0x1_0001, 2),
            queue("htb", 0x1_0001, 0x1_0000, 8),
        ];
        let counted = queue_counters(&now, &earlier);
        let names: Vec<&str> = counted.iter().map(|queue| queue.name.as_str()).collect();
        assert_eq!(names, ["htb 1:", "pfifo a:", "htb class 1:1"]);
        let leaves: Vec<bool> = counted.iter().map(|queue| queue.is_leaf).collect();
        assert_eq!(leaves, [false, true, false]);
        assert_eq!((counted[0].sent_packets, counted[0].sent_bytes), (3, 300));
        assert_eq!(
            (counted[1].dropped_packets, counted[1].backlog_bytes),
            (2, 7)
        );
    }

    #[test]
    fn a_row_is_read_back() {
        let row = Counter {
            time_s: 1.5,
            accept_queue_limit: Some(512),
            queues: queue_counters(&[queue("htb", 0x1_0000, u32::MAX, 8)], &[]),
            ..Counter::default()
        };
        let text = serde_json::to_string(&row).unwrap();
        assert_eq!(serde_json::from_str::<Counter>(&text).unwrap(), row);
    }
}
