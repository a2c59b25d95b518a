//! Attached to a server's workers until told to stop.

use std::collections::BTreeSet;
use std::io;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, getpid};
use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::scheduling::RealTime;
use sooner_kernel::signals::EndSignals;
use sooner_kernel::workers::{Workers, WorkersWanted, lacks_for_workers};
use sooner_kernel::{capability, descriptors, priority};
use sooner_processor::Next;
use tokio::time::sleep;

use super::attached::{AttachError, Attached};
use super::changes::Changes;
use super::groups::Groups;
use super::options::{Options, WantedRule};
use super::server::{self, Family};
use super::snapshot::Snapshot;
use super::source::{Proc, Source};
use super::trial::{self, Trial, Tried};
use super::waiting::Waiting;
use crate::control::{self, Control};
use crate::record::{self, Cleaned, name_of};
use crate::turn::Turn;
use crate::web::config::Servers;

/// This process's real time where workers have some: above them and above what hands requests on.
const READER_REAL_TIME: u8 = 3;
/// Looks that something told of are no closer than this.
const LOOK_MIN: Duration = Duration::from_millis(1);
/// Two for each worker without programs, as far as the system lets.
const DESCRIPTORS: u64 = 1 << 16;
/// Between two looks for a server that went away.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// This process's own nice value: it wakes for a moment, and comes first then.
const OWN_NICE: i32 = -20;

/// The flag by which programs are left out, in the place of what they lack.
pub const NO_PROGRAMS: &str = "--no-bpf";

/// Why it did not begin, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The server cannot be attached to.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// A capability is missing.
    #[error(
        "giving workers the processor first needs CAP_SYS_NICE; run as root, with AmbientCapabilities=CAP_SYS_NICE in a systemd unit, or with --observe"
    )]
    NotPermitted,
    /// Real time without a bound.
    #[error(
        "--realtime: kernel.sched_rt_runtime_us is -1, so a busy worker would leave no processor time to others; set it to 950000"
    )]
    RealTimeIsUnbounded,
    /// The paper's rule counts changes.
    #[error("--rule {rule}: changes can be counted by BPF programs only; {}", right(.lacks))]
    RuleNeedsPrograms {
        /// The rule.
        rule: &'static str,
        /// What is missing.
        lacks: String,
    },
    /// Nice values have no effect.
    #[error(
        "{0}: no nice value puts one worker before another here; give --realtime, if the system allows it"
    )]
    NothingWorks(Trial),
    /// Another one is attached.
    #[error(
        "process {pid} is attached to the workers of this server already; end it with `sooner attach remove --cpu --pid {server}`"
    )]
    Attached {
        /// Its process.
        pid: Pid,
        /// The server's first process.
        server: u32,
    },
    /// The process that was named is gone.
    #[error("process {0} has ended, and its workers with it")]
    Ended(u32),
    /// The system refused something.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// What would be right where programs are missing.
fn right(lacks: &str) -> String {
    match lacks {
        NO_PROGRAMS => format!("leave out {NO_PROGRAMS}"),
        lacks => format!("that needs {lacks}"),
    }
}

/// What it tells its caller.
#[derive(Debug, Clone, PartialEq)]
pub enum DaemonEvent {
    /// What killed ones had changed of the workers of these servers was put back.
    Cleaned(Vec<u32>),
    /// What came of trials.
    Tried(Vec<Trial>),
    /// Workers are ordered from now on; how, in one line.
    Ready(String),
    /// Something the operator should know, in one line.
    Problem(String),
    /// It ends, and puts everything back.
    Stopping,
}

/// What it needs from the program it is part of.
pub struct Surroundings<'a> {
    /// Takes events.
    pub tell: Box<dyn FnMut(DaemonEvent) + 'a>,
    /// Begins a competitor for [`trial::test()`].
    pub competitor: Box<dyn Fn() -> Command + 'a>,
    /// After so long it ends by itself.
    pub ends_after: Option<Duration>,
}

