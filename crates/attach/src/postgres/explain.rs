//! Looks at a server for a while, and says where its transactions' time goes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::pin::Pin;
use std::time::{Duration, Instant};

use serde::Serialize;
use sooner_kernel::descriptors;
use sooner_pooler::config::ClassTable;
use tokio::time::sleep;

use super::activity::{Phase, Session, Watcher};
use super::breakdown::{ActiveRow, Breakdown, ClassRows};
use super::classes::Classifier;
use super::connection::{ConnectError, Login};
use super::counts::{Counts, Rate};
use super::daemon::DESCRIPTORS;
use super::knobs::{Advice, LockTally, advice};
use super::meter::{Cost, Meter, MeterError, Processors};
use super::part::Part;
use super::processor::Processes;
use super::rates::CountOf;
use super::row::Row;
use super::tally::{Seen, SeenTransaction, Tally};
use crate::process_id::is_gone;
use sooner_postgres::locks::{Waiter, waiters};

/// Of so many looks one is at locks too, where a session waits for one.
const LOOKS_A_LOCK_LOOK: u64 = 4;
/// Of idle sessions one in so many is looked at more closely at a look.
const IDLE_TURNS: u64 = 4;
/// Spreads looks evenly over whatever is periodic.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// What is wanted.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where and as whom.
    pub login: Login,
    /// For how long.
    pub duration: Duration,
    /// What looking may cost, of all processors' time, 0 to 1.
    pub cost_share: f64,
    /// Who goes first.
    pub classes: Vec<ClassTable>,
}

/// Why there is no explanation.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// No session on the server.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server went away.
    #[error("the server ended the session: {0}")]
    Lost(#[from] tokio_postgres::Error),
    /// The kernel does not show processes.
    #[error(transparent)]
    Meter(#[from] MeterError),
}

/// A wait event and what it takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WaitRow {
    /// As pg_stat_activity names it, `Lock:tuple`.
    pub event: String,
    /// Of each transaction, on average, ms.
    pub ms: f64,
}

/// Where transactions' time goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The server's version.
    pub version: String,
    /// Its first process.
    pub pid: u32,
    /// How long it was looked at, seconds.
    pub seconds: f64,
    /// Why it ended early, where the server ended the session.
    pub ended: Option<String>,
    /// Sessions with processes that could not be looked at, at most at a time.
    pub unread_sessions: usize,
    /// Who says how many transactions there are.
    pub count_of: CountOf,
    /// How many a second the server counted, those of no client's session included; none where it
    /// was not asked twice.
    pub server_per_sec: Option<f64>,
    /// What that cost.
    pub cost: Cost,
    /// The machine.
    pub processors: Processors,
    /// All transactions.
    pub all: Row,
    /// By class.
    pub classes: Vec<ClassRows>,
    /// By the number in a transaction.
    pub by_active: Vec<ActiveRow>,
    /// Wait events, what takes most first.
    pub waits: Vec<WaitRow>,
    /// What could be gained, for each class that could go first.
    pub advice: Vec<Advice>,
}

/// Looks until the time is over or `is_over` says so; `tell` hears how much time has passed. Needs a
/// `LocalSet`.
pub fn explain<'a>(
    options: &'a Options,
    is_over: Box<dyn FnMut() -> bool + 'a>,
    tell: Box<dyn FnMut(Duration) + 'a>,
) -> Pin<Box<dyn Future<Output = Result<Explanation, ExplainError>> + 'a>> {
    // A box, so that it is compiled here and not with its caller.
    Box::pin(look_for_a_while(options, is_over, tell))
}

