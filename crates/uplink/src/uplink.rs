//! The handle a server holds: wraps its sockets, shares one gate among them.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::timer::PacingTimer;
use sooner_policy::Time;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::config::{UplinkConfig, UplinkError};
use crate::core::Core;
use crate::flow::{BodyDone, Flow};
use crate::gate::{Answer, FlowId};
use crate::mechanism::{Plan, Setup};
use crate::pacer;
use crate::stream::GatedStream;

/// Unsent bytes a socket may hold before it counts as not writable: none, so that what is written is on its way.
const UNSENT_BYTES_MAX: u32 = 1;

/// One uplink and everybody who writes to it; clones share it.
#[derive(Clone)]
pub struct Uplink {
    shared: Arc<Shared>,
    description: Arc<str>,
}

/// What the handle, the flows, the streams and the pacer have in common.
pub(crate) struct Shared {
    core: Mutex<Core>,
    /// Whether writes wait for grants.
    pub(crate) paced: bool,
    /// Whether sockets are marked for kernel bands.
    pub(crate) marks: bool,
    pub(crate) pacer_wanted: Arc<Notify>,
    setup: Setup,
}

impl Uplink {
    /// No limit and no order: writes pass, and are accounted for.
    pub fn unlimited() -> Self {
        Self::assemble(
            Core::new("none", None, None),
            Setup::default(),
            "not ordered: no --uplink was given".into(),
        )
    }

    /// Sets up what `config` asks for and starts pacing; must be called within a tokio runtime.
    pub fn start(config: &UplinkConfig) -> Result<Self, UplinkError> {
        let plan = Plan::make(config)?;
        let timer = PacingTimer::new().map_err(|source| UplinkError::System {
            what: "cannot make a timer",
            source,
        })?;
        let core = Core::new(config.policy.as_str(), plan.gate, plan.marks);
        let uplink = Self::assemble(core, plan.setup, plan.description);
        if uplink.shared.paced {
            // Less lateness for every sleep of this thread; the default slack of 50 us only saves power.
            let _ = sooner_kernel::timer::set_timer_slack_ns(1);
            tokio::spawn(pacer::run(
                Arc::downgrade(&uplink.shared),
                timer,
                plan.backlog,
            ));
        }
        Ok(uplink)
    }

    fn assemble(core: Core, setup: Setup, description: String) -> Self {
        let (paced, marks) = (core.gate.is_some(), core.marks.is_some());
        let shared = Shared {
            core: Mutex::new(core),
            paced,
            marks,
            pacer_wanted: Arc::default(),
            setup,
        };
        Self {
            shared: Arc::new(shared),
            description: description.into(),
        }
    }

    /// Which mechanism is active and what would improve it, in one line.
    pub fn describe(&self) -> &str {
        &self.description
    }

    /// Puts an accepted connection behind the gate.
    pub fn wrap(&self, io: TcpStream) -> (GatedStream, Flow) {
        if self.shared.paced || self.shared.marks {
            // Where the kernel lacks the option more lies unsent in it, ordered by nobody; the rest still is.
            let _ = sooner_kernel::socket::set_notsent_lowat(&io, UNSENT_BYTES_MAX);
        }
        let id = self.shared.lock().open(self.shared.now());
        let flow = Flow {
            shared: self.shared.clone(),
            id,
            body_done: BodyDone::default(),
        };
        (GatedStream::new(io, &flow), flow)
    }

    /// Marks a listener so that its SYN-ACKs go before everything else; no effect without bands.
    pub fn mark_listener(&self, listener: impl std::os::fd::AsFd) -> io::Result<()> {
        match self.shared.priority_of(0) {
            Some(priority) => sooner_kernel::socket::set_priority(listener, priority),
            None => Ok(()),
        }
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        // After a panic the account may be off by one response; the kernel must be put back all the same.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_ns(monotonic_ns())
    }

    pub(crate) fn priority_of(&self, band: u8) -> Option<u32> {
        self.setup.priority_of(band)
    }

    pub(crate) fn ask(&self, flow: FlowId, want_bytes: u64, waker: &Waker) -> Answer {
        if !self.paced {
            return Answer::Go(want_bytes);
        }
        let mut core = self.lock();
        let answer = core.ask(flow, want_bytes, waker, self.now());
        if answer == Answer::Wait {
            self.want_pacer(&mut core);
        }
        answer
    }

    pub(crate) fn hold_until(&self, until: Time) {
        if let Some(gate) = &mut self.lock().gate {
            gate.hold_until(until);
        }
    }

    /// Wakes the flow whose turn it is, and sees to it that somebody wakes the one after.
    pub(crate) fn call_next(&self) {
        if !self.paced {
            return;
        }
        let waker = {
            let mut core = self.lock();
            let waker = core.call(self.now());
            self.want_pacer(&mut core);
            waker
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The pacer goes to sleep; until when.
    pub(crate) fn arm_pacer(&self) -> Option<Time> {
        let mut core = self.lock();
        core.pacer_until = core.gate.as_ref().and_then(|gate| gate.wake_at());
        core.pacer_until
    }

    /// Wakes the pacer if it sleeps past the time at which it is needed.
    fn want_pacer(&self, core: &mut Core) {
        let Some(at) = core.gate.as_ref().and_then(|gate| gate.wake_at()) else {
            return;
        };
        if core.pacer_until.is_none_or(|until| at < until) {
            core.pacer_until = Some(at);
            self.pacer_wanted.notify_one();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The pacer finds nobody to pace, and ends.
        self.pacer_wanted.notify_one();
    }
}