/// Attaches until SIGTERM, SIGINT or SIGHUP; blocks. Everything is put back when it returns. Gives
/// the figures at the end.
pub fn run(
    options: &Options,
    surroundings: &mut Surroundings<'_>,
) -> Result<Option<Snapshot>, DaemonError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run_until_ended(options, surroundings))
}

async fn run_until_ended(
    options: &Options,
    surroundings: &mut Surroundings<'_>,
) -> Result<Option<Snapshot>, DaemonError> {
    // Before anything is changed, so that no signal can come too early.
    let mut ends = EndSignals::listen()?;
    has_what_rule_needs(options, lacks(options))?;
    // Fewer are no obstacle: the system may have its reasons.
    let _ = descriptors::raise_hard_limit(DESCRIPTORS);
    if !options.observes {
        may_change(options)?;
        clean(surroundings)?;
        is_free(options)?;
    }
    let trials = match options.observes {
        true => Vec::new(),
        false => tokio::select! {
            biased;
            _ = ends.next() => {
                (surroundings.tell)(DaemonEvent::Stopping);
                return Ok(None);
            }
            trials = tried(options, surroundings) => trials?,
        },
    };
    let mut told_waiting = false;
    let mut waiting = None;
    loop {
        let work = attach_once(options, &trials, surroundings, &mut ends, &mut waiting);
        let error = match work.await {
            Ok(snapshot) => return Ok(snapshot),
            Err(DaemonError::Attach(error)) if is_awaited(&error, told_waiting) => error,
            Err(error) => return Err(error),
        };
        if let Servers::Process(pid) = options.server {
            return Err(DaemonError::Ended(pid));
        }
        if matches!(error, AttachError::Gone) {
            told_waiting = false;
        }
        if !std::mem::replace(&mut told_waiting, true) {
            let words = format!("the server has ended; waiting for it to start again ({error})");
            (surroundings.tell)(DaemonEvent::Problem(words));
        }
        tokio::select! {
            _ = ends.next() => {
                (surroundings.tell)(DaemonEvent::Stopping);
                return Ok(None);
            }
            () = sleep(RETRY_PAUSE) => {}
            never = Waiting::answer(waiting.as_ref()) => match never {},
        }
    }
}

/// Refuses before anything is tried what would be refused after it.
fn is_free(options: &Options) -> Result<(), DaemonError> {
    let family = Family::find(&options.server)?;
    let roots = family.roots();
    let server = roots.first().ok_or(AttachError::NoWorker)?;
    Groups::of(options, &family.workers(&BTreeSet::new()))?;
    if let Some(path) = record::left::<Changes>(server.pid)?
        && control::holder(&name_of::<Changes>(server.pid))?.is_none()
    {
        return Err(AttachError::Left(path).into());
    }
    no_other_is_attached(server.pid)
}

fn no_other_is_attached(server: u32) -> Result<(), DaemonError> {
    // This one may wait for a server that now has the same number.
    let is_other = |pid: &Pid| *pid != getpid();
    match control::holder(&name_of::<Changes>(server))?.filter(is_other) {
        Some(pid) => Err(DaemonError::Attached { pid, server }),
        None => Ok(()),
    }
}

/// Whether a server that was there has gone, or is not back yet.
fn is_awaited(error: &AttachError, is_waiting: bool) -> bool {
    match error {
        AttachError::Gone => true,
        AttachError::Server(_) | AttachError::Version1(_) | AttachError::NoWorker => is_waiting,
        _ => false,
    }
}

fn may_change(options: &Options) -> Result<(), DaemonError> {
    if !capability::has_sys_nice() {
        return Err(DaemonError::NotPermitted);
    }
    if options.real_time && !priority::real_time_is_bounded() {
        return Err(DaemonError::RealTimeIsUnbounded);
    }
    Ok(())
}

