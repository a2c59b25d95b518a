//! Where transactions spend their time: milliseconds by part, of what was tallied in seconds.

use serde::Serialize;

use super::ages::Ages;
use super::part::{PARTS, Part};
use super::rates::{CountOf, Rates, rates};
use super::resolve::{Resolved, resolve};
use super::tally::{ClassTally, NamedTally, SLICES, Seconds, Tally};

/// From so much on, the kernel's figures are a class's own: its sessions do not change classes.
const CONSTANT_MIN: f64 = 0.98;
/// From so much of its time on, a class's kinds are all of it.
const TOLD_MIN: f64 = 0.95;
/// Slices that a mean needs to have an interval.
const SLICES_MIN: usize = 5;

/// Half of a 95 per cent interval of a mean of so many, in standard errors: the first terms of the
/// expansion in their number (Abramowitz and Stegun 26.7.5), the last one rounded up.
fn student(count: usize) -> f64 {
    let freedom = (count - 1) as f64;
    1.96 + 2.37 / freedom + 3.5 / freedom.powi(2)
}

/// What a row counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Transactions.
    Transactions,
    /// Statements: nothing said which transactions they were in.
    Statements,
}

/// A part of a mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PartTime {
    /// Which.
    pub part: Part,
    /// How many transactions are in it at a time, on average.
    pub at_a_time: f64,
    /// Of all their time, 0 to 1.
    pub share: f64,
    /// Of each transaction, on average, ms; none where none began.
    pub ms: Option<f64>,
    /// Half of the 95 per cent interval of `ms`, where it is known.
    pub error_ms: Option<f64>,
}

/// A class, a kind, a statement, or all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What it is called.
    pub name: String,
    /// What is counted.
    pub counted: Counted,
    /// How many a second.
    pub per_sec: f64,
    /// How many at a time, on average.
    pub at_a_time: f64,
    /// How long each takes, ms: the sum of the parts; none where none began.
    pub mean_ms: Option<f64>,
    /// Half of its 95 per cent interval, where it is known.
    pub error_ms: Option<f64>,
    /// Of `mean_ms`, in line for a processor before the server shows a transaction.
    pub before_ms: Option<f64>,
    /// All of them that are not 0, as in [`Part::ALL`].
    pub parts: Vec<PartTime>,
}

impl Row {
    /// Milliseconds of a part.
    pub fn ms(&self, part: Part) -> f64 {
        let mut parts = self.parts.iter();
        let own = parts.find(|own| own.part == part);
        own.and_then(|own| own.ms).unwrap_or(0.0)
    }

    /// Milliseconds of all waits for heavyweight locks.
    pub fn locks_ms(&self) -> f64 {
        let locks = self.parts.iter().filter(|own| own.part.is_lock());
        locks.filter_map(|own| own.ms).sum()
    }
}

/// While so many were in a transaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ActiveRow {
    /// At least.
    pub from: u32,
    /// At most.
    pub to: u32,
    /// For this part of the time, 0 to 1.
    pub time_share: f64,
    /// What they did, 0 to 1, as in [`Part::ALL`]; parts that are 0 are left out.
    pub shares: Vec<(Part, f64)>,
}

/// One class and what is in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassRows {
    /// All of it.
    #[serde(flatten)]
    pub row: Row,
    /// By kind or statement, what takes most time first.
    pub kinds: Vec<Row>,
}

/// All of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Breakdown {
    /// Who says how many there are.
    pub count_of: CountOf,
    /// All classes together.
    pub all: Row,
    /// In the order of the configuration, without those that nothing was in.
    pub classes: Vec<(usize, ClassRows)>,
    /// By how many were in a transaction.
    pub by_active: Vec<ActiveRow>,
}

