//! What is known of a request before it goes in: by which parts of it others are alike
//! (`[[upstream]] kind`), how large its work is (`amount`), and where it comes from.

use super::config::UpstreamTable;
use super::facts::RequestFacts;
use super::values::{comparable, only_value};
use crate::config::Misconfigured;
use hyper::header::HeaderName;
use sooner_admission::{KindName, Subject};
use sooner_config::ClientNetwork;
use sooner_http::host;
use sooner_http::json_fields::FieldPath;
use toml::Spanned;

/// A part of a request that makes a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
enum KindPart {
    Method,
    Route,
    /// With its numbers and identifiers folded.
    Path,
    /// The names of its parameters.
    Query,
    /// The value of this parameter, folded as paths are.
    Parameter(String),
    Host,
    Header(HeaderName),
    /// A field of a body that is a JSON object.
    Body(FieldPath),
}

/// What tells how large the work of a request is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Amount {
    /// The length of its body.
    Length,
    /// A number in a field of its body.
    Body(FieldPath),
    /// A number that is the value of this parameter.
    Parameter(String),
}

/// What makes two requests of an upstream alike, and what tells how large its work is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    parts: Vec<KindPart>,
    amount: Amount,
}

impl KindPart {
    fn parse(text: &Spanned<String>) -> Result<Self, Misconfigured> {
        let wrong = |words: String| Misconfigured::at(text, "upstream.kind", words);
        let name = text.get_ref().as_str();
        Ok(match name {
            "method" => Self::Method,
            "route" => Self::Route,
            "path" => Self::Path,
            "query" => Self::Query,
            "host" => Self::Host,
            _ => match name.split_once(':') {
                Some(("header", header)) => {
                    let header = HeaderName::try_from(header);
                    let words = "names no header; write for example header:x-model";
                    Self::Header(header.map_err(|_| wrong(format!("`{name}` {words}")))?)
                }
                Some(("body", field)) => {
                    let field = field.parse();
                    Self::Body(field.map_err(|error| wrong(format!("`{name}` {error}")))?)
                }
                Some(("query", parameter)) if !parameter.is_empty() => {
                    Self::Parameter(parameter.to_owned())
                }
                _ => {
                    return Err(wrong(format!(
                        "`{name}` is not a part of a request; there are method, route, path, query, query:NAME, host, header:NAME and body:FIELD"
                    )));
                }
            },
        })
    }

    fn add_to(&self, name: &mut KindName, facts: &RequestFacts<'_>) {
        match self {
            Self::Method => name.add(facts.method),
            Self::Route => name.add(facts.route),
            Self::Path => name.add_alike(facts.uri.path()),
            Self::Query => name.add_alike(&parameter_names(facts.uri.query().unwrap_or_default())),
            Self::Parameter(parameter) => {
                name.add_alike(only_parameter(facts, parameter).unwrap_or_default());
            }
            Self::Host => name.add(&host::normal(facts.host)),
            Self::Header(header) => {
                let value = only_value(facts.headers, header.as_str()).unwrap_or_default();
                name.add(&comparable(header.as_str(), value));
            }
            Self::Body(field) => {
                let value = facts.body.and_then(|body| body.get(&field.to_string()));
                name.add(value.unwrap_or_default());
            }
        }
    }
}

impl Amount {
    fn parse(text: &Spanned<String>) -> Result<Self, Misconfigured> {
        let wrong = |words: String| Misconfigured::at(text, "upstream.amount", words);
        let name = text.get_ref().as_str();
        match name.split_once(':') {
            None if name == "length" => Ok(Self::Length),
            Some(("query", parameter)) if !parameter.is_empty() => {
                Ok(Self::Parameter(parameter.to_owned()))
            }
            Some(("body", field)) => {
                let field = field.parse().map(Self::Body);
                field.map_err(|error| wrong(format!("`{name}` {error}")))
            }
            _ => Err(wrong(format!(
                "`{name}` has no number; write \"length\", \"query:NAME\" or \"body:FIELD\", like body:max_tokens"
            ))),
        }
    }

