//! Asks servers at a rate, whatever becomes of the answers, and measures every response from the
//! moment at which its request should have been sent.
//!
//! One driver begins every request at its absolute time and never waits for a server. A request
//! takes a connection that is idle, or opens one; where as many are open as may be, it waits in the
//! client, and its response time counts on. So a server that stalls is seen by all requests that
//! were due meanwhile, and not by one alone. Memory is bounded: figures are histograms, and what
//! waits is dropped, as timed out, when its time is over.

pub mod arrivals;
pub mod recorder;
pub mod report;
mod servers;

use crate::client::Client;
use crate::expectation::Expectation;
use crate::failure::Failure;
use crate::message::Message;
use crate::pool::{Pool, Reuse};
use crate::reachable::{Unreachable, is_reachable};
use crate::socket::SocketOptions;
use crate::stopped::Stopped;
use crate::target::Target;
use arrivals::Stages;
use recorder::{Ended, Recorder, Second};
use report::{Lasted, RateRun};
use servers::{Job, Server};
use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::descriptors;
use sooner_kernel::process::thread_cpu_time_ns;
use sooner_kernel::scheduling::RealTime;
use sooner_kernel::signals::EndSignals;
use sooner_kernel::timer::{PacingTimer, set_timer_slack_ns};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local, yield_now};

/// From the decision to start to the first possible request, in ns.
const LEAD_NS: u64 = 10_000_000;
/// Requests that a driver behind its schedule begins before it lets others go on.
const BURST: u32 = 16;
/// Descriptors beside those of connections.
const DESCRIPTORS_BESIDE: u64 = 64;

/// A request and when it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Ns since the start of the run.
    pub at_ns: u64,
    /// Index of what is asked.
    pub request: u32,
    /// Whether it failed before, in the log that is replayed, and may do so again.
    pub failed_before: bool,
}

/// What may be asked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The request, for the protocol of the run.
    pub message: Message,
    /// The same as the last request of a connection; none where that is alike.
    pub closing: Option<Message>,
    /// Index of its server.
    pub server: usize,
}

impl Asked {
    /// What to send, as the last request of its connection or not.
    fn to_send(&self, is_last: bool) -> &Message {
        let closing = self.closing.as_ref().filter(|_| is_last);
        closing.unwrap_or(&self.message)
    }
}

/// A run.
#[derive(Clone, Debug)]
pub struct RateOptions {
    /// Where connections are made to; one for each scheme, host and port.
    pub servers: Vec<Target>,
    /// What is asked; arrivals say which.
    pub requests: Vec<Asked>,
    /// How long requests come.
    pub duration: Duration,
    /// First part of the run, left out of the figures.
    pub warm_up: Duration,
    /// How long a request may take from its intended moment.
    pub timeout: Duration,
    /// Most connections to a server.
    pub connections: u32,
    /// Protocol, and how connections are used.
    pub reuse: Reuse,
    /// How gaps are made: `poisson`, `constant` or `log`.
    pub arrivals: &'static str,
    /// The rates that were asked for; none of a log.
    pub stages: Option<Stages>,
    /// What is expected of the figures.
    pub expectations: Vec<Expectation>,
    /// Options of every socket.
    pub socket: SocketOptions,
}

/// A run that could not start.
#[derive(Debug, thiserror::Error)]
pub enum RateError {
    /// No connection can be made.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The system refused a timer or signals.
    #[error("cannot set up timers and signals: {0}")]
    System(io::Error),
}

/// A run with what was recorded of it.
pub struct Ran {
    /// The figures.
    pub run: RateRun,
    /// Histograms and counts.
    pub recorder: Recorder,
}

/// Makes the run; call it inside a tokio current-thread runtime that does nothing else. `told` is
/// called once a second.
///
/// In a box, so that it is compiled with this crate and not with each that waits for it.
pub fn run<'a>(
    options: &'a RateOptions,
    arrivals: &'a mut dyn Iterator<Item = Arrival>,
    told: &'a mut dyn FnMut(&Second),
) -> Pin<Box<dyn Future<Output = Result<Ran, RateError>> + 'a>> {
    Box::pin(carry_out(options, arrivals, told))
}

