//! Which mechanism is used: what the operator requested, what this process may do, what the device
//! is.
//!
//! In user space a grant follows the last one as the link becomes free, so the kernel's queue stays
//! short and in order. With bands beneath, what the kernel holds is ordered too, so grants may run
//! ahead and the link never waits for a writer to wake up.

use crate::config::{Mechanism, UplinkConfig, UplinkError};
use crate::installed_bands::InstalledBands;
use crate::pacer::Backlog;
use sooner_kernel::bands::{BandsError, BandsOptions, Replace};
use sooner_kernel::device::{self, Device};
use sooner_kernel::qdisc::BacklogProbe;
use sooner_link::{Ahead, BandChooser, LinkLimits, Pacing, transmission_ns};
use sooner_policy::{BAND_COUNT, GuardLimits, Time};

const _: () = assert!(
    BAND_COUNT == sooner_kernel::bands::BAND_COUNT,
    "one band of the policy is one of the kernel's"
);

/// The parts of an uplink, ready to run.
pub(crate) struct Plan {
    pub(crate) pacing: Option<Pacing>,
    pub(crate) bands: Option<BandChooser>,
    pub(crate) backlog: Option<Backlog>,
    pub(crate) metering: Metering,
    pub(crate) installed_bands: InstalledBands,
    pub(crate) description: String,
}

/// The rate by which super-packets are limited where that of the link is found: one frame.
const GSO_RATE_BITS_PER_SEC: u64 = 10_000_000;
/// The turns of policies that count in turns, where the rate is found.
const NOMINAL_BITS_PER_SEC: u64 = 100_000_000;

impl Plan {
    /// Decides, and sets up in the kernel what was decided; on an error nothing is changed.
    pub(crate) fn make(config: &UplinkConfig) -> Result<Self, UplinkError> {
        if config.by_client && config.mechanism == Mechanism::Bands {
            return Err(UplinkError::BandsByClient);
        }
        let device = outward_device(config)?;
        match (config.mechanism, device) {
            (Mechanism::UserSpace, device) => Ok(Self::in_user_space(config, device.as_ref(), "")),
            (Mechanism::Auto, None) => Ok(Self::in_user_space(config, None, "")),
            (Mechanism::Auto, Some(device)) => match Self::install(config, &device) {
                Ok(bands) => Ok(Self::with_bands(config, &device, bands, true)),
                Err(refusal) => Ok(Self::in_user_space(
                    config,
                    Some(&device),
                    &why_no_bands(&refusal),
                )),
            },
            (Mechanism::Bands | Mechanism::Both, None) => Err(UplinkError::NoDevice),
            (mechanism, Some(device)) => {
                let bands = Self::install(config, &device)?;
                Ok(Self::with_bands(
                    config,
                    &device,
                    bands,
                    mechanism == Mechanism::Both,
                ))
            }
        }
    }

    fn install(config: &UplinkConfig, device: &Device) -> Result<InstalledBands, BandsError> {
        let replace = if config.replace_qdisc {
            Replace::Yes
        } else {
            Replace::No
        };
        let options = BandsOptions {
            bands: config.bands,
            replace,
            gso_rate_bits_per_sec: config.is_auto.then_some(GSO_RATE_BITS_PER_SEC),
            ..BandsOptions::at_rate(config.rate_bits_per_sec)
        };
        InstalledBands::install(device, options)
    }

    fn in_user_space(config: &UplinkConfig, device: Option<&Device>, remark: &str) -> Self {
        let beneath = match device {
            Some(_) => Beneath::Queue,
            None => Beneath::Nothing,
        };
        let metering = Metering::of(config, beneath);
        let limits = metering.first_limits(config);
        let backlog = device.and_then(|device| backlog(device, config, None));
        let loop_remark = if backlog.is_some() {
            ", watching the device's queue"
        } else {
            ""
        };
        Self {
            pacing: Some(pacing(limits, config)),
            bands: None,
            backlog,
            metering,
            installed_bands: InstalledBands::default(),
            description: format!("in user space{loop_remark}{remark}"),
        }
    }

    fn with_bands(
        config: &UplinkConfig,
        device: &Device,
        bands: InstalledBands,
        and_paced: bool,
    ) -> Self {
        let beneath = if config.has_order_in_bands() {
            Beneath::Bands
        } else {
            Beneath::Queue
        };
        let metering = Metering::of(config, beneath);
        let limits = metering.first_limits(config);
        let how = if and_paced {
            "in user space and in"
        } else {
            "in"
        };
        Self {
            pacing: and_paced.then(|| pacing(limits, config)),
            bands: Some(band_chooser(config)),
            backlog: backlog(device, config, Some(config.bands)).filter(|_| and_paced),
            metering,
            installed_bands: bands,
            description: format!(
                "{how} kernel bands on {}{}",
                device.name,
                fewer(config.bands)
            ),
        }
    }
}

/// Bands cut what a policy ranks by; what clients had of late changes with every turn.
fn band_chooser(config: &UplinkConfig) -> BandChooser {
    if config.by_client {
        BandChooser::shared(config.bands)
    } else {
        BandChooser::into_bands(config.policy, config.bands)
    }
}

fn pacing(limits: LinkLimits, config: &UplinkConfig) -> Pacing {
    // A turn stays as it is at the start, and a link that is found may be slow.
    let turn_bytes = if config.is_auto {
        limits.quantum_wire_bytes()
    } else {
        limits.long_grant_wire_bytes()
    };
    let guard = config.guard.then(|| GuardLimits::with_turn(turn_bytes));
    Pacing { limits, guard }
}

/// By which limits are made of a rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Metering {
    ahead: Option<Ahead>,
    beneath: Beneath,
}

