//! `sooner attach web`.

use super::Partly;
use crate::with_causes;
use anyhow::{Context, Result, ensure};
use clap::Args;
use sooner_attach::detach::Which;
use sooner_attach::web::config::{AttachConfig, Servers, Shaping, Uplink};
use sooner_attach::web::daemon::{self, Told};
use sooner_attach::web::detach::{self, Detached};
use sooner_attach::web::snapshot::Snapshot;
use sooner_attach::web::{admin, ask};
use sooner_kernel::device::{self, Device};
use sooner_operate::Supervisor;
use sooner_operate::{print, say_as};
use sooner_workload::{Rate, UplinkRate};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;

/// Of servers in plain text and under TLS.
const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// Almost a gigabyte of kernel memory.
const FLOWS_MAX: i64 = 4_194_304;

/// Order the responses of a web server in the kernel, on one network device.
///
/// Short responses go before long ones: by the bytes that remain where the length is known (HTTP/1,
/// and TLS by OpenSSL, GnuTLS or Go), else by the bytes that wait in the server's socket, else by
/// the bytes already sent.
///
/// Needs CAP_NET_ADMIN and CAP_BPF, for lengths under TLS also CAP_PERFMON. Changes to the device
/// are undone when the command ends, except for a replaced queueing discipline with classes; after
/// a kill, the next `sooner attach web` or `sooner attach remove --killed` undoes them.
#[derive(Args)]
pub struct WebArgs {
    /// Network device that leads to the clients, such as eth0
    #[arg(long, value_name = "DEVICE")]
    dev: String,
    /// Rate of the narrowest link towards the clients, such as 100mbit; set it slightly below what
    /// the link carries. `auto` finds the rate while traffic flows, auto:100mbit up to a maximum
    #[arg(long, value_name = "RATE|auto")]
    uplink: UplinkRate,
    /// Ports of the servers, separated by commas; with --pid or --cgroup those that are published
    /// here, where the server is in another network namespace [default: 80,443]
    #[arg(long = "port", value_name = "PORT", value_delimiter = ',', value_parser = super::port)]
    ports: Vec<u16>,
    /// Control group of the servers' processes, such as nginx.service
    #[arg(long, value_name = "NAME", conflicts_with = "pid")]
    cgroup: Option<String>,
    /// Process ID of the server
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Order responses of servers behind this host, which routes their packets
    #[arg(long, conflicts_with_all = ["cgroup", "pid"])]
    forward: bool,
    /// Share of the link that the bands below the top always keep together, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    share: f64,
    /// Most connections remembered, up to 4194304; each takes about 200 bytes of kernel memory
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..=FLOWS_MAX))]
    flows: u32,
    /// Count and report what `--uplink auto` would do, without ordering or limiting anything
    #[arg(long, conflicts_with_all = ["no_shape", "replace_qdisc"])]
    observe: bool,
    /// Order without limiting the rate, where something behind this device limits the link and
    /// makes it wait (needs sch_prio)
    #[arg(long)]
    no_shape: bool,
    /// Do not read the lengths of TLS responses where servers pass them to their TLS library
    #[arg(long)]
    no_tls_lengths: bool,
    /// Do not count the bytes that wait in sockets where a length is unknown
    #[arg(long)]
    no_socket_lengths: bool,
    /// Address of metrics and the live page; a port alone means 127.0.0.1 [default: none]
    #[arg(long, value_name = "ADDR:PORT|PORT", value_parser = admin::address)]
    admin: Option<SocketAddr>,
    /// Put programs into a qdisc clsact, as on Linux before 6.6
    #[arg(long, hide = true)]
    clsact: bool,
    /// Replace a queueing discipline that the operator configured; it is restored unless it has
    /// classes
    #[arg(long)]
    replace_qdisc: bool,
}

impl WebArgs {
    /// Whether the servers are named by their processes.
    fn is_by_process(&self) -> bool {
        self.pid.is_some() || self.cgroup.is_some()
    }

