//! TLS connections that ask once and then only wait: `idle-clients ADDRESS COUNT PATH`. It prints
//! `idle` when all of them wait, and holds them until it is ended.

use std::io::{Read, Write};
use std::net::SocketAddr;

use sooner_kernel::descriptors;

use super::secure::{self, Protocol, Secured};

/// Descriptors beside those of the connections.
const OTHER_DESCRIPTORS: u64 = 64;

/// Makes the connections, one after the other, and waits.
pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let [address, count, path] = arguments else {
        anyhow::bail!("idle-clients ADDRESS COUNT PATH")
    };
    let (address, count): (SocketAddr, u64) = (address.parse()?, count.parse()?);
    descriptors::raise_limit(count + OTHER_DESCRIPTORS)?;
    let config = secure::config(Protocol::Http1)?;
    let mut connections = Vec::new();
    for _ in 0..count {
        let mut connection = secure::connect(&config, address, None)?;
        ask(&mut connection, path)?;
        connections.push(connection);
    }
    println!("idle");
    loop {
        std::thread::park();
    }
}

/// One request and its response; the head of the response says how long it is.
fn ask(connection: &mut Secured, path: &str) -> anyhow::Result<()> {
    connection.write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes())?;
    connection.flush()?;
    let mut received = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        let count = connection.read(&mut buffer)?;
        anyhow::ensure!(count > 0, "closed before the end of the response");
        received.extend_from_slice(&buffer[..count]);
        if whole_bytes(&received).is_some_and(|whole| received.len() >= whole) {
            return Ok(());
        }
    }
}

/// Length of head and body, once the head is there.
fn whole_bytes(received: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(received).to_ascii_lowercase();
    let (head, _) = text.split_once("\r\n\r\n")?;
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))?;
    Some(head.len() + 4 + length.trim().parse::<usize>().ok()?)
}
