//! Datagrams at a rate through the emulator, one way or there and back, and what arrived of them.
//!
//! Sockets are opened in the namespace they are for and used from ordinary threads. Senders are
//! paced; receivers have room for a second of packets, so that a pause of theirs does not look like
//! a loss.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::{netns, socket, timer};

use super::hosts::{Hosts, SERVER};
use super::pace::{Pace, go_on, pause};
use super::probe::{PROBE_BYTES, Probe};
use crate::emulator::core::Direction;
use crate::emulator::lateness::Histogram;
use crate::emulator::path::Client;

const PORT: u16 = 7_001;
const ECHO_PORT: u16 = 7_002;
const RECEIVE_BUFFER_BYTES: usize = 32 << 20;
/// How often a receiver looks whether it is over.
const RECEIVE_WAIT: Duration = Duration::from_millis(50);
/// What packets get beyond the longest round-trip time to arrive after the last was sent.
const GRACE: Duration = Duration::from_millis(500);

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Which way; a packet that is sent back comes the other way.
    pub direction: Direction,
    /// Packets of each client.
    pub packets_per_client: u64,
    /// UDP payload of each.
    pub payload_bytes: usize,
    /// Over all clients, which take turns.
    pub packets_per_sec: f64,
}

/// What arrived of one client's packets.
#[derive(Debug, Clone, Default)]
pub struct Arrived {
    /// How many.
    pub packets: u64,
    /// Those that came after one that was sent later.
    pub reordered_packets: u64,
    /// From sending to receiving, of each packet.
    pub delays_ns: Vec<u64>,
    /// When the first came.
    pub first_ns: u64,
    /// When the last came.
    pub last_ns: u64,
    /// One more than the highest number that came.
    pub next_number: u64,
}

/// One plan's outcome.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// By client, in the order of the clients.
    pub arrived: Vec<Arrived>,
    /// How late packets were sent.
    pub send_lag: Histogram,
    /// From the first packet sent to the last.
    pub sending_ns: u64,
}

/// Sends plans at the same time, each one way; at most one a direction.
pub fn one_way(
    hosts: &Hosts,
    clients: &[Client],
    plans: &[Plan],
    interrupted: &AtomicBool,
) -> Result<Vec<Outcome>> {
    let mut sockets = Vec::new();
    for plan in plans {
        let (from, to) = ends(hosts, plan.direction);
        let receiver = receiver(to, PORT)?;
        sockets.push((senders(from, plan.direction, clients, PORT)?, receiver));
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let running: Vec<_> = plans
            .iter()
            .zip(&sockets)
            .map(|(plan, (senders, receiver))| {
                let receiving = scope.spawn(|| receive(receiver, clients.len(), &done));
                (scope.spawn(|| send(*plan, senders, interrupted)), receiving)
            })
            .collect();
        let mut sent = Vec::new();
        let mut receiving = Vec::new();
        for (sending, receiver) in running {
            sent.push(joined(sending));
            receiving.push(receiver);
        }
        let waited = wait_for_the_last(clients, interrupted);
        done.store(true, Ordering::Relaxed);
        let arrived: Vec<_> = receiving.into_iter().map(joined).collect();
        waited?;
        sent.into_iter()
            .zip(arrived)
            .map(|(sent, arrived)| outcome(sent?, arrived?))
            .collect()
    })
}

/// Sends from the clients to the server and back; delays are of the whole round trip.
pub fn there_and_back(
    hosts: &Hosts,
    clients: &[Client],
    plan: Plan,
    interrupted: &AtomicBool,
) -> Result<Outcome> {
    let (from, to) = ends(hosts, plan.direction);
    let echo = receiver(to, ECHO_PORT)?;
    let receiver = receiver(from, PORT)?;
    let senders = senders(from, plan.direction, clients, ECHO_PORT)?;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let echoing = scope.spawn(|| send_back(&echo, &done));
        let receiving = scope.spawn(|| receive(&receiver, clients.len(), &done));
        let sent = send(plan, &senders, interrupted);
        let waited = wait_for_the_last(clients, interrupted);
        done.store(true, Ordering::Relaxed);
        let (echoed, arrived) = (joined(echoing), joined(receiving));
        waited?;
        echoed?;
        outcome(sent?, arrived?)
    })
}

fn outcome((send_lag, sending_ns): (Histogram, u64), arrived: Vec<Arrived>) -> Result<Outcome> {
    Ok(Outcome {
        arrived,
        send_lag,
        sending_ns,
    })
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn wait_for_the_last(clients: &[Client], interrupted: &AtomicBool) -> Result<()> {
    let rtt_ns = clients.iter().map(|client| client.path.rtt_ns).max();
    let rtt = Duration::from_nanos(rtt_ns.unwrap_or(0));
    pause(rtt + GRACE, interrupted)
}

/// The namespaces a direction leads from and to.
fn ends(hosts: &Hosts, direction: Direction) -> (&str, &str) {
    match direction {
        Direction::ToClient => (&hosts.router, &hosts.client),
        Direction::ToServer => (&hosts.client, &hosts.router),
    }
}

/// One socket a client, connected to the other end.
fn senders(
    namespace: &str,
    direction: Direction,
    clients: &[Client],
    port: u16,
) -> Result<Vec<UdpSocket>> {
    let open = |client: &Client| {
        let (own, other) = match direction {
            Direction::ToClient => (SERVER, client.address),
            Direction::ToServer => (client.address, SERVER),
        };
        let socket = UdpSocket::bind((own, 0))?;
        socket.connect((other, port))?;
        Ok(socket)
    };
    inside(namespace, || clients.iter().map(open).collect())
}

fn receiver(namespace: &str, port: u16) -> Result<UdpSocket> {
    inside(namespace, || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
        socket.set_read_timeout(Some(RECEIVE_WAIT))?;
        socket::set_receive_buffer_bytes(&socket, RECEIVE_BUFFER_BYTES)?;
        Ok(socket)
    })
}

