//! A closed system: a fixed number of users, each asking again when it has its answer and has thought.
//!
//! The requests are those of the trace in its order, from a start chosen by the seed, and whoever asks next takes the next one:
//! so every server is asked for the same sequence, only at other times. How long a user thinks for the n-th time depends on
//! the seed, the user and n alone.

use crate::arrivals::{Arrival, MAX_REQUESTS};
use crate::rng::Rng;
use crate::trace::Trace;
use crate::wire::WireModel;

/// Names the random stream of the starting point, as in an open plan.
const PURPOSE_START: u64 = 2;
/// Names the random streams of the users, one each from here on.
const PURPOSE_USERS: u64 = 1 << 32;

/// Most users of a run: each may have a connection open.
pub const USERS_MAX: u32 = 100_000;

/// What the users do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UsersOptions {
    /// Number of users, above 0.
    pub count: u32,
    /// Mean of the exponential pause before each request, in seconds; 0: none.
    pub think_s: f64,
    /// Chooses the starting point in the trace and the pauses.
    pub seed: u64,
    /// Source addresses, above 0; user i has number i modulo that.
    pub clients: u32,
    /// What is spoken on the wire.
    pub wire: WireModel,
    /// Bytes of every response's head.
    pub head_bytes: u64,
}

/// The users of a run.
pub struct Users {
    options: UsersOptions,
    thoughts: Vec<Rng>,
    next: u64,
    asked: u64,
}

impl Users {
    /// Users who have not asked for anything of `trace` yet.
    pub fn new(trace: &Trace, options: UsersOptions) -> Self {
        let rng = |user| Rng::new(options.seed, PURPOSE_USERS + u64::from(user));
        Self {
            options,
            thoughts: (0..options.count).map(rng).collect(),
            next: Rng::new(options.seed, PURPOSE_START).below(trace.requests.len() as u64),
            asked: 0,
        }
    }

    /// Number of users.
    pub fn count(&self) -> u32 {
        self.options.count
    }

    /// Source address of `user`.
    pub fn client(&self, user: u32) -> u32 {
        user % self.options.clients.max(1)
    }

    /// How long `user` thinks before the next request, in ns.
    pub fn think_ns(&mut self, user: u32) -> u64 {
        (self.thoughts[user as usize].exponential() * self.options.think_s * 1e9) as u64
    }

    /// What `user` asks for at `at_ns` after the start; none after [`MAX_REQUESTS`]. Its work counts without a connection:
    /// whether one is opened shows when it is sent.
    pub fn ask(&mut self, trace: &Trace, user: u32, at_ns: u64) -> Option<Arrival> {
        if self.asked >= MAX_REQUESTS {
            return None;
        }
        let request = &trace.requests[(self.next % trace.requests.len() as u64) as usize];
        self.next += 1;
        self.asked += 1;
        let size_bytes = trace.object_of(request).size_bytes;
        let UsersOptions {
            wire, head_bytes, ..
        } = self.options;
        Some(Arrival {
            at_ns,
            think_ns: None,
            client: self.client(user),
            object: request.object,
            new_connection: false,
            size_bytes,
            work_bytes: wire.work_bytes(size_bytes, head_bytes, false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(seed: u64) -> UsersOptions {
        UsersOptions {
            count: 3,
            think_s: 2.0,
            seed,
            clients: 2,
            wire: WireModel::default(),
            head_bytes: 200,
        }
    }

    #[test]
    fn whoever_asks_takes_the_next_request_of_the_trace() {
        let trace = Trace::embedded("epa").expect("it is built in");
        let sequence = |order: [u32; 6]| {
            let mut users = Users::new(&trace, options(1));
            order.map(|user| users.ask(&trace, user, 0).expect("a request").object)
        };
        let objects = sequence([0, 1, 2, 0, 1, 2]);
        assert_eq!(objects, sequence([2, 2, 2, 1, 0, 0]));
        let traced: Vec<u32> = trace
            .requests
            .iter()
            .map(|request| request.object)
            .collect();
        assert!(traced.windows(6).any(|window| window == objects));
    }

    #[test]
    fn a_users_thoughts_are_its_own() {
        let trace = Trace::embedded("epa").expect("it is built in");
        let (mut alone, mut beside) = (
            Users::new(&trace, options(1)),
            Users::new(&trace, options(1)),
        );
        let think = |users: &mut Users, user| users.think_ns(user);
        for _ in 0..5 {
            think(&mut beside, 0);
        }
        let first: Vec<u64> = (0..2000).map(|_| think(&mut alone, 1)).collect();
        let second: Vec<u64> = (0..2000).map(|_| think(&mut beside, 1)).collect();
        assert_eq!(first, second);
        let mean_s = first.iter().sum::<u64>() as f64 / 2000.0 / 1e9;
        assert!((mean_s - 2.0).abs() < 0.15, "{mean_s}");
        assert_eq!([0, 1, 2].map(|user| alone.client(user)), [0, 1, 0]);
    }
}
