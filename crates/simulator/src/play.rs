//! One run: time jumps from event to event.
//!
//! Jobs are counted from the end of the warm-up on; others go on coming until the last counted one
//! has left, so that it too had its neighbours. Then no job comes any more, all jobs present are
//! served to the end, and the run checks itself:
//! - Little's law as an identity: the time-integral of the jobs present is the sum of their
//!   response times, to the tick.
//! - Work is conserved: one server was busy for as long as the sizes say; several for at least
//!   that, and at most as often as there are servers.

use crate::server::{Incoming, Server};
use crate::source::Source;
use crate::tally::{Finished, Tally};

/// Of the counted jobs, so many may come after them before the run is ended without them.
const AFTER_SHARE: u64 = 4;
/// And at least so many.
const AFTER_LEAST: u64 = 10_000;

/// How long to play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// Jobs that come before those that count.
    pub warm_up_jobs: u64,
    /// Jobs that count.
    pub jobs: u64,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Played {
    /// The counted jobs.
    pub tally: Tally,
    /// Work of the counted jobs, ticks.
    pub work: u64,
    /// From the first counted arrival to the one after the last, ticks.
    pub window: u64,
    /// Part of the time in which a job was served, until no job came any more.
    pub busy_share: f64,
    /// Counted jobs for which the last neighbours could not come any more.
    pub cut_short: u64,
    /// Most jobs present at a time.
    pub present_max: u64,
    /// Jobs played, counted or not.
    pub played: u64,
}

/// A run that contradicts itself: a mistake of the simulator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the simulator contradicts itself ({0}); please report it with the command")]
pub struct Contradiction(String);

/// A job that is present.
#[derive(Clone, Copy)]
struct Present {
    arrived_at: u64,
    size: u64,
    counts: bool,
}

/// All that changes in a run.
struct Run<'a, S> {
    server: S,
    now: u64,
    /// By slot.
    present: Vec<Present>,
    free: Vec<u32>,
    counted_present: u64,
    finished: Vec<u32>,
    /// So many share the speed.
    servers: u64,
    tally: &'a mut Tally,
    balance: Balance,
}

/// What the checks need.
#[derive(Default)]
struct Balance {
    present: u64,
    present_max: u64,
    /// Time-integral of the jobs present.
    area: u128,
    responses: u128,
    busy: u128,
    work: u128,
    jobs: u64,
}

impl<S: Server> Run<'_, S> {
    /// Lets time pass up to `until` at the most, or to what happens at the server before.
    fn pass(&mut self, until: u64) {
        let left = until - self.now;
        let time = self
            .server
            .until_event()
            .map_or(left, |event| event.min(left));
        self.now += time;
        self.balance.area += u128::from(self.balance.present) * u128::from(time);
        self.balance.busy += u128::from(if self.balance.present > 0 { time } else { 0 });
        let finished = &mut self.finished;
        self.server
            .advance(time, self.now, &mut |slot| finished.push(slot));
    }

    /// Counts whom the server has finished, and tells the source.
    fn settle(&mut self, source: &mut impl Source) {
        for slot in self.finished.drain(..) {
            let job = self.present[slot as usize];
            let response = self.now - job.arrived_at;
            self.balance.responses += u128::from(response);
            self.balance.present -= 1;
            self.free.push(slot);
            if job.counts {
                self.counted_present -= 1;
                self.tally.add(Finished {
                    size: job.size,
                    alone: job.size.saturating_mul(self.servers),
                    response,
                });
            }
            source.done(self.now);
        }
    }

    fn arrive(&mut self, source: &mut impl Source, counts: bool) -> u64 {
        let sent = source.send();
        let present = Present {
            arrived_at: self.now,
            size: sent.size,
            counts,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.present[slot as usize] = present;
                slot
            }
            None => {
                self.present.push(present);
                (self.present.len() - 1) as u32
            }
        };
        self.counted_present += u64::from(counts);
        self.balance.present += 1;
        self.balance.present_max = self.balance.present_max.max(self.balance.present);
        self.balance.work += u128::from(sent.size);
        self.balance.jobs += 1;
        let incoming = Incoming {
            slot,
            size: sent.size,
            expected: sent.expected,
            class: sent.class,
        };
        self.server.arrive(incoming, self.now);
        sent.size
    }
}

