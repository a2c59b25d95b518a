//! One pass over a log: what is counted, and what is kept for the simulation.
//!
//! Memory is bounded by the clients present at a time, the minutes of the log, and [`KEPT_MAX`] requests of its busiest hours.

use crate::line::{Entry, NoEntry};
use crate::sizes::{SizeFigures, Sizes};
use crate::visits::{UserFigures, Visits};
use serde::Serialize;
use sooner_policy::Cutoffs;
use sooner_workload::Rng;
use sooner_workload::wire::WireModel;
use std::collections::BTreeMap;
use std::path::Path;

/// Bytes of a response's head, where the log does not have it.
pub const HEAD_BYTES: u64 = 300;
/// Requests that are kept.
pub const KEPT_MAX: usize = 2_000_000;
/// Minutes that are counted: twenty years.
const MINUTES_MAX: i64 = 20 * 366 * 24 * 60;
/// A time may be before the one of the line above by so much: lines are written at the end of a response.
const BACK_MAX_S: f64 = 3600.0;
/// Downloads from which the speed of clients is told.
const DOWNLOAD_BYTES: u64 = 100_000;
/// And most of those that are kept.
const DOWNLOADS_MAX: usize = 100_000;
/// Of a line that was not understood, so much is shown.
const SHOWN_BYTES: usize = 100;

/// An hour of requests: when each came within the hour, and its work on the wire.
#[derive(Default)]
pub(crate) struct Hour {
    pub requests: Vec<(f32, u64)>,
    pub work_bytes: u64,
}

/// Counts what a log has.
pub struct Surveyor {
    rate_bits_per_sec: u64,
    wire: WireModel,
    requests: u64,
    work_bytes: u64,
    others: u64,
    first_other: Option<String>,
    broken: Vec<String>,
    backwards: u64,
    first_s: f64,
    last_s: f64,
    sizes: Sizes,
    visits: Visits,
    cutoffs: Cutoffs,
    /// Work by minute since 1970.
    minutes: BTreeMap<i64, u64>,
    pub(crate) hours: BTreeMap<i64, Hour>,
    kept: usize,
    /// Requests of hours that were let go.
    let_go: u64,
    within_second: Rng,
    is_whole_seconds: bool,
    download_bits_per_sec: Vec<f64>,
}

/// What a log is like.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Survey {
    /// Lines that are requests.
    pub requests: u64,
    /// Lines that are not.
    pub other_lines: u64,
    /// The first of them, with its place.
    pub first_other_line: Option<String>,
    /// Files that could not be read to their end.
    pub broken_files: Vec<String>,
    /// Lines whose time is more than an hour before the one above.
    pub backward_lines: u64,
    /// From the first request to the last, seconds.
    pub span_s: f64,
    /// The uplink, bits a second.
    pub uplink_bits_per_sec: u64,
    /// Work on the wire over what the uplink can do: in the mean, in the busiest hour and the busiest minute.
    pub mean_load: f64,
    /// Likewise.
    pub busiest_hour_load: f64,
    /// Likewise.
    pub busiest_minute_load: f64,
    /// Share of the minutes with a load above 0.5.
    pub minutes_above_half: f64,
    /// Minutes since the first, with their load; the last one cut short.
    pub load_by_minute: Vec<(f64, f64)>,
    /// Sizes of bodies; none where all are 0.
    pub sizes: Option<SizeFigures>,
    /// Who comes.
    pub users: UserFigures,
    /// Median speed at which large responses were taken, bits a second, where the log has times.
    pub download_bits_per_sec: Option<f64>,
    /// Borders between eight bands of sizes, bytes.
    pub band_cutoffs_bytes: Vec<u64>,
    /// Requests of the hours that are simulated.
    pub simulated_requests: u64,
    /// Requests of quieter hours that are not, because the log has too many.
    pub left_out_requests: u64,
}

impl Surveyor {
    /// For an uplink of `rate_bits_per_sec`.
    pub fn new(rate_bits_per_sec: u64) -> Self {
        Self {
            rate_bits_per_sec: rate_bits_per_sec.max(1),
            wire: WireModel::default(),
            requests: 0,
            work_bytes: 0,
            others: 0,
            first_other: None,
            broken: Vec::new(),
            backwards: 0,
            first_s: f64::INFINITY,
            last_s: f64::NEG_INFINITY,
            sizes: Sizes::new(),
            visits: Visits::default(),
            cutoffs: Cutoffs::default(),
            minutes: BTreeMap::new(),
            hours: BTreeMap::new(),
            kept: 0,
            let_go: 0,
            within_second: Rng::new(1, 0x61),
            is_whole_seconds: true,
            download_bits_per_sec: Vec::new(),
        }
    }

    /// The uplink, bits a second.
    pub fn rate_bits_per_sec(&self) -> u64 {
        self.rate_bits_per_sec
    }

