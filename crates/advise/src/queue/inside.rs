//! Who was inside together: the times of entering and leaving, walked through in order.

use sooner_admission::{ClientId, Subject};

/// A request inside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visit {
    /// When it came to the queue, ns.
    pub at_ns: u64,
    /// When it went in, ns.
    pub enter_ns: u64,
    /// When it left, later than that, ns.
    pub leave_ns: u64,
    /// Number of its kind.
    pub kind: u32,
    /// Tokens of its prompt, which are known before it runs.
    pub amount: Option<u32>,
    /// Names its client.
    pub client: Option<u32>,
}

impl Visit {
    /// From going in to leaving, ns.
    pub fn inside_ns(&self) -> f64 {
        (self.leave_ns - self.enter_ns) as f64
    }

    /// What is known of it before it runs.
    pub fn subject(&self, kinds: &[String]) -> Subject {
        Subject {
            kind: kinds.get(self.kind as usize).cloned().unwrap_or_default(),
            amount: self.amount.map(u64::from),
            client: self.client.map(|client| ClientId(client.into())),
            ..Subject::default()
        }
    }
}

/// Times and departures by how many were inside.
#[derive(Clone, Debug, Default)]
pub struct States {
    /// Time with so many inside, ns; from 0 on.
    pub time_ns: Vec<u64>,
    /// Departures with so many inside, the one that leaves among them.
    pub leaves: Vec<u64>,
}

/// One who enters or leaves.
struct Step {
    /// Since the one before, ns.
    elapsed_ns: u64,
    visit: usize,
    is_leaving: bool,
}

/// Tells `each` every step, with how many were inside until then.
fn walk(visits: &[Visit], mut each: impl FnMut(usize, &Step)) {
    let sorted = |time: fn(&Visit) -> u64| {
        let mut places: Vec<u32> = (0..visits.len() as u32).collect();
        places.sort_by_key(|place| time(&visits[*place as usize]));
        places
    };
    let enters = sorted(|visit| visit.enter_ns);
    let leaves = sorted(|visit| visit.leave_ns);
    let (mut entered, mut left) = (0, 0);
    let mut now = enters
        .first()
        .map_or(0, |first| visits[*first as usize].enter_ns);
    while left < leaves.len() {
        let leaving = leaves[left] as usize;
        let entering = enters.get(entered).map(|place| *place as usize);
        // Who leaves at the instant makes room for who enters.
        let enter = entering.filter(|place| visits[*place].enter_ns < visits[leaving].leave_ns);
        let (visit, at) = match enter {
            Some(visit) => (visit, visits[visit].enter_ns),
            None => (leaving, visits[leaving].leave_ns),
        };
        let step = Step {
            elapsed_ns: at - now,
            visit,
            is_leaving: enter.is_none(),
        };
        each(entered - left, &step);
        now = at;
        if step.is_leaving {
            left += 1;
        } else {
            entered += 1;
        }
    }
}

impl States {
    /// Of these visits.
    pub fn of(visits: &[Visit]) -> Self {
        let mut states = Self::default();
        walk(visits, |inside, step| {
            if states.time_ns.len() <= inside {
                states.time_ns.resize(inside + 1, 0);
                states.leaves.resize(inside + 1, 0);
            }
            states.time_ns[inside] += step.elapsed_ns;
            states.leaves[inside] += u64::from(step.is_leaving);
        });
        states
    }

    /// The most at a time.
    pub fn peak(&self) -> usize {
        let is_there = |leaves: &u64| *leaves > 0;
        self.leaves.iter().rposition(is_there).unwrap_or(0)
    }

    /// Share of the time with at least 1, 2, 4 and so on inside, as far as there is any.
    pub fn at_least(&self) -> Vec<(u64, f64)> {
        let all: u64 = self.time_ns.iter().sum();
        let share = |level: u64| {
            let from = usize::try_from(level).unwrap_or(usize::MAX);
            let time = self.time_ns.get(from..).unwrap_or_default();
            time.iter().sum::<u64>() as f64 / all.max(1) as f64
        };
        let levels = (0..63).map(|power| 1_u64 << power);
        let shares = levels.map(|level| (level, share(level)));
        shares.take_while(|(_, share)| *share > 0.0).collect()
    }
}

/// What each visit would have taken alone, ns, if those inside share equally and with `stretch[n]`
/// times as long a time where n are inside.
pub fn alone_ns(visits: &[Visit], stretch: &[f64]) -> Vec<f64> {
    let mut alone = vec![0.0; visits.len()];
    // What one who was always inside would have had done.
    let mut done = 0.0;
    walk(visits, |inside, step| {
        if inside > 0 {
            done += step.elapsed_ns as f64 / stretch[inside.min(stretch.len() - 1)];
        }
        if step.is_leaving {
            alone[step.visit] += done;
        } else {
            alone[step.visit] -= done;
        }
    });
    alone
}

/// How many others were inside when each went in.
pub fn inside_at_arrival(visits: &[Visit]) -> Vec<usize> {
    let mut found = vec![0; visits.len()];
    walk(visits, |inside, step| {
        if !step.is_leaving {
            found[step.visit] = inside;
        }
    });
    found
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// One that enters at once.
    pub fn visit(enter_ns: u64, leave_ns: u64) -> Visit {
        Visit {
            at_ns: enter_ns,
            enter_ns,
            leave_ns,
            kind: 0,
            amount: None,
            client: None,
        }
    }

    #[test]
    fn states_are_counted() {
        let states = States::of(&[visit(0, 40), visit(10, 20), visit(20, 30), visit(100, 101)]);
        assert_eq!(states.time_ns, [60, 21, 20]);
        assert_eq!(states.leaves, [0, 2, 2]);
        assert_eq!(states.peak(), 2);
        assert_eq!(states.at_least(), [(1, 41.0 / 101.0), (2, 20.0 / 101.0)]);
    }

    #[test]
    fn who_shared_would_have_been_faster_alone() {
        let visits = [visit(0, 40), visit(10, 30), visit(100, 107)];
        assert_eq!(alone_ns(&visits, &[1.0, 1.0, 2.0]), [30.0, 10.0, 7.0]);
        assert_eq!(alone_ns(&visits, &[1.0, 1.0, 1.0]), [40.0, 20.0, 7.0]);
    }
}
