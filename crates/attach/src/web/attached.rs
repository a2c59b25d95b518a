//! Bands and programs on a device, and what is learned while they are there.

use sooner_bottleneck::{Decision, limit};
use sooner_kernel::bands::{
    BAND_COUNT, BandStats, Bands, BandsError, BandsOptions, Presence, Replace,
};
use sooner_kernel::capability;
use sooner_kernel::classifier::{
    Classifier, ClassifierError, Event, EventKind, Options, Via, lacks_for_delays,
};
use sooner_kernel::device::{self, Device};
use sooner_kernel::qdisc;
use sooner_link::{SIZE_CLASS_BYTES, SIZE_CLASSES};
use sooner_policy::Cutoffs;

use super::auto_uplink::AutoUplink;
use super::config::{AttachConfig, Shaping, Uplink};
use super::ports::{self, PortsError};
use super::snapshot::{BandView, ObservedView, SizeView, Snapshot, mean_ms};
use super::sources::Sources;
use super::tls_libraries::Looked;
use super::watch::{Observed, Watch};

/// The rate by which super-packets are limited where that of the link is found.
const GSO_RATE_BITS_PER_SEC: u64 = 10_000_000;
/// Events taken in one go, so that a flood of them leaves time for all else.
const EVENTS_AT_ONCE: usize = 10_000;

/// Why nothing was attached. Whatever the reason, the machine is as it was.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// There is no such device.
    #[error("{0}")]
    NoDevice(#[source] std::io::Error),
    /// The servers have no ports.
    #[error(transparent)]
    Ports(#[from] PortsError),
    /// A capability is missing.
    #[error(
        "ordering other programs' packets needs {0}; run as root, or with AmbientCapabilities=CAP_NET_ADMIN CAP_BPF in a systemd unit"
    )]
    NotPermitted(&'static str),
    /// The bands cannot be put there.
    #[error(transparent)]
    Bands(#[from] BandsError),
    /// The programs cannot be put there.
    #[error(transparent)]
    Classifier(#[from] ClassifierError),
    /// The rate cannot be found here.
    #[error(
        "--uplink auto needs {0}; give the rate of the narrowest link on the way out, like 10mbit"
    )]
    NoDelays(&'static str),
    /// The rate cannot be found where another limits it.
    #[error("--uplink auto limits the link itself: leave --no-shape out, or give the rate")]
    NotOurs,
    /// What was counted cannot be read.
    #[error("cannot read what was counted: {0}")]
    Counters(#[source] std::io::Error),
    /// The link is asked to carry more than the device can.
    #[error("an uplink of {rate} bit/s is more than device `{device}` carries ({speed} Mbit/s); give the rate of the narrowest link on the way out", rate = .rate_bits_per_sec, speed = .speed_mbit)]
    TooFast {
        /// The device's name.
        device: String,
        /// The requested rate.
        rate_bits_per_sec: u64,
        /// What the device says.
        speed_mbit: u64,
    },
}

/// What another process has taken away while it was attached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// The device went away.
    #[error("device `{0}` is gone; start again when it is back")]
    Device(String),
    /// The bands, which were its queueing discipline.
    #[error(
        "the bands were taken away from device `{device}`, which has {now} now; nothing is ordered any more; start again to put them back"
    )]
    Bands {
        /// The device's name.
        device: String,
        /// What it has instead.
        now: String,
    },
    /// One of the programs.
    #[error(
        "the BPF programs were taken away from device `{0}`; nothing is ordered any more; start again to put them back"
    )]
    Programs(String),
}

/// Bands and programs on a device; they go when this is dropped, programs first.
#[derive(Debug)]
pub struct Attached {
    classifier: Classifier,
    /// None: it only looks.
    bands: Option<Bands>,
    device: Device,
    /// How the rate is found; none: it was given.
    auto_uplink: Option<AutoUplink>,
    config: AttachConfig,
    options: Options,
    ports: Vec<u16>,
    sources: Sources,
    cutoffs: Cutoffs,
    /// As the programs have them.
    cutoffs_in_force: Vec<u64>,
    watch: Watch,
    /// Of the monotonic clock, as everything that the programs tell.
    started_ns: u64,
}

impl Attached {
    /// Takes programs and bands away; the error is what could not be restored.
    pub fn detach(self) -> Result<(), BandsError> {
        drop(self.classifier);
        self.bands.map_or(Ok(()), Bands::remove)
    }

