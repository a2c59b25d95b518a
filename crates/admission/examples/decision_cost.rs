//! What it costs to let the next job in while many wait, ns: a job comes, the one inside leaves,
//! the next goes in. For each order, with expected times of minutes and of all magnitudes.
//!
//!     cargo run --release -p sooner-admission --example decision_cost -- 10000

#![expect(
    clippy::disallowed_methods,
    reason = "what is measured is the time it takes"
)]

use sooner_admission::{
    AdmissionQueue, ClientId, JobId, Lateness, Order, Payer, Promise, Request, Time, Tuning, Within,
};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const DECISIONS: u64 = 2_000;
const MS: u64 = 1_000_000;
/// 600 s.
const MINUTES_NS: u64 = 600_000 * MS;

const ORDERS: [(&str, Order); 11] = [
    ("expected", Order::Expected),
    ("fcfs", Order::Fcfs),
    ("longest", Order::Longest),
    ("boost", Order::Boost),
    ("hrrn", Order::Hrrn),
    ("nudge", Order::Nudge),
    ("shares", Order::Shares),
    ("least used", Order::LeastUsed(Within::Expected)),
    ("least used, hrrn", Order::LeastUsed(Within::Hrrn)),
    ("targets, by priority", Order::Targets(Lateness::ByPriority)),
    (
        "targets, in proportion",
        Order::Targets(Lateness::InProportion),
    ),
];

/// What boosts and nudges go by.
const TUNING: Tuning = Tuning {
    boost_scale_ns: 600_000 * MS,
    places: 1,
    small_max_ns: 60_000 * MS,
    nudge_places: 1000,
};

/// Numbers in a fixed, scattered order (splitmix64).
struct Scattered(u64);

impl Scattered {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// 1 ms to an hour, each doubling as often as the next.
    fn any_time_ns(&mut self) -> u64 {
        let doublings = self.next() % 22;
        (MS << doublings) + self.next() % (MS << doublings)
    }
}

/// What a job is expected to take, ns.
type Expect = fn(&mut Scattered) -> u64;

fn request(expected_ns: u64, scattered: &mut Scattered) -> Request {
    let class = (scattered.next() % 4) as u8;
    let promise = (class < 2).then(|| Promise {
        due_at: Time::from_ns(scattered.next() % MINUTES_NS),
        target_ns: MINUTES_NS,
        group: class,
    });
    Request {
        class,
        number: class,
        expected_ns: Some(expected_ns),
        promise,
        came_ns: 0,
        payer: Some(Payer {
            client: ClientId(scattered.next() % 1000),
            network: None,
        }),
        ..Request::default()
    }
}

/// What decisions took, sorted, and the most grants of the imagined server that one took.
fn decide(order: Order, jobs: u64, expected_ns: fn(&mut Scattered) -> u64) -> (Vec<Duration>, u64) {
    let mut queue = AdmissionQueue::new(order, 1, None);
    queue.set_tuning(TUNING);
    let mut scattered = Scattered(1);
    let (mut took, mut most_grants) = (Vec::new(), 0);
    let mut inside = None;
    for job in 0..jobs + DECISIONS {
        let expected_ns = expected_ns(&mut scattered);
        let request = request(expected_ns, &mut scattered);
        let now = Time::from_ns(job * MS);
        let (begin, grants) = (Instant::now(), queue.grants());
        let arrived = queue.arrive(JobId(job), request, now);
        if job >= jobs
            && let Some(inside) = inside
        {
            queue.leave(inside, now);
        }
        inside = queue.admit(now).or(inside);
        if job >= jobs {
            took.push(begin.elapsed());
            most_grants = most_grants.max(queue.grants() - grants);
        }
        assert!(arrived.is_ok(), "as many may wait as come");
    }
    took.sort_unstable();
    (took, most_grants)
}

/// What one job costs of a class with a cap, ns, where it alone holds those who wait: it comes, one
/// inside leaves, the next goes in.
fn below_a_cap(order: Order, jobs: u64) -> u128 {
    const CAP: u64 = 12;
    const ROUNDS: u64 = 200_000;
    let mut queue = AdmissionQueue::new(order, 16, None);
    queue.set_tuning(TUNING);
    queue.set_caps(&[(1, CAP as usize)], Time::ZERO);
    let mut inside = std::collections::VecDeque::new();
    let mut began = Instant::now();
    for job in 0..jobs + CAP + ROUNDS {
        if job == jobs + CAP {
            began = Instant::now();
        }
        let request = Request {
            class: 1,
            number: 1,
            expected_ns: Some(MS),
            payer: Some(Payer {
                client: ClientId(job % 4),
                network: None,
            }),
            ..Request::default()
        };
        let now = Time::from_ns(job * MS);
        let arrived = queue.arrive(JobId(job), request, now);
        assert!(arrived.is_ok(), "as many may wait as come");
        if job >= jobs + CAP
            && let Some(first) = inside.pop_front()
        {
            queue.settle(first, MS + job % 7);
            queue.leave(first, now);
        }
        while let Some(next) = queue.admit(now) {
            inside.push_back(next);
        }
    }
    began.elapsed().as_nanos() / u128::from(ROUNDS)
}

/// How long it takes to expect half of what was expected of so many jobs that wait.
fn expect_less(order: Order, jobs: u64) -> Duration {
    let mut queue = AdmissionQueue::new(order, 0, None);
    queue.set_tuning(TUNING);
    let mut scattered = Scattered(1);
    let expected_ns: Vec<u64> = (0..jobs).map(|_| scattered.any_time_ns()).collect();
    for (job, expected_ns) in (0..).zip(&expected_ns) {
        let request = request(*expected_ns, &mut scattered);
        let arrived = queue.arrive(JobId(job), request, Time::ZERO);
        assert!(arrived.is_ok(), "as many may wait as come");
    }
    let half = |job: JobId| expected_ns.get(job.0 as usize).map(|ns| ns / 2);
    let begin = Instant::now();
    queue.expect_less(half, Time::ZERO);
    begin.elapsed()
}

fn main() -> ExitCode {
    let word = std::env::args().nth(1).unwrap_or("10000".into());
    let Ok(jobs) = word.parse() else {
        eprintln!("decision_cost JOBS, like decision_cost 10000: {word} is no number of jobs");
        return ExitCode::from(2);
    };
    let all_times: [(&str, Expect); 2] = [
        ("600 s", |_| MINUTES_NS),
        ("1 ms to an hour", Scattered::any_time_ns),
    ];
    println!("{jobs} jobs wait; of {DECISIONS} decisions, ns");
    println!("order                    expected times      mean   median      p99   most grants");
    for (name, order) in ORDERS {
        for (times, expected_ns) in all_times {
            let (took, most_grants) = decide(order, jobs, expected_ns);
            let mean = took.iter().sum::<Duration>().as_nanos() / took.len() as u128;
            let [median, p99] =
                [2, 100].map(|part| took[took.len() - took.len() / part].as_nanos());
            println!("{name:<24} {times:<15} {mean:>8} {median:>8} {p99:>8} {most_grants:>8}");
        }
    }
    println!("\norder                    to expect less of all, us");
    for (name, order) in ORDERS {
        let took = expect_less(order, jobs).as_micros();
        println!("{name:<24} {took:>8}");
    }
    println!("\norder                    a job of a class with a cap while {jobs} wait, ns");
    for (name, order) in ORDERS {
        let took = below_a_cap(order, jobs);
        println!("{name:<24} {took:>8}");
    }
    ExitCode::SUCCESS
}