/// Opens sockets in a namespace, in a thread that ends with it.
fn inside<T: Send>(namespace: &str, open: impl FnOnce() -> io::Result<T> + Send) -> Result<T> {
    let opened = thread::scope(|scope| {
        joined(scope.spawn(|| {
            netns::enter(namespace)?;
            open()
        }))
    });
    opened.with_context(|| format!("cannot open a socket in {namespace}"))
}

/// Sends the plan's packets at its rate; gives how late they were and how long it took.
fn send(plan: Plan, senders: &[UdpSocket], interrupted: &AtomicBool) -> Result<(Histogram, u64)> {
    timer::set_timer_slack_ns(1)?;
    let mut datagram = vec![0; plan.payload_bytes.max(PROBE_BYTES)];
    let mut lag = Histogram::default();
    let pace = Pace::start(plan.packets_per_sec);
    let (start_ns, mut end_ns, mut n) = (monotonic_ns(), 0, 0);
    for number in 0..plan.packets_per_client {
        go_on(interrupted)?;
        for (client, sender) in (0..).zip(senders) {
            lag.record(pace.wait_for(n));
            n += 1;
            end_ns = monotonic_ns();
            let probe = Probe {
                client,
                number,
                sent_ns: end_ns,
            };
            probe.write(&mut datagram);
            sender.send(&datagram).context("cannot send")?;
        }
    }
    Ok((lag, end_ns.saturating_sub(start_ns)))
}

/// Receives until it is over and nothing more comes.
fn receive(receiver: &UdpSocket, clients: usize, done: &AtomicBool) -> Result<Vec<Arrived>> {
    let mut arrived = vec![Arrived::default(); clients];
    let mut datagram = [0; 2048];
    while let Some(length) = next(done, || receiver.recv(&mut datagram))? {
        let now_ns = monotonic_ns();
        let probe = Probe::read(&datagram[..length]);
        let known = probe.and_then(|probe| Some((probe, arrived.get_mut(probe.client as usize)?)));
        if let Some((probe, arrived)) = known {
            arrived.note(probe, now_ns);
        }
    }
    Ok(arrived)
}

/// Sends everything back to where it came from, to the port where its receiver is.
fn send_back(echo: &UdpSocket, done: &AtomicBool) -> Result<()> {
    let mut datagram = [0; 2048];
    while let Some((length, from)) = next(done, || echo.recv_from(&mut datagram))? {
        echo.send_to(&datagram[..length], (from.ip(), PORT))
            .context("cannot send back")?;
    }
    Ok(())
}

/// What is received next; `None` when it is over.
fn next<T>(done: &AtomicBool, mut receive: impl FnMut() -> io::Result<T>) -> Result<Option<T>> {
    loop {
        match receive() {
            Ok(received) => return Ok(Some(received)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if done.load(Ordering::Relaxed) {
                    return Ok(None);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("cannot receive"),
        }
    }
}

impl Arrived {
    fn note(&mut self, probe: Probe, now_ns: u64) {
        if self.packets == 0 {
            self.first_ns = now_ns;
        }
        self.packets += 1;
        self.last_ns = now_ns;
        self.delays_ns.push(now_ns.saturating_sub(probe.sent_ns));
        if probe.number < self.next_number {
            self.reordered_packets += 1;
        }
        self.next_number = self.next_number.max(probe.number + 1);
    }

    /// The delay that `share` of the packets do not exceed, milliseconds; `None` when none came.
    pub fn delay_ms(&self, share: f64) -> Option<f64> {
        let mut delays_ns = self.delays_ns.clone();
        delays_ns.sort_unstable();
        let rank = (share * delays_ns.len() as f64).ceil() as usize;
        let delay_ns = delays_ns.get(rank.saturating_sub(1))?;
        Some(*delay_ns as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_counted_timed_and_ordered() {
        let mut arrived = Arrived::default();
        assert_eq!(arrived.delay_ms(0.5), None);
        for (number, now_ns) in [
            (0, 10_000_000),
            (2, 20_000_000),
            (1, 30_000_000),
            (3, 40_000_000),
        ] {
            let probe = Probe {
                client: 0,
                number,
                sent_ns: 5_000_000,
            };
            arrived.note(probe, now_ns);
        }
        assert_eq!((arrived.packets, arrived.reordered_packets), (4, 1));
        assert_eq!(
            (arrived.first_ns, arrived.last_ns),
            (10_000_000, 40_000_000)
        );
        assert_eq!(arrived.delay_ms(0.5), Some(15.0));
        assert_eq!(arrived.delay_ms(1.0), Some(35.0));
    }
}