/// Plays `source` against `server` into `tally`; `servers` is how many share the speed. `progress`
/// is told now and then how many jobs have come.
pub fn play(
    server: impl Server,
    source: &mut impl Source,
    length: Length,
    servers: u32,
    mut tally: Tally,
    mut progress: impl FnMut(u64),
) -> Result<Played, Contradiction> {
    let mut run = Run {
        server,
        now: 0,
        present: Vec::new(),
        free: Vec::new(),
        counted_present: 0,
        finished: Vec::new(),
        servers: u64::from(servers.max(1)),
        tally: &mut tally,
        balance: Balance::default(),
    };
    let last = length.warm_up_jobs.saturating_add(length.jobs);
    let ended = last.saturating_add((length.jobs / AFTER_SHARE).max(AFTER_LEAST));
    let (mut came, mut work, mut cut_short) = (0_u64, 0, 0);
    let (mut from, mut to) = (0, None);
    while let Some(at) = source.next_at() {
        if run.now < at {
            run.pass(at);
            run.settle(source);
            continue;
        }
        if came >= last && (run.counted_present == 0 || came >= ended) {
            cut_short = run.counted_present;
            break;
        }
        let counts = (length.warm_up_jobs..last).contains(&came);
        if came == length.warm_up_jobs {
            from = at;
        }
        if came == last {
            to = Some(at);
        }
        let size = run.arrive(source, counts);
        work += if counts { size } else { 0 };
        came += 1;
        if came.is_multiple_of(1 << 14) {
            progress(came);
        }
        if source.next_at().is_none() {
            // Users that all wait for each other: one job is done first.
            wait_for_someone(&mut run, source);
        }
    }
    let busy_share = run.balance.busy as f64 / (run.now as f64).max(1.0);
    drain(&mut run);
    let to = to.unwrap_or(run.now);
    let balance = run.balance;
    balance.check(servers)?;
    Ok(Played {
        work,
        window: to - from,
        busy_share,
        cut_short,
        present_max: balance.present_max,
        played: balance.jobs,
        tally,
    })
}

/// Lets time pass until a job will come again, or no job is left.
fn wait_for_someone<S: Server>(run: &mut Run<'_, S>, source: &mut impl Source) {
    while source.next_at().is_none() && run.server.until_event().is_some() {
        run.pass(u64::MAX);
        run.settle(source);
    }
}

/// Serves all jobs present to the end; no job comes any more.
fn drain<S: Server>(run: &mut Run<'_, S>) {
    struct NoMore;
    impl Source for NoMore {
        fn next_at(&self) -> Option<u64> {
            None
        }
        fn send(&mut self) -> crate::source::Sent {
            unreachable!("no job comes")
        }
        fn done(&mut self, _now: u64) {}
    }
    while run.balance.present > 0 && run.server.until_event().is_some() {
        run.pass(u64::MAX);
        run.settle(&mut NoMore);
    }
}

impl Balance {
    fn check(&self, servers: u32) -> Result<(), Contradiction> {
        if self.present > 0 {
            let message = format!("{} jobs are left and none is served", self.present);
            return Err(Contradiction(message));
        }
        if self.area != self.responses {
            let message = format!(
                "jobs present sum up to {}, response times to {}",
                self.area, self.responses
            );
            return Err(Contradiction(message));
        }
        // Times are whole ticks, so an event may come a tick late, and there are a few for each
        // job.
        let rounding = 4 * u128::from(self.jobs) + u128::from(servers);
        let most = self.work * u128::from(servers) + rounding;
        if self.busy + rounding < self.work || self.busy > most {
            let message = format!("busy for {} to do {}", self.busy, self.work);
            return Err(Contradiction(message));
        }
        Ok(())
    }
}
