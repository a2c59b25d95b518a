//! A connection URI as libpq reads it (PostgreSQL's documentation, 34.1.1.2).
//!
//! `postgresql://[user[:password]@][host[:port][,...]][/database][?name=value[&...]]`: each part
//! may be percent-encoded, and an IPv6 address stands in brackets. Nothing is looked up here, and
//! what the parameters mean is not decided.

/// A URI in its parts, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionUri {
    /// User and password, where the URI has an `@`.
    pub user_info: Option<String>,
    /// Hosts with their ports; a host that is not there is empty.
    pub hosts: Vec<Host>,
    /// The database; empty if it is not there.
    pub database: String,
    /// Names and values, in their order.
    pub parameters: Vec<(String, String)>,
}

/// A host as it stands in a URI.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// A name, an address without brackets, or the folder of a socket file.
    pub name: String,
    /// Empty where there is none.
    pub port: String,
}

/// Why a text is no URI of libpq's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// It begins otherwise.
    #[error("it begins with neither postgresql:// nor postgres://")]
    Scheme,
    /// A bracket is not closed, or something follows it.
    #[error("an IPv6 address in brackets ends in ], :PORT, a comma or a slash")]
    Brackets,
    /// A parameter without `=`.
    #[error("a parameter is NAME=VALUE")]
    Parameter,
    /// A `%` without two digits, or bytes that are no text.
    #[error("% begins two hexadecimal digits of a byte of UTF-8, and no zero")]
    Encoding,
}

impl ConnectionUri {
    /// Reads a URI.
    pub fn parse(text: &str) -> Result<Self, UriError> {
        let rest = text.strip_prefix("postgresql://");
        let rest = rest.or_else(|| text.strip_prefix("postgres://"));
        let rest = rest.ok_or(UriError::Scheme)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (user_info, hosts) = match authority.rsplit_once('@') {
            Some((user_info, hosts)) => (Some(decode(user_info)?), hosts),
            None => (None, authority),
        };
        let parameters = query.split('&').filter(|pair| !pair.is_empty());
        Ok(Self {
            user_info,
            hosts: hosts
                .split(',')
                .map(Host::parse)
                .collect::<Result<_, _>>()?,
            database: decode(database)?,
            parameters: parameters.map(parameter).collect::<Result<_, _>>()?,
        })
    }
}

impl Host {
    fn parse(text: &str) -> Result<Self, UriError> {
        let (name, port) = match text.strip_prefix('[') {
            Some(inside) => {
                let (address, behind) = inside.split_once(']').ok_or(UriError::Brackets)?;
                match behind.strip_prefix(':') {
                    Some(port) => (address, port),
                    None if behind.is_empty() => (address, ""),
                    None => return Err(UriError::Brackets),
                }
            }
            None => text.split_once(':').unwrap_or((text, "")),
        };
        Ok(Self {
            name: decode(name)?,
            port: decode(port)?,
        })
    }
}

fn parameter(pair: &str) -> Result<(String, String), UriError> {
    let (name, value) = pair.split_once('=').ok_or(UriError::Parameter)?;
    Ok((decode(name)?, decode(value)?))
}

/// Replaces `%41` by its byte; a plus sign stays one, as in libpq.
fn decode(text: &str) -> Result<String, UriError> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'%' {
            decoded.push(*byte);
            continue;
        }
        let (digits, behind) = behind.split_at_checked(2).ok_or(UriError::Encoding)?;
        let is_digits = digits.iter().all(u8::is_ascii_hexdigit);
        let digits = str::from_utf8(digits).map_err(|_| UriError::Encoding)?;
        match u8::from_str_radix(digits, 16) {
            Ok(byte @ 1..) if is_digits => decoded.push(byte),
            _ => return Err(UriError::Encoding),
        }
        rest = behind;
    }
    String::from_utf8(decoded).map_err(|_| UriError::Encoding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The parts in one line.
    fn parts(text: &str) -> String {
        let uri = match ConnectionUri::parse(text) {
            Ok(uri) => uri,
            Err(error) => return format!("{error:?}"),
        };
        let hosts = uri.hosts.iter();
        let hosts: Vec<_> = hosts
            .map(|host| format!("{}|{}", host.name, host.port))
            .collect();
        let user_info = uri.user_info.map_or_else(String::new, |user| user + "@");
        let parameters = uri.parameters.iter();
        let parameters = parameters.map(|(name, value)| format!(" {name}={value}"));
        let parameters: String = parameters.collect();
        format!(
            "{user_info}{} /{}{parameters}",
            hosts.join(","),
            uri.database
        )
    }

    #[test]
    fn a_uri_is_read_as_the_documentation_of_libpq_has_it() {
        for (uri, expected) in [
            ("postgresql://", "| /"),
            ("postgresql://localhost", "localhost| /"),
            ("postgresql://localhost:5433", "localhost|5433 /"),
            ("postgresql://localhost/mydb", "localhost| /mydb"),
            ("postgresql://user@localhost", "user@localhost| /"),
            (
                "postgresql://user:secret@localhost",
                "user:secret@localhost| /",
            ),
            (
                "postgresql://other@localhost/otherdb?connect_timeout=10&application_name=myapp",
                "other@localhost| /otherdb connect_timeout=10 application_name=myapp",
            ),
            (
                "postgresql://host1:123,host2:456/somedb?target_session_attrs=any",
                "host1|123,host2|456 /somedb target_session_attrs=any",
            ),
            (
                "postgresql://user@localhost:5433/mydb?options=-c%20synchronous_commit%3Doff",
                "user@localhost|5433 /mydb options=-c synchronous_commit=off",
            ),
            (
                "postgresql:///mydb?host=localhost&port=5433",
                "| /mydb host=localhost port=5433",
            ),
            (
                "postgresql://[2001:db8::1234]/database",
                "2001:db8::1234| /database",
            ),
            (
                "postgresql:///dbname?host=/var/lib/postgresql",
                "| /dbname host=/var/lib/postgresql",
            ),
            (
                "postgresql://%2Fvar%2Flib%2Fpostgresql/dbname",
                "/var/lib/postgresql| /dbname",
            ),
            ("postgres://[::1]:6000?a=b+c", "::1|6000 / a=b+c"),
        ] {
            assert_eq!(parts(uri), expected, "{uri}");
        }
    }

    #[test]
    fn what_libpq_refuses_is_refused() {
        for (uri, expected) in [
            ("", "Scheme"),
            ("localhost:5432", "Scheme"),
            ("http://localhost", "Scheme"),
            ("postgresql://[::1", "Brackets"),
            ("postgresql://[::1]5432", "Brackets"),
            ("postgresql://db?sslmode", "Parameter"),
            ("postgresql://db?a=%2", "Encoding"),
            ("postgresql://db?a=%+1", "Encoding"),
            ("postgresql://db?a=%00", "Encoding"),
            ("postgresql://db?a=%ff", "Encoding"),
        ] {
            assert_eq!(parts(uri), expected, "{uri}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(postgres://)?[ -~é%:/@?&=,\\[\\]]{0,60}") {
            let _ = ConnectionUri::parse(&text);
        }
    }
}