async fn carry_out(
    options: &RateOptions,
    arrivals: &mut dyn Iterator<Item = Arrival>,
    told: &mut dyn FnMut(&Second),
) -> Result<Ran, RateError> {
    let most = u64::from(options.connections) * options.servers.len() as u64;
    descriptors::raise_limit(most + DESCRIPTORS_BESIDE).ok();
    let client = Rc::new(Client::new(options.socket.clone()));
    for server in &options.servers {
        is_reachable(&client, server).await?;
    }
    let opened_before = client.connections_opened();
    set_timer_slack_ns(1).map_err(RateError::System)?;
    let mut timer = PacingTimer::new().map_err(RateError::System)?;
    let mut signals = EndSignals::listen().map_err(RateError::System)?;
    let running = Rc::new(Running::new(options, &client));
    // Without the privilege the send lag shows whether it was needed.
    let real_time = RealTime::enter().ok();
    let cpu_before_ns = thread_cpu_time_ns();
    let mut sent_until_ns = None;
    let work = async {
        running.drive(arrivals, &mut timer).await;
        sent_until_ns = Some((monotonic_ns(), thread_cpu_time_ns()));
        running.is_sending.set(false);
        running.all_ended().await;
    };
    let tasks = LocalSet::new();
    let is_stopped = tasks
        .run_until(async {
            tokio::select! {
                () = work => false,
                _ = signals.next() => true,
                never = running.tell(told) => match never {},
            }
        })
        .await;
    drop(tasks);
    drop(real_time);
    if !running.recorder.borrow().is_quiet() {
        told(&running.take_second());
    }
    let end_ns = monotonic_ns();
    let (sent_until_ns, cpu_ns) = sent_until_ns.unwrap_or((end_ns, thread_cpu_time_ns()));
    let was_sending = running.is_sending.get();
    let elapsed_ns = sent_until_ns.saturating_sub(running.start_ns).max(1);
    let measured_ns = if was_sending {
        elapsed_ns
    } else {
        nanoseconds(options.duration)
    };
    let received_ns = end_ns.saturating_sub(running.start_ns);
    let asked_per_sec = options.stages.as_ref().map(|stages| {
        stages.rate_between(running.warm_up_ns as f64 / 1e9, measured_ns as f64 / 1e9)
    });
    let lasted = Lasted {
        asked_per_sec,
        arrivals: options.arrivals,
        measured_s: measured_ns.saturating_sub(running.warm_up_ns) as f64 / 1e9,
        asked: running.asked.get(),
        stopped: is_stopped.then(|| running.stopped(end_ns)),
        cpu_share: (cpu_ns - cpu_before_ns) as f64 / elapsed_ns as f64,
        received: (client.receiver().body_bytes(), received_ns as f64 / 1e9),
        in_flight_max: running.in_flight_max.get(),
        connections_opened: client.connections_opened() - opened_before,
        resent: client.resent(),
        connections: options.connections,
        errors_known: running.errors_known.get(),
    };
    let recorder = running.recorder.take();
    let run = RateRun::new(&recorder, &lasted, &options.expectations);
    Ok(Ran { run, recorder })
}

/// What the driver and the requests under way share.
struct Running {
    servers: Vec<Server>,
    requests: Vec<Asked>,
    recorder: RefCell<Recorder>,
    start_ns: u64,
    end_ns: u64,
    warm_up_ns: u64,
    timeout_ns: u64,
    is_sending: Cell<bool>,
    /// Requests that were due in the measured part.
    asked: Cell<u64>,
    /// Of those, requests that failed before.
    errors_known: Cell<u64>,
    /// Under way or waiting for a connection.
    in_flight: Cell<u64>,
    in_flight_max: Cell<u64>,
    request_ended: Notify,
}

impl Running {
    fn new(options: &RateOptions, client: &Rc<Client>) -> Self {
        let server = |target: &Target| {
            let pool = Pool::new(client.clone(), target.endpoint.clone(), options.reuse);
            Server::new(pool, options.connections)
        };
        let start_ns = monotonic_ns() + LEAD_NS;
        Self {
            servers: options.servers.iter().map(server).collect(),
            requests: options.requests.clone(),
            recorder: RefCell::default(),
            start_ns,
            end_ns: start_ns + nanoseconds(options.duration),
            warm_up_ns: nanoseconds(options.warm_up),
            timeout_ns: nanoseconds(options.timeout),
            is_sending: Cell::new(true),
            asked: Cell::new(0),
            errors_known: Cell::new(0),
            in_flight: Cell::new(0),
            in_flight_max: Cell::new(0),
            request_ended: Notify::new(),
        }
    }

    /// Begins every request at its time, and waits for the end of the run.
    async fn drive(
        self: &Rc<Self>,
        arrivals: &mut dyn Iterator<Item = Arrival>,
        timer: &mut PacingTimer,
    ) {
        let mut late = 0_u32;
        for arrival in arrivals {
            let due_ns = self.start_ns + arrival.at_ns;
            if due_ns > monotonic_ns() {
                late = 0;
                // Looks at the clock whenever it is polled, however late the timer is.
                poll_fn(|cx| timer.poll_sleep(cx, due_ns)).await;
            } else {
                late += 1;
                if late.is_multiple_of(BURST) {
                    yield_now().await;
                }
            }
            self.begin(arrival, due_ns);
        }
        poll_fn(|cx| timer.poll_sleep(cx, self.end_ns)).await;
    }

