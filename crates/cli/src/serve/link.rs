//! From the table `[uplink]` to what the uplink is told.
use sooner_link::{LinkLimits, StreamRule};
use sooner_operate::say;
use sooner_uplink::{Mechanism, NO_LIMIT_BITS_PER_SEC, UplinkConfig};
use sooner_web::config::{MechanismName, Misconfigured, StreamOrder, UplinkTable};
use sooner_workload::{Rate, UplinkRate};
use std::net::SocketAddr;
use std::sync::Arc;

/// By which sizes are chosen where the rate is found, later.
const NOMINAL_BITS_PER_SEC: u64 = 20_000_000;
/// Smaller reads would cost more system calls than they save memory.
const CHUNK_BYTES_MIN: u64 = 16 << 10;
/// Bytes read from a file at once where nothing is ordered.
const CHUNK_BYTES_UNORDERED: u64 = 64 << 10;

/// Bytes in a TLS record (RFC 8446, 5.1), at least and at most.
const RECORD_BYTES_MIN: u64 = 4 << 10;
const RECORD_BYTES_MAX: u64 = 16 << 10;

/// The link as the configuration requests it.
#[derive(Debug, Clone)]
pub struct Link {
    /// Its rate; none: nothing is ordered.
    pub rate: Option<UplinkRate>,
    /// Whether responses are ordered on it.
    pub is_ordered: bool,
}

impl Link {
    /// Reads the table's rate.
    pub fn of(table: &UplinkTable) -> Result<Self, Misconfigured> {
        let rate = table
            .rate
            .as_ref()
            .map(|text| {
                text.get_ref()
                    .parse::<UplinkRate>()
                    .map_err(|error| Misconfigured::at(text, "uplink.rate", error))
            })
            .transpose()?;
        let (is_auto, mechanism) = (matches!(rate, Some(UplinkRate::Auto(_))), table.mechanism());
        if let (true, MechanismName::Bands, Some(text)) = (is_auto, mechanism, &table.rate) {
            let words = "with bands alone round trips contain what waits in them; choose uplink.mechanism \"both\" or \"user-space\", or give a rate";
            return Err(Misconfigured::at(text, "uplink.rate", words));
        }
        let is_ordered = rate.is_some() && table.mechanism() != MechanismName::None;
        Ok(Self { rate, is_ordered })
    }

    /// The rate, if responses are to be ordered.
    pub fn ordered_rate(&self) -> Option<UplinkRate> {
        self.rate.filter(|_| self.is_ordered)
    }

