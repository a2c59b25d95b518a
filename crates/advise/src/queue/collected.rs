//! What is counted and kept of requests with a time taken.

use super::inside::Visit;
use super::minutes::MinutesInside;
use super::tokens::Regression;
use crate::busiest::{Busiest, Kept};
use crate::line::Entry;
use crate::sizes::Sizes;
use std::collections::HashSet;

/// Servers that are told apart.
const SERVERS_MAX: usize = 1000;

/// What is kept with a request, beside when it came and how long it was inside.
#[derive(Clone, Copy, Debug)]
pub struct Stay {
    kind: u32,
    /// Before it went in, ns.
    waited_ns: f32,
    amount: Option<u32>,
    /// Of the name that the line has for it, so much as tells clients apart.
    client: Option<u32>,
}

/// Requests with a time taken of one sort.
pub struct Collected {
    /// Times inside, ns.
    pub times: Sizes,
    /// Times before that, ns, where the log has them.
    pub waits: Sizes,
    /// Until the first token, ns.
    pub first_tokens: Sizes,
    /// By minute.
    pub minutes: MinutesInside,
    /// Of language models.
    pub tokens: Regression,
    /// Servers that answered.
    pub servers: HashSet<u64>,
    /// Whether times at the server go on until the client had the last byte.
    pub has_sending: bool,
    /// The coarsest time.
    pub resolution_ns: u64,
    /// When the first went in.
    pub first_ns: u64,
    /// When the last left.
    pub last_ns: u64,
    kept: Busiest<Stay>,
}

impl Collected {
    /// Keeps at most `kept_max` requests.
    pub fn keeping(kept_max: usize) -> Self {
        Self {
            times: Sizes::new(),
            waits: Sizes::new(),
            first_tokens: Sizes::new(),
            minutes: MinutesInside::default(),
            tokens: Regression::default(),
            servers: HashSet::new(),
            has_sending: false,
            resolution_ns: 1,
            first_ns: u64::MAX,
            last_ns: 0,
            kept: Busiest::new(kept_max),
        }
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.times.count()
    }

    /// A request that was `took_ns` inside.
    pub fn add(&mut self, entry: &Entry, took_ns: u64, kind: u32) {
        let waited_ns = entry.at_server.waited_ns;
        self.times.add(took_ns);
        if let Some(waited_ns) = waited_ns {
            self.waits.add(waited_ns);
        }
        if let Some(until_ns) = entry.first_token_ns {
            self.first_tokens.add(until_ns);
        }
        if let Some(tokens) = entry.tokens {
            self.tokens
                .add(tokens.prompt, tokens.completion, took_ns as f64 / 1e6);
        }
        if let Some(server) = entry.at_server.name
            && self.servers.len() < SERVERS_MAX
        {
            self.servers.insert(server);
        }
        self.has_sending |= entry.at_server.has_sending;
        self.resolution_ns = self.resolution_ns.max(entry.resolution_ns);
        let waited_ns = waited_ns.unwrap_or(0);
        let before_ns = if entry.is_of_the_end {
            // A log may leave out the whole and have the part.
            entry.took_ns.unwrap_or(took_ns.saturating_add(waited_ns))
        } else {
            0
        };
        let at_ns = entry.stamp_ns.saturating_sub(before_ns);
        let enter_ns = at_ns.saturating_add(waited_ns);
        let leave_ns = enter_ns.saturating_add(took_ns);
        self.first_ns = self.first_ns.min(enter_ns);
        self.last_ns = self.last_ns.max(leave_ns);
        self.minutes.add(enter_ns, leave_ns);
        let stay = Stay {
            kind,
            waited_ns: waited_ns as f32,
            amount: entry
                .tokens
                .and_then(|tokens| u32::try_from(tokens.prompt).ok()),
            client: entry.client.map(|client| (client ^ client >> 32) as u32),
        };
        self.kept.add_with(
            entry.stamp_ns,
            entry.resolution_ns,
            before_ns,
            took_ns,
            stay,
        );
    }

    /// Requests of quieter hours that are not kept.
    pub fn let_go(&self) -> u64 {
        self.kept.let_go()
    }

    /// Those that are kept, in the order of arrival.
    pub fn into_visits(self) -> Vec<Visit> {
        let visit = |kept: Kept<Stay>| {
            let enter_ns = kept.at_ns.saturating_add(kept.with.waited_ns as u64);
            Visit {
                at_ns: kept.at_ns,
                enter_ns,
                // What took no time by the log's clock took some.
                leave_ns: enter_ns.saturating_add(kept.work.max(1)),
                kind: kept.with.kind,
                amount: kept.with.amount,
                client: kept.with.client,
            }
        };
        self.kept.into_kept().into_iter().map(visit).collect()
    }
}
