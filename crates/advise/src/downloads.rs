//! How fast large responses were taken, and whether the times that say so can be believed.

use crate::line::Entry;
use crate::taken::{Source, is_size_again};
use sooner_report::number::{bits_per_sec, count};

/// Responses from which the speed is told.
const DOWNLOAD_BYTES: u64 = 100_000;
/// And most of those that are kept.
const DOWNLOADS_MAX: usize = 100_000;
/// Faster than any link of a server.
const SPEED_MAX_BITS_PER_SEC: f64 = 1e11;
/// Responses that are large enough to tell a count of their bytes from a time.
const COMPARED_BYTES: u64 = 5000;
/// Fewest of them.
const COMPARED_MIN: u64 = 10;

/// No response takes so few microseconds.
const SMALL: u64 = 20;

/// Collects speeds.
#[derive(Default)]
pub struct Downloads {
    known: Vec<f64>,
    guessed: Vec<f64>,
    /// Numbers of unknown unit beside large responses; and those that are as large as the response.
    compared: u64,
    same: u64,
    /// Of all responses with a number of unknown unit: how many, and where it is one of several
    /// and as large as the response.
    guesses: u64,
    repeated: u64,
    /// Of all of unknown unit: how many, and how many that are small.
    numbers: u64,
    small: u64,
    /// Times that no response takes.
    too_long: u64,
}

/// What the speeds say.
pub struct Figures {
    /// Their median.
    pub median_bits_per_sec: Option<f64>,
    /// What is not believed, a sentence each.
    pub disbelieved: Vec<String>,
    /// Whether whole numbers of unknown unit may be microseconds.
    pub is_guess_believed: bool,
}

impl Downloads {
    /// Counts a response that has a time taken.
    pub fn add(&mut self, entry: &Entry, bytes: u64) {
        self.too_long += u64::from(entry.took_ns.is_none() && entry.took_from.is_some());
        let is_guessed = entry.took_from.is_some_and(Source::is_guess);
        if is_guessed && let Some(took_ns) = entry.took_ns {
            self.numbers += 1;
            self.small += u64::from(took_ns / 1000 < SMALL);
        }
        let Some(took_ns) = entry.took_ns.filter(|took| *took > 0) else {
            return;
        };
        if is_guessed && bytes > 0 {
            self.guesses += 1;
            self.repeated += u64::from(entry.took_from == Some(Source::Repeated));
        }
        if is_guessed && bytes >= COMPARED_BYTES {
            self.compared += 1;
            self.same += u64::from(is_size_again(took_ns / 1000, bytes));
        }
        let speeds = if is_guessed {
            &mut self.guessed
        } else {
            &mut self.known
        };
        if bytes >= DOWNLOAD_BYTES && speeds.len() < DOWNLOADS_MAX {
            speeds.push(bytes as f64 * 8e9 / took_ns as f64);
        }
    }

    /// Of a server behind an uplink of this rate, if that is known.
    pub fn figures(mut self, uplink_bits_per_sec: Option<u64>) -> Figures {
        let fastest = uplink_bits_per_sec.map_or(SPEED_MAX_BITS_PER_SEC, |rate| rate as f64);
        let mut disbelieved = Vec::new();
        if self.too_long > 0 {
            disbelieved.push(format!(
                "{} times taken are longer than a week: Sooner ignores them.",
                count(self.too_long)
            ));
        }
        let known = median(&mut self.known);
        let guessed = median(&mut self.guessed);
        let mut believed = known;
        let mut is_guess_believed = true;
        if let Some(speed) = known
            && speed > SPEED_MAX_BITS_PER_SEC
        {
            disbelieved.push(format!(
                "The times taken would make downloads {} fast: they are not download times.",
                bits_per_sec(speed)
            ));
            believed = None;
        }
        let is_size = (self.compared >= COMPARED_MIN && self.same * 2 > self.compared)
            || self.repeated * 2 > self.guesses;
        if is_size {
            is_guess_believed = false;
            disbelieved.push(
                "The whole number at the end of the lines is the size once more: Sooner ignores it."
                    .into(),
            );
        } else if self.small * 2 > self.numbers {
            is_guess_believed = false;
            disbelieved.push(
                "The whole number at the end of the lines is ignored: most are too small for microseconds (%D); give their unit, such as --time-taken s for %T or --time-taken ms for %{ms}T."
                    .into(),
            );
        } else if let Some(speed) = guessed {
            if speed > fastest {
                is_guess_believed = false;
                disbelieved.push(format!(
                    "The whole number at the end of the lines is ignored: as a time in microseconds it would make downloads {} fast, on an uplink of {}; give its unit with --time-taken.",
                    bits_per_sec(speed),
                    bits_per_sec(fastest)
                ));
            } else {
                believed = believed.or(Some(speed));
            }
        }
        Figures {
            median_bits_per_sec: believed,
            disbelieved,
            is_guess_believed,
        }
    }
}

fn median(speeds: &mut [f64]) -> Option<f64> {
    speeds.sort_unstable_by(f64::total_cmp);
    speeds.get(speeds.len() / 2).copied()
}
