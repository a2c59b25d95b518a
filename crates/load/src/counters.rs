//! TCP counters of this network namespace, from /proc/self/net/netstat.
//!
//! They count for the whole namespace: on loopback, server and generator share them; across
//! namespaces only this side's are seen.

use std::fs;

const NETSTAT: &str = "/proc/self/net/netstat";

/// Counters of one moment, or their growth between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounters {
    /// SYNs and final ACKs dropped by listeners here (TcpExt ListenDrops).
    pub listen_drops: u64,
    /// SYNs and SYN-ACKs sent again by sockets here (TcpExt TCPSynRetrans).
    pub syn_retransmissions: u64,
}

impl TcpCounters {
    /// The counters now; `None` where the kernel does not show them.
    pub fn now() -> Option<TcpCounters> {
        parse(&fs::read_to_string(NETSTAT).ok()?)
    }

    /// Growth since `earlier`.
    pub fn since(self, earlier: TcpCounters) -> TcpCounters {
        TcpCounters {
            listen_drops: self.listen_drops.saturating_sub(earlier.listen_drops),
            syn_retransmissions: self
                .syn_retransmissions
                .saturating_sub(earlier.syn_retransmissions),
        }
    }
}

/// A line of names is followed by a line of values, both starting with the group's name.
fn parse(netstat: &str) -> Option<TcpCounters> {
    let mut lines = netstat.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let value_of = |wanted: &str| {
        let (_, value) = names
            .split_whitespace()
            .zip(values.split_whitespace())
            .find(|(name, _)| *name == wanted)?;
        value.parse().ok()
    };
    Some(TcpCounters {
        listen_drops: value_of("ListenDrops")?,
        syn_retransmissions: value_of("TCPSynRetrans")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_below_their_names() {
        let netstat = "TcpExt: SyncookiesSent ListenDrops TCPSynRetrans\nTcpExt: 1 20 300\nIpExt: InNoRoutes ListenDrops\nIpExt: 0 7\n";
        assert_eq!(
            parse(netstat),
            Some(TcpCounters {
                listen_drops: 20,
                syn_retransmissions: 300
            })
        );
        assert_eq!(parse("TcpExt: ListenDrops\nTcpExt: 1\n"), None);
    }

    #[test]
    fn growth_between_two_readings() {
        let at = |listen_drops, syn_retransmissions| TcpCounters {
            listen_drops,
            syn_retransmissions,
        };
        assert_eq!(at(5, 9).since(at(2, 9)), at(3, 0));
    }

    #[test]
    fn the_running_kernel_is_readable() {
        assert!(TcpCounters::now().is_some());
    }
}
