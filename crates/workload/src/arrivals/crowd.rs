//! A crowd at one object, as after an announcement: in the phases of the highest load, each request
//! is for that object with the same probability, and else what the trace asks for. The load of such
//! a phase is as exact as any other's.

use crate::rng::Rng;
use crate::trace::{Object, Trace};
use sooner_quantity::parse_bytes;
use std::fmt;
use std::str::FromStr;

/// Names the random stream of who belongs to the crowd.
const PURPOSE_CROWD: u64 = 7;

/// What a crowd wants, and how much of the requests it makes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crowd {
    size_bytes: u64,
    share: f64,
}

/// Not a crowd.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a crowd; write BYTES,SHARE: the bytes of the object it wants and its share of the requests, like 100kB,0.5"
)]
pub struct CrowdError(String);

impl FromStr for Crowd {
    type Err = CrowdError;

    /// Reads BYTES,SHARE: bytes above 0, and a share above 0 and at most 1.
    fn from_str(text: &str) -> Result<Self, CrowdError> {
        let crowd = || {
            let (size_bytes, share) = text.split_once(',')?;
            let size_bytes = parse_bytes(size_bytes).ok().filter(|bytes| *bytes > 0)?;
            let share = share.parse().ok()?;
            (share > 0.0 && share <= 1.0).then_some(Self { size_bytes, share })
        };
        crowd().ok_or_else(|| CrowdError(text.into()))
    }
}

impl fmt::Display for Crowd {
    /// As it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.size_bytes, self.share)
    }
}

impl Crowd {
    /// Its share of the requests.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// The object that the crowd wants: of all that clients request in `trace`, the one nearest in
    /// size, and of equals the first.
    pub fn object<'a>(&self, trace: &'a Trace) -> Option<&'a Object> {
        let asked_for = trace
            .requests
            .iter()
            .map(|request| trace.object_of(request));
        asked_for.min_by_key(|object| (object.size_bytes.abs_diff(self.size_bytes), object.id))
    }

    /// The trace with the crowd's requests in the place of its own, at the same times; the seed
    /// chooses which.
    pub(super) fn in_trace(&self, trace: &Trace, seed: u64) -> Trace {
        let mut crowded = trace.clone();
        let Some(object) = self.object(trace).map(|object| object.id) else {
            return crowded;
        };
        let mut rng = Rng::new(seed, PURPOSE_CROWD);
        for request in &mut crowded.requests {
            if rng.uniform() < self.share {
                request.object = object;
            }
        }
        crowded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::WireModel;
    use crate::{PlanOptions, Process, plan};
    use std::num::NonZeroU32;

    fn crowd(text: &str) -> Crowd {
        text.parse().expect("a crowd")
    }

    #[test]
    fn a_crowd_is_read_or_refused_with_an_example() {
        assert_eq!(crowd("100000,0.25").share(), 0.25);
        assert_eq!(crowd("100000,0.25").to_string(), "100000,0.25");
        assert_eq!(crowd("100kB,0.25").to_string(), "100000,0.25");
        for text in [
            "", "5", "0,0.5", "5,0", "5,1.1", "5,nan", "-5,0.5", "5,0.5,1",
        ] {
            let error = text.parse::<Crowd>().expect_err(text);
            assert!(error.to_string().contains("like 100kB,0.5"), "{error}");
        }
    }

    #[test]
    fn the_object_is_one_that_is_asked_for_and_nearest_in_size() {
        let trace = Trace::embedded("epa").expect("epa is built in");
        let object = crowd("100000,0.5").object(&trace).expect("an object");
        let miss_bytes = object.size_bytes.abs_diff(100_000);
        let sizes = trace
            .requests
            .iter()
            .map(|request| trace.object_of(request).size_bytes);
        let least = sizes.map(|bytes| bytes.abs_diff(100_000)).min();
        assert_eq!(Some(miss_bytes), least);
    }

    #[test]
    fn it_comes_where_the_load_is_highest_and_the_loads_stay_exact() {
        let trace = Trace::embedded("epa").expect("epa is built in");
        let crowd = crowd("100000,0.4");
        let hot = crowd.object(&trace).expect("an object").id;
        let options = PlanOptions {
            schedule: "0.5,1.5,60,60".parse().expect("a schedule"),
            duration_s: 240.0,
            rate: "10mbit".parse().expect("a rate"),
            seed: 3,
            process: Process::Poisson,
            wire: WireModel::default(),
            head_bytes: 250,
            requests_per_connection: NonZeroU32::MIN,
            clients: NonZeroU32::MIN,
            visits: None,
            crowd: Some(crowd),
        };
        let planned = plan(&trace, &options).expect("a plan");
        let mut arrivals = planned.arrivals.iter();
        for phase in &planned.phases {
            assert!(
                (phase.offered_load / phase.asked_load - 1.0).abs() <= super::super::TOLERANCE,
                "{phase:?}"
            );
            let of_phase = arrivals.by_ref().take(phase.requests as usize);
            let wants = of_phase.filter(|arrival| arrival.object == hot).count();
            let share = wants as f64 / phase.requests as f64;
            let expected = if phase.asked_load > 1.0 { 0.4 } else { 0.0 };
            assert!((share - expected).abs() < 0.06, "{share} in {phase:?}");
        }
    }
}
