//! One pass over a log: what is counted, and what is kept for the simulation.
//!
//! Memory is bounded by the clients present at a time, the minutes of the log, and [`KEPT_MAX`]
//! requests of its busiest hours.

use crate::busiest::{Busiest, KEPT_MAX};
use crate::downloads::Downloads;
use crate::files::Sink;
use crate::formats::FORMATS;
use crate::hours;
use crate::line::{Entry, NoEntry};
use crate::load::{Loads, Minutes};
use crate::queue::{QueueFigures, QueueSurvey};
use crate::sizes::{SizeFigures, Sizes};
use crate::taken::Source;
use crate::visits::{UserFigures, Visits};
use serde::Serialize;
use sooner_policy::Cutoffs;
use sooner_workload::wire::WireModel;
use std::collections::BTreeMap;

/// Bytes of a response's head, where the log does not have it.
pub const HEAD_BYTES: u64 = 300;
/// A time may be before the one of the line above by so much: lines are written at the end of a
/// response.
const BACK_MAX_NS: u64 = 3_600_000_000_000;
/// No time of a log is behind this, ns since 1970: the year 2500.
const TIME_MAX_NS: u64 = 16_725_225_600 * 1_000_000_000;
/// Of a line that was not understood, so much is shown.
const SHOWN_BYTES: usize = 100;

/// Counts what a log has.
pub struct Surveyor {
    /// None where only the queue before the servers is surveyed.
    rate_bits_per_sec: Option<u64>,
    wire: WireModel,
    requests: u64,
    work_bytes: u64,
    others: u64,
    first_other: Option<String>,
    broken: Vec<String>,
    repeated: Vec<String>,
    backwards: u64,
    first_ns: u64,
    last_ns: u64,
    resolution_ns: u64,
    sizes: Sizes,
    visits: Visits,
    clientless: u64,
    sizeless: u64,
    queue: QueueSurvey,
    cutoffs: Cutoffs,
    minutes: Minutes,
    busiest: Busiest,
    downloads: Downloads,
    /// Lines by format and by where the time taken is from.
    formats: BTreeMap<(usize, Option<Source>), u64>,
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
    /// Files that were given more than once, and read once.
    pub repeated_files: Vec<String>,
    /// Lines with a time more than an hour before that of the line above.
    pub backward_lines: u64,
    /// How lines were read, the most frequent way first.
    pub formats: Vec<FormatLines>,
    /// What was in the log and is not believed, a sentence each.
    pub disbelieved: Vec<String>,
    /// Requests of which the log does not say how large they are; they are in nothing that is said
    /// of the uplink.
    pub sizeless_requests: u64,
    /// From the first request to the last, seconds.
    pub span_s: f64,
    /// Mean bits a second on the wire in each hour of the day, UTC; none of hours that the log does
    /// not reach.
    pub bits_per_sec_by_hour: Vec<Option<f64>>,
    /// What comes to the uplink; left out where none is given.
    #[serde(flatten)]
    pub link: Option<LinkFigures>,
    /// Sizes of bodies; none where all are 0.
    pub sizes: Option<SizeFigures>,
    /// Who comes.
    pub users: UserFigures,
    /// Requests of which the log does not say who asked.
    pub clientless_requests: u64,
    /// Borders between eight bands of sizes, bytes.
    pub band_cutoffs_bytes: Vec<u64>,
}

/// What comes to the uplink.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkFigures {
    /// The uplink, bits a second.
    pub uplink_bits_per_sec: u64,
    /// Work on the wire over what the uplink can do: in the mean, in the busiest hour and the
    /// busiest minute.
    pub mean_load: f64,
    /// Likewise; of a log that is shorter than an hour that of the whole log.
    pub busiest_hour_load: f64,
    /// When that hour begins, seconds since 1970.
    pub busiest_hour_begins_s: u64,
    /// Likewise of a minute.
    pub busiest_minute_load: f64,
    /// Share of the minutes with a load above 0.5.
    pub minutes_above_half: f64,
    /// Minutes since the first, with their load; the first and the last one cut short.
    pub load_by_minute: Vec<(f64, f64)>,
    /// Median speed at which large responses were taken, bits a second, where the log has times
    /// that can be believed.
    pub download_bits_per_sec: Option<f64>,
    /// Requests of the hours that are simulated.
    pub simulated_requests: u64,
    /// Requests of quieter hours that are not, because the log has too many.
    pub left_out_requests: u64,
    /// Those are the busiest periods of this length, seconds.
    pub simulated_period_s: u64,
}

