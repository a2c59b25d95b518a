//! What the operator requested.

use std::time::Duration;

use crate::web::config::Servers;

/// How workers are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedRule {
    /// By processor time used since the request began.
    Used,
    /// By that, and by what requests of the same method and path used before.
    History,
    /// By how often a worker has waited since its last long wait (Suranauwarat and Taniguchi 2001).
    RunWait {
        /// RW; none: predicted.
        changes: Option<u32>,
        /// SLP; none: predicted.
        long: Option<Duration>,
    },
}

/// All of it.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which server.
    pub server: Servers,
    /// Ports of servers that hand requests on to it: they get its weight too.
    pub front_ports: Vec<u16>,
    /// How workers are ordered.
    pub rule: WantedRule,
    /// Processor time that a request may use on the first two levels; none: learned.
    pub bounds: Option<[Duration; 2]>,
    /// A worker that has waited for a processor so long goes before all for a moment.
    pub wait_max: Duration,
    /// Of a processor, what the server gets at least while another service wants all of it, 0 to 1;
    /// none: its weight stays as it is.
    pub share: Option<f64>,
    /// Whether the top level has real time.
    pub real_time: bool,
    /// Whether only to look and count.
    pub observes: bool,
    /// Whether BPF programs say what workers do, where they can.
    pub uses_programs: bool,
}
