//! What a decision costs, counted in grants of the imagined server, with ten thousand jobs that
//! wait: no more for expected times of minutes than for any others.

use sooner_admission::{
    AdmissionQueue, ClientId, JobId, Lateness, Order, Payer, Promise, Request, Time, Tuning, Within,
};

const WAITING: u64 = 10_000;
const DECISIONS: u64 = 1_000;
/// The job that has waited longest is done in 32 turns. Before each of them the policy's choice has
/// one grant at most: either it is done then, or the turn is paid for.
const GRANTS_MAX: u64 = 2 * 32;

const MS: u64 = 1_000_000;

const ORDERS: [Order; 14] = [
    Order::Expected,
    Order::Fcfs,
    Order::Longest,
    Order::Boost,
    Order::Hrrn,
    Order::Nudge,
    Order::Shares,
    Order::LeastUsed(Within::Expected),
    Order::LeastUsed(Within::Longest),
    Order::LeastUsed(Within::Boost),
    Order::LeastUsed(Within::Hrrn),
    Order::LeastUsed(Within::Nudge),
    Order::Targets(Lateness::ByPriority),
    Order::Targets(Lateness::InProportion),
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
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    /// Of one of three classes, two of which have a target.
    fn request(&mut self, expected_ns: Option<u64>) -> Request {
        let class = self.below(3) as u8;
        let promise = (class < 2).then(|| Promise {
            due_at: Time::from_ns(self.below(WAITING * MS)),
            target_ns: 1 + self.below(600_000 * MS),
            group: class,
        });
        Request {
            class,
            number: class,
            expected_ns,
            promise,
            came_ns: 0,
            payer: Some(Payer {
                client: ClientId(self.below(1000)),
                network: None,
            }),
            ..Request::default()
        }
    }

    /// 1 ms to an hour, each doubling as often as the next, and now and then nothing.
    fn any_time_ns(&mut self) -> Option<u64> {
        let doublings = self.below(23);
        let least_ns = MS << doublings;
        (doublings < 22).then(|| least_ns + self.below(least_ns))
    }
}

/// The most grants that a decision takes while jobs come, go in, leave and give up.
fn most_grants(order: Order, expected_ns: fn(&mut Scattered) -> Option<u64>) -> u64 {
    let mut scattered = Scattered(1);
    let mut queue = AdmissionQueue::new(order, 1, None);
    queue.set_weight(1, 7);
    queue.set_tuning(TUNING);
    let mut inside = None;
    let mut most = 0;
    for job in 0..WAITING + DECISIONS {
        let now = Time::from_ns(job * MS);
        let expected_ns = expected_ns(&mut scattered);
        let request = scattered.request(expected_ns);
        queue.arrive(JobId(job), request, now).unwrap();
        if job >= WAITING {
            // One gives up, or has gone already.
            queue.leave(JobId(scattered.below(2 * job)), now);
            if let Some(inside) = inside {
                queue.leave(inside, now);
            }
        }
        let before = queue.grants();
        inside = queue.admit(now).or(inside);
        most = most.max(queue.grants() - before);
    }
    most
}

#[test]
fn minutes_take_no_more_grants() {
    for order in ORDERS {
        let most = most_grants(order, |_| Some(600_000 * MS));
        assert!(most <= GRANTS_MAX, "{order:?}: {most}");
    }
}

#[test]
fn times_of_all_magnitudes_take_no_more_grants() {
    for order in ORDERS {
        let most = most_grants(order, Scattered::any_time_ns);
        assert!(most <= GRANTS_MAX, "{order:?}: {most}");
    }
}

/// On both sides of 32 turns of 10 ms.
#[test]
fn odd_times_take_no_more_grants() {
    for order in ORDERS {
        let most = most_grants(order, |scattered| Some(320 * MS - 40 + scattered.below(80)));
        assert!(most <= GRANTS_MAX, "{order:?}: {most}");
    }
}
