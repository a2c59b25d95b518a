//! Lines of a pg_hba.conf, as PgBouncer reads them: what it passes over with a warning is passed
//! over here with a remark.

use crate::ini::{At, Files, ImportError};
use crate::values::in_double_quotes;
use sooner_config::{Network, NetworkError};
use std::borrow::Cow;
use std::net::IpAddr;
use std::path::Path;

/// Files of names inside each other.
const DEPTH_MAX: usize = 10;
const METHODS: [&str; 8] = [
    "trust",
    "reject",
    "md5",
    "password",
    "scram-sha-256",
    "cert",
    "peer",
    "ldap",
];
const METHODS_OF_POSTGRESQL: [&str; 7] = ["ident", "gss", "sspi", "pam", "radius", "bsd", "oauth"];

/// What a line says.
pub enum Line {
    /// A comment, or nothing.
    Nothing,
    /// PgBouncer does not understand it, or no client can fit.
    PassedOver(Cow<'static, str>),
    /// A rule.
    Rule(Rule),
}

/// A rule.
pub struct Rule {
    pub databases: Names,
    pub users: Names,
    pub address: Option<Vec<String>>,
    pub transport: Option<&'static str>,
    pub method: String,
    pub has_options: bool,
}

/// Names in one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    /// `all`.
    All,
    /// These.
    Only(Vec<String>),
    /// These, and that of the other column (`sameuser`).
    Same(Vec<String>),
}

/// A list for a rule; `None` fits every name.
type List = Option<Vec<String>>;

impl Names {
    /// Whether a name has a star, which no name of a rule has.
    pub fn has_star(&self) -> bool {
        match self {
            Self::All => false,
            Self::Only(names) | Self::Same(names) => names.iter().any(|own| own.contains('*')),
        }
    }

    /// Databases and users of the rules that say the same; `None` where none can.
    pub fn with_users(&self, users: &Self) -> Option<Vec<(List, List)>> {
        let list = |names: &Self| match names {
            Self::All => Some(None),
            Self::Only(names) => Some(Some(names.clone())),
            Self::Same(_) => None,
        };
        if let Self::Same(databases) = self {
            let Self::Only(users) = users else {
                return None;
            };
            let of_user = |user: &String| {
                let databases = [databases.as_slice(), std::slice::from_ref(user)].concat();
                (Some(databases), Some(vec![user.clone()]))
            };
            return Some(users.iter().map(of_user).collect());
        }
        Some(vec![(list(self)?, list(users)?)])
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Quoted(String),
    Comma,
}

/// Reads a line that has no blanks around it.
pub fn read(line: &str, at: &At, files: &Files<'_>) -> Result<Line, ImportError> {
    let read = tokens(line).map_err(Mistake::Unread).and_then(|tokens| {
        let mut reader = Reader {
            tokens: tokens.into_iter().peekable(),
            at,
            files,
            passed_over: None,
        };
        reader.line()
    });
    match read {
        Ok(line) => Ok(line),
        Err(Mistake::Unread(what)) => Ok(Line::PassedOver(
            format!("PgBouncer passes it over: {what}").into(),
        )),
        Err(Mistake::Lost(what)) => Err(at.wrong(what)),
    }
}

/// Why a line makes no rule.
enum Mistake {
    /// PgBouncer cannot read it, warns and goes on.
    Unread(String),
    /// PgBouncer reads it, and no rule says the same.
    Lost(String),
}

fn tokens(line: &str) -> Result<Vec<Token>, String> {
    let mut found = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next().filter(|first| *first != '#') {
        rest = match first {
            ',' => {
                found.push(Token::Comma);
                &rest[1..]
            }
            '"' => {
                let (name, behind) = in_double_quotes(rest)
                    .ok_or("a quote without its end; write \"...\", and \"\" for one inside")?;
                found.push(Token::Quoted(name));
                behind
            }
            _ => {
                let ends = |letter: char| letter.is_whitespace() || ",#\"".contains(letter);
                let (word, behind) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
                found.push(Token::Word(word.to_owned()));
                behind
            }
        }
        .trim_start();
    }
    Ok(found)
}

struct Reader<'a> {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    at: &'a At,
    files: &'a Files<'a>,
    passed_over: Option<&'static str>,
}