    fn config(self) -> Result<AttachConfig> {
        ensure!(
            (0.0..=40.0).contains(&self.share),
            "--share {} is out of range; give 0 to 40 per cent",
            self.share
        );
        let is_by_process = self.is_by_process();
        let ports = match self.ports.is_empty() && !is_by_process {
            true => DEFAULT_PORTS.into(),
            false => self.ports,
        };
        let ports_beside = match is_by_process {
            true => ports.clone(),
            false => Vec::new(),
        };
        let servers = match (self.cgroup, self.pid, self.forward) {
            (Some(name), _, _) => Servers::Group(name),
            (_, Some(pid), _) => Servers::Process(pid),
            (_, _, true) => Servers::Behind(ports),
            _ => Servers::Ports(ports),
        };
        let uplink = match self.uplink {
            UplinkRate::Known(rate) => Uplink::Rate(rate.bits_per_sec()),
            UplinkRate::Auto(most) => Uplink::Auto {
                most_bits_per_sec: most.map(Rate::bits_per_sec),
            },
        };
        Ok(AttachConfig {
            ports_beside,
            lower_share_per_mille: (self.share * 10.0).round() as u16,
            observes: self.observe,
            replace_qdisc: self.replace_qdisc,
            flows_max: self.flows,
            reads_tls: !self.no_tls_lengths,
            reads_sockets: !self.no_socket_lengths,
            uses_clsact: self.clsact,
            admin: self.admin,
            shaping: if self.no_shape {
                Shaping::NotOurs
            } else {
                Shaping::Ours
            },
            ..AttachConfig::new(&self.dev, uplink, servers)
        })
    }
}

/// Attaches until told to stop.
pub fn web(args: WebArgs) -> Result<ExitCode> {
    // The default ones are no claim, and those behind this host, or in another network namespace,
    // cannot be seen.
    let named = match args.forward || args.is_by_process() {
        true => Vec::new(),
        false => args.ports.clone(),
    };
    let config = args.config()?;
    let supervisor = Supervisor::from_environment();
    daemon::run(config, |told| match told {
        Told::Cleaned(left) => say_as("sooner attach", left),
        Told::Page(address) => {
            say_as("sooner attach", page(address));
        }
        Told::Ready(how) => {
            print(format_args!("ready: {how}"));
            supervisor.ready(&how);
            if let Some(hint) = super::silent_ports(&named) {
                say_as("sooner attach", hint);
            }
        }
        Told::Decided { line, is_done } => {
            let would = if is_done { "" } else { "would be: " };
            say_as("sooner attach", format_args!("uplink {would}{line}"));
        }
        Told::Problem(words) => say_as("sooner attach", format_args!("{words}")),
        Told::Stopping => supervisor.stopping(super::STOPPING),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Where a browser finds the page.
fn page(mut address: SocketAddr) -> String {
    let everywhere = address.ip().is_unspecified();
    if everywhere {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    let port = address.port();
    let others = match everywhere {
        true => format!(", and port {port} at every address of this host"),
        false => String::new(),
    };
    format!("live page: http://{address}/{others}")
}

/// Those of this network namespace that answer.
pub fn attached(name: Option<&str>) -> Result<Partly<Snapshot>> {
    let devices: Vec<Device> = match name {
        Some(name) => vec![device::by_name(name)?],
        None => device::all().context("cannot list devices")?,
    };
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for device in devices {
        match ask(&device) {
            Ok(snapshot) => found.push(snapshot),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => problems.push(format!(
                "cannot find out what is attached to {}: {error}",
                device.name
            )),
        }
    }
    Ok((found, problems))
}

/// Devices with attachments that do not answer here, a line each.
pub fn out_of_sight(name: Option<&str>) -> Result<Vec<String>> {
    let mut devices = match name {
        Some(name) => vec![device::by_name(name)?],
        None => device::all().context("cannot list devices")?,
    };
    devices.retain(|device| detach::is_held_out_of_sight(device).unwrap_or(false));
    let line = |device: Device| {
        format!(
            "{}: the attachment of another user, or of another container, is there and does not answer here; end it where it was started, and `tc qdisc show dev {0}` shows whether it limits the device",
            device.name
        )
    };
    Ok(devices.into_iter().map(line).collect())
}

/// Ends them.
pub fn remove(device: Option<&str>, which: Which) -> Result<Partly<String>> {
    let words = |detached: &Detached| match detached {
        Detached::Ended { device, pid } => {
            format!("{device}: process {pid} has ended, and the device is as it was")
        }
        Detached::Cleaned(left) => left.to_string(),
    };
    let (done, problems) = detach::detach(device, which)?;
    let problems = problems.into_iter().map(|error| with_causes(&error.into()));
    Ok((done.iter().map(words).collect(), problems.collect()))
}
