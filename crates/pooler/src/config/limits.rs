//! `[limits]`: every bound with its reason.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use sooner_config::{
    Limit, Misconfigured, Spanned, THROUGHPUT_LOSS, check_throughput_loss, quantity,
};
use std::num::NonZeroUsize;

/// The longest time, seconds (a year): what is longer is never, and clocks cannot count it.
pub const SECONDS_MAX: u64 = 365 * 86_400;

/// A time that clocks can count.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let seconds = quantity::seconds(deserializer)?;
    match is_too_long(seconds) {
        Some(words) => Err(D::Error::custom(words)),
        None => Ok(seconds),
    }
}

fn is_too_long(seconds: u64) -> Option<String> {
    let words = || format!("{seconds} seconds is more than a year; write at most {SECONDS_MAX}");
    (seconds > SECONDS_MAX).then(words)
}

/// Bounds on what is let in, and for how long.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Transactions in a server at a time. 20: few databases do more with more.
    pub transactions: Limit,
    /// The most that are tried where the gate finds the number by itself. 64: PostgreSQL's own
    /// default allows a hundred connections.
    pub transactions_max: Spanned<NonZeroUsize>,
    /// The throughput that may be lost, of the most that can be had, for fewer transactions at a
    /// time. 0.05.
    pub throughput_loss: Spanned<f64>,
    /// Connections to a server, idle ones included; no more transactions go in. When nothing is
    /// said, three quarters of those that the server allows (`max_connections` without the reserved
    /// ones), or all that `transactions` needs.
    pub connections: Option<NonZeroUsize>,
    /// Clients at a time; the next one is told so (53300). 1000: each is a descriptor.
    pub clients: Spanned<NonZeroUsize>,
    /// Clients at a time of one IPv4 address, one IPv6 network of 64 bits or, through a socket
    /// file, one system user. No bound when nothing is said: behind one address may be a pool of
    /// programs.
    pub connections_per_address: Option<NonZeroUsize>,
    /// Seconds that a transaction may wait for its turn; 0, the default: as long as it takes.
    #[serde(deserialize_with = "seconds")]
    pub query_wait_seconds: u64,
    /// Seconds that a client waits for a server that does not answer. 15: a restart takes less.
    #[serde(deserialize_with = "quantity::spanned_seconds")]
    pub patience_seconds: Spanned<u64>,
    /// Seconds in which a client has to say who it is. 60: PostgreSQL's own.
    #[serde(deserialize_with = "quantity::spanned_seconds")]
    pub login_seconds: Spanned<u64>,
    /// Seconds after which an idle server connection is closed; 0: never. 600: PgBouncer's.
    #[serde(deserialize_with = "seconds")]
    pub server_idle_seconds: u64,
    /// Seconds after which a server connection is replaced by a new one as soon as it is idle; 0:
    /// never. 3600: PgBouncer's; what a server process keeps for a session only grows.
    #[serde(deserialize_with = "seconds")]
    pub server_lifetime_seconds: u64,
    /// Seconds after which an idle server connection is asked whether it still works before it is
    /// lent; 0: always. 30: PgBouncer's.
    #[serde(deserialize_with = "seconds")]
    pub server_check_seconds: u64,
    /// Seconds after which a client is ended that does nothing in an open transaction; 0, the
    /// default: never.
    #[serde(alias = "idle_in_transaction", deserialize_with = "seconds")]
    pub idle_in_transaction_seconds: u64,
    /// Seconds after which a client is ended that keeps its server connection and does nothing; 0,
    /// the default: never.
    #[serde(alias = "kept_idle", deserialize_with = "seconds")]
    pub kept_idle_seconds: u64,
    /// Prepared statements that a server connection keeps. 200: PgBouncer's.
    pub statements: NonZeroUsize,
    /// Seconds that transactions under way and waiting may take after the stop. 30.
    #[serde(deserialize_with = "seconds")]
    pub grace_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let some = |number| NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN);
        Self {
            transactions: Limit::Fixed(some(20)),
            transactions_max: Spanned::new(0..0, some(64)),
            throughput_loss: Spanned::new(0..0, THROUGHPUT_LOSS),
            connections: None,
            clients: Spanned::new(0..0, some(1000)),
            connections_per_address: None,
            query_wait_seconds: 0,
            patience_seconds: Spanned::new(0..0, 15),
            login_seconds: Spanned::new(0..0, 60),
            server_idle_seconds: 600,
            server_lifetime_seconds: 3600,
            server_check_seconds: 30,
            idle_in_transaction_seconds: 0,
            kept_idle_seconds: 0,
            statements: some(200),
            grace_seconds: 30,
        }
    }
}

impl Limits {
    pub(super) fn check(&self) -> Result<(), Misconfigured> {
        let words = "no client is that fast; write 1 or more";
        for (seconds, key) in [
            (&self.login_seconds, "limits.login_seconds"),
            (&self.patience_seconds, "limits.patience_seconds"),
        ] {
            if *seconds.get_ref() == 0 {
                return Err(Misconfigured::at(seconds, key, words));
            }
            if let Some(words) = is_too_long(*seconds.get_ref()) {
                return Err(Misconfigured::at(seconds, key, words));
            }
        }
        check_throughput_loss(&self.throughput_loss, "limits.throughput_loss")
    }

    /// The most transactions that may ever be in a server at a time.
    pub fn transactions_most(&self) -> usize {
        match self.transactions {
            Limit::Fixed(number) => number.get(),
            Limit::Auto => self.transactions_max.get_ref().get(),
        }
    }
}
