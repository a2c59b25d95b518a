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
/// Folders that every kernel has which shows the files above; a container may hide them.
const FOLDER_OF_TYPES: &str = "/sys/kernel";
const FOLDER_OF_UPROBES: &str = "/sys/bus/event_source/devices";

/// What is missing where a file of /sys is: the kernel's option, or /sys itself.
fn lacks_file(folder: &str, option: &'static str) -> &'static str {
    match Path::new(folder).exists() {
        true => option,
        false => "/sys as the kernel shows it, which is hidden here, as in some containers",
    }
}

/// What is missing here to read what stands in sockets; none where nothing is.
pub fn lacks_for_sockets() -> Option<&'static str> {
    if !Path::new(TYPES_OF_KERNEL).exists() {
        let option = "a kernel with CONFIG_DEBUG_INFO_BTF";
        Some(lacks_file(FOLDER_OF_TYPES, option))
    } else if !capability::has_perfmon() {
        Some("CAP_PERFMON")
    } else {
        None
    }
}

/// What is missing here to read lengths under TLS; none where nothing is.
pub fn lacks_for_tls() -> Option<&'static str> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        Some("a processor with known registers (x86_64 or aarch64)")
    } else if !can_read_heads() {
        Some("Linux 5.17")
    } else if !Path::new(UPROBES).exists() {
        let option = "a kernel with CONFIG_UPROBE_EVENTS";
        Some(lacks_file(FOLDER_OF_UPROBES, option))
    } else {
        lacks_for_sockets()
    }
}

/// A library that is read; until [`Classifier::stop_probing`] or the classifier's end.
#[derive(Debug)]
pub struct TlsProbe(Vec<(&'static str, UProbeLinkId)>);

/// Where in a file the functions stand that hand over plain text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFunctions(Vec<(&'static str, u64)>);

impl TlsFunctions {
    /// Reads the whole file, which may be long: not for an event loop.
    pub fn of(library: &Path) -> io::Result<TlsFunctions> {
        let bytes = fs::read(library)?;
        let kinds: [(&[Probed], Find); 2] = [
            (&OF_C, c_functions::offset_of),
            (&OF_GO, go_functions::offset_of),
        ];
        let mut found = TlsFunctions::default();
        for (probed, find) in kinds {
            for (name, functions) in probed {
                let offsets = functions.iter().filter_map(|one| find(&bytes, one));
                found.0.extend(offsets.map(|offset| (*name, offset)));
            }
        }
        Ok(found)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Classifier {
    /// Reads what processes hand to this library from now on. The classifier was loaded with
    /// [`super::Options::reads_tls`].
    pub fn probe(&mut self, library: &Path, functions: &TlsFunctions) -> io::Result<TlsProbe> {
        let mut probe = TlsProbe(Vec::new());
        for (name, offset) in &functions.0 {
            match self.probe_at(name, *offset, library) {
                Ok(link) => probe.0.push((name, link)),
                Err(error) => {
                    // All of them or none: an address that is used anew is another connection.
                    self.stop_probing(probe);
                    return Err(io::Error::other(error));
                }
            }
        }
        Ok(probe)
    }

    fn probe_at(
        &mut self,
        name: &'static str,
        offset: u64,
        library: &Path,
    ) -> Result<UProbeLinkId, ClassifierError> {
        let program = tls_program(&mut self.ebpf, name)?;
        let link = program.attach(offset, library, UProbeScope::AllProcesses);
        link.map_err(|error| ClassifierError::load(error.into()))
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
