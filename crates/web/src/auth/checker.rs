//! Checks passwords without holding anything else up.
//!
//! A check takes as long as a hundred pages: bcrypt is made to be slow. So it is done by another
//! thread, a few at a time, and what was found out is remembered: for each name and password one
//! keyed hash, so that the memory of the process holds no password. Checks wait in a queue of
//! bounded length, in which the client goes first that had the least of late: who tries many
//! passwords waits behind those who try one.

use super::Guard;
use crate::response::{Response, plain_with};
use hmac::{Hmac, KeyInit, Mac};
use hyper::StatusCode;
use hyper::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use rustls::crypto::ring::default_provider;
use sha2::Sha256;
use sooner_admission::{AdmissionSettings, ClientId, KIND_MEMORY, Order, Payer, Subject, Within};
use sooner_config::ClientNetwork;
use sooner_http::basic_auth::Credentials;
use sooner_limiter::{Acquire, Limiter};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::thread;
use tokio::sync::Notify;
use tokio::task::{spawn_blocking, spawn_local};

/// Names with their passwords that are remembered as right, and as wrong as many again.
const REMEMBERED_MAX: usize = 4096;
/// Different checks that one client may have waiting or under way.
const CLIENT_CHECKS_MAX: usize = 32;
/// Those of one network.
const NETWORK_CHECKS_MAX: usize = 64;
/// Those of all.
const CHECKS_MAX: usize = 4096;

/// A keyed hash of a file, a name and a password.
type Digest = [u8; 32];

/// Checks passwords. Clones are the same one.
#[derive(Clone)]
pub struct Checker(Rc<State>);

struct State {
    key: [u8; 64],
    limiter: Limiter,
    right: RefCell<Remembered>,
    wrong: RefCell<Remembered>,
    under_way: RefCell<HashMap<Digest, Rc<Check>>>,
    /// How many checks each client and each network has.
    counts: RefCell<HashMap<(bool, ClientId), usize>>,
}

/// A check that waits or is under way; all with the same name and password wait for it.
pub struct Check {
    outcome: Cell<Option<Outcome>>,
    is_over: Notify,
}

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The user has this password.
    Right,
    /// There is no such user, or the password is another.
    Wrong,
    /// Too many checks wait: nothing was found out.
    Busy,
}

/// What is known of a request at once.
pub enum Looked {
    /// All of it.
    Known(Outcome),
    /// It has to be checked.
    Later(Rc<Check>),
}

impl Check {
    /// Waits for the outcome.
    pub async fn outcome(&self) -> Outcome {
        loop {
            let is_over = self.is_over.notified();
            if let Some(outcome) = self.outcome.get() {
                return outcome;
            }
            is_over.await;
        }
    }
}

/// Nothing is remembered yet. At most half of the processors check passwords at a time.
impl Default for Checker {
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, |count| count.get());
        Self::with_places((processors / 2).max(1))
    }
}

impl Checker {
    fn with_places(places: usize) -> Self {
        let mut key = [0; 64];
        // Where the system has no randomness, no `HashMap` can be made either.
        _ = default_provider().secure_random.fill(&mut key);
        Self(Rc::new(State {
            key,
            limiter: Limiter::new(AdmissionSettings {
                limit: places,
                order: Order::LeastUsed(Within::Fcfs),
                waiting_max: Some(CHECKS_MAX),
                kind_memory: KIND_MEMORY,
            }),
            right: RefCell::default(),
            wrong: RefCell::default(),
            under_way: RefCell::default(),
            counts: RefCell::default(),
        }))
    }

    /// Whether the client at `network` brings the name and password of a user; the check begins
    /// where that is not known. Needs a `LocalSet` around it.
    pub fn look(
        &self,
        guard: &Guard,
        credentials: Option<Credentials>,
        network: ClientNetwork,
    ) -> Looked {
        let Some(credentials) = credentials else {
            return Looked::Known(Outcome::Wrong);
        };
        let state = &self.0;
        let digest = state.digest(guard, &credentials);
        if let Some(outcome) = state.remembered(&digest) {
            return Looked::Known(outcome);
        }
        if let Some(check) = state.under_way.borrow().get(&digest) {
            return Looked::Later(check.clone());
        }
        let payer = network.payer();
        if !state.enter(payer) {
            return Looked::Known(Outcome::Busy);
        }
        let check = Rc::new(Check {
            outcome: Cell::new(None),
            is_over: Notify::new(),
        });
        state.under_way.borrow_mut().insert(digest, check.clone());
        let subject = Subject {
            payer: Some(payer),
            ..Subject::from("password")
        };
        let place = state.limiter.acquire(0, subject);
        let (this, users) = (self.clone(), guard.users.clone());
        spawn_local(async move {
            let outcome = checked(place, users, credentials).await;
            this.0.finish(digest, payer, outcome);
        });
        Looked::Later(check)
    }
}

