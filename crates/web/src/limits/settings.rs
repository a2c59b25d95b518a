//! The `[limits]` table: every bound with its reason.

use crate::config::Misconfigured;
use serde::Deserialize;
use sooner_config::quantity;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::Duration;
use toml::Spanned;

/// Bounds on what clients may hold, and for how long.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Longest request head, bytes; longer ones get status 431. 16 KiB: browsers stop at 8 KiB of
    /// cookies a site, and a waiting head is memory that a stranger holds. 4096 to 1048576. Over
    /// HTTP/1 as much of each response is read ahead of its client, see `Http1`.
    #[serde(deserialize_with = "quantity::spanned_bytes")]
    pub head_bytes: Spanned<u32>,
    /// Seconds for a request head, from its first byte (for the first request, from the connection)
    /// to its last. 30: a head is a few packets, so even a bad link is done in a few seconds.
    #[serde(deserialize_with = "quantity::spanned_seconds")]
    pub head_seconds: Spanned<u32>,
    /// Seconds a connection may stay without a request. 75: longer than browsers think between two
    /// pages (and what nginx does); a connection that waits costs memory and a descriptor.
    #[serde(deserialize_with = "quantity::spanned_seconds")]
    pub idle_seconds: Spanned<u32>,
    /// Slowest arrival of a request body, bytes per second, over any 30 seconds in which the server
    /// waits for it and the response has not begun; 0 allows any. 500: no upload is slower than a
    /// 9600 baud modem; only an attack that holds connections is.
    #[serde(deserialize_with = "quantity::bytes")]
    pub receive_bytes_per_sec: u32,
    /// Longest request body, bytes; longer ones get status 413; 0 allows any. 1 GiB: bodies pass through and are
    /// not kept, so this protects the backend's disk, not this server's memory.
    #[serde(deserialize_with = "quantity::bytes")]
    pub body_bytes: u64,
    /// Connections at once. Half the descriptors of the process by default; the others are for
    /// backends and files. At the bound the connection that has been idle longest is closed; others
    /// wait to be accepted.
    pub connections: Option<NonZeroU32>,
    /// Connections at once from one IPv4 address or one IPv6 network of 64 bits, which is what one
    /// customer has; the next one is closed at once. No bound by default: behind one address may be
    /// a proxy, or a whole city.
    pub connections_per_address: Option<NonZeroU32>,
    /// Requests at once in one HTTP/2 connection. 128: above the 100 that RFC 9113, 6.5.2 asks for,
    /// and all of them together hold no more than the connection's windows.
    pub streams_per_connection: Spanned<u32>,
    /// Seconds in which a client may take none of the bytes that were sent to it. 60: two minutes
    /// of TCP's own patience are for links that come back, and this is for clients that do not.
    /// Time spent waiting for a turn does not count.
    #[serde(deserialize_with = "quantity::spanned_seconds")]
    pub stall_seconds: Spanned<u32>,
    /// Seconds that responses in flight may take after the stop. 10: what service managers wait
    /// before they kill.
    #[serde(deserialize_with = "quantity::seconds")]
    pub grace_seconds: u32,
    /// Bytes of files kept in memory, all together. 64 MiB: a site's pages, scripts and images,
    /// little beside the memory of the smallest host.
    #[serde(deserialize_with = "quantity::bytes")]
    pub file_memory_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: unspanned(16 << 10),
            head_seconds: unspanned(30),
            idle_seconds: unspanned(75),
            receive_bytes_per_sec: 500,
            body_bytes: 1 << 30,
            connections: None,
            connections_per_address: None,
            streams_per_connection: unspanned(128),
            stall_seconds: unspanned(60),
            grace_seconds: 10,
            file_memory_bytes: 64 << 20,
        }
    }
}

/// A value that stands in no file.
fn unspanned(value: u32) -> Spanned<u32> {
    Spanned::new(0..0, value)
}

/// A year: nothing a person would wait for is longer.
const SECONDS: RangeInclusive<u32> = 1..=31_536_000;

impl Limits {
    /// The first value that cannot work.
    pub fn check(&self) -> Result<(), Misconfigured> {
        self.mistakes().into_iter().next().map_or(Ok(()), Err)
    }

    /// All values that cannot work.
    pub fn mistakes(&self) -> Vec<Misconfigured> {
        let mut mistakes = Vec::new();
        for (value, key, range) in [
            (&self.head_bytes, "limits.head_bytes", 4096..=1 << 20),
            (&self.head_seconds, "limits.head_seconds", SECONDS),
            (&self.idle_seconds, "limits.idle_seconds", SECONDS),
            (&self.stall_seconds, "limits.stall_seconds", SECONDS),
            (
                &self.streams_per_connection,
                "limits.streams_per_connection",
                1..=65_536,
            ),
        ] {
            let (number, least, most) = (value.get_ref(), range.start(), range.end());
            if !range.contains(number) {
                let message = format!("{number} is out of range; write {least} to {most}");
                mistakes.push(Misconfigured::at(value, key, message));
            }
        }
        mistakes
    }

    /// How many connections there may be in a process that may have `descriptors` open.
    pub fn connections_max(&self, descriptors: u64) -> usize {
        let affordable = usize::try_from(descriptors / 2)
            .unwrap_or(usize::MAX)
            .max(1);
        self.connections.map_or(affordable, |wanted| {
            usize::try_from(wanted.get())
                .unwrap_or(usize::MAX)
                .min(affordable)
        })
    }

    /// How many connections one address may have.
    pub fn connections_per_address_max(&self) -> Option<u32> {
        self.connections_per_address.map(NonZeroU32::get)
    }

    /// The time for a request head.
    pub fn head_time(&self) -> Duration {
        seconds(&self.head_seconds)
    }

    /// The time without a request.
    pub fn idle_time(&self) -> Duration {
        seconds(&self.idle_seconds)
    }

    /// The time in which a client may take nothing.
    pub fn stall_time(&self) -> Duration {
        seconds(&self.stall_seconds)
    }

    /// The time for responses in flight after the stop.
    pub fn grace_time(&self) -> Duration {
        Duration::from_secs(self.grace_seconds.into())
    }
}

fn seconds(value: &Spanned<u32>) -> Duration {
    Duration::from_secs((*value.get_ref()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_work() {
        let limits: Limits = toml::from_str("").unwrap();
        assert_eq!(limits.check(), Ok(()));
        assert_eq!(limits.connections_max(1024), 512);
        assert_eq!(limits.connections_max(0), 1);
        assert_eq!(limits.idle_time(), Duration::from_secs(75));
        let limits: Limits = toml::from_str("receive_bytes_per_sec = '4kB'").unwrap();
        assert_eq!(limits.receive_bytes_per_sec, 4000);
    }

    #[test]
    fn a_value_that_cannot_work_is_pointed_at() {
        let text = "head_seconds = 0\n";
        let mistake = toml::from_str::<Limits>(text).unwrap().check().unwrap_err();
        assert_eq!(mistake.span.map(|span| &text[span]), Some("0"));
        assert!(mistake.message.starts_with("0 is out of range; write 1 to"));
        assert!(toml::from_str::<Limits>("connections = 0").is_err());
        assert!(toml::from_str::<Limits>("conections = 1").is_err());
    }

    #[test]
    fn no_more_connections_than_descriptors_allow() {
        let limits: Limits = toml::from_str("connections = 100").unwrap();
        assert_eq!(limits.connections_max(1 << 20), 100);
        assert_eq!(limits.connections_max(60), 30);
        assert_eq!(limits.connections_per_address_max(), None);
    }
}
