//! Plays a plan against a server: every request at its absolute time, whatever became of the others.
//!
//! One driver sends the SYNs (or takes a place on a connection that is there); one task a request does the rest. The driver only waits for the clock, so a slow server cannot slow the arrivals.

use crate::exchange::Served;
use crate::failure::Failure;
use crate::pool::{Carrier, Pool};
use crate::target::Target;
use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::process::thread_cpu_time_ns;
use sooner_kernel::timer::{PacingTimer, set_timer_slack_ns};
use sooner_workload::{Arrival, Plan, Trace};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local};

/// From the decision to start to the first possible arrival, in ns: time to set up what the driver
/// needs without being late.
const LEAD_NS: u64 = 10_000_000;

/// What became of one planned request; times are CLOCK_MONOTONIC ns.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// When it should have been sent.
    pub intended_ns: u64,
    /// When it was: just before connect(), or when it was given to a connection that was there.
    pub sent_ns: u64,
    /// Whether a connection was opened for it when it was sent.
    pub new_connection: bool,
    /// How it ended; `None` while it has not.
    pub end: Option<Result<Served, Failure>>,
    /// When it failed.
    pub failed_ns: Option<u64>,
}

/// A plan that has been played.
pub struct Played {
    /// Start of the run, CLOCK_MONOTONIC ns.
    pub start_ns: u64,
    /// One record an arrival, in the plan's order.
    pub records: Vec<Record>,
    /// The generator thread's CPU time / elapsed time, from the start to the last arrival.
    pub cpu_share: f64,
}

/// How a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Ns since the start of the run.
    pub elapsed_ns: u64,
    /// Requests planned.
    pub planned: u64,
    /// Requests sent.
    pub sent: u64,
    /// Requests ended, well or not.
    pub ended: u64,
    /// Requests that failed.
    pub failed: u64,
}

/// Plays `plan` and waits at most `drain` for the last responses; fails only without a timer.
pub async fn play(
    plan: &Plan,
    trace: &Trace,
    target: &Target,
    pool: Pool,
    drain: Duration,
    progress: &mut dyn FnMut(Progress),
) -> io::Result<Played> {
    set_timer_slack_ns(1)?;
    let timer = PacingTimer::new()?;
    let stage = Rc::new(Stage::new(plan, pool, target.clone()));
    let driver = Driver {
        plan,
        trace,
        stage: stage.clone(),
    };
    let performance = async {
        let cpu_share = driver.send_all(&timer).await;
        tokio::time::timeout(drain, stage.all_ended()).await.ok();
        cpu_share
    };
    let tasks = LocalSet::new();
    let cpu_share = tasks
        .run_until(async {
            tokio::select! {
                cpu_share = performance => cpu_share,
                never = tell(&stage, progress) => match never {},
            }
        })
        .await;
    drop(tasks);
    let records = stage.records.borrow().clone();
    Ok(Played {
        start_ns: stage.start_ns,
        records,
        cpu_share,
    })
}

/// What the driver and the requests under way share.
struct Stage {
    pool: Pool,
    target: Target,
    start_ns: u64,
    records: RefCell<Vec<Record>>,
    sent: Cell<u64>,
    ended: Cell<u64>,
    failed: Cell<u64>,
    request_ended: Notify,
}

/// One request as its connection needs it.
struct Job {
    index: usize,
    path: String,
    close: bool,
    body_bytes: u64,
}

impl Stage {
    fn new(plan: &Plan, pool: Pool, target: Target) -> Stage {
        let start_ns = monotonic_ns() + LEAD_NS;
        let unsent = |arrival: &Arrival| {
            let intended_ns = start_ns + arrival.at_ns;
            Record {
                intended_ns,
                sent_ns: intended_ns,
                new_connection: arrival.new_connection,
                end: None,
                failed_ns: None,
            }
        };
        Stage {
            pool,
            target,
            start_ns,
            records: RefCell::new(plan.arrivals.iter().map(unsent).collect()),
            sent: Cell::new(0),
            ended: Cell::new(0),
            failed: Cell::new(0),
            request_ended: Notify::new(),
        }
    }

    fn note_sent(&self, index: usize, sent_ns: u64, new_connection: bool) {
        let record = &mut self.records.borrow_mut()[index];
        record.sent_ns = sent_ns;
        record.new_connection = new_connection;
        self.sent.set(self.sent.get() + 1);
    }

    fn note_end(&self, index: usize, end: Result<Served, Failure>) {
        self.ended.set(self.ended.get() + 1);
        self.failed.set(self.failed.get() + u64::from(end.is_err()));
        let record = &mut self.records.borrow_mut()[index];
        record.failed_ns = end.is_err().then(monotonic_ns);
        record.end = Some(end);
        self.request_ended.notify_one();
    }

    async fn all_ended(&self) {
        while self.ended.get() < self.sent.get() {
            self.request_ended.notified().await;
        }
    }

    fn progress(&self) -> Progress {
        Progress {
            elapsed_ns: monotonic_ns().saturating_sub(self.start_ns),
            planned: self.records.borrow().len() as u64,
            sent: self.sent.get(),
            ended: self.ended.get(),
            failed: self.failed.get(),
        }
    }
}

/// Sends every request at its time.
struct Driver<'run> {
    plan: &'run Plan,
    trace: &'run Trace,
    stage: Rc<Stage>,
}

impl Driver<'_> {
    /// Gives the generator thread's CPU share up to the last arrival.
    async fn send_all(self, timer: &PacingTimer) -> f64 {
        let cpu_before_ns = thread_cpu_time_ns();
        for (index, arrival) in self.plan.arrivals.iter().enumerate() {
            timer
                .sleep_until_ns(self.stage.start_ns + arrival.at_ns)
                .await;
            self.send(index, arrival);
        }
        let elapsed_ns = monotonic_ns().saturating_sub(self.stage.start_ns).max(1);
        (thread_cpu_time_ns() - cpu_before_ns) as f64 / elapsed_ns as f64
    }

    fn send(&self, index: usize, arrival: &Arrival) {
        let pool = &self.stage.pool;
        let kept = pool.take();
        let new_connection = kept.is_none();
        let object = &self.trace.objects[arrival.object as usize];
        let job = Job {
            index,
            path: self.stage.target.path_of(&object.path()),
            close: pool.is_last(kept.as_ref()),
            body_bytes: arrival.size_bytes,
        };
        let (sent_ns, carrier) = match kept {
            Some(carrier) => (monotonic_ns(), Ok(carrier)),
            None => pool.connect(),
        };
        self.stage.note_sent(index, sent_ns, new_connection);
        match carrier {
            Ok(carrier) => {
                spawn_local(serve(self.stage.clone(), carrier, job));
            }
            Err(failure) => self.stage.note_end(index, Err(failure)),
        }
    }
}

/// Plays one request, then leaves its connection to the next one.
async fn serve(stage: Rc<Stage>, mut carrier: Carrier, job: Job) {
    let end = carrier
        .request(&stage.target, &job.path, job.close, Some(job.body_bytes))
        .await;
    stage.note_end(job.index, end);
    stage.pool.put_back(carrier).await;
}

async fn tell(stage: &Stage, progress: &mut dyn FnMut(Progress)) -> Infallible {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        progress(stage.progress());
    }
}
