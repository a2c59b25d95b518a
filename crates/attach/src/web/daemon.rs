//! Attaching until told to stop: events are taken, cutoffs kept, and clients of the control socket
//! answered.

use std::cell::RefCell;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use rustix::process::Pid;
use sooner_kernel::bands::{BandsError, Became, Left};
use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::device::{self, Device};
use sooner_kernel::place::Place;
use sooner_kernel::signals::EndSignals;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, LocalSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval};

use super::admin::{self, Desk};
use super::attached::{AttachError, Attached, Loss};
use super::config::AttachConfig;
use super::control_name;
use super::detach::{self, DetachError};
use crate::control::{self, Control};

/// How often events are taken; there is room for 10 000 of them.
const LOOK: Duration = Duration::from_millis(100);
/// After so many looks the device is looked at: whether it and what was put on it are there.
const LOOKS_BETWEEN_DEVICE: u32 = 10;
/// After so many looks libraries are looked for.
const LOOKS_BETWEEN_LIBRARIES: u32 = 50;

/// Why it ended by itself, or did not begin.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Nothing was attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// What a killed process left on the device could not be taken away.
    #[error(transparent)]
    Leftovers(#[from] DetachError),
    /// Another one is attached.
    #[error("device `{device}` has the attachment of {}; stop it first, or name another device", holder(.pid))]
    Taken {
        /// The device's name.
        device: String,
        /// The process; none: it cannot be seen from here.
        pid: Option<Pid>,
    },
    /// The device went away, or what was put on it.
    #[error(transparent)]
    Lost(#[from] Loss),
    /// It ended, and something is not as it was before.
    #[error("{0}; `tc qdisc show` and `ip -d link` show what is left")]
    NotRestored(#[source] BandsError),
    /// The admin address is not there.
    #[error("--admin {0}: {1}; choose another port, or an address of this machine")]
    Admin(SocketAddr, io::Error),
    /// The system refused something while it ran.
    #[error("{0}")]
    System(#[from] io::Error),
}

fn holder(pid: &Option<Pid>) -> String {
    match pid {
        Some(pid) => format!("process {pid}"),
        None => "another process".into(),
    }
}

/// What it tells its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// What became of a device that a killed process left changed.
    Cleaned(Left),
    /// Where its live page is.
    Page(SocketAddr),
    /// Responses are ordered from now on; how, in one line.
    Ready(String),
    /// Another rate, and why, in one line; `is_done` unless it is only observed.
    Decided {
        /// The line.
        line: String,
        /// Whether it was put into force.
        is_done: bool,
    },
    /// Something the operator should know, in one line.
    Problem(String),
    /// It ends, and takes everything away.
    Stopping,
}

/// Attaches until SIGTERM, SIGINT or SIGHUP; blocks. Everything is taken away when it returns.
pub fn run(config: AttachConfig, mut tell: impl FnMut(Told)) -> Result<(), DaemonError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let tasks = LocalSet::new();
    let ended = tasks.block_on(&runtime, async {
        // Before anything is changed, so that no signal can come too early.
        let mut ends = EndSignals::listen()?;
        let bind = |address| {
            let bound = admin::bind(address);
            bound.map_err(|error| DaemonError::Admin(address, error))
        };
        let listener = config.admin.map(bind).transpose()?;
        let page = listener.as_ref().map(|own| own.local_addr()).transpose()?;
        let device = device::by_name(&config.device).map_err(AttachError::NoDevice);
        clean(device.as_ref().ok(), &mut tell)?;
        let device = device?;
        // Held until all is as it was.
        let _place = take_place(&device)?;
        let observes = config.observes;
        let attached = Attached::start(device.clone(), config, monotonic_ns())?;
        let control = listen(&device, observes)?;
        if let Some(problem) = control.problem() {
            tell(Told::Problem(problem.into()));
        }
        tell(Told::Ready(attached.description()));
        if let Some(page) = page {
            tell(Told::Page(page));
        }
        let attached = Rc::new(RefCell::new(attached));
        let ended = tokio::select! {
            biased;
            _ = ends.next() => Ok(()),
            ended = work(&attached, &control, &mut tell) => ended,
            () = show(&attached, listener) => Ok(()),
        };
        tell(Told::Stopping);
        // The socket last: when it is gone the device is as it was.
        let attached = Rc::into_inner(attached).map(RefCell::into_inner);
        let detached = attached.map_or(Ok(()), Attached::detach);
        drop(control);
        ended.and(detached.map_err(DaemonError::NotRestored))
    });
    // A look at other processes keeps nothing that has to be put back.
    runtime.shutdown_background();
    ended
}

/// Takes away what killed processes left. What stays on another device than the wanted one is told,
/// and no reason not to begin.
fn clean(wanted: Option<&Device>, tell: &mut impl FnMut(Told)) -> Result<(), DetachError> {
    let (left, problems) = detach::clean(wanted)?;
    // Of what stays its own device's start says more.
    let left = left.into_iter();
    let left = left.filter(|left| left.became != Became::Untouched);
    left.for_each(|left| tell(Told::Cleaned(left)));
    let problems = problems.into_iter();
    problems.for_each(|problem| tell(Told::Problem(problem.to_string())));
    Ok(())
}

/// The place of the device's one attachment.
fn take_place(device: &Device) -> Result<Place, DaemonError> {
    Place::take(device.index)?.ok_or_else(|| DaemonError::Taken {
        device: device.name.clone(),
        pid: holder_of(device),
    })
}

/// The process that answers for the device; none where it cannot be seen.
fn holder_of(device: &Device) -> Option<Pid> {
    let name = control_name(device).ok()?;
    control::holder(&name).ok().flatten()
}

/// Answers for the device from now on.
fn listen(device: &Device, observes: bool) -> io::Result<Control> {
    let name = control_name(device)?;
    match observes {
        true => Control::listen_if_possible(&name),
        false => Control::listen(&name),
    }
}

/// Never returns. Who is connected keeps nothing attached.
async fn show(attached: &Rc<RefCell<Attached>>, listener: Option<TcpListener>) {
    match listener {
        Some(listener) => {
            let desk = Desk::new(Rc::downgrade(attached));
            sooner_operate::admin::serve(listener, Rc::new(desk)).await;
        }
        None => pending().await,
    }
}

/// Never returns but on an error. What is attached is borrowed between two waits only.
async fn work(
    attached: &RefCell<Attached>,
    control: &Control,
    tell: &mut impl FnMut(Told),
) -> Result<(), DaemonError> {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut count = 0_u32;
    let mut libraries: Option<JoinHandle<_>> = None;
    loop {
        tokio::select! {
            _ = looks.tick() => {
                let mut attached = attached.borrow_mut();
                attached.take_events()?;
                match attached.follow_uplink(monotonic_ns()) {
                    Ok(Some(decision)) => tell(Told::Decided {
                        line: decision.to_string(),
                        is_done: attached.orders(),
                    }),
                    Ok(None) => {}
                    Err(error) => {
                        let lost = attached.loss().map(DaemonError::from);
                        return Err(lost.unwrap_or(error.into()));
                    }
                }
                count = count.wrapping_add(1);
                if count.is_multiple_of(LOOKS_BETWEEN_DEVICE)
                    && let Some(loss) = attached.loss()
                {
                    return Err(loss.into());
                }
                if count.is_multiple_of(LOOKS_BETWEEN_LIBRARIES) && libraries.is_none() {
                    libraries = attached.look_for_libraries().map(spawn_blocking);
                }
            }
            // A look that failed found nothing; the next one comes.
            looked = async { libraries.as_mut()?.await.ok() }, if libraries.is_some() => {
                libraries = None;
                if let Some(looked) = looked {
                    attached.borrow_mut().take_libraries(looked);
                }
            }
            () = control.answer(|| attached.borrow_mut().snapshot(monotonic_ns())) => {}
        }
    }
}
