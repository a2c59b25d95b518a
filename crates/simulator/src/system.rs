//! What is simulated: sizes, users, policy, servers, limit, and what is known of a job. Checked
//! once, so that a run cannot fail on it.

use crate::TICKS_PER_MEAN;
use crate::policy::Policy;
use crate::tally::{Borders, SIZE_BUCKETS};
use sooner_workload::Distribution;
use sooner_workload::guess::Calibration;
use sooner_workload::model::{Arrivals, Users};
use sooner_workload::trace::Row;
use std::sync::Arc;

/// Largest σ of the logarithm of an estimate over its size: beyond, too many estimates are less than
/// a tick or more than the clock holds.
pub const ERROR_MAX: f64 = 5.0;

/// Shortest phase of a schedule, in mean sizes: all phases between two arrivals are walked through.
const PHASE_MIN: f64 = 0.01;

/// What a policy is told of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Knowledge {
    /// Its size, or an estimate.
    Size,
    /// The mean of its kind.
    Kind,
    /// Its size, and the smaller half goes first.
    SmallFirst,
    /// Its size, and whether it is of the share that goes first, by chance.
    Chance(f64),
}

/// Who goes first before the policy is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Priority {
    /// This share of the jobs, the smallest.
    Smallest(f64),
    /// This share of the jobs, by chance.
    Chance(f64),
}

/// The guard of the crate `policy`, and the turns that go with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turns {
    /// Work between two questions to the policy, in mean sizes.
    pub turn: f64,
    /// Whether the oldest gets its share.
    pub is_guarded: bool,
}

impl Turns {
    /// Turns so short, in mean sizes, that sharing by turns is sharing: where the system requests
    /// only priorities.
    pub(crate) const EXACT: f64 = 0.01;
}

/// Parts of a system that have a default.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Servers that share the speed.
    pub servers: u32,
    /// Most jobs inside at a time, sharing; the others wait in the order of the policy.
    pub mpl: Option<u32>,
    /// σ of the logarithm of estimate over size; none where sizes are known.
    pub error: Option<f64>,
    /// A job is expected to take the mean of all that have its estimate, as a learner says.
    pub calibrated: bool,
    /// Who goes first, whatever the policy says.
    pub priority: Option<Priority>,
    /// The packetised form that a real link runs; none for the exact one.
    pub turns: Option<Turns>,
    /// Work that is done in a second, where think times and schedules are in seconds; none where
    /// they are in the unit of the sizes.
    pub work_per_second: Option<f64>,
    /// More may come than can be done: the caller has said for how long.
    pub overloaded: bool,
    /// The requests of the trace, in its order, where the system requests the trace's own gaps.
    pub rows: Option<Arc<[Row]>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            servers: 1,
            mpl: None,
            error: None,
            calibrated: false,
            priority: None,
            turns: None,
            work_per_second: None,
            overloaded: false,
            rows: None,
        }
    }
}

/// A system that cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SystemError {
    /// The sizes have no mean.
    #[error("sizes without a mean above 0 cannot be scaled; give a law that has one")]
    NoMean,
    /// More comes than can be done.
    #[error(
        "load {0} is more than the server can do, so the queue grows as long as it is simulated; give a load below 1, or an alternating schedule with a mean below 1, or tell `sooner sim` how long to simulate (--jobs)"
    )]
    Unstable(f64),
    /// The policy tells kinds apart.
    #[error(
        "{0} needs jobs of two kinds; give sizes of a hyperexponential law, like h2:mean=1,c2=8"
    )]
    OneKind(Policy),
    /// The policy is for one server.
    #[error(
        "{0} is simulated with one server; leave servers at 1, or use fair, fcfs, srpt, psjf, sjf, ljf, pljf, pesjf, peljf, boost or nudge"
    )]
    OneServer(Policy),
    /// The policy cannot order those outside.
    #[error(
        "{0} needs to know the service that jobs have received, but those that wait outside have received none; use fair, fcfs, srpt, psjf, sjf, ljf, pljf, pesjf, peljf, boost or nudge with an MPL"
    )]
    NotOutside(Policy),
    /// The policy has no packetised form.
    #[error("{0} is simulated only exactly; leave out turns, guard and priorities")]
    NoTurns(Policy),
    /// Two parts that do not go together.
    #[error("{0} and {1} are not simulated together; leave one out")]
    Together(&'static str, &'static str),
    /// A number out of range.
    #[error("{what} {value} is out of range; give {range}")]
    Range {
        /// Of what.
        what: &'static str,
        /// The number.
        value: f64,
        /// What would be right.
        range: &'static str,
    },
    /// A schedule in the wrong unit.
    #[error(
        "a phase of {length:e} mean sizes is too short; give at least {PHASE_MIN}: phases are {}",
        unit_of_phases(*.has_rate)
    )]
    Phase {
        /// Its length in mean sizes.
        length: f64,
        /// Whether times are seconds.
        has_rate: bool,
    },
    /// Gaps of a trace need the trace.
    #[error("the gaps of a trace need its sizes too; write sizes = \"trace:NAME\"")]
    TraceGaps,
    /// All of a trace at one instant.
    #[error(
        "the trace has no time between its requests that could be scaled to the load; use poisson or renewal arrivals"
    )]
    NoGaps,
}

