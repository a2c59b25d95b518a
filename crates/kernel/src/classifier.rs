//! Two BPF programs on a device that order the responses of servers that know nothing of it.
//!
//! Packets that leave get the band of their response as `skb->priority`, which selects a leaf of
//! [`crate::bands`]; what comes in shows requests and acknowledgements. The programs are C,
//! compiled once (`bpf/order.bpf.c` says what they do and why), so that the operator who runs this
//! needs no compiler. They need `CAP_BPF` and `CAP_NET_ADMIN`, and Linux 5.13; before 5.17 the
//! length in a response's head is not read, so that everything is ordered by what it has had. A
//! third one reads the same length under TLS ([`TlsProbe`]).
//!
//! **What remains.** From Linux 6.6 on the kernel takes the programs away when the descriptor that
//! holds them is closed, also by a kill ([`Via::Tcx`]). Before, they are filters of a qdisc
//! `clsact` ([`Via::Clsact`]), known by their number; dropping [`Classifier`] removes them, and
//! [`remove_leftovers`] does after a kill. Programs that mark packets for bands that are gone do no
//! harm: the mark names a class that is not there.

mod c_functions;
mod clsact;
mod delay;
mod error;
mod flow;
mod go_functions;
mod hanging;
mod tls_probe;

use std::fmt;
use std::io;

use aya::maps::{Array, HashMap, MapData, PerCpuArray, RingBuf};
use aya::programs::{SchedClassifier, TcAttachType, TestRun, TestRunOptions, UProbe};
use aya::util::KernelVersion;
use aya::{Ebpf, EbpfLoader};

use crate::bands::{BAND_COUNT, Bands};
use crate::device::Device;
use crate::netlink::u32_at;
use crate::signals::Held;
pub use c_functions::offset_of as offset_of_c_function;
pub use clsact::{devices_left_changed, remove_leftovers, remove_leftovers_of};
pub use delay::{Delay, lacks_for_delays};
pub use error::ClassifierError;
pub use flow::{Event, EventKind, Flow, FlowKey, Protocol};
pub use go_functions::offset_of as offset_of_go_function;
pub use tls_probe::{TlsFunctions, TlsProbe, lacks_for_sockets, lacks_for_tls};

/// The programs as the C compiler made them; `cargo xtask bpf` compares them with their source.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../bpf/order.bpf.o");

/// Length of `struct __sk_buff`, and where it has the priority.
const CONTEXT_BYTES: usize = 192;
const PRIORITY_AT: usize = 32;
/// More than any response has; the programs subtract ranks.
const RANK_MAX: u64 = 1 << 62;
/// Bytes of an Ethernet header, and of none: what a device puts before an IP header.
const ETHERNET_BYTES: u32 = 14;

/// How programs get onto a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// A link that goes with its process; Linux 6.6.
    Tcx,
    /// Filters of a qdisc `clsact`.
    Clsact,
}

impl Via {
    /// What this kernel has.
    pub fn of_this_kernel() -> Via {
        if is_at_least(6, 6) {
            Via::Tcx
        } else {
            Via::Clsact
        }
    }
}

/// What the programs look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Ports of servers.
    pub ports: Vec<u16>,
    /// How many bands there are.
    pub bands: u8,
    /// Flows remembered at most; some 200 bytes of kernel memory each.
    pub flows_max: u32,
    /// The largest rank of every band but the last, ascending, bytes; those that are missing are
    /// never reached.
    pub cutoffs: Vec<u64>,
    /// Whether `Content-Length` is looked for where it can be.
    pub reads_heads: bool,
    /// Whether lengths that servers hand to their TLS library count, where [`TlsProbe`]s read them.
    pub reads_tls: bool,
    /// Whether what stands in the servers' sockets counts where a length is not known.
    pub reads_sockets: bool,
    /// Whether packets are given their band, or only looked at.
    pub marks: bool,
    /// Whether delays of packets and what arrives are measured: [`Classifier::next_delay`].
    pub measures: bool,
    /// How the programs get onto the device.
    pub via: Via,
}

