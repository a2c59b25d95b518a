//! Who sends jobs, and when: users as the model file has them, or jobs that are given one by one.

use crate::system::{Knowledge, System};
use sooner_workload::guess::Calibration;
use sooner_workload::model::{Arrivals, Users};
use sooner_workload::schedule::Phase;
use sooner_workload::trace::Row;
use sooner_workload::{Distribution, Rng, Sampler};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Streams of random numbers, so that the n-th size is the same whatever the policy does.
mod stream {
    pub const SIZES: u64 = 0x51;
    pub const GAPS: u64 = 0x52;
    pub const THINK: u64 = 0x53;
    pub const STAY: u64 = 0x54;
    pub const ERRORS: u64 = 0x55;
    pub const CLASSES: u64 = 0x56;
    pub const START: u64 = 0x57;
}

/// The nearest whole number; `f64::round` is a call where the processor's instruction may not be
/// used.
fn whole(ticks: f64) -> u64 {
    (ticks + 0.5) as u64
}

/// A job as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// What it takes, ticks.
    pub size: u64,
    /// What it is thought to take, ticks.
    pub expected: u64,
    /// Its class; 0 goes first.
    pub class: u8,
}

/// Sends jobs in the order of time.
pub trait Source {
    /// When the next job comes, as far as it is known; none when no job will come unless another
    /// one leaves.
    fn next_at(&self) -> Option<u64>;

    /// The job that comes at [`next_at`](Self::next_at).
    fn send(&mut self) -> Sent;

    /// A job is done; a user who waits for one goes on.
    fn done(&mut self, now: u64);
}

/// A trace's requests in their order, from one that the seed chooses, round and round.
struct Replay {
    rows: Arc<[Row]>,
    next: usize,
}

impl Replay {
    /// None unless the system requests the gaps of a trace.
    fn new(system: &System, seed: u64) -> Option<Self> {
        let (Users::Open { arrivals, .. } | Users::PartlyOpen { arrivals, .. }) = system.users()
        else {
            return None;
        };
        let rows = system.options().rows.clone()?;
        let mut start = Rng::new(seed, stream::START);
        let next = start.below(rows.len() as u64) as usize;
        matches!(arrivals, Arrivals::Trace).then_some(Self { rows, next })
    }

    fn mean_gap_s(&self) -> f64 {
        self.rows.iter().map(|row| row.gap_s).sum::<f64>() / self.rows.len() as f64
    }

    fn next(&mut self) -> Row {
        let row = self.rows[self.next];
        self.next = (self.next + 1) % self.rows.len();
        row
    }
}

/// Draws jobs.
pub struct Jobs {
    sizes: Sampler,
    /// Where sizes come in the order of a trace.
    replay: Option<Replay>,
    ticks_per_unit: f64,
    knowledge: Knowledge,
    /// What each kind is expected to take, ticks.
    kinds: Vec<u64>,
    errors: Option<Sampler>,
    calibration: Option<Calibration>,
    classes: Rng,
    /// Sizes up to this go first, ticks.
    small: u64,
}

impl Jobs {
    /// Jobs of `system`, of one replication's `seed`.
    pub fn new(system: &System, seed: u64) -> Self {
        let ticks_per_unit = system.ticks_per_unit();
        let ticks = |size: f64| whole(size * ticks_per_unit).max(1);
        let sizes = system.sizes();
        Self {
            kinds: sizes.kinds().iter().map(|kind| ticks(kind.mean)).collect(),
            errors: system
                .errors()
                .map(|law| Sampler::new(law, seed, stream::ERRORS)),
            calibration: system.calibration(),
            small: system.small().map_or(0, ticks),
            sizes: Sampler::new(sizes.clone(), seed, stream::SIZES),
            replay: Replay::new(system, seed),
            ticks_per_unit,
            knowledge: system.knowledge(),
            classes: Rng::new(seed, stream::CLASSES),
        }
    }

    fn draw(&mut self) -> Sent {
        let (units, kind) = match &mut self.replay {
            None => self.sizes.draw_kind(),
            Some(replay) => (replay.next().size_bytes, 0),
        };
        let size = whole(units * self.ticks_per_unit).max(1);
        let expected = match (self.knowledge, &mut self.errors) {
            (Knowledge::Kind, _) => self.kinds[kind],
            (_, Some(errors)) => {
                let estimate = size as f64 * errors.draw();
                let ticks = self.ticks_per_unit;
                whole(match &self.calibration {
                    None => estimate,
                    Some(calibration) => calibration.mean_of(estimate / ticks) * ticks,
                })
                .max(1)
            }
            _ => size,
        };
        let class = match self.knowledge {
            Knowledge::SmallFirst => u8::from(size > self.small),
            Knowledge::Chance(high) => u8::from(self.classes.uniform() >= high),
            Knowledge::Size | Knowledge::Kind => 0,
        };
        Sent {
            size,
            expected,
            class,
        }
    }
}

/// Instants at which a job or a visitor comes by itself, at a rate that follows a schedule.
struct Comings {
    /// Gaps of mean 1.
    gaps: Gaps,
    /// Comings a tick in each phase, and its length in ticks.
    phases: Vec<(f64, f64)>,
    phase: usize,
    /// Of the phase, ticks.
    left: f64,
    now: u64,
}

enum Gaps {
    Exponential(Rng),
    Law(Sampler, f64),
    Trace(Replay, f64),
}

impl Gaps {
    fn new(arrivals: &Arrivals, system: &System, seed: u64) -> Self {
        match (arrivals, Replay::new(system, seed)) {
            (_, Some(replay)) => {
                let mean = replay.mean_gap_s();
                Self::Trace(replay, mean)
            }
            (Arrivals::Renewal(law), None) => {
                Self::Law(Sampler::new(law.clone(), seed, stream::GAPS), law.mean())
            }
            _ => Self::Exponential(Rng::new(seed, stream::GAPS)),
        }
    }

