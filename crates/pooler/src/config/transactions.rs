//! How many transactions a server gets at a time: so many, or as many as are found to be enough.

use serde::Deserialize;
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

/// `transactions = 20`, or `transactions = "auto"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub enum Transactions {
    /// So many.
    Fixed(NonZeroUsize),
    /// The fewest that cost no more throughput than is said.
    Auto,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(i64),
    Word(String),
}

impl TryFrom<Written> for Transactions {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Number(number) => number.to_string().parse(),
            Written::Word(word) => word.parse(),
        }
    }
}

impl FromStr for Transactions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => text
                .parse()
                .map(Self::Fixed)
                .map_err(|_| format!("{text:?}: a number from 1 on, or \"auto\"")),
        }
    }
}

impl fmt::Display for Transactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(number) => number.fmt(f),
            Self::Auto => f.write_str("auto"),
        }
    }
}
