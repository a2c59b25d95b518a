//! Which connection a request gets.

use super::replay::block_on;
use super::server::{Reply, TestServer};
use sooner_load::client::Client;
use sooner_load::connection::Connection;
use sooner_load::pool::{Carrier, Pool, Reuse};
use sooner_load::target::Target;
use sooner_load::tls::TlsOptions;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

fn target(server: &TestServer) -> Target {
    Target::resolve(&server.url(), &TlsOptions::default()).unwrap()
}

fn pool(server: &TestServer, requests_per_connection: u32) -> Pool {
    let reuse = Reuse {
        requests_per_connection: NonZeroU32::new(requests_per_connection).unwrap(),
        http2_streams: None,
    };
    Pool::new(Rc::new(Client::default()), server.address.into(), reuse)
}

/// A new connection that has carried so many requests.
async fn used(pool: &Pool, server: &TestServer, requests: u32) -> Carrier {
    let mut carrier = pool.connect().1.unwrap();
    for _ in 0..requests {
        let (target, path) = (target(server), "/");
        let asking = pool.request(&mut carrier, &target, path, false, None);
        asking.await.unwrap();
    }
    carrier
}

fn connection(carrier: &Carrier) -> &Connection {
    match carrier {
        Carrier::Connection(connection) => connection,
        Carrier::Stream(_) => unreachable!("nobody asked for HTTP/2"),
    }
}

#[test]
fn the_connection_that_was_idle_for_the_shortest_time_is_taken() {
    let server = TestServer::start(|_, _| Reply::Body {
        bytes: 10,
        after: Duration::ZERO,
    });
    block_on(async {
        let pool = pool(&server, 3);
        let (once, twice) = (used(&pool, &server, 1).await, used(&pool, &server, 2).await);
        pool.put_back(twice).await;
        pool.put_back(once).await;
        assert!(!pool.is_last(pool.take().as_ref()), "the one used once");
        assert!(pool.is_last(pool.take().as_ref()), "the one used twice");
        assert!(pool.take().is_none());
    });
}

#[test]
fn a_connection_that_the_server_has_closed_is_forgotten() {
    let server = TestServer::start(|_, _| Reply::BodyThenClose { bytes: 10 });
    block_on(async {
        let pool = pool(&server, 3);
        pool.put_back(used(&pool, &server, 1).await).await;
        // Its end may still be on the way.
        while let Some(carrier) = pool.take() {
            pool.put_back(carrier).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn a_connection_made_again_counts_from_its_first_request() {
    let server = TestServer::start(|_, _| Reply::BodyThenClose { bytes: 10 });
    block_on(async {
        let carrier = used(&pool(&server, 9), &server, 3).await;
        assert_eq!(connection(&carrier).requests(), 1);
    });
}
