//! Clients that stop reading, clients that read 1 KB/s, clients that hang up in the middle:
//! `hostile-clients ADDRESS SECONDS`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Context;

const STALLED: usize = 50;
const SLOW: usize = 50;
const RESETS_PER_SEC: u64 = 5;

/// Goes on for so many seconds.
pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
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
    Ok(())
}

/// A client with a window of a few packets that has requested a file.
fn request(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    socket.set_recv_buffer_size(4_096)?;
    socket.connect(&address.into()).context("cannot connect")?;
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_millis(100)))?;
    stream.write_all(b"GET /hostile.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")?;
    Ok(stream)
}