/// Lines that were read in one way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FormatLines {
    /// The format, and what its time and its numbers are taken for.
    pub reading: String,
    /// How many.
    pub lines: u64,
}

impl Surveyor {
    /// For an uplink of `rate_bits_per_sec`.
    pub fn new(rate_bits_per_sec: u64) -> Self {
        Self::keeping(rate_bits_per_sec, KEPT_MAX)
    }

    /// Likewise, with at most `kept_max` requests for the simulation.
    pub fn keeping(rate_bits_per_sec: u64, kept_max: usize) -> Self {
        Self::of(Some(rate_bits_per_sec.max(1)), kept_max)
    }

    /// Of the queue before the servers alone.
    pub fn without_link() -> Self {
        Self::of(None, KEPT_MAX)
    }

    fn of(rate_bits_per_sec: Option<u64>, kept_max: usize) -> Self {
        Self {
            rate_bits_per_sec,
            wire: WireModel::default(),
            requests: 0,
            work_bytes: 0,
            others: 0,
            first_other: None,
            broken: Vec::new(),
            repeated: Vec::new(),
            backwards: 0,
            first_ns: u64::MAX,
            last_ns: 0,
            resolution_ns: 1,
            sizes: Sizes::new(),
            visits: Visits::default(),
            clientless: 0,
            sizeless: 0,
            queue: QueueSurvey::keeping(kept_max),
            cutoffs: Cutoffs::default(),
            minutes: Minutes::default(),
            busiest: Busiest::new(kept_max),
            downloads: Downloads::default(),
            formats: BTreeMap::new(),
        }
    }

