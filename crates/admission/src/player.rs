//! Plays the last jobs under each order now and then, a little at a time.

use crate::playback::{Playback, PlayedOrders};
use crate::predict::Outcome;
use sooner_policy::Time;

/// Steps at a time: some hundred microseconds, 1.4 ms at most (example playback_cost).
const STEPS: u64 = 512;
/// From the beginning of one playback of many jobs to the next, ns (a minute).
const MANY_EVERY_NS: u64 = 60_000_000_000;
/// The same of few jobs, which cost little (a second).
const FEW_EVERY_NS: u64 = 1_000_000_000;
/// Up to so many are few.
const FEW: usize = 512;

/// What is played.
pub struct Recorded {
    /// The last jobs that are done.
    pub jobs: Vec<Outcome>,
    /// How many may be inside.
    pub places: usize,
}

/// Has what each order would have given, and plays it anew from time to time.
#[derive(Default)]
pub struct Player {
    playing: Option<Playback>,
    played: Option<PlayedOrders>,
    /// Not again before.
    next_at: Time,
    /// How many jobs there had been when it was begun.
    seen: u64,
}

impl Player {
    /// Plays on, or begins if it is time for that and there have been other jobs since, of which
    /// there have been `seen`; whether it has come to an end.
    pub fn play(&mut self, seen: u64, record: impl FnOnce() -> Recorded, now: Time) -> bool {
        if self.playing.is_none() {
            if now < self.next_at || seen == self.seen {
                return false;
            }
            let Recorded { jobs, places } = record();
            let is_few = jobs.len() <= FEW;
            self.next_at = now.after(if is_few { FEW_EVERY_NS } else { MANY_EVERY_NS });
            self.seen = seen;
            self.playing = Playback::new(jobs, places);
            if self.playing.is_none() {
                self.played = None;
            }
        }
        let Some(played) = self.playing.as_mut().and_then(|it| it.play(STEPS)) else {
            return false;
        };
        self.playing = None;
        self.played = Some(played);
        true
    }

    /// Whether there is more to play at once.
    pub fn is_playing(&self) -> bool {
        self.playing.is_some()
    }

    /// What came of it at last; `None` before the first time, and where nothing bounds how many may
    /// be inside.
    pub fn played(&self) -> Option<&PlayedOrders> {
        self.played.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn recorded(jobs: u64, places: usize) -> Recorded {
        let outcome = |job: u64| Outcome {
            came_ns: (job * MS) as i64,
            expected_ns: MS,
            kind_ns: MS,
            service_ns: MS + job % 7 * MS / 4,
        };
        Recorded {
            jobs: (0..jobs).map(outcome).collect(),
            places,
        }
    }

    #[test]
    fn it_is_played_anew_when_there_are_others_and_it_is_time() {
        let mut player = Player::default();
        let at = |seconds: u64| Time::from_ns(seconds * 1000 * MS);
        assert!(!player.play(0, || recorded(0, 1), at(0)), "nothing yet");
        assert!(player.play(3, || recorded(3, 1), at(0)));
        assert_eq!(player.played().map(|it| it.jobs), Some(3));
        assert!(!player.play(4, || recorded(4, 1), Time::from_ns(900 * MS)));
        assert!(!player.play(3, || recorded(3, 1), at(2)), "none but those");
        assert!(player.play(5, || recorded(5, 2), at(2)));
        assert_eq!(player.played().map(|it| it.jobs), Some(5));
        // Without a limit none waits.
        assert!(!player.play(6, || recorded(6, usize::MAX), at(4)));
        assert_eq!(player.played(), None);
    }

    #[test]
    fn many_take_many_turns_of_a_bounded_length_and_come_once_a_minute() {
        let mut player = Player::default();
        let mut turns = 1;
        while !player.play(4096, || recorded(4096, 1), Time::ZERO) {
            turns += 1;
        }
        // Each of them comes and leaves under each order.
        assert!(turns >= 6 * 2 * 4096 / STEPS, "{turns}");
        assert_eq!(player.played().map(|it| it.jobs), Some(4096));
        let later = Time::from_ns(59_000 * MS);
        assert!(!player.play(5000, || unreachable!("too early"), later));
        assert!(!player.play(5000, || recorded(4096, 1), Time::from_ns(60_000 * MS)));
    }
}
