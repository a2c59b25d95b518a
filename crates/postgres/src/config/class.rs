//! `[[class]]`: who goes first. Which class a transaction is in follows from who its client is and what it calls itself.

use serde::Deserialize;
use sooner_config::{Misconfigured, Network, Spanned};
use std::net::IpAddr;

use super::who::{comes_from, fits};

/// One class. All of what it names must fit; what it does not name fits everybody.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassTable {
    /// What tables and metrics call it.
    pub name: Spanned<String>,
    /// 1 goes before 2; 1 to 200.
    pub priority: Spanned<u8>,
    /// Users.
    #[serde(default)]
    pub user: Option<Vec<String>>,
    /// Databases, by the names that clients use.
    #[serde(default)]
    pub database: Option<Vec<String>>,
    /// What clients call themselves (`application_name`).
    #[serde(default)]
    pub application_name: Option<Vec<String>>,
    /// Networks that clients come from.
    #[serde(default)]
    pub address: Option<Vec<Network>>,
}

/// What is known of a client that wants a turn.
#[derive(Clone, Copy, Debug)]
pub struct Of<'a> {
    /// Its user.
    pub user: &'a str,
    /// Its database, as it calls it.
    pub database: &'a str,
    /// What it calls itself at the moment.
    pub application_name: &'a str,
    /// Where it comes from; `None` through a socket file.
    pub address: Option<IpAddr>,
}

const PRIORITIES: std::ops::RangeInclusive<u8> = 1..=200;

impl ClassTable {
    pub(super) fn check(&self) -> Result<(), Misconfigured> {
        if !PRIORITIES.contains(self.priority.get_ref()) {
            let words = "there are priorities 1 to 200, and 1 goes first";
            return Err(Misconfigured::at(&self.priority, "class.priority", words));
        }
        Ok(())
    }

    /// Whether a client is in it.
    pub fn is_for(&self, of: Of<'_>) -> bool {
        fits(&self.user, of.user)
            && fits(&self.database, of.database)
            && fits(&self.application_name, of.application_name)
            && comes_from(&self.address, of.address)
    }
}
