//! Attaching until told to stop: events are taken, cutoffs kept, and clients of the control socket
//! answered.

use std::cell::RefCell;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::signals::EndSignals;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, LocalSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval};

use super::admin::{self, Desk};
use super::attached::{AttachError, Attached};
use super::config::AttachConfig;
use super::control_name;
use super::detach::{self, DetachError};
use crate::control::Control;

/// How often events are taken; there is room for 10 000 of them.
const LOOK: Duration = Duration::from_millis(100);
/// After so many looks the device is looked for.
const LOOKS_BETWEEN_DEVICE: u32 = 10;
/// After so many looks libraries are looked for.
const LOOKS_BETWEEN_LIBRARIES: u32 = 50;

/// Why it ended by itself, or did not begin.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Nothing was attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// What a killed process left could not be taken away.
    #[error(transparent)]
    Leftovers(#[from] DetachError),
    /// The device went away.
    #[error("device `{0}` is gone; start again when it is back")]
    Gone(String),
    /// The admin address is not there.
    #[error("--admin {0}: {1}; choose another port, or an address of this machine")]
    Admin(SocketAddr, io::Error),
    /// The system refused something while it ran.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// What it tells its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// What a killed process had left on these devices was taken away.
    Cleaned(Vec<String>),
    /// Responses are ordered from now on; how, in one line.
    Ready(String),
    /// Another rate, and why, in one line; `is_done` unless it is only observed.
    Decided {
        /// The line.
        line: String,
        /// Whether it was put into force.
        is_done: bool,
    },
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
        let listen = |address| {
            let bound = admin::bind(address);
            bound.map_err(|error| DaemonError::Admin(address, error))
        };
        let listener = config.admin.map(listen).transpose()?;
        let cleaned = detach::clean()?;
        if !cleaned.is_empty() {
            tell(Told::Cleaned(cleaned));
        }
        let attached = Attached::start(config, monotonic_ns())?;
        let control = Control::listen(&control_name(attached.device())?)?;
        tell(Told::Ready(attached.description()));
        let attached = Rc::new(RefCell::new(attached));
        let ended = tokio::select! {
            biased;
            _ = ends.next() => Ok(()),
            ended = work(&attached, &control, &mut tell) => ended,
            () = show(&attached, listener) => Ok(()),
        };
        tell(Told::Stopping);
        // The socket last: when it is gone the device is as it was.
        drop(attached);
        drop(control);
        ended
    });
    // A look at other processes keeps nothing that has to be put back.
    runtime.shutdown_background();
    ended
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
                    Err(_) if !attached.has_device() => {
                        return Err(DaemonError::Gone(attached.device().name.clone()));
                    }
                    Err(error) => return Err(error.into()),
                }
                count = count.wrapping_add(1);
                if count.is_multiple_of(LOOKS_BETWEEN_DEVICE) && !attached.has_device() {
                    return Err(DaemonError::Gone(attached.device().name.clone()));
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
