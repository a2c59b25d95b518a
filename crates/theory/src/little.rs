//! Waiting time and numbers of jobs, from the mean response time by Little's law.
//!
//! The wait of a job is its response time less the time that it would take alone: with a policy
//! that serves each job to its end, the time before its service begins (Wq of the textbooks); with
//! one that shares or interrupts, all time in which it is not served. So L = λ T and Lq = λ Wq hold
//! under every policy (Little 1961).

/// What Little's law adds to a mean response time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// Mean time that a job waits, Wq, in the unit of the response time.
    pub waiting: f64,
    /// Mean number of jobs in the system, L.
    pub jobs: f64,
    /// Mean number of jobs in the queue, Lq.
    pub jobs_waiting: f64,
}

impl Queue {
    /// Of jobs that take `service` alone and `response` in the mean, `per_time` of which come in a
    /// unit of time.
    pub fn new(response: f64, service: f64, per_time: f64) -> Self {
        let waiting = response - service;
        Self {
            waiting,
            jobs: per_time * response,
            jobs_waiting: per_time * waiting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mg1::{Mg1, Policy};
    use crate::mmk;
    use sooner_workload::Distribution;

    fn near(found: f64, exact: f64) {
        assert!((found / exact - 1.0).abs() < 1e-9, "{found} {exact}");
    }

    fn law(text: &str) -> Distribution {
        text.parse().expect("a law")
    }

    #[test]
    fn mm1_is_that_of_the_textbooks() {
        for load in [0.1, 0.5, 0.8, 0.95] {
            let sizes = law("exp:mean=1");
            for policy in [Policy::Fcfs, Policy::Fair] {
                let solved = Mg1::new(&sizes, load).expect("a queue").solve(policy);
                let queue = Queue::new(solved.mean_response, 1.0, load);
                near(queue.waiting, load / (1.0 - load));
                near(queue.jobs, load / (1.0 - load));
                near(queue.jobs_waiting, load * load / (1.0 - load));
            }
        }
    }

    #[test]
    fn mmc_is_erlangs() {
        for (servers, load) in [(2_u32, 0.5_f64), (3, 0.8), (10, 0.9)] {
            // Erlang's C from its sum, and not from the recursion that `mmk` uses.
            let c = f64::from(servers);
            let offered = c * load;
            let mut term = 1.0;
            let mut sum = 0.0;
            for n in 0..servers {
                sum += term;
                term *= offered / f64::from(n + 1);
            }
            let last = term / (1.0 - load);
            let must_wait = last / (sum + last);
            let response = mmk::mean_response(servers, load).expect("a queue");
            let queue = Queue::new(response, c, load);
            near(queue.jobs_waiting, must_wait * load / (1.0 - load));
            near(queue.waiting, must_wait / (1.0 - load));
            near(queue.jobs, offered + queue.jobs_waiting);
        }
    }

    #[test]
    fn mg1_is_pollaczeks_and_khinchines() {
        for (text, c2) in [("det:mean=1", 0.0), ("h2:mean=1,c2=4", 4.0)] {
            for load in [0.3, 0.9] {
                let sizes = law(text);
                let solved = Mg1::new(&sizes, load).expect("a queue").solve(Policy::Fcfs);
                let queue = Queue::new(solved.mean_response, 1.0, load);
                near(queue.waiting, load * (1.0 + c2) / (2.0 * (1.0 - load)));
                let jobs_waiting = load * load * (1.0 + c2) / (2.0 * (1.0 - load));
                near(queue.jobs_waiting, jobs_waiting);
                near(queue.jobs, load + jobs_waiting);
            }
        }
    }
}