fn clean(surroundings: &mut Surroundings<'_>) -> io::Result<()> {
    let Cleaned { servers, problems } = record::clean::<Changes>()?;
    if !servers.is_empty() {
        (surroundings.tell)(DaemonEvent::Cleaned(servers));
    }
    for problem in problems {
        (surroundings.tell)(DaemonEvent::Problem(problem));
    }
    Ok(())
}

/// What is missing for programs; none where nothing is.
fn lacks(options: &Options) -> Option<&'static str> {
    match options.uses_programs {
        true => lacks_for_workers(),
        false => Some(NO_PROGRAMS),
    }
}

/// The rule that needs programs has them.
fn has_what_rule_needs(options: &Options, lacks: Option<&str>) -> Result<(), DaemonError> {
    match (options.rule, lacks) {
        (WantedRule::RunWait { .. }, Some(lacks)) => Err(DaemonError::RuleNeedsPrograms {
            rule: "changes",
            lacks: lacks.into(),
        }),
        _ => Ok(()),
    }
}

/// From where it is known what workers do, and what is missing for programs.
fn source(options: &Options) -> Result<(Source, Option<String>), DaemonError> {
    let lacks = match lacks(options) {
        Some(lacks) => lacks.to_owned(),
        None => match Workers::watch() {
            Ok(workers) => return Ok((Source::Programs(Box::new(workers)), None)),
            Err(error) => error.to_string(),
        },
    };
    has_what_rule_needs(options, Some(&lacks))?;
    Ok((Source::Proc(Proc::default()), Some(lacks)))
}

/// Whether nice values have an effect, and weights.
async fn tried(
    options: &Options,
    surroundings: &mut Surroundings<'_>,
) -> Result<Vec<Trial>, DaemonError> {
    // A server that is not there needs no trial.
    server::exists(&options.server)?;
    let nice = trial::test(Tried::Nice, &surroundings.competitor).await;
    let weights = trial::test(Tried::Autogroup, &surroundings.competitor).await;
    if !nice.outcome.works() && !options.real_time {
        return Err(DaemonError::NothingWorks(nice));
    }
    let trials = vec![nice, weights];
    (surroundings.tell)(DaemonEvent::Tried(trials.clone()));
    Ok(trials)
}

/// One life of the server. `waiting` gives way to the answers of this one, which stay when it is
/// over.
async fn attach_once(
    options: &Options,
    trials: &[Trial],
    surroundings: &mut Surroundings<'_>,
    ends: &mut EndSignals,
    waiting: &mut Option<Waiting>,
) -> Result<Option<Snapshot>, DaemonError> {
    // Before programs are loaded.
    Family::find(&options.server)?;
    let mut attached = Attached::new(options, trials, source(options)?, monotonic_ns())?;
    let server = attached.server().pid;
    let control = match options.observes {
        true => take_place_to_look(server, surroundings, waiting)?,
        false => take_place(server, waiting)?,
    };
    if !options.observes {
        if let Some(path) = record::left::<Changes>(server)? {
            return Err(AttachError::Left(path).into());
        }
        // Both are this process's own, and end with it.
        let _ = priority::set_nice(std::process::id(), OWN_NICE);
    }
    let _real_time = match options.real_time {
        // Before workers that have it, or it could not put them back.
        true => RealTime::enter_at(READER_REAL_TIME).ok(),
        false => None,
    };
    let begun = attached.begin(monotonic_ns());
    let ended = match begun {
        Ok(problems) => {
            for problem in problems {
                (surroundings.tell)(DaemonEvent::Problem(problem));
            }
            (surroundings.tell)(DaemonEvent::Ready(ready_line(&attached)));
            let ends_after = surroundings.ends_after;
            tokio::select! {
                biased;
                _ = ends.next() => Ok(()),
                () = sleep(ends_after.unwrap_or_default()), if ends_after.is_some() => Ok(()),
                error = work(&mut attached, &control, &mut surroundings.tell) => Err(error),
            }
        }
        Err(error) => Err(error),
    };
    if ended.is_ok() {
        (surroundings.tell)(DaemonEvent::Stopping);
    }
    let snapshot = attached.snapshot(monotonic_ns());
    // The socket last: when it is gone everything is as it was.
    attached.end()?;
    match ended {
        Ok(()) => Ok(Some(snapshot)),
        // What was seen until then is all that there is to report.
        Err(error @ AttachError::Gone) if surroundings.ends_after.is_some() => {
            let words = format!("the server has ended ({error}); the figures are those until then");
            (surroundings.tell)(DaemonEvent::Problem(words));
            Ok(Some(snapshot))
        }
        Err(error) => {
            *waiting = Some(Waiting::after(control, snapshot));
            Err(error.into())
        }
    }
}

