//! The slowest responses of the last minutes, with what each of them waited for.

use super::RequestFacts;
use super::count::Count;
use sooner_config::printable;
use sooner_link::JobReport;
use std::cmp::Reverse;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// As many as a person reads.
const KEPT_MAX: usize = 12;
/// For so many seconds a response counts as recent.
const RECENT_SECONDS: u64 = 300;
/// Longer targets are cut.
const TARGET_BYTES_MAX: usize = 200;

/// A slow response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slow {
    /// The target of the request, printable, cut when it is long.
    pub target: String,
    /// Its status.
    pub status: u16,
    /// Bytes of its body that were sent.
    pub size_bytes: u64,
    /// Time in which others went first, ns.
    pub wait_ns: u64,
    /// The rest of its time, ns.
    pub service_ns: u64,
    /// Whether all of it was sent.
    pub is_complete: bool,
    ended_at_second: u64,
}

impl Slow {
    fn response_ns(&self) -> u64 {
        self.wait_ns + self.service_ns
    }
}

/// A bounded list, cheap to not get into.
#[derive(Debug, Default)]
pub struct Slowest {
    /// Who is not slower than this does not get in, ns.
    bar_ns: Count,
    second: Count,
    kept: Mutex<Vec<Slow>>,
}

impl Slowest {
    /// Whether a response that took `response_ns` gets in.
    pub fn is_slow(&self, response_ns: u64) -> bool {
        response_ns > self.bar_ns.get()
    }

    /// Keeps a response, and lets the fastest of too many go.
    pub fn add(&self, facts: &RequestFacts, report: &JobReport, size_bytes: u64) {
        let slow = Slow {
            target: cut(facts.uri.path_and_query().map_or("", |path| path.as_str())),
            status: facts.status,
            size_bytes,
            wait_ns: report.wait_ns,
            service_ns: report.service_ns,
            is_complete: report.completed,
            ended_at_second: self.second.get(),
        };
        let mut kept = self.lock();
        let place = kept.partition_point(|other| other.response_ns() >= slow.response_ns());
        kept.insert(place, slow);
        kept.truncate(KEPT_MAX);
        self.set_bar(&kept);
    }

    /// Keeps the slowest of its own and of `other`'s.
    pub fn add_all(&self, other: &Self) {
        let mut kept = self.lock();
        kept.extend(other.read());
        kept.sort_by_key(|slow| Reverse(slow.response_ns()));
        kept.truncate(KEPT_MAX);
        self.set_bar(&kept);
    }

    /// Those that are still recent, slowest first.
    pub fn read(&self) -> Vec<Slow> {
        self.lock().clone()
    }

    /// A second has passed.
    pub fn second_passed(&self) {
        self.second.add(1);
        let second = self.second.get();
        let mut kept = self.lock();
        kept.retain(|slow| slow.ended_at_second + RECENT_SECONDS > second);
        self.set_bar(&kept);
    }

    fn set_bar(&self, kept: &[Slow]) {
        let last = kept.get(KEPT_MAX - 1);
        self.bar_ns.set(last.map_or(0, Slow::response_ns));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Slow>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cut(target: &str) -> String {
    if target.len() <= TARGET_BYTES_MAX {
        return printable(target).into_owned();
    }
    let end = (0..=TARGET_BYTES_MAX)
        .rev()
        .find(|&at| target.is_char_boundary(at));
    format!("{}...", printable(&target[..end.unwrap_or(0)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::tests::report;
    use hyper::Request;

    fn add(slowest: &Slowest, response_ns: u64) {
        let facts = RequestFacts::new(&Request::new(()));
        if slowest.is_slow(response_ns) {
            slowest.add(&facts, &report(1, response_ns, 0), 1);
        }
    }

    #[test]
    fn the_slowest_stay_until_they_are_old() {
        let slowest = Slowest::default();
        for response_ns in 1..=100 {
            add(&slowest, (response_ns * 37) % 101);
        }
        let kept: Vec<u64> = slowest.read().iter().map(Slow::response_ns).collect();
        assert_eq!(kept, (89..=100).rev().collect::<Vec<_>>());
        assert!(!slowest.is_slow(89) && slowest.is_slow(90));
        (0..RECENT_SECONDS - 1).for_each(|_| slowest.second_passed());
        add(&slowest, 1000);
        assert_eq!(slowest.read().len(), KEPT_MAX);
        slowest.second_passed();
        assert_eq!(slowest.read().len(), 1);
        assert!(slowest.is_slow(1));
    }

    #[test]
    fn the_slowest_of_both_are_kept() {
        let (sum, other) = (Slowest::default(), Slowest::default());
        (1..=10).for_each(|response_ns| add(&sum, 2 * response_ns));
        (1..=10).for_each(|response_ns| add(&other, 2 * response_ns + 1));
        sum.add_all(&other);
        let kept: Vec<u64> = sum.read().iter().map(Slow::response_ns).collect();
        assert_eq!(kept, (10..=21).rev().collect::<Vec<_>>());
        assert!(!sum.is_slow(10) && sum.is_slow(11));
        assert_eq!(other.read().len(), 10);
    }

    #[test]
    fn long_targets_are_cut_between_characters() {
        assert_eq!(cut("/a"), "/a");
        assert_eq!(cut("/\u{9b}\u{202e}"), "/\\u{9b}\\u{202e}");
        let long = "\u{e9}".repeat(TARGET_BYTES_MAX);
        assert!(cut(&long).len() <= TARGET_BYTES_MAX + 3);
    }
}
