//! How handshakes go in the calling thread's network namespace, from the kernel's counters: what a
//! flood of SYNs shows itself by.

use std::fs;
use std::io;

use crate::proc_net::counter;

/// Counts since the namespace exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Handshakes {
    /// SYNs and SYN-ACKs that were sent again because the peer did not answer, and SYN cookies,
    /// which are sent when too many peers did not.
    pub unanswered: u64,
    /// Connections that clients opened.
    pub completed: u64,
}

/// What is counted now.
pub fn count() -> io::Result<Handshakes> {
    let read = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}"));
    Ok(counted(&read("netstat")?, &read("snmp")?))
}

fn counted(netstat: &str, snmp: &str) -> Handshakes {
    let extended = |name| counter(netstat, "TcpExt:", name).unwrap_or(0);
    Handshakes {
        unanswered: extended("TCPSynRetrans") + extended("SyncookiesSent"),
        completed: counter(snmp, "Tcp:", "PassiveOpens").unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_again_and_cookies_are_unanswered() {
        let netstat = "TcpExt: SyncookiesSent Other TCPSynRetrans\nTcpExt: 3 100 4\nIpExt: InNoRoutes\nIpExt: 9\n";
        let snmp = "Tcp: RtoAlgorithm PassiveOpens\nTcp: 1 17\n";
        let expected = Handshakes {
            unanswered: 7,
            completed: 17,
        };
        assert_eq!(counted(netstat, snmp), expected);
        assert_eq!(counted("", ""), Handshakes::default());
        assert!(count().is_ok());
    }
}
