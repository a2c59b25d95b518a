//! `[[upstream]] share_by`: who is charged for what requests take.

use super::classes::cookie_name;
use super::facts::RequestFacts;
use super::values::{comparable, only_cookie, only_value};
use crate::config::Misconfigured;
use hyper::header::HeaderName;
use sooner_admission::{ClientId, Payer};
use sooner_config::ClientNetwork;
use sooner_http::json_fields::FieldPath;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use toml::Spanned;

/// Who is charged. Where a request does not say it, its client's address is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShareBy {
    /// The address that it comes from.
    Client,
    /// What it has in this field of its head.
    Header(HeaderName),
    /// What it has in this cookie.
    Cookie(String),
    /// What its body has in this field.
    Body(FieldPath),
}

impl ShareBy {
    /// What the configuration says.
    pub fn parse(text: &Spanned<String>) -> Result<Self, Misconfigured> {
        let wrong = |words: String| Misconfigured::at(text, "upstream.share_by", words);
        let name = text.get_ref().as_str();
        match name.split_once(':') {
            None if name == "client" => Ok(Self::Client),
            Some(("header", header)) => HeaderName::try_from(header)
                .map(Self::Header)
                .map_err(|_| wrong(format!("`{header}` is not a name of a header"))),
            Some(("cookie", cookie)) => cookie_name(cookie)
                .map(|()| Self::Cookie(cookie.to_owned()))
                .map_err(wrong),
            Some(("body", field)) => field
                .parse()
                .map(Self::Body)
                .map_err(|error| wrong(format!("`{field}` {error}"))),
            _ => Err(wrong(format!(
                "`{name}` is not a part of a request; write client, header:NAME, cookie:NAME or body:FIELD"
            ))),
        }
    }

    /// The field of bodies that it needs.
    pub fn field(&self) -> Option<&FieldPath> {
        match self {
            Self::Body(field) => Some(field),
            _ => None,
        }
    }

    /// Who is charged for a request.
    pub fn payer(&self, of: &RequestFacts<'_>) -> Payer {
        let said = match self {
            Self::Client => None,
            Self::Header(name) => {
                let value = only_value(of.headers, name.as_str());
                value.map(|value| comparable(name.as_str(), value))
            }
            Self::Cookie(name) => only_cookie(of.headers, name).map(Cow::from),
            Self::Body(field) => {
                let value = of.body.and_then(|body| body.get(&field.to_string()));
                value.map(Cow::from)
            }
        };
        match said.filter(|text| !text.trim_ascii().is_empty()) {
            Some(text) => {
                let mut hasher = DefaultHasher::new();
                text.hash(&mut hasher);
                Payer {
                    client: ClientId(hasher.finish()),
                    network: None,
                }
            }
            None => ClientNetwork::from(of.address).payer(),
        }
    }
}
