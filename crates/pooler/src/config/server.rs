//! Where a database is, as its clients write it: a URI with libpq's parameters.

use sooner_postgres::uri::{ConnectionUri, Host, UriError};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// PostgreSQL's.
const DEFAULT_PORT: u16 = 5432;
const FORM: &str =
    "postgresql://HOST:PORT, or postgresql:///?host=DIRECTORY&port=PORT for a socket file";

/// Where a server is and how it is spoken to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerAddress {
    /// Where.
    pub endpoint: Endpoint,
    /// Whether it is spoken to in clear text.
    pub encryption: Encryption,
    /// A PEM file of the authorities that make its certificate good; default: the system's.
    pub authorities: Option<PathBuf>,
    /// PEM files of the gate's own certificate and key, for servers that want one.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Whether TLS begins at once, without asking, as servers from 17 on understand it.
    pub is_direct: bool,
}

/// Where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    /// Name or address, and port.
    Tcp(String, u16),
    /// The folder of its socket file, and the port in that file's name.
    Unix(PathBuf, u16),
}

/// libpq's `sslmode`, but for `allow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Encryption {
    /// Never.
    Disable,
    /// Where the server can, without a look at its certificate.
    Prefer,
    /// Always, without a look at its certificate.
    Require,
    /// Always, and its certificate must be good.
    VerifyCa,
    /// Always, and its certificate must be good and have its name.
    VerifyFull,
}

impl ServerAddress {
    /// There, encrypted as libpq does by default.
    pub fn at(endpoint: Endpoint) -> Self {
        let encryption = match endpoint {
            Endpoint::Tcp(..) => Encryption::Prefer,
            Endpoint::Unix(..) => Encryption::Disable,
        };
        Self {
            endpoint,
            encryption,
            authorities: None,
            certificate: None,
            is_direct: false,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(folder, port) => write!(f, "{}/.s.PGSQL.{port}", folder.display()),
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.endpoint.fmt(f)
    }
}

impl FromStr for ServerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri = ConnectionUri::parse(text).map_err(|error| match error {
            UriError::Scheme => format!("write {FORM}"),
            error => format!("{error}; write {FORM}"),
        })?;
        if uri.user_info.is_some_and(|user| !user.is_empty()) || !uri.database.is_empty() {
            return Err(format!(
                "clients name the user and the database, so leave them out; write {FORM}"
            ));
        }
        let [of_authority] = <[Host; 1]>::try_from(uri.hosts)
            .map_err(|_| format!("a database has one server; write {FORM}"))?;
        let mut parameters = uri.parameters;
        let mut take = |name: &str| {
            let at = parameters.iter().position(|(own, _)| own == name)?;
            Some(parameters.remove(at).1)
        };
        let host = take("host").unwrap_or(of_authority.name);
        let port = match take("port").or(Some(of_authority.port).filter(|port| !port.is_empty())) {
            Some(port) => port
                .parse()
                .map_err(|_| format!("{port:?} is not a port"))?,
            None => DEFAULT_PORT,
        };
        let endpoint = endpoint(&host, port)?;
        let mut address = Self::at(endpoint);
        address.read_encryption(&mut take)?;
        match parameters.first() {
            Some((name, _)) => Err(format!("{name:?} is not a parameter here; write {FORM}")),
            None => Ok(address),
        }
    }
}

fn endpoint(host: &str, port: u16) -> Result<Endpoint, String> {
    match host {
        "" => Err(format!("it names no host; write {FORM}")),
        folder if folder.starts_with('/') => Ok(Endpoint::Unix(folder.into(), port)),
        host => Ok(Endpoint::Tcp(
            host.trim_matches(['[', ']']).to_owned(),
            port,
        )),
    }
}

impl ServerAddress {
    fn read_encryption(
        &mut self,
        take: &mut impl FnMut(&str) -> Option<String>,
    ) -> Result<(), String> {
        self.authorities = take("sslrootcert").map(PathBuf::from);
        let is_unix = matches!(self.endpoint, Endpoint::Unix(..));
        match take("sslmode") {
            None if self.authorities.is_some() => self.encryption = Encryption::VerifyCa,
            None => {}
            Some(mode) if is_unix && mode != "disable" => {
                return Err("nothing is encrypted through a socket file; leave sslmode out".into());
            }
            Some(mode) => self.encryption = mode.parse()?,
        }
        let pair = (take("sslcert"), take("sslkey"));
        self.certificate = match pair {
            (Some(certificate), Some(key)) => Some((certificate.into(), key.into())),
            (None, None) => None,
            _ => return Err("sslcert and sslkey belong together; give both".into()),
        };
        self.is_direct = match take("sslnegotiation").as_deref() {
            None | Some("postgres") => false,
            Some("direct") => true,
            Some(other) => {
                return Err(format!(
                    "sslnegotiation is postgres or direct, not {other:?}"
                ));
            }
        };
        if self.is_direct && self.encryption < Encryption::Require {
            return Err("sslnegotiation=direct needs sslmode=require or a stricter one".into());
        }
        Ok(())
    }
}

impl FromStr for Encryption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "disable" => Self::Disable,
            "allow" | "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => {
                let modes = "disable, prefer, require, verify-ca or verify-full";
                return Err(format!("sslmode is {modes}, not {text:?}"));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_at_an_address_or_behind_a_file() {
        let read = |text: &str| {
            text.parse::<ServerAddress>()
                .map(|address| address.to_string())
        };
        for (text, expected) in [
            ("postgresql://db.example:5433", "db.example:5433"),
            ("postgres://127.0.0.1/", "127.0.0.1:5432"),
            ("postgresql://[::1]:6000", "[::1]:6000"),
            (
                "postgresql:///?host=/run/postgresql",
                "/run/postgresql/.s.PGSQL.5432",
            ),
            ("postgresql:///?host=/a%20b&port=6000", "/a b/.s.PGSQL.6000"),
            ("postgresql://db?sslmode=require", "db:5432"),
            ("postgresql://%2Frun:6000", "/run/.s.PGSQL.6000"),
            ("postgresql://db:/", "db:5432"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
        }
        for text in [
            "",
            "db:5432",
            "http://db",
            "postgresql://",
            "postgresql://ann@db",
            "postgresql://db/shop",
            "postgresql://db1,db2",
            "postgresql://db:x",
            "postgresql://db?sslmode=always",
            "postgresql://db?port=x",
            "postgresql://db?sslcert=a.pem",
            "postgresql://db?sslnegotiation=direct",
            "postgresql:///?host=/run&sslmode=require",
        ] {
            let error = read(text).unwrap_err();
            assert!(!error.contains('\n') && !error.is_empty(), "{text}");
        }
    }

    #[test]
    fn encryption_is_what_libpq_makes_of_it() {
        let read = |text: &str| text.parse::<ServerAddress>().unwrap().encryption;
        assert_eq!(read("postgresql://db"), Encryption::Prefer);
        assert_eq!(read("postgresql:///?host=/run"), Encryption::Disable);
        assert_eq!(
            read("postgresql://db?sslmode=verify-full"),
            Encryption::VerifyFull
        );
        assert_eq!(
            read("postgresql://db?sslrootcert=ca.pem"),
            Encryption::VerifyCa
        );
    }
}
