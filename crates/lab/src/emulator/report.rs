//! What an emulator says at its end: what each client's packets met, and whether the paths were as
//! requested.

use std::fmt::Write;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::core::{Direction, Emulator};
use super::path::Client;

/// Version of the form.
const SCHEMA: u32 = 1;
/// What packets may be late without a word, at the 99th percentile, us: the check of round-trip
/// times allows as much in the median.
const LATE_US_MAX: f64 = 500.0;
const NS_PER_US: f64 = 1e3;
const NS_PER_S: f64 = 1e9;

/// What the packets of one client and direction met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Packets that came.
    pub packets: u64,
    /// Their bytes, from the IP header on.
    pub bytes: u64,
    /// Lost by chance.
    pub lost_packets: u64,
    /// Dropped because too much was held.
    pub bound_packets: u64,
    /// Sent on.
    pub released_packets: u64,
    /// Their bytes.
    pub released_bytes: u64,
}

/// One client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientReport {
    /// Its address.
    pub address: Ipv4Addr,
    /// Requested round-trip time, milliseconds.
    pub rtt_ms: f64,
    /// Share of the packets to be lost in each direction.
    pub loss: f64,
    /// From the server.
    pub to_client: Traffic,
    /// From the client.
    pub to_server: Traffic,
}

/// What the devices did with packets that no path accounts for, by direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCounts {
    /// Dropped by the device before the emulator read them; `None` where that could not be asked.
    pub unread_packets: Option<u64>,
    /// Released, but refused by the device they were written to.
    pub refused_packets: u64,
}

/// How the process around the emulator fared.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Running {
    /// Whether it had real-time priority.
    pub realtime: bool,
    /// How long it ran, nanoseconds.
    pub elapsed_ns: u64,
    /// Processor time it took for that, nanoseconds.
    pub cpu_ns: u64,
    /// What the devices dropped, by direction.
    pub devices: [DeviceCounts; 2],
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of this form.
    pub schema: u32,
    /// Seed of the losses.
    pub seed: u64,
    /// Whether the emulator ran with real-time priority.
    pub realtime: bool,
    /// From ready to the end, seconds.
    pub elapsed_s: f64,
    /// Processor time of the thread that carries packets, seconds.
    pub cpu_s: f64,
    /// How late packets were released: the median, microseconds.
    pub release_late_p50_us: f64,
    /// The 99th percentile, microseconds.
    pub release_late_p99_us: f64,
    /// The latest, microseconds.
    pub release_late_max_us: f64,
    /// Still held at the end.
    pub held_packets: usize,
    /// Most packets held at once.
    pub held_packets_max: usize,
    /// Most bytes held at once.
    pub held_bytes_max: u64,
    /// Dropped: from or to addresses without a path.
    pub unknown_client_packets: u64,
    /// Dropped: not whole IPv4 packets.
    pub not_ipv4_packets: u64,
    /// What the devices dropped on the way to the clients.
    pub device_to_client: DeviceCounts,
    /// What the devices dropped on the way to the server.
    pub device_to_server: DeviceCounts,
    /// The clients, in the order they were given.
    pub clients: Vec<ClientReport>,
}

impl Report {
    /// Asks the emulator.
    pub fn new(emulator: &Emulator, clients: &[Client], seed: u64, running: Running) -> Report {
        let late_us = |share| emulator.lateness().quantile_ns(share) as f64 / NS_PER_US;
        let counts = emulator.counts();
        let [device_to_client, device_to_server] = running.devices;
        Report {
            schema: SCHEMA,
            seed,
            realtime: running.realtime,
            elapsed_s: running.elapsed_ns as f64 / NS_PER_S,
            cpu_s: running.cpu_ns as f64 / NS_PER_S,
            release_late_p50_us: late_us(0.5),
            release_late_p99_us: late_us(0.99),
            release_late_max_us: emulator.lateness().max_ns() as f64 / NS_PER_US,
            held_packets: emulator.held_packets(),
            held_packets_max: counts.held_packets_max,
            held_bytes_max: counts.held_bytes_max,
            unknown_client_packets: counts.unknown_client_packets,
            not_ipv4_packets: counts.not_ipv4_packets,
            device_to_client,
            device_to_server,
            clients: clients.iter().map(|client| of(emulator, client)).collect(),
        }
    }

