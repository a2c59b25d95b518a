//! What this thread may do: its effective capabilities.

use rustix::thread::{CapabilitySet, capabilities};

/// Whether qdiscs, device settings and any `SO_PRIORITY` may be changed (`CAP_NET_ADMIN`).
pub fn has_net_admin() -> bool {
    has(CapabilitySet::NET_ADMIN)
}

/// Whether BPF programs may be loaded (`CAP_BPF`, which `CAP_SYS_ADMIN` includes).
pub fn has_bpf() -> bool {
    has(CapabilitySet::BPF) || has_sys_admin()
}

/// Whether BPF programs may look into the kernel and into processes (`CAP_PERFMON`, which
/// `CAP_SYS_ADMIN` includes).
pub fn has_perfmon() -> bool {
    has(CapabilitySet::PERFMON) || has_sys_admin()
}

/// Whether any `SO_PRIORITY` may be set even without `CAP_NET_ADMIN` (`CAP_NET_RAW`).
pub fn has_net_raw() -> bool {
    has(CapabilitySet::NET_RAW)
}

/// Whether this process may request real-time scheduling and negative nice (`CAP_SYS_NICE`).
pub fn has_sys_nice() -> bool {
    has(CapabilitySet::SYS_NICE)
}

/// Whether what other users' processes hold and have mapped may be seen (`CAP_SYS_PTRACE`).
pub fn has_sys_ptrace() -> bool {
    has(CapabilitySet::SYS_PTRACE)
}

/// Whether folders of other users may be read (`CAP_DAC_READ_SEARCH`, which `CAP_DAC_OVERRIDE`
/// includes).
pub fn has_dac_read() -> bool {
    has(CapabilitySet::DAC_READ_SEARCH) || has(CapabilitySet::DAC_OVERRIDE)
}

/// Whether network namespaces may be entered (`CAP_SYS_ADMIN`).
pub fn has_sys_admin() -> bool {
    has(CapabilitySet::SYS_ADMIN)
}

/// Whether ports below 1024 may be bound (`CAP_NET_BIND_SERVICE`).
pub fn has_net_bind_service() -> bool {
    has(CapabilitySet::NET_BIND_SERVICE)
}

fn has(wanted: CapabilitySet) -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(wanted))
}
