//! The users, as tasks on one thread.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::timer::{PacingTimer, set_timer_slack_ns};
use sooner_workload::Rng;
use tokio::task::{JoinError, JoinSet, yield_now};
use tokio::time::{Instant, sleep_until};

use super::arrivals::{Arrivals, Waiting};
use super::free::Free;
use super::measured::Recorder;
use super::user::User;
use super::{Measured, Model, Options, WIND_DOWN};
use crate::{DatabaseUrl, Kit, Unusable};

/// Streams of random numbers of what comes from outside; those of users are elsewhere.
const ARRIVALS_PURPOSE: u64 = 2;
const FREE_PURPOSE: u64 = 3;
/// Visits behind their times that are begun before others go on.
const BURST: u32 = 16;

/// Carries a run out, to its end or until `stop`; needs a `LocalSet`. `say` is told when it begins.
pub async fn run<K: Kit + 'static>(
    kit: Rc<K>,
    url: &DatabaseUrl,
    options: &Options,
    say: impl Fn(&str),
    stop: impl Future<Output = ()>,
) -> Result<Measured, Unusable> {
    let count = match options.model {
        Model::Closed { users, .. } => users,
        Model::Open { sessions, .. } | Model::PartlyOpen { sessions, .. } => sessions,
    };
    let mut users = Vec::new();
    for number in 0..count {
        users.push(User::open(kit.clone(), url, options, number).await?);
    }
    say(&format!("{count} users are here"));
    let shared = Rc::new(Shared {
        options: options.clone(),
        begin: Instant::now(),
        begin_ns: monotonic_ns(),
        recorder: RefCell::new(Recorder::new(options.warm_up, options.measured)),
    });
    play(users, &shared, stop).await?;
    let nothing = Recorder::new(Duration::ZERO, Duration::ZERO);
    Ok(shared.recorder.replace(nothing).finish())
}

async fn play<K: Kit + 'static>(
    users: Vec<User<K>>,
    shared: &Rc<Shared>,
    stop: impl Future<Output = ()>,
) -> Result<(), Unusable> {
    match shared.options.model {
        Model::Closed { think, .. } => closed(users, shared, think, stop).await,
        Model::Open { rate_per_sec, .. } => {
            let visit = Visit {
                rate_per_sec,
                transactions: 1.0,
                think: Duration::ZERO,
            };
            visits(users, shared, visit, stop).await?;
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
            visits(users, shared, visit, stop).await?;
        }
    }
    Ok(())
}

/// What all users share.
struct Shared {
    options: Options,
    begin: Instant,
    /// The same of the timer's clock.
    begin_ns: u64,
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

    /// The next transaction of a user, which was wanted then.
    async fn carry_out<K: Kit>(&self, user: &mut User<K>, wanted: Duration) {
        self.recorder.borrow_mut().began(wanted);
        let done = user.next(&self.options).await;
        self.recorder.borrow_mut().ended(wanted, self.now(), done);
    }

    /// Waits for the end of all that is carried out, until `stop` or the end of the wind-down.
    async fn ends(&self, all: impl Future<Output = ()>, stop: impl Future<Output = ()>) {
        let until = self.recorder.borrow().until;
        tokio::select! {
            () = all => {}
            () = stop => self.recorder.borrow_mut().stop(self.now()),
            () = sleep_until(self.begin + until + WIND_DOWN) => {}
        }
    }

    /// A pause of this mean, but no longer than the run.
    async fn think(&self, mean: Duration, random: &mut Rng) {
        if !mean.is_zero() {
            let pause = mean.mul_f64(random.exponential());
            let until = self.recorder.borrow().until;
            sleep_until(self.begin + (self.now() + pause).min(until)).await;
        }
    }

    /// A user comes no more, because the run is over or its connections are gone.
    fn leaves<K: Kit>(&self, user: &User<K>) {
        if user.is_gone() {
            self.recorder.borrow_mut().lost();
        }
    }
}

