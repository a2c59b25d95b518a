//! Places at a server: as many requests under way as connections allow, and who waits for one.

use crate::pool::Pool;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// A request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// What is asked.
    pub request: u32,
    /// When it was to be sent, CLOCK_MONOTONIC ns.
    pub intended_ns: u64,
    /// Whether it is before the measured part.
    pub is_warm_up: bool,
    /// When a place became free for it, where it had to wait for one.
    pub free_ns: Option<u64>,
}

/// The connections to one server.
pub struct Server {
    /// Those that are open.
    pub pool: Pool,
    connections: u32,
    places: Places,
}

#[derive(Default)]
struct Places {
    most: u64,
    /// Fewer, where a server of HTTP/2 allows fewer streams than were asked for.
    allowed: Cell<Option<u64>>,
    taken: Cell<u64>,
    waiting: RefCell<VecDeque<Job>>,
}

impl Server {
    /// With at most so many connections.
    pub fn new(pool: Pool, connections: u32) -> Self {
        let places = Places {
            most: u64::from(connections) * u64::from(pool.requests_at_a_time()),
            ..Places::default()
        };
        Self {
            pool: pool.with_at_most(connections),
            connections,
            places,
        }
    }

    /// What is known of the server by now.
    fn learn(&self) {
        if let Some(streams) = self.pool.streams_allowed() {
            let places = u64::from(self.connections) * u64::from(streams);
            self.places.allowed.set(Some(places));
        }
    }

    /// Takes a place if one is free.
    pub fn take_place(&self) -> bool {
        self.learn();
        self.places.take()
    }

    /// Lets `job` wait for a place; gives those that were due before `oldest_ns` and wait no more.
    pub fn wait(&self, job: Job, oldest_ns: u64) -> Vec<Job> {
        self.places.wait(job, oldest_ns)
    }

    /// A place has become free: who takes it, if any, and those that wait no more.
    pub fn next(&self, now_ns: u64, oldest_ns: u64) -> (Option<Job>, Vec<Job>) {
        self.learn();
        self.places.next(now_ns, oldest_ns)
    }
}

impl Places {
    fn most(&self) -> u64 {
        let allowed = self.allowed.get().unwrap_or(self.most);
        allowed.min(self.most)
    }

    fn take(&self) -> bool {
        let is_free = self.taken.get() < self.most();
        self.taken.set(self.taken.get() + u64::from(is_free));
        is_free
    }

    fn wait(&self, job: Job, oldest_ns: u64) -> Vec<Job> {
        self.waiting.borrow_mut().push_back(job);
        self.expired(oldest_ns)
    }

    fn next(&self, now_ns: u64, oldest_ns: u64) -> (Option<Job>, Vec<Job>) {
        let expired = self.expired(oldest_ns);
        // Where more are taken than there are, who waits has the next.
        let is_one_too_many = self.taken.get() > self.most();
        let next = match is_one_too_many {
            true => None,
            false => self.waiting.borrow_mut().pop_front(),
        };
        if next.is_none() {
            self.taken.set(self.taken.get() - 1);
        }
        let next = next.map(|job| Job {
            free_ns: Some(now_ns),
            ..job
        });
        (next, expired)
    }

    fn expired(&self, oldest_ns: u64) -> Vec<Job> {
        let mut waiting = self.waiting.borrow_mut();
        let mut expired = Vec::new();
        while waiting
            .front()
            .is_some_and(|job| job.intended_ns < oldest_ns)
        {
            expired.extend(waiting.pop_front());
        }
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(intended_ns: u64) -> Job {
        Job {
            request: 0,
            intended_ns,
            is_warm_up: false,
            free_ns: None,
        }
    }

    #[test]
    fn places_are_given_on_in_order_and_no_more_than_there_are() {
        let places = Places {
            most: 1,
            ..Places::default()
        };
        assert!(places.take() && !places.take());
        assert!(places.wait(job(5), 0).is_empty() && places.wait(job(6), 0).is_empty());
        let (next, expired) = places.next(9, 0);
        assert_eq!(
            (
                next.map(|job| (job.intended_ns, job.free_ns)),
                expired.len()
            ),
            (Some((5, Some(9))), 0)
        );
        assert!(!places.take());
        assert_eq!(places.next(9, 0).0.map(|job| job.intended_ns), Some(6));
        assert_eq!(places.next(9, 0).0, None);
        assert!(places.take());
    }

    #[test]
    fn a_server_that_allows_fewer_gets_no_more() {
        let places = Places {
            most: 3,
            ..Places::default()
        };
        assert!(places.take() && places.take() && places.take() && !places.take());
        assert!(places.wait(job(5), 0).is_empty() && places.wait(job(6), 0).is_empty());
        places.allowed.set(Some(2));
        let next = || places.next(9, 0).0.map(|job| job.intended_ns);
        assert_eq!((next(), next()), (None, Some(5)));
        assert_eq!((next(), next(), next()), (Some(6), None, None));
        assert!(places.take() && places.take() && !places.take());
    }

    #[test]
    fn what_waited_too_long_is_given_back() {
        let places = Places::default();
        assert!(!places.take());
        for intended_ns in [5, 6, 7] {
            assert!(places.wait(job(intended_ns), 0).is_empty());
        }
        assert_eq!(places.wait(job(8), 7), [job(5), job(6)]);
        let places = Places {
            most: 1,
            taken: Cell::new(1),
            ..places
        };
        assert_eq!(places.next(99, 8).1, [job(7)]);
    }
}
