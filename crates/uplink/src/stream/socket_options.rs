//! What the kernel is asked and told about a connection's socket: the network to its client, its
//! priority band, how much it may hold.

use super::GatedStream;
use sooner_kernel::socket::{self, TcpInfo};
use sooner_link::PathSample;
use sooner_policy::Time;

/// Bytes between two looks at the network to the client: as often as SWIFT weighs a response again.
const SAMPLE_BYTES: u64 = 8192;
/// Unsent bytes in the socket of a connection with streams where writes are not paced: enough to
/// keep a fast client busy, and few enough that a change of order is soon felt (RFC 9218, 10: do
/// not buffer what cannot be sent).
const STREAMS_UNSENT_BYTES_MAX: u32 = 131_072;
const NS_PER_US: u64 = 1_000;

impl GatedStream {
    /// Looks at the network to the client as the handshake left it, so that the first response has
    /// a rank.
    pub(crate) fn sample_path_first(&mut self) {
        if self.shared.asks_for_paths {
            self.sample_path();
        }
    }

    /// Looks at the network to the client when a response begins, and again after so many bytes;
    /// never under a policy that does not ask.
    pub(super) fn sample_path_again(&mut self) {
        if !self.shared.asks_for_paths || self.unsampled_bytes == 0 {
            return;
        }
        if self.signals.take_begun() || self.unsampled_bytes >= SAMPLE_BYTES {
            self.sample_path();
        }
    }

    fn sample_path(&mut self) {
        self.unsampled_bytes = 0;
        if let Ok(info) = socket::tcp_info(&self.io) {
            let (mut state, now) = self.shared.lock_at();
            state.link.sample_path(self.flow, sample_of(&info, now));
        }
    }

    /// Tells the socket how much it may hold before it counts as not writable: nothing, so that
    /// what is written is on its way, but where long grants lie ahead of the link. Streams that
    /// share a socket are out of order in it.
    pub(crate) fn limit_unsent(&mut self) {
        let orders = self.shared.is_paced || self.shared.marks_bands;
        let wanted = match (orders, self.signals.has_streams()) {
            (true, false) => Some(self.shared.unsent_bytes_max()),
            (true, true) => Some(1),
            (false, true) => Some(STREAMS_UNSENT_BYTES_MAX),
            (false, false) => None,
        };
        if let Some(bytes) = wanted.filter(|_| wanted != self.unsent_bytes_max) {
            self.unsent_bytes_max = wanted;
            // Where the kernel lacks the option more lies in it, in no order; what comes later is
            // still in order.
            let _ = socket::set_notsent_lowat(&self.io, bytes);
        }
    }

    /// Marks the socket for the band its next bytes belong in.
    ///
    /// Not upwards while packets of it wait in the lower band: the new ones would overtake them,
    /// and TCP take those for lost.
    pub(super) fn update_band(&self) {
        if !self.shared.marks_bands {
            return;
        }
        let Some((band, old)) = self.shared.lock().link.new_band(self.flow) else {
            return;
        };
        let would_overtake = old.is_some_and(|old| band < old) && self.has_packets_in_host();
        if let (Some(priority), false) = (self.shared.priority_of(band), would_overtake) {
            self.shared.lock().link.set_band(self.flow, band);
            // A socket that cannot be marked keeps the band it has: slower, not wrong.
            let _ = socket::set_priority(&self.io, priority);
        }
    }

    fn has_packets_in_host(&self) -> bool {
        socket::in_host_bytes(&self.io).is_ok_and(|bytes| bytes > 0)
    }
}

/// The kernel's part of a sample.
fn sample_of(info: &TcpInfo, at: Time) -> PathSample {
    let has_rtt = info.min_rtt_us > 0 && info.min_rtt_us < u32::MAX;
    PathSample {
        rtt_ns: has_rtt.then(|| u64::from(info.min_rtt_us) * NS_PER_US),
        segment_bytes: info.mss_bytes.into(),
        delivery_bytes_per_sec: info.delivery_rate_bytes_per_sec,
        is_least: info.delivery_rate_is_app_limited,
        at,
        ..PathSample::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_link::PathEstimate;
    use sooner_policy::Path;

    #[test]
    fn what_the_kernel_does_not_know_is_unknown() {
        for min_rtt_us in [0, u32::MAX] {
            let info = TcpInfo {
                min_rtt_us,
                mss_bytes: 1_448,
                ..TcpInfo::default()
            };
            let sample = sample_of(&info, Time::ZERO);
            let mut estimate = PathEstimate::default();
            let path = estimate.add(sample, 1_250_000);
            assert_eq!(path, Path::default());
        }
    }
}
