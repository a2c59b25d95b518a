//! The probe that reads lengths before a server's TLS library encrypts them.
//!
//! A breakpoint at `SSL_write` and its like of a library or a program, in each process that has it
//! mapped. The kernel takes it away when its descriptor is closed, also by a kill.

use std::fs;
use std::io;
use std::path::Path;

use aya::programs::uprobe::{UProbeLinkId, UProbeScope};

use super::{Classifier, ClassifierError, c_functions, can_read_heads, go_functions, tls_program};
use crate::capability;

/// A program of the object and the functions that it is called before.
type Probed = (&'static str, &'static [&'static str]);

/// Finds where in a file a probe of a function stands.
type Find = fn(&[u8], &str) -> Option<u64>;

/// Of libraries in C, by their symbols.
const OF_C: [Probed; 2] = [
    (
        "tls_write",
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
pub(super) const MAPS: [&str; 3] = ["http2_connections", "http2_streams", "tls_lengths"];
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
        let kinds: [(&[Probed], Find); 2] = [
            (&OF_C, c_functions::offset_of),
            (&OF_GO, go_functions::offset_of),
        ];
        for (probed, find) in kinds {
            if let Err(error) = self.probe_these(probed, find, (library, &bytes), &mut probe) {
                // All of them or none: an address that is used anew is another connection.
                self.stop_probing(probe);
                return Err(io::Error::other(error));
            }
        }
        Ok((!probe.0.is_empty()).then_some(probe))
    }

    fn probe_these(
        &mut self,
        probed: &[Probed],
        find: Find,
        (library, bytes): (&Path, &[u8]),
        probe: &mut TlsProbe,
    ) -> Result<(), ClassifierError> {
        for (name, functions) in probed {
            let program = tls_program(&mut self.ebpf, name)?;
            for offset in functions
                .iter()
                .filter_map(|function| find(bytes, function))
            {
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
