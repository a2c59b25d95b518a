//! Independent replications on all processors, put together.

use crate::TICKS_PER_MEAN;
use crate::estimate::Estimate;
use crate::orders::{Measured, is_whole, with_order};
use crate::play::{Contradiction, Length, Played, play};
use crate::policy::Policy;
use crate::server::{Attained, Hybrid, Limited, Ranked, Scheduled, Server, Sharing};
use crate::source::{Source, Sources};
use crate::system::{System, Turns};
use crate::tally::{Group, Tally};
use sooner_policy::order::{Fcfs, OrderUser};
use sooner_policy::{Classes, Guard, GuardLimits, Hrrn, Order, Scheduler, WholeGuard};
use sooner_workload::model::Users;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Of the counted jobs of a replication, so many come before, uncounted, or more.
const WARM_UP_SHARE: u64 = 10;
/// Jobs that a queue of load 0 forgets its beginning in, three times over: at a load ρ it takes
/// 1/(1 - ρ)² times as many.
const FORGOTTEN_JOBS: f64 = 12.0;
/// Half an interval may be this part of the mean before it is said that the run is short.
const WIDTH_MAX: f64 = 0.05;
/// This part of the work may be in sizes larger than any that was drawn.
const UNSEEN_WORK_MAX: f64 = 0.01;
/// The offered load may be this part off the requested load.
const LOAD_OFF_MAX: f64 = 0.02;
/// The users that throughput and times stand for may be this part off.
const USERS_OFF_MAX: f64 = 0.03;
const NOT_CHECKED: &str = "a system that cannot be played is not made";
/// Confidence of intervals that are reported.
pub const CONFIDENCE: f64 = 0.95;

/// How much to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Jobs that count, of all replications.
    pub jobs: u64,
    /// Independent replications.
    pub replications: u32,
    /// Names the random numbers.
    pub seed: u64,
    /// Threads.
    pub threads: u32,
    /// Whether figures by size are kept.
    pub by_size: bool,
}

/// What replications say together.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// All counted jobs.
    pub tally: Tally,
    /// Mean response time of each replication, in mean sizes.
    means: Vec<f64>,
    /// The same of the time in which a job is not served.
    waits: Vec<f64>,
    /// Mean slowdown of each replication.
    slowdowns: Vec<f64>,
    /// Mean number of jobs in the system of each replication.
    jobs: Vec<f64>,
    /// The same of those that are not served.
    jobs_waiting: Vec<f64>,
    /// Response times of each replication.
    tallies: Vec<Group>,
    /// Of each replication, what is known to be `known` in the mean: the work that came over time,
    /// or in a closed system the mean size.
    controls: Vec<f64>,
    known: f64,
    /// Work that came over time; of a closed system the part of the time in which a job was served.
    pub realised_load: f64,
    /// Jobs finished a mean size of time.
    pub throughput: f64,
    /// Most jobs present at a time.
    pub present_max: u64,
    /// Why not to believe it; empty where nothing speaks against it.
    pub warnings: Vec<String>,
}

impl Simulated {
    /// Mean response time, in mean sizes, with its interval at `confidence`, like 0.95.
    pub fn mean_response(&self, confidence: f64) -> Estimate {
        Estimate::of(&self.means, confidence)
    }

    /// The response time that `share` of the jobs do not exceed, in mean sizes: the mean of the
    /// replications' own quantiles, with its interval. Of few jobs in each it is below that of all.
    pub fn quantile(&self, share: f64, confidence: f64) -> Estimate {
        let of_one = |group: &Group| group.quantile(share).unwrap_or(0.0) / TICKS_PER_MEAN;
        let quantiles: Vec<f64> = self.tallies.iter().map(of_one).collect();
        Estimate::of(&quantiles, confidence)
    }

    /// The same, corrected by how much came of the requested work: nearer to the truth, the more so
    /// where sizes vary.
    pub fn controlled(&self, confidence: f64) -> Estimate {
        self.corrected(&self.means, confidence)
    }

    /// Mean time in which a job is not served (Wq), in mean sizes, corrected like the response time:
    /// the response less the time that the job takes alone.
    pub fn waiting(&self, confidence: f64) -> Estimate {
        self.corrected(&self.waits, confidence)
    }

