//! Whether a server of an upstream gets requests.
//!
//! Failures in a row put it out for a while that doubles up to a minute; after that it is tried
//! again with one request at a time until one succeeds. Where nothing failed but connections, the
//! first one that opens is that success: how long a request takes then says nothing. Where the
//! server is also asked regularly, its answers to that put it out and take it back in by
//! themselves: what answers health checks may answer no request. Only failures to answer count: a
//! status of 500 is an answer. A failure that a request may have brought about counts once for each
//! path, so that no path, however often clients request it, puts out the server for all others.
//! Each time that it was out they all count anew: a server that is tried again and fails is out
//! again, whatever it failed at.

use sooner_admission::Time;

/// The first time out, ns.
const EJECTION_NS_MIN: u64 = 1_000_000_000;
/// The longest time out, ns.
const EJECTION_NS_MAX: u64 = 60_000_000_000;

/// The paths that are remembered.
const PATHS_MAX: usize = 256;

/// When a server goes out and comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthLimits {
    /// Failures in a row that put it out.
    pub fails: u32,
    /// The same for regular questions; `None` where none are asked.
    pub checks: Option<CheckLimits>,
}

/// When regular questions put a server out and take it back in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckLimits {
    /// Bad answers in a row that put it out.
    pub fails: u32,
    /// Good ones in a row that take it back in.
    pub passes: u32,
}

/// What is known of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It answers.
    Up,
    /// It did not; one request at a time finds out whether it does again.
    OnProbation,
    /// It gets no requests.
    Down,
}

/// The health of one server.
#[derive(Clone, Debug)]
pub struct Health {
    limits: HealthLimits,
    failures: u32,
    /// Hashes of the paths among these failures.
    paths: Vec<u64>,
    /// Whether it was reached and did not answer, since it answered last.
    left_unanswered: bool,
    /// How often it was put out without a success since.
    ejections: u32,
    ejected_until: Option<Time>,
    is_ejected_by_checks: bool,
    /// Answers to regular questions in a row that speak against what is believed.
    contrary_checks: u32,
}

impl Health {
    /// A server nothing is known of, which is taken for healthy.
    pub fn new(limits: HealthLimits) -> Self {
        Self {
            limits,
            failures: 0,
            paths: Vec::new(),
            left_unanswered: false,
            ejections: 0,
            ejected_until: None,
            is_ejected_by_checks: false,
            contrary_checks: 0,
        }
    }

    /// From now on these limits hold; what is known of it stays, but for what was known by regular
    /// questions where none are asked any more: nothing else would take it back in.
    pub fn set_limits(&mut self, limits: HealthLimits) {
        self.limits = limits;
        if limits.checks.is_none() {
            self.is_ejected_by_checks = false;
            self.contrary_checks = 0;
        }
    }

    /// Until when it gets nothing: 0 where it is up, the most where only regular questions take it
    /// back in. After that it is on probation.
    pub fn out_until_ns(&self) -> u64 {
        match self.ejected_until {
            _ if self.is_ejected_by_checks => u64::MAX,
            Some(until) => until.as_ns().max(1),
            None => 0,
        }
    }

    /// How it stands now.
    pub fn standing(&self, now: Time) -> Standing {
        match self.ejected_until {
            _ if self.is_ejected_by_checks => Standing::Down,
            Some(until) if now < until => Standing::Down,
            Some(_) => Standing::OnProbation,
            None => Standing::Up,
        }
    }

    /// It answered a request.
    pub fn succeeded(&mut self) {
        self.failures = 0;
        self.paths.clear();
        self.left_unanswered = false;
        self.ejections = 0;
        self.ejected_until = None;
    }

    /// A connection to it was opened. That ends a probation where it could not be reached, and
    /// nothing else; a next time out is as long as without that.
    pub fn connected(&mut self, now: Time) {
        if self.left_unanswered || self.ejected_until.is_none() || self.is_out(now) {
            return;
        }
        self.failures = 0;
        self.ejected_until = None;
    }

