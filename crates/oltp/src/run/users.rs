//! The users, as tasks on one thread.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use sooner_workload::Rng;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::measured::{Done, Recorder};
use super::{Measured, Model, Options};
use crate::{Ended, Failure, Kit, Place, Session, Unusable};

/// A transaction in the way of others is tried so often.
const TRIES_MAX: u32 = 100;
/// Before the next try comes a pause that is longer each time, or two keep meeting.
const STEP: Duration = Duration::from_millis(1);
const STEPS_MAX: u32 = 16;
/// Streams of random numbers: those of users are counted from here.
const USERS_PURPOSE: u64 = 1000;

/// Carries a run out; needs a `LocalSet`. `say` is told when it begins.
pub async fn run<K: Kit + 'static>(
    kit: Rc<K>,
    place: &Place,
    options: &Options,
    say: impl Fn(&str),
) -> Result<Measured, Unusable> {
    let count = match options.model {
        Model::Closed { users, .. } => users,
        Model::Open { sessions, .. } | Model::PartlyOpen { sessions, .. } => sessions,
    };
    let mut users = Vec::new();
    for number in 0..count {
        users.push(User::open(kit.clone(), place, options, number).await?);
    }
    say(&format!("{count} users are here"));
    let shared = Rc::new(Shared {
        options: options.clone(),
        begin: Instant::now(),
        recorder: RefCell::new(Recorder::new(options.warm_up, options.measured)),
    });
    match options.model {
        Model::Closed { think, .. } => closed(users, &shared, think).await,
        Model::Open { rate_per_sec, .. } => {
            let visit = Visit {
                rate_per_sec,
                transactions: 1.0,
                think: Duration::ZERO,
            };
            visits(users, &shared, visit).await;
        }
        Model::PartlyOpen {
            rate_per_sec,
            transactions,
            think,
            ..
        } => {
            let visit = Visit {
                rate_per_sec,
                transactions,
                think,
            };
            visits(users, &shared, visit).await;
        }
    }
    let nothing = Recorder::new(Duration::ZERO, Duration::ZERO);
    Ok(shared.recorder.replace(nothing).finish())
}

/// What all users share.
struct Shared {
    options: Options,
    begin: Instant,
    recorder: RefCell<Recorder>,
}

impl Shared {
    /// The one clock of a run: from its beginning.
    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    fn is_over(&self) -> bool {
        self.now() >= self.recorder.borrow().until
    }

    fn ended(&self, wanted: Duration, done: Done) {
        self.recorder.borrow_mut().ended(wanted, self.now(), done);
    }
}

struct User<K: Kit> {
    kit: Rc<K>,
    state: K::User,
    random: Rng,
    /// One for each class.
    sessions: Vec<Session>,
}

impl<K: Kit> User<K> {
    async fn open(
        kit: Rc<K>,
        place: &Place,
        options: &Options,
        number: u32,
    ) -> Result<Self, Unusable> {
        let mut random = Rng::new(options.seed, USERS_PURPOSE + u64::from(number));
        let mut sessions = Vec::new();
        for class in &options.classes {
            let Options {
                isolation,
                statements,
                ..
            } = *options;
            let texts = kit.statements();
            let session = Session::open(place, &class.name, texts, isolation, statements);
            sessions.push(session.await?);
        }
        Ok(Self {
            state: kit.user(number, &mut random),
            kit,
            random,
            sessions,
        })
    }

    /// The next transaction, tried again while it is in the way of others.
    async fn next(&mut self, options: &Options) -> Done {
        let done = self.try_next(options).await;
        done.map_err(|failure| failure.sqlstate())
    }

    async fn try_next(&mut self, options: &Options) -> Result<(usize, usize, u32, bool), Failure> {
        let kind = self.kit.draw(&mut self.state, &mut self.random);
        let name = self.kit.kinds()[kind];
        let class = options.class(name, self.random.uniform());
        let remark = match options.remarks {
            true => format!("/*class='{}',kind='{name}'*/ ", options.classes[class].name),
            false => String::new(),
        };
        let session = &self.sessions[class];
        let mut retries = 0;
        let values = self.random.clone();
        loop {
            // The same values again.
            let mut random = values.clone();
            let carried_out =
                self.kit
                    .carry_out(session, &mut self.state, kind, &remark, &mut random);
            match carried_out.await {
                Ok(ended) => {
                    self.random = random;
                    return Ok((class, kind, retries, ended == Ended::RolledBack));
                }
                Err(failure) if failure.is_conflict() && retries < TRIES_MAX => {
                    session.roll_back().await?;
                    retries += 1;
                    let steps = f64::from(retries.min(STEPS_MAX));
                    sleep(STEP.mul_f64(steps * self.random.exponential())).await;
                }
                Err(failure) => {
                    self.random = random;
                    if !session.is_closed() {
                        session.roll_back().await?;
                    }
                    return Err(failure);
                }
            }
        }
    }
}

async fn closed<K: Kit + 'static>(users: Vec<User<K>>, shared: &Rc<Shared>, think: Duration) {
    let mut tasks = JoinSet::new();
    for mut user in users {
        let shared = shared.clone();
        tasks.spawn_local(async move {
            while !shared.is_over() {
                let wanted = shared.now();
                let done = user.next(&shared.options).await;
                // A connection that is gone does not come back.
                let is_gone = user.sessions.iter().any(Session::is_closed);
                shared.ended(wanted, done);
                if is_gone {
                    return;
                }
                if !think.is_zero() {
                    sleep(think.mul_f64(user.random.exponential())).await;
                }
            }
        });
    }
    tasks.join_all().await;
}

/// What comes from outside.
#[derive(Clone, Copy)]
struct Visit {
    rate_per_sec: f64,
    /// Mean number of transactions.
    transactions: f64,
    think: Duration,
}

async fn visits<K: Kit + 'static>(users: Vec<User<K>>, shared: &Rc<Shared>, visit: Visit) {
    let count = users.len();
    let free = Rc::new(RefCell::new(users));
    let places = Rc::new(Semaphore::new(count));
    let mut random = Rng::new(shared.options.seed, 2);
    let until = shared.recorder.borrow().until;
    let mut at = shared.now();
    let mut tasks = JoinSet::new();
    while at < until {
        sleep_until(shared.begin + at).await;
        let has_session = places.available_permits() > 0;
        let mut recorder = shared.recorder.borrow_mut();
        recorder.came(at, shared.now(), has_session);
        drop(recorder);
        let (shared, free, places) = (shared.clone(), free.clone(), places.clone());
        let mut wanted = at;
        tasks.spawn_local(async move {
            // Closed only with everything else.
            let Ok(_place) = places.acquire().await else {
                return;
            };
            let Some(mut user) = free.borrow_mut().pop() else {
                return;
            };
            loop {
                let done = user.next(&shared.options).await;
                shared.ended(wanted, done);
                let goes_on = user.random.uniform() < 1.0 - 1.0 / visit.transactions;
                if !goes_on || user.sessions.iter().any(Session::is_closed) {
                    break;
                }
                sleep(visit.think.mul_f64(user.random.exponential())).await;
                wanted = shared.now();
            }
            free.borrow_mut().push(user);
        });
        at += Duration::from_secs_f64(random.exponential() / visit.rate_per_sec);
        // Those that are done need not be kept.
        while tasks.try_join_next().is_some() {}
    }
    tasks.join_all().await;
}