    /// Mean slowdown, corrected like the response time.
    pub fn slowdown(&self, confidence: f64) -> Estimate {
        self.corrected(&self.slowdowns, confidence)
    }

    /// Mean number of jobs in the system (L).
    pub fn jobs(&self, confidence: f64) -> Estimate {
        self.corrected(&self.jobs, confidence)
    }

    /// Mean number of jobs in the queue (Lq).
    pub fn jobs_waiting(&self, confidence: f64) -> Estimate {
        self.corrected(&self.jobs_waiting, confidence)
    }

    fn corrected(&self, values: &[f64], confidence: f64) -> Estimate {
        Estimate::controlled(values, &self.controls, self.known, confidence)
    }
}

/// Simulates `system`; `progress` is called now and then with the jobs that have come so far.
pub fn simulate(
    system: &System,
    effort: &Effort,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Simulated, Contradiction> {
    let replications = effort.replications.max(1);
    let jobs = (effort.jobs / u64::from(replications)).max(1);
    let length = Length {
        warm_up_jobs: warm_up_jobs(system, jobs),
        jobs,
    };
    let next = AtomicU64::new(0);
    let come = AtomicU64::new(0);
    let done: Mutex<Vec<(u64, Result<Played, Contradiction>)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..effort.threads.clamp(1, replications) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= u64::from(replications) {
                        return;
                    }
                    let mut before = 0;
                    let told = |so_far: u64| {
                        let new = so_far - std::mem::replace(&mut before, so_far);
                        progress(come.fetch_add(new, Ordering::Relaxed) + new);
                    };
                    let seed = effort.seed.wrapping_mul(1_000_003).wrapping_add(index);
                    let tally = Tally::new(system.borders(effort.by_size));
                    let played = one(system, seed, length, tally, told);
                    if let Ok(mut done) = done.lock() {
                        done.push((index, played));
                    }
                }
            });
        }
    });
    let mut played = done.into_inner().unwrap_or_default();
    // Sums of floats depend on their order, and threads end in any.
    played.sort_unstable_by_key(|(index, _)| *index);
    let played: Vec<Played> = played
        .into_iter()
        .map(|(_, played)| played)
        .collect::<Result<_, _>>()?;
    Ok(together(system, &played))
}

fn together(system: &System, played: &[Played]) -> Simulated {
    let mut tally = Tally::new(played[0].tally.borders().clone());
    for one in played {
        tally.merge(&one.tally);
    }
    let mean = |one: &Played| {
        let (n, sum) = one.tally.sums();
        sum / n.max(1) as f64 / TICKS_PER_MEAN
    };
    // A job alone takes its size at the speed of one server.
    let servers = f64::from(system.options().servers);
    let waited = |one: &Played| one.tally.sums().1 - servers * one.work as f64;
    let over_time = |ticks: f64, one: &Played| ticks / one.window.max(1) as f64;
    let offered = system.offered_load();
    let control = |one: &Played| match offered {
        Some(_) => one.work as f64 / one.window.max(1) as f64,
        None => one.work as f64 / one.tally.sums().0.max(1) as f64 / TICKS_PER_MEAN,
    };
    let window: f64 = played.iter().map(|one| one.window as f64).sum();
    let mut simulated = Simulated {
        throughput: tally.sums().0 as f64 / window * TICKS_PER_MEAN,
        realised_load: match offered {
            Some(_) => played.iter().map(|one| one.work as f64).sum::<f64>() / window,
            None => played.iter().map(|one| one.busy_share).sum::<f64>() / played.len() as f64,
        },
        present_max: played
            .iter()
            .map(|one| one.present_max)
            .max()
            .unwrap_or_default(),
        warnings: Vec::new(),
        tally,
        means: played.iter().map(mean).collect(),
        waits: played
            .iter()
            .map(|one| waited(one) / one.tally.sums().0.max(1) as f64 / TICKS_PER_MEAN)
            .collect(),
        slowdowns: played
            .iter()
            .map(|one| one.tally.mean_slowdown().unwrap_or_default())
            .collect(),
        jobs: played
            .iter()
            .map(|one| over_time(one.tally.sums().1, one))
            .collect(),
        jobs_waiting: played
            .iter()
            .map(|one| over_time(waited(one), one))
            .collect(),
        tallies: played.iter().map(|one| one.tally.all()).collect(),
        controls: played.iter().map(control).collect(),
        known: offered.unwrap_or(1.0),
    };
    let cut_short: u64 = played.iter().map(|one| one.cut_short).sum();
    simulated.warnings = warnings(system, &simulated, cut_short);
    simulated
}