    /// Finds the servers' ports and attaches to the device at `now_ns` of the monotonic clock; the
    /// caller holds the device's place. On an error nothing is changed.
    pub fn start(
        device: Device,
        config: AttachConfig,
        now_ns: u64,
    ) -> Result<Attached, AttachError> {
        let ports = ports::beside_or_of(&config.ports_beside, &config.servers)?;
        permitted()?;
        let auto_uplink = auto_uplink(&device, &config)?;
        let rate_bits_per_sec = match config.uplink {
            Uplink::Rate(rate_bits_per_sec) => rate_bits_per_sec,
            Uplink::Auto { .. } => auto_uplink
                .as_ref()
                .map_or(0, AutoUplink::most_bits_per_sec),
        };
        not_beyond(&device, rate_bits_per_sec)?;
        let options = bands_options(&config, rate_bits_per_sec);
        let bands = if config.observes {
            None
        } else {
            Some(Bands::install_as(&device, options)?)
        };
        let cutoffs = Cutoffs::default();
        let mut options = Options {
            flows_max: config.flows_max,
            cutoffs: cutoffs.cutoffs().to_vec(),
            marks: !config.observes,
            measures: auto_uplink.is_some(),
            ..Options::for_ports(ports.clone())
        };
        if config.uses_clsact {
            options.via = Via::Clsact;
        }
        let (classifier, sources) = Sources::attach(&device, &mut options, &config)?;
        Ok(Attached {
            classifier,
            sources,
            bands,
            device,
            watch: watch_of(&config, rate_bits_per_sec),
            auto_uplink,
            cutoffs_in_force: options.cutoffs.clone(),
            options,
            ports,
            cutoffs,
            started_ns: now_ns,
            config,
        })
    }

    /// What was set up, in one line.
    pub fn description(&self) -> String {
        let ports: Vec<String> = self.ports.iter().map(ToString::to_string).collect();
        let via = match self.options.via {
            Via::Tcx => "TCX",
            Via::Clsact => "clsact",
        };
        let limit = match (self.config.uplink, self.config.shaping) {
            (Uplink::Auto { .. }, _) => {
                let most = limit(self.rate_bits_per_sec());
                let most = most.map(|rate| format!(", at most {} Mbit/s", rate as f64 / 1e6));
                format!("at a rate that is found{}", most.unwrap_or_default())
            }
            (Uplink::Rate(rate), Shaping::Ours) => format!("at {} Mbit/s", rate as f64 / 1e6),
            (Uplink::Rate(rate), Shaping::NotOurs) => {
                format!("that others limit to {} Mbit/s", rate as f64 / 1e6)
            }
        };
        let order = if self.bands.is_some() {
            format!("in {BAND_COUNT} bands {limit}")
        } else {
            format!("are observed and not ordered, {limit}")
        };
        let lengths = if self.options.reads_heads {
            "lengths of plain HTTP read"
        } else {
            "lengths not read, which needs Linux 5.17: all by what they have had"
        };
        format!(
            "responses of port {} on {} {order} ({via}, {lengths}; {})",
            ports.join(", "),
            self.device.name,
            self.sources.description(),
        )
    }

    /// Whether anything is ordered, and not only looked at.
    pub fn orders(&self) -> bool {
        self.bands.is_some()
    }

    /// Looks what the link carries, and follows it; gives what is worth a line in a log.
    pub fn follow_uplink(&mut self, now_ns: u64) -> Result<Option<Decision>, AttachError> {
        let Some(auto) = &mut self.auto_uplink else {
            return Ok(None);
        };
        let news = auto.step(
            &mut self.classifier,
            &self.device,
            self.bands.as_mut(),
            now_ns,
        )?;
        self.watch.set_rate(auto.carries_bits_per_sec());
        Ok(news)
    }

    fn rate_bits_per_sec(&self) -> u64 {
        match (&self.auto_uplink, self.config.uplink) {
            (Some(auto), _) => auto.rate_bits_per_sec(),
            (None, Uplink::Rate(rate_bits_per_sec)) => rate_bits_per_sec,
            (None, Uplink::Auto { .. }) => 0,
        }
    }

    /// Takes the events that are there, and puts new cutoffs in force if they changed.
    pub fn take_events(&mut self) -> std::io::Result<()> {
        for _ in 0..EVENTS_AT_ONCE {
            let Some(event) = self.classifier.next_event() else {
                break;
            };
            self.learn(&event);
            self.watch.note(&event);
        }
        self.put_cutoffs_in_force()
    }

