//! Which mechanism is used: what was asked for, what this process may do, what the device is.

use sooner_policy::{GuardLimits, PolicyName};

use crate::config::{UplinkConfig, UplinkError};
use crate::gate::{Gate, GateLimits};
use crate::marks::Marks;
use crate::pacer::Backlog;

/// The parts of an uplink, ready to run.
pub(crate) struct Plan {
    pub(crate) gate: Option<Gate>,
    pub(crate) marks: Option<Marks>,
    pub(crate) backlog: Option<Backlog>,
    pub(crate) setup: Setup,
    pub(crate) description: String,
}

/// What was changed in the kernel.
#[derive(Default)]
pub(crate) struct Setup;

impl Setup {
    pub(crate) fn priority_of(&self, _band: u8) -> Option<u32> {
        None
    }
    pub(crate) fn remove(&self) {}
}

impl Plan {
    pub(crate) fn make(config: &UplinkConfig) -> Result<Self, UplinkError> {
        let limits = GateLimits::at_rate(config.rate_bits_per_sec);
        Ok(Self {
            gate: Some(gate(config.policy, limits, config.guard)),
            marks: None,
            backlog: None,
            setup: Setup,
            description: String::new(),
        })
    }
}

fn gate(policy: PolicyName, limits: GateLimits, guard: bool) -> Gate {
    let guard = guard.then(|| GuardLimits::with_turn(limits.quantum_bytes));
    Gate::new(limits, policy.scheduler(limits.quantum_bytes, guard))
}