    fn of(&self, facts: &RequestFacts<'_>) -> Option<u64> {
        match self {
            Self::Length => facts.body_bytes,
            Self::Body(field) => {
                let value = facts.body.and_then(|body| body.get(&field.to_string()));
                value?.parse().ok()
            }
            Self::Parameter(parameter) => only_parameter(facts, parameter)?.parse().ok(),
        }
    }
}

/// The value of a parameter that the query has once, as it was sent.
fn only_parameter<'a>(facts: &RequestFacts<'a>, parameter: &str) -> Option<&'a str> {
    let pairs = facts.uri.query()?.split('&');
    let mut values = pairs.filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        (name == parameter).then_some(value)
    });
    let value = values.next();
    value.filter(|_| values.next().is_none())
}

/// The names of a query's parameters, each once, in their order.
fn parameter_names(query: &str) -> String {
    if query.is_empty() {
        return "?".to_owned();
    }
    let pairs = query.split('&');
    let mut names: Vec<&str> = pairs
        .map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name))
        .filter(|name| !name.is_empty())
        .collect();
    names.sort_unstable();
    names.dedup();
    format!("?{}", names.join("&"))
}

impl Kind {
    /// What `table` says of it.
    pub fn build(table: &UpstreamTable) -> Result<Self, Misconfigured> {
        let mut parts = Vec::new();
        for text in table.kind.iter().flatten() {
            let part = KindPart::parse(text)?;
            if parts.contains(&part) {
                let words = format!("`{}` is listed twice; keep one of them", text.get_ref());
                return Err(Misconfigured::at(text, "upstream.kind", words));
            }
            parts.push(part);
        }
        if table.kind.is_none() {
            parts = vec![KindPart::Method, KindPart::Route, KindPart::Path];
        }
        let amount = table.amount.as_ref().map(Amount::parse).transpose()?;
        Ok(Self {
            parts,
            amount: amount.unwrap_or(Amount::Length),
        })
    }

    /// The fields of bodies that it has.
    pub fn fields(&self) -> impl Iterator<Item = &FieldPath> {
        let parts = self.parts.iter().filter_map(|part| match part {
            KindPart::Body(field) => Some(field),
            _ => None,
        });
        let amount = match &self.amount {
            Amount::Body(field) => Some(field),
            _ => None,
        };
        parts.chain(amount)
    }

