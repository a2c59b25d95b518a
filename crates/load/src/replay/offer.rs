//! What an open or partly-open run offers: a plan with an exact load in the part that is measured.
//!
//! Not every plan can be. A warm-up may be shorter than the objects of the trace are large: then
//! its requests are the beginning of a longer plan, and only the measured part is exact. Where
//! that does not fit either, the whole run is; the verdict says how far its measured part is from
//! what was requested.

use super::{ReplayOptions, clients};
use crate::measured::planned_bytes;
use crate::model::{Model, Offered};
use crate::probe::Costs;
use sooner_workload::{
    Arrival, Phase, Plan, PlanError, PlanOptions, PlannedPhase, Rate, Schedule, Visits,
};
use std::time::Duration;

/// Largest distance from the requested load that a plan's measured part may have, as a share.
pub const ASKED_TOLERANCE: f64 = 0.03;

/// Turns the seed of a run into that of a warm-up that is planned apart.
const WARM_UP_SEED: u64 = 1 << 63;

/// Arrivals, with what was requested.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The arrivals.
    pub plan: Plan,
    /// Mean load that the schedule has in the measured part.
    pub asked_load: f64,
    /// Load of the requests that were chosen for it, before heads of another length are counted.
    pub chosen_load: f64,
}

impl Offer {
    fn miss(&self) -> f64 {
        (self.chosen_load / self.asked_load - 1.0).abs()
    }
}

/// What the run offers; none in a closed system.
pub fn offer(options: &ReplayOptions, costs: &Costs) -> Result<Option<Offer>, PlanError> {
    let (offered, visits) = match &options.model {
        Model::Open(offered) => (offered, None),
        Model::PartlyOpen(offered, visits) => (offered, Some(*visits)),
        Model::Closed { .. } => return Ok(None),
    };
    let planner = Planner {
        options,
        costs,
        offered,
        visits,
    };
    planner.best().map(Some)
}

/// A way to plan a run.
type Way<'run> = fn(&Planner<'run>) -> Result<Plan, PlanError>;

/// All that a plan is made from.
struct Planner<'run> {
    options: &'run ReplayOptions,
    costs: &'run Costs,
    offered: &'run Offered,
    visits: Option<Visits>,
}

impl<'run> Planner<'run> {
    /// The first plan that is near enough, else the nearest. A constant load is first cut at the
    /// end of the warm-up; the phases of a schedule stay whole where that is near enough.
    fn best(&self) -> Result<Offer, PlanError> {
        let ways: &[Way<'run>] = match self.offered.schedule.phases() {
            _ if self.options.warm_up.is_zero() => &[Self::whole],
            [_] => &[Self::cut, Self::apart, Self::whole],
            _ => &[Self::whole, Self::cut],
        };
        let mut nearest: Result<Offer, PlanError> = Err(PlanError::Duration(0.0));
        for way in ways {
            let offer = way(self).map(|plan| self.offer(plan));
            let is_nearer = match (&offer, &nearest) {
                (Ok(offer), Ok(nearest)) => offer.miss() < nearest.miss(),
                (Err(_), Ok(_)) => false,
                (_, Err(_)) => true,
            };
            if is_nearer {
                nearest = offer;
            }
            if nearest
                .as_ref()
                .is_ok_and(|own| own.miss() <= ASKED_TOLERANCE)
            {
                break;
            }
        }
        nearest.map(|offer| self.as_served(offer))
    }

    fn whole(&self) -> Result<Plan, PlanError> {
        let Planner {
            options, offered, ..
        } = self;
        self.plan(offered.schedule.clone(), options.duration, options.seed)
    }

    fn cut(&self) -> Result<Plan, PlanError> {
        let Planner {
            options, offered, ..
        } = self;
        let cut = offered.schedule.clone();
        let cut = cut.cut_at(options.warm_up.as_secs_f64());
        self.plan(cut, options.duration, options.seed)
    }

    /// The measured part exact; the warm-up is the beginning of another plan of the whole run.
    fn apart(&self) -> Result<Plan, PlanError> {
        let options = self.options;
        let schedule = &self.offered.schedule;
        let rest = options.duration - options.warm_up;
        let measured = self.plan(schedule.clone(), rest, options.seed)?;
        let seed = options.seed ^ WARM_UP_SEED;
        let before = self.plan(schedule.clone(), options.duration, seed)?;
        let warm_up_ns = options.warm_up.as_nanos() as u64;
        Ok(joined(before, measured, warm_up_ns, options.rate))
    }

