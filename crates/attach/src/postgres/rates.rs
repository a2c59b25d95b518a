//! How many transactions a second there are of each class: as the server counts them, or as the ages
//! of what is seen of them say.

use serde::Serialize;

use super::ages::Ages;
use super::counts::Rate;
use super::tally::{ClassTally, Tally};

/// The server adds a transaction to its count when it also has something else to add: those that
/// read no table are missing. Below this part of the least that ages say, ages are believed.
const COUNTED_MIN: f64 = 0.8;
/// It also counts what no client's session does: above this part of the most that ages say, they are
/// believed, if they say it with so many looks, and do not miss what is over in a moment.
const COUNTED_MAX: f64 = 1.25;
const BELIEVED_LOOKS_MIN: u64 = 500;
const MOMENT_MAX: f64 = 1.25;

/// Who says how many transactions there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountOf {
    /// The server.
    Server,
    /// The ages of what is seen of them.
    Ages,
}

/// Transactions of each class a second.
pub struct Rates {
    /// By class.
    pub rates: Vec<f64>,
    /// Half of the 95 per cent interval of each, as a part of it.
    pub errors: Vec<f64>,
    /// The same of their sum.
    pub error_of_all: f64,
    /// Who says so.
    pub count_of: CountOf,
}

/// A count that may be off by so much, as a part of it, is not believed where ages are surer.
const COUNT_ERROR_MAX: f64 = 0.25;

/// All of them as the server counts them, where it does, divided as ages say; or as ages say.
pub fn rates(tally: &Tally, counted: Option<Rate>) -> Rates {
    let in_them_s: f64 = tally.classes.iter().map(seconds_in).sum();
    let counted = counted.map(|counted| {
        let count = (counted.per_sec * tally.time_s).max(f64::MIN_POSITIVE);
        counted.of_transactions(in_them_s / count)
    });
    let by_age = tally
        .classes
        .iter()
        .map(|class| class.ages.per_sec(tally.time_s));
    let by_age: Vec<f64> = by_age.collect();
    let sum: f64 = by_age.iter().sum();
    let error_of_ages = all_ages(tally).relative_error(look_s(tally));
    let least = COUNTED_MIN * sum * (1.0 - error_of_ages);
    let most = COUNTED_MAX * sum * (1.0 + error_of_ages);
    let is_believed = |counted: &Rate| {
        let is_more = counted.per_sec > most && are_sure(tally, sum);
        let is_sure = counted.error <= COUNT_ERROR_MAX.max(error_of_ages);
        counted.per_sec >= least && !is_more && is_sure
    };
    let Some(counted) = counted.filter(is_believed) else {
        return Rates {
            rates: by_age,
            errors: errors(tally, None),
            error_of_all: error_of_ages,
            count_of: CountOf::Ages,
        };
    };
    let rates = by_age
        .iter()
        .map(|rate| counted.per_sec * rate / sum.max(f64::MIN_POSITIVE));
    Rates {
        rates: rates.collect(),
        errors: errors(tally, Some(counted)),
        error_of_all: counted.error,
        count_of: CountOf::Server,
    }
}

/// Whether ages are a better count than one that is much higher.
fn are_sure(tally: &Tally, per_sec: f64) -> bool {
    let ages = all_ages(tally);
    let looks_min = BELIEVED_LOOKS_MIN as f64 * look_s(tally);
    tally.looks >= BELIEVED_LOOKS_MIN
        && ages.total() >= looks_min
        && ages.first_moment_per_sec(tally.time_s) <= MOMENT_MAX * per_sec
}

/// How long all of a class's transactions were seen.
fn seconds_in(class: &ClassTally) -> f64 {
    class.seconds.iter().sum()
}

/// What a look weighs.
fn look_s(tally: &Tally) -> f64 {
    tally.time_s / tally.looks.max(1) as f64
}

fn all_ages(tally: &Tally) -> Ages {
    let mut all = Ages::default();
    for class in &tally.classes {
        all.merge(&class.ages);
    }
    all
}

/// Of the rates of classes. A single one has all that the server counts, of several each has the
/// part that ages say.
fn errors(tally: &Tally, counted: Option<Rate>) -> Vec<f64> {
    let seen = tally
        .classes
        .iter()
        .filter(|class| class.ages.total() > 0.0);
    let is_single = seen.count() < 2;
    let error = |class: &ClassTally| match counted {
        Some(counted) if is_single => counted.error,
        Some(counted) => counted
            .error
            .hypot(class.ages.relative_error(look_s(tally))),
        None => class.ages.relative_error(look_s(tally)),
    };
    tally.classes.iter().map(error).collect()
}
