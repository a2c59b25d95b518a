//! What one user equivalent does: pages with their embedded files and pauses.

use super::SurgeModel;
use crate::sizes::Sampler;

/// Most requests of one page; a longer one (less than one page in 1e9) ends there.
pub const REQUESTS_PER_PAGE_MAX: usize = 10_000;

/// Longest pause in seconds (a week): the inactive OFF times have no bound.
const OFF_MAX_S: f64 = 604_800.0;

/// Names the random streams of the first user; each has [`STREAMS`].
const PURPOSE_USERS: u64 = 0x5352_0100_0000;
const STREAMS: u64 = 4;

/// The pauses of one page: as many requests as active OFF times and one more, for the page's own
/// file.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Pause before each embedded file, in seconds after the end of the response before it.
    pub active_off_s: Vec<f64>,
    /// Pause after the page in seconds.
    pub inactive_off_s: f64,
}

impl Page {
    /// Number of files, the page's own included.
    pub fn requests(&self) -> usize {
        1 + self.active_off_s.len()
    }
}

/// A user equivalent: an endless row of pages.
pub struct User {
    /// Pauses that are left of the page, the next one last.
    pauses_s: Vec<f64>,
    embedded: Sampler,
    active_off_s: Sampler,
    inactive_off_s: Sampler,
    start: Sampler,
}

impl User {
    /// User `number` of a run; each has random streams of its own.
    pub fn new(model: &SurgeModel, seed: u64, number: u32) -> Self {
        let purpose = PURPOSE_USERS + u64::from(number) * STREAMS;
        Self {
            pauses_s: Vec::new(),
            embedded: Sampler::new(model.embedded.clone(), seed, purpose),
            active_off_s: Sampler::new(model.active_off_s.clone(), seed, purpose + 1),
            inactive_off_s: Sampler::new(model.inactive_off_s.clone(), seed, purpose + 2),
            start: Sampler::new(model.inactive_off_s.clone(), seed, purpose + 3),
        }
    }

    /// When the user begins, in seconds after the start: a pause less the part of it that is sure
    /// to have passed, so that users do not all begin at once, and half of them within 0.6 s.
    pub fn start_s(&mut self) -> f64 {
        let shortest_s = self.start.distribution().quantile(0.0);
        (self.start.draw() - shortest_s).min(OFF_MAX_S)
    }

    /// The next page.
    pub fn page(&mut self) -> Page {
        let embedded = (self.embedded.draw() as usize).min(REQUESTS_PER_PAGE_MAX - 1);
        Page {
            active_off_s: (0..embedded)
                .map(|_| self.active_off_s.draw().min(OFF_MAX_S))
                .collect(),
            inactive_off_s: self.inactive_off_s.draw().min(OFF_MAX_S),
        }
    }

    /// The pause in seconds before the next request: inside the page, or after it, which is also
    /// where a failure ends it.
    pub fn pause_s(&mut self, failed: bool) -> f64 {
        if self.pauses_s.is_empty() {
            let page = self.page();
            self.pauses_s.push(page.inactive_off_s);
            self.pauses_s.extend(page.active_off_s.into_iter().rev());
        }
        if failed {
            self.pauses_s.truncate(1);
        }
        self.pauses_s.pop().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_differ_and_repeat_themselves() {
        let pages = |number| -> Vec<Page> {
            let mut user = User::new(&SurgeModel::default(), 1, number);
            (0..5).map(|_| user.page()).collect()
        };
        assert_eq!(pages(0), pages(0));
        assert_ne!(pages(0), pages(1));
        assert!(
            pages(0)
                .iter()
                .all(|page| page.requests() >= 2 && page.inactive_off_s >= 1.0)
        );
    }

    fn user() -> User {
        User::new(&SurgeModel::default(), 1, 0)
    }

    #[test]
    fn a_page_is_its_own_file_the_embedded_ones_and_a_pause() {
        let (mut pages, mut pauses) = (user(), user());
        for _ in 0..50 {
            let page = pages.page();
            let paused_s: Vec<f64> = (0..page.requests())
                .map(|_| pauses.pause_s(false))
                .collect();
            assert_eq!(paused_s[..page.requests() - 1], page.active_off_s);
            assert_eq!(paused_s[page.requests() - 1], page.inactive_off_s);
        }
    }

    #[test]
    fn a_failure_ends_the_page() {
        let (mut pages, mut pauses) = (user(), user());
        for _ in 0..2 {
            assert_eq!(pauses.pause_s(true), pages.page().inactive_off_s);
        }
    }

    #[test]
    fn half_of_the_users_begin_at_once() {
        let soon = (0..1000)
            .filter(|&number| User::new(&SurgeModel::default(), 1, number).start_s() < 0.588)
            .count();
        assert!((440..=560).contains(&soon), "{soon}");
    }
}