async fn look_for_a_while(
    options: &Options,
    mut is_over: Box<dyn FnMut() -> bool + '_>,
    mut tell: Box<dyn FnMut(Duration) + '_>,
) -> Result<Explanation, ExplainError> {
    // Fewer are no obstacle: what is not read for it is said.
    let _ = descriptors::raise_hard_limit(DESCRIPTORS);
    let connection = options.login.connect().await?;
    let meter = Meter::start(connection.own_process)?;
    let classifier = Classifier::new(options.classes.clone());
    let mut look = Look {
        tally: Tally::new(classifier.names().len(), options.duration.as_secs_f64()),
        locks: vec![LockTally::default(); classifier.names().len()],
        waits: BTreeMap::new(),
        processes: Processes::default(),
        watcher: Watcher::new(&connection.client).await?,
        classifier,
        numbers: connection.numbers,
        last: None,
        unread: 0,
    };
    look.once().await?;
    let mut counts = Counts::new(options.duration.as_secs_f64());
    let begin = Instant::now();
    look.count(begin, &mut counts).await?;
    let mut phase = 0.0;
    let mut ended = None;
    while begin.elapsed() < options.duration && !is_over() {
        phase = (phase + GOLDEN) % 1.0;
        let interval = meter.interval(options.cost_share, look.tally.looks);
        let left = options.duration.saturating_sub(begin.elapsed());
        sleep(interval.mul_f64(0.5 + phase).min(left)).await;
        let looked = match look.once().await {
            Ok(()) => look.count(begin, &mut counts).await,
            Err(error) => Err(error),
        };
        match looked {
            Err(error) if look.tally.looks == 0 => return Err(error.into()),
            // What was seen until then counts.
            Err(error) => {
                ended = Some(error.to_string());
                break;
            }
            Ok(()) => tell(begin.elapsed()),
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let rate = counts.rate();
    let found = look.found(rate);
    Ok(Explanation {
        version: connection.version,
        pid: connection.first_process,
        seconds,
        ended,
        unread_sessions: look.unread,
        count_of: found.count_of,
        server_per_sec: rate.map(|rate| rate.per_sec),
        cost: meter.cost(look.tally.looks, seconds),
        processors: meter.processors(look.tally.run_s / seconds),
        advice: look.advice(&found),
        waits: look.waits(found.all.per_sec),
        all: found.all,
        classes: found.classes.into_iter().map(|(_, rows)| rows).collect(),
        by_active: found.by_active,
    })
}

/// All that one look after the other adds to.
struct Look<'a> {
    tally: Tally,
    locks: Vec<LockTally>,
    /// By event, seconds.
    waits: BTreeMap<String, f64>,
    processes: Processes,
    watcher: Watcher<'a>,
    classifier: Classifier,
    numbers: super::numbers::ProcessNumbers,
    last: Option<(Instant, i64)>,
    /// Sessions with processes that could not be looked at, at most.
    unread: usize,
}

impl Look<'_> {
    async fn once(&mut self) -> Result<(), tokio_postgres::Error> {
        let sessions = self.watcher.sessions().await?;
        let now = Instant::now();
        let now_us = sessions.first().map_or(0, |session| session.now_us);
        let (since_s, last_us) = match self.last {
            Some((last, last_us)) => ((now - last).as_secs_f64(), last_us),
            // The first look is where counting begins.
            None => (0.0, i64::MAX),
        };
        self.last = Some((
            now,
            now_us.max(if last_us == i64::MAX { 0 } else { last_us }),
        ));
        self.numbers.begin_look();
        let mut all = Vec::with_capacity(sessions.len());
        let mut unread = 0;
        for session in &sessions {
            match self.see(session, since_s, last_us) {
                Ok(seen) => all.push(seen),
                Err(error) if is_gone(&error) => self.numbers.forget(session.pid),
                Err(_) => unread += 1,
            }
        }
        self.unread = self.unread.max(unread);
        if since_s > 0.0 {
            self.tally.look(since_s, &all);
            let waits = |seen: &Seen| {
                seen.transaction
                    .as_ref()
                    .is_some_and(|own| own.part.is_lock())
            };
            if self.tally.looks.is_multiple_of(LOOKS_A_LOCK_LOOK) && all.iter().any(waits) {
                let rows = self.watcher.locks().await?;
                self.note_locks(&waiters(&rows), &all);
            }
        }
        let pids: HashSet<i32> = sessions.iter().map(|session| session.pid).collect();
        self.classifier.retain(|pid| pids.contains(&pid));
        let outside = sessions.iter();
        let outside: HashSet<u32> = outside
            .filter_map(|session| self.numbers.outside(session.pid))
            .collect();
        self.processes.retain(|pid| outside.contains(&pid));
        Ok(())
    }

    /// An error where the session's process is gone, or cannot be looked at.
    fn see(&mut self, session: &Session, since_s: f64, last_us: i64) -> io::Result<Seen> {
        let pid = self.numbers.outside(session.pid);
        let pid = pid.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let look = self.processes.look(pid)?;
        // What began since the last look is new altogether; of others the beginning is not known.
        let counts = !look.is_new || session.began_us > last_us;
        let seconds = |ns: u64| if counts { ns as f64 / 1e9 } else { 0.0 };
        let (user, database) = (self.watcher.user(session), self.watcher.database(session));
        let told = self.classifier.told(session, user, database);
        let wait = session.wait.as_ref();
        let wait = wait.filter(|_| session.phase != Phase::Idle);
        let part = wait.map_or(Part::Running, |(kind, event)| Part::of_wait(kind, event));
        // Of idle ones some: they are many, and each is asked about by turns.
        let is_looked_at = match session.phase {
            Phase::Idle => u64::from(pid)
                .wrapping_add(self.tally.looks)
                .is_multiple_of(IDLE_TURNS),
            _ => wait.is_some(),
        };
        if let Some((kind, event)) = wait {
            *self.waits.entry(format!("{kind}:{event}")).or_default() += since_s;
        }
        let age_ns = |began_us: i64| 1000 * (session.now_us - began_us).max(0).cast_unsigned();
        let is_in_one = session.phase != Phase::Idle;
        let began_us = session.transaction_us.unwrap_or(session.statement_us);
        Ok(Seen {
            pid: session.pid,
            class: told.class,
            run_s: seconds(look.since.run_ns),
            wait_s: seconds(look.since.wait_ns),
            is_woken: is_looked_at.then(|| self.processes.is_on_processor(pid)),
            transaction: is_in_one.then(|| SeenTransaction {
                began_us,
                part,
                age_ns: age_ns(began_us),
                statement_age_ns: age_ns(session.statement_us),
                kind: told.kind,
                statement: told.statement,
            }),
        })
    }

    /// What the server counts itself, if it is time to ask.
    async fn count(
        &mut self,
        begin: Instant,
        counts: &mut Counts,
    ) -> Result<(), tokio_postgres::Error> {
        let elapsed_s = begin.elapsed().as_secs_f64();
        if counts.is_due(elapsed_s) {
            counts.add(elapsed_s, self.watcher.transactions().await?);
        }
        Ok(())
    }

    fn note_locks(&mut self, waiters: &[Waiter], sessions: &[Seen]) {
        let waiting: HashMap<i32, &Waiter> = waiters.iter().map(|one| (one.pid, one)).collect();
        let seen: HashMap<i32, &Seen> = sessions.iter().map(|seen| (seen.pid, seen)).collect();
        let classifier = &self.classifier;
        for waiter in waiters {
            let Some(own) = seen.get(&waiter.pid) else {
                continue;
            };
            let own_priority = classifier.priority(own.class);
            // Without classes the question is what one that goes first would gain.
            let is_lower = |pid: i32| {
                let other = seen.get(&pid).map(|seen| classifier.priority(seen.class));
                classifier.is_empty() || other.is_none_or(|other| other > own_priority)
            };
            let is_on_processor = |pid: i32| {
                let other = seen.get(&pid);
                let part = other.and_then(|seen| Some(seen.transaction.as_ref()?.part));
                part == Some(Part::Running) || other.is_some_and(|seen| seen.is_woken == Some(true))
            };
            self.locks[own.class].add(waiter, &waiting, is_lower, is_on_processor);
        }
    }

    /// Where the server was not asked how many there were, ages say.
    fn found(&mut self, rate: Option<Rate>) -> Breakdown {
        self.tally.finish();
        Breakdown::of(&self.tally, &self.classifier.names(), rate)
    }

    /// For each class before which another one could wait.
    fn advice(&self, found: &Breakdown) -> Vec<Advice> {
        let priority = |class: usize| self.classifier.priority(class);
        let last = found.classes.iter().map(|(at, _)| priority(*at)).max();
        let running = |rows: &ClassRows| rows.row.ms(Part::Running) * rows.row.per_sec;
        let all: f64 = found.classes.iter().map(|(_, rows)| running(rows)).sum();
        let could = found.classes.iter().filter(|(at, _)| {
            self.classifier.is_empty() || last.is_some_and(|last| priority(*at) < last)
        });
        could
            .map(|(at, rows)| {
                let before = found.classes.iter();
                let before = before.filter(|(other, _)| priority(*other) <= priority(*at));
                let own: f64 = before.map(|(_, rows)| running(rows)).sum();
                let own_share = if self.classifier.is_empty() {
                    0.0
                } else {
                    own / all.max(f64::MIN_POSITIVE)
                };
                advice(&rows.row, &self.locks[*at], found, own_share)
            })
            .collect()
    }

    fn waits(&self, per_sec: f64) -> Vec<WaitRow> {
        let count = (per_sec * self.tally.time_s).max(f64::MIN_POSITIVE);
        let rows = self.waits.iter().map(|(event, seconds)| WaitRow {
            event: event.clone(),
            ms: 1e3 * seconds / count,
        });
        let mut rows: Vec<WaitRow> = rows.collect();
        rows.sort_by(|one, other| other.ms.total_cmp(&one.ms));
        rows
    }
}