/// A system that can be simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    sizes: Distribution,
    users: Users,
    policy: Policy,
    options: Options,
}

/// In which unit phases are, and what would be right.
fn unit_of_phases(has_rate: bool) -> &'static str {
    match has_rate {
        true => "in seconds of the link",
        false => "in the unit of the sizes; give --uplink where they are seconds",
    }
}

fn in_range(
    what: &'static str,
    value: f64,
    is_right: bool,
    range: &'static str,
) -> Result<(), SystemError> {
    if is_right {
        Ok(())
    } else {
        Err(SystemError::Range { what, value, range })
    }
}

impl System {
    /// The system, if it can be simulated.
    pub fn new(
        sizes: Distribution,
        users: Users,
        policy: Policy,
        options: Options,
    ) -> Result<Self, SystemError> {
        let system = Self {
            sizes,
            users,
            policy,
            options,
        };
        system.check_load()?;
        system.check_numbers()?;
        system.check_policy()?;
        Ok(system)
    }

    fn check_load(&self) -> Result<(), SystemError> {
        let mean = self.sizes.mean();
        if !mean.is_finite() || mean <= 0.0 {
            return Err(SystemError::NoMean);
        }
        match self.offered_load() {
            Some(load) if load >= 1.0 && !self.options.overloaded => {
                Err(SystemError::Unstable(load))
            }
            _ => Ok(()),
        }?;
        let of_trace = matches!(
            &self.users,
            Users::Open {
                arrivals: Arrivals::Trace,
                ..
            } | Users::PartlyOpen {
                arrivals: Arrivals::Trace,
                ..
            }
        );
        let has_gaps = |rows: &Arc<[Row]>| rows.iter().any(|row| row.gap_s > 0.0);
        match self
            .options
            .rows
            .as_ref()
            .filter(|_| of_trace)
            .map(has_gaps)
        {
            None if of_trace => Err(SystemError::TraceGaps),
            Some(false) => Err(SystemError::NoGaps),
            _ => Ok(()),
        }
    }

    fn check_numbers(&self) -> Result<(), SystemError> {
        if let Some(error) = self.options.error {
            let is_right = (0.0..=ERROR_MAX).contains(&error);
            in_range("the error of estimates", error, is_right, "0 to 5")?;
        }
        if let Some(Priority::Smallest(share) | Priority::Chance(share)) = self.options.priority {
            let is_right = share > 0.0 && share < 1.0;
            in_range(
                "the share that goes first",
                share,
                is_right,
                "a number above 0 and below 1",
            )?;
        }
        if let Some(work) = self.options.work_per_second {
            let is_right = work > 0.0 && work.is_finite();
            in_range("work per second", work, is_right, "a number above 0")?;
        }
        if let Some(Turns { turn, .. }) = self.options.turns {
            let is_right = (1e-6..=1e6).contains(&turn);
            in_range("a turn of", turn, is_right, "1e-6 to 1e6 mean sizes")?;
        }
        self.check_phases()
    }

    fn check_phases(&self) -> Result<(), SystemError> {
        let (Users::Open { schedule, .. } | Users::PartlyOpen { schedule, .. }) = &self.users
        else {
            return Ok(());
        };
        let means_each = self.ticks_of_time() / TICKS_PER_MEAN;
        let phases = schedule.phases().iter();
        let mut lengths = phases.map(|phase| phase.duration_s * means_each);
        match lengths.find(|length| *length < PHASE_MIN) {
            None => Ok(()),
            Some(length) => Err(SystemError::Phase {
                length,
                has_rate: self.options.work_per_second.is_some(),
            }),
        }
    }

    fn check_policy(&self) -> Result<(), SystemError> {
        use Policy::{Hrrn, Hybrid, Psbs};
        let policy = self.policy;
        let needs_attained =
            policy.ranks_by_age() || matches!(policy, Policy::FSP | Psbs | Hybrid(_));
        let is_alone = needs_attained || policy == Hrrn;
        let turns = self.options.turns.is_some() || self.options.priority.is_some();
        let options = &self.options;
        if policy.knows_kinds_only() && self.sizes.kinds().len() < 2 {
            return Err(SystemError::OneKind(policy));
        }
        if options.servers > 1 && (is_alone || turns) {
            return Err(if is_alone {
                SystemError::OneServer(policy)
            } else {
                SystemError::Together("several servers", "turns, guard or priorities")
            });
        }
        if options.mpl.is_some() && needs_attained {
            return Err(SystemError::NotOutside(policy));
        }
        if options.mpl.is_some() && policy == Hrrn {
            return Err(SystemError::Together("hrrn", "an MPL"));
        }
        if options.mpl.is_some() && turns {
            return Err(SystemError::Together(
                "an MPL",
                "turns, guard or priorities",
            ));
        }
        if turns && matches!(policy, Hybrid(_)) {
            return Err(SystemError::NoTurns(policy));
        }
        if policy.knows_kinds_only() && (options.error.is_some() || options.priority.is_some()) {
            return Err(SystemError::Together("kinds", "estimates or priorities"));
        }
        Ok(())
    }

