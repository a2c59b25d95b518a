//! What the workers of a server do, watched by BPF programs on the scheduler's tracepoints.
//!
//! `bpf/workers.bpf.c` says what is watched. Programs and maps go with the descriptors that hold
//! them, also by a kill. Needs `CAP_BPF` and `CAP_PERFMON`, and Linux 5.15 with BTF.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::fs::MetadataExt;

use aya::maps::{HashMap, Map, MapData, PerCpuArray, RingBuf};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader};
use tokio::io::unix::AsyncFd;

use crate::capability;
use crate::classifier::{ClassifierError, lacks_for_delays};
use crate::netlink::message::{u32_at, u64_at};
use crate::raw;
use crate::shared_words::SharedWords;
use crate::signals::Held;

/// The programs as the C compiler made them; `cargo xtask bpf` compares them with their source.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../bpf/workers.bpf.o");
/// Each with the tracepoint it hangs on.
const PROGRAMS: [(&str, &str); 6] = [
    ("note_switch", "sched_switch"),
    ("note_wakeup", "sched_wakeup"),
    ("note_call", "sys_exit"),
    ("note_fork", "sched_process_fork"),
    ("note_exit", "sched_process_exit"),
    ("note_name", "task_rename"),
];
/// So many can be watched.
pub const WORKERS_MAX: usize = 4096;
/// Of `struct worker`, in words of 8 bytes; and where its halves are, in words of 4.
const WORKER_WORDS: usize = 15;
const DOING_AT: usize = 18;
const LEVEL_AT: usize = 19;
const CLIENT_AT: usize = 20;
const ANSWERED_AT: usize = 21;
const KIND_WORD: usize = 11;
const HANDS_ON_AT: usize = 27;
const SAID_WORD: usize = 14;
/// What a worker does that has ended.
const GONE: u32 = 5;
/// Of `struct desk`, in words of 4 bytes.
const READER_WANTS_AT: usize = 0;
const ACTIVE_AT: usize = 1;
const READY_AT: usize = 2;
/// The inode of the namespace of processes in which the kernel counts.
const FIRST_PID_NAMESPACE: u64 = 0xeffffffc;
/// A worker that changes while it is read is read again so often.
const TRIES: usize = 8;

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerDoing {
    /// No switch was seen yet.
    Unknown,
    /// It is on a processor.
    Runs,
    /// It waits for one.
    Ready,
    /// It waits for something else.
    Asleep,
    /// It waits for a connection.
    Idle,
    /// It has ended, or is about to.
    Gone,
}

/// A worker as the programs see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerSeen {
    /// What it does.
    pub doing: WorkerDoing,
    /// Ready, asleep or idle since, ns of the monotonic clock.
    pub since_ns: u64,
    /// Processor time since it is watched, ns.
    pub run_ns: u64,
    /// How long it waited for a processor, ns.
    pub ready_ns: u64,
    /// How often it fell asleep.
    pub sleeps: u64,
    /// Requests that were seen to begin.
    pub requests: u64,
    /// `run_ns` when the last of them began.
    pub begin_run_ns: u64,
    /// When that was, ns of the monotonic clock.
    pub begin_at_ns: u64,
    /// Whether it has written to its client since.
    pub has_answered: bool,
    /// What the last of them has in common with others; none where that is not known, or not yet.
    pub kind: Option<NonZeroU64>,
    /// Whether other threads read from the connections that it accepts.
    pub hands_on: bool,
    /// What its application says that the request will use in all, ns.
    pub said_ns: Option<NonZeroU64>,
}

/// A request that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerEnded {
    /// What it has in common with others, if that is known.
    pub kind: Option<NonZeroU64>,
    /// When it began, ns of the monotonic clock.
    pub began_at_ns: u64,
    /// Processor time that it used, ns.
    pub used_ns: u64,
}

/// What a program says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerTold {
    /// Levels may change: look at all.
    Look,
    /// A process of the server has begun a thread or process with this number.
    Forked(u32),
}

/// What the reader wants to be told of, beside requests that begin below the top and processes that
/// begin others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkersWanted {
    /// Nothing.
    Nothing = 0,
    /// All that may change a level.
    All = 1,
    /// Only workers that may stand on top again.
    Rests = 2,
}

/// Sums over all processors, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkersBehind {
    /// Waits of workers for a processor that others had.
    pub others_ns: u64,
    /// The same for one that another worker had.
    pub own_ns: u64,
    /// What others had of processors.
    pub others_ran_ns: u64,
}

/// The programs, and who is watched.
pub struct Workers {
    // Holds the links: closing it takes the programs away.
    ebpf: Ebpf,
    seen: SharedWords,
    desk: SharedWords,
    places: HashMap<MapData, u32, u32>,
    processes: HashMap<MapData, u32, u8>,
    processors: PerCpuArray<MapData, [u64; 4]>,
    starts: HashMap<MapData, u64, u32>,
    endings: RingBuf<MapData>,
    tellings: RingBuf<MapData>,
    /// Its descriptor, on the reactor.
    told: AsyncFd<OwnedFd>,
    taken: Vec<bool>,
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").finish_non_exhaustive()
    }
}

