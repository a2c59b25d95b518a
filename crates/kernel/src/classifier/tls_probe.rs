//! The probe that reads lengths before a server's TLS library encrypts them.
//!
//! A breakpoint at `SSL_write` and its like of a library or a program, in each process that has it
//! mapped.
//! The kernel takes it away when its descriptor is closed, also by a kill.

use std::fs;
use std::io;
use std::path::Path;

use aya::programs::uprobe::{UProbeLinkId, UProbeScope};

use super::{Classifier, ClassifierError, can_read_heads, go_functions, is_at_least, tls_program};
use crate::capability;

/// A program of the object and the functions that it is called before.
type Probed = (&'static str, &'static [&'static str]);

/// Of libraries in C, by their symbols.
const OF_C: [Probed; 4] = [
    ("tls_write", &["SSL_write", "gnutls_record_send"]),
    ("tls_write_ex", &["SSL_write_ex"]),
    // When they return.
    (
        "tls_written",
        &["SSL_write", "SSL_write_ex", "gnutls_record_send"],
    ),
    ("tls_free", &["SSL_free", "gnutls_deinit"]),
];
/// Of programs in Go.
const OF_GO: [Probed; 2] = [
    ("tls_write_of_go", &["crypto/tls.(*Conn).Write"]),
    ("tls_close_of_go", &["crypto/tls.(*Conn).Close"]),
];

/// The names of all programs.
pub(super) fn programs() -> impl Iterator<Item = &'static str> {
    OF_C.iter().chain(&OF_GO).map(|(name, _)| *name)
}

/// Maps that only these programs fill.
pub(super) const MAPS: [&str; 4] = [
    "http2_connections",
    "http2_streams",
    "tls_calls",
    "tls_lengths",
];
/// How registers lie in memory (`bpf/maps.h`).
pub(super) const MACHINE: u32 = if cfg!(target_arch = "aarch64") { 1 } else { 0 };

const TYPES_OF_KERNEL: &str = "/sys/kernel/btf/vmlinux";
const UPROBES: &str = "/sys/bus/event_source/devices/uprobe";

/// What is missing here to read what stands in sockets; none where nothing is.
pub fn lacks_for_sockets() -> Option<&'static str> {
    if !Path::new(TYPES_OF_KERNEL).exists() {
        Some("a kernel with CONFIG_DEBUG_INFO_BTF")
    } else if !capability::has_perfmon() {
        Some("CAP_PERFMON")
    } else {
        None
    }
}

/// What is missing here to read lengths under TLS; none where nothing is.
pub fn lacks_for_tls() -> Option<&'static str> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        Some("a processor whose registers are known (x86_64 or aarch64)")
    } else if !can_read_heads() {
        Some("Linux 5.17")
    } else if !Path::new(UPROBES).exists() {
        Some("a kernel with CONFIG_UPROBE_EVENTS")
    } else {
        lacks_for_sockets()
    }
}

/// A library that is read; until [`Classifier::stop_probing`] or the classifier's end.
#[derive(Debug)]
pub struct TlsProbe(Vec<(&'static str, UProbeLinkId)>);

impl Classifier {
    /// Reads what processes hand to this library from now on; none where the file has none of the
    /// functions. The classifier was loaded with [`super::Options::reads_tls`].
    pub fn probe(&mut self, library: &Path) -> io::Result<Option<TlsProbe>> {
        let bytes = fs::read(library)?;
        let mut probe = TlsProbe(Vec::new());
        let attached = self
            .probe_c(library, &mut probe)
            .and_then(|()| self.probe_go(library, &bytes, &mut probe));
        if let Err(error) = attached {
            // All of them or none: a call that is seen only when it begins is counted twice.
            self.stop_probing(probe);
            return Err(io::Error::other(error));
        }
        Ok((!probe.0.is_empty()).then_some(probe))
    }

    fn probe_c(&mut self, library: &Path, probe: &mut TlsProbe) -> Result<(), ClassifierError> {
        for (name, functions) in OF_C {
            let program = tls_program(&mut self.ebpf, name)?;
            for function in functions {
                match program.attach(*function, library, UProbeScope::AllProcesses) {
                    Ok(link) => probe.0.push((name, link)),
                    Err(error) if is_unknown_symbol(&error) => {}
                    Err(error) => return Err(ClassifierError::load(error.into())),
                }
            }
        }
        Ok(())
    }

    fn probe_go(
        &mut self,
        library: &Path,
        bytes: &[u8],
        probe: &mut TlsProbe,
    ) -> Result<(), ClassifierError> {
        for (name, functions) in OF_GO {
            let program = tls_program(&mut self.ebpf, name)?;
            let found = functions.iter();
            for offset in found.filter_map(|function| go_functions::offset_of(bytes, function)) {
                let link = program.attach(offset, library, UProbeScope::AllProcesses);
                let link = link.map_err(|error| ClassifierError::load(error.into()))?;
                probe.0.push((name, link));
            }
        }
        Ok(())
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

/// Whether a probe at the return of a function may end a process that may not make every system
/// call: on x86_64 it is one in Linux 6.11 to 6.13, which filters do not know.
pub fn returns_break_filtered_processes() -> bool {
    cfg!(target_arch = "x86_64") && is_at_least(6, 11) && !is_at_least(6, 14)
}

fn is_unknown_symbol(error: &aya::programs::ProgramError) -> bool {
    use aya::programs::ProgramError;
    use aya::programs::uprobe::UProbeError;
    matches!(
        error,
        ProgramError::UProbeError(UProbeError::SymbolError { .. })
    )
}
