//! One HTTP/1.1 connection: its requests one after the other, never pipelined.
//!
//! When the server has closed a kept-alive connection between two requests, the second one is sent
//! again on a new connection, as browsers do, if its method is idempotent: the server may have read
//! it (see [`crate::unanswered`]). After the last response the connection waits for the
//! server to close first: a client that closes first keeps its port for a minute (TIME_WAIT) and
//! runs out of ports at a few hundred connections a second.

use crate::client::Client;
use crate::exchange::{Expected, Served};
use crate::failure::Failure;
use crate::sending::Parts;
use crate::socket::ConnectingSocket;
use crate::target::Endpoint;
use crate::transport::Transport;
use crate::unanswered::Again;
use std::rc::Rc;
use std::time::Duration;

/// How long a server may take to close a connection after it was asked to.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// A connection in whatever state the previous request left it.
pub struct Connection {
    client: Rc<Client>,
    endpoint: Endpoint,
    link: Link,
    requests: u32,
}

enum Link {
    Closed,
    Connecting(ConnectingSocket),
    /// Between two requests.
    Open(Transport),
    /// The server said that it will close.
    Closing(Transport),
}

impl Connection {
    /// A connection that is made when the first request needs it.
    pub fn new(client: Rc<Client>, endpoint: Endpoint) -> Connection {
        Connection {
            client,
            endpoint,
            link: Link::Closed,
            requests: 0,
        }
    }

    /// A connection that has sent its SYN already.
    pub fn connecting(
        client: Rc<Client>,
        endpoint: Endpoint,
        socket: ConnectingSocket,
    ) -> Connection {
        Connection {
            client,
            endpoint,
            link: Link::Connecting(socket),
            requests: 0,
        }
    }

    /// Requests sent so far; a connection that was made again counts from its first.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Whether it is idle and the server has neither closed it nor said that it will.
    pub fn is_open(&mut self) -> bool {
        match &mut self.link {
            // Bytes that the client did not request make it as useless as its end does.
            Link::Open(stream) => stream.is_quiet(),
            _ => false,
        }
    }

    /// Sends one request and reads its response, on a new connection if there is none; one whose
    /// method is idempotent may be sent again.
    pub async fn request(
        &mut self,
        request: Parts<'_>,
        is_idempotent: bool,
        expected: Expected,
    ) -> Result<Served, Failure> {
        loop {
            let (mut stream, new_connection) = self.take_stream().await?;
            self.requests = if new_connection { 1 } else { self.requests + 1 };
            match self
                .client
                .receiver()
                .exchange(&mut stream, request, expected)
                .await
            {
                Err(lost) if !new_connection && lost.may_go_again(is_idempotent) => {
                    if lost.again != Again::Unsent {
                        self.client.note_resent();
                    }
                }
                Err(lost) => return Err(lost.failure),
                Ok(answer) => {
                    self.link = if answer.keep_alive {
                        Link::Open(stream)
                    } else {
                        Link::Closing(stream)
                    };
                    return Ok(Served {
                        answer,
                        new_connection,
                    });
                }
            }
        }
    }

    /// Closes the connection, after the server if it does so within a few seconds.
    pub async fn close(&mut self) {
        let link = std::mem::replace(&mut self.link, Link::Closed);
        if let Link::Open(mut stream) | Link::Closing(mut stream) = link {
            let end = self.client.receiver().read_to_end(&mut stream);
            tokio::time::timeout(CLOSE_WAIT, end).await.ok();
        }
    }

    /// The stream to use next, and whether it is new.
    async fn take_stream(&mut self) -> Result<(Transport, bool), Failure> {
        match std::mem::replace(&mut self.link, Link::Closed) {
            Link::Open(stream) => Ok((stream, false)),
            Link::Connecting(socket) => self.open(socket).await,
            Link::Closed | Link::Closing(_) => {
                let (_, socket) = self.client.connect(self.endpoint.address);
                self.open(socket?).await
            }
        }
    }

    async fn open(&self, socket: ConnectingSocket) -> Result<(Transport, bool), Failure> {
        Ok((self.client.open(socket, &self.endpoint).await?, true))
    }
}
