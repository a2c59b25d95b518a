//! The probe that reads lengths before a server's TLS library encrypts them.
//!
//! A breakpoint at `SSL_write` and its like of a library or a program, in each process that has it
//! mapped.
//! The kernel takes it away when its descriptor is closed, also by a kill.

use std::fs;
use std::path::Path;

use aya::programs::uprobe::{UProbeLinkId, UProbeScope};

use super::{Classifier, ClassifierError, can_read_heads, go_functions, tls_program};
use crate::capability;

/// The programs' names in the object, each with the functions that it is called before.
pub(super) const PROGRAMS: [(&str, &[&str]); 5] = [
    ("tls_write", &["SSL_write", "gnutls_record_send"]),
    ("tls_write_ex", &["SSL_write_ex"]),
    // Called when they return, which functions of Go do not bear.
    (
        "tls_written",
        &["SSL_write", "SSL_write_ex", "gnutls_record_send"],
    ),
    (OF_GO, &["crypto/tls.(*Conn).Write"]),
    ("tls_free", &["SSL_free", "gnutls_deinit"]),
];
const OF_GO: &str = "tls_write_of_go";
/// Maps that only these programs fill.
pub(super) const MAPS: [&str; 4] = [
    "http2_connections",
    "http2_streams",
    "tls_calls",
    "tls_lengths",
];
/// How registers lie in memory (`bpf/maps.h`).
pub(super) const MACHINE: u32 = if cfg!(target_arch = "aarch64") { 1 } else { 0 };

/// What is missing here to read lengths under TLS; none where nothing is.
pub fn lacks_for_tls() -> Option<&'static str> {
    let is_there = |path: &str| Path::new(path).exists();
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        Some("a processor whose registers are known (x86_64 or aarch64)")
    } else if !can_read_heads() {
        Some("Linux 5.17")
    } else if !is_there("/sys/kernel/btf/vmlinux") {
        Some("a kernel with CONFIG_DEBUG_INFO_BTF")
    } else if !is_there("/sys/bus/event_source/devices/uprobe") {
        Some("a kernel with CONFIG_UPROBE_EVENTS")
    } else if !capability::has_perfmon() {
        Some("CAP_PERFMON")
    } else {
        None
    }
}

/// A library that is read; until [`Classifier::stop_probing`] or the classifier's end.
#[derive(Debug)]
pub struct TlsProbe(Vec<(&'static str, UProbeLinkId)>);

impl Classifier {
    /// Reads what processes hand to this library from now on; none where the file has none of the
    /// functions. The classifier was loaded with [`super::Options::reads_tls`].
    pub fn probe(&mut self, library: &Path) -> Result<Option<TlsProbe>, ClassifierError> {
        let mut links = Vec::new();
        let mut failure = None;
        for (name, functions) in PROGRAMS {
            let program = tls_program(&mut self.ebpf, name)?;
            for function in functions {
                let attached = program.attach(*function, library, UProbeScope::AllProcesses);
                let attached = match attached {
                    Err(error) if is_unknown_symbol(&error) => {
                        let Some(offset) = without_symbol(name, library, function) else {
                            continue;
                        };
                        program.attach(offset, library, UProbeScope::AllProcesses)
                    }
                    attached => attached,
                };
                match attached {
                    Ok(link) => links.push((name, link)),
                    Err(error) => failure = Some(error),
                }
            }
        }
        match failure {
            Some(error) if links.is_empty() => Err(ClassifierError::load(error.into())),
            _ => Ok((!links.is_empty()).then_some(TlsProbe(links))),
        }
    }

    /// Leaves a library alone.
    pub fn stop_probing(&mut self, probe: TlsProbe) {
        for (name, link) in probe.0 {
            // No caller is left to report an error to.
            if let Ok(program) = tls_program(&mut self.ebpf, name) {
                let _ = program.detach(link);
            }
        }
    }
}

/// Where a function of Go is in a program that has no symbols.
fn without_symbol(name: &str, program: &Path, function: &str) -> Option<u64> {
    if name != OF_GO {
        return None;
    }
    go_functions::offset_of(&fs::read(program).ok()?, function)
}

fn is_unknown_symbol(error: &aya::programs::ProgramError) -> bool {
    use aya::programs::ProgramError;
    use aya::programs::uprobe::UProbeError;
    matches!(
        error,
        ProgramError::UProbeError(UProbeError::SymbolError { .. })
    )
}
