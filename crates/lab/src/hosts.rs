//! Hosts and links: one server, its clients and the network between them, in network namespaces of
//! our own.
//!
//! The server stands at 10.77.0.1; client `i` has the address 10.78.0.(i+1). All clients are in one
//! namespace, so that one load process drives them all, by source address. Clients without delay
//! and loss are directly connected; as soon as one has any, a router stands between, and behind it
//! the emulator (`sooner emulate`), or netem before its device where that is wanted.
//!
//! Nothing outside these namespaces is touched. Dropping [`Hosts`] ends what runs in them and
//! removes them; after a kill, the next [`Hosts::up`] or [`clean()`] does, by a record in
//! /run/sooner. The owner of a record is alive exactly while the record is locked.

mod bottleneck;
mod clean;
mod error;
mod group;
mod plumbing;
mod record;
mod shape;
mod spec;
mod tools;
mod tuning;
mod wan;

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sooner_kernel::{capability, device, netns};
use sooner_testbed::OwnedChild;

pub use clean::clean;
pub use error::HostsError;
use group::Group;
use plumbing::Namespaces;
pub use plumbing::{SERVER_ADDRESS, SERVER_DEVICE};
use record::{Made, NAME_PREFIX, Record};
pub use spec::{Bottleneck, ClientSpec, HostsSpec, Shaper};

/// How long the emulator's last words may take.
const COUNTERS_WAIT: Duration = Duration::from_secs(2);

/// Hosts that are up; they go when this is dropped.
#[derive(Debug)]
pub struct Hosts {
    spec: HostsSpec,
    namespaces: Namespaces,
    emulator: Option<OwnedChild>,
    group: Option<Group>,
    remarks: Vec<String>,
    made: Vec<Made>,
    record: Record,
}

impl Hosts {
    /// Sets them up, after removing what killed processes left; `program` is the `sooner` that
    /// emulates the network. Nothing is left when it fails.
    pub fn up(spec: &HostsSpec, program: &Path) -> Result<Hosts, HostsError> {
        spec.check()?;
        check_privilege()?;
        // What cannot be removed is in the way of no other hosts: names have the process's number.
        let leftovers = clean().err();
        let id = format!("{}-{}", std::process::id(), spec.name);
        let recording =
            |source| HostsError::system(format!("record of the hosts `{}`", spec.name), source);
        let mut hosts = Hosts {
            spec: spec.clone(),
            namespaces: Namespaces::of(spec, &format!("{NAME_PREFIX}{id}")),
            emulator: None,
            group: None,
            remarks: leftovers
                .map(|error| format!("what a killed process left cannot be removed: {error}"))
                .into_iter()
                .collect(),
            made: Vec::new(),
            record: Record::create(Path::new(record::FOLDER), &id).map_err(recording)?,
        };
        hosts.make_namespaces()?;
        hosts.connect(program)?;
        hosts.limit()?;
        hosts.set_initial_timeout(&id)?;
        Ok(hosts)
    }

    /// What these hosts were asked to be.
    pub fn spec(&self) -> &HostsSpec {
        &self.spec
    }

    /// The server's address.
    pub fn server_address(&self) -> Ipv4Addr {
        plumbing::SERVER_ADDRESS
    }

    /// The clients' addresses, in their order.
    pub fn client_addresses(&self) -> Vec<Ipv4Addr> {
        self.spec.client_addresses()
    }

    /// The server's network namespace.
    pub fn server_namespace(&self) -> &str {
        &self.namespaces.server
    }

    /// The clients' network namespace.
    pub fn client_namespace(&self) -> &str {
        &self.namespaces.clients
    }

