//! Logs of servers that take requests one after the other: `fifo` with as many inside as there are
//! servers is what the log already has, and the forecast says so.

use super::queue::{Request, advised, advised_by, mean_ms, order, requests, shared};
use sooner_advise::queue::{Discipline, QueueFigures};
use sooner_workload::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Mean time alone, ns.
const MEAN_NS: f64 = 1e8;

/// How long requests take alone.
#[derive(Clone, Copy, Debug)]
enum Law {
    Exponential,
    Constant,
    Uniform,
}

fn of(law: Law, load: f64, servers: usize) -> Vec<Request> {
    let mut found = requests(10_000, load * servers as f64 / (MEAN_NS / 1e9), 31);
    let mut rng = Rng::new(31, 2);
    for one in &mut found {
        one.path = "/x";
        let times = match law {
            Law::Exponential => rng.exponential(),
            Law::Constant => 1.0,
            Law::Uniform => 0.5 + rng.uniform(),
        };
        one.alone_ns = (times * MEAN_NS) as u64;
    }
    found
}

/// Response times, ns, where each runs to its end and the others wait in the order of `next`.
fn in_turn(requests: &[Request], servers: usize, is_last_first: bool) -> Vec<u64> {
    let mut responses = vec![0; requests.len()];
    let mut busy: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut waiting = std::collections::VecDeque::new();
    let mut next = 0;
    while next < requests.len() || !busy.is_empty() {
        let arrival = requests.get(next).map_or(u64::MAX, |one| one.at_ns);
        let leave = busy.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        let now = arrival.min(leave);
        if arrival <= leave {
            waiting.push_back(next);
            next += 1;
        } else if let Some(Reverse((at, request))) = busy.pop() {
            responses[request] = at - requests[request].at_ns;
        }
        while busy.len() < servers {
            let taken = if is_last_first {
                waiting.pop_back()
            } else {
                waiting.pop_front()
            };
            let Some(request) = taken else { break };
            busy.push(Reverse((now + requests[request].alone_ns, request)));
        }
    }
    responses
}

fn near(found: f64, expected: f64, tolerance: f64, what: &str) {
    let off = (found / expected - 1.0).abs();
    assert!(off < tolerance, "{what}: {found}, truly {expected}");
}

/// The forecast for the log against what the servers do.
fn check(law: Law, load: f64, servers: usize) -> QueueFigures {
    let what = format!("{law:?}, load {load}, {servers} servers");
    let requests = of(law, load, servers);
    let took_ns = in_turn(&requests, servers, false);
    let figures = advised(&requests, &took_ns);
    assert_eq!(figures.discipline, Discipline::InTurn, "{what}");
    let curve = figures.curve.as_ref().expect("departures");
    assert_eq!(curve.servers, Some(servers), "{what}: {curve:?}");
    assert_eq!(curve.enough, Some(servers), "{what}: {curve:?}");
    let truly = mean_ms(&took_ns);
    near(order(&figures, "as-it-was").mean_ms, truly, 0.001, &what);
    near(order(&figures, "fifo").mean_ms, truly, 0.01, &what);
    assert_eq!(order(&figures, "fifo").limit, Some(servers), "{what}");
    // One kind: the queue knows nothing that sets them apart.
    near(order(&figures, "shortest").mean_ms, truly, 0.03, &what);
    near(
        order(&figures, "fifo").by_kind[0].alone_ms,
        MEAN_NS / 1e6,
        0.03,
        &what,
    );
    let said = figures.advice.join("\n");
    assert!(said.starts_with("Nothing to gain"), "{what}: {said}");
    assert!(
        said.contains("one request after the other"),
        "{what}: {said}"
    );
    assert!(!said.contains("overtake"), "{what}: {said}");
    let assumed = &figures.caveats[0];
    assert!(
        assumed.contains(&format!("{servers} at a time")),
        "{what}: {assumed}"
    );
    figures
}

#[test]
fn exponential_times_are_found_whatever_the_number_of_servers() {
    for (load, servers) in [(0.8, 1), (0.9, 2), (0.9, 4), (0.9, 12)] {
        let figures = check(Law::Exponential, load, servers);
        let perfect = order(&figures, "perfect").mean_ms;
        assert!(perfect < order(&figures, "fifo").mean_ms, "{figures:?}");
    }
}

#[test]
fn times_that_vary_little_are_found() {
    for servers in [1, 2, 4] {
        check(Law::Constant, 0.8, servers);
        check(Law::Uniform, 0.9, servers);
    }
}

#[test]
fn servers_that_share_are_not_taken_for_it() {
    for (law, servers) in [
        (Law::Exponential, 1),
        (Law::Exponential, 4),
        (Law::Constant, 1),
        (Law::Constant, 2),
        (Law::Uniform, 1),
        (Law::Uniform, 3),
    ] {
        let requests = of(law, 0.8, servers);
        let took_ns = shared(&requests, servers as f64, usize::MAX);
        let figures = advised(&requests, &took_ns);
        assert_eq!(figures.discipline, Discipline::Shared, "{law:?}, {servers}");
        let truly = mean_ms(&in_turn(&requests, servers, false));
        if let Some(fifo) = figures.orders.iter().find(|order| order.order == "fifo")
            && fifo.limit == Some(servers)
        {
            near(fifo.mean_ms, truly, 0.05, &format!("{law:?}, {servers}"));
        }
    }
}

/// The log is already what `fifo` gives, but its whole seconds do not show that.
#[test]
fn a_coarse_clock_promises_nothing_without_saying_what_it_cannot_tell() {
    let requests = of(Law::Exponential, 0.9, 1);
    let took_ns = in_turn(&requests, 1, false);
    let figures = advised_by(&requests, &took_ns, 0);
    assert_eq!(figures.discipline, Discipline::Unknown);
    let verdict = &figures.advice[0];
    assert!(verdict.starts_with("If the servers share"), "{verdict}");
    let said = figures.advice.join("\n");
    assert!(said.contains("one after the other"), "{said}");
    assert!(said.contains("log milliseconds"), "{said}");
    assert!(!said.contains("get slower"), "{said}");
    // Finer times tell.
    assert_eq!(
        advised_by(&requests, &took_ns, 3).discipline,
        Discipline::InTurn
    );
}

#[test]
fn what_is_neither_is_called_so() {
    let requests = of(Law::Exponential, 0.9, 1);
    let figures = advised(&requests, &in_turn(&requests, 1, true));
    assert_eq!(figures.discipline, Discipline::Neither);
    let said = figures.advice.join("\n");
    assert!(said.contains("do not rely on this forecast"), "{said}");
}