async fn closed<K: Kit + 'static>(
    users: Vec<User<K>>,
    shared: &Rc<Shared>,
    think: Duration,
    stop: impl Future<Output = ()>,
) {
    let mut tasks = JoinSet::new();
    for mut user in users {
        let shared = shared.clone();
        tasks.spawn_local(async move {
            while !shared.is_over() && !user.is_gone() {
                shared.carry_out(&mut user, shared.now()).await;
                shared.think(think, &mut user.random).await;
            }
            shared.leaves(&user);
        });
    }
    let all = async {
        tasks.join_all().await;
    };
    shared.ends(all, stop).await;
}

/// What comes from outside.
#[derive(Clone, Copy)]
struct Visit {
    rate_per_sec: f64,
    /// Mean number of transactions.
    transactions: f64,
    think: Duration,
}

impl Visit {
    /// One that was wanted then: each transaction after the one before it, until the run is over.
    async fn carry_out<K: Kit>(self, shared: &Shared, user: &mut User<K>, mut wanted: Duration) {
        loop {
            shared.carry_out(user, wanted).await;
            let goes_on = user.random.uniform() < 1.0 - 1.0 / self.transactions;
            if !goes_on || user.is_gone() {
                return;
            }
            shared.think(self.think, &mut user.random).await;
            if shared.is_over() {
                return;
            }
            wanted = shared.now();
        }
    }
}

/// The users who may visit, and the visits that wait for them: none as long as a user is free.
struct VisitQueue<K: Kit> {
    free: RefCell<Free<User<K>>>,
    waiting: RefCell<Waiting>,
    /// How many users still have their connections.
    living: Cell<usize>,
}

impl<K: Kit> VisitQueue<K> {
    /// A visit is wanted; whether a user is free for it.
    fn comes(&self) -> bool {
        self.waiting.borrow_mut().came();
        !self.free.borrow().is_empty()
    }

    /// Who begins the first visit that waits, and when it was wanted; nothing begins when the run
    /// is over.
    fn begins(&self, shared: &Shared) -> Option<(User<K>, Duration)> {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.is_empty() || shared.is_over() {
            return None;
        }
        let user = self.free.borrow_mut().take()?;
        Some((user, waiting.begin()?))
    }

    /// This visit, then another one as long as some wait.
    async fn visits(&self, shared: &Shared, visit: Visit, first: (User<K>, Duration)) {
        let mut next = Some(first);
        while let Some((mut user, wanted)) = next {
            visit.carry_out(shared, &mut user, wanted).await;
            if user.is_gone() {
                shared.leaves(&user);
                self.living.set(self.living.get() - 1);
            } else {
                self.free.borrow_mut().put(user)
            }
            next = self.begins(shared);
        }
    }

    /// Nothing begins any more: tells of what waits, and of those who were free when their
    /// connections went.
    fn closes(&self, shared: &Shared) {
        let mut recorder = shared.recorder.borrow_mut();
        let over = recorder.until.min(shared.now());
        for wanted in self.waiting.borrow().left(over) {
            recorder.not_begun(wanted, over);
        }
        drop(recorder);
        while let Some(user) = self.free.borrow_mut().take() {
            shared.leaves(&user);
        }
    }
}

async fn visits<K: Kit + 'static>(
    users: Vec<User<K>>,
    shared: &Rc<Shared>,
    visit: Visit,
    stop: impl Future<Output = ()>,
) -> Result<(), Unusable> {
    let seed = shared.options.seed;
    let random = Rng::new(seed, ARRIVALS_PURPOSE);
    let arrivals = Arrivals::new(shared.now(), visit.rate_per_sec, random);
    let door = Rc::new(VisitQueue {
        living: Cell::new(users.len()),
        free: RefCell::new(Free::new(users, Rng::new(seed, FREE_PURPOSE))),
        waiting: RefCell::new(Waiting::new(arrivals.clone())),
    });
    let no_timer = |error: io::Error| Unusable(format!("no timer: {error}"));
    set_timer_slack_ns(1).map_err(no_timer)?;
    let timer = PacingTimer::new().map_err(no_timer)?;
    let all = arrive(door.clone(), arrivals, timer, shared, visit);
    shared.ends(all, stop).await;
    door.closes(shared);
    Ok(())
}

