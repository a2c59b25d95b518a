//! Questions to the server. What gates tell is heard meanwhile: where the processor is full an
//! answer takes a hundred transactions, and the one that goes first would wait for it.

use std::collections::{BTreeMap, HashSet};
use std::pin::Pin;

use tokio_postgres::{Client, Error};

use super::activity::{self, Watcher};
use super::inherit::Holders;
use super::levels::Level;
use super::processor::Processes;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// What all sessions do.
    Sessions,
    /// Who holds what raised ones wait for, or anyone where some are lowered.
    Holders,
}

/// What the server answers.
pub enum Answer {
    /// All sessions, their parallel workers, and what waits.
    Sessions(activity::Processes),
    /// Processes as the server numbers them, each with the highest level of those that wait for it.
    Holders(BTreeMap<i32, Level>),
}

/// What it takes to ask; it goes with the question and comes back with the answer.
pub struct Asker<'a> {
    pub watcher: Watcher<'a>,
    holders: Holders<'a>,
    processes: Processes,
}

/// A question under way.
pub type Asking<'a> = Pin<Box<dyn Future<Output = (Asker<'a>, Result<Answer, Error>)> + 'a>>;

impl<'a> Asker<'a> {
    /// On this connection.
    pub async fn new(client: &'a Client) -> Result<Asker<'a>, Error> {
        Ok(Asker {
            watcher: Watcher::new(client).await?,
            holders: Holders::new(client).await?,
            processes: Processes::default(),
        })
    }

    /// Asks what all sessions do.
    pub fn sessions(mut self) -> Asking<'a> {
        Box::pin(async move {
            let found = self.watcher.processes().await;
            (self, found.map(Answer::Sessions))
        })
    }

    /// Asks who holds what these wait for: raised ones by their numbers as the server has them and
    /// here, with their levels, and others that waited for a lock at the last look.
    pub fn holders(
        mut self,
        raised: Vec<(i32, u32, Level)>,
        waiting: BTreeMap<i32, Level>,
    ) -> Asking<'a> {
        Box::pin(async move {
            let found = self.holders.of(&raised, waiting, &mut self.processes);
            let found = found.await;
            (self, found.map(Answer::Holders))
        })
    }

    /// How often the server was asked for holders.
    pub fn asked_for_holders(&self) -> u64 {
        self.holders.asked
    }

    /// Forgets all other processes.
    pub fn keep(&mut self, pids: &HashSet<u32>) {
        self.processes.retain(|pid| pids.contains(&pid));
    }
}
