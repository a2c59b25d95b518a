//! Namespaces, devices, addresses and routes: what stands between the server and its clients.
//!
//! Without delay and loss: server `v0` to clients `wan0`, one veth pair. With: server `v0` to
//! router `s0`, a veth pair; router `wan0` to clients `wan0`, TUN devices with the emulator between
//! them, or a veth pair with netem on the router's. Servers and clients see the same addresses in
//! all.

use std::net::Ipv4Addr;

use sooner_kernel::netns;

use super::error::HostsError;
use super::spec::HostsSpec;
use super::tools::{ip, ip_in, is_unknown_kind, tc_in};
use super::tuning;

/// The server's address.
pub const SERVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// The router's address towards the server.
pub const ROUTER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 254);
/// Where all clients are.
pub const CLIENTS: &str = "10.78.0.0/24";
/// Where the server is.
const SERVERS: &str = "10.77.0.0/24";
/// The server's device.
pub const SERVER_DEVICE: &str = "v0";
/// The router's device towards the server.
pub const ROUTER_DEVICE: &str = "s0";
/// The clients' device, and the router's towards them.
pub const WAN_DEVICE: &str = "wan0";
/// How many places the table of connections has that a new namespace gets.
const TABLE_SIZE: &str = "net/ipv4/tcp_child_ehash_entries";
const TABLE_PLACES: &str = "16384";

/// The namespaces of one set of hosts.
#[derive(Clone, Debug)]
pub struct Namespaces {
    /// The server's.
    pub server: String,
    /// The router's; none where server and clients are directly connected.
    pub router: Option<String>,
    /// All clients'.
    pub clients: String,
}

impl Namespaces {
    /// Their names, for namespaces that begin with `prefix`.
    pub fn of(spec: &HostsSpec, prefix: &str) -> Namespaces {
        Namespaces {
            server: format!("{prefix}-s"),
            router: spec.has_router().then(|| format!("{prefix}-r")),
            clients: format!("{prefix}-c"),
        }
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        [
            Some(self.server.as_str()),
            self.router.as_deref(),
            Some(self.clients.as_str()),
        ]
        .into_iter()
        .flatten()
    }

    /// Makes one, with loopback up and a table of its own for its connections.
    ///
    /// All namespaces share one table otherwise, of the size of the machine: to count one host's
    /// connections would be to look through a quarter of a million places, each second and for
    /// every host, which took a tenth of a processor from what is measured.
    pub fn make(name: &str) -> Result<(), HostsError> {
        let add = || {
            // Linux before 6.1 has no such parameter, and counts more slowly.
            tuning::write(&(TABLE_SIZE, TABLE_PLACES.into())).ok();
            Ok(ip(&["netns", "add", name]))
        };
        match netns::in_new(add) {
            Ok(added) => added?,
            Err(source) => return Err(HostsError::system(format!("namespace {name}"), source)),
        }
        tuning::set(name, &tuning::of_every_host())?;
        ip_in(name, &["link", "set", "lo", "up"])
    }
}

/// Joins two namespaces by a veth pair, down yet.
pub fn pair(a: (&str, &str), b: (&str, &str)) -> Result<(), HostsError> {
    let ((a_namespace, a_device), (b_namespace, b_device)) = (a, b);
    let first = ["link", "add", a_device, "netns", a_namespace];
    let second = [
        "type",
        "veth",
        "peer",
        "name",
        b_device,
        "netns",
        b_namespace,
    ];
    ip(&[&first[..], &second[..]].concat())
}

/// The server's end: its address, and the way to the clients with all that the route says to TCP.
pub fn server_end(namespaces: &Namespaces, spec: &HostsSpec) -> Result<(), HostsError> {
    let server = &namespaces.server;
    address(server, &format!("{SERVER_ADDRESS}/24"), SERVER_DEVICE)?;
    up(server, SERVER_DEVICE, spec.super_packets)?;
    let route = server_route(spec, namespaces.router.is_some());
    add_route(server, &route, spec)
}

/// Adds a route; where it is refused for a congestion control the kernel does not have, the error
/// says so.
fn add_route(namespace: &str, route: &str, spec: &HostsSpec) -> Result<(), HostsError> {
    let added = ip_in(namespace, &route.split(' ').collect::<Vec<_>>());
    match (added, &spec.congestion_control) {
        (Err(HostsError::Command { .. }), Some(name)) if !is_available(namespace, name) => {
            Err(HostsError::CongestionControl {
                name: name.clone(),
                available: available(namespace),
            })
        }
        (added, _) => added,
    }
}

/// The router's end towards the server; it forwards from now on.
pub fn router_end(router: &str, spec: &HostsSpec) -> Result<(), HostsError> {
    tuning::set(router, &tuning::of_router())?;
    address(router, &format!("{ROUTER_ADDRESS}/24"), ROUTER_DEVICE)?;
    up(router, ROUTER_DEVICE, spec.super_packets)
}

/// The router's way to the clients, through a device that is there.
pub fn router_to_clients(router: &str, spec: &HostsSpec) -> Result<(), HostsError> {
    up(router, WAN_DEVICE, spec.super_packets)?;
    ip_in(router, &["route", "add", CLIENTS, "dev", WAN_DEVICE])
}