impl Reader<'_> {
    fn line(&mut self) -> Result<Line, Mistake> {
        let kind = match self.tokens.next() {
            None => return Ok(Line::Nothing),
            Some(Token::Word(word)) => word,
            Some(_) => String::new(),
        };
        let transport = match kind.as_str() {
            "local" => Some("unix"),
            "host" => None,
            "hostssl" => Some("tls"),
            "hostnossl" => Some("clear"),
            "hostgssenc" | "hostnogssenc" => {
                return Ok(Line::PassedOver("PgBouncer does not know it either".into()));
            }
            _ => {
                let what =
                    format!("{kind:?} begins no rule; local, host, hostssl and hostnossl do");
                return Err(Mistake::Unread(what));
            }
        };
        let databases = self.names("database")?;
        let users = self.names("user")?;
        let address = match kind.as_str() {
            "local" => None,
            _ => self.address()?,
        };
        let method = self.word("method")?;
        if let Some(why) = self.passed_over {
            return Ok(Line::PassedOver(why.into()));
        }
        if METHODS_OF_POSTGRESQL.contains(&method.as_str()) {
            return Ok(Line::PassedOver(
                "PgBouncer does not know the method either".into(),
            ));
        }
        if !METHODS.contains(&method.as_str()) {
            let methods = METHODS.join(", ");
            let what = format!("{method:?} is not a method; there are {methods}");
            return Err(Mistake::Unread(what));
        }
        let has_options = self.tokens.next().is_some();
        if has_options && !["cert", "peer", "ldap"].contains(&method.as_str()) {
            return Ok(Line::PassedOver(
                "PgBouncer does not know the options either".into(),
            ));
        }
        Ok(Line::Rule(Rule {
            databases,
            users,
            address,
            transport,
            method,
            has_options,
        }))
    }

    fn word(&mut self, what: &str) -> Result<String, Mistake> {
        match self.tokens.next() {
            Some(Token::Word(word) | Token::Quoted(word)) => Ok(word),
            _ => Err(Mistake::Unread(format!(
                "the {what} is missing; a rule is TYPE DATABASE USER [ADDRESS] METHOD"
            ))),
        }
    }

    /// Networks; without any, all clients that come by TCP.
    fn address(&mut self) -> Result<Option<Vec<String>>, Mistake> {
        let text = self.word("address")?;
        if text == "all" {
            return Ok(Some(vec!["0.0.0.0/0".into(), "::/0".into()]));
        }
        let mask = if text.contains('/') || !is_one(&text) {
            None
        } else {
            Some(self.word("mask")?)
        };
        let found = network(&text, mask.as_deref());
        match found.map_err(Mistake::Unread)? {
            Found::Network(network) => return Ok(Some(vec![network])),
            Found::Gaps(what) => return Err(Mistake::Lost(what)),
            Found::NoClient => {
                self.passed_over =
                    Some("it fits no client, as the address has bits beyond the mask")
            }
            Found::NoAddress => {
                self.passed_over = Some("PgBouncer does not know names of hosts either")
            }
        }
        Ok(None)
    }

    fn names(&mut self, column: &str) -> Result<Names, Mistake> {
        let (mut is_all, mut is_same, mut is_replication) = (false, false, false);
        let mut names = Vec::new();
        loop {
            match self.tokens.next() {
                Some(Token::Quoted(name)) => names.push(name),
                Some(Token::Word(word)) => match word.as_str() {
                    "all" => is_all = true,
                    "sameuser" => is_same = true,
                    "replication" if column == "database" => is_replication = true,
                    "samerole" | "samegroup" => {
                        self.passed_over = Some("PgBouncer does not know roles of users either");
                    }
                    _ if word.starts_with('+') => {
                        self.passed_over = Some("PgBouncer does not know roles of users either");
                    }
                    _ => match word.strip_prefix('@') {
                        Some(file) => self.file(file, &mut names)?,
                        None => names.push(word),
                    },
                },
                _ => {
                    return Err(Mistake::Unread(format!(
                        "the {column} is missing; a rule is TYPE DATABASE USER [ADDRESS] METHOD"
                    )));
                }
            }
            if self.tokens.next_if_eq(&Token::Comma).is_none() {
                break;
            }
        }
        // The rule still holds for the databases beside it.
        if is_replication && !is_all && !is_same && names.is_empty() {
            self.passed_over = Some("replication does not go through the gate");
        }
        Ok(match (is_all, is_same) {
            (true, _) => Names::All,
            (false, true) => Names::Same(names),
            (false, false) => Names::Only(names),
        })
    }

    /// Names in a file beside this one.
    fn file(&mut self, file: &str, names: &mut Vec<String>) -> Result<(), Mistake> {
        let mut files = vec![(beside(&self.at.file, file), 0)];
        while let Some((file, depth)) = files.pop() {
            let wrong = |what: String| Mistake::Unread(format!("@{file}: {what}"));
            let text = self.files.text(&file);
            let text = text.map_err(|error| wrong(format!("cannot read it: {error}")))?;
            for line in text.lines() {
                for token in tokens(line).map_err(wrong)? {
                    match token {
                        Token::Comma => {}
                        Token::Quoted(name) => names.push(name),
                        Token::Word(word) => match word.strip_prefix('@') {
                            Some(inner) if depth < DEPTH_MAX => {
                                files.push((beside(&file, inner), depth + 1));
                            }
                            Some(_) => {
                                return Err(wrong("too many files inside each other".into()));
                            }
                            None => names.push(word),
                        },
                    }
                }
            }
        }
        Ok(())
    }
}

