//! What lies between the server and one client: round-trip time and loss. The words in which an
//! experiment asks for it, whatever program makes it real (the emulator here).

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use thiserror::Error;

/// Longest round-trip time: far above any link, and it bounds what the emulator has to hold.
const RTT_MS_MAX: f64 = 10_000.0;
const NS_PER_MS: f64 = 1e6;
const MILLION: f64 = 1e6;

/// Round-trip time and loss between the server and one client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Path {
    /// Added to what the hosts need themselves, nanoseconds; half of it in each direction.
    pub rtt_ns: u64,
    /// Lost packets in a million, at most a million; in each direction, independently of each
    /// other.
    pub loss_ppm: u32,
    /// A packet to the client is held for longer by up to so much, ns, evenly distributed; none
    /// overtakes another.
    pub jitter_ns: u64,
}

impl Path {
    /// From milliseconds (0 to 10 000) and a share of the packets (0 to 1), which is rounded to a
    /// millionth.
    pub fn new(rtt_ms: f64, loss: f64, jitter_ms: f64) -> Result<Path, PathError> {
        if !(0.0..=RTT_MS_MAX).contains(&jitter_ms) {
            return Err(PathError::Jitter(jitter_ms.to_string()));
        }
        if !(0.0..=RTT_MS_MAX).contains(&rtt_ms) {
            return Err(PathError::Rtt(rtt_ms.to_string()));
        }
        if !(0.0..=1.0).contains(&loss) {
            return Err(PathError::Loss(loss.to_string()));
        }
        Ok(Path {
            rtt_ns: (rtt_ms * NS_PER_MS).round() as u64,
            loss_ppm: (loss * MILLION).round() as u32,
            jitter_ns: (jitter_ms * NS_PER_MS).round() as u64,
        })
    }

    /// Round-trip time, milliseconds.
    pub fn rtt_ms(&self) -> f64 {
        self.rtt_ns as f64 / NS_PER_MS
    }

    /// By how much longer a packet to the client may be held, milliseconds.
    pub fn jitter_ms(&self) -> f64 {
        self.jitter_ns as f64 / NS_PER_MS
    }

    /// Share of the packets lost in each direction.
    pub fn loss(&self) -> f64 {
        f64::from(self.loss_ppm) / MILLION
    }
}

/// A client's address and the path to it; written `ADDRESS,rtt_ms=NUMBER,loss=NUMBER,jitter_ms=NUMBER`, all
/// numbers 0 when left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    /// By which its packets are known.
    pub address: Ipv4Addr,
    /// What its packets meet.
    pub path: Path,
}

/// What is wrong with the description of a path or a client.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PathError {
    /// No address in front.
    #[error(
        "`{0}` is not an IPv4 address; a client is ADDRESS,rtt_ms=NUMBER,loss=NUMBER, like 10.0.0.2,rtt_ms=100,loss=0.05"
    )]
    Address(String),
    /// Something other than the two keys.
    #[error("`{0}` is neither rtt_ms=NUMBER, loss=NUMBER nor jitter_ms=NUMBER")]
    Key(String),
    /// A key a second time.
    #[error("`{0}` is given twice; give it once")]
    Twice(&'static str),
    /// Out of range, or no number.
    #[error("rtt_ms={0}: must be a number of milliseconds from 0 to {RTT_MS_MAX}")]
    Rtt(String),
    /// Out of range, or no number.
    #[error("jitter_ms={0}: must be a number of milliseconds from 0 to {RTT_MS_MAX}")]
    Jitter(String),
    /// Out of range, or no number.
    #[error("loss={0}: must be a share of the packets from 0 to 1, like 0.05 for 5 %")]
    Loss(String),
}

impl FromStr for Client {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Client, PathError> {
        let mut parts = text.split(',');
        let address = parts.next().unwrap_or_default();
        let address = address
            .parse()
            .map_err(|_| PathError::Address(address.to_owned()))?;
        let (mut rtt_ms, mut loss, mut jitter_ms) = (None, None, None);
        for part in parts {
            match part.split_once('=') {
                Some(("rtt_ms", value)) => once("rtt_ms", &mut rtt_ms, value, PathError::Rtt)?,
                Some(("loss", value)) => once("loss", &mut loss, value, PathError::Loss)?,
                Some(("jitter_ms", value)) => {
                    once("jitter_ms", &mut jitter_ms, value, PathError::Jitter)?;
                }
                _ => return Err(PathError::Key(part.to_owned())),
            }
        }
        let path = Path::new(
            rtt_ms.unwrap_or(0.0),
            loss.unwrap_or(0.0),
            jitter_ms.unwrap_or(0.0),
        )?;
        Ok(Client { address, path })
    }
}

fn once(
    key: &'static str,
    number: &mut Option<f64>,
    value: &str,
    wrong: fn(String) -> PathError,
) -> Result<(), PathError> {
    let value = value.parse().map_err(|_| wrong(value.to_owned()))?;
    match number.replace(value) {
        Some(_) => Err(PathError::Twice(key)),
        None => Ok(()),
    }
}

impl fmt::Display for Client {
    /// In the form that is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rtt_ms, loss) = (self.path.rtt_ms(), self.path.loss());
        write!(f, "{},rtt_ms={rtt_ms},loss={loss}", self.address)?;
        match self.path.jitter_ms() {
            0.0 => Ok(()),
            jitter_ms => write!(f, ",jitter_ms={jitter_ms}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_left_out_are_zero() {
        let client: Client = "10.0.0.2".parse().unwrap();
        assert_eq!(client.path, Path::default());
        let client: Client = "10.0.0.2,loss=0.05,rtt_ms=0.5".parse().unwrap();
        assert_eq!(
            (client.path.rtt_ns, client.path.loss_ppm),
            (500_000, 50_000)
        );
    }

    #[test]
    fn every_mistake_is_named() {
        for (text, named) in [
            ("", "`` is not an IPv4 address"),
            ("fe80::1,rtt_ms=1", "`fe80::1` is not an IPv4 address"),
            ("10.0.0.2,rtt=5", "`rtt=5` is neither"),
            ("10.0.0.2,", "`` is neither"),
            ("10.0.0.2,rtt_ms=1,rtt_ms=1", "`rtt_ms` is given twice"),
            ("10.0.0.2,jitter_ms=-1", "jitter_ms=-1: must be"),
            ("10.0.0.2,rtt_ms=fast", "rtt_ms=fast: must be"),
            ("10.0.0.2,rtt_ms=-1", "rtt_ms=-1: must be"),
            ("10.0.0.2,rtt_ms=10001", "rtt_ms=10001: must be"),
            ("10.0.0.2,loss=5", "loss=5: must be"),
            ("10.0.0.2,loss=NaN", "loss=NaN: must be"),
        ] {
            let error = text.parse::<Client>().unwrap_err().to_string();
            assert!(error.starts_with(named), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(
            address: u32, rtt_us in 0..=10_000_000_u64, loss_ppm in 0..=1_000_000_u32,
            jitter_us in 0..=10_000_000_u64,
        ) {
            let path = Path { rtt_ns: rtt_us * 1_000, loss_ppm, jitter_ns: jitter_us * 1_000 };
            let client = Client { address: address.into(), path };
            prop_assert_eq!(client.to_string().parse(), Ok(client));
        }

        #[test]
        fn any_text_is_read_or_refused_in_one_line(text: String) {
            if let Err(error) = text.parse::<Client>() {
                prop_assert!(text.contains('\n') || !error.to_string().contains('\n'));
            }
        }
    }
}
