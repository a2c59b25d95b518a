//! The users, as tasks on one thread.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use sooner_workload::Rng;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::{Measured, Model, Options, Outcome};
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
    let begin = Instant::now();
    let shared = Rc::new(Shared {
        options: options.clone(),
        from: begin + options.warm_up,
        until: begin + options.warm_up + options.measured,
        measured: RefCell::default(),
        lags: RefCell::default(),
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
    let mut measured = shared.measured.take();
    measured.duration = options.measured;
    let mut lags = shared.lags.take();
    lags.sort_by(f64::total_cmp);
    measured.lag_p99_seconds = lags.get(lags.len() * 99 / 100).copied().unwrap_or(0.0);
    Ok(measured)
}

/// What all users share.
struct Shared {
    options: Options,
    from: Instant,
    until: Instant,
    measured: RefCell<Measured>,
    lags: RefCell<Vec<f64>>,
}

impl Shared {
    fn note(&self, wanted: Instant, done: Result<Done, Failure>) {
        let now = Instant::now();
        if now < self.from || now >= self.until {
            return;
        }
        let mut measured = self.measured.borrow_mut();
        match done {
            Ok(done) => measured.outcomes.push(Outcome {
                class: done.class,
                kind: done.kind,
                ended: now - self.from,
                response: now - wanted,
                retries: done.retries,
                is_rolled_back: done.ended == Ended::RolledBack,
            }),
            Err(failure) => {
                let count = measured.errors.entry(failure.sqlstate()).or_default();
                *count += 1;
            }
        }
    }
}

struct Done {
    class: usize,
    kind: usize,
    retries: u32,
    ended: Ended,
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
            let statements = kit.statements();
            let session = Session::open(place, &class.name, statements, options.isolation);
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
    async fn next(&mut self, options: &Options) -> Result<Done, Failure> {
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
                    return Ok(Done {
                        class,
                        kind,
                        retries,
                        ended,
                    });
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
            while Instant::now() < shared.until {
                let wanted = Instant::now();
                let done = user.next(&shared.options).await;
                // A connection that is gone does not come back.
                let is_gone = user.sessions.iter().any(Session::is_closed);
                shared.note(wanted, done);
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
    let (ended, _) = watch::channel(());
    let mut random = Rng::new(shared.options.seed, 2);
    let mut at = Instant::now();
    let mut tasks = JoinSet::new();
    while at < shared.until {
        sleep_until(at).await;
        if places.available_permits() == 0 && at >= shared.from {
            shared.measured.borrow_mut().waited_for_session += 1;
        } else {
            shared.lags.borrow_mut().push(at.elapsed().as_secs_f64());
        }
        let (shared, free, places) = (shared.clone(), free.clone(), places.clone());
        let (wanted, ended) = (at, ended.clone());
        tasks.spawn_local(async move {
            // Closed only with everything else.
            let Ok(_place) = places.acquire().await else {
                return;
            };
            let Some(mut user) = free.borrow_mut().pop() else {
                return;
            };
            let mut wanted = wanted;
            loop {
                let done = user.next(&shared.options).await;
                shared.note(wanted, done);
                let goes_on = user.random.uniform() < 1.0 - 1.0 / visit.transactions;
                if !goes_on || user.sessions.iter().any(Session::is_closed) {
                    break;
                }
                sleep(visit.think.mul_f64(user.random.exponential())).await;
                wanted = Instant::now();
            }
            free.borrow_mut().push(user);
            ended.send_replace(());
        });
        at += Duration::from_secs_f64(random.exponential() / visit.rate_per_sec);
        // Those that are done need not be kept.
        while tasks.try_join_next().is_some() {}
    }
    tasks.join_all().await;
}
