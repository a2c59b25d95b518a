//! The HTTP server of an admin address: a few connections, each for a while. Beside it what is
//! there: answers that only their own operator can ask for, and live pages.

pub mod answer;
pub mod page;
mod ring;
pub mod text;

pub use ring::{Ring, SECONDS_MAX};

use crate::{AcceptFailures, say};
use answer::Answer;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};

/// More browsers and collectors than an operator has; for the next one, the first ends.
const CONNECTIONS_MAX: usize = 64;
/// A request, and the time until the next one, take no longer.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// Then a connection has to be made anew, so none that is not read stays.
const CONNECTION_WITHIN: Duration = Duration::from_secs(600);
/// As small as hyper allows; no request here needs more.
const BUFFER_BYTES: usize = 8 << 10;
/// After a failure to accept (no descriptors, most likely) it would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
const SECOND: Duration = Duration::from_secs(1);

/// What is at an admin address.
pub trait Pages {
    /// The answer to a request that came to the address `reached`.
    fn answer(&self, request: &Request<Incoming>, reached: SocketAddr) -> Answer;

    /// Another second has passed.
    fn second_passed(&self);
}

/// Answers each client that connects, and tells the pages of each second, until it is dropped.
/// Needs a `LocalSet` around it.
pub async fn serve(listener: TcpListener, pages: Rc<impl Pages + 'static>) {
    let mut seconds = interval_at(Instant::now() + SECOND, SECOND);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let pass = async {
        loop {
            seconds.tick().await;
            pages.second_passed();
        }
    };
    tokio::select! {
        () = accept_all(listener, pages.clone()) => {}
        () = pass => {}
    }
}

async fn accept_all(listener: TcpListener, pages: Rc<impl Pages + 'static>) {
    let mut connections: VecDeque<JoinHandle<_>> = VecDeque::new();
    let mut failures = AcceptFailures::new(
        "cannot accept connections to the admin address",
        "trying again every second",
    );
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                if failures.is_ours(&error) {
                    let line = failures.line(&error, std::time::Instant::now());
                    line.into_iter().for_each(say);
                    sleep(ACCEPT_PAUSE).await;
                }
                continue;
            }
        };
        failures.end();
        connections.retain(|connection| !connection.is_finished());
        if connections.len() >= CONNECTIONS_MAX
            && let Some(first) = connections.pop_front()
        {
            first.abort();
        }
        let answering = timeout(CONNECTION_WITHIN, answer_all(stream, pages.clone()));
        connections.push_back(spawn_local(answering));
    }
}

async fn answer_all(stream: TcpStream, pages: Rc<impl Pages>) {
    let Ok(reached) = stream.local_addr() else {
        return;
    };
    let service = service_fn(|request: Request<Incoming>| {
        ready(Ok::<_, Infallible>(pages.answer(&request, reached)))
    });
    let connection = Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    // How it ends concerns only its client.
    let _ = connection.await;
}