/// Waits for a place, and has another thread check.
async fn checked(
    place: Acquire,
    users: std::sync::Arc<super::Users>,
    credentials: Credentials,
) -> Outcome {
    let Ok(permit) = place.await else {
        return Outcome::Busy;
    };
    let checking = spawn_blocking(move || {
        let is_right = users.know(&credentials.user, &credentials.password);
        permit.complete();
        is_right
    });
    match checking.await {
        Ok(true) => Outcome::Right,
        Ok(false) => Outcome::Wrong,
        Err(_) => Outcome::Busy,
    }
}

impl State {
    fn digest(&self, guard: &Guard, credentials: &Credentials) -> Digest {
        let mut hash = <Hmac<Sha256> as KeyInit>::new(&self.key.into());
        hash.update(&guard.users.id);
        // The name is shorter than 256 bytes.
        hash.update(&[credentials.user.len() as u8]);
        hash.update(&credentials.user);
        hash.update(&credentials.password);
        hash.finalize().into_bytes().into()
    }

    fn remembered(&self, digest: &Digest) -> Option<Outcome> {
        if self.right.borrow().has(digest) {
            return Some(Outcome::Right);
        }
        self.wrong.borrow().has(digest).then_some(Outcome::Wrong)
    }

    /// Counts a check, unless its client or its network has too many.
    fn enter(&self, payer: Payer) -> bool {
        let mut counts = self.counts.borrow_mut();
        let bounds = [CLIENT_CHECKS_MAX, NETWORK_CHECKS_MAX];
        let has_room = keys(payer)
            .zip(bounds)
            .all(|(key, most)| counts.get(&key).is_none_or(|&count| count < most));
        if has_room {
            for key in keys(payer) {
                *counts.entry(key).or_default() += 1;
            }
        }
        has_room
    }

    fn finish(&self, digest: Digest, payer: Payer, outcome: Outcome) {
        match outcome {
            Outcome::Right => self.right.borrow_mut().add(digest),
            Outcome::Wrong => self.wrong.borrow_mut().add(digest),
            Outcome::Busy => {}
        }
        let mut counts = self.counts.borrow_mut();
        for key in keys(payer) {
            if let Some(count) = counts.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&key);
                }
            }
        }
        if let Some(check) = self.under_way.borrow_mut().remove(&digest) {
            check.outcome.set(Some(outcome));
            check.is_over.notify_waiters();
        }
    }
}

/// What a check is counted under: its client and its network.
fn keys(payer: Payer) -> impl Iterator<Item = (bool, ClientId)> {
    let client = (false, payer.client);
    std::iter::once(client).chain(payer.network.map(|network| (true, network)))
}

/// The last few hashes.
#[derive(Default)]
struct Remembered {
    all: HashSet<Digest>,
    oldest_first: VecDeque<Digest>,
}

impl Remembered {
    fn has(&self, digest: &Digest) -> bool {
        self.all.contains(digest)
    }

    fn add(&mut self, digest: Digest) {
        if self.all.insert(digest) {
            self.oldest_first.push_back(digest);
        }
        if self.oldest_first.len() > REMEMBERED_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.all.remove(&oldest);
        }
    }
}

