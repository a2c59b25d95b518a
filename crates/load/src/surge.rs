//! SURGE's users against a real server: a closed system of user equivalents that ask for pages and think (see [`sooner_workload::surge`]).
//!
//! Nothing is planned: who asks when follows from how fast the server is, so offered and realised load are both what happened. A request
//! is due when its user's pause ends, counted from the end of the response before; one driver with a precise timer sends
//! for all users, so that the send lag is known here as in a replay. A failed request ends its page: the user
//! thinks, and goes on with another one. Every user has connections of its own; in 1999 one for each request.

use crate::client::Client;
use crate::counters::TcpCounters;
use crate::exchange::Served;
use crate::failure::Failure;
use crate::outcome::{self, Measured};
use crate::play::{Played, Progress, Record};
use crate::pool::{Carrier, Pool, Reuse};
use crate::probe::{self, Costs};
use crate::replay::{Replay, ReplayError, protocol};
use crate::socket::{SocketOptions, UnconnectedSocket};
use crate::target::Target;
use crate::verdict;
use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::descriptors;
use sooner_kernel::process::thread_cpu_time_ns;
use sooner_kernel::scheduling::RealTime;
use sooner_kernel::timer::{PacingTimer, set_timer_slack_ns};
use sooner_stats::{Run, RunFacts};
use sooner_workload::surge::{FileSet, References, SurgeError, SurgeModel, User};
use sooner_workload::{Arrival, Object, Plan, Process, Rate};
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;
use std::io;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local};

/// Most users of one run: each may hold a connection.
pub const USERS_MAX: u32 = 50_000;

/// From the decision to start to the first possible request, in ns.
const LEAD_NS: u64 = 10_000_000;

/// Whom to let loose on which server, and how long.
#[derive(Clone, Debug)]
pub struct SurgeOptions {
    /// Where the files of `surge:SEED` are served.
    pub target: Target,
    /// What the users do.
    pub model: SurgeModel,
    /// Number of user equivalents, at most [`USERS_MAX`].
    pub users: u32,
    /// Rate of the link that load, slowdown and ideals refer to.
    pub rate: Rate,
    /// Length of the run, warm-up included.
    pub duration: Duration,
    /// First part of the run, left out of the statistics; shorter than the run.
    pub warm_up: Duration,
    /// How long to wait for the last responses.
    pub drain: Duration,
    /// Requests after which a user's connection is closed.
    pub requests_per_connection: NonZeroU32,
    /// Seed of files, requests and pauses.
    pub seed: u64,
    /// Name of the policy under test, as the report shall call it.
    pub label: String,
    /// Options of every socket.
    pub socket: SocketOptions,
}

