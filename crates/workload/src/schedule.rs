//! Offered load over time: constant, or alternating between a low and a high load.

mod named;

use std::fmt;
use std::str::FromStr;

/// Highest load a schedule may ask for; far beyond any overload worth measuring.
pub const MAX_LOAD: f64 = 100.0;

/// Shortest phase that is measured, in seconds: a shorter one is less than what a clock and a link
/// spread it over.
pub const MEASURED_S_MIN: f64 = 0.1;

/// A stretch of time with one offered load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Offered load as a share of the link.
    pub load: f64,
    /// Length in seconds, or in the unit of the sizes where times are; infinite in a constant
    /// schedule.
    pub duration_s: f64,
}

/// Phases of offered load, repeated over a run. Written `0.9`, or `0.2,1.2,10,10`: low load, high
/// load, seconds low, seconds high; or `W1` to `W10`, as in Table I of Schroeder and Harchol-Balter
/// 2006.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    phases: Vec<Phase>,
    cut_s: Option<f64>,
}

/// A schedule that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "schedule `{text}`: {problem}; write a load like 0.9, LOW,HIGH,LOW_SECONDS,HIGH_SECONDS like 0.2,1.2,10,10, or W1 to W10"
)]
pub struct ScheduleError {
    text: String,
    problem: String,
}

impl Schedule {
    /// The same load all the time.
    pub fn constant(load: f64) -> Result<Self, ScheduleError> {
        load.to_string().parse()
    }

    /// One that is measured, in seconds: with phases that are long enough for that.
    pub fn in_seconds(text: &str) -> Result<Self, ScheduleError> {
        let schedule: Self = text.parse()?;
        match schedule.too_short() {
            None => Ok(schedule),
            Some(seconds) => Err(ScheduleError {
                text: text.into(),
                problem: format!("a phase of {seconds} s is shorter than {MEASURED_S_MIN} s"),
            }),
        }
    }

    /// The length of a phase that is too short to be measured, in seconds; none where there is none.
    pub fn too_short(&self) -> Option<f64> {
        let mut lengths = self.phases.iter().map(|phase| phase.duration_s);
        lengths.find(|seconds| *seconds < MEASURED_S_MIN)
    }

    /// One round of the schedule.
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// The same loads, but in every run the phase under way at `at_s` ends there and goes on as a
    /// phase of its own: with the end of the warm-up as `at_s`, the load is exact in the part that
    /// is measured.
    pub fn cut_at(self, at_s: f64) -> Self {
        Self {
            cut_s: Some(at_s),
            ..self
        }
    }

    /// The phases of a run of `duration_s` seconds, in order, the last one cut to fit. A rest
    /// shorter than a tenth of its phase prolongs the phase before it.
    pub fn over(&self, duration_s: f64) -> Vec<Phase> {
        let mut left_s = duration_s;
        let mut phases: Vec<Phase> = Vec::new();
        for phase in self.phases.iter().cycle() {
            match phases.last_mut() {
                Some(last) if left_s < phase.duration_s / 10.0 => {
                    last.duration_s += left_s;
                    break;
                }
                _ => phases.push(Phase {
                    load: phase.load,
                    duration_s: phase.duration_s.min(left_s),
                }),
            }
            left_s -= phase.duration_s;
            if left_s <= 0.0 {
                break;
            }
        }
        match self.cut_s {
            Some(cut_s) => cut(phases, cut_s),
            None => phases,
        }
    }
}

