//! A closed system: a fixed number of users, each asking again when it has its answer and has
//! paused.
//!
//! The requests come from one sequence that the seed chooses, and the user who asks next takes the
//! next one: so every server gets the same sequence, only at other times. How long a user pauses
//! for the n-th time depends on the seed, the user and n alone, but that a failure ends a page of
//! SURGE's.

use crate::arrivals::{Arrival, MAX_REQUESTS};
use crate::rng::Rng;
use crate::surge::{References, SurgeModel, User};
use crate::trace::Trace;
use crate::wire::WireModel;

/// Names the random stream of the starting point, as in an open plan.
const PURPOSE_START: u64 = 2;
/// Names the random streams of the users, one each from here on.
const PURPOSE_USERS: u64 = 1 << 32;

/// Most users of a run: each may have a connection open.
pub const USERS_MAX: u32 = 100_000;

/// What users ask for, and how long they pause.
#[derive(Debug, Clone, PartialEq)]
pub enum Behaviour {
    /// The trace's requests in their order, from a start chosen by the seed.
    Trace {
        /// Mean of the exponential pause before each request, in seconds; 0: none.
        think_s: f64,
    },
    /// SURGE's pages. The requested objects are the model's files: those of
    /// [`crate::surge::trace`], with any seed.
    Surge(Box<SurgeModel>),
}

/// Who the users are.
#[derive(Debug, Clone, PartialEq)]
pub struct UsersOptions {
    /// Number of users, above 0.
    pub count: u32,
    /// What they do.
    pub behaviour: Behaviour,
    /// Chooses requests and pauses.
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
    count: u32,
    clients: u32,
    wire: WireModel,
    head_bytes: u64,
    pauses: Pauses,
    sequence: Sequence,
    asked: u64,
}

/// How long each user pauses.
enum Pauses {
    Thoughts { think_s: f64, thoughts: Vec<Rng> },
    Pages(Vec<User>),
}

/// What the next user requests, whichever user that is.
enum Sequence {
    Trace { next: u64 },
    Surge(References),
}

impl Pauses {
    fn new(options: &UsersOptions) -> Self {
        let (seed, users) = (options.seed, 0..options.count);
        match &options.behaviour {
            Behaviour::Trace { think_s } => {
                let rng = |user| Rng::new(seed, PURPOSE_USERS + u64::from(user));
                Self::Thoughts {
                    think_s: *think_s,
                    thoughts: users.map(rng).collect(),
                }
            }
            Behaviour::Surge(model) => {
                Self::Pages(users.map(|user| User::new(model, seed, user)).collect())
            }
        }
    }
}

impl Sequence {
    fn new(trace: &Trace, options: &UsersOptions) -> Self {
        match &options.behaviour {
            Behaviour::Trace { .. } => Self::Trace {
                next: Rng::new(options.seed, PURPOSE_START).below(trace.requests.len() as u64),
            },
            Behaviour::Surge(model) => Self::Surge(References::new(model, options.seed)),
        }
    }

    /// The next object; none where the trace has no such object.
    fn next_object(&mut self, trace: &Trace) -> Option<u32> {
        match self {
            Self::Trace { next } => {
                let place = next.checked_rem(trace.requests.len() as u64)?;
                *next += 1;
                Some(trace.requests[place as usize].object)
            }
            Self::Surge(references) => {
                let rank = references.next_rank();
                ((rank as usize) < trace.objects.len()).then_some(rank)
            }
        }
    }
}

impl Users {
    /// Users who have not requested anything of `trace` yet.
    pub fn new(trace: &Trace, options: &UsersOptions) -> Self {
        Self {
            count: options.count,
            clients: options.clients,
            wire: options.wire,
            head_bytes: options.head_bytes,
            pauses: Pauses::new(options),
            sequence: Sequence::new(trace, options),
            asked: 0,
        }
    }

    /// Number of users.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Source address of `user`.
    pub fn client(&self, user: u32) -> u32 {
        user % self.clients.max(1)
    }

    /// When `user` begins, in ns after the start.
    pub fn start_ns(&mut self, user: u32) -> u64 {
        match &mut self.pauses {
            Pauses::Thoughts { .. } => self.pause_ns(user, false),
            Pauses::Pages(users) => ns(users[user as usize].start_s()),
        }
    }

    /// How long `user` pauses before the next request, in ns, after one that `failed` or not.
    pub fn pause_ns(&mut self, user: u32, failed: bool) -> u64 {
        ns(match &mut self.pauses {
            Pauses::Thoughts { think_s, thoughts } => {
                thoughts[user as usize].exponential() * *think_s
            }
            Pauses::Pages(users) => users[user as usize].pause_s(failed),
        })
    }

    /// What `user` asks for at `at_ns` after the start; none after [`MAX_REQUESTS`]. Its work
    /// counts without a connection: whether one is opened shows when it is sent.
    pub fn ask(&mut self, trace: &Trace, user: u32, at_ns: u64) -> Option<Arrival> {
        if self.asked >= MAX_REQUESTS {
            return None;
        }
        let object = self.sequence.next_object(trace)?;
        self.asked += 1;
        let size_bytes = trace.objects[object as usize].size_bytes;
        Some(Arrival {
            at_ns,
            think_ns: None,
            client: self.client(user),
            object,
            new_connection: false,
            size_bytes,
            work_bytes: self.wire.work_bytes(size_bytes, self.head_bytes, false),
        })
    }
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(seed: u64) -> UsersOptions {
        UsersOptions {
            count: 3,
            behaviour: Behaviour::Trace { think_s: 2.0 },
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
            let mut users = Users::new(&trace, &options(1));
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
            Users::new(&trace, &options(1)),
            Users::new(&trace, &options(1)),
        );
        let think = |users: &mut Users, user| users.pause_ns(user, false);
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

    #[test]
    fn surges_users_ask_for_its_files_in_the_order_of_its_trace() {
        let model = SurgeModel::default();
        let trace = crate::surge::trace(&model, 1, 1).expect("the published model");
        let options = UsersOptions {
            behaviour: Behaviour::Surge(model.clone().into()),
            ..options(1)
        };
        let mut users = Users::new(&trace, &options);
        for (turn, request) in (0..).zip(&trace.requests) {
            let asked = users.ask(&trace, turn % 3, 5).expect("a request");
            let size_bytes = trace.object_of(request).size_bytes;
            assert_eq!(
                (asked.object, asked.size_bytes, asked.client),
                (request.object, size_bytes, turn % 3 % 2)
            );
        }
        let mut same = User::new(&model, 1, 2);
        assert_eq!(users.start_ns(2), ns(same.start_s()));
        for failed in [false, true, false] {
            assert_eq!(users.pause_ns(2, failed), ns(same.pause_s(failed)));
        }
    }
}
