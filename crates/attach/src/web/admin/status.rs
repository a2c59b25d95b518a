//! `/status.json`: the fields of `attach top --json`, and the last five minutes.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use sooner_operate::admin::Ring;

use crate::web::snapshot::{SizeView, Snapshot};

/// With fewer responses a comparison is an anecdote, and there is none.
const COMPARED_MIN: u64 = 20;

/// What left and what waited in a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Second {
    /// Left through all bands.
    pub sent_bytes: u64,
    /// Waited in them at its end.
    pub backlog_bytes: u64,
}

/// The attachment at one moment.
#[derive(Debug, Serialize)]
pub struct Status<'a> {
    /// The form of this object; a field once published keeps its name and meaning.
    pub schema: u32,
    /// When it was made, seconds since 1970.
    pub time_unix_seconds: f64,
    /// The version of the program.
    pub version: &'static str,
    /// What the order was worth, in words.
    pub headline: String,
    /// What `attach top --json` shows.
    #[serde(flatten)]
    pub snapshot: &'a Snapshot,
    /// The last five minutes.
    pub per_second: PerSecond,
}

/// The last five minutes, oldest first, a value a second.
#[derive(Debug, Default, Serialize)]
pub struct PerSecond {
    /// That left through all bands.
    pub sent_bytes: Vec<u64>,
    /// That waited in them.
    pub backlog_bytes: Vec<u64>,
}

impl<'a> Status<'a> {
    /// At `now`.
    pub fn new(snapshot: &'a Snapshot, seconds: &Ring<Second>, now: SystemTime) -> Self {
        let time = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let of = |value: fn(&Second) -> u64| seconds.seconds().map(value).collect();
        Self {
            schema: 1,
            time_unix_seconds: time.as_secs_f64(),
            version: env!("CARGO_PKG_VERSION"),
            headline: headline(snapshot),
            snapshot,
            per_second: PerSecond {
                sent_bytes: of(|second| second.sent_bytes),
                backlog_bytes: of(|second| second.backlog_bytes),
            },
        }
    }
}

/// What the order was worth since the start, to those that an equally shared link has done too.
fn headline(snapshot: &Snapshot) -> String {
    if snapshot.observed.is_some() {
        return "Only observed: nothing is ordered".into();
    }
    let sizes = snapshot.sizes.iter();
    let compared: u64 = sizes.map(|size| size.compared_responses).sum();
    let sum = |mean: fn(&SizeView) -> Option<f64>| -> f64 {
        let sizes = snapshot.sizes.iter();
        sizes
            .map(|size| size.compared_responses as f64 * mean(size).unwrap_or(0.0))
            .sum()
    };
    let ours = sum(|size| size.compared_mean_response_ms);
    let fair = sum(|size| size.fair_mean_response_ms);
    if compared < COMPARED_MIN || ours <= 0.0 {
        return "Too few responses so far to compare".into();
    }
    match fair / ours {
        times if times >= 1.05 => {
            format!("Responses come {times:.1} times sooner than on a link shared equally")
        }
        times if times >= 0.95 => "Responses come as soon as on a link shared equally".into(),
        times => format!(
            "Responses come {:.1} times later than on a link shared equally",
            1.0 / times
        ),
    }
}