/// Divides the phase under way at `at_s` in two.
fn cut(phases: Vec<Phase>, at_s: f64) -> Vec<Phase> {
    let mut start_s = 0.0;
    let mut parts = Vec::with_capacity(phases.len() + 1);
    for Phase { load, duration_s } in phases {
        let before_s = at_s - start_s;
        start_s += duration_s;
        if before_s > 0.0 && before_s < duration_s {
            parts.push(Phase {
                load,
                duration_s: before_s,
            });
            parts.push(Phase {
                load,
                duration_s: duration_s - before_s,
            });
        } else {
            parts.push(Phase { load, duration_s });
        }
    }
    parts
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let error = |problem: String| ScheduleError {
            text: text.into(),
            problem,
        };
        let number = |field: &str| {
            let value = field
                .trim()
                .parse::<f64>()
                .ok()
                .filter(|value| value.is_finite() && *value > 0.0);
            value.ok_or_else(|| error(format!("`{field}` is not a number above 0")))
        };
        let values = match named::find(text.trim()) {
            Some(values) => values.to_vec(),
            None => text.split(',').map(number).collect::<Result<_, _>>()?,
        };
        let phases = match values[..] {
            [load] => vec![Phase {
                load,
                duration_s: f64::INFINITY,
            }],
            [low, high, low_s, high_s] => {
                vec![
                    Phase {
                        load: low,
                        duration_s: low_s,
                    },
                    Phase {
                        load: high,
                        duration_s: high_s,
                    },
                ]
            }
            _ => {
                return Err(error(format!(
                    "{} values where 1 or 4 are expected",
                    values.len()
                )));
            }
        };
        if let Some(phase) = phases.iter().find(|phase| phase.load > MAX_LOAD) {
            return Err(error(format!("load {} is above {MAX_LOAD}", phase.load)));
        }
        Ok(Self {
            phases,
            cut_s: None,
        })
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.phases[..] {
            [low, high] => write!(
                f,
                "{},{},{},{}",
                low.load, high.load, low.duration_s, high.duration_s
            ),
            _ => write!(f, "{}", self.phases[0].load),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(text: &str) -> Schedule {
        text.parse().expect(text)
    }

    fn over(text: &str, duration_s: f64) -> Vec<(f64, f64)> {
        let phases = schedule(text).over(duration_s);
        phases
            .iter()
            .map(|phase| (phase.load, phase.duration_s))
            .collect()
    }

    #[test]
    fn reads_both_forms_and_prints_them_back() {
        for text in ["0.9", "1.4", "0.2,1.2,10,10", "0.5,1,2.5,30"] {
            assert_eq!(schedule(text).to_string(), text);
        }
        assert_eq!(schedule(" 0.2, 1.2 ,10,10"), schedule("0.2,1.2,10,10"));
        assert_eq!(Schedule::constant(0.85), "0.85".parse());
    }

    #[test]
    fn a_name_stands_for_its_numbers() {
        assert_eq!(schedule("W1"), schedule("0.2,1.2,25,25"));
        assert_eq!(schedule(" w7 ").to_string(), "0.4,5,63,6");
        assert_eq!(over("W10", 15.3), [(0.735, 13.3), (2.0, 2.0)]);
    }

    #[test]
    fn repeats_over_the_run_and_cuts_the_end() {
        assert_eq!(over("0.9", 35.0), [(0.9, 35.0)]);
        assert_eq!(
            over("0.2,1.2,10,5", 20.0),
            [(0.2, 10.0), (1.2, 5.0), (0.2, 5.0)]
        );
        assert_eq!(over("0.2,1.2,10,5", 4.0), [(0.2, 4.0)]);
    }

    #[test]
    fn a_short_rest_prolongs_the_last_phase() {
        assert_eq!(over("0.2,1.2,10,10", 20.5), [(0.2, 10.0), (1.2, 10.5)]);
        assert_eq!(over("0.2,1.2,10,10", 0.5), [(0.2, 0.5)]);
    }

    #[test]
    fn a_cut_divides_the_phase_under_way() {
        let cut = |text: &str, at_s: f64| {
            let phases = schedule(text).cut_at(at_s).over(20.0);
            phases
                .iter()
                .map(|phase| (phase.load, phase.duration_s))
                .collect::<Vec<_>>()
        };
        assert_eq!(cut("0.9", 5.0), [(0.9, 5.0), (0.9, 15.0)]);
        assert_eq!(
            cut("0.2,1.2,10,10", 12.0),
            [(0.2, 10.0), (1.2, 2.0), (1.2, 8.0)]
        );
        for at_s in [-1.0, 0.0, 10.0, 20.0, 99.0] {
            assert_eq!(cut("0.2,1.2,10,10", at_s), [(0.2, 10.0), (1.2, 10.0)]);
        }
    }

    #[test]
    fn an_unreadable_one_is_refused_with_both_forms_named() {
        for (text, problem) in [
            ("", "`` is not a number above 0"),
            ("high", "`high` is not a number above 0"),
            ("0", "`0` is not a number above 0"),
            ("NaN", "`NaN` is not a number above 0"),
            ("inf", "`inf` is not a number above 0"),
            ("0.2,1.2", "2 values where 1 or 4 are expected"),
            ("0.2,1.2,10,-1", "`-1` is not a number above 0"),
            ("90%", "`90%` is not a number above 0"),
            ("101", "load 101 is above 100"),
            ("W11", "`W11` is not a number above 0"),
        ] {
            let message = text.parse::<Schedule>().expect_err(text).to_string();
            assert!(
                message.starts_with(&format!(
                    "schedule `{text}`: {problem}; write a load like 0.9"
                )),
                "{message}"
            );
        }
    }

    #[test]
    fn only_what_is_measured_needs_phases_of_a_tenth_of_a_second() {
        let text = "0.2,1.2,10,0.01";
        // In the unit of sizes that may be long.
        assert_eq!(schedule(text).phases()[1].duration_s, 0.01);
        let message = Schedule::in_seconds(text).expect_err(text).to_string();
        let words = "schedule `0.2,1.2,10,0.01`: a phase of 0.01 s is shorter than 0.1 s; write";
        assert!(message.starts_with(words), "{message}");
        for text in ["0.9", "0.2,1.2,10,0.1", "W1"] {
            assert_eq!(Schedule::in_seconds(text), Ok(schedule(text)));
        }
        assert!(Schedule::in_seconds("high").is_err());
    }
}
