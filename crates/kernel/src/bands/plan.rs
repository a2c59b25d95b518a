//! The classes, queues and limits of the bands, as values: what `install` asks of the kernel.

use super::BandsError;
use crate::netlink::link::GsoLimits;
use crate::netlink::traffic::{HtbClass, TrafficHandle};

/// How many bands there can be; HTB knows no more priorities.
pub const BAND_COUNT: usize = 8;
/// With fewer there would be no order.
pub const BAND_COUNT_MIN: u8 = 2;
/// Our root qdisc, 5005: (it reads SOOS). By it the bands are recognised.
pub const HANDLE: u32 = 0x5005_0000;
/// Where unmarked packets go: the top band.
pub const DEFAULT_MINOR: u32 = FIRST_MINOR;
/// Packets a band holds. TCP keeps 2 to 5 packets of a connection in the device's queue and the
/// rest in the socket, so a band takes hundreds of busy connections without a loss; what is lost
/// here TCP notices at once and sends again.
pub const QUEUE_LIMIT_PACKETS: u32 = 1000;

/// More would leave too little for the order.
pub const LOWER_SHARE_PER_MILLE_MAX: u16 = 400;

const LINK_MINOR: u32 = 0xff;
/// sch_prio counts its bands from 1, so HTB's leaves do too: a mark means the same to both.
const FIRST_MINOR: u32 = 1;
/// The leaves' queues are 5010: to 5017: at most.
const FIRST_QUEUE: u32 = 0x5010_0000;
const RATE_BITS_PER_SEC_MIN: u64 = 1000;
const GUARANTEE_BYTES_PER_SEC_MIN: u64 = 1000;
/// Frames a second that each band is guaranteed.
const FRAMES_PER_SEC: u64 = 10;
/// Above the frame, so that HTB's rounding never splits a frame's worth of tokens.
const BURST_SLACK_BYTES: u64 = 86;
/// What may leave at once after a pause: less would lose rate to late timers (7 % at 100 Mbit/s
/// with one frame).
const BURST_US: u64 = 1200;
/// The longest a super-packet may occupy the link, unless one frame takes longer.
const SUPER_PACKET_US: u64 = 250;
/// From this rate on longer, as the rate grows, up to that: a gigabit in super-packets of 250 us
/// cost 0.11 processor seconds more than one in the longest (64 KB), and there the processor is
/// nearer its limit than a response is to 250 us.
const LONGER_FROM_BYTES_PER_SEC: u64 = 62_500_000;
const SUPER_PACKET_US_MAX: u64 = 500;
/// TCP takes its headers (about 320 bytes) off the size limit before it divides by the segment
/// size.
const GSO_HEADER_ROOM_BYTES: u64 = 512;

/// What is asked of the kernel for one rate and frame size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    link_bytes_per_sec: u64,
    frame_bytes: u32,
    bands: u8,
    /// What all bands below the top are guaranteed together, thousandths of the link.
    lower_share_per_mille: u16,
}

impl Plan {
    pub fn new(
        rate_bits_per_sec: u64,
        frame_bytes: u32,
        bands: u8,
        lower_share_per_mille: u16,
    ) -> Result<Plan, BandsError> {
        if rate_bits_per_sec < RATE_BITS_PER_SEC_MIN {
            return Err(BandsError::Rate { rate_bits_per_sec });
        }
        Ok(Plan {
            link_bytes_per_sec: rate_bits_per_sec / 8,
            frame_bytes,
            bands: bands.clamp(BAND_COUNT_MIN, BAND_COUNT as u8),
            lower_share_per_mille: lower_share_per_mille.min(LOWER_SHARE_PER_MILLE_MAX),
        })
    }

    /// How many there are.
    pub fn bands(&self) -> u8 {
        self.bands
    }

    /// The link's class and those of the bands below it, parents first.
    pub fn classes(&self, device: u32) -> Vec<(TrafficHandle, HtbClass)> {
        let link = (
            place(device, HANDLE | LINK_MINOR, HANDLE),
            self.class(self.link_bytes_per_sec, self.link_burst_bytes(), 0),
        );
        let leaves = (0..self.bands).map(|band| {
            let class = self.class(
                self.guarantee_bytes_per_sec(),
                self.frame_burst_bytes(),
                band.into(),
            );
            (place(device, leaf_handle(band), HANDLE | LINK_MINOR), class)
        });
        std::iter::once(link).chain(leaves).collect()
    }

