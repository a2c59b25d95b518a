//! An uplink with a rate that is found: what the programs measure goes into the search, and what that
//! decides onto the device.

use sooner_bottleneck::{Decision, Journal, Limits, NO_LIMIT_BITS_PER_SEC, Search, Totals, limit};
use sooner_kernel::bands::Bands;
use sooner_kernel::classifier::Classifier;
use sooner_kernel::device::Device;

use super::attached::AttachError;
use super::snapshot::{DecisionView, UplinkView};

/// Below this there is nothing to search, bits a second.
const LEAST_BITS_PER_SEC: u64 = 100_000;
/// Delays taken in one go, so that a flood of them leaves time for all else.
const DELAYS_AT_ONCE: usize = 20_000;
/// A packet that was sent again is counted and not measured, bytes.
const RESENT_PACKET_BYTES: u64 = 1514;

/// Follows the rate of a device's uplink.
#[derive(Debug)]
pub struct AutoUplink {
    search: Search,
    most_bits_per_sec: u64,
    journal: Journal,
    /// Whether nothing is changed: what would be decided is told.
    observes: bool,
}

impl AutoUplink {
    /// Of a device, with what the operator says is the most.
    pub fn new(device: &Device, most_bits_per_sec: Option<u64>, observes: bool) -> AutoUplink {
        let of_device = device.speed_mbit().map(|mbit| mbit * 1_000_000);
        let of_device = of_device.unwrap_or(NO_LIMIT_BITS_PER_SEC);
        let most = most_bits_per_sec
            .map_or(of_device, |most| most.min(of_device))
            .max(LEAST_BITS_PER_SEC);
        let limits = Limits {
            most_bits_per_sec: most,
            least_bits_per_sec: LEAST_BITS_PER_SEC,
        };
        AutoUplink {
            search: Search::new(limits),
            most_bits_per_sec: most,
            journal: Journal::default(),
            observes,
        }
    }

    /// The rate before anything is known.
    pub fn most_bits_per_sec(&self) -> u64 {
        self.most_bits_per_sec
    }

    /// What may leave now.
    pub fn rate_bits_per_sec(&self) -> u64 {
        self.search.rate_bits_per_sec()
    }

    /// What the link is believed to carry; none: not known.
    pub fn carries_bits_per_sec(&self) -> Option<u64> {
        self.search.carries_bits_per_sec()
    }

    /// Takes what was measured up to `now_ns`, and puts what follows on the device; gives what is
    /// worth a line in a log.
    pub fn step(
        &mut self,
        classifier: &mut Classifier,
        device: &Device,
        mut bands: Option<&mut Bands>,
        now_ns: u64,
    ) -> Result<Option<Decision>, AttachError> {
        for _ in 0..DELAYS_AT_ONCE {
            let Some(delay) = classifier.next_delay() else {
                break;
            };
            let delay_ns = u64::from(delay.delay_us) * 1000;
            self.search
                .note_delay(delay.client, delay.at_ns, delay_ns, delay.is_light);
        }
        let counted = classifier.counted().map_err(AttachError::Counters)?;
        // Drivers count when they like; the bands count each packet.
        let sent_bytes = match &mut bands {
            Some(bands) => bands.sent_bytes(),
            None => device.tx_bytes(),
        };
        let sent_bytes = sent_bytes.map_err(AttachError::Counters)?;
        let decision = self.search.step(Totals {
            at_ns: now_ns,
            sent_bytes,
            measured_bytes: counted.left_bytes,
            measured_payload_bytes: counted.left_payload_bytes,
            delivered_payload_bytes: counted.delivered_bytes,
            resent_bytes: counted.resent_packets * RESENT_PACKET_BYTES,
        });
        let Some(decision) = decision else {
            return Ok(None);
        };
        match bands {
            Some(bands) => bands.set_rate(decision.rate_bits_per_sec)?,
            None => self.search.decline(now_ns),
        }
        Ok(self.journal.note(decision).then_some(decision))
    }

    /// What `attach top` shows.
    pub fn view(&self, now_ns: u64) -> UplinkView {
        let waits = self.search.waits();
        UplinkView {
            state: self.search.state().to_string(),
            observes: self.observes,
            most_bits_per_sec: limit(self.most_bits_per_sec),
            carries_bits_per_sec: self.search.carries_bits_per_sec(),
            delivered_bits_per_sec: self.search.delivered_bits_per_sec(),
            waits_ms: waits.common_ms,
            clients: waits.clients as u64,
            light_clients: waits.lights as u64,
            decided: self.journal.count(),
            decisions: self.journal.last().map(|it| view_of(it, now_ns)).collect(),
        }
    }
}

fn view_of(decision: &Decision, now_ns: u64) -> DecisionView {
    DecisionView {
        ago_s: now_ns.saturating_sub(decision.at_ns) as f64 / 1e9,
        state: decision.state.to_string(),
        rate_bits_per_sec: limit(decision.rate_bits_per_sec),
        carries_bits_per_sec: decision.carries_bits_per_sec,
        waits_ms: decision.waits_ms,
        why: decision.why.to_string(),
    }
}
