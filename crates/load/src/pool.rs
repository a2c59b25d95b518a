//! Kept-alive connections, used as HTTP clients with a pool use them.
//!
//! A request takes the connection that has been idle for the shortest time and opens a new one when
//! none is idle, so no request waits behind another one in the client. A connection ends with its
//! K-th request, which asks the server to close. Since one is opened only while all others are busy,
//! never more are open than requests were once under way together.

use crate::connection::{Client, Connection};
use crate::failure::Failure;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::rc::Rc;

/// The connections of one run.
pub struct Pool {
    client: Rc<Client>,
    address: SocketAddr,
    requests_per_connection: u32,
    /// In the order in which they became idle.
    idle: RefCell<Vec<Connection>>,
}

impl Pool {
    /// No connection yet; each will end with its request number `requests_per_connection`.
    pub fn new(client: Client, address: SocketAddr, requests_per_connection: NonZeroU32) -> Pool {
        Pool {
            client: Rc::new(client),
            address,
            requests_per_connection: requests_per_connection.get(),
            idle: RefCell::default(),
        }
    }

    /// The connection that has been idle for the shortest time; those that the server has closed
    /// meanwhile are forgotten.
    pub fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        std::iter::from_fn(|| idle.pop()).find(Connection::is_open)
    }

    /// Sends a SYN; gives the moment just before (CLOCK_MONOTONIC ns) and the connection.
    pub fn connect(&self) -> (u64, Result<Connection, Failure>) {
        let (sent_ns, socket) = self.client.connect(self.address);
        let connecting = |socket| Connection::connecting(self.client.clone(), self.address, socket);
        (sent_ns, socket.map(connecting))
    }

    /// Whether the next request is the last of `kept`, or of a new connection.
    pub fn is_last(&self, kept: Option<&Connection>) -> bool {
        kept.map_or(0, Connection::requests) + 1 >= self.requests_per_connection
    }

    /// Keeps a connection whose response has ended, or closes it when it has had its requests.
    pub async fn put_back(&self, mut connection: Connection) {
        if connection.requests() < self.requests_per_connection && connection.is_open() {
            self.idle.borrow_mut().push(connection);
        } else {
            connection.close().await;
        }
    }
}
