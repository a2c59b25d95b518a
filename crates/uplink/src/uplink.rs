//! The handle a server holds: wraps its sockets, which share one scheduler.

use crate::auto_rate::{self, AutoRate, Found};
use crate::config::{UplinkConfig, UplinkError};
use crate::flow::{Flow, Signals};
use crate::installed_bands::{self, InstalledBands};
use crate::mechanism::{Metering, Plan};
use crate::observer::Observer;
use crate::pacer;
use crate::shared_link::{SharedLink, now};
use crate::stream::GatedStream;
use sooner_kernel::timer::PacingTimer;
use sooner_link::{LinkConfig, LinkScheduler, Snapshot};
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;

/// One uplink and all that write to it; clones share it, on any threads.
#[derive(Clone)]
pub struct Uplink {
    shared: Arc<SharedLink>,
    description: Arc<str>,
}

impl Uplink {
    /// No limit and no order: writes pass, and are accounted for.
    ///
    /// The streams of a connection to a slow client are still ordered by class and as RFC 9218
    /// says, then in turns; and they hand over no more than 64 KiB ahead of it.
    pub fn unlimited() -> Self {
        Self::assemble(
            LinkConfig::default(),
            InstalledBands::default(),
            Metering::default(),
            None,
            "not ordered: no --uplink was given".into(),
        )
    }

    /// Sets up what `config` asks for and starts pacing; must be called within a tokio runtime,
    /// which paces for all threads that use the uplink, and has to outlive them.
    pub fn start(config: &UplinkConfig) -> Result<Self, UplinkError> {
        let plan = Plan::make(config)?;
        let timer = PacingTimer::new().map_err(|source| UplinkError::System {
            what: "cannot make a timer",
            source,
        })?;
        let link = LinkConfig {
            policy: Some(config.policy),
            by_client: config.by_client,
            rate_bits_per_sec: Some(config.rate_bits_per_sec),
            stream_rule: config.streams,
            pacing: plan.pacing,
            bands: plan.bands,
        };
        let most = config.rate_bits_per_sec;
        let auto_rate = config
            .is_auto
            .then(|| AutoRate::new(most, config.tell.clone()));
        let (bands, metering) = (plan.installed_bands, plan.metering);
        let uplink = Self::assemble(link, bands, metering, auto_rate, plan.description);
        if config.is_auto {
            uplink.shared.set_rate(most);
            tokio::spawn(auto_rate::run(Arc::downgrade(&uplink.shared)));
        }
        if uplink.uses_bands() {
            let shared = Arc::downgrade(&uplink.shared);
            tokio::spawn(installed_bands::watch(shared, config.tell.clone()));
        }
        if uplink.shared.is_paced {
            // Less lateness for every sleep of this thread; the default slack of 50 us only saves
            // power.
            let _ = sooner_kernel::timer::set_timer_slack_ns(1);
            tokio::spawn(pacer::run(
                Arc::downgrade(&uplink.shared),
                timer,
                plan.backlog,
            ));
        }
        Ok(uplink)
    }

    fn assemble(
        config: LinkConfig,
        installed_bands: InstalledBands,
        metering: Metering,
        auto_rate: Option<AutoRate>,
        description: String,
    ) -> Self {
        let link = LinkScheduler::new(config, now());
        let shared = SharedLink::new(link, installed_bands, metering, auto_rate);
        Self {
            shared: Arc::new(shared),
            description: description.into(),
        }
    }

    /// Which mechanism is active and what would improve it, or what has become of it, in one line.
    pub fn describe(&self) -> String {
        match self.shared.bands_trouble() {
            Some(trouble) => format!("{}; {trouble}", self.description),
            None => self.description.to_string(),
        }
    }

    /// Whether kernel bands were installed, which need `CAP_NET_ADMIN` until they are taken down.
    pub fn uses_bands(&self) -> bool {
        self.shared.marks_bands
    }

    /// Puts an accepted connection under the scheduler; its socket should have `TCP_NODELAY`, or
    /// the end of a grant waits in it for an acknowledgement, and the connection with it.
    pub fn wrap(&self, io: TcpStream) -> (GatedStream, Flow) {
        let id = {
            let (mut state, now) = self.shared.lock_at();
            state.link.open(now)
        };
        let flow = Flow {
            shared: self.shared.clone(),
            id,
            signals: Signals::default(),
        };
        let mut stream = GatedStream::new(io, &flow);
        stream.limit_unsent();
        stream.sample_path_first();
        stream.measure_first();
        (stream, flow)
    }

    /// Marks a listener so that its SYN-ACKs go before everything else, or behind it where they are
    /// a flood; no effect without bands.
    pub fn mark_listener(
        &self,
        listener: impl std::os::fd::AsFd,
        is_flood: bool,
    ) -> io::Result<()> {
        let priority = if is_flood {
            self.shared.last_priority()
        } else {
            self.shared.priority_of(0)
        };
        match priority {
            Some(priority) => sooner_kernel::socket::set_priority(listener, priority),
            None => Ok(()),
        }
    }

    /// Whether handshakes have a place in the order.
    pub fn orders_handshakes(&self) -> bool {
        self.shared.priority_of(0).is_some()
    }

    /// Tells `observer` of every response from now on; there is one, and the first stays.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        self.shared.observer.get_or_init(|| observer);
    }

    /// What is believed of the link; none where its rate was given.
    pub fn found(&self) -> Option<Found> {
        self.shared.auto_rate.as_ref().map(AutoRate::found)
    }

    /// What is there now. Looks at every connection: for once a second, not for every request.
    pub fn snapshot(&self) -> Snapshot {
        let (mut state, now) = self.shared.lock_at();
        state.link.snapshot(now)
    }
}
