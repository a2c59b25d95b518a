//! Clients that stop reading, clients that read 1 KB/s, clients that hang up in the middle: what do the others notice?

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::Effort;
use super::check::Checks;
use super::others::{self, Stand};
use super::record::Record;
use super::server::{Root, Server};

const STALLED: usize = 50;
const SLOW: usize = 50;
const RESETS_PER_SEC: u64 = 5;
/// Smaller than half of all downloads in flight, so that under SRPT these clients come first whenever they can.
const HOSTILE_BYTES: usize = 100_000;

/// The same arrivals on two links, one of them with hostile clients as well.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("hostile-clients", "others")?;
    let mut part = Checks::default();
    let mut table = format!(
        "| server | {} |\n|---|---|---|---|---|---|---|\n",
        others::COLUMNS
    );
    let root = Root::of("epa")?;
    fs::write(root.path().join("hostile.bin"), vec![b'x'; HOSTILE_BYTES])?;
    for server in [Server::UserSpace, Server::Bands] {
        let stand = Stand {
            server,
            root: &root,
            secured: false,
            clients: &["hostile-clients"],
            seconds: if effort.quick { 15 } else { 60 },
        };
        let repeated = others::repeat(&stand, effort, &mut record)?;
        table += &format!("| {} | {} |\n", server.name(), repeated.row());
        repeated.hold(server.name(), &mut part);
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
