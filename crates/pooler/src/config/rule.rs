//! `[[rule]]`: who may come from where, and how it proves who it is. What pg_hba.conf is to a
//! server: the first that fits counts.

use super::OWN_DATABASES;
use serde::Deserialize;
use sooner_config::classes::comes_from;
use sooner_config::{Misconfigured, Network, Spanned};
use sooner_postgres::wire::truncate_name;
use sooner_tls::TlsConfig;
use std::borrow::Borrow;
use std::net::IpAddr;

/// How clients prove who they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthMethod {
    /// Not at all.
    Trust,
    /// By SCRAM-SHA-256.
    #[default]
    #[serde(alias = "scram-sha-256")]
    Scram,
    /// By md5, or by SCRAM where the secret is a verifier.
    Md5,
    /// By the password in clear text.
    #[serde(alias = "plain")]
    Password,
    /// By a certificate of the user's name.
    #[serde(alias = "cert")]
    Certificate,
    /// They may not come.
    Reject,
}

impl AuthMethod {
    /// As the file has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trust => "trust",
            Self::Scram => "scram",
            Self::Md5 => "md5",
            Self::Password => "password",
            Self::Certificate => "certificate",
            Self::Reject => "reject",
        }
    }

    /// Whether a secret is needed to check the proof.
    pub fn needs_secret(self) -> bool {
        matches!(self, Self::Scram | Self::Md5 | Self::Password)
    }
}

/// One rule. All of what it names must fit; what it does not name fits every client.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleTable {
    /// Databases, by the names that clients use.
    #[serde(default)]
    pub database: Option<Vec<Spanned<String>>>,
    /// Users.
    #[serde(default)]
    pub user: Option<Vec<Spanned<String>>>,
    /// Networks that clients come from.
    #[serde(default)]
    pub address: Option<Vec<Network>>,
    /// How they come.
    #[serde(default)]
    pub transport: Option<Spanned<Transport>>,
    /// How they prove who they are; default: `scram`.
    #[serde(default = "scram")]
    pub auth: Spanned<AuthMethod>,
}

fn scram() -> Spanned<AuthMethod> {
    Spanned::new(0..0, AuthMethod::Scram)
}

/// How a client comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// By TCP, not encrypted.
    Clear,
    /// By TCP, encrypted.
    Tls,
    /// Through a socket file.
    Unix,
}

/// What is known of a client that has said what it wants.
#[derive(Clone, Copy, Debug)]
pub struct LoginAttempt<'a> {
    /// Its user.
    pub user: &'a str,
    /// Its database, as it calls it.
    pub database: &'a str,
    /// Where it comes from; `None` through a socket file.
    pub address: Option<IpAddr>,
    /// How it comes.
    pub transport: Transport,
}

/// How a client has to prove who it is: by the first of `rules` that fits, by `otherwise` where
/// there are none.
pub fn required_auth(
    rules: &[RuleTable],
    otherwise: AuthMethod,
    client: LoginAttempt<'_>,
) -> AuthMethod {
    if rules.is_empty() {
        return otherwise;
    }
    let rule = rules.iter().find(|rule| rule.is_for(client));
    rule.map_or(AuthMethod::Reject, |rule| *rule.auth.get_ref())
}

impl RuleTable {
    pub(super) fn check(&self, has_tls: bool, tls: &[TlsConfig]) -> Result<(), Misconfigured> {
        if let Some(transport) = &self.transport
            && *transport.get_ref() == Transport::Tls
            && !has_tls
        {
            let words = "no client can come so: there is no [[tls]] with certificate and key";
            return Err(Misconfigured::at(transport, "rule.transport", words));
        }
        let has_authority = tls.iter().any(|table| table.client_ca.is_some());
        if *self.auth.get_ref() == AuthMethod::Certificate && !has_authority {
            let words = "no certificate can be checked: [[tls]] needs client_ca = \"FILE.pem\"";
            return Err(Misconfigured::at(&self.auth, "rule.auth", words));
        }
        for (key, all) in [("rule.database", &self.database), ("rule.user", &self.user)] {
            let mut all = all.iter().flatten();
            if let Some(own) = all.find(|own| own.get_ref().contains('*')) {
                let words = format!(
                    "{:?} matches nothing: a rule has whole names; list them, or leave the key out for all",
                    own.get_ref()
                );
                return Err(Misconfigured::at(own, key, words));
            }
        }
        Ok(())
    }

    fn is_for(&self, client: LoginAttempt<'_>) -> bool {
        let comes_so = |way: &Spanned<Transport>| *way.get_ref() == client.transport;
        let is_own = OWN_DATABASES.contains(&client.database);
        (fits(&self.database, client.database) || is_own && self.fits_console())
            && fits(&self.user, client.user)
            && comes_from(&self.address, client.address)
            && self.transport.as_ref().is_none_or(comes_so)
    }

    /// The gate's own database has two names, and what is said of the one holds for the other.
    fn fits_console(&self) -> bool {
        let mut own = OWN_DATABASES.iter();
        own.any(|name| fits(&self.database, name))
    }

    /// Whether it may be what decides on this user at the console.
    pub(super) fn may_enter_console(&self, user: &str) -> bool {
        self.fits_console() && fits(&self.user, user)
    }
}

/// Whether a name is one of these; a list that is not there fits every name.
fn fits<T: Borrow<str>>(names: &Option<Vec<T>>, name: &str) -> bool {
    match names {
        Some(names) => names.iter().any(|own| truncate_name(own.borrow()) == name),
        None => true,
    }
}