/// A run that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SurgeRunError {
    /// Too many users, or none.
    #[error("{0} users; give 1 to {USERS_MAX}")]
    Users(u32),
    /// The model's parameters are impossible.
    #[error(transparent)]
    Surge(#[from] SurgeError),
    /// What can go wrong with every replay.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// Lets the users loose; call it inside a tokio current-thread runtime that does nothing else. `progress` is called once a second.
pub async fn run(
    options: &SurgeOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Replay, SurgeRunError> {
    if !(1..=USERS_MAX).contains(&options.users) {
        return Err(SurgeRunError::Users(options.users));
    }
    if options.warm_up >= options.duration {
        let (warm_up_s, duration_s) = (
            options.warm_up.as_secs_f64(),
            options.duration.as_secs_f64(),
        );
        return Err(ReplayError::WarmUp {
            warm_up_s,
            duration_s,
        }
        .into());
    }
    let objects = objects(&FileSet::new(&options.model, options.seed)?);
    descriptors::raise_limit(u64::from(options.users) * 2 + 1024).ok();
    UnconnectedSocket::new(options.target.endpoint.address, &options.socket)
        .map_err(ReplayError::Socket)?;
    let costs = probe(options, &objects).await?;
    // Without the privilege the send lag shows whether it was needed.
    let real_time = RealTime::enter().ok();
    let counters_before = TcpCounters::now();
    let (played, arrivals) = play(options, objects, &costs, progress)
        .await
        .map_err(ReplayError::Timer)?;
    drop(real_time);
    let counters = TcpCounters::now()
        .zip(counters_before)
        .map(|(now, before)| now.since(before));
    Ok(report(options, &played, arrivals, costs, counters))
}

fn objects(files: &FileSet) -> Vec<Object> {
    let object = |(id, &size_bytes): (u32, &u64)| Object {
        id,
        size_bytes,
        ext: "html".into(),
    };
    (0..).zip(&files.sizes_bytes).map(object).collect()
}

/// Asks for the smallest file.
async fn probe(options: &SurgeOptions, objects: &[Object]) -> Result<Costs, ReplayError> {
    let Some(object) = objects
        .iter()
        .min_by_key(|object| (object.size_bytes, object.id))
    else {
        return Ok(Costs::default());
    };
    let path = options.target.path_of(&object.path());
    let probing = probe::probe(
        &options.target,
        &path,
        object.size_bytes,
        false,
        &options.socket,
    )
    .await;
    probing.map_err(|failure| ReplayError::Probe {
        url: options.target.url_of(&path),
        failure,
    })
}

/// Plays the run; gives what became of every request, and which they were.
async fn play(
    options: &SurgeOptions,
    objects: Vec<Object>,
    costs: &Costs,
    progress: &mut dyn FnMut(Progress),
) -> io::Result<(Played, Vec<Arrival>)> {
    set_timer_slack_ns(1)?;
    let timer = PacingTimer::new()?;
    let town = Rc::new(Town::new(options, objects, *costs));
    let performance = async {
        let cpu_share = town.clone().send_all(&timer).await;
        tokio::time::timeout(options.drain, town.all_ended())
            .await
            .ok();
        cpu_share
    };
    let tasks = LocalSet::new();
    let cpu_share = tasks
        .run_until(async {
            tokio::select! {
                cpu_share = performance => cpu_share,
                never = town.tell(progress) => match never {},
            }
        })
        .await;
    drop(tasks);
    let played = Played {
        start_ns: town.start_ns,
        records: town.records.take(),
        cpu_share,
    };
    Ok((played, town.arrivals.take()))
}

/// All users and what they share.
struct Town {
    target: Target,
    objects: Vec<Object>,
    costs: Costs,
    start_ns: u64,
    end_ns: u64,
    users: RefCell<Vec<Resident>>,
    references: RefCell<References>,
    /// Who asks next: when (CLOCK_MONOTONIC ns) and which user.
    due: RefCell<BinaryHeap<Reverse<(u64, u32)>>>,
    /// Somebody is due before the one that was waited for.
    sooner: Notify,
    records: RefCell<Vec<Record>>,
    arrivals: RefCell<Vec<Arrival>>,
    ended: Cell<u64>,
    failed: Cell<u64>,
    request_ended: Notify,
}

/// A user with the pauses that are left of its page, the next one last.
struct Resident {
    user: User,
    pauses_s: Vec<f64>,
    pool: Rc<Pool>,
}

/// One request as its connection needs it.
struct Job {
    index: usize,
    user: u32,
    path: String,
    close: bool,
    body_bytes: u64,
    pool: Rc<Pool>,
}

impl Town {
    fn new(options: &SurgeOptions, objects: Vec<Object>, costs: Costs) -> Town {
        let start_ns = monotonic_ns() + LEAD_NS;
        let client = Rc::new(Client::new(options.socket.clone()));
        let reuse = Reuse {
            requests_per_connection: options.requests_per_connection,
            http2_streams: None,
        };
        let mut users: Vec<Resident> = (0..options.users)
            .map(|number| Resident {
                user: User::new(&options.model, options.seed, number),
                pauses_s: Vec::new(),
                pool: Rc::new(Pool::new(
                    client.clone(),
                    options.target.endpoint.clone(),
                    reuse,
                )),
            })
            .collect();
        let due = (0..)
            .zip(&mut users)
            .map(|(number, resident)| Reverse((start_ns + ns(resident.user.start_s()), number)))
            .collect();
        Town {
            target: options.target.clone(),
            objects,
            costs,
            start_ns,
            end_ns: start_ns + options.duration.as_nanos() as u64,
            users: RefCell::new(users),
            references: RefCell::new(References::new(&options.model, options.seed)),
            due: RefCell::new(due),
            sooner: Notify::new(),
            records: RefCell::default(),
            arrivals: RefCell::default(),
            ended: Cell::new(0),
            failed: Cell::new(0),
            request_ended: Notify::new(),
        }
    }

    /// Sends every request when it is due, until the run ends; gives the generator thread's CPU share.
    async fn send_all(self: Rc<Self>, timer: &PacingTimer) -> f64 {
        let cpu_before_ns = thread_cpu_time_ns();
        loop {
            let first_ns = self
                .due
                .borrow()
                .peek()
                .map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns);
            tokio::select! {
                () = timer.sleep_until_ns(first_ns.min(self.end_ns)) => {}
                () = self.sooner.notified() => continue,
            }
            if first_ns >= self.end_ns {
                break;
            }
            let first = self.due.borrow_mut().pop();
            if let Some(Reverse((due_ns, user))) = first {
                self.send(user, due_ns);
            }
        }
        let elapsed_ns = monotonic_ns().saturating_sub(self.start_ns).max(1);
        (thread_cpu_time_ns() - cpu_before_ns) as f64 / elapsed_ns as f64
    }

    fn send(self: &Rc<Self>, user: u32, intended_ns: u64) {
        let object = &self.objects[self.references.borrow_mut().next_rank() as usize];
        let pool = self.users.borrow()[user as usize].pool.clone();
        let kept = pool.take();
        let new_connection = kept.is_none();
        let close = pool.is_last(kept.as_ref());
        let (sent_ns, carrier) = match kept {
            Some(carrier) => (monotonic_ns(), Ok(carrier)),
            None => pool.connect(),
        };
        let index = self.note_sent(object, intended_ns, sent_ns, new_connection);
        let job = Job {
            index,
            user,
            path: self.target.path_of(&object.path()),
            close,
            body_bytes: object.size_bytes,
            pool,
        };
        match carrier {
            Ok(carrier) => {
                spawn_local(serve(self.clone(), carrier, job));
            }
            Err(failure) => self.note_end(&job, Err(failure)),
        }
    }

    fn note_sent(
        &self,
        object: &Object,
        intended_ns: u64,
        sent_ns: u64,
        new_connection: bool,
    ) -> usize {
        let Costs { wire, head_bytes } = self.costs;
        self.arrivals.borrow_mut().push(Arrival {
            at_ns: intended_ns - self.start_ns,
            object: object.id,
            new_connection,
            size_bytes: object.size_bytes,
            work_bytes: wire.work_bytes(object.size_bytes, head_bytes, new_connection),
        });
        let mut records = self.records.borrow_mut();
        records.push(Record {
            intended_ns,
            sent_ns,
            new_connection,
            end: None,
            failed_ns: None,
        });
        records.len() - 1
    }

    /// Notes how a request ended, and when its user asks again.
    fn note_end(&self, job: &Job, end: Result<Served, Failure>) {
        let now_ns = monotonic_ns();
        self.ended.set(self.ended.get() + 1);
        self.failed.set(self.failed.get() + u64::from(end.is_err()));
        let record = &mut self.records.borrow_mut()[job.index];
        record.failed_ns = end.is_err().then_some(now_ns);
        record.end = Some(end);
        let pause_s = self.users.borrow_mut()[job.user as usize].pause_s(end.is_err());
        let due = Reverse((now_ns.saturating_add(ns(pause_s)), job.user));
        let is_first = self.due.borrow().peek().is_none_or(|first| due > *first);
        self.due.borrow_mut().push(due);
        if is_first {
            self.sooner.notify_one();
        }
        self.request_ended.notify_one();
    }

    async fn all_ended(&self) {
        while self.ended.get() < self.records.borrow().len() as u64 {
            self.request_ended.notified().await;
        }
    }

    async fn tell(&self, progress: &mut dyn FnMut(Progress)) -> Infallible {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let sent = self.records.borrow().len() as u64;
            progress(Progress {
                elapsed_ns: monotonic_ns().saturating_sub(self.start_ns),
                planned: sent,
                sent,
                ended: self.ended.get(),
                failed: self.failed.get(),
            });
        }
    }
}

