//! The rate of an uplink as an operator gives it, or leaves it to be found.

use sooner_quantity::Rate;
use std::fmt;
use std::str::FromStr;

/// The slowest link that is looked for, bits a second: below it a packet takes longer than most
/// round trips.
const MOST_BITS_PER_SEC_MIN: u64 = 100_000;

/// A rate, or `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UplinkRate {
    /// This one.
    Known(Rate),
    /// To be found while traffic flows, up to a most.
    Auto(Option<Rate>),
}

impl UplinkRate {
    /// A rate that was given.
    pub fn known(self) -> Option<Rate> {
        match self {
            Self::Known(rate) => Some(rate),
            Self::Auto(_) => None,
        }
    }
}

impl FromStr for UplinkRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.trim().to_ascii_lowercase();
        match lower.strip_prefix("auto") {
            None => text
                .parse()
                .map(Self::Known)
                .map_err(|error| format!("{error}; or auto, where the rate is unknown")),
            Some("") => Ok(Self::Auto(None)),
            Some(":") => Err(format!(
                "`{text}`: behind `auto:` nothing follows; write auto, or auto:100mbit for a maximum"
            )),
            Some(most) => match most.strip_prefix(':').map(str::parse::<Rate>) {
                Some(Ok(most)) if most.bits_per_sec() < MOST_BITS_PER_SEC_MIN => Err(format!(
                    "`{text}` is too slow a maximum: a rate is looked for from 100kbit on"
                )),
                Some(Ok(most)) => Ok(Self::Auto(Some(most))),
                Some(Err(error)) => Err(format!("behind `auto:` {error}")),
                None => Err(format!(
                    "`{text}` is not a rate; write 100mbit, auto, or auto:100mbit for a maximum"
                )),
            },
        }
    }
}

impl fmt::Display for UplinkRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(rate) => rate.fmt(f),
            Self::Auto(None) => f.write_str("auto"),
            Self::Auto(Some(most)) => write!(f, "auto:{most}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_the_same() {
        for text in ["100mbit", "auto", "auto:100mbit"] {
            assert_eq!(text.parse::<UplinkRate>().unwrap().to_string(), text);
        }
        assert_eq!(
            "AUTO:1M".parse::<UplinkRate>().unwrap().to_string(),
            "auto:1mbit"
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_right() {
        for (text, said) in [
            ("automatic", "auto:100mbit for a maximum"),
            ("auto:", "behind `auto:`"),
            ("auto:fast", "behind `auto:`"),
            ("auto:99kbit", "from 100kbit on"),
            ("fast", "or auto, where the rate is unknown"),
        ] {
            let error = text.parse::<UplinkRate>().unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