/// What is missing here to watch workers; none where nothing is.
pub fn lacks_for_workers() -> Option<&'static str> {
    let own = std::fs::metadata("/proc/self/ns/pid");
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        Some("a processor with known registers (x86_64 or aarch64)")
    } else if own.is_ok_and(|own| own.st_ino() != FIRST_PID_NAMESPACE) {
        Some("the PID namespace of the host")
    } else if !capability::has_bpf() {
        Some("CAP_BPF")
    } else {
        lacks_for_delays()
    }
}

impl Workers {
    /// Begins; no worker is watched yet. Inside a tokio runtime.
    pub fn watch() -> Result<Workers, ClassifierError> {
        let _held = Held::begin().map_err(ClassifierError::system)?;
        let mut ebpf = EbpfLoader::new()
            .override_global("machine", &u32::from(cfg!(target_arch = "aarch64")), true)
            .override_global("seed", &RandomState::new().hash_one(0_u8), true)
            .load(OBJECT)
            .map_err(ClassifierError::load)?;
        let types = Btf::from_sys_fs().map_err(|error| ClassifierError::load(error.into()))?;
        for (name, tracepoint) in PROGRAMS {
            let program = program(&mut ebpf, name)?;
            let loaded = program.load(tracepoint, &types);
            loaded.map_err(|error| ClassifierError::load(error.into()))?;
        }
        let seen = shared(&mut ebpf, "workers", WORKERS_MAX * WORKER_WORDS)?;
        let desk = shared(&mut ebpf, "desks", 2)?;
        let tellings = RingBuf::try_from(map(&mut ebpf, "tellings")?)?;
        let told = tellings.as_fd().try_clone_to_owned();
        let told = told.and_then(raw::watch_readable);
        let workers = Workers {
            seen,
            desk,
            places: HashMap::try_from(map(&mut ebpf, "places")?)?,
            processes: HashMap::try_from(map(&mut ebpf, "processes")?)?,
            processors: PerCpuArray::try_from(map(&mut ebpf, "processors")?)?,
            starts: HashMap::try_from(map(&mut ebpf, "starts")?)?,
            endings: RingBuf::try_from(map(&mut ebpf, "endings")?)?,
            tellings,
            told: told.map_err(ClassifierError::system)?,
            taken: vec![false; WORKERS_MAX],
            ebpf,
        };
        workers.attach()
    }

    fn attach(mut self) -> Result<Workers, ClassifierError> {
        for (name, _) in PROGRAMS {
            let attached = program(&mut self.ebpf, name)?.attach();
            attached.map_err(|error| ClassifierError::load(error.into()))?;
        }
        Ok(self)
    }

    /// Watches a thread; gives its place. None where all are taken.
    pub fn add(&mut self, thread: u32) -> io::Result<Option<u32>> {
        let Some(place) = self.taken.iter().position(|taken| !taken) else {
            return Ok(None);
        };
        let base = 2 * WORKER_WORDS * place;
        for at in 0..2 * WORKER_WORDS {
            self.seen.store_half(base + at, 0);
        }
        // No connection yet.
        self.seen.store_half(base + CLIENT_AT, u32::MAX);
        let place = place as u32;
        self.places
            .insert(thread, place, 0)
            .map_err(io::Error::other)?;
        self.taken[place as usize] = true;
        Ok(Some(place))
    }

    /// Watches it no more.
    pub fn remove(&mut self, thread: u32, place: u32) {
        // One that is not there any more needs no removing.
        let _ = self.places.remove(&thread);
        self.taken[place as usize] = false;
        // One that has ended before its last switch wants no processor any more.
        let doing = self
            .seen
            .load_half(2 * WORKER_WORDS * place as usize + DOING_AT);
        if matches!(doing, 1 | 2) {
            self.desk.decrease_half(ACTIVE_AT);
        }
        if doing == 2 {
            self.desk.decrease_half(READY_AT);
        }
    }

    /// Tells of threads and processes that this one begins.
    pub fn add_process(&mut self, process: u32) -> io::Result<()> {
        self.processes
            .insert(process, 1, 0)
            .map_err(io::Error::other)
    }

    /// Tells of them no more.
    pub fn remove_process(&mut self, process: u32) {
        // One that is not there any more needs no removing.
        let _ = self.processes.remove(&process);
    }

    /// Looks at one.
    pub fn see(&self, place: u32, now_ns: u64) -> WorkerSeen {
        let base = WORKER_WORDS * place as usize;
        let mut seen = self.read(base, now_ns);
        for _ in 0..TRIES {
            let before = self.seen.load(base);
            seen = self.read(base, now_ns);
            if before.is_multiple_of(2) && self.seen.load(base) == before {
                break;
            }
        }
        seen
    }

