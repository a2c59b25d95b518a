//! What all connections of a run share: how sockets are made and secured, and who reads.

use crate::exchange::Receiver;
use crate::failure::Failure;
use crate::socket::{ConnectingSocket, SocketOptions, UnconnectedSocket};
use crate::target::Endpoint;
use crate::transport::{CountedStream, Transport};
use sooner_kernel::clock::monotonic_ns;
use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// What all connections of a run share.
#[derive(Default)]
pub struct Client {
    options: SocketOptions,
    receiver: Rc<Receiver>,
    received_bytes: Rc<Cell<u64>>,
    connections_opened: Rc<Cell<u64>>,
    resent: Rc<Cell<u64>>,
}

impl Client {
    /// A client that gives its sockets these options.
    pub fn new(options: SocketOptions) -> Client {
        Client {
            options,
            ..Client::default()
        }
    }

    /// The same with sockets bound to `source`: it reads with this one's buffer and counts to its
    /// counts.
    pub fn bound_to(&self, source: IpAddr) -> Client {
        Client {
            options: SocketOptions {
                source: Some(source),
                ..self.options.clone()
            },
            receiver: self.receiver.clone(),
            received_bytes: self.received_bytes.clone(),
            connections_opened: self.connections_opened.clone(),
            resent: self.resent.clone(),
        }
    }

    /// Reads every response.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Bytes that all sockets have received so far: handshakes, frames, heads and bodies, without
    /// the headers of packets.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.get()
    }

    /// Connections that were made so far, whatever came on them.
    pub fn connections_opened(&self) -> u64 {
        self.connections_opened.get()
    }

    /// Requests that were sent again so far, because they got no answer on a connection.
    pub fn resent(&self) -> u64 {
        self.resent.get()
    }

    /// One more is sent again.
    pub fn note_resent(&self) {
        self.resent.set(self.resent.get() + 1);
    }

    /// Sends a SYN to `address`; gives the moment just before (CLOCK_MONOTONIC ns) and the socket.
    pub fn connect(&self, address: SocketAddr) -> (u64, Result<ConnectingSocket, Failure>) {
        match UnconnectedSocket::new(address, &self.options) {
            Ok(socket) => (monotonic_ns(), socket.connect(address)),
            Err(error) => (monotonic_ns(), Err(Failure::from_io(&error))),
        }
    }

    /// Waits for the connection, and makes the TLS handshake where there is one to make.
    pub async fn open(
        &self,
        socket: ConnectingSocket,
        endpoint: &Endpoint,
    ) -> Result<Transport, Failure> {
        let connected = socket.connected().await?;
        self.connections_opened
            .set(self.connections_opened.get() + 1);
        let stream = CountedStream::new(connected, self.received_bytes.clone());
        Ok(match &endpoint.tls {
            None => Transport::Plain(stream),
            Some(tls) => Transport::Tls(Box::new(tls.handshake(stream).await?)),
        })
    }
}