    /// A look for TLS libraries that came or went, for a thread that may wait; none where they are
    /// not read.
    pub fn look_for_libraries(&self) -> Option<impl FnOnce() -> Looked + Send + 'static + use<>> {
        self.sources.look(&self.config)
    }

    /// Takes what such a look has found.
    pub fn take_libraries(&mut self, looked: Looked) {
        self.sources.take(&mut self.classifier, looked);
    }

    /// What is gone of all that was attached, and follows a new name of the device; all is there
    /// until the kernel says otherwise.
    pub fn loss(&mut self) -> Option<Loss> {
        match device::by_index(self.device.index) {
            Ok(Some(found)) => self.device.name = found.name,
            Ok(None) => return Some(Loss::Device(self.device.name.clone())),
            Err(_) => {}
        }
        let name = &self.device.name;
        match self.bands.as_mut().map(Bands::presence) {
            None | Some(Presence::There) => {}
            Some(Presence::DeviceGone) => return Some(Loss::Device(name.clone())),
            Some(Presence::TakenAway(now)) => {
                let device = name.clone();
                return Some(Loss::Bands { device, now });
            }
        }
        match self.classifier.is_attached(name) {
            Ok(false) => Some(Loss::Programs(name.clone())),
            _ => None,
        }
    }

    /// All figures at `now_ns` of the monotonic clock.
    pub fn snapshot(&mut self, now_ns: u64) -> std::io::Result<Snapshot> {
        self.watch.advance(now_ns);
        let counted = self.classifier.counted()?;
        let mut flows = [0; BAND_COUNT];
        for (_, flow) in self.classifier.flows() {
            flows[usize::from(flow.band).min(BAND_COUNT - 1)] += 1;
        }
        let stats = match &mut self.bands {
            Some(bands) => bands.stats()?,
            None => Default::default(),
        };
        Ok(Snapshot {
            pid: std::process::id(),
            device: self.device.name.clone(),
            rate_bits_per_sec: match self.auto_uplink {
                Some(_) => limit(self.rate_bits_per_sec()),
                None => Some(self.rate_bits_per_sec()),
            },
            uplink: self.auto_uplink.as_ref().map(|auto| auto.view(now_ns)),
            ports: self.ports.clone(),
            uptime_s: now_ns.saturating_sub(self.started_ns) as f64 / 1e9,
            via: match self.options.via {
                Via::Tcx => "tcx".into(),
                Via::Clsact => "clsact".into(),
            },
            reads_heads: self.options.reads_heads,
            tls_libraries: self.sources.tls_libraries(),
            tls_problem: self.sources.tls_problem(),
            bands: self.band_views(&stats, &flows),
            sizes: self.size_views(),
            responses: counted.responses,
            sized_responses: counted.sized + counted.sized_by_tls,
            sized_by_tls: counted.sized_by_tls,
            ordered_by_socket: counted.by_socket,
            wrong_lengths: self.watch.wrong_lengths(),
            tls_writes: counted.tls_writes,
            under_way: self.watch.under_way() as u64,
            broken_responses: self.watch.broken(),
            resent_packets: counted.resent_packets,
            syn_acks: counted.syn_acks,
            lowered_syn_acks: counted.lowered_syn_acks,
            lost_events: counted.lost_events,
            observed: self.config.observes.then(|| self.observed()),
        })
    }

    /// What has left through all bands and what waits in them, bytes; nothing where it only looks.
    pub fn load(&mut self) -> std::io::Result<(u64, u64)> {
        let stats = match &mut self.bands {
            Some(bands) => bands.stats()?,
            None => Default::default(),
        };
        let sum = |of: fn(&BandStats) -> u64| stats.iter().map(of).sum();
        Ok((sum(|band| band.sent_bytes), sum(|band| band.backlog_bytes)))
    }

    /// What ordering would give.
    fn observed(&self) -> ObservedView {
        let root = qdisc::root(&self.device).ok().flatten();
        let observed = self.watch.observed();
        let ms = |of: fn(&Observed) -> f64| observed.as_ref().map(|one| of(one) / 1e6);
        ObservedView {
            queue: root.map(|root| format!("{} {}", root.kind, root.handle)),
            responses: observed.map_or(0, |observed| observed.responses as u64),
            mean_response_ms: ms(|one| one.mean_ns),
            equal_mean_response_ms: ms(|one| one.equal_ns),
            shortest_mean_response_ms: ms(|one| one.shortest_ns),
        }
    }

    fn band_views(
        &self,
        stats: &[BandStats; BAND_COUNT],
        flows: &[u64; BAND_COUNT],
    ) -> Vec<BandView> {
        let bands = stats.iter().zip(flows).enumerate();
        bands
            .map(|(band, (stats, &flows))| BandView {
                up_to_bytes: self.cutoffs_in_force.get(band).copied(),
                flows,
                sent_packets: stats.sent_packets,
                sent_bytes: stats.sent_bytes,
                dropped_packets: stats.drops,
                backlog_bytes: stats.backlog_bytes,
            })
            .collect()
    }

    fn size_views(&self) -> Vec<SizeView> {
        let classes = (0..SIZE_CLASSES).zip(self.watch.took());
        classes
            .map(|(class, took)| SizeView {
                up_to_bytes: SIZE_CLASS_BYTES.get(class).copied(),
                responses: took.responses,
                mean_response_ms: mean_ms(took.response_ns, took.responses),
                compared_responses: took.compared,
                compared_mean_response_ms: mean_ms(took.compared_response_ns, took.compared),
                fair_mean_response_ms: mean_ms(took.fair_response_ns, took.compared),
            })
            .collect()
    }

    /// A length that is known counts at once, so that the bands follow sooner; any other at the
    /// end.
    fn learn(&mut self, event: &Event) {
        match (event.kind, event.flow.size_bytes) {
            (EventKind::Started | EventKind::Sized, Some(size_bytes)) => {
                self.cutoffs.record(size_bytes)
            }
            (EventKind::Ended | EventKind::Broken, None) => {
                self.cutoffs.record(event.flow.sent_bytes)
            }
            _ => {}
        }
    }

    fn put_cutoffs_in_force(&mut self) -> std::io::Result<()> {
        if self.cutoffs.cutoffs() != self.cutoffs_in_force {
            self.cutoffs_in_force = self.cutoffs.cutoffs().to_vec();
            self.classifier.set_cutoffs(&self.cutoffs_in_force)?;
        }
        Ok(())
    }
}

