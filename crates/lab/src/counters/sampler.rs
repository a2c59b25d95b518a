//! Counts once a second, in a thread on the server's host.

use std::fs;
use std::io::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use sooner_kernel::qdisc::{self, Queue};
use sooner_kernel::{device, netns, tcp_table};

use super::mib::{TcpCounters, tcp_counters};
use super::processes::{Usage, usage};
use super::row::{Counter, queue_counters};
use super::sockets::{Connections, accept_queue_limit, table, time_wait};
use super::summary::CountersSummary;

/// How far the thread that counts stands back, of this thread alone.
const NICE: i32 = 10;
/// The server's processes are looked at in every so many-th row: Apache has hundreds of threads,
/// and to read all of them each second took a tenth of a processor from what is measured.
const ROWS_BETWEEN_USAGES: u32 = 5;

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
            let mut source = match begun {
                Ok(source) => source,
                Err(error) => {
                    // The caller of `start` waits for this answer.
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
                if is_last || number.is_multiple_of(ROWS_BETWEEN_USAGES) {
                    source.look_at_processes();
                }
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
    tcp: TcpCounters,
    queues: Vec<Queue>,
    usage: Usage,
    /// As it was when the processes were looked at last.
    usage_seen: Usage,
}

impl Source {
    /// Moves the calling thread to the server's host and reads everything once.
    fn open(options: SamplerOptions) -> io::Result<Source> {
        netns::enter(&options.namespace)?;
        // Counting waits for serving; where that is not allowed it takes its few milliseconds
        // anyway.
        setpriority_process(None, NICE).ok();
        let usage = usage(options.pid);
        Ok(Source {
            start: Instant::now(),
            tcp: read_tcp()?,
            queues: read_queues(&options.device)?,
            usage,
            usage_seen: usage,
            options,
        })
    }

    fn look_at_processes(&mut self) {
        self.usage_seen = usage(self.options.pid);
    }

    fn row(&self) -> io::Result<Counter> {
        let usage = self.usage_seen;
        let queues = read_queues(&self.options.device)?;
        let (connections, accept_queue_limit) = read_connections(self.options.port)?;
        Ok(Counter {
            time_s: self.start.elapsed().as_secs_f64(),
            connections,
            accept_queue_limit,
            tcp: read_tcp()? - self.tcp,
            queues: queue_counters(&queues, &self.queues),
            cpu_s: (usage.cpu_s - self.usage.cpu_s).max(0.0),
            cpu_wait_s: (usage.cpu_wait_s - self.usage.cpu_wait_s).max(0.0),
            slices: usage.slices.saturating_sub(self.usage.slices),
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

/// The connections of the port, and how many may wait to be accepted where the kernel tells.
fn read_connections(port: u16) -> io::Result<(Connections, Option<u32>)> {
    let (mut connections, limit) = match tcp_table::with_port(port) {
        Ok(sockets) => (
            Connections::of(sockets.iter().copied()),
            accept_queue_limit(&sockets),
        ),
        // A kernel without sock_diag; its table has a line for every socket, and no limits.
        Err(_) => (tables(port)?, None),
    };
    let sockstat = fs::read_to_string(format!("{NET}/sockstat"))?;
    connections.time_wait = time_wait(&sockstat).unwrap_or(0);
    Ok((connections, limit))
}

fn tables(port: u16) -> io::Result<Connections> {
    let ipv4 = Connections::of(table(&fs::read_to_string(format!("{NET}/tcp"))?, port));
    // Not there without IPv6.
    let ipv6 = fs::read_to_string(format!("{NET}/tcp6")).unwrap_or_default();
    Ok(ipv4 + Connections::of(table(&ipv6, port)))
}

fn read_queues(name: &str) -> io::Result<Vec<Queue>> {
    qdisc::queues(&device::by_name(name)?)
}