    fn plan(&self, schedule: Schedule, length: Duration, seed: u64) -> Result<Plan, PlanError> {
        let (options, costs) = (self.options, self.costs);
        let plan_options = PlanOptions {
            schedule,
            duration_s: length.as_secs_f64(),
            rate: options.rate,
            seed,
            process: self.offered.process,
            wire: costs.wire,
            head_bytes: options.plan_head_bytes.unwrap_or(costs.head_bytes),
            requests_per_connection: options.reuse.requests_per_connection,
            clients: clients(options),
            visits: self.visits,
            crowd: self.offered.crowd,
        };
        sooner_workload::plan(&options.trace, &plan_options)
    }

    fn offer(&self, plan: Plan) -> Offer {
        let options = self.options;
        let (from_s, to_s) = (
            options.warm_up.as_secs_f64(),
            options.duration.as_secs_f64(),
        );
        let capacity_bytes = options.rate.bytes_per_sec() * (to_s - from_s);
        let chosen_bytes = planned_bytes(&plan, options.warm_up.as_nanos() as u64);
        Offer {
            asked_load: mean_load(&self.offered.schedule.over(to_s), from_s),
            chosen_load: chosen_bytes as f64 / capacity_bytes,
            plan,
        }
    }

    /// Requests chosen by one length of head are as much work as this server makes of them.
    fn as_served(&self, mut offer: Offer) -> Offer {
        let costs = self.costs;
        for arrival in &mut offer.plan.arrivals {
            let (size, new) = (arrival.size_bytes, arrival.new_connection);
            arrival.work_bytes = costs.wire.work_bytes(size, costs.head_bytes, new);
        }
        offer
    }
}

/// Mean load of these phases from `from_s` to their end.
fn mean_load(phases: &[Phase], from_s: f64) -> f64 {
    let (mut start_s, mut sum_s, mut work_s) = (0.0, 0.0, 0.0);
    for phase in phases {
        let end_s = start_s + phase.duration_s;
        let part_s = (end_s - f64::max(start_s, from_s)).max(0.0);
        sum_s += part_s;
        work_s += part_s * phase.load;
        start_s = end_s;
    }
    work_s / sum_s
}

/// The beginning of `before`, then all of `measured`.
fn joined(before: Plan, measured: Plan, warm_up_ns: u64, rate: Rate) -> Plan {
    let warm_up_s = warm_up_ns as f64 / 1e9;
    let mut arrivals = before.arrivals;
    arrivals.retain(|arrival| arrival.at_ns < warm_up_ns);
    let requests = arrivals.len() as u64;
    let begins = arrivals.iter().filter(|arrival| arrival.think_ns.is_none());
    let visits = begins.count() as u64;
    let work_bytes: u64 = arrivals.iter().map(|arrival| arrival.work_bytes).sum();
    let first = measured.phases.first();
    let mut phases = vec![PlannedPhase {
        start_s: 0.0,
        duration_s: warm_up_s,
        asked_load: first.map_or(0.0, |phase| phase.asked_load),
        offered_load: work_bytes as f64 / (rate.bytes_per_sec() * warm_up_s),
        requests,
        visits,
    }];
    phases.extend(measured.phases.into_iter().map(|phase| PlannedPhase {
        start_s: phase.start_s + warm_up_s,
        ..phase
    }));
    arrivals.extend(measured.arrivals.into_iter().map(|arrival| Arrival {
        at_ns: arrival.at_ns + warm_up_ns,
        ..arrival
    }));
    let all_bytes: u64 = arrivals.iter().map(|arrival| arrival.work_bytes).sum();
    let duration_s: f64 = phases.iter().map(|phase| phase.duration_s).sum();
    Plan {
        offered_load: all_bytes as f64 / (rate.bytes_per_sec() * duration_s),
        passed_over: before.passed_over + measured.passed_over,
        arrivals,
        phases,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requested_load_is_that_of_the_measured_part() {
        let mean = |text: &str, from_s| {
            let schedule: Schedule = text.parse().unwrap();
            mean_load(&schedule.over(20.0), from_s)
        };
        assert_eq!(mean("0.75", 2.0), 0.75);
        assert_eq!(mean("0.25,1.25,10,10", 0.0), 0.75);
        assert_eq!(mean("0.25,1.25,10,10", 10.0), 1.25);
        assert_eq!(mean("0.5,1,10,10", 5.0), 12.5 / 15.0);
    }
}