/// Reasons not to believe a result.
fn warnings(system: &System, simulated: &Simulated, cut_short: u64) -> Vec<String> {
    let mut warnings = Vec::new();
    let Estimate { mean, half_width } = simulated.controlled(CONFIDENCE);
    match half_width {
        Some(width) if width > WIDTH_MAX * mean => warnings.push(format!(
            "the interval is {:.0} % of the mean on either side: simulate more jobs",
            100.0 * width / mean
        )),
        Some(_) => {}
        None => warnings.push("one replication has no interval: simulate two or more".into()),
    }
    let replications = simulated.means.len() as u64;
    warnings.extend(too_short(
        system,
        simulated.tally.sums().0 / replications.max(1),
        replications,
    ));
    if let (Some(asked), load) = (system.offered_load(), simulated.realised_load)
        && (load / asked - 1.0).abs() > LOAD_OFF_MAX
    {
        warnings.push(format!(
            "the load came to {load:.3}, not {asked}: simulate more jobs"
        ));
    }
    if let (Users::Closed { users, .. }, Some(think)) = (system.users(), system.mean_think()) {
        // Little's law for all users: those who think and those who wait.
        let found = simulated.throughput * (mean + think);
        let off = found / f64::from(*users) - 1.0;
        if off.abs() > USERS_OFF_MAX {
            warnings.push(format!(
                "throughput and times stand for {found:.1} users, not {users}: the system is not steady yet; simulate more jobs"
            ));
        }
    }
    if let Some(load) = system.offered_load().filter(|load| *load >= 1.0) {
        warnings.push(format!(
            "load {load} is more than the server can do: the means grow with the length of the run"
        ));
    }
    let largest = simulated.tally.largest.map_or(0.0, |job| job.size as f64);
    let largest = (largest + 1.0) / TICKS_PER_MEAN * system.sizes().mean();
    let unseen = 1.0 - system.sizes().partial_moment(1, largest) / system.sizes().mean();
    if unseen > UNSEEN_WORK_MAX {
        warnings.push(format!(
            "{:.0} % of the work is in sizes larger than any that was drawn: the true means are higher",
            100.0 * unseen
        ));
    }
    if cut_short > 0 {
        warnings.push(format!(
            "jobs still in the system when arrivals stopped, perhaps finished too early: {cut_short}"
        ));
    }
    warnings
}

/// Jobs in which an open system forgets that it began empty; none of another, or of one that never
/// does.
fn forgotten_jobs(system: &System) -> Option<f64> {
    let load = system.offered_load().filter(|load| *load < 1.0)?;
    Some(FORGOTTEN_JOBS / (1.0 - load).powi(2))
}

/// Jobs before those that count, of a replication of so many.
fn warm_up_jobs(system: &System, jobs: u64) -> u64 {
    let needed = forgotten_jobs(system).map_or(0, |needed| needed as u64);
    (jobs / WARM_UP_SHARE).max(needed.min(jobs))
}

/// Why a run is too short for its load, whatever its interval says.
fn too_short(system: &System, jobs: u64, replications: u64) -> Option<String> {
    let needed = forgotten_jobs(system).filter(|needed| *needed > jobs as f64)?;
    Some(format!(
        "{jobs} jobs a replication are too few for load {}, which remembers its beginning for longer: simulate {:.0} jobs or more",
        system.offered_load().unwrap_or_default(),
        needed.ceil() * replications as f64
    ))
}

/// One replication.
fn one(
    system: &System,
    seed: u64,
    length: Length,
    tally: Tally,
    progress: impl FnMut(u64),
) -> Result<Played, Contradiction> {
    match Sources::new(system, seed) {
        Sources::Open(source) => with_server(system, source, length, tally, progress),
        Sources::Staying(source) => with_server(system, source, length, tally, progress),
    }
}