impl Options {
    /// For these ports, with all bands and as this kernel can.
    pub fn for_ports(ports: Vec<u16>) -> Options {
        Options {
            ports,
            bands: BAND_COUNT as u8,
            flows_max: 65_536,
            cutoffs: Vec::new(),
            reads_heads: can_read_heads(),
            reads_tls: false,
            reads_sockets: false,
            marks: true,
            measures: false,
            via: Via::of_this_kernel(),
        }
    }
}

/// Whether this kernel's programs can search a response's head for its length (bpf_loop, Linux
/// 5.17).
pub fn can_read_heads() -> bool {
    is_at_least(5, 17)
}

/// Whether the kernel is as new; one that does not say is old.
fn is_at_least(major: u8, minor: u8) -> bool {
    KernelVersion::current().is_ok_and(|kernel| kernel >= KernelVersion::new(major, minor, 0))
}

/// Which way a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To a client.
    Leaves,
    /// From a client.
    Comes,
}

/// What a program did with a packet that was shown to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// The band it was given; none: it was left alone.
    pub band: Option<u8>,
    /// What that took, ns.
    pub mean_ns: u64,
}

/// What the programs counted since they were loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Responses that began.
    pub responses: u64,
    /// Those of them with a known length.
    pub sized: u64,
    /// Packets sent again.
    pub resent_packets: u64,
    /// Beginnings and ends that the reader did not take in time.
    pub lost_events: u64,
    /// SYN-ACKs.
    pub syn_acks: u64,
    /// Those of them that went last, because there were far too many.
    pub lowered_syn_acks: u64,
    /// Responses with a length that was read before it was encrypted; each of several at once.
    pub sized_by_tls: u64,
    /// What servers handed to their TLS libraries, in calls.
    pub tls_writes: u64,
    /// Responses without a known length for which it counted what stood in their socket.
    pub by_socket: u64,
    /// Payload that has arrived, bytes; this and what follows is 0 where nothing is measured.
    pub delivered_bytes: u64,
    /// Payload that has left the device.
    pub left_payload_bytes: u64,
    /// That with all headers.
    pub left_bytes: u64,
}

/// The programs on a device; they go when this is dropped.
pub struct Classifier {
    // Holds the links: closing it takes the programs away.
    ebpf: Ebpf,
    cutoffs: Array<MapData, [u64; BAND_COUNT - 1]>,
    counters: PerCpuArray<MapData, u64>,
    flows: HashMap<MapData, [u8; FlowKey::BYTES], [u8; Flow::BYTES]>,
    events: RingBuf<MapData>,
    delays: RingBuf<MapData>,
    clsact: Option<clsact::Ours>,
}

impl fmt::Debug for Classifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Classifier").finish_non_exhaustive()
    }
}

impl Drop for Classifier {
    fn drop(&mut self) {
        // The filters go with the fields.
        if let Some(clsact) = &mut self.clsact {
            clsact.ends();
        }
    }
}

impl Classifier {
    /// Puts the programs on a device. Nothing is changed when it fails.
    pub fn attach(device: &Device, options: &Options) -> Result<Classifier, ClassifierError> {
        let mut classifier = Classifier::load(device, options)?;
        classifier.clsact = match options.via {
            Via::Tcx => None,
            Via::Clsact => Some(clsact::Ours::on(device)?),
        };
        classifier.hang_in(device)?;
        if options.measures {
            delay::attach(&mut classifier.ebpf)?;
        }
        Ok(classifier)
    }

