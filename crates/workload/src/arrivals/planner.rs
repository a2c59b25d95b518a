//! A plan in the making: phase by phase, first the requests, then who sends them, then when.

use super::crowd::Crowd;
use super::selection::Selector;
use super::visits::Cuts;
use super::{Arrival, Plan, PlanError, PlanOptions, PlannedPhase, Process, TOLERANCE, times};
use crate::rng::Rng;
use crate::schedule::Phase;
use crate::trace::Trace;
use std::borrow::Cow;
use std::num::NonZeroU32;
use std::ops::Range;

/// Names the random stream of the starting point.
const PURPOSE_START: u64 = 2;
/// Names the random stream of the gaps.
const PURPOSE_GAPS: u64 = 3;
/// Names the random stream of the source addresses.
const PURPOSE_CLIENTS: u64 = 4;
/// Names the random stream of the visits' lengths.
const PURPOSE_VISITS: u64 = 5;
/// Names the random stream of the pauses in visits.
const PURPOSE_THOUGHTS: u64 = 6;

/// The requests of a phase.
struct Chosen {
    /// Indices in the (endlessly repeated) trace.
    run: Range<u64>,
    /// Number of each in its visit, from 0.
    places: Vec<u64>,
}

/// The random streams of a plan.
struct Random {
    gaps: Rng,
    clients: Rng,
    visits: Rng,
    thoughts: Rng,
}

impl Random {
    fn new(seed: u64) -> Self {
        Self {
            gaps: Rng::new(seed, PURPOSE_GAPS),
            clients: Rng::new(seed, PURPOSE_CLIENTS),
            visits: Rng::new(seed, PURPOSE_VISITS),
            thoughts: Rng::new(seed, PURPOSE_THOUGHTS),
        }
    }

    fn client(&mut self, count: NonZeroU32) -> u32 {
        self.clients.below(count.get().into()) as u32
    }

    fn think_ns(&mut self, mean_s: f64) -> u64 {
        (self.thoughts.exponential() * mean_s * 1e9) as u64
    }
}

/// What requests are taken from.
struct Source<'a> {
    trace: Cow<'a, Trace>,
    selector: Selector,
}

impl<'a> Source<'a> {
    fn new(trace: Cow<'a, Trace>, options: &PlanOptions) -> Self {
        let selector = Selector::new(&trace, options.wire, options.head_bytes);
        Self { trace, selector }
    }
}

/// A plan in the making.
pub struct Planner<'a> {
    options: &'a PlanOptions,
    usual: Source<'a>,
    /// With the crowd, if there is one.
    crowded: Option<Source<'a>>,
    /// The load of the phases in which the crowd comes.
    highest_load: f64,
    random: Random,
    /// Where in the (endlessly repeated) trace the next phase starts looking.
    next: u64,
    start_s: f64,
    arrivals: Vec<Arrival>,
    phases: Vec<PlannedPhase>,
    passed_over: u64,
}

impl<'a> Planner<'a> {
    /// Nothing planned yet.
    pub fn new(trace: &'a Trace, options: &'a PlanOptions) -> Self {
        let crowded = |crowd: Crowd| {
            let trace = crowd.in_trace(trace, options.seed);
            Source::new(Cow::Owned(trace), options)
        };
        let loads = options.schedule.phases().iter().map(|phase| phase.load);
        Self {
            options,
            usual: Source::new(Cow::Borrowed(trace), options),
            crowded: options.crowd.map(crowded),
            highest_load: loads.fold(0.0, f64::max),
            random: Random::new(options.seed),
            next: Rng::new(options.seed, PURPOSE_START).below(trace.requests.len() as u64),
            start_s: 0.0,
            arrivals: Vec::new(),
            phases: Vec::new(),
            passed_over: 0,
        }
    }

    /// About how many bytes of work a request is at least, in the mean.
    pub fn mean_work_bytes(&self) -> f64 {
        let usual = self.usual.selector.mean_work_bytes();
        match &self.crowded {
            Some(crowded) => crowded.selector.mean_work_bytes().min(usual),
            None => usual,
        }
    }

