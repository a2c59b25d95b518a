//! The value of a header for an upstream: text with variables of the request in it.

use crate::proxy::fastcgi::Origin;
use hyper::header::{COOKIE, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use sooner_http::forwarding::request::requested_authority;
use sooner_http::forwarding::routes::host_name;
use thiserror::Error;

/// A `$` with something else behind it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no variable; there are $host, $scheme, $remote_addr, $request_uri, $server_port and \
     $http_NAME (a header of the client), and $$ is a dollar"
)]
pub struct NoVariable(String);

/// Text and variables; none at all takes the header away.
#[derive(Debug)]
pub struct Value(Vec<Part>);

#[derive(Debug, PartialEq)]
enum Part {
    Text(String),
    Variable(Variable),
}

#[derive(Debug, PartialEq)]
enum Variable {
    /// The name that the request is for: in lower case, without port and final dot.
    Host,
    /// The same as the client wrote it.
    WholeHost,
    /// How it came here.
    Scheme,
    /// The client, as a trusted proxy names it.
    Address,
    /// Path and query as they came.
    Target,
    /// The port that it came in on.
    Port,
    /// A header that the client sent.
    Header(HeaderName),
}

/// A request as it came.
pub struct Asked<'a> {
    /// Its head.
    pub parts: &'a Parts,
    /// Where it came from, and where it came in.
    pub origin: &'a Origin,
}

impl Value {
    /// What `text` says.
    pub fn parse(text: &str) -> Result<Self, NoVariable> {
        let mut parts = Vec::new();
        let mut written = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('$') {
            written.push_str(before);
            if let Some(behind) = behind.strip_prefix('$') {
                written.push('$');
                rest = behind;
                continue;
            }
            let (name, left) = name(behind);
            let Some(variable) = Variable::named(name) else {
                let end = behind.len() - left.len();
                return Err(NoVariable(format!("${}", &behind[..end])));
            };
            if !written.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut written)));
            }
            parts.push(Part::Variable(variable));
            rest = left;
        }
        written.push_str(rest);
        if !written.is_empty() {
            parts.push(Part::Text(written));
        }
        Ok(Self(parts))
    }

    /// The value in a request; `None` where it is empty.
    pub fn of(&self, asked: &Asked<'_>) -> Option<HeaderValue> {
        let mut bytes = Vec::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => bytes.extend_from_slice(text.as_bytes()),
                Part::Variable(variable) => variable.push_to(&mut bytes, asked),
            }
        }
        value(&bytes)
    }

    /// The value where it is the same in all requests.
    pub fn fixed(&self) -> Option<HeaderValue> {
        match self.0.as_slice() {
            [Part::Text(text)] => value(text.as_bytes()),
            _ => None,
        }
    }
}

impl Variable {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "host" => Self::Host,
            "http_host" => Self::WholeHost,
            "scheme" => Self::Scheme,
            "remote_addr" => Self::Address,
            "request_uri" => Self::Target,
            "server_port" => Self::Port,
            name => {
                let header = name.strip_prefix("http_")?.replace('_', "-");
                Self::Header(HeaderName::from_bytes(header.as_bytes()).ok()?)
            }
        })
    }

    fn push_to(&self, bytes: &mut Vec<u8>, asked: &Asked<'_>) {
        let Asked { parts, origin } = asked;
        let host = || {
            requested_authority(parts)
                .ok()
                .flatten()
                .unwrap_or_default()
        };
        match self {
            Self::Host => {
                let name = host_name(host()).to_ascii_lowercase();
                bytes.extend_from_slice(name.as_bytes());
            }
            Self::WholeHost => bytes.extend_from_slice(host().as_bytes()),
            Self::Scheme => bytes.extend_from_slice(origin.scheme.as_bytes()),
            Self::Address => {
                let address = origin.client.to_canonical().to_string();
                bytes.extend_from_slice(address.as_bytes());
            }
            Self::Target => {
                let target = parts
                    .uri
                    .path_and_query()
                    .map_or("", |target| target.as_str());
                bytes.extend_from_slice(target.as_bytes());
            }
            Self::Port => bytes.extend_from_slice(origin.local.port().to_string().as_bytes()),
            Self::Header(name) => {
                let lines = parts
                    .headers
                    .get_all(name)
                    .iter()
                    .map(HeaderValue::as_bytes);
                let lines: Vec<&[u8]> = lines.collect();
                let between: &[u8] = if *name == COOKIE { b"; " } else { b", " };
                bytes.extend_from_slice(&lines.join(between));
            }
        }
    }
}

fn value(bytes: &[u8]) -> Option<HeaderValue> {
    let bytes = bytes.trim_ascii();
    HeaderValue::from_bytes(bytes)
        .ok()
        .filter(|own| !own.is_empty())
}

/// The name that `text` begins with, perhaps in braces, and what is behind it.
fn name(text: &str) -> (&str, &str) {
    if let Some((name, left)) = text.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
        return (name, left);
    }
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let end = text
        .find(|letter| !is_of_name(letter))
        .unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_variables_are_told_apart() {
        let parse = |text: &str| Value::parse(text).map(|own| own.0);
        let text = |text: &str| Part::Text(text.to_owned());
        assert_eq!(parse("").unwrap(), []);
        assert_eq!(parse("a$$b$$").unwrap(), [text("a$b$")]);
        assert_eq!(
            parse("${scheme}x$host:$server_port").unwrap(),
            [
                Part::Variable(Variable::Scheme),
                text("x"),
                Part::Variable(Variable::Host),
                text(":"),
                Part::Variable(Variable::Port),
            ]
        );
        let header = HeaderName::from_static("x-request-id");
        let variable = Part::Variable(Variable::Header(header));
        assert_eq!(parse("$http_x_request_id").unwrap(), [variable]);
        for (wrong, named) in [
            ("$hosts", "$hosts"),
            ("a $remote_user b", "$remote_user"),
            ("5$", "$"),
            ("${host", "$"),
            ("$http_", "$http_"),
            ("${a b}", "${a b}"),
        ] {
            assert_eq!(parse(wrong), Err(NoVariable(named.to_owned())), "{wrong}");
        }
    }
}
