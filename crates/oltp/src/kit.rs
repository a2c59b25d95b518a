//! What a kit of transactions is to the code that runs it.

use sooner_workload::Rng;
use tokio_postgres::Client;

use crate::{Failure, Session, Unusable};

/// How a transaction came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Committed.
    Committed,
    /// Rolled back on purpose, as the kit wants some to be.
    RolledBack,
}

/// Which of several kinds it is, each having so many lots.
pub(crate) fn drawn(lots: &[u64], random: &mut Rng) -> usize {
    let mut left = random.below(lots.iter().sum());
    let is_it = |lots: &u64| {
        let is_it = left < *lots;
        left = left.saturating_sub(*lots);
        is_it
    };
    lots.iter().position(is_it).unwrap_or(0)
}

/// Something that must hold of the data, whatever ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// In words.
    pub what: &'static str,
    /// Rows that say otherwise.
    pub violations: i64,
}

impl Check {
    /// Asks questions, each with what it means; the answer is a count of what says otherwise.
    pub(crate) async fn all(
        client: &Client,
        questions: &[(&'static str, &str)],
    ) -> Result<Vec<Self>, Unusable> {
        let mut checks = Vec::new();
        for (what, sql) in questions {
            let violations = client.query_one(*sql, &[]).await?.get(0);
            checks.push(Self { what, violations });
        }
        Ok(checks)
    }
}

/// Kinds of transactions and who carries them out.
pub trait Kit {
    /// What a user keeps in mind between transactions.
    type User;

    /// The kinds, by number.
    fn kinds(&self) -> &'static [&'static str];

    /// What each session prepares, in the order of the numbers that transactions use.
    fn statements(&self) -> &'static [&'static str];

    /// A user, by number from 0.
    fn user(&self, number: u32, random: &mut Rng) -> Self::User;

    /// The kind of a user's next transaction.
    fn draw(&self, user: &mut Self::User, random: &mut Rng) -> usize;

    /// Carries one out; `remark` is a comment that its first statement begins with.
    fn carry_out(
        &self,
        session: &Session,
        user: &mut Self::User,
        kind: usize,
        remark: &str,
        random: &mut Rng,
    ) -> impl Future<Output = Result<Ended, Failure>>;
}
