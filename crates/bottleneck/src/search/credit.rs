//! Links that let more through for a while when less was sent before (token buckets): what a probe
//! finds there does not last, and ends in a queue.

use super::SECOND;

/// A climb that is undone so soon was of what had been saved up.
const UNDONE_NS: u64 = 20 * SECOND;
/// What is a climb, and not what a measurement is wrong by.
const HIGHER: f64 = 1.08;
/// By how much a fall undoes a climb.
const UNDONE: f64 = 0.95;
/// How far above the last fall the next climbs go, and for how long; doubled each time.
const CLIMB: f64 = 1.05;
const CAREFUL_NS: u64 = 30 * SECOND;
const CAREFUL_MAX_NS: u64 = 300 * SECOND;

#[derive(Debug, Default)]
pub struct Credit {
    /// The last climb: when, and from where.
    climbed: Option<(u64, f64)>,
    /// No higher than this until then.
    most: Option<(u64, f64)>,
    careful_ns: u64,
}

impl Credit {
    /// The link was seen to carry `carries`, which is more than `before`.
    pub fn note_climb(&mut self, now_ns: u64, before: f64, carries: f64) {
        if carries > HIGHER * before {
            self.climbed = Some((now_ns, before));
        }
    }

    /// It carries `carries` only; whether it had saved up what it carried before.
    pub fn note_fall(&mut self, now_ns: u64, carries: f64) -> bool {
        let Some((at_ns, before)) = self.climbed else {
            return false;
        };
        // Back to about where the climb began, and not to a new place.
        let is_back = carries > UNDONE * before && carries < before / UNDONE;
        let is_undone = now_ns < at_ns + UNDONE_NS && is_back;
        if !is_undone {
            return false;
        }
        self.climbed = None;
        self.careful_ns = (2 * self.careful_ns).clamp(CAREFUL_NS, CAREFUL_MAX_NS);
        self.most = Some((now_ns + self.careful_ns, CLIMB * carries));
        true
    }

    /// The most that the next climb may reach; none: anything.
    pub fn most(&self, now_ns: u64) -> Option<f64> {
        let (until_ns, most) = self.most?;
        (now_ns < until_ns).then_some(most)
    }
}
