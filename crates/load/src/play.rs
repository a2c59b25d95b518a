//! Plays a script against a server: every request at its time, whatever became of the others unless
//! the script has it wait for one.
//!
//! One driver sends the SYNs (or takes a place on a connection that is there); one task a request
//! does the rest and tells the driver when it has ended. The driver only waits for the clock and
//! for what the script lets follow, so a slow server cannot slow arrivals that are not to wait for
//! it.

mod record;
mod stage;

use crate::agenda::Agenda;
use crate::patience::{Asking, End, Patience};
use crate::pool::{Carrier, Pool};
use crate::script::{Script, Turn};
use crate::target::Target;
pub use record::Record;
use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::process::thread_cpu_time_ns;
use sooner_kernel::signals::EndSignals;
use sooner_kernel::timer::{PacingTimer, set_timer_slack_ns};
use sooner_workload::Trace;
use stage::{Follow, PlayState};
use std::convert::Infallible;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::{LocalSet, spawn_local};

/// From the decision to start to the first possible arrival, in ns: time to set up what the driver
/// needs without being late.
const LEAD_NS: u64 = 10_000_000;

/// A script that has been played.
pub struct Played {
    /// Start of the run, CLOCK_MONOTONIC ns.
    pub start_ns: u64,
    /// One record a request that was sent, in the order of sending.
    pub records: Vec<Record>,
    /// The generator thread's CPU time / elapsed time, from the start until nothing more began.
    pub cpu_share: f64,
    /// Whether users found nothing left to ask for, and went.
    pub is_exhausted: bool,
    /// When a signal ended the run before its time, ns since the start.
    pub stopped_ns: Option<u64>,
    /// How long nothing of any body had come when it was over, ns, in whole seconds.
    pub silent_ns: u64,
}

/// Where a script is played, and how.
pub struct PlayOptions<'run> {
    /// What the clients request.
    pub trace: &'run Trace,
    /// Where.
    pub target: &'run Target,
    /// The connections of each source address.
    pub pools: Vec<Pool>,
    /// How long users wait; `None`: without limit.
    pub patience: Option<Patience>,
    /// How long to wait for the last responses after the last request that no response triggers.
    pub drain: Duration,
    /// How many requests there will be, if that is known.
    pub planned: Option<u64>,
}

/// How a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Ns since the start of the run.
    pub elapsed_ns: u64,
    /// Requests planned; in a closed system those sent.
    pub planned: u64,
    /// Requests sent.
    pub sent: u64,
    /// Requests ended, well or not.
    pub ended: u64,
    /// Requests that failed.
    pub failed: u64,
}

/// Plays `script`, until its end or until a signal asks for the end; fails only without a timer or
/// signals.
pub async fn play(
    script: Script<'_>,
    scene: PlayOptions<'_>,
    progress: &mut dyn FnMut(Progress),
) -> io::Result<Played> {
    set_timer_slack_ns(1)?;
    let stage = Rc::new(PlayState::new(&scene));
    let drain = scene.drain;
    let mut driver = Driver {
        script,
        trace: scene.trace,
        pools: scene.pools.into_iter().map(Rc::new).collect(),
        timer: PacingTimer::new()?,
        agenda: Agenda::default(),
        stage: stage.clone(),
        is_exhausted: false,
    };
    let pools = driver.pools.clone();
    let mut silence = Silence::default();
    let mut signals = EndSignals::listen()?;
    let mut stopped_ns = None;
    let cpu_before_ns = thread_cpu_time_ns();
    let performance = async {
        let cpu_share = driver.perform().await;
        tokio::time::timeout(drain, driver.finish()).await.ok();
        cpu_share
    };
    let tasks = LocalSet::new();
    let cpu_share = tasks
        .run_until(async {
            tokio::select! {
                cpu_share = performance => cpu_share,
                _ = signals.next() => {
                    let elapsed_ns = monotonic_ns().saturating_sub(stage.start_ns).max(1);
                    stopped_ns = Some(elapsed_ns);
                    (thread_cpu_time_ns() - cpu_before_ns) as f64 / elapsed_ns as f64
                }
                never = tell(&stage, &pools, &mut silence, progress) => match never {},
            }
        })
        .await;
    drop(tasks);
    Ok(Played {
        start_ns: stage.start_ns,
        records: stage.records.take(),
        cpu_share,
        is_exhausted: driver.is_exhausted,
        stopped_ns,
        silent_ns: silence.seconds * 1_000_000_000,
    })
}

