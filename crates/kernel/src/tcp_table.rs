//! The TCP sockets of one port, by state, as sock_diag (linux/inet_diag.h) tells them: the kernel
//! chooses them, so that the thousands of connections that are over and only remembered cost next
//! to nothing, where /proc/net/tcp writes a line for each.

use std::io;

use crate::netlink::{Connection, Request, u32_at};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Length of `struct inet_diag_req_v2`: family at 0, protocol at 1, states at 4, local port at 8.
const REQUEST_BYTES: usize = 56;
/// Where `struct inet_diag_msg` has its parts: state at 1, local port at 4 (as on the wire), queues
/// at 56 and 60.
const STATE_AT: usize = 1;
const PORT_AT: usize = 4;
const RECEIVE_QUEUE_AT: usize = 56;
const SEND_QUEUE_AT: usize = 60;
const FAMILIES: [u8; 2] = [libc::AF_INET as u8, libc::AF_INET6 as u8];
/// All but TIME_WAIT (6) and CLOSE (7).
const STATES: u32 = 0x1FFF & !(1 << 6 | 1 << 7);

/// A TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSocket {
    /// As linux/tcp_states.h numbers them; a connection in the SYN queue is in 3 (`SYN_RECV`).
    pub state: u8,
    /// Bytes to read; on a listener (10) the connections that wait to be accepted.
    pub receive_queue: u32,
    /// Bytes not acknowledged; on a listener how many connections may wait to be accepted.
    pub send_queue: u32,
}

/// The sockets of the calling thread's namespace with this local port that are not over, IPv4 and
/// IPv6.
pub fn with_port(port: u16) -> io::Result<Vec<TcpSocket>> {
    let mut connection = Connection::about_sockets()?;
    let mut sockets = Vec::new();
    for family in FAMILIES {
        let take = |kind, payload: &[u8]| {
            if kind == SOCK_DIAG_BY_FAMILY {
                sockets.extend(socket(payload, port));
            }
        };
        connection.dump(
            SOCK_DIAG_BY_FAMILY,
            |request| -> Request { request.body(&body(family, port)) },
            take,
        )?;
    }
    Ok(sockets)
}

fn body(family: u8, port: u16) -> [u8; REQUEST_BYTES] {
    let mut body = [0; REQUEST_BYTES];
    body[0] = family;
    body[1] = libc::IPPROTO_TCP as u8;
    body[4..8].copy_from_slice(&STATES.to_ne_bytes());
    body[8..10].copy_from_slice(&port.to_be_bytes());
    body
}

/// The socket in an answer; None for one of another port, or half of one.
fn socket(payload: &[u8], port: u16) -> Option<TcpSocket> {
    if payload.get(PORT_AT..PORT_AT + 2)? != port.to_be_bytes() {
        return None;
    }
    Some(TcpSocket {
        state: *payload.get(STATE_AT)?,
        receive_queue: u32_at(payload, RECEIVE_QUEUE_AT)?,
        send_queue: u32_at(payload, SEND_QUEUE_AT)?,
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use proptest::prelude::*;

    use super::*;

    const ESTABLISHED: u8 = 1;
    const LISTEN: u8 = 10;

    #[test]
    fn a_listener_and_what_waits_for_it_are_told() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let clients = [(); 3].map(|()| TcpStream::connect(address).unwrap());
        let sockets = with_port(address.port()).unwrap();
        let of_state = |state| sockets.iter().filter(move |socket| socket.state == state);
        assert_eq!(of_state(ESTABLISHED).count(), clients.len());
        let listeners: Vec<_> = of_state(LISTEN).collect();
        assert_eq!(listeners.len(), 1);
        assert_eq!(listeners[0].receive_queue, 3);
        assert!(listeners[0].send_queue >= 3);
    }

    #[test]
    fn another_ports_sockets_are_not_taken() {
        let mut answer = [0; 72];
        answer[STATE_AT] = LISTEN;
        answer[PORT_AT..PORT_AT + 2].copy_from_slice(&8080_u16.to_be_bytes());
        answer[SEND_QUEUE_AT..SEND_QUEUE_AT + 4].copy_from_slice(&512_u32.to_ne_bytes());
        assert_eq!(socket(&answer, 8080).unwrap().send_queue, 512);
        assert_eq!(socket(&answer, 8081), None);
        assert_eq!(socket(&answer[..60], 8080), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..100), port: u16) {
            let _ = socket(&bytes, port);
        }
    }
}