/// What netem does to packets from the router to the clients.
pub fn netem(router: &str, words: &str) -> Result<(), HostsError> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let command = format!("qdisc add dev {WAN_DEVICE} root netem {}", words.join(" "));
    tc_in(router, &command).map_err(|error| match is_unknown_kind(&error) {
        true => HostsError::NoNetem,
        false => error,
    })
}

/// The clients' end: an address each, and the way to the server.
pub fn clients_end(namespaces: &Namespaces, spec: &HostsSpec) -> Result<(), HostsError> {
    let clients = &namespaces.clients;
    tuning::set(clients, &tuning::of_clients())?;
    for client in spec.client_addresses() {
        address(clients, &format!("{client}/32"), WAN_DEVICE)?;
    }
    up(clients, WAN_DEVICE, spec.super_packets)?;
    let route = clients_route(spec, namespaces.router.is_some());
    add_route(clients, &route, spec)
}

/// What the server's route says to TCP: congestion control, the largest segment it asks its peers
/// for, the first window.
fn server_route(spec: &HostsSpec, by_router: bool) -> String {
    let via = if by_router {
        format!(" via {ROUTER_ADDRESS}")
    } else {
        String::new()
    };
    let mut route = format!("route add {CLIENTS}{via} dev {SERVER_DEVICE} src {SERVER_ADDRESS}");
    route.push_str(&of_both_ends(spec));
    if let Some(segments) = spec.initial_window_segments {
        route.push_str(&format!(" initcwnd {segments}"));
    }
    route
}

fn clients_route(spec: &HostsSpec, by_router: bool) -> String {
    let first = spec
        .client_addresses()
        .first()
        .map_or(String::new(), |address| format!(" src {address}"));
    // Over TUN devices nothing answers for the server's address.
    let via = if by_router {
        format!(" via {ROUTER_ADDRESS} dev {WAN_DEVICE} onlink")
    } else {
        format!(" dev {WAN_DEVICE}")
    };
    format!("route add {SERVERS}{via}{first}{}", of_both_ends(spec))
}

/// Congestion control and the largest segment. Each side sends segments as large as its peer
/// requested when the connection began, so both ends ask. Devices keep their MTU: were it smaller,
/// the host would also refuse larger packets of others.
fn of_both_ends(spec: &HostsSpec) -> String {
    let segment = spec.mss_bytes.map(|bytes| format!(" advmss {bytes}"));
    let control = spec
        .congestion_control
        .as_ref()
        .map(|name| format!(" congctl {name}"));
    [segment, control].into_iter().flatten().collect()
}

fn address(namespace: &str, address: &str, device: &str) -> Result<(), HostsError> {
    ip_in(namespace, &["addr", "add", address, "dev", device])
}

/// Brings a device up; without super-packets TCP hands it frames one by one.
fn up(namespace: &str, device: &str, super_packets: bool) -> Result<(), HostsError> {
    if !super_packets {
        let limits = ["gso_max_segs", "1", "gso_max_size", "1514"];
        ip_in(
            namespace,
            &[&["link", "set", "dev", device], &limits[..]].concat(),
        )?;
    }
    ip_in(namespace, &["link", "set", device, "up"])
}

fn available(namespace: &str) -> String {
    // Where it cannot be read there is nothing to name.
    tuning::get(namespace, "net/ipv4/tcp_available_congestion_control").unwrap_or_default()
}

fn is_available(namespace: &str, name: &str) -> bool {
    available(namespace)
        .split_whitespace()
        .any(|there| there == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_route_tells_tcp_what_was_asked_for() {
        let mut spec = HostsSpec::new("t", 10_000_000);
        assert_eq!(
            server_route(&spec, false),
            "route add 10.78.0.0/24 dev v0 src 10.77.0.1"
        );
        spec.mss_bytes = Some(536);
        spec.congestion_control = Some("cubic".into());
        spec.initial_window_segments = Some(3);
        assert_eq!(
            server_route(&spec, true),
            "route add 10.78.0.0/24 via 10.77.0.254 dev v0 src 10.77.0.1 advmss 536 congctl cubic initcwnd 3"
        );
    }

    #[test]
    fn clients_ask_for_the_same_segments() {
        let mut spec = HostsSpec::new("t", 10_000_000);
        spec.mss_bytes = Some(536);
        assert_eq!(
            clients_route(&spec, false),
            "route add 10.77.0.0/24 dev wan0 src 10.78.0.1 advmss 536"
        );
        assert_eq!(
            clients_route(&spec, true),
            "route add 10.77.0.0/24 via 10.77.0.254 dev wan0 onlink src 10.78.0.1 advmss 536"
        );
    }

    #[test]
    fn only_hosts_with_a_router_have_three_namespaces() {
        let mut spec = HostsSpec::new("t", 10_000_000);
        assert_eq!(Namespaces::of(&spec, "x").all().count(), 2);
        spec.clients[0].rtt_ms = 10.0;
        let names: Vec<_> = Namespaces::of(&spec, "x").all().map(String::from).collect();
        assert_eq!(names, ["x-s", "x-r", "x-c"]);
    }
}
