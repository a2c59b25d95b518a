//! How many requests a server may have, and by what its limit is found.

use super::*;
use crate::proxy::endpoint::Endpoint;
use sooner_limiter::bounds;

fn server(limit: ServerLimit) -> Server {
    let endpoint = Endpoint::parse("http://127.0.0.1:1").unwrap();
    let connector = Connector::new(endpoint, None).unwrap();
    let health = HealthLimits {
        fails: 1,
        checks: None,
    };
    Server::new(connector, health, limit, 1)
}

/// Whether another limit is tried within a minute in which requests wait and are answered.
fn tries_another(is_error: bool) -> bool {
    let server = server(ServerLimit::Found(bounds(256, 0.05)));
    (1..600).any(|look| {
        let now = Time::from_ns(look * 100_000_000);
        let entry = server.enter(now);
        for _ in 0..100 {
            server.served(1_000_000, is_error);
        }
        server.leave(entry, now);
        let whole = Window {
            duration_ns: 100_000_000,
            backlogged_ns: 100_000_000,
            ..Window::default()
        };
        server.look_for_limit(&whole, &[], now).is_some()
    })
}

#[test]
fn errors_are_no_work_by_which_a_limit_is_found() {
    assert!(tries_another(false) && !tries_another(true));
}

#[test]
fn what_is_left_from_another_way_to_reach_it_takes_places() {
    let server = server(ServerLimit::Fixed(4));
    let now = Time::ZERO;
    let left = |in_flight, yielders| {
        let elsewhere = Load {
            in_flight,
            yielders,
        };
        let beside = Beside {
            elsewhere,
            is_another_up: true,
        };
        server.capacity(now, beside)
    };
    assert_eq!([left(0, 0), left(3, 0), left(4, 0)], [4, 1, 0]);
    assert_eq!([left(3, 2), left(9, 9), left(6, 6)], [3, 0, 2]);
    // One finds out how it is, whatever is left.
    server.failed(now);
    let later = now.after(2_000_000_000);
    let beside = |in_flight| Beside {
        elsewhere: Load {
            in_flight,
            yielders: 0,
        },
        is_another_up: true,
    };
    assert_eq!(server.capacity(now, beside(3)), 0);
    assert_eq!(server.capacity(later, beside(3)), 1);
    assert_eq!(server.capacity(later, beside(0)), 1);
}

#[test]
fn a_probe_that_takes_long_makes_room_for_others_where_no_other_server_is_up() {
    let server = server(ServerLimit::Fixed(4));
    let at = |tenths: u64| Time::from_ns(tenths * 100_000_000);
    let capacity = |tenths, is_another_up| {
        let beside = Beside {
            elsewhere: Load::default(),
            is_another_up,
        };
        server.capacity(at(tenths), beside)
    };
    let left_over = server.enter(at(0));
    server.failed(at(0));
    assert_eq!([9, 10, 90].map(|now| capacity(now, false)), [0, 2, 2]);
    let probe = server.enter(at(90));
    assert_eq!([99, 100, 110].map(|now| capacity(now, false)), [2, 3, 4]);
    // It gets no more than its limit, and what is left from before takes places.
    assert_eq!((capacity(999, false), capacity(999, true)), (4, 2));
    // One that ends and tells nothing begins nothing.
    server.leave(probe, at(120));
    assert_eq!(capacity(999, false), 2);
    let failing = server.enter(at(999));
    server.failed(at(1020));
    assert_eq!([1021, 1040].map(|now| capacity(now, false)), [0, 3]);
    server.leave(failing, at(1040));
    server.leave(left_over, at(1040));
    assert_eq!(capacity(1099, false), 1);
}
