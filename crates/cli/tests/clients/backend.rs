//! A backend that reads each request to its end before it answers, so that a stream of a client
//! that has not ended its request is open.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Answers everything with a body of `body_bytes`, as long as this process runs.
pub fn start(body_bytes: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The server in front leaves when its client does.
            thread::spawn(move || answer_all(stream, body_bytes).ok());
        }
    });
    address
}

fn answer_all(stream: TcpStream, body_bytes: usize) -> io::Result<()> {
    let mut requests = BufReader::new(stream);
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {body_bytes}\r\n\r\n");
    let answer = [head.into_bytes(), vec![b'x'; body_bytes]].concat();
    loop {
        read_request(&mut requests)?;
        requests.get_mut().write_all(&answer)?;
    }
}

/// Reads one request; an error where none comes any more.
fn read_request(requests: &mut impl BufRead) -> io::Result<()> {
    let mut body_bytes = 0;
    let mut is_chunked = false;
    loop {
        let line = read_line(requests)?;
        match line.to_ascii_lowercase().split_once(": ") {
            Some(("content-length", length)) => body_bytes = length.parse().unwrap_or(0),
            Some(("transfer-encoding", _)) => is_chunked = true,
            _ if line.is_empty() => break,
            _ => {}
        }
    }
    skip(requests, body_bytes)?;
    if is_chunked {
        skip_chunks(requests)?;
    }
    Ok(())
}

fn skip_chunks(requests: &mut impl BufRead) -> io::Result<()> {
    loop {
        let chunk_bytes = u64::from_str_radix(&read_line(requests)?, 16).unwrap_or(0);
        if chunk_bytes == 0 {
            // Trailers, and the line that ends them.
            while !read_line(requests)?.is_empty() {}
            return Ok(());
        }
        skip(requests, chunk_bytes + 2)?;
    }
}

/// A line without its end; an error at the end of the connection.
fn read_line(requests: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if requests.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

fn skip(requests: &mut impl BufRead, bytes: u64) -> io::Result<()> {
    let skipped = io::copy(&mut requests.take(bytes), &mut io::sink())?;
    if skipped < bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}
