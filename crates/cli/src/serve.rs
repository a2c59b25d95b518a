//! `sooner serve`: a static web server whose responses leave in the order a policy decides.

use anyhow::Context;
use clap::{Args, ValueEnum};
use sooner_kernel::descriptors::{limit, raise_limit};
use sooner_policy::PolicyName;
use sooner_uplink::gate::GateLimits;
use sooner_uplink::{Mechanism, Uplink, UplinkConfig};
use sooner_web::access_log::Destination;
use sooner_web::{Listening, Server};
use sooner_workload::Rate;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Smaller reads would cost more system calls than they save memory.
const CHUNK_BYTES_MIN: u64 = 16 << 10;

/// Reads that wait for a disk at once; more would only queue at the disk.
const READING_THREADS_MAX: usize = 32;

/// Arguments of `sooner serve`.
#[derive(Args)]
pub struct ServeArgs {
    /// Directory whose files are served
    dir: PathBuf,
    /// Address and port to listen on; may be given several times
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080", value_parser = parse_address)]
    listen: Vec<SocketAddr>,
    /// Who goes first on the uplink: fair, fcfs, srpt, psjf, las or fsp
    #[arg(long, default_value = "srpt", value_parser = parse_policy)]
    policy: PolicyName,
    /// Rate of the link out of this machine, such as 100mbit; without it responses are not ordered
    #[arg(long, value_name = "RATE")]
    uplink: Option<Rate>,
    /// Network device towards that link, for the kernel's bands [default: the one that carries the first address]
    #[arg(long, value_name = "DEV", requires = "uplink")]
    uplink_device: Option<String>,
    /// Where responses are put in order
    #[arg(long, value_enum, default_value_t = MechanismArg::Auto, requires = "uplink")]
    mechanism: MechanismArg,
    /// Let the bands replace a queueing discipline that somebody configured
    #[arg(long, requires = "uplink")]
    replace_qdisc: bool,
    /// JSON lines, one a response: a file, - for standard output, or off
    #[arg(long, value_name = "FILE", default_value = "off", value_parser = parse_destination)]
    access_log: Destination,
    /// Seconds that responses in flight may take after SIGTERM
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    grace: u32,
    /// Do not say on standard error when it is ready
    #[arg(long)]
    quiet: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MechanismArg {
    /// The best that this process may use
    Auto,
    /// Turns to write, without privilege
    UserSpace,
    /// The kernel's priority bands; needs CAP_NET_ADMIN
    Bands,
    /// Turns above, bands below
    Both,
    /// No order
    None,
}

/// Serves until SIGTERM or SIGINT.
pub fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let descriptors = raise_limit(u64::MAX).unwrap_or_else(|_| limit());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(READING_THREADS_MAX)
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve(args, descriptors))?;
    // A read that hangs on its disk must not keep the process.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

async fn serve(args: ServeArgs, descriptors: u64) -> anyhow::Result<()> {
    remove_leftovers();
    let listening = args.server(descriptors).start()?;
    let mut signals = Signals::new().context("cannot watch for signals")?;
    let uplink = args.start_uplink(&listening)?;
    if !args.quiet {
        eprintln!("sooner: {}", args.ready_line(&listening, &uplink));
    }
    let stopped = std::rc::Rc::new(tokio::sync::Notify::new());
    let serving = listening.run(uplink, {
        let stopped = stopped.clone();
        async move { stopped.notified().await }
    });
    let twice = async {
        signals.next().await;
        stopped.notify_one();
        signals.next().await;
    };
    // The second signal ends what the first one lets finish.
    tokio::select! {
        () = serving => {}
        () = twice => {}
    }
    Ok(())
}

/// Bands that a killed process left would order somebody else's traffic for ever; any start takes them down.
fn remove_leftovers() {
    match sooner_kernel::bands::remove_leftovers() {
        Ok(devices) => devices.iter().for_each(|device| {
            eprintln!("sooner: took down the bands that a killed process left on {device}");
        }),
        Err(error) => eprintln!("sooner: {error}"),
    }
}

impl ServeArgs {
    fn server(&self, descriptors: u64) -> Server {
        let mut server = Server::new(self.dir.clone(), self.listen.clone());
        server.access_log = self.access_log.clone();
        // Connections need descriptors more than files do.
        let files_max = usize::try_from(descriptors / 4).unwrap_or(usize::MAX);
        server.cache.files_max = server.cache.files_max.min(files_max);
        server.grace = Duration::from_secs(self.grace.into());
        if let Some(rate) = self.ordered_rate() {
            let quantum_bytes = GateLimits::at_rate(rate.bits_per_sec()).quantum_bytes;
            // Whole quanta, so that a chunk does not end in a small packet.
            let quanta = CHUNK_BYTES_MIN.div_ceil(quantum_bytes);
            server.chunk_bytes = (quanta * quantum_bytes) as usize;
        }
        server
    }

    /// The uplink's rate, if responses are to be ordered.
    fn ordered_rate(&self) -> Option<Rate> {
        self.uplink.filter(|_| self.mechanism != MechanismArg::None)
    }

    fn start_uplink(&self, listening: &Listening) -> anyhow::Result<Uplink> {
        let Some(rate) = self.ordered_rate() else {
            return Ok(Uplink::unlimited());
        };
        let mut config = UplinkConfig::new(rate.bits_per_sec(), self.policy);
        config.mechanism = match self.mechanism {
            MechanismArg::Auto | MechanismArg::None => Mechanism::Auto,
            MechanismArg::UserSpace => Mechanism::UserSpace,
            MechanismArg::Bands => Mechanism::Bands,
            MechanismArg::Both => Mechanism::Both,
        };
        config.device = self.uplink_device.clone();
        config.listen = listening.addresses().iter().map(SocketAddr::ip).collect();
        config.replace_qdisc = self.replace_qdisc;
        Ok(Uplink::start(&config)?)
    }

    fn ready_line(&self, listening: &Listening, uplink: &Uplink) -> String {
        let addresses: Vec<_> = listening
            .addresses()
            .iter()
            .map(|address| format!("http://{address}"))
            .collect();
        let order = match (self.uplink, self.ordered_rate()) {
            (_, Some(rate)) => format!(
                "policy {}, uplink {rate}; {}",
                self.policy.as_str(),
                uplink.describe()
            ),
            (Some(_), None) => "not ordered: --mechanism none".into(),
            (None, None) => uplink.describe().into(),
        };
        format!(
            "serving {} on {}; {order}",
            self.dir.display(),
            addresses.join(" ")
        )
    }
}

/// The signals that ask a server to stop; a terminal that closes is one, or bands would outlive it.
struct Signals {
    hang_up: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            hang_up: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.hang_up.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "write an address and a port, such as 127.0.0.1:8080, 0.0.0.0:80 or [::]:8080".into()
    })
}

fn parse_policy(text: &str) -> Result<PolicyName, String> {
    text.parse()
        .map_err(|_| "choose one of fair, fcfs, srpt, psjf, las, fsp".into())
}

fn parse_destination(text: &str) -> Result<Destination, String> {
    Ok(match text {
        "off" => Destination::Off,
        "-" => Destination::Stdout,
        path => Destination::File(path.into()),
    })
}