    fn begin(self: &Rc<Self>, arrival: Arrival, intended_ns: u64) {
        let is_warm_up = arrival.at_ns < self.warm_up_ns;
        if !is_warm_up {
            self.asked.set(self.asked.get() + 1);
            let errors_known = self.errors_known.get() + u64::from(arrival.failed_before);
            self.errors_known.set(errors_known);
        }
        let in_flight = self.in_flight.get() + 1;
        self.in_flight.set(in_flight);
        self.in_flight_max
            .set(self.in_flight_max.get().max(in_flight));
        let job = Job {
            request: arrival.request,
            intended_ns,
            is_warm_up,
            free_ns: None,
        };
        let server = self.server_of(&job);
        if server.take_place() {
            spawn_local(serve(self.clone(), job));
            return;
        }
        let now_ns = monotonic_ns();
        for job in server.wait(job, now_ns.saturating_sub(self.timeout_ns)) {
            self.end(&job, now_ns, Err(Failure::Late));
        }
    }

    fn server_of(&self, job: &Job) -> &Server {
        &self.servers[self.requests[job.request as usize].server]
    }

    /// Sends a request and waits for its end.
    async fn ask(&self, job: &Job) {
        let asked = &self.requests[job.request as usize];
        let pool = &self.servers[asked.server].pool;
        let kept = pool.take();
        let message = asked.to_send(pool.is_last(kept.as_ref()));
        let (sent_ns, carrier) = match kept {
            Some(carrier) => (monotonic_ns(), Ok(carrier)),
            None => pool.connect(),
        };
        let lag_ns = sent_ns.saturating_sub(job.free_ns.unwrap_or(job.intended_ns));
        let waited_ns = job
            .free_ns
            .map(|free_ns| free_ns.saturating_sub(job.intended_ns));
        let is_in_time = self.is_sending.get() && sent_ns >= self.start_ns + self.warm_up_ns;
        self.recorder
            .borrow_mut()
            .sent(lag_ns, waited_ns, job.is_warm_up, is_in_time);
        let left_ns = (job.intended_ns + self.timeout_ns).saturating_sub(sent_ns);
        let mut carrier = match carrier {
            Ok(carrier) => carrier,
            Err(failure) => return self.end(job, monotonic_ns(), Err(failure)),
        };
        let answer = pool.send(&mut carrier, message);
        let end = tokio::time::timeout(Duration::from_nanos(left_ns), answer).await;
        match end {
            Ok(end) => {
                let spent = pool.keep(carrier);
                let at_ns = match &end {
                    Ok(served) => served.answer.last_byte_ns,
                    Err(_) => monotonic_ns(),
                };
                self.end(job, at_ns, end);
                if let Some(mut connection) = spent {
                    spawn_local(async move { connection.close().await });
                }
            }
            // What has come of it is thrown away with its connection, or its stream.
            Err(_) => self.end(job, monotonic_ns(), Err(Failure::Late)),
        }
    }

    fn end(&self, job: &Job, at_ns: u64, end: Result<crate::exchange::Served, Failure>) {
        let ended = Ended {
            intended_ns: job.intended_ns,
            at_ns,
            is_warm_up: job.is_warm_up,
            is_in_time: (self.start_ns + self.warm_up_ns..=self.end_ns).contains(&at_ns),
        };
        self.recorder.borrow_mut().ended(ended, end);
        self.in_flight.set(self.in_flight.get() - 1);
        self.request_ended.notify_one();
    }

    /// Waits until nothing is under way; each has its timeout.
    async fn all_ended(&self) {
        while self.in_flight.get() > 0 {
            self.request_ended.notified().await;
        }
    }

    /// What a signal at this time ends.
    fn stopped(&self, now_ns: u64) -> Stopped {
        let s = |ns: u64| ns as f64 / 1e9;
        match self.is_sending.get() {
            true => Stopped::Sending {
                after_s: s(now_ns.saturating_sub(self.start_ns)),
                planned_s: s(self.end_ns - self.start_ns),
            },
            false => Stopped::Waiting {
                unanswered: self.in_flight.get(),
            },
        }
    }

    fn take_second(&self) -> Second {
        self.recorder.borrow_mut().take_second(self.in_flight.get())
    }

    async fn tell(&self, told: &mut dyn FnMut(&Second)) -> Infallible {
        let lead = Duration::from_nanos(self.start_ns.saturating_sub(monotonic_ns()));
        let start = tokio::time::Instant::now() + lead;
        let mut seconds =
            tokio::time::interval_at(start + Duration::from_secs(1), Duration::from_secs(1));
        loop {
            seconds.tick().await;
            told(&self.take_second());
        }
    }
}

/// Asks, and on the place that becomes free asks what waits for one.
async fn serve(running: Rc<Running>, first: Job) {
    let mut job = first;
    loop {
        running.ask(&job).await;
        let server = running.server_of(&job);
        let now_ns = monotonic_ns();
        let (next, expired) = server.next(now_ns, now_ns.saturating_sub(running.timeout_ns));
        for job in expired {
            running.end(&job, now_ns, Err(Failure::Late));
        }
        match next {
            Some(next) => job = next,
            None => return,
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}