    /// Laws of sizes.
    pub fn sizes(&self) -> &Distribution {
        &self.sizes
    }

    /// Who sends jobs.
    pub fn users(&self) -> &Users {
        &self.users
    }

    /// Who goes first.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The rest.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Work that comes over work that can be done, in the mean over a schedule; none in a closed
    /// system.
    pub fn offered_load(&self) -> Option<f64> {
        let (Users::Open { schedule, .. } | Users::PartlyOpen { schedule, .. }) = &self.users
        else {
            return None;
        };
        let phases = schedule.phases();
        match phases {
            [one] => Some(one.load),
            _ => {
                let length: f64 = phases.iter().map(|phase| phase.duration_s).sum();
                Some(
                    phases
                        .iter()
                        .map(|phase| phase.load * phase.duration_s)
                        .sum::<f64>()
                        / length,
                )
            }
        }
    }

    pub(crate) fn ticks_per_unit(&self) -> f64 {
        TICKS_PER_MEAN / self.sizes.mean()
    }

    /// Ticks of a think time or a phase of 1.
    pub(crate) fn ticks_of_time(&self) -> f64 {
        self.ticks_per_unit() * self.options.work_per_second.unwrap_or(1.0)
    }

    /// Mean of the time from an answer to the next job, in mean sizes; none of users who do not
    /// stay.
    pub fn mean_think(&self) -> Option<f64> {
        match &self.users {
            Users::Open { .. } => None,
            Users::Closed { think, .. } | Users::PartlyOpen { think, .. } => {
                Some(think.mean() * self.ticks_of_time() / TICKS_PER_MEAN)
            }
        }
    }

    /// Seconds that the mean size takes; none where the work per second is not known.
    pub fn mean_service_s(&self) -> Option<f64> {
        let work = self.options.work_per_second?;
        Some(self.sizes.mean() / work)
    }

    pub(crate) fn knowledge(&self) -> Knowledge {
        match (self.policy.knows_kinds_only(), self.options.priority) {
            (true, _) => Knowledge::Kind,
            (_, Some(Priority::Smallest(_))) => Knowledge::SmallFirst,
            (_, Some(Priority::Chance(share))) => Knowledge::Chance(share),
            _ => Knowledge::Size,
        }
    }

    /// Law of estimate over size: its median is 1.
    pub(crate) fn errors(&self) -> Option<Distribution> {
        let sigma = self.options.error.filter(|error| *error > 0.0)?;
        format!("lognormal:mu=0,sigma={sigma}").parse().ok()
    }

    /// What estimates are corrected to.
    pub(crate) fn calibration(&self) -> Option<Calibration> {
        let sigma = self.options.error.filter(|error| *error > 0.0)?;
        let calibrated = self.options.calibrated;
        calibrated.then(|| Calibration::new(&self.sizes, sigma))
    }

    /// The largest size that goes first.
    pub(crate) fn small(&self) -> Option<f64> {
        match self.options.priority {
            Some(Priority::Smallest(share)) => Some(self.sizes.quantile(share)),
            _ => None,
        }
    }

    pub(crate) fn borders(&self, by_size: bool) -> Borders {
        let ticks = |share: f64| {
            let size = self.sizes.quantile(share) * self.ticks_per_unit();
            (size.round() as u64).max(1)
        };
        let bucket = |place: usize| ticks(place as f64 / SIZE_BUCKETS as f64);
        Borders {
            median: ticks(0.5),
            top: ticks(0.99),
            buckets: if by_size {
                (1..SIZE_BUCKETS).map(bucket).collect()
            } else {
                Vec::new()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sizes: &str, schedule: &str, work_per_second: Option<f64>) -> Result<System, String> {
        let users = Users::Open {
            schedule: schedule.parse().expect("a schedule"),
            arrivals: Arrivals::Poisson,
        };
        let options = Options {
            work_per_second,
            ..Options::default()
        };
        let system = System::new(sizes.parse().expect("a law"), users, Policy::FCFS, options);
        system.map_err(|error| error.to_string())
    }

    #[test]
    fn phases_are_as_long_as_sizes_are() {
        assert!(of("exp:mean=0.001", "0.4,1.4,0.05,0.05", None).is_ok());
        let refused = of("exp:mean=1e9", "0.4,1.4,10,10", None).expect_err("too short");
        for words in ["1e-8 mean sizes", "at least 0.01:", "give --uplink where"] {
            assert!(refused.contains(words), "{words}: {refused}");
        }
        // 10 s, and a mean size takes 100 s; then 0.1 ms.
        let of_link = |rate| of("exp:mean=1000", "0.4,1.4,10,10", Some(rate));
        assert!(of_link(10.0).is_ok() && of_link(1e7).is_ok());
        let refused = of_link(0.1).expect_err("too short");
        assert!(refused.ends_with("in seconds of the link"), "{refused}");
        assert!(of("exp:mean=1e9", "0.8", None).is_ok());
    }
}
