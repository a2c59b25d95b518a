//! What a failure to accept a connection means, and the line about it.

use rustix::io::Errno;
use std::io;
use std::time::{Duration, Instant};

/// What became of one connection before it was accepted: the next one may be as good as any
/// (accept(2)).
const OF_ONE_CONNECTION: [Errno; 13] = [
    Errno::CONNABORTED,
    Errno::CONNRESET,
    Errno::INTR,
    Errno::PERM,
    Errno::PROTO,
    Errno::NOPROTOOPT,
    Errno::OPNOTSUPP,
    Errno::NETDOWN,
    Errno::NETUNREACH,
    Errno::HOSTDOWN,
    Errno::HOSTUNREACH,
    Errno::NONET,
    Errno::TIMEDOUT,
];
/// So many in a row are no more of one connection each: a security policy refuses all with EPERM.
const IN_A_ROW_MAX: u32 = 1000;
/// Between two lines.
const PAUSE: Duration = Duration::from_secs(60);

/// The failures of one listener.
#[derive(Debug)]
pub struct AcceptFailures {
    what: &'static str,
    then: &'static str,
    in_a_row: u32,
    said_at: Option<Instant>,
    unsaid: u64,
}

impl AcceptFailures {
    /// None yet. A line says `what` fails, why, and what is done `then`.
    pub fn new(what: &'static str, then: &'static str) -> Self {
        Self {
            what,
            then,
            in_a_row: 0,
            said_at: None,
            unsaid: 0,
        }
    }

    /// A connection was accepted.
    pub fn end(&mut self) {
        self.in_a_row = 0;
    }

    /// Accepting has failed; whether the next attempt would fail at once as well, as this one had
    /// nothing to do with its connection.
    pub fn is_ours(&mut self, error: &io::Error) -> bool {
        self.in_a_row = self.in_a_row.saturating_add(1);
        let is_of_one_connection =
            Errno::from_io_error(error).is_some_and(|errno| OF_ONE_CONNECTION.contains(&errno));
        !is_of_one_connection || self.in_a_row > IN_A_ROW_MAX
    }

    /// The line about such a failure, at most one in a minute.
    pub fn line(&mut self, error: &io::Error, now: Instant) -> Option<String> {
        self.unsaid += 1;
        if (self.said_at).is_some_and(|at| now.saturating_duration_since(at) < PAUSE) {
            return None;
        }
        self.said_at = Some(now);
        let times = match std::mem::take(&mut self.unsaid) {
            1 => String::new(),
            times => format!(" ({times} times since this was last said)"),
        };
        let advice = match Errno::from_io_error(error) {
            Some(Errno::MFILE) => " (a higher `ulimit -n` may help)",
            Some(Errno::NFILE) => " (a higher fs.file-max may help)",
            _ => "",
        };
        let (what, then) = (self.what, self.then);
        Some(format!("{what}: {error}{times}; {then}{advice}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures() -> AcceptFailures {
        AcceptFailures::new("cannot accept", "trying again")
    }

    fn error(errno: Errno) -> io::Error {
        errno.into()
    }

    #[test]
    fn what_became_of_one_connection_is_no_trouble_of_the_listener() {
        let mut failures = failures();
        for errno in OF_ONE_CONNECTION {
            assert!(!failures.is_ours(&error(errno)), "{errno}");
        }
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM] {
            assert!(failures.is_ours(&error(errno)), "{errno}");
        }
    }

    #[test]
    fn a_listener_that_nothing_is_accepted_from_is_not_asked_without_a_pause() {
        let mut failures = failures();
        let mut are_ours = |count| {
            let errors = (0..count).map(|_| failures.is_ours(&error(Errno::PERM)));
            errors.filter(|is_ours| *is_ours).count()
        };
        assert_eq!((are_ours(1000), are_ours(2)), (0, 2));
        failures.end();
        assert!(!failures.is_ours(&error(Errno::PERM)));
    }

    #[test]
    fn the_first_is_told_at_once_and_others_once_in_a_minute() {
        let (mut failures, start) = (failures(), Instant::now());
        let mut line = |errno, seconds| {
            let now = start + Duration::from_secs(seconds);
            failures.line(&error(errno), now)
        };
        let first = line(Errno::MFILE, 0).unwrap();
        assert!(
            first.starts_with("cannot accept: Too many open files"),
            "{first}"
        );
        assert!(
            first.ends_with("; trying again (a higher `ulimit -n` may help)"),
            "{first}"
        );
        assert_eq!(
            (line(Errno::MFILE, 1), line(Errno::MFILE, 59)),
            (None, None)
        );
        let again = line(Errno::NOBUFS, 60).unwrap();
        assert!(
            again.contains("(3 times since this was last said)"),
            "{again}"
        );
        assert!(again.ends_with("; trying again"), "{again}");
    }
}
