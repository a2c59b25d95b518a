//! The listener of the admin address: a few connections, each for a while, and a tick every second.

use super::routes::Desk;
use super::sources::Sources;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

/// More browsers and collectors than anybody has; the next one waits.
const CONNECTIONS_MAX: usize = 64;
/// A request, and the time until the next one, take no longer.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// Then a connection has to be made anew: so none that is not read stays for ever.
const CONNECTION_WITHIN: Duration = Duration::from_secs(600);
/// As small as hyper allows; no request here needs more.
const BUFFER_BYTES: usize = 8 << 10;
const SECOND: Duration = Duration::from_secs(1);

/// An admin address that is bound.
#[derive(Debug)]
pub struct Admin {
    listener: TcpListener,
    hosts: Vec<String>,
}

impl Admin {
    /// Binds `address`, to be asked for under the names `hosts` too. Needs a tokio runtime around it.
    pub fn bind(address: SocketAddr, hosts: Vec<String>) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        Ok(Self { listener, hosts })
    }

    /// Where it listens, with the port the system chose.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers whoever connects until it is dropped. Needs a `LocalSet` around it.
    pub async fn serve(self, sources: Sources) {
        let Self { listener, hosts } = self;
        let desk = Rc::new(Desk::new(sources, hosts));
        let mut seconds = interval_at(Instant::now() + SECOND, SECOND);
        seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
        // After an error (no descriptors, most likely) the next second brings another try.
        let mut is_tired = false;
        loop {
            // Each connection holds one as well.
            let has_room = Rc::strong_count(&desk) <= CONNECTIONS_MAX;
            tokio::select! {
                _ = seconds.tick() => {
                    is_tired = false;
                    desk.second_passed();
                }
                accepted = listener.accept(), if has_room && !is_tired => match accepted {
                    Ok((stream, _)) => {
                        spawn_local(timeout(CONNECTION_WITHIN, converse(stream, desk.clone())));
                    }
                    Err(_) => is_tired = true,
                },
            }
        }
    }
}

/// Answers on one connection until the client has enough; how it ends concerns nobody else.
async fn converse(stream: TcpStream, desk: Rc<Desk>) {
    let Ok(reached) = stream.local_addr() else {
        return;
    };
    let service = service_fn(|request: Request<Incoming>| {
        ready(Ok::<_, Infallible>(desk.answer(&request, reached)))
    });
    let connection = Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let _ = connection.await;
}
