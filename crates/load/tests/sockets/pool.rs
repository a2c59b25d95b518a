//! Which connection a request gets.

use crate::replay::block_on;
use crate::server::{Reply, TestServer};
use sooner_load::connection::{Client, Connection};
use sooner_load::pool::Pool;
use std::num::NonZeroU32;
use std::time::Duration;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: test\r\n\r\n";

fn pool(server: &TestServer, requests_per_connection: u32) -> Pool {
    let most = NonZeroU32::new(requests_per_connection).unwrap();
    Pool::new(Client::default(), server.address, most)
}

/// A new connection that has carried so many requests.
async fn used(pool: &Pool, requests: u32) -> Connection {
    let mut connection = pool.connect().1.unwrap();
    for _ in 0..requests {
        connection.request(REQUEST, None).await.unwrap();
    }
    connection
}

#[test]
fn the_connection_that_was_idle_for_the_shortest_time_is_taken() {
    let server = TestServer::start(|_, _| Reply::Body {
        bytes: 10,
        after: Duration::ZERO,
    });
    block_on(async {
        let pool = pool(&server, 3);
        let (once, twice) = (used(&pool, 1).await, used(&pool, 2).await);
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
        pool.put_back(used(&pool, 1).await).await;
        // Its end may still be on the way.
        while let Some(connection) = pool.take() {
            pool.put_back(connection).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn a_connection_made_again_counts_from_its_first_request() {
    let server = TestServer::start(|_, _| Reply::BodyThenClose { bytes: 10 });
    block_on(async {
        let connection = used(&pool(&server, 9), 3).await;
        assert_eq!(connection.requests(), 1);
    });
}
