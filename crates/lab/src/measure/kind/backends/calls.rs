//! Clients of a server behind a proxy: some that each always wait for an answer, or requests that
//! come by chance.

use super::tiers::{self, Tier};
use crate::measure::kind::workers::asking::{fetch, on_core};
use anyhow::Result;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::LocalSet;
use tokio::time::{sleep, sleep_until, timeout};

/// Longer takes no request here.
const PATIENCE: Duration = Duration::from_secs(120);
/// After an error a client waits for so long.
const AFTER_ERROR: Duration = Duration::from_millis(100);
/// So often it is looked whether all is over.
const LOOK: Duration = Duration::from_millis(50);

/// What is requested.
#[derive(Debug, Clone)]
pub struct Route {
    pub name: String,
    /// Mean, in ms of processor time or tokens; each request has half of it to one and a half.
    pub size: f64,
    /// Of a hundred requests.
    pub share: u32,
    /// Whether it is a completion of a chat.
    pub is_chat: bool,
    /// The disks that a request uses one of; 0: none.
    pub disks: u32,
}

impl Route {
    fn request(&self, size: f64, tier: usize) -> String {
        let Self { name, disks, .. } = self;
        let class = format!("{}: {}", tiers::HEADER, tiers::name(tier));
        if !self.is_chat {
            let us = (1000.0 * size).round();
            let path = format!("/w.php?route={name}&us={us}&disks={disks}");
            return format!("GET {path} HTTP/1.0\r\nHost: x\r\n{class}\r\n\r\n");
        }
        let body = format!(
            "{{\"model\":\"{name}\",\"max_tokens\":{size},\"messages\":[{{\"role\":\"user\",\"content\":\"Hello\"}}]}}"
        );
        let length = body.len();
        format!(
            "POST /v1/chat/completions HTTP/1.0\r\nHost: x\r\n{class}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
    }
}

/// An answer that came.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// Since the beginning.
    pub at: Duration,
    pub ms: f64,
    /// Of its request.
    pub size: f64,
    pub route: usize,
    /// Its class.
    pub tier: usize,
    pub is_right: bool,
}

/// Who asks for what.
#[derive(Debug)]
pub struct Calls {
    pub address: SocketAddr,
    /// The clients'.
    pub core: &'static str,
    pub routes: Vec<Route>,
    pub tiers: Vec<Tier>,
    pub seed: u64,
    pub clients: Option<u32>,
    pub per_second: Option<f64>,
}

impl Calls {
    /// Until it is over; all answers that came by then.
    pub fn run(&self, is_over: &AtomicBool) -> Result<Vec<Answer>> {
        on_core(self.core, || async {
            let answers = Rc::new(RefCell::new(Vec::new()));
            let all = LocalSet::new();
            let begin = Instant::now();
            for client in 0..self.clients.unwrap_or(0) {
                let drawn = Drawn::new(self, 1000 * self.seed + u64::from(client));
                let answers = Rc::clone(&answers);
                all.spawn_local(wait_and_ask_again(self.address, drawn, begin, answers));
            }
            if let Some(rate) = self.per_second {
                let drawn = Drawn::new(self, self.seed);
                let answers = Rc::clone(&answers);
                all.spawn_local(ask_at_times(self.address, rate, drawn, begin, answers));
            }
            let over = async {
                while !is_over.load(Ordering::Relaxed) {
                    sleep(LOOK).await;
                }
            };
            all.run_until(over).await;
            answers.take()
        })
    }
}

type Answers = Rc<RefCell<Vec<Answer>>>;

async fn wait_and_ask_again(
    address: SocketAddr,
    mut drawn: Drawn,
    begin: Instant,
    answers: Answers,
) {
    loop {
        let answer = ask(address, drawn.next(), begin).await;
        answers.borrow_mut().push(answer);
        if !answer.is_right {
            sleep(AFTER_ERROR).await;
        }
    }
}

async fn ask_at_times(
    address: SocketAddr,
    per_second: f64,
    mut drawn: Drawn,
    begin: Instant,
    answers: Answers,
) {
    let mut at_s = 0.0;
    loop {
        at_s -= drawn.uniform().ln() / per_second;
        sleep_until((begin + Duration::from_secs_f64(at_s)).into()).await;
        let (answers, call) = (Rc::clone(&answers), drawn.next());
        tokio::task::spawn_local(async move {
            let answer = ask(address, call, begin).await;
            answers.borrow_mut().push(answer);
        });
    }
}

async fn ask(address: SocketAddr, call: Call, begin: Instant) -> Answer {
    let sent = begin.elapsed();
    let answer = timeout(PATIENCE, fetch(address, &call.request)).await;
    let at = begin.elapsed();
    Answer {
        at,
        ms: (at - sent).as_secs_f64() * 1000.0,
        size: call.size,
        route: call.route,
        tier: call.tier,
        is_right: matches!(answer, Ok(Ok(true))),
    }
}

struct Call {
    request: String,
    size: f64,
    route: usize,
    tier: usize,
}

/// Requests by chance; the same for the same seed.
struct Drawn {
    random: Pcg64Mcg,
    routes: Vec<Route>,
    /// Shares of the classes.
    tiers: Vec<f64>,
}

impl Drawn {
    fn new(calls: &Calls, seed: u64) -> Self {
        Self {
            random: Pcg64Mcg::seed_from_u64(seed),
            routes: calls.routes.clone(),
            tiers: calls.tiers.iter().map(|tier| tier.share).collect(),
        }
    }

    /// Above 0, below 1.
    fn uniform(&mut self) -> f64 {
        ((self.random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn next(&mut self) -> Call {
        let share = self.uniform();
        let shares = self
            .routes
            .iter()
            .map(|route| f64::from(route.share) / 100.0);
        let route = place(shares, share);
        let size = (self.routes[route].size * (0.5 + self.uniform())).round();
        let share = self.uniform();
        let tier = place(self.tiers.iter().copied(), share);
        Call {
            request: self.routes[route].request(size, tier),
            size,
            route,
            tier,
        }
    }
}

/// Which of these shares a number below 1 falls in; the first, if in none.
fn place(mut shares: impl Iterator<Item = f64>, number: f64) -> usize {
    let mut below = 0.0;
    let found = shares.position(|share| {
        below += share;
        number < below
    });
    found.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_come_by_their_shares_and_the_same_for_a_seed() {
        let route = |name: &str, size, share| Route {
            name: name.into(),
            size,
            share,
            is_chat: false,
            disks: 0,
        };
        let routes = [route("short", 10.0, 90), route("long", 100.0, 10)];
        let calls = |seed| {
            let calls = Calls {
                address: SocketAddr::from(([127, 0, 0, 1], 80)),
                core: "0",
                routes: routes.to_vec(),
                tiers: Vec::new(),
                seed,
                clients: None,
                per_second: None,
            };
            let mut drawn = Drawn::new(&calls, seed);
            let calls = (0..10_000).map(|_| drawn.next());
            calls.collect::<Vec<_>>()
        };
        let all = calls(1);
        let long = all.iter().filter(|call| call.route == 1).count();
        assert!((900..1100).contains(&long), "{long}");
        let mean = all.iter().map(|call| call.size).sum::<f64>() / 10_000.0;
        assert!((mean - 19.0).abs() < 1.0, "{mean}");
        let again = calls(1);
        assert!(
            all.iter()
                .zip(&again)
                .all(|(one, other)| one.request == other.request)
        );
    }
}
