//! How much may lie in the kernel ahead of the link: the write concurrency of a server that orders
//! its connections itself.
//!
//! Crovella, Frangioso and Harchol-Balter (1999, 5.4) limited it by the number of threads that
//! write, from 5 to 60, and saw both ends: with few the order is the server's and throughput is
//! lost, with many the link is full and the order is the kernel's. Here it is a number of bytes,
//! because one connection's packets in a queue hold up as much as another's.

use crate::bucket::transmission_ns;
use crate::wire::PACKET_BYTES;
use sooner_quantity::{parse_bytes, parse_duration};
use std::str::FromStr;

/// The most that can be requested, ns of the link: more than any queue is worth.
const AHEAD_NS_MAX: u64 = 10_000_000_000;

/// An amount on the wire, as it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// So many full packets.
    Packets(u64),
    /// So many bytes, headers included.
    Bytes(u64),
    /// What the link carries in so many ns.
    Ns(u64),
}

/// Text that is no [`Ahead`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not an amount ahead of the link; \
     write packets (\"5\"), bytes (\"30kB\") or time (\"20ms\")"
)]
pub struct NotAnAmount {
    text: String,
}

impl Ahead {
    /// The amount as the link's time, ns; at most 10 s.
    pub fn ns(self, rate_bits_per_sec: u64) -> u64 {
        let ahead_ns = match self {
            Self::Packets(packets) => {
                transmission_ns(packets.saturating_mul(PACKET_BYTES), rate_bits_per_sec)
            }
            Self::Bytes(bytes) => transmission_ns(bytes, rate_bits_per_sec),
            Self::Ns(ns) => ns,
        };
        ahead_ns.min(AHEAD_NS_MAX)
    }

    /// The amount in bytes on the wire; at most what the link carries in 10 s.
    pub fn bytes(self, rate_bits_per_sec: u64) -> u64 {
        let bytes = match self {
            Self::Packets(packets) => packets.saturating_mul(PACKET_BYTES),
            Self::Bytes(bytes) => bytes,
            Self::Ns(ns) => bytes_in(ns, rate_bits_per_sec),
        };
        bytes.min(bytes_in(AHEAD_NS_MAX, rate_bits_per_sec))
    }
}

fn bytes_in(ns: u64, rate_bits_per_sec: u64) -> u64 {
    let bytes = u128::from(ns) * u128::from(rate_bits_per_sec) / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl FromStr for Ahead {
    type Err = NotAnAmount;

    fn from_str(text: &str) -> Result<Self, NotAnAmount> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let amount = if is_number {
            text.parse().ok().map(Self::Packets)
        } else {
            let bytes = parse_bytes(text).ok().map(Self::Bytes);
            bytes.or_else(|| {
                let time = parse_duration(text).ok()?;
                u64::try_from(time.as_nanos()).ok().map(Self::Ns)
            })
        };
        amount.ok_or_else(|| NotAnAmount { text: text.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEN_MEGABIT: u64 = 10_000_000;

    #[test]
    fn amounts_have_units() {
        let read = |text: &str| text.parse::<Ahead>().ok();
        assert_eq!(read("5"), Some(Ahead::Packets(5)));
        assert_eq!(read("0"), Some(Ahead::Packets(0)));
        assert_eq!(read("1514b"), Some(Ahead::Bytes(1_514)));
        assert_eq!(read("30kb"), Some(Ahead::Bytes(30_000)));
        assert_eq!(read("20ms"), Some(Ahead::Ns(20_000_000)));
        assert_eq!(read("1.5ms"), Some(Ahead::Ns(1_500_000)));
        assert_eq!(read("16 KiB"), Some(Ahead::Bytes(16_384)));
        assert_eq!(read("5s"), Some(Ahead::Ns(5_000_000_000)));
        for wrong in [
            "",
            "kb",
            "-1",
            "16k",
            "5x",
            "99999999999999999999",
            "18446744073709551615kb",
        ] {
            let error = read(wrong);
            assert_eq!(error, None, "{wrong}");
        }
        let error = "5x".parse::<Ahead>().unwrap_err();
        assert!(error.to_string().starts_with("`5x` is not an amount"));
    }

    #[test]
    fn units_agree() {
        let five = Ahead::Packets(5);
        assert_eq!(five.bytes(TEN_MEGABIT), 7_570);
        assert_eq!(five.ns(TEN_MEGABIT), Ahead::Bytes(7_570).ns(TEN_MEGABIT));
        assert_eq!(five.ns(TEN_MEGABIT), 6_056_000);
        assert_eq!(Ahead::Ns(6_056_000).bytes(TEN_MEGABIT), 7_570);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_any_amount_has_a_bound(
            text: String,
            rate in 0_u64..,
            number: u64,
        ) {
            let _ = text.parse::<Ahead>();
            for amount in [Ahead::Packets(number), Ahead::Bytes(number), Ahead::Ns(number)] {
                prop_assert!(amount.ns(rate) <= AHEAD_NS_MAX);
                prop_assert!(amount.bytes(rate) <= bytes_in(AHEAD_NS_MAX, rate));
            }
        }
    }
}