fn permitted() -> Result<(), AttachError> {
    if !capability::has_net_admin() {
        return Err(AttachError::NotPermitted("CAP_NET_ADMIN"));
    }
    if !capability::has_bpf() {
        return Err(AttachError::NotPermitted("CAP_BPF"));
    }
    Ok(())
}

/// The search for the rate, where there is one.
fn auto_uplink(device: &Device, config: &AttachConfig) -> Result<Option<AutoUplink>, AttachError> {
    let Uplink::Auto { most_bits_per_sec } = config.uplink else {
        return Ok(None);
    };
    if config.shaping == Shaping::NotOurs {
        return Err(AttachError::NotOurs);
    }
    if let Some(lacks) = lacks_for_delays() {
        return Err(AttachError::NoDelays(lacks));
    }
    Ok(Some(AutoUplink::new(
        device,
        most_bits_per_sec,
        config.observes,
    )))
}

fn bands_options(config: &AttachConfig, rate_bits_per_sec: u64) -> BandsOptions {
    let replace = if config.replace_qdisc {
        Replace::Yes
    } else {
        Replace::No
    };
    let is_auto = matches!(config.uplink, Uplink::Auto { .. });
    BandsOptions {
        lower_share_per_mille: config.lower_share_per_mille,
        limits_rate: config.shaping == Shaping::Ours,
        // Whatever is found, a packet is one frame: connections keep what they began with.
        gso_rate_bits_per_sec: is_auto.then_some(GSO_RATE_BITS_PER_SEC),
        replace,
        ..BandsOptions::at_rate(rate_bits_per_sec)
    }
}

/// Responses that begin before a rate is known are not compared.
fn watch_of(config: &AttachConfig, rate_bits_per_sec: u64) -> Watch {
    let mut watch = Watch::new(rate_bits_per_sec);
    if matches!(config.uplink, Uplink::Auto { .. }) {
        watch.set_rate(None);
    }
    watch
}

/// A device that does not say how fast it is (virtual ones) is believed to be fast enough.
fn not_beyond(device: &Device, rate_bits_per_sec: u64) -> Result<(), AttachError> {
    match device.speed_mbit() {
        Some(speed_mbit) if rate_bits_per_sec > speed_mbit * 1_000_000 => {
            Err(AttachError::TooFast {
                device: device.name.clone(),
                rate_bits_per_sec,
                speed_mbit,
            })
        }
        _ => Ok(()),
    }
}
