//! Who asks for what, and when: the three models behind one face, without a clock. Times are ns
//! since the start of the run.

use sooner_workload::{Arrival, Plan, Trace, Users};

/// Pause of a user after a failed request, so that a dead server is not hammered by a spinning
/// loop, in ns.
const RETRY_PAUSE_NS: u64 = 10_000_000;

/// Which arrival or user has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// This arrival of the plan.
    Arrival(usize),
    /// This user.
    User(u32),
}

/// What is played.
pub enum Script<'run> {
    /// Open, or partly-open where the plan has visits.
    Planned {
        /// What was planned.
        plan: &'run Plan,
        /// Where requests belong to visits: the end of the run, up to which they go on whether or
        /// not new ones begin.
        visits_until_ns: Option<u64>,
        /// Arrivals before this one have begun.
        next: usize,
    },
    /// Closed.
    Closed {
        /// Who asks.
        users: Users,
        /// When they stop.
        end_ns: u64,
    },
}

impl Script<'_> {
    /// Users who begin before anything has happened, each with when.
    pub fn first_turns(&mut self) -> Vec<(u64, Turn)> {
        let Script::Closed { users, end_ns } = self else {
            return Vec::new();
        };
        let turns = (0..users.count()).map(|user| (users.start_ns(user), Turn::User(user)));
        turns.filter(|(at_ns, _)| at_ns < end_ns).collect()
    }

    /// When the next planned arrival comes that waits for no response.
    pub fn next_begin_ns(&self) -> Option<u64> {
        match self {
            Script::Planned { plan, next, .. } => Some(plan.arrivals.get(*next)?.at_ns),
            Script::Closed { .. } => None,
        }
    }

    /// Takes that arrival.
    pub fn begin(&mut self) -> Option<Turn> {
        let Script::Planned { plan, next, .. } = self else {
            return None;
        };
        let turn = Turn::Arrival(*next);
        plan.arrivals.get(*next)?;
        *next += 1;
        while plan
            .arrivals
            .get(*next)
            .is_some_and(|later| later.think_ns.is_some())
        {
            *next += 1;
        }
        Some(turn)
    }

    /// Whether the run is not over at `now_ns`: something may begin that no response triggers, or
    /// users and visitors go on.
    pub fn goes_on(&self, now_ns: u64) -> bool {
        match self {
            Script::Planned {
                plan,
                visits_until_ns,
                next,
            } => {
                *next < plan.arrivals.len() || visits_until_ns.is_some_and(|end_ns| now_ns < end_ns)
            }
            Script::Closed { end_ns, .. } => now_ns < *end_ns,
        }
    }

    /// When the run is over at the earliest, where that is no matter of arrivals.
    pub fn end_ns(&self) -> Option<u64> {
        match self {
            Script::Planned {
                visits_until_ns, ..
            } => *visits_until_ns,
            Script::Closed { end_ns, .. } => Some(*end_ns),
        }
    }

    /// Source address of `turn`.
    pub fn client(&self, turn: Turn) -> u32 {
        match (self, turn) {
            (Script::Planned { plan, .. }, Turn::Arrival(index)) => plan.arrivals[index].client,
            (Script::Closed { users, .. }, Turn::User(user)) => users.client(user),
            _ => 0,
        }
    }

    /// Whether the arrival or user that has its turn has connections of its own, as a visitor has,
    /// and no share of a pool.
    pub fn has_own_connections(&self) -> bool {
        match self {
            Script::Planned {
                visits_until_ns, ..
            } => visits_until_ns.is_some(),
            Script::Closed { .. } => true,
        }
    }

    /// Whether another request of the same visitor follows the response to this one.
    pub fn is_followed(&self, turn: Turn) -> bool {
        match (self, turn) {
            (Script::Planned { plan, .. }, Turn::Arrival(index)) => {
                let next = plan.arrivals.get(index + 1);
                next.is_some_and(|next| next.think_ns.is_some())
            }
            _ => true,
        }
    }

    /// What `turn` requests at `at_ns`; none when there is nothing left to request.
    pub fn ask(&mut self, trace: &Trace, turn: Turn, at_ns: u64) -> Option<Arrival> {
        match (self, turn) {
            (Script::Planned { plan, .. }, Turn::Arrival(index)) => {
                plan.arrivals.get(index).copied()
            }
            (Script::Closed { users, .. }, Turn::User(user)) => users.ask(trace, user, at_ns),
            _ => None,
        }
    }

    /// Who asks next, and when, after `turn` ended at `ended_ns`, well or not.
    pub fn after(&mut self, turn: Turn, ended_ns: u64, failed: bool) -> Option<(u64, Turn)> {
        match (self, turn) {
            (Script::Planned { plan, .. }, Turn::Arrival(index)) => {
                let think_ns = plan.arrivals.get(index + 1)?.think_ns?;
                Some((ended_ns + think_ns, Turn::Arrival(index + 1)))
            }
            (Script::Closed { users, end_ns }, Turn::User(user)) => {
                let pause_ns = if failed { RETRY_PAUSE_NS } else { 0 };
                let at_ns = ended_ns + users.pause_ns(user, failed).max(pause_ns);
                (at_ns < *end_ns).then_some((at_ns, turn))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_workload::wire::WireModel;
    use sooner_workload::{Behaviour, UsersOptions};

    /// Visits at 5, 6 and 9 ns with two, one and three requests.
    fn plan() -> Plan {
        let arrival = |(at_ns, think_ns)| Arrival {
            at_ns,
            think_ns,
            client: 0,
            object: 0,
            new_connection: think_ns.is_none(),
            size_bytes: 1,
            work_bytes: 1,
        };
        let times = [
            (5, None),
            (5, Some(100)),
            (6, None),
            (9, None),
            (9, Some(0)),
            (9, Some(7)),
        ];
        Plan {
            arrivals: times.into_iter().map(arrival).collect(),
            phases: Vec::new(),
            offered_load: 0.5,
            passed_over: 0,
        }
    }

    #[test]
    fn visits_begin_at_their_times_and_go_on_after_responses() {
        let plan = plan();
        let mut script = Script::Planned {
            plan: &plan,
            visits_until_ns: Some(50),
            next: 0,
        };
        let mut begun = Vec::new();
        while let Some(at_ns) = script.next_begin_ns() {
            assert!(script.goes_on(0));
            begun.push((at_ns, script.begin()));
        }
        assert_eq!(
            begun,
            [(5, 0), (6, 2), (9, 3)].map(|(at_ns, index)| (at_ns, Some(Turn::Arrival(index))))
        );
        assert!(script.goes_on(49) && !script.goes_on(50) && script.begin().is_none());
        let mut after = |index| script.after(Turn::Arrival(index), 1000, false);
        assert_eq!(after(0), Some((1100, Turn::Arrival(1))));
        assert_eq!([after(1), after(2)], [None, None]);
        assert_eq!(after(3), Some((1000, Turn::Arrival(4))));
        let last = [0, 3, 4].map(|index| script.is_followed(Turn::Arrival(index)));
        assert_eq!(last, [true, true, true]);
        assert!(
            ![1, 2, 5]
                .iter()
                .any(|&index| script.is_followed(Turn::Arrival(index)))
        );
    }

    #[test]
    fn users_go_on_until_the_end_and_pause_after_a_failure() {
        let trace = Trace::embedded("epa").expect("it is built in");
        let options = UsersOptions {
            count: 2,
            behaviour: Behaviour::Trace { think_s: 0.0 },
            seed: 1,
            clients: 1,
            wire: WireModel::default(),
            head_bytes: 0,
        };
        let mut script = Script::Closed {
            users: Users::new(&trace, &options),
            end_ns: 1_000_000_000,
        };
        assert_eq!(
            script.first_turns(),
            [(0, Turn::User(0)), (0, Turn::User(1))]
        );
        let turn = Turn::User(1);
        assert_eq!(script.after(turn, 500, false), Some((500, turn)));
        assert_eq!(script.after(turn, 500, true), Some((10_000_500, turn)));
        assert_eq!(script.after(turn, 1_000_000_000, false), None);
        assert!(script.goes_on(999_999_999) && !script.goes_on(1_000_000_000));
        assert!(script.ask(&trace, turn, 500).is_some());
    }
}
