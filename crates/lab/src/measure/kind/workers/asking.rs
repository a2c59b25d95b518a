//! Clients of a server that computes: one connection a request, on a core of their own and before
//! everything else there, so that what is measured is the server.

use crate::measure::bench::runtime;
use anyhow::{Context, Result};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rustix::thread::{CpuSet, sched_setaffinity};
use sooner_kernel::scheduling::RealTime;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

/// Longer takes no request, at any load that is measured.
const PATIENCE: Duration = Duration::from_secs(90);

/// In these rounds of browsers nothing is measured.
const WARM_UP_ROUNDS: u32 = 3;

/// A request: when it comes, and for how long it computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arrival {
    /// Seconds since the beginning.
    pub at_s: f64,
    /// Milliseconds of processor time.
    pub ms: f64,
    /// Which of the paths it asks for; none: the only one.
    pub class: Option<u8>,
}

impl Arrival {
    /// What it asks for.
    pub fn path(&self, waits: u32) -> String {
        let us = (1000.0 * self.ms).round();
        let script = self.class.map_or("w".into(), super::site::script_of);
        format!("/{script}.php?us={us}&waits={waits}")
    }
}

/// Browsers that fetch pages in rounds.
#[derive(Debug, Clone)]
pub struct Pages {
    /// Path of the text, fetched first.
    pub text: String,
    /// Path of the image.
    pub image: String,
    /// How many at a time.
    pub browsers: u32,
    /// How often.
    pub rounds: u32,
    /// From one round to the next.
    pub period: Duration,
    /// Over how long they begin.
    pub spread: Duration,
}

/// Runs something on a core of its own, before everything else that is there.
pub fn on_core<T: Send, F: Future<Output = T>>(
    core: &str,
    work: impl FnOnce() -> F + Send,
) -> Result<T> {
    let core: usize = core.parse().context("a core")?;
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut one = CpuSet::new();
            one.set(core);
            sched_setaffinity(None, &one)?;
            // Without the right to it, the other core is its own all the same.
            let _real_time = RealTime::enter().ok();
            Ok(runtime()?.block_on(work()))
        });
        thread.join().expect("no request panics")
    })
}

/// Sends each request at its time, whatever came of those before; how long each took, ms, none
/// where it got no answer.
pub fn open(
    address: SocketAddr,
    core: &str,
    arrivals: &[Arrival],
    waits: u32,
) -> Result<Vec<Option<f64>>> {
    on_core(core, || async {
        let begin = Instant::now();
        let mut requests = JoinSet::new();
        for (at, arrival) in arrivals.iter().enumerate() {
            let due = begin + Duration::from_secs_f64(arrival.at_s);
            sleep_until(due.into()).await;
            let path = arrival.path(waits);
            requests.spawn(async move { (at, get(address, &path).await) });
        }
        let mut times = vec![None; arrivals.len()];
        while let Some(done) = requests.join_next().await {
            if let Ok((at, time)) = done {
                times[at] = time;
            }
        }
        times
    })
}

/// Times from the beginning of a page to its text, and to its image, ms, of those that got an
/// answer; the first rounds warm the order up.
pub fn pages(
    address: SocketAddr,
    core: &str,
    pages: &Pages,
    seed: u32,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let mut random = Pcg64Mcg::seed_from_u64(seed.into());
    let mut share = move || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    on_core(core, || async {
        let begin = Instant::now();
        let (mut texts, mut images) = (Vec::new(), Vec::new());
        for round in 0..WARM_UP_ROUNDS + pages.rounds {
            let due = begin + pages.period * round;
            let mut browsers = JoinSet::new();
            for _ in 0..pages.browsers {
                let due = due + pages.spread.mul_f64(share());
                let (text, image) = (pages.text.clone(), pages.image.clone());
                browsers.spawn(async move {
                    sleep_until(due.into()).await;
                    let text = get(address, &text).await;
                    let image = get(address, &image).await;
                    (text, text.zip(image).map(|(text, image)| text + image))
                });
            }
            while let Some(done) = browsers.join_next().await {
                if let (Ok((text, image)), true) = (done, round >= WARM_UP_ROUNDS) {
                    texts.extend(text);
                    images.extend(image);
                }
            }
        }
        (texts, images)
    })
}

/// How long it took, ms.
pub async fn get(address: SocketAddr, path: &str) -> Option<f64> {
    let begin = Instant::now();
    let request = format!("GET {path} HTTP/1.0\r\nHost: x\r\n\r\n");
    let answer = timeout(PATIENCE, fetch(address, &request)).await;
    let is_right = answer.ok()?.ok()?;
    is_right.then(|| begin.elapsed().as_secs_f64() * 1000.0)
}

/// Whether a request in HTTP/1.0, as it is sent, is answered with 200.
pub async fn fetch(address: SocketAddr, request: &str) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(answer.get(8..13) == Some(b" 200 "))
}