    fn read(&self, base: usize, now_ns: u64) -> WorkerSeen {
        let word = |at: usize| self.seen.load(base + at);
        let half = |at: usize| self.seen.load_half(2 * base + at);
        let since_ns = match word(2) {
            0 => 0,
            on_ns => now_ns.saturating_sub(on_ns),
        };
        WorkerSeen {
            doing: match half(DOING_AT) {
                1 => WorkerDoing::Runs,
                2 => WorkerDoing::Ready,
                3 => WorkerDoing::Asleep,
                4 => WorkerDoing::Idle,
                GONE => WorkerDoing::Gone,
                _ => WorkerDoing::Unknown,
            },
            since_ns: word(3),
            run_ns: word(1) + since_ns,
            ready_ns: word(4),
            sleeps: word(5),
            requests: word(6),
            begin_run_ns: word(7),
            begin_at_ns: word(8),
            has_answered: half(ANSWERED_AT) != 0,
            kind: NonZeroU64::new(word(KIND_WORD)),
            hands_on: half(HANDS_ON_AT) != 0,
            said_ns: NonZeroU64::new(word(SAID_WORD)),
        }
    }

    /// Whether a worker has not ended: its number is its own while that is so.
    pub fn is_there(&self, place: u32) -> bool {
        let base = 2 * WORKER_WORDS * place as usize;
        self.seen.load_half(base + DOING_AT) != GONE
    }

    /// Says which level a worker has, 0 the top: where it is lower, its next request is told of.
    pub fn set_level(&self, place: u32, level: u8) {
        let base = 2 * WORKER_WORDS * place as usize;
        self.seen.store_half(base + LEVEL_AT, level.into());
    }

    /// Says on which level requests of a kind begin, 0 the top: one that is to begin below it is told
    /// of when it is read. What finds no room begins on top.
    pub fn set_start(&mut self, kind: NonZeroU64, level: u8) -> io::Result<()> {
        match level {
            0 => {
                // One that is not there begins on top.
                let _ = self.starts.remove(&kind.get());
                Ok(())
            }
            _ => self
                .starts
                .insert(kind.get(), u32::from(level), 0)
                .map_err(io::Error::other),
        }
    }

    /// The next request that is over.
    pub fn next_ended(&mut self) -> Option<WorkerEnded> {
        let bytes = self.endings.next()?;
        Some(WorkerEnded {
            kind: NonZeroU64::new(u64_at(&bytes, 0)?),
            began_at_ns: u64_at(&bytes, 8)?,
            used_ns: u64_at(&bytes, 16)?,
        })
    }

    /// Says what is to be told.
    pub fn set_wants(&self, wants: WorkersWanted) {
        self.desk.store_half(READER_WANTS_AT, wants as u32);
    }

    /// The oldest that was not taken yet.
    pub fn next_told(&mut self) -> Option<WorkerTold> {
        let bytes = self.tellings.next()?;
        let (kind, number) = (u32_at(&bytes, 0)?, u32_at(&bytes, 4)?);
        Some(match kind {
            3 => WorkerTold::Forked(number),
            _ => WorkerTold::Look,
        })
    }

    /// Until something is told.
    pub async fn told(&self) -> io::Result<()> {
        self.told.readable().await?.clear_ready();
        Ok(())
    }

    /// For whom workers waited.
    pub fn behind(&self) -> io::Result<WorkersBehind> {
        let each = self.processors.get(&0, 0).map_err(io::Error::other)?;
        let mut sum = WorkersBehind::default();
        for [_, others_ns, own_ns, others_ran_ns] in each.iter().copied() {
            sum.others_ns += others_ns;
            sum.own_ns += own_ns;
            sum.others_ran_ns += others_ran_ns;
        }
        Ok(sum)
    }
}

fn program<'a>(
    ebpf: &'a mut Ebpf,
    name: &'static str,
) -> Result<&'a mut BtfTracePoint, ClassifierError> {
    let program = ebpf.program_mut(name).ok_or(ClassifierError::Lacks(name))?;
    program
        .try_into()
        .map_err(|error: aya::programs::ProgramError| ClassifierError::load(error.into()))
}

fn map(ebpf: &mut Ebpf, name: &'static str) -> Result<Map, ClassifierError> {
    ebpf.take_map(name).ok_or(ClassifierError::Lacks(name))
}

fn shared(
    ebpf: &mut Ebpf,
    name: &'static str,
    words: usize,
) -> Result<SharedWords, ClassifierError> {
    let Map::Array(data) = map(ebpf, name)? else {
        return Err(ClassifierError::Lacks(name));
    };
    SharedWords::of_map(data.fd(), words).map_err(ClassifierError::system)
}