    /// Counts a request.
    pub fn add(&mut self, entry: Entry) {
        if !(0.0..1e11).contains(&entry.at_s) {
            self.others += 1;
            return;
        }
        self.backwards += u64::from(entry.at_s < self.last_s - BACK_MAX_S);
        self.requests += 1;
        self.first_s = self.first_s.min(entry.at_s);
        self.last_s = self.last_s.max(entry.at_s);
        let work_bytes = self.wire.work_bytes(entry.bytes, HEAD_BYTES, false);
        self.work_bytes += work_bytes;
        self.sizes.add(entry.bytes);
        self.cutoffs.record(work_bytes);
        self.visits.add(entry.client, entry.at_s);
        let minute = (entry.at_s / 60.0) as i64;
        if self.minutes.len() < MINUTES_MAX as usize {
            *self.minutes.entry(minute).or_default() += work_bytes;
        }
        if let Some(took_s) = entry.took_s
            && entry.bytes >= DOWNLOAD_BYTES
            && took_s > 0.0
            && self.download_bits_per_sec.len() < DOWNLOADS_MAX
        {
            self.download_bits_per_sec
                .push(entry.bytes as f64 * 8.0 / took_s);
        }
        self.keep(entry.at_s, work_bytes);
    }

    fn keep(&mut self, at_s: f64, work_bytes: u64) {
        // Logs of whole seconds say nothing of when within them.
        self.is_whole_seconds &= at_s.fract() == 0.0;
        let within = if self.is_whole_seconds {
            self.within_second.uniform()
        } else {
            0.0
        };
        let number = (at_s / 3600.0) as i64;
        let hour = self.hours.entry(number).or_default();
        hour.work_bytes += work_bytes;
        if hour.requests.len() >= KEPT_MAX {
            self.let_go += 1;
            return;
        }
        hour.requests
            .push(((at_s - number as f64 * 3600.0 + within) as f32, work_bytes));
        self.kept += 1;
        if self.kept > KEPT_MAX {
            self.let_go_of_the_quietest();
        }
    }

    fn let_go_of_the_quietest(&mut self) {
        let quietest = self
            .hours
            .iter()
            .min_by_key(|(_, hour)| hour.work_bytes)
            .map(|(number, _)| *number);
        if let Some(hour) = quietest.and_then(|number| self.hours.remove(&number)) {
            self.kept -= hour.requests.len();
            self.let_go += hour.requests.len() as u64;
        }
    }

    /// Counts a line that is no request.
    pub fn add_other(&mut self, path: &Path, number: u64, line: &[u8], reason: NoEntry) {
        self.others += 1;
        if self.first_other.is_none() {
            let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)]).into_owned();
            let shown: String = shown
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            self.first_other = Some(format!("{}:{number}: {reason}: {shown}", path.display()));
        }
    }

    /// Notes a file that breaks off.
    pub fn add_broken(&mut self, path: &Path, line: u64, error: &std::io::Error) {
        self.broken.push(format!(
            "{}: read to line {line}, then: {error}",
            path.display()
        ));
    }

    /// What was counted; and the hours that are to be simulated, each with its number since 1970.
    pub(crate) fn finish(mut self) -> (Option<Survey>, BTreeMap<i64, Hour>) {
        if self.requests == 0 {
            return (None, BTreeMap::new());
        }
        let span_s = (self.last_s - self.first_s).max(1.0);
        let bytes_per_sec = self.rate_bits_per_sec as f64 / 8.0;
        let first = (self.first_s / 60.0) as i64;
        let load = |bytes: u64, seconds: f64| bytes as f64 / (bytes_per_sec * seconds);
        let load_by_minute: Vec<(f64, f64)> = self
            .minutes
            .iter()
            .map(|(minute, bytes)| ((minute - first) as f64, load(*bytes, 60.0)))
            .collect();
        let busiest = |loads: &mut dyn Iterator<Item = f64>| loads.fold(0.0, f64::max);
        let minutes = (span_s / 60.0).ceil().max(1.0);
        let speeds = &mut self.download_bits_per_sec;
        speeds.sort_unstable_by(f64::total_cmp);
        let survey = Survey {
            requests: self.requests,
            other_lines: self.others,
            first_other_line: self.first_other,
            broken_files: self.broken,
            backward_lines: self.backwards,
            span_s,
            uplink_bits_per_sec: self.rate_bits_per_sec,
            mean_load: load(self.work_bytes, span_s),
            busiest_hour_load: busiest(
                &mut hours_of(&self.minutes)
                    .into_values()
                    .map(|bytes| load(bytes, 3600.0)),
            ),
            busiest_minute_load: busiest(&mut load_by_minute.iter().map(|minute| minute.1)),
            minutes_above_half: load_by_minute
                .iter()
                .filter(|minute| minute.1 > 0.5)
                .count() as f64
                / minutes,
            load_by_minute,
            sizes: self.sizes.figures(),
            users: self.visits.figures(span_s),
            download_bits_per_sec: speeds.get(speeds.len() / 2).copied(),
            band_cutoffs_bytes: self.cutoffs.cutoffs().to_vec(),
            simulated_requests: self.kept as u64,
            left_out_requests: self.let_go,
        };
        (Some(survey), self.hours)
    }
}

/// Work by hour.
fn hours_of(minutes: &BTreeMap<i64, u64>) -> BTreeMap<i64, u64> {
    let mut hours = BTreeMap::new();
    for (minute, bytes) in minutes {
        *hours.entry(minute.div_euclid(60)).or_default() += bytes;
    }
    hours
}
