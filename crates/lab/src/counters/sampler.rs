//! Counts once a second, in a thread on the server's host.

use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sooner_kernel::qdisc::{self, Queue};
use sooner_kernel::{device, netns};

use super::mib::{TcpCounters, tcp_counters};
use super::processes::{Usage, usage};
use super::row::{Counter, queue_counters};
use super::sockets::{Connections, listener_limit};
use super::summary::CountersSummary;

/// What is counted.
#[derive(Clone, Debug)]
pub struct SamplerOptions {
    /// The server's network namespace.
    pub namespace: String,
    /// The server's device towards its clients.
    pub device: String,
    /// The server's port.
    pub port: u16,
    /// The server's first process.
    pub pid: u32,
    /// How often is counted.
    pub every: Duration,
}

/// A thread that counts; it ends when this is dropped.
#[derive(Debug)]
pub struct Sampler {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<io::Result<CountersSummary>>>,
}

impl Sampler {
    /// Begins to count, from zero; each row is written as a line of JSON.
    pub fn start(
        options: SamplerOptions,
        mut out: impl Write + Send + 'static,
    ) -> io::Result<Sampler> {
        let (stop, stopped) = channel::<()>();
        let (report, reported) = channel();
        let body = move || {
            let begun = Source::open(options);
            let source = match begun {
                Ok(source) => source,
                Err(error) => {
                    // Whoever starts waits for this answer.
                    report.send(Err(error)).ok();
                    return Ok(CountersSummary::default());
                }
            };
            report.send(Ok(())).ok();
            let mut summary = CountersSummary::default();
            for number in 1.. {
                let due = source.start + source.options.every * number;
                let left = due.saturating_duration_since(Instant::now());
                let is_last = stopped.recv_timeout(left) != Err(RecvTimeoutError::Timeout);
                let row = source.row()?;
                serde_json::to_writer(&mut out, &row)?;
                out.write_all(b"\n")?;
                summary.add(&row);
                if is_last {
                    break;
                }
            }
            out.flush()?;
            Ok(summary)
        };
        let thread = thread::Builder::new().name("counters".into()).spawn(body)?;
        let gone = || io::Error::other("the thread that counts is gone");
        reported.recv().map_err(|_| gone())??;
        Ok(Sampler {
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Counts a last time and gives the summary.
    pub fn stop(mut self) -> io::Result<CountersSummary> {
        self.finish()
            .unwrap_or_else(|| Ok(CountersSummary::default()))
    }

    fn finish(&mut self) -> Option<io::Result<CountersSummary>> {
        // The thread notices that its channel has closed.
        self.stop = None;
        let result = self.thread.take()?.join();
        Some(result.unwrap_or_else(|_| Err(io::Error::other("the thread that counts panicked"))))
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Where counts come from, and what they were at the start.
struct Source {
    options: SamplerOptions,
    start: Instant,
    accept_queue_limit: Option<u32>,
    tcp: TcpCounters,
    queues: Vec<Queue>,
    usage: Usage,
}

impl Source {
    /// Moves the calling thread to the server's host and reads everything once.
    fn open(options: SamplerOptions) -> io::Result<Source> {
        netns::enter(&options.namespace)?;
        Ok(Source {
            start: Instant::now(),
            accept_queue_limit: accept_queue_limit(options.port),
            tcp: read_tcp()?,
            queues: read_queues(&options.device)?,
            usage: usage(options.pid),
            options,
        })
    }

    fn row(&self) -> io::Result<Counter> {
        let usage = usage(self.options.pid);
        let queues = read_queues(&self.options.device)?;
        Ok(Counter {
            time_s: self.start.elapsed().as_secs_f64(),
            connections: read_connections(self.options.port)?,
            accept_queue_limit: self.accept_queue_limit,
            tcp: read_tcp()? - self.tcp,
            queues: queue_counters(&queues, &self.queues),
            cpu_s: (usage.cpu_s - self.usage.cpu_s).max(0.0),
            resident_bytes: usage.resident_bytes,
        })
    }
}

/// The thread's own /proc/net: the process's would be that of another namespace.
const NET: &str = "/proc/thread-self/net";

fn read_tcp() -> io::Result<TcpCounters> {
    let read = |file: &str| fs::read_to_string(format!("{NET}/{file}"));
    Ok(tcp_counters(&read("netstat")?, &read("snmp")?))
}

fn read_connections(port: u16) -> io::Result<Connections> {
    let mut connections =
        Connections::read(BufReader::new(File::open(format!("{NET}/tcp"))?), port)?;
    // A server that listens on IPv6 has its IPv4 connections in the other table.
    if let Ok(table) = File::open(format!("{NET}/tcp6")) {
        connections = connections + Connections::read(BufReader::new(table), port)?;
    }
    Ok(connections)
}

fn read_queues(name: &str) -> io::Result<Vec<Queue>> {
    qdisc::queues(&device::by_name(name)?)
}

/// Asked once: it does not change while a server listens. `ss` may be missing, and then it is not known.
fn accept_queue_limit(port: u16) -> Option<u32> {
    let filter = format!("sport = :{port}");
    let output = Command::new("ss").args(["-Hltn", &filter]).output().ok()?;
    listener_limit(&String::from_utf8_lossy(&output.stdout))
}