impl Breakdown {
    /// Of a finished tally, with as many transactions a second as the server has counted.
    pub fn of(tally: &Tally, names: &[String], per_sec: f64) -> Breakdown {
        let per_class: Vec<Resolved> = (0..tally.classes.len())
            .map(|class| processor_of(tally, class))
            .collect();
        let mut sum = [0.0; PARTS];
        let mut before_s = 0.0;
        let mut sum_slices = [[0.0; PARTS]; SLICES];
        for (class, own) in tally.classes.iter().zip(&per_class) {
            (0..PARTS).for_each(|part| sum[part] += own.seconds[part]);
            before_s += own.before_s;
            for (sum, own) in sum_slices.iter_mut().zip(&class.slices) {
                (0..PARTS).for_each(|part| sum[part] += own[part]);
            }
        }
        let shape = |name: &str, (per_sec, rate_error), before_s| Shape {
            name: name.to_owned(),
            counted: Counted::Transactions,
            per_sec,
            rate_error,
            time_s: tally.time_s,
            slices_s: tally.slices_s,
            before_s,
        };
        let Rates {
            rates,
            errors,
            error_of_all,
            count_of,
        } = rates(tally, per_sec);
        let of_all = (rates.iter().sum(), error_of_all);
        let all = shape("all", of_all, before_s).row(&sum, Some(&sum_slices));
        let mut classes = Vec::new();
        for (at, class) in tally.classes.iter().enumerate() {
            let own = &per_class[at];
            if own.seconds.iter().sum::<f64>() <= 0.0 || class.ages == Ages::default() {
                continue;
            }
            let shape = shape(&names[at], (rates[at], errors[at]), own.before_s);
            let row = shape.row(&own.seconds, Some(&class.slices));
            let kinds = kinds(class, own, rates[at], tally.time_s);
            classes.push((at, ClassRows { row, kinds }));
        }
        let by_active = by_active(tally);
        Breakdown {
            count_of,
            all,
            classes,
            by_active,
        }
    }
}

/// What a class's sessions did: the kernel's own figures where they are in no other class, else its
/// figures of all, divided by what was seen.
fn processor_of(tally: &Tally, class: usize) -> Resolved {
    let own = &tally.classes[class];
    let total_s = tally.run_s + tally.wait_s;
    let known_s: f64 = tally
        .classes
        .iter()
        .map(|class| class.run_s + class.wait_s)
        .sum();
    if known_s >= CONSTANT_MIN * total_s {
        return resolve(&own.seconds, &own.woken, own.run_s, own.wait_s);
    }
    let seen_of = |class: &ClassTally| {
        let woken: f64 = class.woken.seconds.iter().sum();
        class.seconds[Part::Running.index()] + woken + class.woken.idle_s
    };
    let seen_s: f64 = tally.classes.iter().map(seen_of).sum();
    let own_s = seen_of(own) / seen_s.max(f64::MIN_POSITIVE) * total_s;
    let waits = own.wait_s / (own.run_s + own.wait_s).max(f64::MIN_POSITIVE);
    resolve(
        &own.seconds,
        &own.woken,
        own_s * (1.0 - waits),
        own_s * waits,
    )
}

fn kinds(class: &ClassTally, resolved: &Resolved, per_sec: f64, time_s: f64) -> Vec<Row> {
    let total = |seconds: &Seconds| seconds.iter().sum::<f64>();
    let told_s: f64 = class.kinds.values().map(|kind| total(&kind.seconds)).sum();
    let by_age = |tally: &NamedTally| tally.ages.per_sec(time_s);
    let kinds_per_sec: f64 = class.kinds.values().map(by_age).sum();
    // Where kinds are all there is, they are as many as the class's transactions.
    let factor = if told_s >= TOLD_MIN * total(&class.seconds) && kinds_per_sec > 0.0 {
        per_sec / kinds_per_sec
    } else {
        1.0
    };
    let row = |name: &String, tally: &NamedTally, counted, factor: f64| {
        let per_sec_of_it = factor * by_age(tally);
        let before_s = match counted {
            Counted::Transactions if per_sec > 0.0 => resolved.before_s * per_sec_of_it / per_sec,
            _ => 0.0,
        };
        let shape = Shape {
            name: name.clone(),
            counted,
            per_sec: per_sec_of_it,
            rate_error: 0.0,
            time_s,
            slices_s: [0.0; SLICES],
            before_s,
        };
        shape.row(&of_a_kind(&tally.seconds, resolved, before_s), None)
    };
    let told = class.kinds.iter();
    let told = told.map(|(name, kind)| row(name, kind, Counted::Transactions, factor));
    let others = class.statements.iter();
    let others = others.map(|(name, own)| row(name, own, Counted::Statements, 1.0));
    let mut rows: Vec<Row> = told.chain(others).collect();
    rows.sort_by(|one, other| other.at_a_time.total_cmp(&one.at_a_time));
    rows
}

