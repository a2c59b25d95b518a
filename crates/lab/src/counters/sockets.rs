//! The connections of one port by state: of the kernel's table of sockets, or, where the kernel
//! does not tell it, of /proc/net/tcp.

use std::ops::Add;

use serde::{Deserialize, Serialize};
use sooner_kernel::tcp_table::TcpSocket;

/// The server's connections by state, and its accept queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// All that are beyond the handshake and not yet closed by both sides: what a server has open.
    pub open: u32,
    /// Those of them that neither side has begun to close.
    pub established: u32,
    /// Those of them that the client has closed.
    pub close_wait: u32,
    /// Those of them that the server has closed; what it wrote last may still be under way.
    pub closing: u32,
    /// In the SYN queue: answered, and the client's ACK is not there yet.
    pub syn_received: u32,
    /// Over on both sides, remembered for a minute; of all ports of the host.
    pub time_wait: u32,
    /// In the accept queue: established, and the server has not taken them yet.
    pub accept_queue: u32,
}

impl Connections {
    /// Counts sockets; what is over is not among them.
    pub fn of(sockets: impl IntoIterator<Item = TcpSocket>) -> Connections {
        let mut connections = Connections::default();
        for socket in sockets {
            connections.count(&socket);
        }
        connections
    }

    fn count(&mut self, socket: &TcpSocket) {
        let (count, is_open) = match socket.state {
            // linux/tcp_states.h
            0x01 => (&mut self.established, true),
            0x04 | 0x05 | 0x09 | 0x0B => (&mut self.closing, true),
            0x08 => (&mut self.close_wait, true),
            0x03 | 0x0C => (&mut self.syn_received, false),
            0x0A => {
                self.accept_queue = self.accept_queue.saturating_add(socket.receive_queue);
                return;
            }
            _ => return,
        };
        *count += 1;
        self.open += u32::from(is_open);
    }
}

impl Add for Connections {
    type Output = Connections;

    /// Those of two tables.
    fn add(self, other: Connections) -> Connections {
        Connections {
            open: self.open + other.open,
            established: self.established + other.established,
            close_wait: self.close_wait + other.close_wait,
            closing: self.closing + other.closing,
            syn_received: self.syn_received + other.syn_received,
            time_wait: self.time_wait + other.time_wait,
            accept_queue: self.accept_queue.saturating_add(other.accept_queue),
        }
    }
}

/// How many connections may wait to be accepted, all listeners together.
pub fn accept_queue_limit(sockets: &[TcpSocket]) -> Option<u32> {
    let limits = sockets.iter().filter(|socket| socket.state == 0x0A);
    limits
        .map(|socket| socket.send_queue)
        .reduce(u32::saturating_add)
}

/// The sockets with this local port in the text of /proc/net/tcp: `sl: local_address rem_address st
/// tx_queue:rx_queue ...`, in hexadecimal. Lines that make no sense are left out.
pub fn table(text: &str, port: u16) -> Vec<TcpSocket> {
    let sockets = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (_, local_port) = words.next()?.rsplit_once(':')?;
        if u16::from_str_radix(local_port, 16).ok()? != port {
            return None;
        }
        let state = words.nth(1)?;
        let (send_queue, receive_queue) = words.next()?.split_once(':')?;
        Some(TcpSocket {
            state: u8::from_str_radix(state, 16).ok()?,
            receive_queue: u32::from_str_radix(receive_queue, 16).ok()?,
            send_queue: u32::from_str_radix(send_queue, 16).ok()?,
        })
    });
    sockets.collect()
}

/// Connections that are over and remembered, of the text of /proc/net/sockstat: `TCP: inuse 4
/// orphan 0 tw 12 alloc 9 mem 1`.
pub fn time_wait(text: &str) -> Option<u32> {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_whitespace();
    words.find(|word| *word == "tw")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 01004D0A:1F90 00000000:0000 0A 00000000:00000005 00:00000000 00000000     0        0 4242 1 0000000000000000 100 0 0 10 0
   1: 01004D0A:1F90 01004E0A:C001 01 00000100:00000000 01:00000014 00000000     0        0 4243 2 0000000000000000 20 4 30 10 -1
   2: 01004D0A:1F90 01004E0A:C002 03 00000000:00000000 01:00000014 00000000     0        0 0 2 0000000000000000
   3: 01004D0A:1F90 01004E0A:C003 06 00000000:00000000 03:00000014 00000000     0        0 0 3 0000000000000000
   4: 01004D0A:1F90 01004E0A:C004 04 00000000:00000000 03:00000014 00000000     0        0 0 3 0000000000000000
   5: 01004D0A:1F90 01004E0A:C005 08 00000000:00000000 03:00000014 00000000     0        0 0 3 0000000000000000
   6: 01004D0A:0016 01004E0A:C006 01 00000000:00000000 03:00000014 00000000     0        0 0 3 0000000000000000
";

    #[test]
    fn the_ports_connections_are_counted_by_state() {
        let connections = Connections::of(table(TABLE, 8080));
        let expected = Connections {
            open: 3,
            established: 1,
            close_wait: 1,
            closing: 1,
            syn_received: 1,
            time_wait: 0,
            accept_queue: 5,
        };
        assert_eq!(connections, expected);
        assert_eq!((connections + connections).open, 6);
    }

    #[test]
    fn the_limits_of_all_listeners_are_added() {
        let listener = |send_queue| TcpSocket {
            state: 0x0A,
            receive_queue: 0,
            send_queue,
        };
        let sockets = [listener(4), listener(512)];
        assert_eq!(accept_queue_limit(&sockets), Some(516));
        assert_eq!(accept_queue_limit(&[]), None);
    }

    #[test]
    fn what_is_only_remembered_is_told_in_a_word() {
        let text =
            "sockets: used 9\nTCP: inuse 4 orphan 0 tw 12 alloc 9 mem 1\nUDP: inuse 1 mem 0\n";
        assert_eq!(time_wait(text), Some(12));
        assert_eq!(time_wait("TCP: inuse 4"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String, line in "[0-9A-F: ]{0,80}") {
            let _ = (table(&text, 8080), table(&line, 0), time_wait(&text));
        }
    }
}