    /// Plans the next phase; fails when no requests fit it.
    pub fn add(&mut self, phase: Phase) -> Result<(), PlanError> {
        let capacity_bytes = self.options.rate.bytes_per_sec() * phase.duration_s;
        let target_bytes = phase.load * capacity_bytes;
        let is_crowded = phase.load >= self.highest_load;
        let chosen = self
            .choose(target_bytes, is_crowded)
            .ok_or(PlanError::NoFit {
                load: phase.load,
                duration_s: phase.duration_s,
                target_bytes: target_bytes as u64,
            })?;
        let begins = self.begins(&chosen);
        let visits = begins.len() as u64;
        let at_ns = |fraction: f64| ((self.start_s + fraction * phase.duration_s) * 1e9) as u64;
        let begins: Vec<u64> = begins.into_iter().map(at_ns).collect();
        let first = self.arrivals.len();
        self.push(&chosen, &begins, is_crowded);
        let work_bytes: u64 = self.arrivals[first..]
            .iter()
            .map(|arrival| arrival.work_bytes)
            .sum();
        self.phases.push(PlannedPhase {
            start_s: self.start_s,
            duration_s: phase.duration_s,
            asked_load: phase.load,
            offered_load: work_bytes as f64 / capacity_bytes,
            requests: chosen.places.len() as u64,
            visits,
        });
        self.passed_over += chosen.run.start - self.next;
        self.next = chosen.run.end;
        self.start_s += phase.duration_s;
        Ok(())
    }

    /// The requests with the work nearest to `target_bytes`, cut into visits.
    fn choose(&mut self, target_bytes: f64, is_crowded: bool) -> Option<Chosen> {
        let source = source(&self.usual, self.crowded.as_ref(), is_crowded);
        let most = self.options.requests_per_connection;
        let choose = |connections: &mut dyn FnMut(u64) -> u64| {
            source
                .selector
                .choose(self.next, target_bytes, TOLERANCE, connections)
        };
        let Some(visits) = self.options.visits else {
            let run = choose(&mut |count| count.div_ceil(most.get().into()))?;
            let places = vec![0; (run.end - run.start) as usize];
            return Some(Chosen { run, places });
        };
        let mut cuts = Cuts::new(visits.length, &mut self.random.visits, most);
        let run = choose(&mut |count| cuts.connections(count))?;
        let places = (0..run.end - run.start).map(|nth| cuts.place(nth));
        Some(Chosen {
            places: places.collect(),
            run,
        })
    }

    /// When each visit begins, as a fraction of the phase.
    fn begins(&mut self, chosen: &Chosen) -> Vec<f64> {
        let is_first = |place: &&u64| **place == 0;
        match self.options.process {
            Process::Poisson => {
                let visits = chosen.places.iter().filter(is_first).count();
                times::poisson(visits as u64, &mut self.random.gaps)
            }
            Process::Trace => times::of_trace(&self.usual.trace, chosen.run.clone())
                .into_iter()
                .zip(&chosen.places)
                .filter(|(_, place)| is_first(place))
                .map(|(fraction, _)| fraction)
                .collect(),
        }
    }

    /// Adds the requests of a phase; its visits begin at `begins_ns`.
    fn push(&mut self, chosen: &Chosen, begins_ns: &[u64], is_crowded: bool) {
        let trace = &source(&self.usual, self.crowded.as_ref(), is_crowded).trace;
        let most = u64::from(self.options.requests_per_connection.get());
        let mut begins_ns = begins_ns.iter();
        let (mut at_ns, mut client) = (0, 0);
        for (nth, (index, &place)) in (0..).zip(chosen.run.clone().zip(&chosen.places)) {
            if place == 0 {
                at_ns = begins_ns.next().copied().unwrap_or(at_ns);
                client = self.random.client(self.options.clients);
            }
            let counted = match self.options.visits {
                Some(_) => place,
                None => nth,
            };
            let request = &trace.requests[(index % trace.requests.len() as u64) as usize];
            let size_bytes = trace.object_of(request).size_bytes;
            let new_connection = counted % most == 0;
            let (wire, head_bytes) = (self.options.wire, self.options.head_bytes);
            self.arrivals.push(Arrival {
                at_ns,
                think_ns: match self.options.visits {
                    Some(visits) if place > 0 => Some(self.random.think_ns(visits.think_s)),
                    _ => None,
                },
                client,
                object: request.object,
                new_connection,
                size_bytes,
                work_bytes: wire.work_bytes(size_bytes, head_bytes, new_connection),
            });
        }
    }

    /// The plan of all phases.
    pub fn finish(self) -> Plan {
        let work_bytes: u64 = self.arrivals.iter().map(|arrival| arrival.work_bytes).sum();
        Plan {
            offered_load: work_bytes as f64
                / (self.options.rate.bytes_per_sec() * self.options.duration_s),
            arrivals: self.arrivals,
            phases: self.phases,
            passed_over: self.passed_over,
        }
    }
}

/// The requests with the crowd where it comes.
fn source<'s, 'a>(
    usual: &'s Source<'a>,
    crowded: Option<&'s Source<'a>>,
    is_crowded: bool,
) -> &'s Source<'a> {
    crowded.filter(|_| is_crowded).unwrap_or(usual)
}