    fn draw(&mut self) -> f64 {
        match self {
            Self::Exponential(rng) => rng.exponential(),
            Self::Law(sampler, mean) => sampler.draw() / *mean,
            Self::Trace(replay, mean) => replay.next().gap_s / *mean,
        }
    }
}

impl Comings {
    /// `jobs_each` jobs come of one coming, in the mean.
    fn new(
        arrivals: &Arrivals,
        phases: &[Phase],
        jobs_each: f64,
        system: &System,
        seed: u64,
    ) -> Self {
        let ticks_per_unit = system.ticks_per_unit();
        let mean = system.sizes().mean() * ticks_per_unit;
        let of = |phase: &Phase| {
            (
                phase.load / mean / jobs_each,
                phase.duration_s * system.ticks_of_time(),
            )
        };
        let phases: Vec<(f64, f64)> = phases.iter().map(of).collect();
        let mut comings = Self {
            gaps: Gaps::new(arrivals, system, seed),
            left: phases[0].1,
            phases,
            phase: 0,
            now: 0,
        };
        comings.advance();
        comings
    }

    fn advance(&mut self) {
        let mut gap = self.gaps.draw();
        let mut passed = 0.0;
        loop {
            let (rate, length) = self.phases[self.phase];
            let needed = gap / rate;
            if needed < self.left || length.is_infinite() {
                self.left -= needed;
                passed += needed;
                break;
            }
            gap -= self.left * rate;
            passed += self.left;
            self.phase = (self.phase + 1) % self.phases.len();
            self.left = self.phases[self.phase].1;
        }
        self.now += whole(passed);
    }
}

/// Jobs that come whatever became of the others.
pub struct Open {
    jobs: Jobs,
    comings: Comings,
}

impl Source for Open {
    fn next_at(&self) -> Option<u64> {
        Some(self.comings.now)
    }

    fn send(&mut self) -> Sent {
        self.comings.advance();
        self.jobs.draw()
    }

    fn done(&mut self, _now: u64) {}
}

/// Users who think, send a job, wait for its end, and perhaps stay for another.
pub struct Staying {
    jobs: Jobs,
    think: Sampler,
    ticks_of_time: f64,
    /// When each of those who think sends the next job.
    thinking: BinaryHeap<Reverse<u64>>,
    stay: Option<(f64, Rng)>,
    newcomers: Option<Comings>,
}

impl Staying {
    fn pause(&mut self, now: u64) {
        let pause = whole(self.think.draw() * self.ticks_of_time);
        self.thinking.push(Reverse(now + pause));
    }

    fn thought_at(&self) -> Option<u64> {
        self.thinking.peek().map(|&Reverse(at)| at)
    }
}

impl Source for Staying {
    fn next_at(&self) -> Option<u64> {
        let newcomer = self.newcomers.as_ref().map(|comings| comings.now);
        newcomer.into_iter().chain(self.thought_at()).min()
    }

    fn send(&mut self) -> Sent {
        let next = self.next_at();
        match &mut self.newcomers {
            Some(newcomers) if Some(newcomers.now) == next => newcomers.advance(),
            _ => drop(self.thinking.pop()),
        }
        self.jobs.draw()
    }

    fn done(&mut self, now: u64) {
        let stays = match &mut self.stay {
            Some((probability, rng)) => rng.uniform() < *probability,
            None => true,
        };
        if stays {
            self.pause(now);
        }
    }
}

/// The sources of a system's users.
pub enum Sources {
    /// Open.
    Open(Open),
    /// Closed or partly-open.
    Staying(Staying),
}

impl Sources {
    /// The users of `system`, of one replication's `seed`.
    pub fn new(system: &System, seed: u64) -> Self {
        let jobs = Jobs::new(system, seed);
        let staying = |think: &Distribution| Staying {
            jobs: Jobs::new(system, seed),
            think: Sampler::new(think.clone(), seed, stream::THINK),
            ticks_of_time: system.ticks_of_time(),
            thinking: BinaryHeap::new(),
            stay: None,
            newcomers: None,
        };
        match system.users() {
            Users::Open { schedule, arrivals } => Self::Open(Open {
                comings: Comings::new(arrivals, schedule.phases(), 1.0, system, seed),
                jobs,
            }),
            Users::Closed { users, think } => {
                let mut source = staying(think);
                for _ in 0..*users {
                    source.pause(0);
                }
                Self::Staying(source)
            }
            Users::PartlyOpen {
                schedule,
                arrivals,
                stay,
                think,
            } => Self::Staying(Staying {
                stay: Some((*stay, Rng::new(seed, stream::STAY))),
                newcomers: Some(Comings::new(
                    arrivals,
                    schedule.phases(),
                    1.0 / (1.0 - stay),
                    system,
                    seed,
                )),
                ..staying(think)
            }),
        }
    }
}

/// Jobs that are given, in the order of time.
pub struct Given<'a> {
    jobs: &'a [(u64, u64)],
    next: usize,
}

impl<'a> Given<'a> {
    /// Jobs as (arrival, size), in ticks, sorted by arrival.
    pub fn new(jobs: &'a [(u64, u64)]) -> Self {
        Self { jobs, next: 0 }
    }
}

impl Source for Given<'_> {
    fn next_at(&self) -> Option<u64> {
        self.jobs.get(self.next).map(|job| job.0)
    }

    fn send(&mut self) -> Sent {
        let size = self.jobs.get(self.next).map_or(1, |job| job.1.max(1));
        self.next += 1;
        Sent {
            size,
            expected: size,
            class: 0,
        }
    }

    fn done(&mut self, _now: u64) {}
}
