//! A backend that waits: each request for a time around what its class takes. It knows how long it
//! was busy with which class.

use anyhow::{Context, Result};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What paths begin with: numbers would make them alike.
pub const CLASSES: [&str; 4] = ["gold", "silver", "bronze", "tin"];

const LOOK: Duration = Duration::from_millis(10);
/// A proxy that is no more leaves its connections at once.
const PATIENCE: Duration = Duration::from_secs(5);

/// One request, from its head to its answer.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    pub class: usize,
    pub begin: Instant,
    pub end: Instant,
}

#[derive(Debug)]
struct Shared {
    /// Mean time of each class, ms.
    classes_ms: Vec<f64>,
    random: Mutex<Pcg64Mcg>,
    served: Mutex<Vec<Served>>,
    is_over: AtomicBool,
}

/// Ends with its handle.
#[derive(Debug)]
pub struct Backend {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

impl Backend {
    /// Listens on a free port; a request takes half to one and a half times what its class takes.
    pub fn start(classes_ms: Vec<f64>, seed: u64) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            classes_ms,
            random: Mutex::new(Pcg64Mcg::seed_from_u64(seed)),
            served: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let accepts = Arc::clone(&shared);
        thread::spawn(move || {
            while !accepts.is_over.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        let answers = Arc::clone(&accepts);
                        // What becomes of one connection is told by those who ask.
                        thread::spawn(move || answers.answer(stream).ok());
                    }
                    Err(_) => thread::sleep(LOOK),
                }
            }
        });
        Ok(Self { address, shared })
    }

    /// All that were answered.
    pub fn served(&self) -> Vec<Served> {
        let served = self.shared.served.lock();
        served.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let mut head = BufReader::new(stream.try_clone()?);
        loop {
            let mut first = String::new();
            if head.read_line(&mut first)? == 0 {
                return Ok(());
            }
            let begin = Instant::now();
            let mut line = String::new();
            while head.read_line(&mut line)? > 2 {
                line.clear();
            }
            let class = class_of(&first).unwrap_or_default();
            let factor = {
                let random = self.random.lock();
                let drawn = random.unwrap_or_else(PoisonError::into_inner).next_u64();
                0.5 + (drawn >> 11) as f64 / (1_u64 << 53) as f64
            };
            let ms = self.classes_ms.get(class).map_or(1.0, |ms| ms * factor);
            thread::sleep(Duration::from_secs_f64(ms / 1000.0));
            let end = Instant::now();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")?;
            let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
            served.push(Served { class, begin, end });
        }
    }
}

/// Of `GET /bronze/x HTTP/1.1`.
fn class_of(line: &str) -> Option<usize> {
    let path = line.split(' ').nth(1)?;
    let name = path.split('/').nth(1)?;
    CLASSES.iter().position(|class| *class == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn each_class_takes_its_time_and_is_counted() {
        let backend = Backend::start(vec![1.0, 40.0], 1).expect("a backend");
        let mut stream = TcpStream::connect(backend.address).expect("a connection");
        for path in ["/silver/a", "/gold/"] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
            stream.write_all(request.as_bytes()).expect("it is taken");
            let mut answer = [0; 41];
            stream.read_exact(&mut answer).expect("an answer");
            assert!(answer.starts_with(b"HTTP/1.1 200"));
        }
        // It is counted behind its answer.
        while backend.served().len() < 2 {
            thread::sleep(LOOK);
        }
        let [first, second] = backend.served()[..] else {
            panic!("two requests")
        };
        assert_eq!([first.class, second.class], [1, 0]);
        assert!(first.end - first.begin >= Duration::from_millis(20));
    }
}
