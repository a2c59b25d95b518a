//! When requests of a rate come: constant gaps, or a Poisson process with exactly as many requests
//! as the rate asks for. Pure and seeded.
//!
//! A Poisson process of 500 a second has in 30 s anything from 14 600 to 15 400 arrivals. Given how
//! many there are, they lie as that many uniform draws would, sorted. So each stage is given its
//! exact number, and the draws are made in order, one after the other.

use sooner_workload::{Rng, parse_duration};
use std::str::FromStr;

/// Names the random stream of arrivals.
const PURPOSE: u64 = 101;
/// More than one machine sends.
const RATE_MAX: f64 = 10_000_000.0;
/// More requests than this are a slip.
const REQUESTS_MAX: f64 = 1e12;

/// A rate in requests a second, or a ramp from one to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// At the beginning.
    pub from: f64,
    /// At the end.
    pub to: f64,
}

/// A rate or a ramp for some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// How long, s.
    pub seconds: f64,
    /// The rate.
    pub ramp: Ramp,
}

/// No rate, or no stage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// No number.
    #[error("`{0}` is not a rate; write requests a second as in 500, 30000/min or 100..1000")]
    Rate(String),
    /// A number that is not sent.
    #[error("`{0}`: a rate is above 0 and at most 10 million a second")]
    Range(String),
    /// No time and rate.
    #[error("`{0}` is not a stage; write TIME:RATE as in 30s:500 or 1min:100..1000")]
    Stage(String),
    /// A time that is none.
    #[error("`{stage}`: {problem}")]
    Time {
        /// The stage.
        stage: String,
        /// What is wrong.
        problem: String,
    },
}

impl FromStr for Ramp {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let wrong = || RateError::Rate(text.into());
        let (number, seconds) = match text.trim().rsplit_once('/') {
            None => (text.trim(), 1.0),
            Some((number, "s" | "sec" | "second")) => (number, 1.0),
            Some((number, "m" | "min" | "minute")) => (number, 60.0),
            Some((number, "h" | "hour")) => (number, 3600.0),
            Some(_) => return Err(wrong()),
        };
        let one = |text: &str| {
            let rate: f64 = text.trim().parse().map_err(|_| wrong())?;
            Ok(rate / seconds)
        };
        let (from, to) = match number.split_once("..") {
            Some((from, to)) => (one(from)?, one(to)?),
            None => (one(number)?, one(number)?),
        };
        let is_sent = |rate: &f64| (0.0..=RATE_MAX).contains(rate);
        if ![from, to].iter().all(is_sent) || from + to == 0.0 {
            return Err(RateError::Range(text.into()));
        }
        Ok(Self { from, to })
    }
}

impl FromStr for Stage {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let (time, rate) = text
            .split_once(':')
            .ok_or_else(|| RateError::Stage(text.into()))?;
        let time = parse_duration(time).map_err(|error| RateError::Time {
            stage: text.into(),
            problem: error.to_string(),
        })?;
        if time.is_zero() {
            return Err(RateError::Stage(text.into()));
        }
        Ok(Self {
            seconds: time.as_secs_f64(),
            ramp: rate.parse().map_err(|error| match error {
                RateError::Range(_) => error,
                _ => RateError::Stage(text.into()),
            })?,
        })
    }
}

impl Ramp {
    fn mean(self) -> f64 {
        f64::midpoint(self.from, self.to)
    }

    /// After which share of the time this share of the requests has come.
    fn time_of(self, share: f64) -> f64 {
        let (from, wanted) = (self.from, share * self.mean());
        let growth = (self.to - self.from) / 2.0;
        let root = (from * from + 4.0 * growth * wanted).max(0.0).sqrt();
        match from + root {
            0.0 => 0.0,
            sum => (2.0 * wanted / sum).min(1.0),
        }
    }
}

/// All stages, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages(Vec<Stage>);

impl Stages {
    /// These stages; fails where they have too many requests.
    pub fn new(stages: Vec<Stage>) -> Result<Self, RateError> {
        let stages = Self(stages);
        let all: f64 = stages.0.iter().map(|stage| stage.requests()).sum();
        if all > REQUESTS_MAX {
            return Err(RateError::Range(format!("{all:.0} requests")));
        }
        Ok(stages)
    }

    /// One rate, or one ramp.
    pub fn one(ramp: Ramp, seconds: f64) -> Result<Self, RateError> {
        Self::new(vec![Stage { seconds, ramp }])
    }

    /// How long they last, s.
    pub fn seconds(&self) -> f64 {
        self.0.iter().map(|stage| stage.seconds).sum()
    }

