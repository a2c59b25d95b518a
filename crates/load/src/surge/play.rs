//! Plays SURGE's users: one driver sends what is due, one task a request waits for its answer and says when its user asks again.

use super::SurgeOptions;
use crate::client::Client;
use crate::exchange::Served;
use crate::failure::Failure;
use crate::play::{Played, Progress, Record};
use crate::pool::{Carrier, Pool, Reuse};
use crate::probe::Costs;
use crate::target::Target;
use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::process::thread_cpu_time_ns;
use sooner_kernel::timer::{PacingTimer, set_timer_slack_ns};
use sooner_workload::surge::{References, User};
use sooner_workload::{Arrival, Object};
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local};

/// From the decision to start to the first possible request, in ns.
const LEAD_NS: u64 = 10_000_000;

/// Plays the run; gives what became of every request, and which they were, about 200 bytes each.
pub(super) async fn play(
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
#[cfg(test)]
mod tests {
    use super::*;
    use sooner_workload::surge::SurgeModel;
    use std::num::NonZeroU32;

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
