//! The names of servers in an experiment.toml: `nginx`, `apache-event`, `nginx + attach`, `sooner
//! srpt user-space --trickle 0`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::Peer;
use super::queued::Queue;

/// How a limit is given to nginx.
const LIMIT_CONN: &str = "--limit-conn";
/// How it is told that another one has the files.
const PROXY: &str = "--proxy";
/// How Node is told to say no lengths.
const CHUNKED: &str = "--chunked";
/// What stands between a server's name and what is attached beside it.
const PLUS_ATTACH: [&str; 2] = ["+", "attach"];

/// A name that no server has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "peer `{name}`: nginx, `nginx --limit-conn 50`, `nginx --proxy fast` or `slow`, apache-event, apache-prefork, caddy, node, `node --chunked` and `sooner POLICY MECHANISM` (such as `sooner srpt user-space`; mechanisms: user-space, bands, both) are possible, and all but the last with ` + attach` behind it, or with ` + cake`, ` + cake besteffort flows`, ` + fq_codel`, ` + fq` or ` + nftables`"
)]
pub struct PeerNameError {
    name: String,
}

impl FromStr for Peer {
    type Err = PeerNameError;

    fn from_str(name: &str) -> Result<Peer, PeerNameError> {
        parse(name).ok_or_else(|| PeerNameError { name: name.into() })
    }
}

impl fmt::Display for Peer {
    /// The name that is read back as the same server.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Nginx { limit_conn: None } => f.write_str("nginx"),
            Peer::Nginx {
                limit_conn: Some(count),
            } => write!(f, "nginx {LIMIT_CONN} {count}"),
            Peer::NginxProxy { is_slow } => {
                write!(f, "nginx {PROXY} {}", super::nginx::speed(*is_slow))
            }
            Peer::ApacheEvent => f.write_str("apache-event"),
            Peer::ApachePrefork => f.write_str("apache-prefork"),
            Peer::Caddy => f.write_str("caddy"),
            Peer::Node { is_chunked: false } => f.write_str("node"),
            Peer::Node { is_chunked: true } => write!(f, "node {CHUNKED}"),
            Peer::Attached { server, extra } => {
                write!(f, "{server} {}", PLUS_ATTACH.join(" "))?;
                extra.iter().try_for_each(|word| write!(f, " {word}"))
            }
            Peer::Queued { server, queue } => write!(f, "{server} + {queue}"),
            Peer::Sooner {
                policy,
                mechanism,
                extra,
            } => {
                write!(f, "sooner {policy} {mechanism}")?;
                extra.iter().try_for_each(|word| write!(f, " {word}"))
            }
        }
    }
}

fn parse(name: &str) -> Option<Peer> {
    let words: Vec<&str> = name.split_whitespace().collect();
    match words.windows(2).position(|pair| pair == PLUS_ATTACH) {
        Some(at) => parse_attached(&words[..at], &words[at + 2..]),
        None => parse_queued(&words).or_else(|| parse_server(&words)),
    }
}

/// A server behind a queue.
fn parse_queued(words: &[&str]) -> Option<Peer> {
    let at = words.iter().position(|word| *word == "+")?;
    let name = words[at + 1..].join(" ");
    let queue = Queue::ALL.into_iter().find(|queue| queue.name() == name)?;
    let server = parse_server(&words[..at])?;
    let is_ours = matches!(server, Peer::Sooner { .. });
    (!is_ours).then(|| Peer::Queued {
        server: Box::new(server),
        queue,
    })
}

/// A server with a scheduler attached beside it; ours needs none.
fn parse_attached(server: &[&str], flags: &[&str]) -> Option<Peer> {
    let server = parse_server(server).filter(|server| !matches!(server, Peer::Sooner { .. }))?;
    let begins_with_flag = flags.first().is_none_or(|word| word.starts_with("--"));
    begins_with_flag.then(|| Peer::Attached {
        server: Box::new(server),
        extra: flags.iter().map(ToString::to_string).collect(),
    })
}

fn parse_server(words: &[&str]) -> Option<Peer> {
    let mut words = words.iter().copied();
    let peer = match words.next()? {
        "nginx" => match words.next() {
            None => Peer::Nginx { limit_conn: None },
            Some(LIMIT_CONN) => Peer::Nginx {
                limit_conn: Some(words.next()?.parse().ok()?),
            },
            Some(PROXY) => Peer::NginxProxy {
                is_slow: match words.next()? {
                    "fast" => false,
                    "slow" => true,
                    _ => return None,
                },
            },
            Some(_) => return None,
        },
        "apache-event" => Peer::ApacheEvent,
        "apache-prefork" => Peer::ApachePrefork,
        "caddy" => Peer::Caddy,
        "node" => Peer::Node {
            is_chunked: match words.next() {
                Some(CHUNKED) => true,
                Some(_) => return None,
                None => false,
            },
        },
        "sooner" => {
            let policy = words.next().filter(|word| is_name(word))?.into();
            let mechanism = words.next()?.parse().ok()?;
            let extra: Vec<String> = words.by_ref().map(String::from).collect();
            // The first word behind the mechanism is a flag, or the user wrote a third name.
            if extra.first().is_some_and(|word| !word.starts_with("--")) {
                return None;
            }
            Peer::Sooner {
                policy,
                mechanism,
                extra,
            }
        }
        _ => return None,
    };
    words.next().is_none().then_some(peer)
}

/// Whether it can be the name of a policy; which ones there are, the server knows.
fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::peers::Mechanism;

    #[test]
    fn names_are_read_back() {
        let names = [
            "nginx",
            "nginx --limit-conn 50",
            "apache-event",
            "apache-prefork",
            "caddy",
            "node",
            "node --chunked",
            "nginx --proxy slow",
            "nginx --proxy fast + attach",
            "nginx + attach",
            "nginx + cake besteffort flows",
            "apache-event + nftables",
            "apache-event + attach --share 0",
            "sooner srpt user-space",
            "sooner fair both --access-log off",
        ];
        for name in names {
            assert_eq!(name.parse::<Peer>().unwrap().to_string(), name);
        }
        let peer: Peer = " sooner  las bands ".parse().unwrap();
        let expected = Peer::Sooner {
            policy: "las".into(),
            mechanism: Mechanism::Bands,
            extra: Vec::new(),
        };
        assert_eq!(peer, expected);
    }

    #[test]
    fn other_names_are_refused_with_those_there_are() {
        let names = [
            "",
            "apache",
            "nginx x",
            "nginx --limit-conn",
            "nginx --limit-conn 0",
            "nginx --proxy",
            "node --x",
            "sooner",
            "sooner srpt",
            "sooner srpt magic",
            "sooner --x both",
            "sooner srpt both x",
            "sooner srpt both + attach",
            "nginx + attachx",
            "nginx + attach x",
            "nginx+attach",
            "sooner srpt both --x +\nattach",
        ];
        for name in names {
            let error = name.parse::<Peer>().unwrap_err().to_string();
            assert!(error.contains("apache-event"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_what_is_accepted_reads_back(text in "(sooner )?[ a-z-]{0,30}( \\+ attach)?[ a-z-]{0,9}") {
            if let Ok(peer) = text.parse::<Peer>() {
                prop_assert_eq!(peer.to_string().parse::<Peer>(), Ok(peer));
            }
        }
    }
}
