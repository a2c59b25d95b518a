//! The table `[uplink]`: how fast the link is, and who goes first on it.
//!
//! What a rate means is told by the crate that has rates, which this one does not know: here it is text, with its place.

use super::Misconfigured;
use super::text::parsed;
use serde::{Deserialize, Deserializer};
use sooner_policy::PolicyName;
use std::fmt;
use std::str::FromStr;
use toml::Spanned;

/// The table as it was written; what is `None` has the default its line says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UplinkTable {
    /// Rate of the link, such as `100mbit`; default: none, responses are not ordered.
    pub rate: Option<Spanned<String>>,
    /// Who goes first; default: `srpt`.
    pub policy: Option<Spanned<Policy>>,
    /// Where the order is made; default: `auto`.
    pub mechanism: Option<Spanned<MechanismName>>,
    /// The device towards the link; default: the one that carries the first address.
    pub device: Option<Spanned<String>>,
    /// Whether a queueing discipline that somebody configured may be replaced; default: no.
    pub replace_qdisc: bool,
    /// The order among the responses of one connection that ask for none; default: `standard`.
    pub streams: StreamOrder,
    /// Whether what clients say of the urgency of their responses counts; default: yes.
    pub trust_priority: bool,
}

impl Default for UplinkTable {
    fn default() -> Self {
        Self {
            rate: None,
            policy: None,
            mechanism: None,
            device: None,
            replace_qdisc: false,
            streams: StreamOrder::default(),
            trust_priority: true,
        }
    }
}

/// A policy by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy(pub PolicyName);

/// Where the order is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MechanismName {
    /// The best that this process may use.
    #[default]
    Auto,
    /// Turns to write, without privilege.
    UserSpace,
    /// The kernel's priority bands.
    Bands,
    /// Turns above, bands below.
    Both,
    /// Nowhere: the rate is known and nothing is ordered.
    None,
}

/// The order among the non-incremental responses of one HTTP/2 connection that share an urgency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamOrder {
    /// As they were asked for, which RFC 9218 (section 10) recommends.
    #[default]
    Standard,
    /// By size, as across connections.
    Size,
}

/// A name that is no policy's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no policy; choose one of fair, fcfs, srpt, psjf, las, fsp")]
pub struct NotAPolicy {
    name: String,
}

impl FromStr for Policy {
    type Err = NotAPolicy;

    fn from_str(name: &str) -> Result<Self, NotAPolicy> {
        name.parse()
            .map(Self)
            .map_err(|_| NotAPolicy { name: name.into() })
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl UplinkTable {
    /// The policy in force.
    pub fn policy(&self) -> PolicyName {
        self.policy
            .as_ref()
            .map_or(PolicyName::Srpt, |policy| policy.get_ref().0)
    }

    /// The mechanism asked for.
    pub fn mechanism(&self) -> MechanismName {
        self.mechanism
            .as_ref()
            .map_or(MechanismName::Auto, |mechanism| *mechanism.get_ref())
    }

    /// What can only be wrong together: keys that mean nothing without a rate.
    pub(super) fn check(&self) -> Result<(), Misconfigured> {
        const NO_RATE: &str =
            "means nothing without a rate; add uplink.rate = \"100mbit\", or remove this";
        if self.rate.is_some() {
            return Ok(());
        }
        if let Some(mechanism) = &self.mechanism {
            return Err(Misconfigured::at(mechanism, "uplink.mechanism", NO_RATE));
        }
        if let Some(device) = &self.device {
            return Err(Misconfigured::at(device, "uplink.device", NO_RATE));
        }
        Ok(())
    }
}