    /// Whether both programs are still on the device, which has this name now: another process may
    /// have taken them away.
    pub fn is_attached(&mut self, name: &str) -> io::Result<bool> {
        if let Some(clsact) = &mut self.clsact {
            return clsact.are_there();
        }
        for (program, direction) in PROGRAMS {
            let own = self.program(program).map_err(io::Error::other)?;
            let own = own.info().map_err(io::Error::other)?.id();
            let all = SchedClassifier::query_tcx(name, direction).map_err(io::Error::other)?;
            if all.1.iter().all(|program| program.id() != own) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Loads the programs without putting them anywhere: to see what a kernel takes, and to run
    /// them on packets of one's own.
    pub fn load(device: &Device, options: &Options) -> Result<Classifier, ClassifierError> {
        let first_priority = Bands::priority_of(0);
        let link_header_bytes = if device.has_ethernet_header {
            ETHERNET_BYTES
        } else {
            0
        };
        let lowest_band = u32::from(options.bands.clamp(2, BAND_COUNT as u8)) - 1;
        let reads_heads = u32::from(options.reads_heads && can_read_heads());
        let mut loader = EbpfLoader::new();
        if options.reads_tls {
            // Few connections speak HTTP/2 for each that was remembered.
            loader.map_max_entries("http2_connections", (options.flows_max / 4).max(1));
        } else {
            for name in tls_probe::MAPS {
                loader.map_max_entries(name, 1);
            }
        }
        if options.measures {
            loader.map_max_entries("timed_handshakes", (options.flows_max / 4).max(1));
        } else {
            loader.map_max_entries("timed_handshakes", 1);
            loader.map_max_entries("delays", delay::RING_BYTES_MIN);
        }
        let namespace_number = delay::namespace_number();
        let _held = Held::begin().map_err(ClassifierError::system)?;
        let mut ebpf = loader
            .override_global("marks", &u32::from(options.marks), true)
            .override_global("measures", &u32::from(options.measures), true)
            .override_global("device_index", &device.index, true)
            .override_global("namespace_number", &namespace_number, true)
            .override_global("first_priority", &first_priority, true)
            .override_global("link_header_bytes", &link_header_bytes, true)
            .override_global("lowest_band", &lowest_band, true)
            .override_global("reads_heads", &reads_heads, true)
            .override_global("reads_tls", &u32::from(options.reads_tls), true)
            .override_global("reads_sockets", &u32::from(options.reads_sockets), true)
            .override_global("machine", &tls_probe::MACHINE, true)
            .map_max_entries("flows", options.flows_max)
            .load(OBJECT)
            .map_err(ClassifierError::load)?;
        for (name, _) in PROGRAMS {
            program(&mut ebpf, name)?
                .load()
                .map_err(|source| ClassifierError::load(source.into()))?;
        }
        if options.reads_tls {
            for name in tls_probe::programs() {
                tls_program(&mut ebpf, name)?
                    .load()
                    .map_err(|source| ClassifierError::load(source.into()))?;
            }
        }
        if options.measures {
            delay::load(&mut ebpf)?;
        }
        let mut ports: HashMap<_, u16, u8> = HashMap::try_from(map(&mut ebpf, "ports")?)?;
        for port in &options.ports {
            ports.insert(port, 1, 0)?;
        }
        let mut classifier = Classifier {
            cutoffs: Array::try_from(map(&mut ebpf, "cutoffs")?)?,
            counters: PerCpuArray::try_from(map(&mut ebpf, "counters")?)?,
            flows: HashMap::try_from(map(&mut ebpf, "flows")?)?,
            events: RingBuf::try_from(map(&mut ebpf, "events")?)?,
            delays: RingBuf::try_from(map(&mut ebpf, "delays")?)?,
            ebpf,
            clsact: None,
        };
        // Before the first packet is looked at.
        let set = classifier.set_cutoffs(&options.cutoffs);
        set.map_err(|source| ClassifierError::kernel(device, source))?;
        Ok(classifier)
    }

    /// The largest rank of every band but the last, ascending, bytes; from now on.
    pub fn set_cutoffs(&mut self, cutoffs: &[u64]) -> io::Result<()> {
        let mut ranks = [RANK_MAX; BAND_COUNT - 1];
        for (rank, cutoff) in ranks.iter_mut().zip(cutoffs) {
            *rank = (*cutoff).min(RANK_MAX);
        }
        self.cutoffs.set(0, ranks, 0).map_err(io::Error::other)
    }

    /// The oldest beginning or end of a response that was not taken yet. It wakes no reader; there
    /// is room for some 10 000, so ten looks a second keep up with 50 000 responses.
    pub fn next_event(&mut self) -> Option<Event> {
        // A length that is not ours cannot come: kernel and reader are of the same object.
        self.events.next().and_then(|bytes| Event::read(&bytes))
    }

    /// The oldest delay that was not taken yet; there is room for some 8 000.
    pub fn next_delay(&mut self) -> Option<Delay> {
        self.delays.next().and_then(|bytes| Delay::read(&bytes))
    }

    /// What is counted so far.
    pub fn counted(&self) -> io::Result<Counted> {
        let sum = |index: u32| -> io::Result<u64> {
            let of_each = self.counters.get(&index, 0).map_err(io::Error::other)?;
            Ok(of_each.iter().sum())
        };
        Ok(Counted {
            responses: sum(0)?,
            sized: sum(1)?,
            resent_packets: sum(2)?,
            lost_events: sum(3)?,
            syn_acks: sum(4)?,
            lowered_syn_acks: sum(5)?,
            sized_by_tls: sum(6)?,
            tls_writes: sum(7)?,
            by_socket: sum(8)?,
            delivered_bytes: sum(9)?,
            left_payload_bytes: sum(10)?,
            left_bytes: sum(11)?,
        })
    }

    /// The flows that are remembered, in no order; those that come and go meanwhile may be missing.
    pub fn flows(&self) -> impl Iterator<Item = (FlowKey, Flow)> + '_ {
        let entries = self.flows.iter().filter_map(Result::ok);
        entries.filter_map(|(key, flow)| Some((FlowKey::read(&key)?, Flow::read(&flow)?)))
    }

    /// Shows a packet, link header included, to the program of its direction, `repeat` times: what
    /// the programs do with it on the device, for tests and benchmarks.
    pub fn show(
        &mut self,
        direction: Direction,
        packet: &[u8],
        repeat: u32,
    ) -> Result<Shown, ClassifierError> {
        let name = match direction {
            Direction::Leaves => PROGRAMS[0].0,
            Direction::Comes => PROGRAMS[1].0,
        };
        let mut context = [0; CONTEXT_BYTES];
        let run = TestRunOptions {
            data_in: Some(packet),
            ctx_out: Some(&mut context),
            repeat,
            ..TestRunOptions::default()
        };
        let result = self
            .program(name)?
            .test_run(run)
            .map_err(|source| ClassifierError::load(source.into()))?;
        let priority = u32_at(&context, PRIORITY_AT).unwrap_or(0);
        let band = priority.wrapping_sub(Bands::priority_of(0));
        Ok(Shown {
            band: (band < BAND_COUNT as u32).then_some(band as u8),
            mean_ns: result.duration.as_nanos() as u64,
        })
    }

    /// Instructions that the verifier looked at for each program: egress, ingress; none where the
    /// kernel does not say.
    pub fn verified_instructions(&mut self) -> Result<[Option<u32>; 2], ClassifierError> {
        let mut counts = [None; 2];
        for (count, (name, _)) in counts.iter_mut().zip(PROGRAMS) {
            let info = self
                .program(name)?
                .info()
                .map_err(|source| ClassifierError::load(source.into()))?;
            *count = info.verified_instruction_count();
        }
        Ok(counts)
    }

    fn program(&mut self, name: &'static str) -> Result<&mut SchedClassifier, ClassifierError> {
        program(&mut self.ebpf, name)
    }
}

const PROGRAMS: [(&str, TcAttachType); 2] = [
    ("order_egress", TcAttachType::Egress),
    ("order_ingress", TcAttachType::Ingress),
];

fn program<'a>(
    ebpf: &'a mut Ebpf,
    name: &'static str,
) -> Result<&'a mut SchedClassifier, ClassifierError> {
    let program = ebpf.program_mut(name).ok_or(ClassifierError::Lacks(name))?;
    program
        .try_into()
        .map_err(|source: aya::programs::ProgramError| ClassifierError::load(source.into()))
}

fn tls_program<'a>(
    ebpf: &'a mut Ebpf,
    name: &'static str,
) -> Result<&'a mut UProbe, ClassifierError> {
    let program = ebpf.program_mut(name).ok_or(ClassifierError::Lacks(name))?;
    program
        .try_into()
        .map_err(|source: aya::programs::ProgramError| ClassifierError::load(source.into()))
}

fn map(ebpf: &mut Ebpf, name: &'static str) -> Result<aya::maps::Map, ClassifierError> {
    ebpf.take_map(name).ok_or(ClassifierError::Lacks(name))
}
