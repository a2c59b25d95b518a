//! How many requests a server gets at once: as many as the operator says, or as many as are found
//! to be enough, for each server by itself.

use super::upstream::Upstream;
use sooner_admission::{Change, Controller, ControllerLimits, Need, Time, Why, Window, Windows};
use sooner_operate::say;
use std::rc::Weak;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What is configured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ServerLimit {
    /// So many; `usize::MAX`: all.
    Fixed(usize),
    /// Found within these bounds.
    Found(ControllerLimits),
}

impl ServerLimit {
    /// The first.
    pub fn start(self) -> usize {
        match self {
            Self::Fixed(limit) => limit,
            Self::Found(limits) => limits.start,
        }
    }

    /// The most that it ever is.
    pub fn max(self) -> usize {
        match self {
            Self::Fixed(limit) => limit,
            Self::Found(limits) => limits.max,
        }
    }

    /// What finds it; none where it is said.
    pub fn finder(self) -> Option<LimitFinder> {
        match self {
            Self::Fixed(_) => None,
            Self::Found(limits) => Some(LimitFinder {
                controller: Controller::new(limits),
                windows: None,
            }),
        }
    }
}

/// Finds how many requests one server needs.
#[derive(Debug)]
pub struct LimitFinder {
    controller: Controller,
    /// `None` before the first look.
    windows: Option<Windows>,
}

impl LimitFinder {
    /// So many requests were inside since the last call; that changes now.
    pub fn pass(&mut self, inside: usize, now: Time) {
        // Whether requests waited is told by the one queue before all servers.
        if let Some(windows) = &mut self.windows {
            windows.pass(inside, 0, now);
        }
    }

    /// A request was served in so long.
    pub fn completed(&mut self, service_ns: u64) {
        if let Some(windows) = &mut self.windows {
            windows.completed(service_ns);
        }
    }

    /// It was not looked at for a while: what was seen meanwhile is void.
    pub fn begin_anew(&mut self) {
        self.windows = None;
    }

    /// Looks at what passed since the last look, while `inside` requests were inside at last and
    /// `whole` is what the queue before the server saw. A server that takes no requests, or one to
    /// see how it is, tells nothing of a limit, and neither does what was before the first look: it
    /// may be hours under another limit.
    pub fn look(
        &mut self,
        (inside, is_up): (usize, bool),
        whole: &Window,
        needs: &[Need],
        now: Time,
    ) -> Option<Change> {
        self.pass(inside, now);
        let windows = self.windows.get_or_insert_with(|| Windows::since(now));
        let mut window = windows.take();
        if !is_up {
            return None;
        }
        // The two clocks are read one after the other.
        let share = whole.backlogged_ns as f64 / whole.duration_ns.max(1) as f64;
        window.backlogged_ns = (share.min(1.0) * window.duration_ns as f64) as u64;
        self.controller.observe(&window, needs)
    }
}

/// Looks at the servers of an upstream until that is dropped.
pub async fn run(upstream: Weak<Upstream>) {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        looks.tick().await;
        let Some(upstream) = upstream.upgrade() else {
            return;
        };
        for (server, change) in upstream.look_for_limits() {
            if change.why != Why::Turn {
                say(format!(
                    "upstream `{}`, {server}: {} requests at a time ({}{})",
                    upstream.name,
                    change.limit,
                    change.why,
                    of_class(&upstream, change.why)
                ));
            }
        }
    }
}

/// Which class is the reason, if one is.
fn of_class(upstream: &Upstream, why: Why) -> String {
    let number = why.class().map(usize::from);
    let class = number.and_then(|number| upstream.class_statuses().into_iter().nth(number));
    class.map_or_else(String::new, |class| format!("; class `{}`", class.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_limiter::bounds;

    /// Looks for so many seconds at a server that does up to `places` requests at once, 10 ms each,
    /// while requests wait.
    fn found(places: usize, is_up: bool, seconds: u64) -> usize {
        let limit = ServerLimit::Found(bounds(256, 0.05));
        let mut finder = limit.finder().unwrap();
        let (mut now_ns, mut now_limit) = (0, limit.start());
        let empty = Window::default();
        finder.look((0, is_up), &empty, &[], Time::ZERO);
        for _ in 0..10 * seconds {
            let begun_ns = now_ns;
            now_ns += 100_000_000;
            let done = 10 * now_limit.min(places) as u64;
            for _ in 0..done {
                finder.completed(10_000_000 * (now_limit.div_ceil(places)) as u64);
            }
            finder.pass(now_limit, Time::from_ns(begun_ns));
            let whole = Window {
                duration_ns: 99_000_000,
                backlogged_ns: 99_000_000,
                ..Window::default()
            };
            let look = finder.look((now_limit, is_up), &whole, &[], Time::from_ns(now_ns));
            now_limit = look.map_or(now_limit, |change| change.limit);
        }
        now_limit
    }

    #[test]
    fn as_many_as_a_server_does_at_once_are_found() {
        for places in [1, 4, 32, 100] {
            let found = found(places, true, 300);
            assert!(
                (places - places / 10..=places + 1).contains(&found),
                "{places}: {found}"
            );
        }
    }

    /// Whatever the queue and the server saw before: here an hour in which requests waited.
    #[test]
    fn what_was_before_the_first_look_tells_nothing() {
        let hour_ns = 3_600_000_000_000;
        let whole = |duration_ns| Window {
            duration_ns,
            backlogged_ns: duration_ns,
            ..Window::default()
        };
        for is_back in [false, true] {
            let limit = ServerLimit::Found(bounds(256, 0.05));
            let mut finder = limit.finder().unwrap();
            if is_back {
                finder.look((4, true), &whole(1), &[], Time::ZERO);
                finder.begin_anew();
            }
            finder.completed(10_000_000);
            finder.pass(4, Time::from_ns(hour_ns));
            let mut looks = (0..60).map(|look| {
                let now = Time::from_ns(hour_ns + look * 100_000_000);
                let duration_ns = if look == 0 { hour_ns } else { 100_000_000 };
                let change = finder.look((4, true), &whole(duration_ns), &[], now);
                (0..50).for_each(|_| finder.completed(10_000_000));
                change
            });
            let first = looks.find_map(|change| change).unwrap();
            let Why::Tries(_, rate) = first.why else {
                panic!("{first:?}");
            };
            assert!((rate - 500.0).abs() < 1.0, "{rate}");
        }
    }

    #[test]
    fn a_server_that_is_out_tells_nothing() {
        assert_eq!(found(32, false, 60), bounds(256, 0.05).start);
    }
}