/// What showed a wait was one as often as in all of the class; the rest ran or was in line as all
/// of the class.
fn of_a_kind(seen: &Seconds, class: &Resolved, before_s: f64) -> Seconds {
    let (running, waiting) = (Part::Running.index(), Part::ProcessorWait.index());
    let mut seconds = *seen;
    let mut on_processor_s = seen[running] + before_s;
    for part in (0..PARTS).filter(|part| *part != running) {
        seconds[part] *= class.waited[part];
        on_processor_s += seen[part] - seconds[part];
    }
    let all_s = class.seconds[running] + class.seconds[waiting];
    let runs = class.seconds[running] / all_s.max(f64::MIN_POSITIVE);
    seconds[running] = on_processor_s * runs;
    seconds[waiting] = on_processor_s * (1.0 - runs);
    seconds
}

fn by_active(tally: &Tally) -> Vec<ActiveRow> {
    let rows = tally.by_active.iter();
    let rows = rows.map(|(to, seen)| {
        let seconds = resolve(&seen.seconds, &seen.woken, seen.run_s, seen.wait_s).seconds;
        let total: f64 = seconds.iter().sum();
        let shares = Part::ALL.iter().zip(&seconds);
        let shares = shares.map(|(part, own)| (*part, own / total.max(f64::MIN_POSITIVE)));
        ActiveRow {
            from: to / 2 + 1,
            to: *to,
            time_share: seen.time_s / tally.time_s,
            shares: shares.filter(|(_, share)| *share > 0.0).collect(),
        }
    });
    rows.collect()
}

/// All of a row but its times.
struct Shape {
    name: String,
    counted: Counted,
    per_sec: f64,
    /// Half of the interval of that, as a part of it.
    rate_error: f64,
    time_s: f64,
    slices_s: [f64; SLICES],
    before_s: f64,
}

impl Shape {
    /// Half of the interval of the sum of all slices, by those that were looked at.
    fn slices_error(&self, slices: &[f64]) -> Option<f64> {
        let seen = slices.iter().zip(&self.slices_s);
        let seen: Vec<f64> = seen
            .filter(|(_, length_s)| **length_s > 0.0)
            .map(|(own, length_s)| own / length_s)
            .collect();
        if seen.len() < SLICES_MIN {
            return None;
        }
        let count = seen.len() as f64;
        let mean = seen.iter().sum::<f64>() / count;
        let squares: f64 = seen.iter().map(|one| (one - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0)).sqrt();
        Some(student(seen.len()) * deviation / count.sqrt() * self.time_s)
    }

