//! What each order would have given the last jobs, played beside the queue, and the order that follows
//! it.

use crate::{Limiter, Shared};
use sooner_admission::{Follower, PlayedOrders, Player, Recorded, Taken};
use std::sync::{MutexGuard, PoisonError};

/// What each order would give, and which is taken by that.
#[derive(Default)]
pub(crate) struct Playing {
    player: Player,
    follower: Follower,
}

impl Limiter {
    /// Whether there is more to play soon.
    pub fn is_playing(&self) -> bool {
        self.playing().player.is_playing()
    }

    /// What each order would have given the last jobs; `None` before that was played.
    pub fn played(&self) -> Option<PlayedOrders> {
        self.playing().player.played().cloned()
    }

    /// Plays on what each order would have given the last jobs, for some hundred microseconds; one
    /// task is to call it once a second, and soon again while [`is_playing`](Self::is_playing).
    /// Where the order follows that, it may be another one from now on.
    pub fn play_orders(&self) -> Option<Taken> {
        let mut playing = self.playing();
        let now = self.now();
        let Playing { player, follower } = &mut *playing;
        let (seen, follows) = {
            let admission = &self.lock().admission;
            (admission.seen(), admission.follows())
        };
        let has_ended = player.play(seen, || self.lock().recorded(), now);
        if !has_ended || !follows {
            return None;
        }
        let taken = follower.look(player.played()?, now)?;
        let within = follower.taken();
        drop(playing);
        self.change(|shared, now| {
            if let Some(rehearsal) = &mut shared.rehearsal {
                rehearsal.follow(within, now);
            }
            shared.admission.follow(within, now);
        });
        Some(taken)
    }

    fn playing(&self) -> MutexGuard<'_, Playing> {
        self.playing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// What is to be played, in as many places as there are or would be.
    fn recorded(&self) -> Recorded {
        Recorded {
            places: self.places(),
            ..self.admission.recorded()
        }
    }
}