    /// It did not answer a request for the path with this hash, which may be the request's doing.
    pub fn failed_at(&mut self, path: u64, now: Time) {
        if self.is_out(now) || self.paths.contains(&path) {
            return;
        }
        if self.paths.len() < PATHS_MAX {
            self.paths.push(path);
        }
        self.failed(now);
    }

    /// It did not answer what others answer.
    pub fn failed(&mut self, now: Time) {
        self.left_unanswered |= !self.is_out(now);
        self.unreachable(now);
    }

    /// It could not be reached.
    pub fn unreachable(&mut self, now: Time) {
        self.failures = self.failures.saturating_add(1);
        // What was under way when it went out tells nothing new.
        let is_one_of_few = self.ejected_until.is_none() && self.failures < self.limits.fails;
        if self.is_out(now) || is_one_of_few {
            return;
        }
        self.paths.clear();
        let out_ns = (EJECTION_NS_MIN << self.ejections.min(16)).min(EJECTION_NS_MAX);
        self.ejections = self.ejections.saturating_add(1);
        self.ejected_until = Some(now.after(out_ns));
    }

    fn is_out(&self, now: Time) -> bool {
        self.ejected_until.is_some_and(|until| now < until)
    }

    /// It passed a health check, or not. A good one takes nothing back of what requests found out,
    /// unless checks had put it out.
    pub fn checked(&mut self, is_well: bool) {
        let Some(limits) = self.limits.checks else {
            return;
        };
        if is_well != self.is_ejected_by_checks {
            self.contrary_checks = 0;
            return;
        }
        self.contrary_checks += 1;
        let needed = if is_well { limits.passes } else { limits.fails };
        if self.contrary_checks >= needed {
            self.contrary_checks = 0;
            self.is_ejected_by_checks = !is_well;
            if is_well {
                self.succeeded();
            }
        }
    }

    /// Whether only health checks take it back in.
    pub fn is_ejected_by_checks(&self) -> bool {
        self.is_ejected_by_checks
    }

