//! How handshakes go in the calling thread's network namespace, from the kernel's counters: what a flood of SYNs shows itself by.

use std::fs;
use std::io;

/// Counts since the namespace exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Handshakes {
    /// SYNs and SYN-ACKs that were sent again because nobody answered, and SYN cookies, which are sent when too many did not.
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
    let extended = |name| value(netstat, "TcpExt:", name).unwrap_or(0);
    Handshakes {
        unanswered: extended("TCPSynRetrans") + extended("SyncookiesSent"),
        completed: value(snmp, "Tcp:", "PassiveOpens").unwrap_or(0),
    }
}

/// A value in the format of /proc/net/snmp: a line of names, then a line of values, with the same first word.
fn value(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text
        .lines()
        .filter(|line| line.split(' ').next() == Some(group));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split(' ').position(|word| word == name)?;
    values.split(' ').nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_values_stand_in_two_lines() {
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

    proptest! {
        #[test]
        fn any_text_is_read(netstat: String, snmp: String) {
            let _ = counted(&netstat, &snmp);
        }
    }
}