fn ready_line(attached: &Attached<'_>) -> String {
    let now = attached.snapshot(monotonic_ns());
    let what = match now.observes {
        true => "only looks at",
        false => "the processor goes first to short requests of",
    };
    let source = match &now.lacks {
        None => String::new(),
        Some(lacks) if lacks == NO_PROGRAMS => format!("; without BPF programs ({lacks})"),
        Some(lacks) => format!("; without BPF programs, which need {lacks}"),
    };
    format!(
        "{what} {} workers of {} (process {}), {}{source}",
        now.workers, now.program, now.server_pid, now.rule
    )
}

/// Answers for the server from now on, unless another process does.
fn take_place(server: u32, waiting: &mut Option<Waiting>) -> Result<Control, DaemonError> {
    let folder = control::own_folder()?;
    let _turn = Turn::wait(&folder)?;
    no_other_is_attached(server)?;
    // It may have the same place.
    drop(waiting.take());
    Ok(Control::listen(&name_of::<Changes>(server))?)
}

/// The same for one that changes nothing, which needs no folder.
fn take_place_to_look(
    server: u32,
    surroundings: &mut Surroundings<'_>,
    waiting: &mut Option<Waiting>,
) -> Result<Control, DaemonError> {
    if control::own_folder().is_ok() {
        return take_place(server, waiting);
    }
    let control = Control::listen_if_possible(&name_of::<Changes>(server))?;
    if let Some(words) = control.problem() {
        (surroundings.tell)(DaemonEvent::Problem(words.into()));
    }
    Ok(control)
}

/// Until the server is gone, or the system refuses something.
async fn work(
    attached: &mut Attached<'_>,
    control: &Control,
    tell: &mut dyn FnMut(DaemonEvent),
) -> AttachError {
    loop {
        // What comes from now on is told, so that nothing is missed between the look and the wait.
        attached.source().set_wants(match attached.has_levels() {
            true => WorkersWanted::All,
            false => WorkersWanted::Rests,
        });
        let now_ns = monotonic_ns();
        let until_ns = match attached.look(now_ns) {
            Ok(Next::At(at_ns)) => {
                // What wakes until then has used too little by then to fall.
                if at_ns <= now_ns.saturating_add(attached.first_bound_ns()) {
                    attached.source().set_wants(WorkersWanted::Rests);
                }
                at_ns.min(attached.due_ns())
            }
            Ok(Next::WhenTold) => attached.due_ns(),
            Err(error) => return error,
        };
        if let Some(words) = attached.without_place() {
            tell(DaemonEvent::Problem(words));
        }
        let pause = Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()));
        tokio::select! {
            told = attached.source().told() => {
                if let Err(error) = told {
                    return error.into();
                }
            }
            () = sleep(pause) => {}
            () = control.answer(|| Ok(attached.snapshot(now_ns))) => {}
        }
        // Workers that wake and sleep without a pause tell of it once in this time.
        attached.source().set_wants(WorkersWanted::Nothing);
        let since = Duration::from_nanos(monotonic_ns().saturating_sub(now_ns));
        let rest = LOOK_MIN.saturating_sub(since);
        // Even none takes a wake-up.
        if !rest.is_zero() {
            sleep(rest).await;
        }
    }
}