    /// Packets that neither chance nor a client's path accounts for: dropped at a bound, before
    /// they were read, or when written. A run in which there are any did not measure the requested
    /// paths.
    pub fn unaccounted_packets(&self) -> u64 {
        let at_bound =
            |client: &ClientReport| client.to_client.bound_packets + client.to_server.bound_packets;
        let devices = [self.device_to_client, self.device_to_server];
        let by_devices =
            devices.map(|device| device.unread_packets.unwrap_or(0) + device.refused_packets);
        self.clients.iter().map(at_bound).sum::<u64>() + by_devices.iter().sum::<u64>()
    }

    /// What of it was not as requested, a sentence each; for the caller that judges a run over
    /// these paths.
    pub fn remarks(&self) -> Vec<String> {
        let unaccounted = self.unaccounted_packets();
        let late_us = self.release_late_p99_us;
        let remarks = [
            (
                !self.realtime,
                "the emulator ran without real-time priority".to_owned(),
            ),
            (
                unaccounted > 0,
                format!("the emulator dropped {unaccounted} packets that no path asks for"),
            ),
            (
                late_us > LATE_US_MAX,
                format!(
                    "the emulator released one packet in a hundred {late_us:.0} us late or later"
                ),
            ),
        ];
        let told = remarks.into_iter().filter(|(is_so, _)| *is_so);
        told.map(|(_, remark)| remark).collect()
    }

    /// For people: one line a client and direction, then what holds for all.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{:<16}{:>9}{:>8}{:>11}{:>12}{:>10}{:>10}{:>12}\n",
            "client", "rtt ms", "loss", "direction", "packets", "lost", "at bound", "released"
        );
        for client in &self.clients {
            let directions = [
                ("to client", client.to_client),
                ("to server", client.to_server),
            ];
            for (direction, traffic) in directions {
                // Writing into a String does not fail.
                let _ = writeln!(
                    text,
                    "{:<16}{:>9}{:>8}{direction:>11}{:>12}{:>10}{:>10}{:>12}",
                    client.address.to_string(),
                    client.rtt_ms,
                    client.loss,
                    traffic.packets,
                    traffic.lost_packets,
                    traffic.bound_packets,
                    traffic.released_packets,
                );
            }
        }
        let _ = writeln!(
            text,
            "released late: {:.0} us median, {:.0} us p99, {:.0} us at most{}",
            self.release_late_p50_us,
            self.release_late_p99_us,
            self.release_late_max_us,
            if self.realtime {
                ""
            } else {
                "; without real-time priority"
            },
        );
        let unaccounted = self.unaccounted_packets();
        if unaccounted > 0 {
            let _ = writeln!(
                text,
                "{unaccounted} packets were dropped that no path asks for"
            );
        }
        text
    }
}

fn of(emulator: &Emulator, client: &Client) -> ClientReport {
    ClientReport {
        address: client.address,
        rtt_ms: client.path.rtt_ms(),
        loss: client.path.loss(),
        to_client: emulator.traffic(client.address, Direction::ToClient),
        to_server: emulator.traffic(client.address, Direction::ToServer),
    }
}

#[cfg(test)]
mod tests {
    use super::super::core::Bounds;
    use super::*;

    #[test]
    fn a_report_reads_back_and_counts_what_no_path_asks_for() {
        let clients = ["10.0.0.2,rtt_ms=100,loss=0.05".parse().unwrap()];
        let emulator = Emulator::new(&clients, 7, Bounds::default()).unwrap();
        let devices = [
            DeviceCounts {
                unread_packets: Some(2),
                refused_packets: 1,
            },
            DeviceCounts::default(),
        ];
        let running = Running {
            devices,
            ..Running::default()
        };
        let mut report = Report::new(&emulator, &clients, 7, running);
        report.clients[0].to_server.bound_packets = 4;
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
        assert_eq!(report.unaccounted_packets(), 7);
        report.release_late_p99_us = 2_000.4;
        let remarks = report.remarks().join("; ");
        for words in ["without real-time", "7 packets", "2000 us late"] {
            assert!(remarks.contains(words), "{remarks}");
        }
        let text = report.text();
        assert!(text.contains("without real-time") && text.contains("7 packets were dropped"));
        assert!(
            text.contains("10.0.0.2              100    0.05  to client"),
            "{text}"
        );
    }
}
