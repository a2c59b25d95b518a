//! A server with a link that is soon busy.

pub use crate::site::Site;
use crate::site::{CHUNK_BYTES, rooted};
use sooner_link::StreamRule;
use sooner_uplink::{Mechanism, Uplink, UplinkConfig};
use sooner_web::config::{Config, StreamOrder};

/// Slow enough for a few hundred kilobytes to be a queue, fast enough for a test.
const RATE_BITS_PER_SEC: u64 = 20_000_000;

impl Site {
    /// Serves an empty folder through a link that is soon busy.
    pub fn start_ordered() -> Self {
        Self::start_ordered_with("")
    }

    /// The same with more keys of the table `[uplink]`.
    pub fn start_ordered_with(keys: &str) -> Self {
        let config = rooted(&format!("[uplink]\nrate = \"20mbit\"\n{keys}"));
        Self::run(&config, CHUNK_BYTES, ordered)
    }
}

fn ordered(config: &Config) -> Uplink {
    let mut uplink = UplinkConfig::new(RATE_BITS_PER_SEC, config.uplink.policy());
    uplink.mechanism = Mechanism::UserSpace;
    uplink.streams = match config.uplink.streams {
        StreamOrder::Standard => StreamRule::Standard,
        StreamOrder::Size => StreamRule::Size,
    };
    Uplink::start(&uplink).unwrap()
}