    /// Where the queues of the leaves are.
    pub fn queues(&self, device: u32) -> impl Iterator<Item = TrafficHandle> + use<> {
        (0..self.bands).map(move |band| {
            place(
                device,
                FIRST_QUEUE + (u32::from(band) << 16),
                leaf_handle(band),
            )
        })
    }

    fn super_packet_us(&self) -> u64 {
        let longer_us = u128::from(SUPER_PACKET_US) * u128::from(self.link_bytes_per_sec)
            / u128::from(LONGER_FROM_BYTES_PER_SEC);
        longer_us.clamp(SUPER_PACKET_US.into(), SUPER_PACKET_US_MAX.into()) as u64
    }

    /// The limits on super-packets, never above those a device has.
    pub fn gso_limits(&self, previous: GsoLimits) -> GsoLimits {
        let frame_bytes = u64::from(self.frame_bytes.max(1));
        let bytes = self
            .link_bytes_per_sec
            .saturating_mul(self.super_packet_us())
            / 1_000_000;
        let segments = (bytes / frame_bytes).max(1);
        let size_bytes =
            u32::try_from(segments * frame_bytes + GSO_HEADER_ROOM_BYTES).unwrap_or(u32::MAX);
        GsoLimits {
            segments: previous
                .segments
                .min(u32::try_from(segments).unwrap_or(u32::MAX)),
            size_bytes: previous.size_bytes.min(size_bytes),
            ipv4_size_bytes: previous.ipv4_size_bytes.map(|bytes| bytes.min(size_bytes)),
        }
    }

    fn class(&self, rate_bytes_per_sec: u64, burst_bytes: u64, priority: u32) -> HtbClass {
        HtbClass {
            rate_bytes_per_sec,
            ceil_bytes_per_sec: self.link_bytes_per_sec,
            burst_bytes,
            ceil_burst_bytes: self.link_burst_bytes(),
            quantum_bytes: self.frame_bytes,
            priority,
        }
    }

    /// What each band may send whatever the others do.
    ///
    /// A frame that TCP finds waiting for longer than its timer (200 ms at least) makes it send
    /// less from then on, and its connection idle where it is the only one left to send: so a frame
    /// gets out within 100 ms, where that costs no more than a 64th of the link. Where only the
    /// bands themselves guard the largest from starving, the lower ones divide the requested share.
    fn guarantee_bytes_per_sec(&self) -> u64 {
        let lower_bands = u64::from(self.bands) - 1;
        let share =
            self.link_bytes_per_sec * u64::from(self.lower_share_per_mille) / 1000 / lower_bands;
        (u64::from(self.frame_bytes) * FRAMES_PER_SEC)
            .min(self.link_bytes_per_sec / 64)
            .max(self.link_bytes_per_sec / 1000)
            .max(GUARANTEE_BYTES_PER_SEC_MIN)
            .max(share)
            .min(self.link_bytes_per_sec / 16)
            .max(1)
    }

    fn frame_burst_bytes(&self) -> u64 {
        u64::from(self.frame_bytes) + BURST_SLACK_BYTES
    }

    fn link_burst_bytes(&self) -> u64 {
        self.frame_burst_bytes()
            .max(self.link_bytes_per_sec.saturating_mul(BURST_US) / 1_000_000)
    }
}

/// The class of a band, which is also the `SO_PRIORITY` that selects it.
pub fn leaf_handle(band: u8) -> u32 {
    HANDLE | (FIRST_MINOR + u32::from(band).min(BAND_COUNT as u32 - 1))
}