    /// What is known of a request.
    pub fn subject(&self, facts: &RequestFacts<'_>) -> Subject {
        let mut name = KindName::default();
        for part in &self.parts {
            part.add_to(&mut name, facts);
        }
        let of_address = ClientNetwork::from(facts.address).payer();
        Subject {
            kind: name.into_text(),
            amount: self.amount.of(facts),
            client: Some(of_address.client),
            neighbourhood: of_address.network,
            payer: Some(of_address),
            plain_class: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::look::BodyFields;
    use hyper::HeaderMap;

    fn kind_of(parts: &[&str], uri: &str) -> String {
        let place = |part: &&str| Spanned::new(0..0, (*part).to_owned());
        let parts: Result<_, _> = parts
            .iter()
            .map(|part| KindPart::parse(&place(part)))
            .collect();
        let kind = Kind {
            parts: parts.unwrap(),
            amount: Amount::Length,
        };
        let headers = HeaderMap::from_iter([("x-model".parse().unwrap(), "m 7".parse().unwrap())]);
        let body = BodyFields::of(&[("model", "small"), ("a.b", "1")]);
        let facts = RequestFacts {
            upstream: "app",
            tls_name: "",
            body: Some(&body),
            method: "POST",
            route: "/v1",
            uri: &uri.parse().unwrap(),
            host: "API.example",
            headers: &headers,
            body_bytes: Some(5),
            address: "192.0.2.9".parse().unwrap(),
        };
        let subject = kind.subject(&facts);
        assert_eq!(subject.amount, Some(5));
        assert_ne!(subject.client, subject.neighbourhood);
        subject.kind
    }

    #[test]
    fn an_amount_is_a_length_or_a_number_of_the_body() {
        let of = |text: &str| Amount::parse(&Spanned::new(0..0, text.to_owned()));
        assert_eq!(of("length").unwrap(), Amount::Length);
        let counted = |amount: &str, uri: &str, fields: &[(&str, &str)]| {
            let kind = Kind {
                parts: Vec::new(),
                amount: of(amount).unwrap(),
            };
            let body = BodyFields::of(fields);
            let headers = HeaderMap::new();
            let facts = RequestFacts {
                upstream: "app",
                route: "/",
                method: "POST",
                uri: &uri.parse().unwrap(),
                host: "",
                headers: &headers,
                body_bytes: Some(5),
                address: "192.0.2.9".parse().unwrap(),
                tls_name: "",
                body: Some(&body),
            };
            (kind.subject(&facts).amount, kind.fields().count())
        };
        // Whether the body has to be looked at stands behind it.
        let tokens = |fields| counted("body:max_tokens", "/", fields);
        assert_eq!(tokens(&[("max_tokens", "512")]), (Some(512), 1));
        assert_eq!(tokens(&[("max_tokens", "many")]), (None, 1));
        assert_eq!(tokens(&[]), (None, 1));
        let rows = |uri| counted("query:rows", uri, &[]);
        assert_eq!(rows("/?a=7&rows=512"), (Some(512), 0));
        for none in [
            "/",
            "/?rows",
            "/?rows=",
            "/?rows=1&rows=2",
            "/?Rows=1",
            "/?rows=many",
        ] {
            assert_eq!(rows(none), (None, 0), "{none}");
        }
        for wrong in [
            "max_tokens",
            "body:",
            "body:a..b",
            "header:x",
            "query",
            "query:",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_case_of_a_scheme_makes_no_other_kind() {
        let kind_of = |name: &'static str, value: &str| {
            let part = Spanned::new(0..0, format!("header:{name}"));
            let kind = Kind {
                parts: vec![KindPart::parse(&part).unwrap()],
                amount: Amount::Length,
            };
            let facts = RequestFacts {
                upstream: "app",
                route: "/",
                method: "GET",
                uri: &"/".parse().unwrap(),
                host: "",
                headers: &HeaderMap::from_iter([(
                    HeaderName::from_static(name),
                    value.parse().unwrap(),
                )]),
                body_bytes: None,
                address: "192.0.2.9".parse().unwrap(),
                tls_name: "",
                body: None,
            };
            kind.subject(&facts).kind
        };
        for name in ["authorization", "proxy-authorization"] {
            assert_eq!(kind_of(name, "bearer X"), kind_of(name, "Bearer  X"));
            assert_ne!(kind_of(name, "bearer X"), kind_of(name, "bearer x"));
            assert_ne!(kind_of(name, "KEY"), kind_of(name, "key"));
        }
        assert_ne!(kind_of("x-a", "bearer X"), kind_of("x-a", "Bearer X"));
    }

    #[test]
    fn a_kind_has_the_parts_that_are_named() {
        let uri = "/v1/users/17?b=2&a=1&b=3&c";
        assert_eq!(
            kind_of(&["method", "route", "path"], uri),
            "POST /v1 /vN/users/N"
        );
        assert_eq!(kind_of(&["path", "query"], uri), "/vN/users/N ?a&b&c");
        assert_eq!(
            kind_of(
                &["query:b", "query:a", "query:c", "query:d"],
                "/?b=2&c&a=list&d=1&d=2"
            ),
            "N list  "
        );
        assert_eq!(kind_of(&["host", "header:X-Model"], uri), "api.example m 7");
        assert_eq!(kind_of(&["query", "header:x-none"], "/"), "? ");
        assert_eq!(
            kind_of(&["path", "body:model", "body:a.b"], "/"),
            "/ small 1"
        );
        assert_eq!(kind_of(&["body:stream"], "/"), "");
        assert_eq!(kind_of(&[], uri), "");
    }
}
