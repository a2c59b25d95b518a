//! Clients that stop reading, clients that read 1 KB/s, clients that hang up in the middle: what do the others notice?

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;

use super::Effort;
use super::attempts::until_undisturbed;
use super::check::{Checks, median, spread};
use super::others::{self, Stand};
use super::parse::figure;
use super::record::{Record, slim};
use super::server::{Root, Server};

const STALLED: usize = 50;
const SLOW: usize = 50;
const RESETS_PER_SEC: u64 = 5;
/// Smaller than half of all downloads in flight, so that under SRPT these clients come first whenever they can.
const HOSTILE_BYTES: usize = 100_000;
/// The others' mean with hostile clients, in means without.
const MEAN_MAX: f64 = 1.2;

/// The same arrivals on two links, one of them with hostile clients as well.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("hostile-clients", "others")?;
    let mut part = Checks::default();
    let mut table = String::from(
        "| server | others' mean, ms, alone | with hostile clients | ratio | hostile share of the link | descriptors kept | memory kept, KiB |\n|---|---|---|---|---|---|---|\n",
    );
    let root = Root::of("epa")?;
    fs::write(root.path().join("hostile.bin"), vec![b'x'; HOSTILE_BYTES])?;
    for server in [Server::UserSpace, Server::Bands] {
        let mut figures = [const { Vec::new() }; 6];
        let mut valid = true;
        for repetition in 0..effort.repetitions {
            let stand = Stand {
                server,
                root: &root,
                secured: false,
                clients: &["hostile-clients"],
                seconds: if effort.quick { 15 } else { 60 },
                seed: 1 + u64::from(repetition),
            };
            let outcome = until_undisturbed(
                || others::beside(&stand),
                |outcome| vec![&outcome.alone, &outcome.with],
                |outcome, attempt| {
                    record.add(&json!({"server": server.name(), "repetition": repetition, "attempt": attempt.number,
                        "stolen_cpu_seconds": attempt.stolen_cpu_seconds, "alone": slim(&outcome.alone), "with": slim(&outcome.with),
                        "hostile_share": outcome.hostile_share, "descriptors_kept": outcome.descriptors_kept,
                        "memory_kept_kib": outcome.memory_kept_kib}))
                },
            )?;
            valid &= [&outcome.alone, &outcome.with]
                .iter()
                .all(|run| run["verdict"] == "VALID");
            let means =
                [&outcome.alone, &outcome.with].map(|run| figure(run, "/all/mean_response_ms"));
            let row = [
                means[0],
                means[1],
                means[1] / means[0],
                outcome.hostile_share,
                outcome.descriptors_kept,
                outcome.memory_kept_kib,
            ];
            figures
                .iter_mut()
                .zip(row)
                .for_each(|(all, one)| all.push(one));
        }
        table += &format!(
            "| {} | {} |\n",
            server.name(),
            figures
                .iter()
                .map(|all| spread(all, 2))
                .collect::<Vec<_>>()
                .join(" | ")
        );
        part.claim(valid, format!("{}: all runs VALID", server.name()));
        part.at_most(
            &format!(
                "{}: others' mean with hostile clients / alone",
                server.name()
            ),
            median(&figures[2]),
            MEAN_MAX,
        );
        part.at_most(
            &format!("{}: descriptors kept", server.name()),
            median(&figures[4]),
            0.0,
        );
        part.at_most(
            &format!("{}: memory kept, KiB", server.name()),
            median(&figures[5]),
            16_384.0,
        );
    }
    record.table("others", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

/// The hostile clients themselves, a process in the client's namespace: `hostile-clients ADDRESS SECONDS`.
pub fn clients(arguments: &[&str]) -> anyhow::Result<bool> {
    let [address, seconds] = arguments else {
        anyhow::bail!("hostile-clients ADDRESS SECONDS")
    };
    let address: SocketAddr = address.parse()?;
    let end = Instant::now() + Duration::from_secs(seconds.parse()?);
    let stalled: Vec<TcpStream> = (0..STALLED)
        .map(|_| request(address))
        .collect::<anyhow::Result<_>>()?;
    let mut slow: Vec<TcpStream> = (0..SLOW)
        .map(|_| request(address))
        .collect::<anyhow::Result<_>>()?;
    let mut buffer = [0; 1_024];
    while Instant::now() < end {
        for _ in 0..RESETS_PER_SEC {
            // Closed with bytes unread, which resets the connection.
            let mut hung_up = request(address)?;
            let _ = hung_up.read(&mut buffer[..100]);
            std::thread::sleep(Duration::from_millis(1_000 / RESETS_PER_SEC));
        }
        for stream in &mut slow {
            if !matches!(stream.read(&mut buffer), Ok(1..)) {
                *stream = request(address)?;
            }
        }
    }
    drop(stalled);
    Ok(true)
}

/// A client with a window of a few packets that has asked for a file.
fn request(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    socket.set_recv_buffer_size(4_096)?;
    socket.connect(&address.into()).context("cannot connect")?;
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_millis(100)))?;
    stream.write_all(b"GET /hostile.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")?;
    Ok(stream)
}