pub fn place(device: u32, handle: u32, parent: u32) -> TrafficHandle {
    TrafficHandle {
        device,
        handle,
        parent,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UNLIMITED: GsoLimits = GsoLimits {
        size_bytes: 65536,
        segments: 65535,
        ipv4_size_bytes: Some(65536),
    };

    #[test]
    fn ten_megabit() {
        let plan = Plan::new(10_000_000, 1514, 8, 0).unwrap();
        let classes = plan.classes(2);
        assert_eq!(classes.len(), 9);
        assert_eq!(
            (classes[0].1.rate_bytes_per_sec, classes[0].1.burst_bytes),
            (1_250_000, 1600)
        );
        for (band, (place, class)) in classes[1..].iter().enumerate() {
            assert_eq!(
                (place.handle, place.parent),
                (0x5005_0001 + band as u32, 0x5005_00ff)
            );
            assert_eq!(
                (
                    class.rate_bytes_per_sec,
                    class.ceil_bytes_per_sec,
                    class.priority
                ),
                (15_140, 1_250_000, band as u32)
            );
        }
        let limits = plan.gso_limits(UNLIMITED);
        assert_eq!(
            (limits.segments, limits.size_bytes, limits.ipv4_size_bytes),
            (1, 2026, Some(2026))
        );
    }

    #[test]
    fn fewer_bands_have_the_same_shares() {
        let [two, eight] = [2, 8].map(|bands| Plan::new(10_000_000, 1514, bands, 0).unwrap());
        assert_eq!(two.classes(2), eight.classes(2)[..3]);
        assert_eq!(two.queues(2).count(), 2);
        assert_eq!(Plan::new(10_000_000, 1514, 1, 0).unwrap(), two);
        assert_eq!(Plan::new(10_000_000, 1514, 9, 0).unwrap(), eight);
    }

    #[test]
    fn the_lower_bands_divide_the_share_asked_for() {
        let of_leaf = |share| {
            let plan = Plan::new(1_000_000_000, 1514, 8, share).unwrap();
            plan.classes(2)[8].1.rate_bytes_per_sec
        };
        assert_eq!([0, 50, 999].map(of_leaf), [125_000, 892_857, 7_142_857]);
    }

    #[test]
    fn a_gigabit_keeps_small_super_packets() {
        let plan = Plan::new(1_000_000_000, 1514, 8, 0).unwrap();
        assert_eq!(plan.gso_limits(UNLIMITED).segments, 41);
        assert_eq!(plan.classes(2)[0].1.burst_bytes, 150_000);
    }

    #[test]
    fn super_packets_are_longer_where_the_processor_is_the_limit() {
        let segments = |bits_per_sec| {
            let plan = Plan::new(bits_per_sec, 1514, 8, 0).unwrap();
            plan.gso_limits(UNLIMITED).segments
        };
        let rates = [100, 500, 900, 1000, 10_000].map(|mbit| mbit * 1_000_000);
        assert_eq!(rates.map(segments), [2, 10, 33, 41, 412]);
    }

    #[test]
    fn a_device_without_super_packets_stays_as_it_is() {
        let small = GsoLimits {
            size_bytes: 1000,
            segments: 1,
            ipv4_size_bytes: None,
        };
        assert_eq!(
            Plan::new(1_000_000_000, 1514, 8, 0)
                .unwrap()
                .gso_limits(small),
            small
        );
    }

    #[test]
    fn bands_beyond_the_last_are_the_last() {
        assert_eq!(leaf_handle(7), 0x5005_0008);
        assert_eq!(leaf_handle(255), 0x5005_0008);
    }

    #[test]
    fn a_rate_too_low_is_refused() {
        let error = Plan::new(999, 1514, 8, 0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "an uplink of 999 bit/s is too slow for bands; give at least 1kbit"
        );
    }

    proptest! {
        #[test]
        fn guarantees_leave_at_least_half_and_above_512_kbit_seven_eighths(rate in 1000_u64..1_000_000_000_000, frame in 80_u32..65_550, bands in 2_u8..=8) {
            let classes = Plan::new(rate, frame, bands, 0).unwrap().classes(1);
            let guaranteed: u64 = classes[1..].iter().map(|(_, class)| class.rate_bytes_per_sec).sum();
            let link = classes[0].1.rate_bytes_per_sec;
            prop_assert!(guaranteed > 0 && guaranteed * 2 <= link);
            prop_assert!(rate < 512_000 || guaranteed * 8 <= link);
        }
    }
}