    /// The uplink, bits a second; none where it does not matter.
    pub fn rate_bits_per_sec(&self) -> Option<u64> {
        self.rate_bits_per_sec
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The first line that is no request, with its place and the reason.
    pub fn first_other_line(&self) -> Option<&str> {
        self.first_other.as_deref()
    }

    /// Files that broke off, each with its place and the reason.
    pub fn broken_files(&self) -> &[String] {
        &self.broken
    }

    /// Counts a request.
    pub fn add(&mut self, entry: Entry) {
        let at_ns = entry.arrival_ns();
        if entry.stamp_ns >= TIME_MAX_NS {
            self.others += 1;
            return;
        }
        // Of a log's times, not of arrivals: one request that lasted for hours makes no log long.
        let stamp_ns = entry.stamp_ns;
        self.backwards += u64::from(stamp_ns.saturating_add(BACK_MAX_NS) < self.last_ns);
        self.requests += 1;
        self.first_ns = self.first_ns.min(stamp_ns);
        self.last_ns = self.last_ns.max(stamp_ns);
        self.resolution_ns = self.resolution_ns.max(entry.resolution_ns);
        let took_from = match entry.took_from {
            Some(source) if source.is_guess() => Some(Source::Guessed),
            other => other,
        };
        *self.formats.entry((entry.format, took_from)).or_default() += 1;
        match entry.client {
            Some(client) => self.visits.add(client, at_ns as f64 / 1e9),
            None => self.clientless += 1,
        }
        self.queue.add(&entry);
        match entry.bytes {
            Some(bytes) => self.add_sized(&entry, bytes),
            None => self.sizeless += 1,
        }
    }

    /// Counts what came to the link.
    fn add_sized(&mut self, entry: &Entry, bytes: u64) {
        let (at_ns, stamp_ns) = (entry.arrival_ns(), entry.stamp_ns);
        let head_bytes = if entry.has_head { 0 } else { HEAD_BYTES };
        let work_bytes = self.wire.work_bytes(bytes, head_bytes, false);
        self.work_bytes = self.work_bytes.saturating_add(work_bytes);
        self.sizes.add(bytes);
        self.cutoffs.record(work_bytes);
        self.downloads.add(entry, bytes);
        self.minutes.add(at_ns, work_bytes);
        if self.rate_bits_per_sec.is_some() {
            let before_ns = stamp_ns.saturating_sub(at_ns);
            self.busiest
                .add(stamp_ns, entry.resolution_ns, before_ns, work_bytes);
        }
    }

    /// Counts a line that is no request.
    pub fn add_other(&mut self, name: &str, number: u64, line: &[u8], reason: NoEntry) {
        self.others += 1;
        if self.first_other.is_none() {
            let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)]).into_owned();
            let shown: String = shown
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            self.first_other = Some(format!("{name}:{number}: {reason}: {shown}"));
        }
    }

    /// Notes a file that breaks off.
    pub fn add_broken(&mut self, name: &str, line: u64, error: &std::io::Error) {
        self.broken
            .push(format!("{name}: read to line {line}, then: {error}"));
    }

    /// Notes a file that was given before.
    pub fn add_repeated(&mut self, name: &str) {
        self.repeated.push(name.to_owned());
    }

    /// What was counted, what follows for the queue, and the requests that are to be simulated on
    /// the link; none of a log without requests.
    pub(crate) fn finish(self) -> Option<(Survey, Option<QueueFigures>, Busiest)> {
        if self.requests == 0 {
            return None;
        }
        let span_ns = (self.last_ns - self.first_ns).saturating_add(self.resolution_ns);
        let span_s = (span_ns as f64 / 1e9).max(1.0);
        let downloads = self.downloads.figures(self.rate_bits_per_sec);
        let queue = self.queue.finish(downloads.is_guess_believed);
        let link = self.rate_bits_per_sec.map(|rate_bits_per_sec| {
            let bytes_per_sec = rate_bits_per_sec as f64 / 8.0;
            let loads = Loads::of(&self.minutes, bytes_per_sec, self.first_ns, span_s);
            LinkFigures {
                uplink_bits_per_sec: rate_bits_per_sec,
                mean_load: self.work_bytes as f64 / (bytes_per_sec * span_s),
                busiest_hour_load: loads.busiest_hour,
                busiest_hour_begins_s: loads.busiest_hour_begins_s,
                busiest_minute_load: loads.busiest_minute,
                minutes_above_half: loads.above_half,
                load_by_minute: loads.by_minute,
                download_bits_per_sec: downloads.median_bits_per_sec,
                simulated_requests: self.busiest.kept(),
                left_out_requests: self.busiest.let_go(),
                simulated_period_s: self.busiest.period_s(),
            }
        });
        let first_s = self.first_ns as f64 / 1e9;
        let survey = Survey {
            bits_per_sec_by_hour: hours::by_hour(&self.minutes, first_s, span_s),
            requests: self.requests,
            other_lines: self.others,
            first_other_line: self.first_other,
            broken_files: self.broken,
            repeated_files: self.repeated,
            backward_lines: self.backwards,
            formats: readings(&self.formats, downloads.is_guess_believed),
            disbelieved: downloads.disbelieved,
            sizeless_requests: self.sizeless,
            span_s,
            link,
            sizes: self.sizes.figures(),
            users: self.visits.figures(span_s),
            clientless_requests: self.clientless,
            band_cutoffs_bytes: self.cutoffs.cutoffs().to_vec(),
        };
        Some((survey, queue, self.busiest))
    }
}

fn readings(
    formats: &BTreeMap<(usize, Option<Source>), u64>,
    is_guess_believed: bool,
) -> Vec<FormatLines> {
    let reading = |(of, lines): (&(usize, Option<Source>), &u64)| FormatLines {
        reading: FORMATS.get(of.0).map_or(String::new(), |format| {
            format.reading(of.1, is_guess_believed)
        }),
        lines: *lines,
    };
    let mut all: Vec<FormatLines> = formats.iter().map(reading).collect();
    all.sort_by_key(|format| std::cmp::Reverse(format.lines));
    all
}
impl Sink for Surveyor {
    fn add(&mut self, entry: Entry) {
        Self::add(self, entry);
    }

    fn add_other(&mut self, name: &str, number: u64, line: &[u8], reason: NoEntry) {
        Self::add_other(self, name, number, line, reason);
    }

    fn add_broken(&mut self, name: &str, line: u64, error: &std::io::Error) {
        Self::add_broken(self, name, line, error);
    }

    fn add_repeated(&mut self, name: &str) {
        Self::add_repeated(self, name);
    }
}
