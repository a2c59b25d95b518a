//! Where transactions spend their time: milliseconds by part, of what was tallied in seconds.

mod active;

use serde::Serialize;

use super::ages::Ages;
use super::counts::Rate;
use super::part::{PARTS, Part};
use super::rates::{CountOf, Rates, rates};
use super::resolve::{Resolved, resolve};
use super::row::{Counted, Row, Shape};
use super::tally::{ClassTally, NamedTally, SLICES, Seconds, Tally};
pub use active::ActiveRow;

/// From so much on, the kernel's figures are a class's own: its sessions do not change classes.
const CONSTANT_MIN: f64 = 0.98;
/// From so much of its time on, a class's kinds are all of it.
const TOLD_MIN: f64 = 0.95;

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
    /// Of a finished tally, with as many transactions a second as the server has counted, if any.
    pub fn of(tally: &Tally, names: &[String], counted: Option<Rate>) -> Breakdown {
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
        } = rates(tally, counted);
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
        let by_active = active::rows(tally, &per_class);
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

#[cfg(test)]
mod tests;