    /// The server's device towards its clients.
    pub fn server_device(&self) -> &'static str {
        plumbing::SERVER_DEVICE
    }

    /// A command that runs on the server's host.
    pub fn on_server(&self, program: impl AsRef<Path>) -> Command {
        self.on(&self.namespaces.server, program.as_ref())
    }

    /// A command that runs on the clients' host.
    pub fn on_client(&self, program: impl AsRef<Path>) -> Command {
        self.on(&self.namespaces.clients, program.as_ref())
    }

    /// What differs from the spec, a sentence each: what the kernel lacks and what is used instead.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Bytes the server's host has sent to its clients, link headers included.
    pub fn sent_bytes(&self) -> io::Result<u64> {
        self.in_server(|| device::by_name(plumbing::SERVER_DEVICE)?.tx_bytes())
    }

    /// Runs `body` in a thread on the server's host.
    pub fn in_server<T: Send>(&self, body: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        netns::inside(&self.namespaces.server, body)
    }

    /// The upper limit of every accept queue that is opened on the server's host from now on.
    pub fn limit_accept_queues(&self, connections: u32) -> Result<(), HostsError> {
        tuning::set(
            &self.namespaces.server,
            &[("net/core/somaxconn", connections.to_string())],
        )
    }

    /// Whether an emulator makes delay and loss here.
    pub fn has_emulator(&self) -> bool {
        self.emulator.is_some()
    }

    /// Takes the hosts away and gives what the emulator counted, as JSON; none where there was no
    /// emulator.
    pub fn down(mut self) -> Option<String> {
        let mut emulator = self.emulator.take()?;
        emulator.end();
        let lines: Vec<String> =
            std::iter::from_fn(|| emulator.next_line(COUNTERS_WAIT).ok()).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn make_namespaces(&mut self) -> Result<(), HostsError> {
        let names: Vec<String> = self.namespaces.all().map(String::from).collect();
        for name in names {
            self.note(Made::Namespace(name.clone()))?;
            Namespaces::make(&name)?;
        }
        Ok(())
    }

    /// Devices, addresses and routes, from the server outwards.
    fn connect(&mut self, program: &Path) -> Result<(), HostsError> {
        let (spec, namespaces) = (&self.spec, &self.namespaces);
        let (server, clients) = (namespaces.server.as_str(), namespaces.clients.as_str());
        let server_end = (server, plumbing::SERVER_DEVICE);
        match &namespaces.router {
            None => plumbing::pair(server_end, (clients, plumbing::WAN_DEVICE))?,
            Some(router) => {
                plumbing::pair(server_end, (router, plumbing::ROUTER_DEVICE))?;
                plumbing::router_end(router, spec)?;
                if spec.has_emulator() {
                    self.emulator = Some(wan::emulate(spec, program, router, clients)?);
                } else {
                    let device = plumbing::WAN_DEVICE;
                    plumbing::pair((router, device), (clients, device))?;
                }
                plumbing::router_to_clients(router, spec)?;
            }
        }
        plumbing::clients_end(namespaces, spec)?;
        plumbing::server_end(namespaces, spec)
    }

    /// The shaper, and the parameters of the server's TCP.
    fn limit(&mut self) -> Result<(), HostsError> {
        let (spec, server) = (&self.spec, &self.namespaces.server);
        tuning::set(server, &tuning::of_server(spec))?;
        if let (Some(words), Some(router)) = (&spec.netem, &self.namespaces.router) {
            plumbing::netem(router, words)?;
        }
        if let (Some(bottleneck), Some(router)) = (&spec.bottleneck, &self.namespaces.router) {
            let clients = spec.client_addresses();
            let (rate, packets) = (spec.rate_bits_per_sec, spec.queue_packets);
            bottleneck::limit(router, bottleneck, rate, packets, &clients)?;
        } else if spec.shaper == Shaper::Host {
            let device = plumbing::SERVER_DEVICE;
            let remark = shape::shape(server, device, spec.rate_bits_per_sec, spec.queue_packets)?;
            self.remarks.extend(remark);
        }
        Ok(())
    }

    /// The first timeout of everything that runs on the hosts, through a control group of their
    /// own.
    fn set_initial_timeout(&mut self, id: &str) -> Result<(), HostsError> {
        let Some(asked_ms) = self.spec.initial_rto_ms else {
            return Ok(());
        };
        let cannot = |source| HostsError::InitialRto { asked_ms, source };
        let path = group::path(&format!("{NAME_PREFIX}{id}")).map_err(cannot)?;
        self.note(Made::ControlGroup(path.clone()))?;
        self.group = Some(Group::make(path, Duration::from_millis(asked_ms)).map_err(cannot)?);
        Ok(())
    }

    fn on(&self, namespace: &str, program: &Path) -> Command {
        let words = ["netns", "exec", namespace];
        let mut command = match &self.group {
            None => Command::new("ip"),
            Some(group) => group.command("ip"),
        };
        command.args(words).arg(program);
        command
    }

    /// Writes down what is about to be made.
    fn note(&mut self, made: Made) -> Result<(), HostsError> {
        let recording = |source| HostsError::system("record of the hosts", source);
        self.record.note(&made).map_err(recording)?;
        self.made.push(made);
        Ok(())
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.emulator = None;
        // No caller is left to report an error to; the record stays then, and the next start tries
        // again.
        if clean::remove(&self.made).is_ok() {
            self.record.delete().ok();
        }
    }
}

fn check_privilege() -> Result<(), HostsError> {
    let may = rustix::process::geteuid().is_root()
        && capability::has_net_admin()
        && capability::has_sys_admin();
    may.then_some(()).ok_or(HostsError::NotPermitted)
}
