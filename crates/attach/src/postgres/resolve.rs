//! What sessions did, from what they showed and from what the kernel counted.
//!
//! A session that was woken shows what it waited for until a processor has it, and one that begins
//! a transaction is idle until then. So what showed no wait is less than what the kernel counts as
//! running or in line for a processor; the difference is taken from what showed a wait or was idle,
//! as those sessions are divided that were seen in line.

use super::part::{PARTS, Part};
use super::tally::{Seconds, Woken};

const RUNNING: usize = Part::Running as usize;
const PROCESSOR_WAIT: usize = Part::ProcessorWait as usize;

/// Seconds by part, running and waiting for a processor apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Those.
    pub seconds: Seconds,
    /// In line for a processor before the server shows a transaction.
    pub before_s: f64,
    /// Of what showed a wait, the part that was one, 0 to 1.
    pub waited: [f64; PARTS],
}

/// Divides what was seen; `run_s` and `wait_s` are the kernel's.
pub fn resolve(seen: &Seconds, woken: &Woken, run_s: f64, wait_s: f64) -> Resolved {
    let on_processor_s = run_s + wait_s;
    let more_s = (on_processor_s - seen[RUNNING]).max(0.0);
    let in_line_s: f64 = woken.seconds.iter().sum::<f64>() + woken.idle_s;
    let mut resolved = Resolved {
        seconds: *seen,
        before_s: more_s,
        waited: [1.0; PARTS],
    };
    for part in (0..PARTS).filter(|part| *part != RUNNING) {
        let share = woken.seconds[part] / in_line_s.max(f64::MIN_POSITIVE);
        let taken_s = (more_s * share).min(seen[part]);
        if taken_s > 0.0 {
            resolved.seconds[part] -= taken_s;
            resolved.before_s -= taken_s;
            resolved.waited[part] = resolved.seconds[part] / seen[part];
        }
    }
    resolved.seconds[RUNNING] = run_s;
    resolved.seconds[PROCESSOR_WAIT] = wait_s;
    // Neither on a processor nor in line, and without a name.
    resolved.seconds[Part::Other.index()] += (seen[RUNNING] - on_processor_s).max(0.0);
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_woken_waits_for_a_processor_and_not_for_what_it_shows() {
        let (locks, client) = (Part::RowLocks.index(), Part::Client.index());
        let (mut seen, mut woken) = (Seconds::default(), Woken::default());
        (seen[RUNNING], seen[locks], seen[client]) = (2.0, 4.0, 3.0);
        (woken.seconds[locks], woken.seconds[client], woken.idle_s) = (1.0, 2.0, 1.0);
        let resolved = resolve(&seen, &woken, 1.0, 5.0);
        assert_eq!(resolved.seconds[RUNNING], 1.0);
        assert_eq!(resolved.seconds[PROCESSOR_WAIT], 5.0);
        // Four more than showed no wait: one of four from locks, two from the client, one before.
        assert_eq!(
            (resolved.seconds[locks], resolved.seconds[client]),
            (3.0, 1.0)
        );
        assert_eq!((resolved.before_s, resolved.waited[locks]), (1.0, 0.75));
        let sum: f64 = resolved.seconds.iter().sum();
        assert_eq!(sum, 9.0 + resolved.before_s);
    }

    #[test]
    fn what_shows_no_wait_and_is_on_no_processor_has_no_name() {
        let mut seen = Seconds::default();
        seen[RUNNING] = 3.0;
        let resolved = resolve(&seen, &Woken::default(), 1.0, 0.5);
        assert_eq!(resolved.seconds[Part::Other.index()], 1.5);
        assert_eq!(resolved.before_s, 0.0);
    }
}