/// The response to a request that may not pass; `None` for one that may.
pub fn refusal(guard: &Guard, outcome: Outcome) -> Option<Response> {
    match outcome {
        Outcome::Right => None,
        Outcome::Wrong => Some(plain_with(
            StatusCode::UNAUTHORIZED,
            "this page needs a name and a password",
            WWW_AUTHENTICATE,
            guard.challenge.clone(),
        )),
        Outcome::Busy => Some(plain_with(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many passwords to check, try again",
            RETRY_AFTER,
            HeaderValue::from_static("1"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Users;
    use std::sync::Arc;
    use std::time::Instant;
    use tokio::task::LocalSet;

    /// `anna` has `password`, kept by bcrypt with this cost.
    fn guard(cost: u32) -> Guard {
        let hash = bcrypt::hash("password", cost).unwrap();
        let users = Users::parse(format!("anna:{hash}").as_bytes())
            .ok()
            .unwrap();
        Guard {
            users: Arc::new(users),
            challenge: HeaderValue::from_static("Basic realm=\"a\""),
        }
    }

    fn credentials(user: &str, password: &str) -> Option<Credentials> {
        Some(Credentials {
            user: user.into(),
            password: password.into(),
        })
    }

    fn from(last: u8) -> ClientNetwork {
        ClientNetwork::V4([192, 0, 2, last].into())
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        LocalSet::new().block_on(&runtime.unwrap(), test);
    }

    async fn outcome(looked: Looked) -> Outcome {
        match looked {
            Looked::Known(outcome) => outcome,
            Looked::Later(check) => check.outcome().await,
        }
    }

    #[test]
    fn what_was_found_out_is_known_from_then_on() {
        run(async {
            let (checker, guard) = (Checker::with_places(1), guard(4));
            for (user, password, expected) in [
                ("anna", "password", Outcome::Right),
                ("anna", "Password", Outcome::Wrong),
                ("bert", "password", Outcome::Wrong),
                ("annap", "assword", Outcome::Wrong),
            ] {
                let look = || checker.look(&guard, credentials(user, password), from(1));
                let first = look();
                assert!(matches!(first, Looked::Later(_)), "{user}");
                assert_eq!(outcome(first).await, expected, "{user}");
                assert!(matches!(look(), Looked::Known(known) if known == expected));
            }
            let none = checker.look(&guard, None, from(1));
            assert!(matches!(none, Looked::Known(Outcome::Wrong)));
            assert!(checker.0.counts.borrow().is_empty());
            assert!(checker.0.under_way.borrow().is_empty());
        });
    }

    #[test]
    fn another_file_is_another_matter() {
        run(async {
            let (checker, one, other) = (Checker::with_places(1), guard(4), guard(4));
            let looked = checker.look(&one, credentials("anna", "password"), from(1));
            assert_eq!(outcome(looked).await, Outcome::Right);
            let looked = checker.look(&other, credentials("anna", "password"), from(1));
            assert!(matches!(looked, Looked::Later(_)));
        });
    }

    #[test]
    fn one_check_answers_all_that_wait_for_it() {
        run(async {
            let (checker, guard) = (Checker::with_places(1), guard(4));
            let waiting: Vec<_> = (0..100)
                .map(|_| checker.look(&guard, credentials("anna", "password"), from(1)))
                .collect();
            assert_eq!(checker.0.under_way.borrow().len(), 1);
            for looked in waiting {
                assert_eq!(outcome(looked).await, Outcome::Right);
            }
        });
    }

    #[test]
    fn a_flood_is_bounded_and_does_not_hold_up_others() {
        run(async {
            let (checker, guard) = (Checker::with_places(1), guard(4));
            let mut flood = VecDeque::new();
            for attempt in 0..1000 {
                let password = format!("password{attempt}");
                // Four addresses of one network.
                let network = from((attempt % 4) as u8);
                let looked = checker.look(&guard, credentials("anna", &password), network);
                if let Looked::Later(check) = looked {
                    flood.push_back(check);
                }
            }
            assert_eq!(flood.len(), NETWORK_CHECKS_MAX);
            let begin = Instant::now();
            let elsewhere = ClientNetwork::V4([198, 51, 100, 1].into());
            let looked = checker.look(&guard, credentials("anna", "password"), elsewhere);
            assert_eq!(outcome(looked).await, Outcome::Right);
            let is_over = |check: &&Rc<Check>| check.outcome.get().is_some();
            // The one that was under way already, and one that may have begun.
            let passed = flood.iter().filter(is_over).count();
            assert!(passed <= 2, "{passed} in {:?}", begin.elapsed());
            for check in flood {
                assert_eq!(check.outcome().await, Outcome::Wrong);
            }
            assert!(checker.0.counts.borrow().is_empty());
        });
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut remembered = Remembered::default();
        for number in 0..2 * REMEMBERED_MAX as u64 {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_le_bytes());
            remembered.add(digest);
            remembered.add(digest);
        }
        assert_eq!(remembered.all.len(), REMEMBERED_MAX);
        assert_eq!(remembered.oldest_first.len(), REMEMBERED_MAX);
    }
}