fn beside(file: &str, name: &str) -> String {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    folder.join(name).display().to_string()
}

/// What an address stands for.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// A network.
    Network(String),
    /// It has bits beyond its mask, and so PgBouncer finds no client in it.
    NoClient,
    /// A name, or something that begins like one.
    NoAddress,
    /// Its mask has gaps: it is no network, and what it is.
    Gaps(String),
}

/// Whether it is an address, and no name.
pub fn is_one(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

/// `10.0.0.0/8`, or `10.0.0.0` with its mask `255.0.0.0`.
pub fn network(text: &str, mask: Option<&str>) -> Result<Found, String> {
    let text = match mask {
        Some(mask) => match bits(text, mask)? {
            Some(bits) => format!("{text}/{bits}"),
            None => {
                let what = format!("{mask} is a mask with gaps; write the networks one by one");
                return Ok(Found::Gaps(what));
            }
        },
        None => text.to_owned(),
    };
    match text.parse::<Network>() {
        Ok(_) => Ok(Found::Network(text)),
        Err(NetworkError::HostBits { .. }) => Ok(Found::NoClient),
        Err(NetworkError::NoAddress { .. }) => Ok(Found::NoAddress),
        Err(error) => Err(error.to_string()),
    }
}

/// How many bits a mask has in front; `None` where it has gaps.
fn bits(address: &str, mask: &str) -> Result<Option<u32>, String> {
    let no_mask =
        || format!("{address} has no mask; write {address}/32, /128 or another number of bits");
    let (ones, zeros, width) = match mask.parse::<IpAddr>().map_err(|_| no_mask())? {
        IpAddr::V4(mask) => (
            mask.to_bits().leading_ones(),
            mask.to_bits().trailing_zeros(),
            32,
        ),
        IpAddr::V6(mask) => (
            mask.to_bits().leading_ones(),
            mask.to_bits().trailing_zeros(),
            128,
        ),
    };
    Ok((ones + zeros == width).then_some(ones))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_address_with_bits_or_a_mask() {
        let found = |text, mask| match network(text, mask) {
            Ok(Found::Network(network)) => network,
            Ok(other) => format!("{other:?}"),
            Err(what) => what,
        };
        assert_eq!(found("10.0.0.0/8", None), "10.0.0.0/8");
        assert_eq!(found("10.0.0.0", Some("255.0.0.0")), "10.0.0.0/8");
        assert_eq!(
            found("::1", Some("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")),
            "::1/128"
        );
        assert_eq!(found("0.0.0.0", Some("0.0.0.0")), "0.0.0.0/0");
        assert_eq!(found("10.0.0.1/8", None), "NoClient");
        assert_eq!(found("db.example", None), "NoAddress");
        assert!(found("10.0.0.0/33", None).contains("write 0 to 32 bits"));
        assert!(found("10.0.0.0", Some("trust")).contains("has no mask"));
        assert!(found("10.0.0.0", Some("255.0.255.0")).contains("with gaps"));
    }
}