    /// When its time out by requests has passed.
    pub fn changes_at(&self, now: Time) -> Option<Time> {
        self.ejected_until.filter(|until| now < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: u64) -> Time {
        Time::from_ns(seconds * SECOND)
    }

    fn health() -> Health {
        Health::new(HealthLimits {
            fails: 3,
            checks: Some(CheckLimits {
                fails: 2,
                passes: 2,
            }),
        })
    }

    #[test]
    fn failures_in_a_row_put_it_out_for_longer_each_time() {
        let mut health = health();
        health.failed(at(0));
        health.failed(at(0));
        health.succeeded();
        health.failed(at(0));
        health.failed(at(0));
        assert_eq!(health.standing(at(0)), Standing::Up);
        health.failed(at(0));
        assert_eq!(health.standing(at(0)), Standing::Down);
        assert_eq!(health.changes_at(at(0)), Some(at(1)));
        assert_eq!(health.standing(at(1)), Standing::OnProbation);
        health.failed(at(1));
        assert_eq!(health.changes_at(at(1)), Some(at(3)));
        health.failed(at(3));
        assert_eq!(health.changes_at(at(3)), Some(at(7)));
        health.succeeded();
        assert_eq!(health.standing(at(3)), Standing::Up);
        assert_eq!(health.changes_at(at(3)), None);
    }

    #[test]
    fn a_path_counts_once_until_something_is_answered() {
        let mut health = health();
        for path in [1, 1, 1, 2, 1, 2] {
            health.failed_at(path, at(0));
        }
        assert_eq!(health.standing(at(0)), Standing::Up);
        health.succeeded();
        health.failed_at(1, at(0));
        health.failed_at(2, at(0));
        assert_eq!(health.standing(at(0)), Standing::Up);
        health.failed_at(3, at(0));
        assert_eq!(health.standing(at(0)), Standing::Down);
    }

    #[test]
    fn a_path_counts_again_each_time_that_it_was_out() {
        let mut health = health();
        for path in [1, 2, 3] {
            health.failed_at(path, at(0));
        }
        // What was under way then is not known to have failed later.
        health.failed_at(4, at(0));
        for (path, tried, until) in [(3, 1, 3), (3, 3, 7), (4, 7, 15)] {
            assert_eq!(health.standing(at(tried)), Standing::OnProbation);
            health.failed_at(path, at(tried));
            assert_eq!(health.changes_at(at(tried)), Some(at(until)));
        }
    }

    #[test]
    fn what_questions_said_is_void_when_none_are_asked() {
        let mut health = health();
        health.checked(false);
        health.checked(false);
        assert_eq!(health.standing(at(0)), Standing::Down);
        let mut limits = health.limits;
        health.set_limits(limits);
        assert_eq!(health.standing(at(0)), Standing::Down);
        limits.checks = None;
        health.set_limits(limits);
        assert_eq!(health.standing(at(0)), Standing::Up);
        // One that was under way.
        for _ in 0..2 {
            health.checked(false);
        }
        assert_eq!(health.standing(at(0)), Standing::Up);
    }

    #[test]
    fn what_was_under_way_when_it_went_out_does_not_make_it_longer() {
        let mut health = health();
        for _ in 0..100 {
            health.failed(at(0));
        }
        assert_eq!(health.changes_at(at(0)), Some(at(1)));
    }

    #[test]
    fn the_time_out_has_an_end() {
        let mut health = health();
        let mut now = at(0);
        for _ in 0..100 {
            health.failed(now);
            now = health.changes_at(now).unwrap_or(now);
        }
        health.failed(now);
        assert!(
            health
                .changes_at(now)
                .is_some_and(|until| until.since(now) == 60 * SECOND)
        );
    }

    #[test]
    fn regular_questions_put_it_out_and_take_it_back_in() {
        let mut health = health();
        health.checked(false);
        health.checked(true);
        health.checked(false);
        assert_eq!(health.standing(at(0)), Standing::Up);
        health.checked(false);
        assert_eq!(health.standing(at(99)), Standing::Down);
        health.checked(true);
        health.checked(false);
        health.checked(true);
        assert_eq!(health.standing(at(99)), Standing::Down);
        health.checked(true);
        assert_eq!(health.standing(at(99)), Standing::Up);
    }

    #[test]
    fn a_good_check_takes_nothing_back_that_requests_found_out() {
        let mut health = health();
        for path in [1, 2, 1] {
            health.failed_at(path, at(0));
            health.checked(true);
        }
        assert_eq!(health.standing(at(0)), Standing::Up);
        health.failed_at(3, at(0));
        for (tried, until) in [(1, 3), (3, 7)] {
            health.checked(true);
            assert_eq!(health.standing(at(tried - 1)), Standing::Down);
            health.checked(true);
            assert_eq!(health.standing(at(tried)), Standing::OnProbation);
            health.failed(at(tried));
            assert_eq!(health.changes_at(at(tried)), Some(at(until)));
        }
        // Where checks put it out as well, good ones take it back in.
        for is_well in [false, false, true, true] {
            health.checked(is_well);
        }
        assert_eq!(health.standing(at(3)), Standing::Up);
    }

    #[test]
    fn a_connection_that_opens_is_enough_where_nothing_else_failed() {
        for (fails_otherwise, after) in [(false, Standing::Up), (true, Standing::OnProbation)] {
            let mut health = health();
            health.unreachable(at(0));
            health.connected(at(0));
            health.unreachable(at(0));
            if fails_otherwise {
                health.failed(at(0));
            }
            health.unreachable(at(0));
            // What was under way tells nothing.
            health.failed(at(0));
            health.connected(at(0));
            assert_eq!(health.standing(at(0)), Standing::Down);
            health.connected(at(1));
            assert_eq!(health.standing(at(1)), after);
        }
    }

    #[test]
    fn a_server_that_only_opens_connections_is_out_for_longer_each_time() {
        let mut health = health();
        for (tried, until) in [(0, 1), (1, 3), (3, 7)] {
            health.connected(at(tried));
            assert_eq!(health.standing(at(tried)), Standing::Up);
            for _ in 0..3 {
                health.unreachable(at(tried));
            }
            assert_eq!(health.changes_at(at(tried)), Some(at(until)));
        }
    }
}
