//! TCP's counters of one namespace: /proc/net/netstat and /proc/net/snmp.

use std::ops::Sub;

use serde::{Deserialize, Serialize};
use sooner_kernel::proc_net::counter;

/// What TCP has counted; a counter that this kernel does not have stays 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpCounters {
    /// Connections of which the last ACK found the accept queue full (`ListenOverflows`).
    pub listen_overflows: u64,
    /// SYNs and ACKs a listener has dropped, for whatever reason (`ListenDrops`).
    pub listen_drops: u64,
    /// SYNs dropped because the SYN queue was full (`TCPReqQFullDrop`).
    pub syn_queue_drops: u64,
    /// SYNs answered with a cookie because the SYN queue was full (`TCPReqQFullDoCookies`).
    pub syn_queue_cookies: u64,
    /// Cookies sent (`SyncookiesSent`).
    pub syn_cookies_sent: u64,
    /// SYNs and SYN-ACKs sent again (`TCPSynRetrans`).
    pub syn_retransmits: u64,
    /// Timeouts of all kinds (`TCPTimeouts`).
    pub timeouts: u64,
    /// Segments sent again (`RetransSegs`).
    pub retransmitted_segments: u64,
    /// Segments sent, without those sent again (`OutSegs`).
    pub sent_segments: u64,
}

impl Sub for TcpCounters {
    type Output = TcpCounters;

    /// What was counted since `earlier`.
    fn sub(self, earlier: TcpCounters) -> TcpCounters {
        let since = u64::saturating_sub;
        TcpCounters {
            listen_overflows: since(self.listen_overflows, earlier.listen_overflows),
            listen_drops: since(self.listen_drops, earlier.listen_drops),
            syn_queue_drops: since(self.syn_queue_drops, earlier.syn_queue_drops),
            syn_queue_cookies: since(self.syn_queue_cookies, earlier.syn_queue_cookies),
            syn_cookies_sent: since(self.syn_cookies_sent, earlier.syn_cookies_sent),
            syn_retransmits: since(self.syn_retransmits, earlier.syn_retransmits),
            timeouts: since(self.timeouts, earlier.timeouts),
            retransmitted_segments: since(
                self.retransmitted_segments,
                earlier.retransmitted_segments,
            ),
            sent_segments: since(self.sent_segments, earlier.sent_segments),
        }
    }
}

/// Reads them from the text of /proc/net/netstat and of /proc/net/snmp.
pub fn tcp_counters(netstat: &str, snmp: &str) -> TcpCounters {
    let extended = |name| counter(netstat, "TcpExt:", name).unwrap_or(0);
    let basic = |name| counter(snmp, "Tcp:", name).unwrap_or(0);
    TcpCounters {
        listen_overflows: extended("ListenOverflows"),
        listen_drops: extended("ListenDrops"),
        syn_queue_drops: extended("TCPReqQFullDrop"),
        syn_queue_cookies: extended("TCPReqQFullDoCookies"),
        syn_cookies_sent: extended("SyncookiesSent"),
        syn_retransmits: extended("TCPSynRetrans"),
        timeouts: extended("TCPTimeouts"),
        retransmitted_segments: basic("RetransSegs"),
        sent_segments: basic("OutSegs"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NETSTAT: &str = "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPTimeouts TCPReqQFullDrop\n\
                           TcpExt: 5 45 46 7 535\nIpExt: InNoRoutes ListenDrops\nIpExt: 0 99\n";
    const SNMP: &str = "Ip: Forwarding\nIp: 1\nTcp: MaxConn OutSegs RetransSegs\nTcp: -1 100 3\n";

    #[test]
    fn counters_are_found_by_name() {
        let read = tcp_counters(NETSTAT, SNMP);
        let expected = TcpCounters {
            listen_overflows: 45,
            listen_drops: 46,
            syn_queue_drops: 535,
            syn_cookies_sent: 5,
            timeouts: 7,
            retransmitted_segments: 3,
            sent_segments: 100,
            ..TcpCounters::default()
        };
        assert_eq!(read, expected);
        assert_eq!(read - read, TcpCounters::default());
    }

    #[test]
    fn what_was_counted_since_is_never_negative() {
        let read = tcp_counters(NETSTAT, SNMP);
        assert_eq!((TcpCounters::default() - read).listen_drops, 0);
        assert_eq!((read - TcpCounters::default()).listen_drops, 46);
    }

    proptest! {
        #[test]
        fn any_text_is_read(netstat: String, snmp in "(Tcp: [A-Za-z0-9 -]{0,20}\n){0,3}") {
            let _ = tcp_counters(&netstat, &snmp);
        }
    }
}
