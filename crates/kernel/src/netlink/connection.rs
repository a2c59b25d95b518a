//! A socket to rtnetlink, or to sock_diag. It speaks for the network namespace it was opened in,
//! whichever the thread is in later.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send,
    socket_with,
};

use super::message::{Message, Request, messages, u32_at};

/// Ask for every object instead of one.
pub const DUMP: u16 = 0x300;
/// Make the object if it does not exist.
pub const CREATE: u16 = 0x400;
/// Fail if the object exists.
pub const EXCLUSIVE: u16 = 0x200;
/// Replace the object if it exists.
pub const REPLACE: u16 = 0x100;

/// Answer the one who asks; traffic control is silent without it.
pub const ECHO: u16 = 8;

const ACKNOWLEDGE: u16 = 4;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// What the kernel puts into one datagram at most when asked with a buffer of this size.
const BUFFER_BYTES: usize = 32 * 1024;

/// An open netlink socket; one request at a time.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Connection {
    /// Opens a socket in the calling thread's network namespace; needs no privilege.
    pub fn open() -> io::Result<Connection> {
        Connection::to(None)
    }

    /// Opens one that answers questions about sockets (man 7 sock_diag), of that namespace too.
    pub fn about_sockets() -> io::Result<Connection> {
        Connection::to(Some(netlink::SOCK_DIAG))
    }

    fn to(protocol: Option<Protocol>) -> io::Result<Connection> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            protocol,
        )?;
        Ok(Connection {
            socket,
            sequence: 0,
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// Changes something: sends the request and waits for the kernel's yes or no.
    pub fn change(
        &mut self,
        kind: u16,
        flags: u16,
        build: impl FnOnce(NewRequest) -> Request,
    ) -> io::Result<()> {
        self.transact(
            build(NewRequest {
                kind,
                flags: flags | ACKNOWLEDGE,
            }),
            |_, _| (),
        )
    }

    /// Asks for one object; `take` gets kind and payload of what comes.
    pub fn ask(
        &mut self,
        kind: u16,
        build: impl FnOnce(NewRequest) -> Request,
        take: impl FnMut(u16, &[u8]),
    ) -> io::Result<()> {
        self.transact(
            build(NewRequest {
                kind,
                flags: ACKNOWLEDGE | ECHO,
            }),
            take,
        )
    }

    /// Asks for all objects; `take` gets kind and payload of each.
    pub fn dump(
        &mut self,
        kind: u16,
        build: impl FnOnce(NewRequest) -> Request,
        take: impl FnMut(u16, &[u8]),
    ) -> io::Result<()> {
        self.transact(build(NewRequest { kind, flags: DUMP }), take)
    }

    fn transact(
        &mut self,
        mut request: Request,
        mut take: impl FnMut(u16, &[u8]),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        send(
            &self.socket,
            request.with_sequence(self.sequence),
            SendFlags::empty(),
        )?;
        loop {
            let (length, _) = recv(&self.socket, &mut self.buffer[..], RecvFlags::empty())?;
            for message in
                messages(&self.buffer[..length]).filter(|message| message.sequence == self.sequence)
            {
                match outcome(&message) {
                    Some(result) => return result,
                    None => take(message.kind, message.payload),
                }
            }
        }
    }

    /// Asks for one object that comes in one datagram, without an acknowledgement: the cheapest
    /// question there is. None when the kernel answers nothing.
    pub fn ask_fast<T>(
        &mut self,
        request: &mut Request,
        take: impl Fn(&[u8]) -> Option<T>,
    ) -> io::Result<Option<T>> {
        self.sequence = self.sequence.wrapping_add(1);
        send(
            &self.socket,
            request.with_sequence(self.sequence),
            SendFlags::empty(),
        )?;
        loop {
            // The kernel has answered before send returns, so what is not here will not come.
            let length = match recv(&self.socket, &mut self.buffer[..], RecvFlags::DONTWAIT) {
                Ok((length, _)) => length,
                Err(Errno::AGAIN) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            };
            let answer =
                messages(&self.buffer[..length]).find(|message| message.sequence == self.sequence);
            if let Some(message) = answer {
                return match outcome(&message) {
                    Some(result) => result.map(|()| None),
                    None => Ok(take(message.payload)),
                };
            }
        }
    }
}

/// A request that still lacks its fixed body.
#[derive(Debug)]
pub struct NewRequest {
    kind: u16,
    flags: u16,
}

impl NewRequest {
    /// Adds the fixed body.
    pub fn body(self, body: &[u8]) -> Request {
        Request::new(self.kind, self.flags, body)
    }
}

/// How the request ended, if this message says so.
fn outcome(message: &Message<'_>) -> Option<io::Result<()>> {
    match message.kind {
        NLMSG_ERROR | NLMSG_DONE => match u32_at(message.payload, 0).map(u32::cast_signed) {
            Some(code) if code < 0 => {
                Some(Err(io::Error::from_raw_os_error(code.saturating_neg())))
            }
            _ => Some(Ok(())),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(kind: u16, payload: &[u8]) -> Option<io::Result<()>> {
        outcome(&Message {
            kind,
            sequence: 1,
            payload,
        })
    }

    #[test]
    fn an_error_of_zero_is_a_yes() {
        assert!(end(NLMSG_ERROR, &[0; 20]).unwrap().is_ok());
        assert!(end(NLMSG_DONE, &[0; 4]).unwrap().is_ok());
        assert!(end(NLMSG_ERROR, &[]).unwrap().is_ok());
        assert!(end(16, &[0; 20]).is_none());
    }

    #[test]
    fn an_error_keeps_its_number() {
        let error = end(NLMSG_ERROR, &(-1_i32).to_ne_bytes())
            .unwrap()
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(end(NLMSG_ERROR, &i32::MIN.to_ne_bytes()).unwrap().is_err());
    }
}
