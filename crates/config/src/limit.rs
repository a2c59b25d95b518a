//! How many of something there are at a time: so many, or as many as are found to be enough. Jobs
//! inside a server, and workers.

use crate::Misconfigured;
use serde::Deserialize;
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use toml::Spanned;

/// What of the throughput may be lost unless said otherwise, for fewer jobs at a time.
pub const THROUGHPUT_LOSS: f64 = 0.05;

/// A number, or `"auto"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub enum Limit {
    /// So many.
    Fixed(NonZeroUsize),
    /// The fewest that cost no more throughput than is said.
    Auto,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "write a whole number from 1 on, or \"auto\"")]
enum Written {
    Number(i64),
    Word(String),
}

impl TryFrom<Written> for Limit {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Number(number) => number.to_string().parse(),
            Written::Word(word) => word.parse(),
        }
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => text.parse().map(Self::Fixed).map_err(|_| {
                format!("{text:?} cannot be; write a whole number from 1 on, or \"auto\"")
            }),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(number) => number.fmt(f),
            Self::Auto => f.write_str("auto"),
        }
    }
}

/// Whether a loss of throughput is one that can be asked for; `key` is what the file calls it.
pub fn check_throughput_loss(loss: &Spanned<f64>, key: &str) -> Result<(), Misconfigured> {
    if (0.01..=0.5).contains(loss.get_ref()) {
        return Ok(());
    }
    let words = "out of range; write 0.01 (the least that can be told from chance) to 0.5";
    Err(Misconfigured::at(loss, key, words))
}
