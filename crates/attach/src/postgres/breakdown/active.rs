//! What transactions did by how many there were, as parts of the whole.
//!
//! A look shows what is under way at that moment, and the kernel says what sessions had since the
//! look before. Where transactions are shorter than the time between looks, most of the kernel's
//! time falls to looks that find none under way. So rows divide what was found of all looks: by
//! what each row's own looks have shown, and by the kernel only how often a session of the row ran
//! and how often it was in line.

use serde::Serialize;

use crate::postgres::part::{PARTS, Part};
use crate::postgres::resolve::Resolved;
use crate::postgres::tally::{ActiveTally, Seconds, Tally};

const RUNNING: usize = Part::Running as usize;
const PROCESSOR_WAIT: usize = Part::ProcessorWait as usize;
const OTHER: usize = Part::Other as usize;

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

/// The rows of a tally in which classes did this.
pub fn rows(tally: &Tally, classes: &[Resolved]) -> Vec<ActiveRow> {
    let rows = tally.by_active.iter().zip(seconds(tally, classes));
    let rows = rows.map(|((to, seen), seconds)| {
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

/// Of each row; together they are what the classes did.
fn seconds(tally: &Tally, classes: &[Resolved]) -> Vec<Seconds> {
    let whole = Whole::of(tally, classes);
    let rows = tally.by_active.values();
    let weights: Vec<Seconds> = rows.map(|row| whole.weights(row)).collect();
    let mut sums = [0.0; PARTS];
    for own in &weights {
        (0..PARTS).for_each(|part| sums[part] += own[part]);
    }
    let all_sum: f64 = sums.iter().sum();
    let of_row = |own: &Seconds| {
        let own_sum: f64 = own.iter().sum();
        std::array::from_fn(|part| {
            let share = match sums[part] {
                // No look that found a transaction has shown it.
                sum if sum <= 0.0 => own_sum / all_sum.max(f64::MIN_POSITIVE),
                sum => own[part] / sum,
            };
            whole.seconds[part] * share
        })
    };
    weights.iter().map(of_row).collect()
}

/// What was found of all looks.
struct Whole {
    seconds: Seconds,
    /// Of what sessions showed that were woken, the part that was none of it, 0 to 1.
    taken: Seconds,
    /// Of what showed no wait, the part that was neither on a processor nor in line, 0 to 1.
    nameless: f64,
    /// Seconds in line before a transaction, for each that a woken idle session was seen.
    before: f64,
}

impl Whole {
    fn of(tally: &Tally, classes: &[Resolved]) -> Whole {
        let (mut seconds, mut taken_s, mut woken_s) = ([0.0; PARTS], [0.0; PARTS], [0.0; PARTS]);
        let (mut running_s, mut nameless_s, mut before_s) = (0.0, 0.0, 0.0);
        for (own, found) in tally.classes.iter().zip(classes) {
            for part in 0..PARTS {
                seconds[part] += found.seconds[part];
                taken_s[part] += own.seconds[part] * (1.0 - found.waited[part]);
                woken_s[part] += own.woken.seconds[part];
            }
            running_s += own.seconds[RUNNING];
            nameless_s += found.seconds[OTHER] - own.seconds[OTHER] * found.waited[OTHER];
            before_s += found.before_s;
        }
        let rows = tally.by_active.values();
        let idle_s: f64 = rows.map(|row| row.woken.idle_s).sum();
        let share = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
        Whole {
            seconds,
            taken: std::array::from_fn(|part| share(taken_s[part], woken_s[part])),
            nameless: share(nameless_s, running_s),
            before: share(before_s, idle_s),
        }
    }

    /// In which proportion this row has each part of the whole.
    fn weights(&self, row: &ActiveTally) -> Seconds {
        let mut weights = row.seconds;
        let mut on_processor_s = row.seconds[RUNNING] * (1.0 - self.nameless);
        on_processor_s += self.before * row.woken.idle_s;
        for part in (0..PARTS).filter(|part| *part != RUNNING) {
            let taken_s = (self.taken[part] * row.woken.seconds[part]).min(row.seconds[part]);
            weights[part] -= taken_s;
            on_processor_s += taken_s;
        }
        weights[OTHER] += self.nameless * row.seconds[RUNNING];
        let kernel_s = (row.run_s + row.wait_s).max(f64::MIN_POSITIVE);
        weights[RUNNING] = on_processor_s * row.run_s / kernel_s;
        weights[PROCESSOR_WAIT] = on_processor_s * row.wait_s / kernel_s;
        weights
    }
}