impl Resident {
    /// The pause before the next request: inside the page, or after it, where it also ends when a request failed.
    fn pause_s(&mut self, failed: bool) -> f64 {
        if self.pauses_s.is_empty() {
            let page = self.user.page();
            self.pauses_s.push(page.inactive_off_s);
            self.pauses_s.extend(page.active_off_s.into_iter().rev());
        }
        if failed {
            self.pauses_s.truncate(1);
        }
        self.pauses_s.pop().unwrap_or_default()
    }
}

/// Plays one request, then leaves its connection to the user's next one.
async fn serve(town: Rc<Town>, mut carrier: Carrier, job: Job) {
    let end = carrier
        .request(&town.target, &job.path, job.close, Some(job.body_bytes))
        .await;
    town.note_end(&job, end);
    job.pool.put_back(carrier).await;
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn report(
    options: &SurgeOptions,
    played: &Played,
    arrivals: Vec<Arrival>,
    costs: Costs,
    counters: Option<TcpCounters>,
) -> Replay {
    // What happened, in the form of a plan; the measured part is all that is asked of it.
    let plan = Plan {
        arrivals,
        phases: Vec::new(),
        offered_load: 0.0,
        passed_over: 0,
    };
    let samples = outcome::samples(&plan, played, &costs, options.rate);
    let (warm_up_ns, duration_ns) = (
        options.warm_up.as_nanos() as u64,
        options.duration.as_nanos() as u64,
    );
    let measured = Measured::new(
        &plan,
        played,
        &samples,
        warm_up_ns,
        duration_ns,
        options.rate,
    );
    let mut evidence = measured.evidence(Process::Trace);
    // Nothing was asked for: the load is what the users made of it.
    evidence.offered_load = evidence.realised_load;
    let offered_load = evidence.offered_load;
    let (verdict, verdict_reason) = verdict::judge(evidence);
    let facts = RunFacts {
        policy: options.label.clone(),
        verdict,
        verdict_reason,
        seed: options.seed,
        offered_load,
        rate_bits_per_sec: options.rate.bits_per_sec(),
        measured_ns: duration_ns - warm_up_ns,
        syn_drops: counters
            .filter(|_| options.target.endpoint.address.ip().is_loopback())
            .map(|counters| counters.listen_drops),
        syn_retransmissions: counters.map(|counters| counters.syn_retransmissions),
    };
    let mut run = Run::new(facts, measured.samples().to_vec());
    run.first_errors = measured.first_errors();
    run.protocol = Some(protocol(&costs).into());
    run.opening_bytes = Some(costs.wire.opening_bytes);
    run.head_bytes = Some(costs.head_bytes);
    let warm_up_samples = samples.len() - measured.samples().len();
    Replay {
        run,
        warm_up_samples,
        passed_over: 0,
        samples,
        costs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident() -> Resident {
        let endpoint = "127.0.0.1:1"
            .parse::<std::net::SocketAddr>()
            .unwrap()
            .into();
        let reuse = Reuse {
            requests_per_connection: NonZeroU32::MIN,
            http2_streams: None,
        };
        Resident {
            user: User::new(&SurgeModel::default(), 1, 0),
            pauses_s: Vec::new(),
            pool: Rc::new(Pool::new(Rc::new(Client::default()), endpoint, reuse)),
        }
    }

    #[test]
    fn a_page_is_its_own_file_the_embedded_ones_and_a_pause() {
        let mut same = User::new(&SurgeModel::default(), 1, 0);
        let mut resident = resident();
        for _ in 0..50 {
            let page = same.page();
            let pauses: Vec<f64> = (0..page.requests())
                .map(|_| resident.pause_s(false))
                .collect();
            assert_eq!(pauses[..page.requests() - 1], page.active_off_s);
            assert_eq!(pauses[page.requests() - 1], page.inactive_off_s);
        }
    }

    #[test]
    fn a_failure_ends_the_page() {
        let mut same = User::new(&SurgeModel::default(), 1, 0);
        let mut resident = resident();
        assert_eq!(resident.pause_s(true), same.page().inactive_off_s);
        assert_eq!(resident.pause_s(true), same.page().inactive_off_s);
    }
}