/// One request as its connection needs it.
struct Job {
    index: usize,
    path: String,
    close: bool,
    body_bytes: u64,
    follow: Follow,
}

/// Sends every request at its time.
struct Driver<'run> {
    script: Script<'run>,
    trace: &'run Trace,
    pools: Vec<Rc<Pool>>,
    timer: PacingTimer,
    /// What waits for its time because a response came, or a user has begun to think.
    agenda: Agenda<(Turn, Rc<Pool>)>,
    stage: Rc<PlayState>,
    is_exhausted: bool,
}

impl Driver<'_> {
    /// Plays until nothing begins any more; gives the generator thread's CPU share up to then.
    async fn perform(&mut self) -> f64 {
        let cpu_before_ns = thread_cpu_time_ns();
        for (at_ns, turn) in self.script.first_turns() {
            let pool = self.connections(turn);
            self.agenda.add(self.stage.start_ns + at_ns, (turn, pool));
        }
        let end_ns = self
            .script
            .end_ns()
            .map(|end_ns| self.stage.start_ns + end_ns);
        while self.script.goes_on(self.elapsed_ns()) {
            self.step(end_ns).await;
        }
        let elapsed_ns = self.elapsed_ns().max(1);
        (thread_cpu_time_ns() - cpu_before_ns) as f64 / elapsed_ns as f64
    }

    /// Waits for what is under way, and sends what follows it.
    async fn finish(&mut self) {
        loop {
            // First, because the end of the last request may have nothing that follows it.
            self.plan_what_follows();
            if !self.stage.is_under_way() && self.agenda.is_empty() {
                return;
            }
            self.step(None).await;
        }
    }

    fn elapsed_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.stage.start_ns)
    }

    /// Sends what is due, or waits until something is, something has ended, or `end_ns` has come.
    async fn step(&mut self, end_ns: Option<u64>) {
        self.plan_what_follows();
        let begin_ns = self
            .script
            .next_begin_ns()
            .map(|at_ns| self.stage.start_ns + at_ns);
        let next_ns = [begin_ns, self.agenda.next_ns(), end_ns]
            .into_iter()
            .flatten()
            .min();
        let is_due = next_ns.is_some_and(|next_ns| next_ns <= monotonic_ns());
        if !is_due {
            return self.wait(next_ns).await;
        }
        if let Some(begin_ns) = begin_ns.filter(|_| begin_ns == next_ns) {
            if let Some(turn) = self.script.begin() {
                let pool = self.connections(turn);
                self.send(begin_ns, turn, pool);
            }
        } else if let Some((due_ns, (turn, pool))) = self.agenda.take_due(next_ns.unwrap_or(0)) {
            self.send(due_ns, turn, pool);
        }
    }

    async fn wait(&self, next_ns: Option<u64>) {
        let ended = self.stage.request_ended.notified();
        match next_ns {
            None => ended.await,
            // In an open system nothing follows the end of a request.
            Some(next_ns) if !self.script.has_own_connections() => {
                self.timer.sleep_until_ns(next_ns).await;
            }
            Some(next_ns) => tokio::select! {
                biased;
                () = self.timer.sleep_until_ns(next_ns) => (),
                () = ended => (),
            },
        }
    }

    fn plan_what_follows(&mut self) {
        for ended in self.stage.followed.take() {
            let since_start_ns = ended.at_ns.saturating_sub(self.stage.start_ns);
            if let Some((at_ns, turn)) = self.script.after(ended.turn, since_start_ns, ended.failed)
            {
                self.agenda
                    .add(self.stage.start_ns + at_ns, (turn, ended.pool));
            }
        }
    }

    /// Those of the source address of `turn`, or new ones that no other arrival or user uses.
    fn connections(&self, turn: Turn) -> Rc<Pool> {
        let pool = &self.pools[self.script.client(turn) as usize];
        if self.script.has_own_connections() {
            Rc::new(pool.without_connections())
        } else {
            pool.clone()
        }
    }

    fn send(&mut self, intended_ns: u64, turn: Turn, pool: Rc<Pool>) {
        let since_start_ns = intended_ns - self.stage.start_ns;
        let Some(arrival) = self.script.ask(self.trace, turn, since_start_ns) else {
            self.is_exhausted = true;
            return;
        };
        let is_followed = self.script.is_followed(turn);
        let ends_visit = self.script.has_own_connections() && !is_followed;
        let kept = pool.take();
        let new_connection = kept.is_none();
        let path = self.trace.objects[arrival.object as usize].path();
        let (path, close) = (
            self.stage.target.path_of(&path),
            ends_visit || pool.is_last(kept.as_ref()),
        );
        let (sent_ns, carrier) = match kept {
            Some(carrier) => (monotonic_ns(), Ok(carrier)),
            None => pool.connect(),
        };
        let index = self.stage.note_sent(Record {
            arrival,
            intended_ns,
            sent_ns,
            new_connection,
            aborts: 0,
            end: None,
            failed_ns: None,
        });
        let follow = Follow {
            turn,
            pool,
            is_followed,
            ends_visit,
        };
        let job = Job {
            index,
            path,
            close,
            body_bytes: arrival.size_bytes,
            follow,
        };
        match carrier {
            Ok(carrier) => {
                spawn_local(serve(self.stage.clone(), carrier, job));
            }
            Err(failure) => self.stage.note_end(index, End::Failed(failure), job.follow),
        }
    }
}