/// What bytes come to from the sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Beneath {
    /// Loopback, where nothing waits anywhere: the scheduler is the link.
    #[default]
    Nothing,
    /// A device with a queue in the order of arrival.
    Queue,
    /// A device with bands that put responses in order.
    Bands,
}

impl Metering {
    fn of(config: &UplinkConfig, beneath: Beneath) -> Self {
        Self {
            ahead: config.ahead,
            beneath,
        }
    }

    /// What a policy is made with; where the rate is found, that of another rate comes later.
    fn first_limits(self, config: &UplinkConfig) -> LinkLimits {
        self.limits(if config.is_auto {
            NOMINAL_BITS_PER_SEC
        } else {
            config.rate_bits_per_sec
        })
    }

    /// How a link of this rate is metered.
    ///
    /// One grant waits in the device while the next writer wakes up, unless the operator has said
    /// how much.
    pub(crate) fn limits(self, rate_bits_per_sec: u64) -> LinkLimits {
        let limits = LinkLimits::at_rate(rate_bits_per_sec);
        match (self.ahead, self.beneath) {
            (Some(ahead), _) => LinkLimits {
                ahead_ns: ahead.ns(rate_bits_per_sec),
                ..limits
            },
            (None, Beneath::Nothing) => limits,
            (None, beneath) => {
                let limits = LinkLimits {
                    ahead_ns: transmission_ns(limits.quantum_wire_bytes(), rate_bits_per_sec),
                    ..limits
                };
                match beneath {
                    Beneath::Bands => limits.above_bands(),
                    _ => limits,
                }
            }
        }
    }
}

/// Watches the device's queue, or its bands.
fn backlog(device: &Device, config: &UplinkConfig, bands: Option<u8>) -> Option<Backlog> {
    let probe = match bands {
        Some(count) => BacklogProbe::of_bands(device, count),
        None => BacklogProbe::open(device),
    };
    Some(Backlog {
        probe: probe.ok()?,
        has_bands: bands.is_some(),
        look_at: Time::ZERO,
        ahead: config.ahead,
    })
}

/// What may wait in the device's queue before the next grant does, bytes: as much as lies ahead of
/// the link, and one grant at least.
///
/// Every packet more is one that all others wait for at each of their round trips, and a small
/// response over TLS has five.
pub(crate) fn queued_bytes_max(rate: u64, ahead: Option<Ahead>) -> u64 {
    ahead
        .map_or(0, |ahead| ahead.bytes(rate))
        .max(LinkLimits::at_rate(rate).quantum_wire_bytes())
}

/// How many bands there are, where they are not all that there can be.
fn fewer(bands: u8) -> String {
    if usize::from(bands) < BAND_COUNT {
        format!(" ({bands} of them)")
    } else {
        String::new()
    }
}

/// The device towards the uplink: the one named, or the first listener's that leads out of this
/// machine.
fn outward_device(config: &UplinkConfig) -> Result<Option<Device>, UplinkError> {
    if let Some(name) = &config.device {
        return device::by_name(name)
            .map(Some)
            .map_err(UplinkError::NoSuchDevice);
    }
    let mut found = config
        .listen
        .iter()
        .filter_map(|&address| device::carrying(address).ok().flatten());
    Ok(found.find(|device| !device.is_loopback))
}

/// What would make bands possible, as a remark on the mechanism used instead.
fn why_no_bands(refusal: &BandsError) -> String {
    format!("; no kernel bands: {refusal}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_link::wire::PACKET_BYTES;
    use sooner_policy::PolicyName;

    const RATE: u64 = 10_000_000;

    fn metering(ahead: Option<Ahead>, beneath: Beneath) -> LinkLimits {
        Metering { ahead, beneath }.limits(RATE)
    }

    #[test]
    fn one_grant_lies_ahead_where_a_device_leads_out_unless_told() {
        let plain = LinkLimits::at_rate(RATE);
        assert_eq!(metering(None, Beneath::Nothing), plain);
        let queued = LinkLimits {
            ahead_ns: transmission_ns(plain.quantum_wire_bytes(), RATE),
            ..plain
        };
        assert_eq!(metering(None, Beneath::Queue), queued);
        assert_eq!(metering(None, Beneath::Bands), queued.above_bands());
        assert_eq!(queued_bytes_max(RATE, None), PACKET_BYTES);
    }

    #[test]
    fn what_was_asked_lies_ahead_everywhere() {
        for (packets, queued) in [(0, 1), (1, 1), (60, 60)] {
            let ahead = Some(Ahead::Packets(packets));
            for beneath in [Beneath::Nothing, Beneath::Queue, Beneath::Bands] {
                let limits = metering(ahead, beneath);
                assert_eq!(limits.ahead_ns, packets * 1_211_200);
                assert_eq!(limits.long_grant_bytes, 1_448);
            }
            assert_eq!(queued_bytes_max(RATE, ahead), queued * PACKET_BYTES);
        }
    }

    #[test]
    fn bands_alone_know_no_clients_and_beneath_turns_they_are_no_order() {
        let mut config = UplinkConfig::new(RATE, PolicyName::Srpt);
        assert!(config.has_order_in_bands());
        config.by_client = true;
        assert!(!config.has_order_in_bands());
        assert_eq!(band_chooser(&config).count(), 8);
        config.mechanism = Mechanism::Bands;
        let refused = Plan::make(&config).err();
        assert!(matches!(refused, Some(UplinkError::BandsByClient)));
    }

    #[test]
    fn fewer_bands_than_all_are_told() {
        assert_eq!(fewer(8), "");
        assert_eq!(fewer(2), " (2 of them)");
    }
}