/// Plays `source` against the server that `system` asks for.
pub fn with_server(
    system: &System,
    mut source: impl Source,
    length: Length,
    tally: Tally,
    progress: impl FnMut(u64),
) -> Result<Played, Contradiction> {
    let servers = system.options().servers;
    let player = Player {
        source: &mut source,
        length,
        servers,
        tally,
        progress,
    };
    let options = system.options();
    let policy = system.policy();
    let measured = Measured::new(system.sizes(), system.offered_load());
    if options.turns.is_some() || options.priority.is_some() {
        return player.scheduled(system, &measured);
    }
    if let Some(mpl) = options.mpl {
        if policy == Policy::FAIR {
            // Outside, where none has had anything, turns are those of arrival.
            return player.play(Limited::new(Fcfs, mpl, servers));
        }
        return known(with_order(policy, 1, &measured, BeforeLimit(player, mpl)));
    }
    match policy {
        Policy::FAIR => player.play(Sharing::new(servers)),
        Policy::LAS => player.play(Attained::default()),
        Policy::Hybrid(share) => player.play(Hybrid::new(share)),
        Policy::Hrrn => player.play(Scheduled::new(Hrrn::default())),
        _ => known(with_order(policy, 1, &measured, Alone(player))),
    }
}

/// What an order gave.
fn known(played: Option<Result<Played, Contradiction>>) -> Result<Played, Contradiction> {
    played.expect(NOT_CHECKED)
}

/// What is played against whichever server.
struct Player<'a, S, P> {
    source: &'a mut S,
    length: Length,
    servers: u32,
    tally: Tally,
    progress: P,
}

impl<S: Source, P: FnMut(u64)> Player<'_, S, P> {
    fn play(self, server: impl Server) -> Result<Played, Contradiction> {
        play(
            server,
            self.source,
            self.length,
            self.servers,
            self.tally,
            self.progress,
        )
    }

    fn scheduled(self, system: &System, measured: &Measured<'_>) -> Result<Played, Contradiction> {
        let turns = system.options().turns;
        let turn = turns.map_or(Turns::EXACT, |turns| turns.turn) * TICKS_PER_MEAN;
        let turn = (turn.round() as u64).max(1);
        let guard = turns
            .is_some_and(|turns| turns.is_guarded)
            .then(|| GuardLimits::with_turn(turn));
        let policy = system.policy();
        let scheduler: Box<dyn Scheduler> = match (policy, guard) {
            (Policy::Hrrn, None) => Box::new(Hrrn::default()),
            (Policy::Hrrn, Some(limits)) => Box::new(WholeGuard::new(Hrrn::default(), limits)),
            _ => {
                let user = ByTurns {
                    guard,
                    is_whole: is_whole(policy),
                };
                with_order(policy, turn, measured, user).expect(NOT_CHECKED)
            }
        };
        self.play(Scheduled::new(scheduler))
    }
}

/// All jobs inside, and the order decides.
struct Alone<'a, S, P>(Player<'a, S, P>);

impl<S: Source, P: FnMut(u64)> OrderUser for Alone<'_, S, P> {
    type Output = Result<Played, Contradiction>;

    fn with<O: Order + Clone>(self, order: O) -> Self::Output {
        let servers = self.0.servers;
        self.0.play(Ranked::new(order, servers))
    }
}

/// At most so many jobs inside, which share; the order decides who comes in.
struct BeforeLimit<'a, S, P>(Player<'a, S, P>, u32);

impl<S: Source, P: FnMut(u64)> OrderUser for BeforeLimit<'_, S, P> {
    type Output = Result<Played, Contradiction>;

    fn with<O: Order + Clone>(self, order: O) -> Self::Output {
        let servers = self.0.servers;
        self.0.play(Limited::new(order, self.1, servers))
    }
}

/// The order is asked again after each turn, or where none is interrupted after each job. It is
/// played as whichever scheduler it is: one program for each takes long to build.
struct ByTurns {
    guard: Option<GuardLimits>,
    is_whole: bool,
}

impl OrderUser for ByTurns {
    type Output = Box<dyn Scheduler>;

    fn with<O: Order + Clone + 'static>(self, order: O) -> Box<dyn Scheduler> {
        let classes = Classes::new(order);
        match self.guard {
            Some(limits) if self.is_whole => Box::new(WholeGuard::new(classes, limits)),
            Some(limits) => Box::new(Guard::new(classes, limits)),
            None => Box::new(classes),
        }
    }
}
