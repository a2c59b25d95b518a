//! The connections of one port by state: /proc/net/tcp, a line a socket.

use std::io::{self, BufRead};
use std::ops::Add;

use serde::{Deserialize, Serialize};

/// The server's connections by state, and its accept queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// All that are beyond the handshake and not yet closed by both sides: what a server has open.
    pub open: u32,
    /// Those of them that nobody has begun to close.
    pub established: u32,
    /// Those of them that the client has closed.
    pub close_wait: u32,
    /// Those of them that the server has closed; what it wrote last may still be under way.
    pub closing: u32,
    /// In the SYN queue: answered, and the client's ACK is not there yet.
    pub syn_received: u32,
    /// Over on both sides, remembered for a minute.
    pub time_wait: u32,
    /// In the accept queue: established, and the server has not taken them yet.
    pub accept_queue: u32,
}

impl Connections {
    /// Counts the sockets with this local port; lines that make no sense are left out.
    pub fn read(table: impl BufRead, port: u16) -> io::Result<Connections> {
        let mut connections = Connections::default();
        for line in table.lines() {
            if let Some(socket) = socket(&line?).filter(|socket| socket.local_port == port) {
                connections.count(&socket);
            }
        }
        Ok(connections)
    }

    fn count(&mut self, socket: &Socket) {
        let (count, is_open) = match socket.state {
            // linux/tcp_states.h
            0x01 => (&mut self.established, true),
            0x04 | 0x05 | 0x09 | 0x0B => (&mut self.closing, true),
            0x08 => (&mut self.close_wait, true),
            0x03 | 0x0C => (&mut self.syn_received, false),
            0x06 => (&mut self.time_wait, false),
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

/// What a line of /proc/net/tcp says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Socket {
    local_port: u16,
    state: u8,
    /// Bytes to read; on a listener the connections that wait to be accepted.
    receive_queue: u32,
}

/// `sl: local_address rem_address st tx_queue:rx_queue ...`, in hexadecimal.
fn socket(line: &str) -> Option<Socket> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (_, port) = words.next()?.rsplit_once(':')?;
    let state = words.nth(1)?;
    let (_, receive_queue) = words.next()?.split_once(':')?;
    Some(Socket {
        local_port: u16::from_str_radix(port, 16).ok()?,
        state: u8::from_str_radix(state, 16).ok()?,
        receive_queue: u32::from_str_radix(receive_queue, 16).ok()?,
    })
}

/// How many connections may wait to be accepted, from what `ss -Hltn` prints: the third word of each listener, added up.
pub fn listener_limit(text: &str) -> Option<u32> {
    let limits = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2)?.parse::<u32>().ok());
    limits.reduce(u32::saturating_add)
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
        let connections = Connections::read(TABLE.as_bytes(), 8080).unwrap();
        let expected = Connections {
            open: 3,
            established: 1,
            close_wait: 1,
            closing: 1,
            syn_received: 1,
            time_wait: 1,
            accept_queue: 5,
        };
        assert_eq!(connections, expected);
    }

    #[test]
    fn the_limits_of_all_listeners_are_added() {
        let text = "LISTEN 5 4 10.77.0.1:8080 0.0.0.0:*\nLISTEN 0      512    [::]:8080 [::]:*\n";
        assert_eq!(listener_limit(text), Some(516));
        assert_eq!(listener_limit(""), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String, line in "[0-9A-F: ]{0,80}") {
            let _ = (socket(&text), socket(&line), listener_limit(&text));
        }
    }
}