/// Has visits begin when they are wanted, and waits for the end of all.
async fn arrive<K: Kit + 'static>(
    door: Rc<VisitQueue<K>>,
    arrivals: Arrivals,
    mut timer: PacingTimer,
    shared: &Rc<Shared>,
    visit: Visit,
) {
    let until = shared.recorder.borrow().until;
    let mut tasks = JoinSet::new();
    let mut late = 0_u32;
    for at in arrivals.take_while(|at| *at < until) {
        // Without a user left, a visit waits in vain.
        if door.living.get() == 0 {
            break;
        }
        let at_ns = shared.begin_ns + at.as_nanos() as u64;
        if at_ns > monotonic_ns() {
            late = 0;
            // tokio's timers count milliseconds; and this looks at the clock whenever it is polled.
            poll_fn(|cx| timer.poll_sleep(cx, at_ns)).await;
        } else {
            late += 1;
            if late.is_multiple_of(BURST) {
                yield_now().await;
            }
        }
        let has_session = door.comes();
        let mut recorder = shared.recorder.borrow_mut();
        recorder.came(at, shared.now(), has_session);
        drop(recorder);
        if shared.is_over() {
            break;
        }
        if let Some(first) = door.begins(shared) {
            let (shared, door) = (shared.clone(), door.clone());
            tasks.spawn_local(async move { door.visits(&shared, visit, first).await });
        }
        // Those that are done need not be kept.
        while let Some(done) = tasks.try_join_next() {
            propagate(done);
        }
    }
    tasks.join_all().await;
}

/// A task that panicked is a run that did.
fn propagate(done: Result<(), JoinError>) {
    if let Err(panic) = done.map_err(JoinError::into_panic) {
        std::panic::resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    /// What a run of 10 s that began so long ago says of what never ends.
    async fn unended(ago_s: u64, stop: impl Future<Output = ()>) -> Measured {
        let shared = Shared {
            options: Options {
                model: Model::Closed {
                    users: 1,
                    think: Duration::ZERO,
                },
                classes: Vec::new(),
                isolation: crate::Isolation::default(),
                statements: crate::Statements::default(),
                warm_up: Duration::ZERO,
                measured: Duration::from_secs(10),
                seed: 1,
                remarks: false,
            },
            begin: Instant::now() - Duration::from_secs(ago_s),
            begin_ns: 0,
            recorder: RefCell::new(Recorder::new(Duration::ZERO, Duration::from_secs(10))),
        };
        shared.recorder.borrow_mut().began(Duration::from_secs(1));
        shared.ends(pending(), stop).await;
        shared.recorder.into_inner().finish()
    }

    #[test]
    fn what_never_ends_is_given_up_after_a_signal_and_after_a_while() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.unwrap().block_on(async {
            let planned = Duration::from_secs(10);
            let early = unended(5, async {}).await;
            assert!(early.stopped_of == Some(planned) && early.duration < planned);
            let late = unended(20, async {}).await;
            assert!(late.stopped_of == Some(planned) && late.duration == planned);
            let given_up = unended(20 + WIND_DOWN.as_secs(), pending()).await;
            assert_eq!(given_up.stopped_of, None);
            for measured in [early, late, given_up] {
                assert_eq!((measured.incompletes, measured.unended), (1, 1));
            }
        });
    }

    #[test]
    #[should_panic(expected = "on purpose")]
    fn a_task_that_panics_is_a_run_that_does() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(async {
            let mut tasks = JoinSet::<()>::new();
            tasks.spawn(async { panic!("on purpose") });
            propagate(tasks.join_next().await.unwrap());
        });
    }
}
