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
/// After so many steps the device is asked again how fast it is: a link may come up at another speed,
/// a bond with another slave.
const STEPS_BETWEEN_SPEEDS: u32 = 20;
/// A packet that was sent again is counted and not measured, bytes.
const RESENT_PACKET_BYTES: u64 = 1514;

/// Follows the rate of a device's uplink.
#[derive(Debug)]
pub struct AutoUplink {
    search: Search,
    /// What the device said that it carries.
    speed_mbit: Option<u64>,
    /// The most that the operator wants.
    wanted_most_bits_per_sec: Option<u64>,
    most_bits_per_sec: u64,
    steps: u32,
    journal: Journal,
    /// Whether nothing is changed: what would be decided is told.
    observes: bool,
}

impl AutoUplink {
    /// Of a device, with what the operator says is the most.
    pub fn new(device: &Device, most_bits_per_sec: Option<u64>, observes: bool) -> AutoUplink {
        let speed_mbit = device.speed_mbit();
        let most = most(speed_mbit, most_bits_per_sec);
        AutoUplink {
            search: search_up_to(most),
            speed_mbit,
            wanted_most_bits_per_sec: most_bits_per_sec,
            most_bits_per_sec: most,
            steps: 0,
            journal: Journal::default(),
            observes,
        }
    }

    /// Begins anew where the device has another speed by now.
    fn follow_device(
        &mut self,
        device: &Device,
        bands: Option<&mut Bands>,
    ) -> Result<(), AttachError> {
        self.steps += 1;
        if !self.steps.is_multiple_of(STEPS_BETWEEN_SPEEDS) {
            return Ok(());
        }
        let speed_mbit = device.speed_mbit();
        // One that is down does not say it.
        if speed_mbit.is_none() || speed_mbit == self.speed_mbit {
            return Ok(());
        }
        self.speed_mbit = speed_mbit;
        let most = most(speed_mbit, self.wanted_most_bits_per_sec);
        if most != self.most_bits_per_sec {
            self.most_bits_per_sec = most;
            self.search = search_up_to(most);
            bands.map_or(Ok(()), |bands| bands.set_rate(most))?;
        }
        Ok(())
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
        self.follow_device(device, bands.as_deref_mut())?;
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

/// The most that is searched: what the device carries, or less where the operator says so.
fn most(speed_mbit: Option<u64>, wanted_bits_per_sec: Option<u64>) -> u64 {
    let of_device = speed_mbit.map(|mbit| mbit.saturating_mul(1_000_000));
    let of_device = of_device.unwrap_or(NO_LIMIT_BITS_PER_SEC);
    wanted_bits_per_sec
        .map_or(of_device, |wanted| wanted.min(of_device))
        .max(LEAST_BITS_PER_SEC)
}

fn search_up_to(most_bits_per_sec: u64) -> Search {
    Search::new(Limits {
        most_bits_per_sec,
        least_bits_per_sec: LEAST_BITS_PER_SEC,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_carries_what_it_says_and_no_more_than_the_operator_wants() {
        let mbit = |count: u64| count * 1_000_000;
        assert_eq!(most(Some(100), None), mbit(100));
        assert_eq!(most(Some(1000), Some(mbit(50))), mbit(50));
        assert_eq!(most(Some(10), Some(mbit(50))), mbit(10));
        assert_eq!(most(None, None), NO_LIMIT_BITS_PER_SEC);
        assert_eq!(most(Some(u64::MAX), Some(1)), LEAST_BITS_PER_SEC);
    }
}
