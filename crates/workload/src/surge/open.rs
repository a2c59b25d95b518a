//! SURGE made open: the requests of its users in the order and at the pace they would make them, as
//! a trace.
//!
//! The users' transfers take no time here, so the times are their pauses alone; an open replay
//! scales them to its load, or draws gaps of its own.

use super::{FileSet, References, SurgeError, SurgeModel, User};
use crate::trace::{Trace, TraceRequest};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Rounds of requests (see [`References`]) in a trace: users request the least popular file, which
/// is the largest, that often.
pub const ROUNDS: u32 = 10;

/// Number of users who have their requests merged; the load of a replay does not depend on it.
const USERS: u32 = 200;

/// The trace `surge:SEED`: `rounds` rounds of requests to the files of `model`.
pub fn trace(model: &SurgeModel, seed: u64, rounds: u32) -> Result<Trace, SurgeError> {
    let files = FileSet::new(model, seed)?;
    let mut references = References::new(model, seed);
    let mut clock = Clock::new(model, seed);
    let ranks = (0..rounds).flat_map(|_| references.next_round());
    let requests = ranks
        .map(|object| {
            let (time_s, client) = clock.next_request();
            TraceRequest {
                time_s,
                object,
                client,
            }
        })
        .collect();
    Ok(Trace {
        name: format!("surge:{seed}"),
        objects: files.objects(),
        requests,
        dropped_zero_rows: 0,
    })
}

/// Who asks when.
struct Clock {
    users: Vec<User>,
    /// Next request of each user in ns: whole numbers, which can be ordered.
    next: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Clock {
    fn new(model: &SurgeModel, seed: u64) -> Self {
        let mut users: Vec<User> = (0..USERS)
            .map(|number| User::new(model, seed, number))
            .collect();
        let next = (0..)
            .zip(&mut users)
            .map(|(number, user)| Reverse((ns(user.start_s()), number)))
            .collect();
        Self { users, next }
    }

    /// Time in seconds and user of the next request.
    fn next_request(&mut self) -> (f64, u32) {
        let Some(Reverse((at_ns, number))) = self.next.pop() else {
            return (0.0, 0); // There is always a next request: each one popped is pushed again.
        };
        let pause_s = self.users[number as usize].pause_s(false);
        self.next
            .push(Reverse((at_ns.saturating_add(ns(pause_s)), number)));
        (at_ns as f64 / 1e9, number)
    }
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surge_trace_is_a_trace_like_any_other() {
        let trace = trace(&SurgeModel::default(), 7, 1).expect("the published model");
        assert_eq!(
            (trace.name.as_str(), trace.objects.len()),
            ("surge:7", 2000)
        );
        assert!((16_356..=16_357).contains(&trace.requests.len()));
        assert!(trace.requests.is_sorted_by(|a, b| a.time_s <= b.time_s));
        assert!(
            trace
                .requests
                .iter()
                .any(|request| request.client == USERS - 1)
        );
        assert_eq!(trace.objects[1999].path(), "/objects/1999.html");
        let largest = trace
            .requests
            .iter()
            .filter(|request| request.object == 1999)
            .count();
        assert_eq!(largest, 1);
    }

    /// Two to three requests a page, each page about 3 + 1.3 x 5.5 s: what the users' laws say.
    #[test]
    fn its_pace_is_that_of_users_whose_transfers_take_no_time() {
        let trace = trace(&SurgeModel::default(), 1, 1).expect("the published model");
        let span_s = trace.requests[trace.requests.len() - 1].time_s;
        let per_user = trace.requests.len() as f64 / span_s / f64::from(USERS);
        assert!((0.15..0.35).contains(&per_user), "{per_user}");
    }
}
