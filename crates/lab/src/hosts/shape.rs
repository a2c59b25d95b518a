//! The limit on the link out of the server: a rate and one queue of packets, first in, first out.
//!
//! HTB with a pfifo is preferred: it holds the rate also with a small burst, and its queue counts
//! packets. A kernel without HTB gets TBF. The queue of TBF counts bytes; that is said in the
//! remarks, because a queue of small packets is then longer.

use super::error::HostsError;
use super::tools::{is_unknown_kind, tc_in};

/// A full frame.
const FRAME_BYTES: u64 = 1514;
/// One frame and a little: below it a bucket never fills for a frame.
const BURST_BYTES_MIN: u64 = 1600;
/// What a bucket holds as time at the rate, us; ten frames at 100 Mbit/s, which lost no throughput
/// there.
const BURST_US: u64 = 1_212;

/// The kinds of qdisc that can limit a rate, best first.
const KINDS: [Kind; 2] = [Kind::Htb, Kind::Tbf];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Htb,
    Tbf,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Htb => "HTB",
            Kind::Tbf => "TBF",
        }
    }

    /// The arguments of `tc` that put it on the device.
    fn commands(self, device: &str, rate_bits_per_sec: u64, queue_packets: u32) -> Vec<String> {
        let burst = burst_bytes(rate_bits_per_sec);
        match self {
            Kind::Htb => vec![
                format!("qdisc add dev {device} root handle 1: htb default 1"),
                format!(
                    "class add dev {device} parent 1: classid 1:1 htb rate {rate_bits_per_sec}bit burst {burst} cburst {burst} quantum {FRAME_BYTES}"
                ),
                format!("qdisc add dev {device} parent 1:1 handle 10: pfifo limit {queue_packets}"),
            ],
            Kind::Tbf => {
                let limit = u64::from(queue_packets) * FRAME_BYTES;
                vec![format!(
                    "qdisc add dev {device} root handle 1: tbf rate {rate_bits_per_sec}bit burst {burst} limit {limit}"
                )]
            }
        }
    }
}

/// Limits the device; a remark where another qdisc than HTB had to do.
pub fn shape(
    namespace: &str,
    device: &str,
    rate_bits_per_sec: u64,
    queue_packets: u32,
) -> Result<Option<String>, HostsError> {
    let used = first_known(|kind| {
        kind.commands(device, rate_bits_per_sec, queue_packets)
            .iter()
            .try_for_each(|command| tc_in(namespace, command))
    })?;
    Ok((used != Kind::Htb).then(|| {
        format!(
            "this kernel has no HTB: {} limits the link, with room for the bytes of {queue_packets} full packets instead of {queue_packets} packets",
            used.name()
        )
    }))
}

/// Tries the kinds in order and gives the first the kernel knows.
fn first_known(mut set_up: impl FnMut(Kind) -> Result<(), HostsError>) -> Result<Kind, HostsError> {
    for kind in KINDS {
        match set_up(kind) {
            Ok(()) => return Ok(kind),
            Err(error) if is_unknown_kind(&error) => (),
            Err(error) => return Err(error),
        }
    }
    Err(HostsError::NoShaper {
        kinds: KINDS.map(Kind::name).join(", "),
    })
}

fn burst_bytes(rate_bits_per_sec: u64) -> u64 {
    let bytes = u128::from(rate_bits_per_sec) * u128::from(BURST_US) / 8_000_000;
    u64::try_from(bytes)
        .unwrap_or(u64::MAX)
        .max(BURST_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown() -> HostsError {
        HostsError::Command {
            command: "tc".into(),
            message: "Error: Specified qdisc kind is unknown.".into(),
        }
    }

    #[test]
    fn the_bucket_holds_about_a_millisecond() {
        assert_eq!(burst_bytes(1_000_000), 1600);
        assert_eq!(burst_bytes(10_000_000), 1600);
        assert_eq!(burst_bytes(100_000_000), 15_150);
    }

    #[test]
    fn a_kernel_without_htb_gets_tbf() {
        let used = first_known(|kind| match kind {
            Kind::Htb => Err(unknown()),
            Kind::Tbf => Ok(()),
        });
        assert_eq!(used.unwrap(), Kind::Tbf);
        let error = first_known(|_| Err(unknown())).unwrap_err().to_string();
        assert!(error.contains("HTB, TBF"), "{error}");
    }

    #[test]
    fn another_refusal_is_not_taken_for_a_missing_kind() {
        let mut tried = 0;
        let error = first_known(|_| {
            tried += 1;
            Err(HostsError::NotPermitted)
        });
        assert!(matches!(error, Err(HostsError::NotPermitted)));
        assert_eq!(tried, 1);
    }

    #[test]
    fn tbf_counts_the_bytes_of_full_packets() {
        let commands = Kind::Tbf.commands("v0", 10_000_000, 100);
        assert_eq!(
            commands,
            ["qdisc add dev v0 root handle 1: tbf rate 10000000bit burst 1600 limit 151400"]
        );
    }
}