/// Plays one request, then leaves its connection to the next one.
async fn serve(stage: Rc<PlayState>, carrier: Carrier, job: Job) {
    let asking = Asking {
        target: &stage.target,
        pool: &job.follow.pool,
        path: &job.path,
        body_bytes: job.body_bytes,
        ends_visit: job.follow.ends_visit,
    };
    let aborted = || stage.note_abort(job.index);
    let (end, carrier) = asking
        .run(carrier, job.close, stage.patience, aborted)
        .await;
    let spent = carrier.and_then(|carrier| job.follow.pool.keep(carrier));
    stage.note_end(job.index, end, job.follow);
    if let Some(mut connection) = spent {
        connection.close().await;
    }
}

/// For how many seconds nothing has come.
#[derive(Default)]
struct Silence {
    seconds: u64,
    body_bytes: u64,
}

impl Silence {
    /// Another second has passed, and so much has come since the start.
    fn second(&mut self, body_bytes: u64) {
        let is_silent = body_bytes == std::mem::replace(&mut self.body_bytes, body_bytes);
        self.seconds = if is_silent { self.seconds + 1 } else { 0 };
    }
}

async fn tell(
    stage: &PlayState,
    pools: &[Rc<Pool>],
    silence: &mut Silence,
    progress: &mut dyn FnMut(Progress),
) -> Infallible {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        silence.second(pools.iter().map(|pool| pool.body_bytes()).sum());
        progress(stage.progress());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_lasts_until_something_comes() {
        let mut silence = Silence::default();
        let seconds = [0, 0, 5, 5, 5, 9, 9].map(|body_bytes| {
            silence.second(body_bytes);
            silence.seconds
        });
        assert_eq!(seconds, [1, 2, 0, 1, 2, 0, 1]);
    }
}
