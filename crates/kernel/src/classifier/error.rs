//! Why programs cannot be put on a device.

use std::io;

use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::ProgramError;

use crate::device::Device;

/// Why programs cannot be put on a device. What the kernel says of programs is in the words already
/// and no `source`, for it may have thousands of lines.
#[derive(Debug, thiserror::Error)]
pub enum ClassifierError {
    /// The kernel does not take them.
    #[error("this kernel refuses the BPF programs: {}", why_not_loaded(.0))]
    Load(Box<EbpfError>),
    /// They cannot be attached.
    #[error("cannot attach BPF programs to device `{device}`: {}", chain(.refusal))]
    Attach {
        /// The device's name.
        device: String,
        /// What the kernel says.
        refusal: Box<ProgramError>,
    },
    /// A map cannot be used.
    #[error("a map of the BPF programs: {}", chain(.0))]
    Map(MapError),
    /// The system refuses something else.
    #[error("cannot communicate with the BPF programs: {0}")]
    System(#[source] io::Error),
    /// The object is not the one this program was made with.
    #[error("the BPF object lacks `{0}`; it is not the one this was built with")]
    Lacks(&'static str),
    /// The device's filters cannot be changed.
    #[error("cannot change the filters of device `{device}`: {source}")]
    Kernel {
        /// The device's name.
        device: String,
        /// What the kernel says.
        source: io::Error,
    },
}

impl From<MapError> for ClassifierError {
    fn from(error: MapError) -> Self {
        ClassifierError::Map(error)
    }
}

impl ClassifierError {
    pub(crate) fn system(source: io::Error) -> ClassifierError {
        ClassifierError::System(source)
    }

    pub(crate) fn load(source: EbpfError) -> ClassifierError {
        ClassifierError::Load(Box::new(source))
    }

    pub(super) fn attach(device: &Device, refusal: ProgramError) -> ClassifierError {
        ClassifierError::Attach {
            device: device.name.clone(),
            refusal: Box::new(refusal),
        }
    }

    pub(super) fn kernel(device: &Device, source: io::Error) -> ClassifierError {
        ClassifierError::Kernel {
            device: device.name.clone(),
            source,
        }
    }
}

/// Why programs are not loaded, and what would be right. That there is no JIT the verifier says
/// somewhere in its log, about a call that an interpreter cannot make.
fn why_not_loaded(error: &dyn std::error::Error) -> String {
    let mut behind = std::iter::successors(Some(error), |error| error.source());
    if behind.any(|error| error.to_string().contains("non-JITed")) {
        return "its BPF JIT is off or missing; they need CONFIG_BPF_JIT and sysctl net.core.bpf_jit_enable=1".into();
    }
    let behind = std::iter::successors(Some(error), |error| error.source());
    let is_short = |error: &dyn std::error::Error| error.to_string().contains("(os error 24)");
    if behind.into_iter().any(is_short) {
        return "this process may open too few files for them; raise `ulimit -n`, or LimitNOFILE= of its unit".into();
    }
    format!(
        "{}; they need Linux 5.13 with CONFIG_BPF_SYSCALL, and CAP_BPF",
        chain(error)
    )
}

/// An error with what is behind it, in one line; of the verifier's log, which may have thousands,
/// the last.
fn chain(error: &dyn std::error::Error) -> String {
    let mut words = one_line(&error.to_string());
    let mut source = error.source();
    while let Some(error) = source {
        let next = one_line(&error.to_string());
        if !words.contains(&next) {
            words = format!("{words}: {next}");
        }
        source = error.source();
    }
    words
}

fn one_line(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    match lines.next_back() {
        Some(last) => format!("{first} ... {last}"),
        None => first.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_jit_is_told_in_one_line() {
        // As Linux 6.1 says it (kernel/bpf/verifier.c, check_helper_call).
        let log = "0: R1=ctx(off=0,imm=0) R10=fp0\n; bpf_loop(\n\
            callbacks are not allowed in non-JITed programs\nprocessed 41 insns (limit 1000000)";
        let refused = || ProgramError::IOError(io::Error::other(log));
        let told = ClassifierError::load(refused().into()).to_string();
        assert!(told.contains("net.core.bpf_jit_enable=1"), "{told}");
        let device = Device {
            name: "eth0".into(),
            index: 2,
            is_loopback: false,
            has_ethernet_header: true,
            mtu_bytes: 1500,
        };
        // Callers tell what is behind an error as well.
        for error in [
            ClassifierError::load(refused().into()),
            ClassifierError::attach(&device, refused()),
            ClassifierError::Map(MapError::IoError(io::Error::other(log))),
        ] {
            let behind = std::iter::successors(Some(&error as &dyn std::error::Error), |error| {
                error.source()
            });
            let lines = behind.map(|error| error.to_string().lines().count());
            assert_eq!(lines.collect::<Vec<_>>(), [1]);
        }
        let told = why_not_loaded(&io::Error::other("no"));
        assert!(told.starts_with("no; they need Linux 5.13"), "{told}");
    }

    #[test]
    fn an_error_is_one_line() {
        let inner = io::Error::other("a\nb\n\nc\n");
        let error = ClassifierError::Kernel {
            device: "d".into(),
            source: inner,
        };
        assert_eq!(one_line(&error.to_string()).lines().count(), 1);
        assert_eq!(chain(&io::Error::other("x\ny")), "x ... y");
    }
}
