//! The clients behind a guard's jobs, and their turns.
//!
//! Clients take turns with what the guard gives, however many jobs each of them has. Within a
//! client the oldest job goes first, or the one that was silent for longest. Jobs without a client
//! count as the jobs of one client.

use crate::{ClientId, JobId, Time};
use alloc::collections::{BTreeMap, BTreeSet};

/// A client; `None` stands for all jobs of which the caller names no client.
pub(super) type Client = Option<ClientId>;

/// A client's place among those who wait for a turn: the lowest goes first.
type Place = (u64, Client);

/// Every client with a job.
#[derive(Clone, Debug, Default)]
pub(super) struct Clients {
    present: BTreeMap<Client, Present>,
    /// Clients with a ready job, by the place of their turn.
    by_turn: BTreeSet<Place>,
    /// Clients with a ready job, by the time at which their first silence must end.
    by_silence: BTreeSet<(Time, Client)>,
    /// Those of them that are due, by the place of their trickle.
    overdue: BTreeSet<Place>,
    places: u64,
}

/// One client.
#[derive(Clone, Debug, Default)]
struct Present {
    jobs: usize,
    /// Its ready jobs by arrival.
    by_age: BTreeSet<(u64, JobId)>,
    /// Its ready jobs by the time at which their silence must end.
    by_silence: BTreeSet<(Time, JobId)>,
    turn_place: u64,
    /// The service of its present turn.
    turn_had: u64,
    trickle_place: u64,
}

impl Clients {
    /// A job of `client` comes in; it is not ready yet.
    pub(super) fn enter(&mut self, client: Client) {
        if !self.present.contains_key(&client) {
            let place = self.last_place();
            let present = Present {
                turn_place: place,
                trickle_place: place,
                ..Present::default()
            };
            self.present.insert(client, present);
        }
        if let Some(present) = self.present.get_mut(&client) {
            present.jobs += 1;
        }
    }

    /// A job of `client`, which is not ready any more, leaves.
    pub(super) fn leave(&mut self, client: Client) {
        let Some(present) = self.present.get_mut(&client) else {
            return;
        };
        present.jobs -= 1;
        assert!(
            present.by_age.len() <= present.jobs,
            "a job that leaves is not ready"
        );
        if present.jobs == 0 {
            self.present.remove(&client);
        }
    }

    /// A job becomes ready.
    pub(super) fn insert(&mut self, client: Client, age: (u64, JobId), silence: (Time, JobId)) {
        self.change(client, |present| {
            let is_new = present.by_age.insert(age) && present.by_silence.insert(silence);
            assert!(is_new, "a job waits for its client's turn once");
        });
    }

    /// A job is not ready any more.
    pub(super) fn remove(&mut self, client: Client, age: (u64, JobId), silence: (Time, JobId)) {
        self.change(client, |present| {
            let was_there = present.by_age.remove(&age) && present.by_silence.remove(&silence);
            assert!(was_there, "a job is found where it was put");
        });
    }

    /// The silence of a ready job must end at another time.
    pub(super) fn postpone(&mut self, client: Client, before: (Time, JobId), after: (Time, JobId)) {
        self.change(client, |present| {
            let was_there = present.by_silence.remove(&before);
            assert!(was_there, "a job is found where it was put");
            present.by_silence.insert(after);
        });
    }

    /// The oldest ready job of the client that has the turn.
    pub(super) fn oldest(&self) -> Option<JobId> {
        let (_, client) = self.by_turn.first()?;
        let &(_, job) = self.present.get(client)?.by_age.first()?;
        Some(job)
    }

    /// Whether jobs of more than one client are ready.
    pub(super) fn has_several(&self) -> bool {
        self.by_turn.len() > 1
    }

    /// The most that the client with the turn gets before the next one, of turns of `turn`.
    pub(super) fn turn_left(&self, turn: u64) -> u64 {
        let first = self.by_turn.first().filter(|_| self.has_several());
        first.map_or(u64::MAX, |(_, client)| {
            let had = self.present.get(client).map_or(0, |it| it.turn_had);
            turn.saturating_sub(had).max(1)
        })
    }

    /// The oldest job of the client that has the turn was served by `amount`, of a turn of `turn`.
    pub(super) fn had_of_turn(&mut self, client: Client, amount: u64, turn: u64) {
        let place = self.last_place();
        let Some(present) = self.present.get_mut(&client) else {
            return;
        };
        present.turn_had = present.turn_had.saturating_add(amount);
        if present.turn_had < turn {
            return;
        }
        present.turn_had = 0;
        let before = core::mem::replace(&mut present.turn_place, place);
        if self.by_turn.remove(&(before, client)) {
            self.by_turn.insert((place, client));
        }
    }

    /// The job with the silence that must end next, if that time has come: the clients take turns
    /// with trickles.
    pub(super) fn silent_too_long(&mut self, now: Time) -> Option<JobId> {
        while let Some(&(due_at, client)) = self.by_silence.first()
            && due_at <= now
        {
            self.by_silence.pop_first();
            if let Some(present) = self.present.get(&client) {
                self.overdue.insert((present.trickle_place, client));
            }
        }
        let (_, client) = self.overdue.first()?;
        let &(_, job) = self.present.get(client)?.by_silence.first()?;
        Some(job)
    }

    /// A job of `client` had a trickle that was due.
    pub(super) fn had_trickle(&mut self, client: Client) {
        let place = self.last_place();
        self.change(client, |present| present.trickle_place = place);
    }

    /// When the first silence must end; in the past where one should have ended.
    pub(super) fn first_silence(&self) -> Option<Time> {
        let overdue = self.overdue.first().map(|_| Time::ZERO);
        overdue.or_else(|| self.by_silence.first().map(|&(due_at, _)| due_at))
    }

    fn last_place(&mut self) -> u64 {
        self.places += 1;
        self.places
    }

    /// Changes a client and puts it where it then belongs.
    fn change(&mut self, client: Client, change: impl FnOnce(&mut Present)) {
        let Some(present) = self.present.get_mut(&client) else {
            return;
        };
        if let Some(&(due_at, _)) = present.by_silence.first() {
            self.by_silence.remove(&(due_at, client));
            self.overdue.remove(&(present.trickle_place, client));
        }
        change(present);
        if let Some(&(due_at, _)) = present.by_silence.first() {
            self.by_silence.insert((due_at, client));
        }
        let place = (present.turn_place, client);
        if present.by_age.is_empty() {
            self.by_turn.remove(&place);
        } else {
            self.by_turn.insert(place);
        }
    }
}