    fn row(self, seconds: &Seconds, slices: Option<&[Seconds; SLICES]>) -> Row {
        let sum_s: f64 = seconds.iter().sum();
        let count = self.per_sec * self.time_s;
        let ms = |seconds: f64| (count > 0.0).then(|| 1e3 * seconds / count);
        let error = |of: &dyn Fn(&Seconds) -> f64| {
            let all = slices?.iter().map(of).collect::<Vec<f64>>();
            let sum: f64 = all.iter().sum();
            let of_slices = ms(self.slices_error(&all)?)?;
            let of_rate = ms(sum)? * self.rate_error;
            Some(of_slices.hypot(of_rate))
        };
        let time_s = self.time_s.max(f64::MIN_POSITIVE);
        let parts = Part::ALL.iter().zip(seconds).map(|(part, own)| PartTime {
            part: *part,
            at_a_time: own / time_s,
            share: own / sum_s.max(f64::MIN_POSITIVE),
            ms: ms(*own),
            error_ms: match part {
                // Slices have both as one.
                Part::Running | Part::ProcessorWait => None,
                _ => error(&|slice: &Seconds| slice[part.index()]),
            },
        });
        Row {
            mean_ms: ms(sum_s),
            error_ms: error(&|slice: &Seconds| slice.iter().sum()),
            before_ms: ms(self.before_s),
            parts: parts.filter(|own| own.at_a_time > 0.0).collect(),
            at_a_time: sum_s / time_s,
            per_sec: self.per_sec,
            counted: self.counted,
            name: self.name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::{Seen, SeenTransaction};
    use super::*;
    use proptest::prelude::*;

    /// Stages of every transaction of a session, and how long each takes, seconds.
    type Stages = Vec<(Part, f64)>;

    /// What a session does at a time: the transaction's number, its stage, how old both are.
    fn at(stages: &Stages, time_s: f64) -> (u64, Part, f64, f64) {
        let whole: f64 = stages.iter().map(|(_, length)| length).sum();
        let number = (time_s / whole).floor();
        let age_s = time_s - number * whole;
        let mut begin = 0.0;
        for (part, length) in stages {
            if age_s < begin + length {
                return (number as u64, *part, age_s, age_s - begin);
            }
            begin += length;
        }
        (number as u64, stages[stages.len() - 1].0, age_s, 0.0)
    }

    /// Seconds of a part until then.
    fn until(stages: &Stages, part: Part, time_s: f64) -> f64 {
        let whole: f64 = stages.iter().map(|(_, length)| length).sum();
        let (number, ..) = at(stages, time_s);
        let of_part = |upto: f64| {
            let (mut begin, mut sum) = (0.0, 0.0);
            for (own, length) in stages {
                if *own == part {
                    sum += (upto - begin).clamp(0.0, *length);
                }
                begin += length;
            }
            sum
        };
        number as f64 * of_part(whole) + of_part(time_s - number as f64 * whole)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]
        /// Two classes with a session each; the parts and rates that are found are those they have.
        #[test]
        fn what_is_found_is_what_they_did(
            lengths in prop::array::uniform4(0.001..0.05_f64),
            factor in 0.3..3.0_f64,
            step in 0.007..0.013_f64,
        ) {
            let parts = [Part::Running, Part::ProcessorWait, Part::RowLocks, Part::Wal];
            let first: Stages = parts.into_iter().zip(lengths).collect();
            let second: Stages = first.iter().map(|(part, length)| (*part, length * factor)).collect();
            let all = [first, second];
            let mut tally = Tally::new(2, 60.0);
            let (mut last_s, mut now_s, mut phase) = (0.0, 0.0, 0.0);
            while now_s < 60.0 {
                phase = (phase + 0.618) % 1.0;
                now_s += step * (0.5 + phase);
                let seen = |(class, stages): (usize, &Stages)| {
                    let (number, part, age_s, _) = at(stages, now_s);
                    let since = |part| until(stages, part, now_s) - until(stages, part, last_s);
                    let part = if part == Part::ProcessorWait { Part::Running } else { part };
                    Seen {
                        pid: class as i32,
                        class,
                        run_s: since(Part::Running),
                        wait_s: since(Part::ProcessorWait),
                        is_woken: Some(false),
                        transaction: Some(SeenTransaction {
                            began_us: number as i64,
                            part,
                            age_ns: (1e9 * age_s) as u64,
                            statement_age_ns: (1e9 * age_s) as u64,
                            kind: Some("pay".into()),
                            statement: "select ?".into(),
                        }),
                    }
                };
                let sessions: Vec<Seen> = all.iter().enumerate().map(seen).collect();
                tally.look(now_s - last_s, &sessions);
                last_s = now_s;
            }
            tally.finish();
            let whole = |stages: &Stages| stages.iter().map(|(_, length)| length).sum::<f64>();
            let per_sec = 1.0 / whole(&all[0]) + 1.0 / whole(&all[1]);
            let names = ["one".to_owned(), "two".to_owned()];
            let found = Breakdown::of(&tally, &names, per_sec);
            for (stages, (_, rows)) in all.iter().zip(&found.classes) {
                let near = |found: f64, true_ms: f64, of_ms: f64| (found - true_ms).abs() < 0.08 * of_ms;
                let mean_ms = 1e3 * whole(stages);
                let row = &rows.row;
                prop_assert!(near(row.mean_ms.unwrap(), mean_ms, mean_ms), "{row:?}");
                prop_assert!((row.at_a_time - 1.0).abs() < 0.03, "{row:?}");
                for (part, length) in stages {
                    prop_assert!(near(row.ms(*part), 1e3 * length, mean_ms), "{part:?} {length} {row:?}");
                }
                let kind = &rows.kinds[0];
                prop_assert_eq!(kind.name.as_str(), "pay");
                prop_assert!(near(kind.mean_ms.unwrap(), mean_ms, mean_ms), "{kind:?}");
            }
        }
    }

    #[test]
    fn what_never_ends_is_seen_all_the_same() {
        let mut tally = Tally::new(1, 1.0);
        let seen = Seen {
            pid: 7,
            class: 0,
            run_s: 0.0,
            wait_s: 0.0,
            is_woken: Some(false),
            transaction: Some(SeenTransaction {
                began_us: 1,
                part: Part::RowLocks,
                age_ns: 60_000_000_000,
                statement_age_ns: 60_000_000_000,
                kind: None,
                statement: "update t".into(),
            }),
        };
        (0..100).for_each(|_| tally.look(0.01, std::slice::from_ref(&seen)));
        tally.finish();
        let found = Breakdown::of(&tally, &["all".to_owned()], 0.0);
        // Ages say that next to none begin.
        assert!(found.all.mean_ms.is_none_or(|mean_ms| mean_ms > 10_000.0));
        assert_eq!(found.all.parts.len(), 1);
        let part = found.all.parts[0];
        assert!(
            (part.at_a_time - 1.0).abs() < 1e-9 && part.share == 1.0,
            "{part:?}"
        );
    }

    /// One session that runs transactions of 10 ms without a pause, looked at for so long of 60 s.
    fn steady(seconds: f64) -> Tally {
        let mut tally = Tally::new(1, 60.0);
        let (mut now_s, mut phase) = (0.0, 0.0);
        while now_s < seconds {
            phase = (phase + 0.618) % 1.0;
            let since_s = 0.01 * (0.5 + phase);
            now_s += since_s;
            let age_ns = (1e9 * (now_s % 0.01)) as u64;
            let seen = Seen {
                pid: 7,
                class: 0,
                run_s: since_s,
                wait_s: 0.0,
                is_woken: None,
                transaction: Some(SeenTransaction {
                    began_us: (now_s / 0.01) as i64,
                    part: Part::Running,
                    age_ns,
                    statement_age_ns: age_ns,
                    kind: None,
                    statement: "select ?".into(),
                }),
            };
            tally.look(since_s, &[seen]);
        }
        tally.finish();
        tally
    }

    fn found(tally: &Tally, per_sec: f64) -> Breakdown {
        Breakdown::of(tally, &["all".to_owned()], per_sec)
    }

    #[test]
    fn what_no_client_did_is_not_counted() {
        let tally = steady(60.0);
        for (per_sec, count_of) in [
            (100.0, CountOf::Server),
            (300.0, CountOf::Ages),
            (10.0, CountOf::Ages),
        ] {
            let found = found(&tally, per_sec);
            assert_eq!(found.count_of, count_of, "{per_sec}");
            let mean_ms = found.all.mean_ms.unwrap();
            assert!((mean_ms - 10.0).abs() < 1.0, "{per_sec}: {mean_ms}");
        }
        // With so few looks the server is believed.
        let few = found(&steady(2.0), 300.0);
        assert_eq!(few.count_of, CountOf::Server);
    }

    #[test]
    fn an_early_end_leaves_only_slices_that_were_looked_at() {
        // All slices are alike, and a mean is as sure as they are.
        let error_ms = |seconds| found(&steady(seconds), 100.0).all.error_ms;
        assert!(error_ms(60.0).unwrap() < 0.1, "{:?}", error_ms(60.0));
        assert!(error_ms(30.0).unwrap() < 0.1, "{:?}", error_ms(30.0));
        assert_eq!(error_ms(10.0), None, "four slices are too few");
        // What ages count has an error of its own.
        let by_age = found(&steady(60.0), 300.0).all.error_ms.unwrap();
        assert!(by_age > 0.1 && by_age < 2.0, "{by_age}");
    }

    #[test]
    fn the_interval_of_few_is_wider() {
        for (count, expected) in [(5, 2.776), (10, 2.262), (20, 2.093)] {
            assert!((student(count) - expected).abs() < 0.01, "{count}");
        }
    }
}
