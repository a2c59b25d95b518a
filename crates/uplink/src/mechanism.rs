//! Which mechanism is used: what was asked for, what this process may do, what the device is.
//!
//! In user space a grant follows the last one as the link becomes free, so the kernel's queue stays short and in order. With bands beneath,
//! what the kernel holds is ordered too, so grants may run ahead and the link never waits for a writer to wake up.

use sooner_kernel::bands::{Bands, BandsError, Replace};
use sooner_kernel::device::{self, Device};
use sooner_kernel::qdisc::BacklogProbe;
use sooner_policy::{BAND_COUNT, GuardLimits, PolicyName};

use crate::bucket::transmission_ns;
use crate::config::{Mechanism, UplinkConfig, UplinkError};
use crate::gate::{Gate, GateLimits};
use crate::marks::Marks;
use crate::pacer::Backlog;
use crate::wire::PACKET_BYTES;

/// Packets that may wait in the device's queue before the next grant does.
const QUEUED_PACKETS_MAX: u64 = 2;

const _: () = assert!(
    BAND_COUNT == sooner_kernel::bands::BAND_COUNT,
    "one band of the policy is one of the kernel's"
);

/// The parts of an uplink, ready to run.
pub(crate) struct Plan {
    pub(crate) gate: Option<Gate>,
    pub(crate) marks: Option<Marks>,
    pub(crate) backlog: Option<Backlog>,
    pub(crate) setup: Setup,
    pub(crate) description: String,
}

/// What was changed in the kernel; goes when this does.
#[derive(Default)]
pub(crate) struct Setup {
    bands: Option<Bands>,
}

impl Setup {
    /// The socket priority that selects a band; `None` without bands.
    pub(crate) fn priority_of(&self, band: u8) -> Option<u32> {
        self.bands.as_ref().map(|_| Bands::priority_of(band))
    }
}

impl Plan {
    /// Decides, and sets up in the kernel what was decided; on an error nothing is changed.
    pub(crate) fn make(config: &UplinkConfig) -> Result<Self, UplinkError> {
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

    fn install(config: &UplinkConfig, device: &Device) -> Result<Bands, BandsError> {
        let replace = if config.replace_qdisc {
            Replace::Yes
        } else {
            Replace::No
        };
        Bands::install_some(device, config.bands, config.rate_bits_per_sec, replace)
    }

    fn in_user_space(config: &UplinkConfig, device: Option<&Device>, remark: &str) -> Self {
        let rate_bits_per_sec = config.rate_bits_per_sec;
        let mut limits = GateLimits::at_rate(rate_bits_per_sec);
        if device.is_some() {
            // One grant waits in the device while the next writer wakes up. On loopback nothing waits anywhere: there the gate is the link.
            limits.ahead_ns = one_grant_ns(&limits);
        }
        if let Some(ahead) = config.ahead {
            limits.ahead_ns = ahead.ns(rate_bits_per_sec);
        }
        let backlog = device.and_then(|device| backlog(device, config));
        let loop_remark = if backlog.is_some() {
            ", watching the device's queue"
        } else {
            ""
        };
        Self {
            gate: Some(gate(config.policy, limits, config.guard)),
            marks: None,
            backlog,
            setup: Setup::default(),
            description: format!("in user space{loop_remark}{remark}"),
        }
    }

    fn with_bands(config: &UplinkConfig, device: &Device, bands: Bands, and_gate: bool) -> Self {
        let rate_bits_per_sec = config.rate_bits_per_sec;
        let mut limits = GateLimits::at_rate(rate_bits_per_sec);
        // No more than without bands: TCP keeps two packets of a connection in the device's queue, so with more ahead the next turn went to
        // another connection, and the largest shared the link instead of going one after the other.
        limits.ahead_ns = config.ahead.map_or_else(
            || one_grant_ns(&limits),
            |ahead| ahead.ns(rate_bits_per_sec),
        );
        let how = if and_gate {
            "in user space and in"
        } else {
            "in"
        };
        Self {
            gate: and_gate.then(|| gate(config.policy, limits, config.guard)),
            marks: Some(Marks::into_bands(config.policy, config.bands)),
            backlog: backlog(device, config).filter(|_| and_gate),
            setup: Setup { bands: Some(bands) },
            description: format!(
                "{how} kernel bands on {}{}",
                device.name,
                fewer(config.bands)
            ),
        }
    }
}

fn gate(policy: PolicyName, limits: GateLimits, guard: bool) -> Gate {
    let quantum = limits.quantum_wire_bytes();
    let guard = guard.then(|| GuardLimits::with_turn(quantum));
    Gate::new(limits, policy.scheduler(quantum, guard))
}

/// One grant's time on the link, ns.
fn one_grant_ns(limits: &GateLimits) -> u64 {
    transmission_ns(limits.quantum_wire_bytes(), limits.rate_bits_per_sec)
}

/// Watches the device's queue; what was asked to lie ahead of the link may lie in it.
fn backlog(device: &Device, config: &UplinkConfig) -> Option<Backlog> {
    let rate_bits_per_sec = config.rate_bits_per_sec;
    let ahead_bytes = config
        .ahead
        .map_or(0, |ahead| ahead.bytes(rate_bits_per_sec));
    Some(Backlog {
        probe: BacklogProbe::open(device).ok()?,
        limit_bytes: ahead_bytes.max(QUEUED_PACKETS_MAX * PACKET_BYTES),
        rate_bits_per_sec,
    })
}

/// How many bands there are, where they are not all that there can be.
fn fewer(bands: u8) -> String {
    if usize::from(bands) < BAND_COUNT {
        format!(" ({bands} of them)")
    } else {
        String::new()
    }
}

/// The device towards the uplink: the one named, or the first listener's that leads out of this machine.
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
