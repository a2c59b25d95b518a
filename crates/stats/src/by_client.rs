//! The requests of each source address, where a run had several.
//!
//! One generator drives all addresses, so the figures of the whole run are over all its samples;
//! nothing is ever computed from these groups, because percentiles of parts do not add up to a
//! percentile of the whole.

use crate::{Group, Sample};
use serde::{Deserialize, Serialize};

/// What came from one source address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientGroup {
    /// The source address.
    pub address: String,
    /// Its requests.
    pub all: Group,
}

/// One group an address; [`Sample::client`] is the index in `addresses`.
pub fn by_client(
    samples: &[Sample],
    addresses: &[String],
    rate_bits_per_sec: u64,
) -> Vec<ClientGroup> {
    let last_end_ns = crate::group::last_end_ns(samples);
    (0..)
        .zip(addresses)
        .map(|(client, address)| {
            let own = samples.iter().filter(|sample| sample.client == client);
            ClientGroup {
                address: address.clone(),
                all: Group::new(
                    &own.copied().collect::<Vec<_>>(),
                    rate_bits_per_sec,
                    last_end_ns,
                ),
            }
        })
        .collect()
}