    /// What to say of a rate that cannot be found, because all clients are on this host.
    pub fn remark(&self, addresses: &[SocketAddr]) -> Option<&'static str> {
        let is_auto = matches!(self.ordered_rate(), Some(UplinkRate::Auto(_)));
        let is_local = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
        (is_auto && addresses.iter().all(is_local)).then_some(
            "uplink auto: all listeners are on loopback, where no queue beyond this host can be \
             seen, so no rate is found; listen on the address that faces the clients, or give the \
             rate",
        )
    }

    /// By which sizes are chosen, bits a second; none: nothing is ordered.
    fn nominal_bits_per_sec(&self) -> Option<u64> {
        let rate = self.ordered_rate()?.known();
        Some(rate.map_or(NOMINAL_BITS_PER_SEC, Rate::bits_per_sec))
    }

    /// Bytes to read from a file at once: whole quanta, so that a chunk does not end in a small
    /// packet.
    pub fn chunk_bytes(&self) -> usize {
        let bytes = self
            .nominal_bits_per_sec()
            .map_or(CHUNK_BYTES_UNORDERED, |rate| {
                let quantum_bytes = LinkLimits::at_rate(rate).quantum_bytes;
                CHUNK_BYTES_MIN.div_ceil(quantum_bytes) * quantum_bytes
            });
        bytes as usize
    }

    /// Bytes in a TLS record: what a slow link carries in 3 ms, because a response that is kept
    /// from silence needs a whole record for its client to notice. Below 4 KiB the records' own
    /// bytes begin to cost more than half a percent.
    pub fn record_bytes(&self) -> u64 {
        self.nominal_bits_per_sec()
            .map_or(RECORD_BYTES_MAX, |rate| {
                (rate / 8 * 3 / 1000).clamp(RECORD_BYTES_MIN, RECORD_BYTES_MAX)
            })
    }

    /// What to tell the uplink of a server that listens on `addresses`; none: it is not ordered.
    pub fn uplink_config(
        &self,
        table: &UplinkTable,
        addresses: &[SocketAddr],
    ) -> Option<UplinkConfig> {
        let rate_bits_per_sec = match self.ordered_rate()? {
            UplinkRate::Known(rate) => rate.bits_per_sec(),
            UplinkRate::Auto(most) => most.map_or(NO_LIMIT_BITS_PER_SEC, Rate::bits_per_sec),
        };
        let mut config = UplinkConfig::new(rate_bits_per_sec, table.policy());
        if matches!(self.rate, Some(UplinkRate::Auto(_))) {
            config.is_auto = true;
        }
        config.tell = Some(Arc::new(|line: &str| say(line)));
        config.mechanism = match table.mechanism() {
            MechanismName::Auto | MechanismName::None => Mechanism::Auto,
            MechanismName::UserSpace => Mechanism::UserSpace,
            MechanismName::Bands => Mechanism::Bands,
            MechanismName::Both => Mechanism::Both,
        };
        config.by_client = table.is_by_client();
        config.bands = table.bands();
        config.ahead = table.ahead();
        config.streams = match table.streams {
            StreamOrder::Standard => StreamRule::Standard,
            StreamOrder::Size => StreamRule::Size,
        };
        config.device = table.device.as_ref().map(|name| name.get_ref().clone());
        config.listen = addresses.iter().map(SocketAddr::ip).collect();
        config.replace_qdisc = table.replace_qdisc;
        Some(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_web::config::Config;

    #[test]
    fn a_rate_is_not_looked_for_on_loopback_in_silence() {
        let remarks = |rate: &str, addresses: &[&str]| {
            let addresses: Vec<SocketAddr> =
                addresses.iter().map(|text| text.parse().unwrap()).collect();
            let config = Config::parse(&format!("[uplink]\nrate = \"{rate}\"")).unwrap();
            Link::of(&config.uplink)
                .unwrap()
                .remark(&addresses)
                .is_some()
        };
        assert!(remarks("auto", &["127.0.0.1:80", "[::1]:80"]));
        assert!(!remarks("auto", &["127.0.0.1:80", "10.0.0.1:80"]));
        assert!(!remarks("10mbit", &["127.0.0.1:80"]));
    }

    fn link(text: &str) -> Result<Link, Misconfigured> {
        Link::of(&Config::parse(text).unwrap().uplink)
    }

    #[test]
    fn a_rate_with_a_wrong_unit_is_placed() {
        let mistake = link("[uplink]\nrate = \"10mbt\"").unwrap_err();
        assert_eq!(mistake.span, Some(16..23));
        assert!(
            mistake
                .message
                .contains("`mbt` is not a unit of a rate; use bit, kbit, mbit, gbit or MB/s")
        );
    }

    #[test]
    fn records_are_short_on_a_slow_link() {
        for (rate, bytes) in [("1mbit", 4096), ("20mbit", 7500), ("100mbit", 16384)] {
            let ordered = link(&format!("[uplink]\nrate = \"{rate}\"")).unwrap();
            assert_eq!(ordered.record_bytes(), bytes, "{rate}");
        }
        assert_eq!(link("").unwrap().record_bytes(), 16384);
    }

    #[test]
    fn chunks_are_whole_quanta() {
        assert_eq!(link("").unwrap().chunk_bytes(), 64 << 10);
        let ordered = link("[uplink]\nrate = \"10mbit\"").unwrap();
        let quantum = LinkLimits::at_rate(10_000_000).quantum_bytes as usize;
        assert_eq!(ordered.chunk_bytes() % quantum, 0);
        assert!(ordered.chunk_bytes() >= 16 << 10);
        let unordered = link("[uplink]\nrate = \"10mbit\"\nmechanism = \"none\"").unwrap();
        assert_eq!(unordered.ordered_rate(), None);
    }

    #[test]
    fn a_rate_that_is_found_has_a_most() {
        let addresses = ["127.0.0.1:80".parse().unwrap()];
        for (text, most) in [("auto", NO_LIMIT_BITS_PER_SEC), ("auto:50mbit", 50_000_000)] {
            let table = format!("[uplink]\nrate = \"{text}\"");
            let config = Config::parse(&table).unwrap();
            let found = Link::of(&config.uplink).unwrap();
            let told = found.uplink_config(&config.uplink, &addresses).unwrap();
            assert_eq!((told.rate_bits_per_sec, told.is_auto), (most, true));
            assert_eq!(found.record_bytes(), 7500);
        }
        let refused = link("[uplink]\nrate = \"auto\"\nmechanism = \"bands\"").unwrap_err();
        assert!(refused.message.contains("choose uplink.mechanism"));
    }
}
