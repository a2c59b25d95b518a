//! Least attained service by several servers, exactly: those that have had the least have a server
//! each, equals share what is left of them.

use super::{Incoming, Server, whole_above};

/// What is left to do after rounding, in units of work.
const ROUNDING: f64 = 1e-3;

/// Several servers of the same speed; a job is served by one at a time.
pub struct AttainedBySeveral {
    servers: u32,
    /// By what they have had, the least first.
    jobs: Vec<Attained>,
}

#[derive(Clone, Copy)]
struct Attained {
    slot: u32,
    size: f64,
    attained: f64,
}

impl Attained {
    fn lacks(&self) -> f64 {
        self.size - self.attained
    }
}

impl AttainedBySeveral {
    /// `servers` servers, each of that part of the whole speed.
    pub fn new(servers: u32) -> Self {
        Self {
            servers: servers.max(1),
            jobs: Vec::new(),
        }
    }

    /// What each job gets now, in units of work a unit of time.
    fn rates(&self) -> Vec<f64> {
        let mut left = f64::from(self.servers);
        let is_equal = |one: &Attained, other: &Attained| other.attained - one.attained <= ROUNDING;
        let groups = self.jobs.chunk_by(is_equal);
        let mut rates = Vec::with_capacity(self.jobs.len());
        for group in groups {
            let given = left.min(group.len() as f64);
            left -= given;
            let rate = given / group.len() as f64 / f64::from(self.servers);
            rates.extend(std::iter::repeat_n(rate, group.len()));
        }
        rates
    }

    /// The time until a job is done, or has had as much as the next one.
    fn until_change(&self, rates: &[f64]) -> f64 {
        let ends = self
            .jobs
            .iter()
            .zip(rates)
            .map(|(job, rate)| job.lacks() / rate);
        let meets = self
            .jobs
            .windows(2)
            .zip(rates.windows(2))
            .map(|(jobs, rates)| {
                let closer = rates[0] - rates[1];
                match closer > 0.0 {
                    true => (jobs[1].attained - jobs[0].attained) / closer,
                    false => f64::INFINITY,
                }
            });
        ends.chain(meets).fold(f64::INFINITY, f64::min)
    }
}

impl Server for AttainedBySeveral {
    fn arrive(&mut self, job: Incoming, _now: u64) {
        let new = Attained {
            slot: job.slot,
            size: job.size as f64,
            attained: 0.0,
        };
        self.jobs.insert(0, new);
    }

    fn until_event(&mut self) -> Option<u64> {
        let change = self.until_change(&self.rates());
        change.is_finite().then(|| whole_above(change))
    }

    fn advance(&mut self, time: u64, _now: u64, done: &mut impl FnMut(u32)) {
        let mut left = time as f64;
        while left > 0.0 && !self.jobs.is_empty() {
            let rates = self.rates();
            // Rounding may leave a little; it never goes on without an end.
            let step = self.until_change(&rates).max(ROUNDING).min(left);
            for (job, rate) in self.jobs.iter_mut().zip(&rates) {
                job.attained = (job.attained + rate * step).min(job.size);
            }
            left -= step;
            self.jobs.retain(|job| {
                let is_done = job.lacks() <= ROUNDING;
                if is_done {
                    done(job.slot);
                }
                !is_done
            });
            self.jobs
                .sort_by(|one, other| one.attained.total_cmp(&other.attained));
        }
    }
}