    /// How many requests come.
    pub fn requests(&self) -> u64 {
        self.numbers().iter().sum()
    }

    /// Their mean rate between two times, s, as they say and not as draws have it; where no time is
    /// between, that of all.
    pub fn rate_between(&self, from_s: f64, to_s: f64) -> f64 {
        let (from_s, to_s) = if to_s > from_s {
            (from_s, to_s)
        } else {
            (0.0, self.seconds())
        };
        self.requests_between(from_s, to_s) / (to_s - from_s)
    }

    fn requests_between(&self, from_s: f64, to_s: f64) -> f64 {
        let mut begin_s = 0.0;
        let of = |stage: &Stage| {
            let inside = |at_s: f64| (at_s - begin_s).clamp(0.0, stage.seconds);
            let (from, to) = (inside(from_s), inside(to_s));
            begin_s += stage.seconds;
            stage.requests_until(to) - stage.requests_until(from)
        };
        self.0.iter().map(of).sum()
    }

    /// Requests of each stage; what is rounded off one goes to the next.
    fn numbers(&self) -> Vec<u64> {
        let (mut wanted, mut given) = (0.0, 0_u64);
        let number = |stage: &Stage| {
            wanted += stage.requests();
            let number = (wanted.round() as u64).saturating_sub(given);
            given += number;
            number
        };
        self.0.iter().map(number).collect()
    }

    /// When they come, ns since the start: at constant gaps, or as a Poisson process by `seed`.
    pub fn times(&self, is_constant: bool, seed: u64) -> impl Iterator<Item = u64> + use<> {
        let mut rng = Rng::new(seed, PURPOSE);
        let mut begin_s = 0.0;
        let begins: Vec<_> = self
            .0
            .iter()
            .zip(self.numbers())
            .map(|(stage, number)| {
                let begin = begin_s;
                begin_s += stage.seconds;
                (begin, *stage, number)
            })
            .collect();
        begins
            .into_iter()
            .flat_map(move |(begin_s, stage, number)| {
                let mut draws = Draws::new(number, rng.below(u64::MAX));
                (0..number).map(move |index| {
                    let share = if is_constant {
                        index as f64 / number as f64
                    } else {
                        draws.next()
                    };
                    let at_s = begin_s + stage.seconds * stage.ramp.time_of(share);
                    (at_s * 1e9) as u64
                })
            })
    }
}

impl Stage {
    fn requests(&self) -> f64 {
        self.seconds * self.ramp.mean()
    }

    /// Requests of its first seconds.
    fn requests_until(&self, seconds: f64) -> f64 {
        let growth = (self.ramp.to - self.ramp.from) / self.seconds;
        seconds * (self.ramp.from + growth * seconds / 2.0)
    }
}

/// Uniform draws in [0, 1) in order of size.
struct Draws {
    left: u64,
    last: f64,
    rng: Rng,
}

impl Draws {
    fn new(number: u64, seed: u64) -> Self {
        Self {
            left: number,
            last: 0.0,
            rng: Rng::new(seed, PURPOSE),
        }
    }

    /// The smallest of those that are left.
    fn next(&mut self) -> f64 {
        let left = self.left.max(1) as f64;
        let gap = -(-self.rng.exponential() / left).exp_m1();
        self.left = self.left.saturating_sub(1);
        self.last += (1.0 - self.last) * gap;
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(ramp: &str, seconds: f64, is_constant: bool) -> Vec<u64> {
        let stages = Stages::one(ramp.parse().expect(ramp), seconds).expect("few");
        stages.times(is_constant, 7).collect()
    }

    #[test]
    fn rates_and_stages_are_read() {
        let ramp = |from, to| Ok(Ramp { from, to });
        assert_eq!("500".parse(), ramp(500.0, 500.0));
        assert_eq!("30000/min".parse(), ramp(500.0, 500.0));
        assert_eq!("100..1000".parse(), ramp(100.0, 1000.0));
        assert_eq!("0..6/min".parse(), ramp(0.0, 0.1));
        let stage = "1min:100..200".parse::<Stage>().expect("a stage");
        assert_eq!((stage.seconds, stage.ramp.to), (60.0, 200.0));
        for text in ["", "fast", "5/day", "1..2..3", "5..", "nan"] {
            let said = text.parse::<Ramp>().expect_err(text).to_string();
            assert!(
                said.contains("100..1000") || said.contains("above 0"),
                "{text}: {said}"
            );
        }
        for text in ["0", "-1", "1e9", "inf", "0..0"] {
            let said = text.parse::<Ramp>().expect_err(text).to_string();
            assert!(said.contains("above 0"), "{text}: {said}");
        }
        for text in ["30s", "500:30s", "0s:500", ":"] {
            let said = text.parse::<Stage>().expect_err(text).to_string();
            assert!(
                said.contains("30s:500") || said.contains("length of time"),
                "{said}"
            );
        }
    }

    #[test]
    fn constant_gaps_are_constant() {
        let times = times("1000", 2.0, true);
        assert_eq!((times.len(), times[0]), (2000, 0));
        assert!(
            times
                .windows(2)
                .all(|pair| (pair[1] - pair[0]).abs_diff(1_000_000) <= 1)
        );
    }

    #[test]
    fn a_poisson_process_has_its_number_and_exponential_gaps() {
        let times = times("1000", 20.0, false);
        assert_eq!(times.len(), 20_000);
        assert!(times.is_sorted() && times[19_999] < 20_000_000_000);
        let mut gaps: Vec<f64> = times
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64)
            .collect();
        let n = gaps.len();
        let distance = sooner_workload::fit::exponential::distance(&mut gaps).expect("gaps");
        assert!(
            distance < sooner_workload::fit::exponential::distance_max(n),
            "{distance}"
        );
    }

