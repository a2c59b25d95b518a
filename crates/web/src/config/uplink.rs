//! The table `[uplink]`: how fast the link is, and who goes first on it.
//!
//! What a rate means is told by the crate that has rates, which this one does not know: here it is
//! text, with its place.

use super::Misconfigured;
use super::parsed;
use serde::{Deserialize, Deserializer};
use sooner_link::{Ahead, NotAnAmount};
use sooner_policy::{BAND_COUNT, PolicyName};
use std::fmt;
use std::ops::RangeInclusive;
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
    /// Among whom the one goes first that received the least of late; default: none, the policy
    /// orders all responses.
    pub share_by: Option<Spanned<ShareName>>,
    /// Where the order is made; default: `auto`.
    pub mechanism: Option<Spanned<MechanismName>>,
    /// How many bands the kernel's are; default: 8.
    pub bands: Option<Spanned<u8>>,
    /// How much may lie in the kernel ahead of the link, such as `5` packets, `30kb` or `20ms`;
    /// default: one turn.
    pub ahead: Option<Spanned<AheadAmount>>,
    /// The device towards the link; default: the one that carries the first address.
    pub device: Option<Spanned<String>>,
    /// Whether a queueing discipline that was configured may be replaced; default: no.
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
            share_by: None,
            mechanism: None,
            bands: None,
            ahead: None,
            device: None,
            replace_qdisc: false,
            streams: StreamOrder::default(),
            trust_priority: true,
        }
    }
}

/// Bands that there can be: with one there is no order, and HTB has eight priorities.
const BANDS: RangeInclusive<u8> = 2..=BAND_COUNT as u8;

/// A policy by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy(pub PolicyName);

/// An amount that may lie ahead of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AheadAmount(pub Ahead);

/// Among whom the one goes first that received the least of late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShareName {
    /// Clients, told by their addresses.
    Client,
}

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
    /// As the client requested them, which RFC 9218 (section 10) recommends.
    #[default]
    Standard,
    /// By size, as across connections.
    Size,
}

/// A name that is no policy's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a policy; choose one of {list}", list = PolicyName::offered())]
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

impl FromStr for AheadAmount {
    type Err = NotAnAmount;

    fn from_str(text: &str) -> Result<Self, NotAnAmount> {
        text.parse().map(Self)
    }
}

impl<'de> Deserialize<'de> for AheadAmount {
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

    /// Whether of the clients the one goes first that received the least of late.
    pub fn is_by_client(&self) -> bool {
        self.share_by.is_some()
    }

    /// The requested mechanism.
    pub fn mechanism(&self) -> MechanismName {
        self.mechanism
            .as_ref()
            .map_or(MechanismName::Auto, |mechanism| *mechanism.get_ref())
    }

    /// How many bands the kernel's are.
    pub fn bands(&self) -> u8 {
        self.bands
            .as_ref()
            .map_or(BAND_COUNT as u8, |bands| *bands.get_ref())
    }

    /// How much may lie in the kernel ahead of the link, if it was said.
    pub fn ahead(&self) -> Option<Ahead> {
        self.ahead.as_ref().map(|ahead| ahead.get_ref().0)
    }

    /// What can only be wrong together: keys that mean nothing without a rate, or under the
    /// mechanism.
    pub(super) fn check(&self) -> Result<(), Misconfigured> {
        self.check_rate()?;
        self.check_bands()?;
        self.check_ahead()?;
        self.check_share_by()
    }

    fn check_bands(&self) -> Result<(), Misconfigured> {
        let Some(bands) = &self.bands else {
            return Ok(());
        };
        let wrong = |message| Err(Misconfigured::at(bands, "uplink.bands", message));
        if !BANDS.contains(bands.get_ref()) {
            return wrong("out of range; write 2 (cut at the median) to 8");
        }
        match self.mechanism() {
            MechanismName::Bands | MechanismName::Both => Ok(()),
            MechanismName::Auto | MechanismName::UserSpace | MechanismName::None => wrong(
                "this sets the number of the kernel's bands; add uplink.mechanism = \"bands\", or remove this",
            ),
        }
    }

    fn check_share_by(&self) -> Result<(), Misconfigured> {
        let Some(share_by) = &self.share_by else {
            return Ok(());
        };
        match self.mechanism() {
            MechanismName::Auto | MechanismName::UserSpace | MechanismName::Both => Ok(()),
            MechanismName::Bands | MechanismName::None => Err(Misconfigured::at(
                share_by,
                "uplink.share_by",
                "clients are told apart only where responses take turns; choose uplink.mechanism \"user-space\" or \"both\", or remove this",
            )),
        }
    }

    fn check_ahead(&self) -> Result<(), Misconfigured> {
        let Some(ahead) = &self.ahead else {
            return Ok(());
        };
        match self.mechanism() {
            MechanismName::Auto | MechanismName::UserSpace | MechanismName::Both => Ok(()),
            MechanismName::Bands | MechanismName::None => Err(Misconfigured::at(
                ahead,
                "uplink.ahead",
                "nothing is held back without turns; choose uplink.mechanism \"user-space\" or \"both\", or remove this",
            )),
        }
    }

    fn check_rate(&self) -> Result<(), Misconfigured> {
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
        if let Some(bands) = &self.bands {
            return Err(Misconfigured::at(bands, "uplink.bands", NO_RATE));
        }
        if let Some(share_by) = &self.share_by {
            return Err(Misconfigured::at(share_by, "uplink.share_by", NO_RATE));
        }
        if let Some(ahead) = &self.ahead {
            return Err(Misconfigured::at(ahead, "uplink.ahead", NO_RATE));
        }
        Ok(())
    }
}
