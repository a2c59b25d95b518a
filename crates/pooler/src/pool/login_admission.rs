//! Which clients may log in where that takes another owner's connection: few at a time, so that
//! logins have a tenth of the places and transactions the rest.
//!
//! A login takes many times as long as a short transaction. If each transaction without a
//! connection took one from another owner at once, users that come by turns would log in for every
//! transaction. So a connection stays for some transactions before it goes to another owner, as a
//! processor stays with a process for a while. With `n` owners of a class waiting, a login of `t`
//! seconds and `limit` places, the last of them waits for `10 n t / limit` seconds at most; that a
//! class before it does not starve it is the [`Limiter`]'s promise.

use crate::pool::upstream::Upstream;
use sooner_limiter::{Limiter, Permit};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Of so many places one is for logins.
const PLACES_EACH: usize = 10;

/// The longest pause behind a login, however long that took.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Those who may log in in place of another owner, and those who wait for that.
pub struct LoginAdmission {
    pub limiter: Limiter,
}

/// Leave to log in in place of another owner.
pub struct LoginPermit {
    _permit: Permit,
}

impl LoginAdmission {
    /// Whether the next one may, where `limit` transactions may be inside.
    pub fn has_room(&self, limit: usize) -> bool {
        let status = self.limiter.status();
        let most = at_a_time(limit);
        if status.limit != most {
            self.limiter.set_limit(most);
        }
        status.waiting == 0 && status.inside < most
    }
}

impl LoginPermit {
    /// Leave that has been waited for.
    pub fn new(permit: Permit) -> Self {
        Self { _permit: permit }
    }

    /// The login took `opening`: the next one may come when transactions have had their part, or
    /// when a connection rests.
    pub fn done(self, upstream: &Rc<Upstream>, opening: Duration) {
        let until = Instant::now() + pause(opening, upstream.limiter.status().limit);
        let upstream = upstream.clone();
        tokio::task::spawn_local(async move {
            loop {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return drop(self);
                }
                sleep(left.min(opening)).await;
                // One that has rested for as long as a login takes, with places free, is not worth
                // waiting for.
                if upstream.pool.borrow().rests_for(opening) {
                    return drop(self);
                }
            }
        });
    }
}

/// How many may log in at a time where so many transactions may be inside.
fn at_a_time(limit: usize) -> usize {
    (limit / PLACES_EACH).max(1)
}

/// The pause behind a login before the next one, where one at a time is more than their part.
fn pause(opening: Duration, limit: usize) -> Duration {
    let others = PLACES_EACH.saturating_sub(limit.max(1));
    let pause = opening.mul_f64(others as f64 / limit.max(1) as f64);
    pause.min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_have_a_tenth_of_the_places() {
        let login = Duration::from_millis(6);
        for limit in 1..100 {
            let cycle = login + pause(login, limit);
            let busy = at_a_time(limit) as f64 * login.as_secs_f64() / cycle.as_secs_f64();
            let share = busy / limit as f64;
            assert!(share < 0.1001, "{limit}: {share}");
            assert!(share > 0.05, "{limit}: {share}");
        }
        assert_eq!(pause(login, 10), Duration::ZERO);
        assert_eq!(pause(login, 0), 9 * login, "a gate that is shut");
        assert_eq!(pause(Duration::from_secs(10), 1), PAUSE_MAX);
    }
}
