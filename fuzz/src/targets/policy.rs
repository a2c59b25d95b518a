//! Every policy, guarded or not, under any order of calls: it serves while a job can be served, and
//! only jobs that can.

use arbitrary::Arbitrary;
use sooner_policy::order::{Boost, ByAge, Index, Nudge, Psbs, Sjf};
use sooner_policy::{
    Arrival, ClientId, Classes, GuardLimits, Hrrn, JobId, Order, Path, PolicyName, Scheduler, Time,
    WholeGuard,
};
use std::collections::BTreeMap;

/// One call; few job names, so that calls meet.
#[derive(Arbitrary, Debug)]
pub enum Operation {
    Arrive {
        job: u8,
        class: u8,
        size: Option<u64>,
        trickle: u64,
    },
    Progress {
        job: u8,
        amount: u64,
    },
    Depart {
        job: u8,
    },
    Block {
        job: u8,
    },
    Unblock {
        job: u8,
    },
    Enlarge {
        job: u8,
        additional: u64,
    },
    Reclassify {
        job: u8,
        class: u8,
    },
    Pass {
        time_ns: u32,
    },
    Observe {
        job: u8,
        rtt_ns: Option<u64>,
        rate_per_sec: Option<u64>,
    },
}

#[derive(Arbitrary, Debug)]
pub struct Play {
    policy: u8,
    is_guarded: bool,
    quantum: u16,
    operations: Vec<Operation>,
}

/// Tries one input.
pub fn run(play: Play) {
    let quantum = u64::from(play.quantum.max(1));
    let guard = play.is_guarded.then(|| GuardLimits::with_turn(quantum));
    let mut scheduler = scheduler(usize::from(play.policy), quantum, guard);
    let mut now_ns = 0;
    // The jobs present, and whether each can take service.
    let mut jobs = BTreeMap::new();
    for operation in &play.operations {
        apply(operation, scheduler.as_mut(), &mut jobs, &mut now_ns);
        let grant = scheduler.next(Time::from_ns(now_ns));
        assert_eq!(
            grant.is_some(),
            jobs.values().any(|ready| *ready),
            "idle exactly when nobody can be served"
        );
        if let Some(grant) = grant {
            assert_eq!(
                jobs.get(&grant.job),
                Some(&true),
                "only who can be served is served"
            );
            assert!(grant.max_amount >= 1);
        }
        assert!(jobs.keys().all(|job| scheduler.rank(*job).is_some()));
    }
}

/// One of those with a name, or one of those for queues, with what a number says as parameter.
fn scheduler(
    number: usize,
    quantum: u64,
    guard: Option<GuardLimits>,
) -> Box<dyn Scheduler + Send> {
    let named = PolicyName::ALL.len();
    match number % (named + 7) {
        0 => guarded(Boost::new(quantum << (number % 49)), guard),
        1 => guarded(Nudge::new(quantum, number as u64), guard),
        2 => guarded(Sjf, guard),
        3 => guarded(Psbs::new(quantum), guard),
        4 => guarded(ByAge::new(Index::Gittins), guard),
        5 => guarded(ByAge::new(Index::Remaining), guard),
        6 => match guard {
            Some(limits) => Box::new(WholeGuard::new(Hrrn::default(), limits)),
            None => Box::new(Hrrn::default()),
        },
        name => PolicyName::ALL[name - 7].scheduler(quantum, guard),
    }
}

fn guarded(
    order: impl Order + Clone + Send + 'static,
    guard: Option<GuardLimits>,
) -> Box<dyn Scheduler + Send> {
    let classes = Classes::new(order);
    match guard {
        Some(limits) => Box::new(WholeGuard::new(classes, limits)),
        None => Box::new(classes),
    }
}

fn apply(
    operation: &Operation,
    scheduler: &mut dyn Scheduler,
    jobs: &mut BTreeMap<JobId, bool>,
    now_ns: &mut u64,
) {
    let now = Time::from_ns(*now_ns);
    let id = |job: &u8| JobId(u64::from(job % 8));
    match operation {
        Operation::Arrive {
            job,
            class,
            size,
            trickle,
        } => {
            scheduler.arrive(
                Arrival {
                    id: id(job),
                    class: *class,
                    size: *size,
                    trickle: *trickle,
                    // The jobs of three clients, and jobs of none.
                    client: Some(ClientId(u64::from(job % 4))).filter(|client| client.0 > 0),
                    payer: None,
                },
                now,
            );
            jobs.entry(id(job)).or_insert(true);
        }
        Operation::Progress { job, amount } => scheduler.progress(id(job), *amount, now),
        Operation::Depart { job } => {
            scheduler.depart(id(job), now);
            jobs.remove(&id(job));
        }
        Operation::Block { job } => {
            scheduler.block(id(job), now);
            jobs.entry(id(job)).and_modify(|ready| *ready = false);
        }
        Operation::Unblock { job } => {
            scheduler.unblock(id(job), now);
            jobs.entry(id(job)).and_modify(|ready| *ready = true);
        }
        Operation::Enlarge { job, additional } => scheduler.enlarge(id(job), *additional, now),
        Operation::Reclassify { job, class } => scheduler.reclassify(id(job), *class, now),
        Operation::Pass { time_ns } => *now_ns += u64::from(*time_ns),
        Operation::Observe {
            job,
            rtt_ns,
            rate_per_sec,
        } => {
            let path = Path {
                rtt_ns: *rtt_ns,
                rate_per_sec: *rate_per_sec,
            };
            scheduler.observe(id(job), path, now);
        }
    }
}