    #[test]
    fn a_ramp_has_three_quarters_of_its_requests_in_its_second_half() {
        for is_constant in [true, false] {
            let times = times("0..1000", 10.0, is_constant);
            assert_eq!(times.len(), 5000);
            let early = times.iter().filter(|at_ns| **at_ns < 5_000_000_000).count();
            assert!((1150..1350).contains(&early), "{early}");
            let falling = times_of("1000..0", is_constant);
            assert!((3650..3850).contains(&falling), "{falling}");
        }
    }

    fn times_of(ramp: &str, is_constant: bool) -> usize {
        let times = times(ramp, 10.0, is_constant);
        times.iter().filter(|at_ns| **at_ns < 5_000_000_000).count()
    }

    #[test]
    fn stages_follow_each_other_and_lose_nothing() {
        let stages = ["2s:10.3", "1s:0..7", "3s:1.2"].map(|text| text.parse().expect(text));
        let stages = Stages::new(stages.to_vec()).expect("few");
        assert_eq!((stages.seconds(), stages.requests()), (6.0, 28));
        for is_constant in [true, false] {
            let times: Vec<u64> = stages.times(is_constant, 1).collect();
            assert_eq!((times.len(), times.is_sorted()), (28, true));
            let first = times.iter().filter(|at_ns| **at_ns < 2_000_000_000).count();
            assert_eq!(first, 21);
        }
        assert!(Stages::one("1e7".parse().expect("a rate"), 1e7).is_err());
    }

    #[test]
    fn what_a_rate_asks_for_does_not_depend_on_draws() {
        let steady = Stages::one("50".parse().expect("a rate"), 10.0).expect("few");
        assert_eq!(steady.requests_between(0.0, 1.5), 75.0);
        assert_eq!(steady.requests_between(1.0, 11.0), 450.0);
        let stages = ["2s:0..10", "3s:4"].map(|text| text.parse().expect(text));
        let stages = Stages::new(stages.to_vec()).expect("few");
        assert_eq!(stages.requests_between(0.0, 1.0), 2.5);
        assert_eq!(stages.requests_between(1.0, 3.0), 7.5 + 4.0);
        assert_eq!(stages.rate_between(1.0, 3.0), 5.75);
    }

    /// A signal in the warm-up leaves the measured part no time.
    #[test]
    fn a_rate_is_never_below_zero() {
        let stages = ["2s:0..10", "3s:4"].map(|text| text.parse().expect(text));
        let stages = Stages::new(stages.to_vec()).expect("few");
        for to_s in [0.0, 1.0, 2.0] {
            assert_eq!(stages.rate_between(2.0, to_s), 22.0 / 5.0);
        }
    }

    proptest! {
        #[test]
        fn times_are_in_order_and_within(from in 0.0..500.0_f64, to in 1.0..500.0_f64, seed: u64) {
            let stages = Stages::one(Ramp { from, to }, 3.0).expect("few");
            let times: Vec<u64> = stages.times(false, seed).collect();
            prop_assert_eq!(times.len() as u64, stages.requests());
            prop_assert!(times.is_sorted() && times.iter().all(|at_ns| *at_ns <= 3_000_000_000));
        }

        #[test]
        fn reading_never_panics(text in ".{0,30}") {
            let _ = text.parse::<Ramp>();
            let _ = text.parse::<Stage>();
        }
    }
}
