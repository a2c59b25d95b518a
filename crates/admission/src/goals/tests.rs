//! Goals in a closed system: users who ask again at once, a place for some of them inside, where
//! they share one processor.
//!
//! Event by event, with the admission that real jobs go through. What a class achieves is held
//! against its target; the sum of what all get cannot be more than there is, so a class without a
//! target pays.

use std::collections::BTreeMap;

use super::*;
use crate::{AdmissionQueue, JobId, Lateness, Order, Request};

const MS: u64 = 1_000_000;

/// Pseudo-random numbers in 0..1 (Marsaglia's xorshift, 64 bits).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.next()).ln()
    }
}

struct Job {
    class: u8,
    kind: u8,
    came_at: Time,
    went_in_at: Time,
    /// Processor time still to come, ns.
    left_ns: f64,
}

struct World {
    admission: AdmissionQueue,
    goals: Goals,
    kinds: BTreeMap<u8, Mean>,
    random: Random,
    jobs: BTreeMap<JobId, Job>,
    inside: Vec<JobId>,
    came: u64,
    now: Time,
    /// Mean processor time of each kind, ns, and its share of the jobs.
    demands: Vec<(f64, f64)>,
    /// Share of the jobs of each class.
    classes: Vec<f64>,
    /// Class, kind, response time.
    done: Vec<(u8, u8, f64)>,
}

impl World {
    fn new(order: Order, limit: usize, goals: Vec<Goal>, classes: &[f64]) -> Self {
        let mut all = Goals::default();
        all.replace(goals);
        Self {
            admission: AdmissionQueue::new(order, limit, None),
            goals: all,
            kinds: BTreeMap::new(),
            random: Random(0x9e37_79b9_7f4a_7c15),
            jobs: BTreeMap::new(),
            inside: Vec::new(),
            came: 0,
            now: Time::ZERO,
            demands: vec![(2.0e6, 1.0)],
            classes: classes.to_vec(),
            done: Vec::new(),
        }
    }

    fn draw(random: &mut Random, shares: impl Iterator<Item = f64>) -> u8 {
        let mut left = random.next();
        let mut last = 0;
        for (number, share) in (0..).zip(shares) {
            last = number;
            if left < share {
                break;
            }
            left -= share;
        }
        last
    }

    fn come(&mut self) {
        let class = Self::draw(&mut self.random, self.classes.iter().copied());
        let kind = Self::draw(&mut self.random, self.demands.iter().map(|kind| kind.1));
        let left_ns = self.demands[usize::from(kind)].0 * self.random.exponential();
        let kind_ns = self.kinds.get(&kind).and_then(Mean::get);
        let came_ns = self.now.as_ns() as i64;
        let promise = self.goals.arrive(class, kind_ns, came_ns);
        let request = Request {
            class: self.goals.rank(Order::default(), class),
            number: class,
            expected_ns: kind_ns,
            promise,
            came_ns,
            ..Request::default()
        };
        let id = JobId(self.came);
        self.came += 1;
        let job = Job {
            class,
            kind,
            came_at: self.now,
            went_in_at: self.now,
            left_ns,
        };
        self.jobs.insert(id, job);
        self.admission.arrive(id, request, self.now).unwrap();
    }

    /// Until the next one is done.
    fn step(&mut self) {
        while let Some(id) = self.admission.admit(self.now) {
            self.jobs.get_mut(&id).unwrap().went_in_at = self.now;
            self.inside.push(id);
        }
        let left = |id: &JobId| self.jobs[id].left_ns;
        let first = (0..self.inside.len())
            .min_by(|a, b| left(&self.inside[*a]).total_cmp(&left(&self.inside[*b])))
            .unwrap();
        let each_ns = left(&self.inside[first]);
        let passed_ns = each_ns * self.inside.len() as f64;
        for id in &self.inside {
            self.jobs.get_mut(id).unwrap().left_ns -= each_ns;
        }
        self.now = self.now.after(passed_ns as u64);
        let id = self.inside.swap_remove(first);
        let job = self.jobs.remove(&id).unwrap();
        let outside_ns = job.went_in_at.since(job.came_at);
        let inside_ns = self.now.since(job.went_in_at);
        self.goals.done(job.class, outside_ns, inside_ns, self.now);
        self.goals.leave(job.class);
        let kind = self.kinds.entry(job.kind).or_insert(Mean::new(64));
        kind.add(inside_ns);
        self.admission.leave(id, self.now);
        let response_ns = self.now.since(job.came_at) as f64;
        self.done.push((job.class, job.kind, response_ns));
        // A closed system: a user who is done asks again.
        self.come();
    }

    /// So many jobs, of which the first third is forgotten.
    fn run(&mut self, users: usize, count: usize) {
        self.run_from(users, count / 3, count - count / 3);
    }

    /// So many jobs after `fill` others.
    fn run_from(&mut self, users: usize, fill: usize, count: usize) {
        (0..users).for_each(|_| self.come());
        (0..fill).for_each(|_| self.step());
        self.done.clear();
        (0..count).for_each(|_| self.step());
    }

    fn responses(&self, class: u8) -> Vec<f64> {
        let of_class = self.done.iter().filter(|done| done.0 == class);
        of_class.map(|done| done.2).collect()
    }

    fn mean(&self, class: u8) -> f64 {
        let all = self.responses(class);
        all.iter().sum::<f64>() / all.len() as f64
    }

    fn percentile(&self, class: u8, share: f64) -> f64 {
        let mut all = self.responses(class);
        all.sort_by(f64::total_cmp);
        all[(share * all.len() as f64).ceil() as usize - 1]
    }

    fn share_within(&self, class: u8, ns: u64) -> f64 {
        let all = self.responses(class);
        let within = all.iter().filter(|response| **response <= ns as f64);
        within.count() as f64 / all.len() as f64
    }

    fn c2(&self) -> f64 {
        let all: Vec<f64> = self.done.iter().map(|done| done.2).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let squares: f64 = all.iter().map(|one| (one - mean).powi(2)).sum();
        squares / all.len() as f64 / mean.powi(2)
    }
}

fn goal(name: &str, priority: u8, response_targets: &[ResponseTarget]) -> Goal {
    Goal {
        name: name.into(),
        priority,
        weight: 1,
        response_targets: response_targets.to_vec(),
        ..Goal::default()
    }
}

const BY_PRIORITY: Order = Order::Targets(Lateness::ByPriority);

/// 100 users and 2 ms each: 200 ms for all on average; the paper's spread of targets (Table 10.3),
/// 0.7 and 1 to 1.6.
#[test]
fn means_are_met_and_whoever_has_no_target_pays() {
    for limit in [4, 10, 20] {
        let goals = vec![
            goal("gold", 0, &[ResponseTarget::Mean(90 * MS)]),
            goal("silver", 1, &[ResponseTarget::Mean(130 * MS)]),
            goal("rest", 2, &[]),
        ];
        let mut world = World::new(BY_PRIORITY, limit, goals, &[0.1, 0.2, 0.7]);
        world.run(100, 60_000);
        let achieved = [world.mean(0) / 90e6, world.mean(1) / 130e6];
        for ratio in achieved {
            assert!((0.9..1.02).contains(&ratio), "limit {limit}: {achieved:?}");
        }
        let left = (200e6 - 0.1 * 90e6 - 0.2 * 130e6) / 0.7;
        assert!((0.95..1.1).contains(&(world.mean(2) / left)), "{limit}");
    }
}

/// All classes have targets, together 7 % above what can be had; who gets what is left over is not
/// said.
#[test]
fn targets_near_the_limit_of_what_can_be_had_are_met() {
    let targets = [60 * MS, 130 * MS, 260 * MS];
    let shares = [0.3, 0.3, 0.4];
    let goals = (0..).zip(targets);
    let goals = goals
        .map(|(priority, ns)| goal(&priority.to_string(), priority, &[ResponseTarget::Mean(ns)]));
    let mut world = World::new(BY_PRIORITY, 8, goals.collect(), &shares);
    // The targets are 161 ms on average; 75 users have 150.
    world.run(75, 90_000);
    for (class, target_ns) in (0..).zip(targets) {
        let ratio = world.mean(class) / target_ns as f64;
        assert!((0.5..1.03).contains(&ratio), "{class}: {ratio}");
    }
}

#[test]
fn percentiles_and_means_together_are_met() {
    let goals = vec![
        goal("a", 0, &[ResponseTarget::Share(0.95, 120 * MS)]),
        goal(
            "b",
            1,
            &[
                ResponseTarget::Share(0.8, 160 * MS),
                ResponseTarget::Mean(500 * MS),
            ],
        ),
        goal(
            "c",
            2,
            &[
                ResponseTarget::Mean(150 * MS),
                ResponseTarget::Share(0.99, 900 * MS),
            ],
        ),
        goal("rest", 3, &[]),
    ];
    let mut world = World::new(BY_PRIORITY, 10, goals, &[0.1, 0.1, 0.1, 0.7]);
    world.run(100, 90_000);
    let within = [
        world.share_within(0, 120 * MS),
        world.share_within(1, 160 * MS),
    ];
    assert!((0.945..0.99).contains(&within[0]), "{within:?}");
    assert!((0.795..0.9).contains(&within[1]), "{within:?}");
    let ratio = world.mean(2) / 150e6;
    assert!((0.85..1.02).contains(&ratio), "{ratio}");
}

/// Three times the users that the targets were made for.
#[test]
fn more_load_than_targets_allow_is_paid_by_priority_or_in_proportion() {
    let targets = [50 * MS, 110 * MS, 220 * MS];
    let run = |lateness| {
        let goals = (0..).zip(targets);
        let goals =
            goals.map(|(class, ns)| goal(&class.to_string(), class, &[ResponseTarget::Mean(ns)]));
        let order = Order::Targets(lateness);
        let mut world = World::new(order, 8, goals.collect(), &[0.4, 0.4, 0.2]);
        world.run(150, 90_000);
        [0, 1, 2].map(|class: u8| world.mean(class) / targets[usize::from(class)] as f64)
    };
    let by_priority = run(Lateness::ByPriority);
    assert!(
        by_priority[0] < 1.1 && by_priority[1] < 1.2,
        "{by_priority:?}"
    );
    assert!(by_priority[2] > 3.0, "{by_priority:?}");
    let shared = run(Lateness::InProportion);
    let [least, most] = [f64::min, f64::max].map(|of| shared.into_iter().reduce(of).unwrap());
    assert!(least > 2.0 && most / least < 1.15, "{shared:?}");
}

/// One job in ten is thirty times as long as the others, like TPC-W's best sellers.
#[test]
fn what_evens_out_varies_little() {
    let run = |evens_out| {
        let all = Goal {
            evens_out,
            ..goal("all", 0, &[])
        };
        let mut world = World::new(BY_PRIORITY, 10, vec![all], &[1.0]);
        world.demands = vec![(0.5e6, 0.9), (15e6, 0.1)];
        world.run(100, 60_000);
        (world.c2(), world.mean(0))
    };
    let (before, mean_before) = run(false);
    let (after, mean_after) = run(true);
    assert!(after < 0.2 && after < 0.6 * before, "{before} {after}");
    // Users who ask again at once: whatever the order is, the mean is the number of users over the
    // throughput.
    assert!((mean_after / mean_before - 1.0).abs() < 0.05);
}

/// What a class was found to take, its corrections too, outlive a change of the configuration that
/// does not concern it.
#[test]
fn what_was_learned_stays() {
    let mut goals = Goals::default();
    goals.replace(vec![
        goal("a", 0, &[ResponseTarget::Mean(10 * MS)]),
        goal("b", 1, &[]),
    ]);
    let now = Time::from_ns(SILENT_NS);
    goals.done(0, MS, 2 * MS, now);
    goals.replace(vec![
        goal("c", 0, &[]),
        goal("a", 3, &[ResponseTarget::Mean(10 * MS)]),
    ]);
    let class_statuses = goals.class_statuses();
    assert_eq!(class_statuses[0].response_ns, None);
    assert_eq!(class_statuses[0].done, Done::default());
    assert_eq!(class_statuses[1].response_ns, Some(3 * MS));
    let done = Done {
        jobs: 1,
        response_sum_ns: u128::from(3 * MS),
        inside_sum_ns: u128::from(2 * MS),
    };
    assert_eq!(class_statuses[1].done, done);
    assert_eq!(
        class_statuses[1].achieved,
        [(ResponseTarget::Mean(10 * MS), Some(3 * MS))]
    );
    // One job is no reason to let fewer in.
    let need = |inside_ns| Need {
        class: 1,
        inside_ns,
        target_ns: 10 * MS,
    };
    let needs = |goals: &Goals, now| goals.needs(now).collect::<Vec<_>>();
    assert_eq!(needs(&goals, now), [need(None)]);
    (0..20).for_each(|_| goals.done(1, MS, 2 * MS, now));
    assert_eq!(needs(&goals, now), [need(Some(2 * MS))]);
    // Nor is what was never seen with so many inside.
    goals.rescale(2.0);
    assert_eq!(needs(&goals, now), [need(None)]);
    // Nor is a class that comes no more.
    assert_eq!(needs(&goals, now.after(SILENT_NS)), [need(None)]);
    assert_eq!(needs(&goals, now.after(SILENT_NS + 1)), []);
}

/// Five thousand that wait together are some centuries in weeks.
#[test]
fn sums_outlive_what_64_bits_hold() {
    let mut goals = Goals::default();
    goals.replace(vec![goal("a", 0, &[])]);
    let century_ns = 100 * 365 * 86_400 * 1_000_000_000;
    for _ in 0..9 {
        goals.done(0, century_ns, century_ns, Time::ZERO);
    }
    let done = goals.class_statuses()[0].done;
    assert_eq!(done.response_sum_ns, 18 * u128::from(century_ns));
    assert_eq!(done.inside_sum_ns, 9 * u128::from(century_ns));
}

/// Percentiles are told of every class, whatever it has as a target.
#[test]
fn percentiles_are_known_without_a_target_for_them() {
    let mut goals = Goals::default();
    let percentile = ResponseTarget::Share(0.9, MS);
    goals.replace(vec![goal("a", 0, &[]), goal("b", 1, &[percentile])]);
    for class in [0, 1] {
        (1..=100).for_each(|ms| goals.done(class, 0, ms * MS, Time::from_ns(ms * MS)));
    }
    for status in goals.class_statuses() {
        assert_eq!(status.p95_response_ns, Some(95 * MS), "{}", status.name);
        assert_eq!(status.p99_response_ns, Some(99 * MS), "{}", status.name);
    }
}

#[test]
fn who_waited_elsewhere_is_due_earlier_and_never_before_the_beginning() {
    let mut goals = Goals::default();
    goals.replace(vec![goal("a", 0, &[ResponseTarget::Mean(10 * MS)])]);
    let due = |came_ns| goals.promise(0, None, came_ns).unwrap().due_at.as_ns();
    assert_eq!(due(5 * MS as i64), 15 * MS);
    assert_eq!(due(MS as i64), 11 * MS);
    assert_eq!(due(-5 * MS as i64), 5 * MS);
    assert_eq!(due(i64::MIN), 0);
    assert_eq!(goals.arrive(9, None, 0), None);
}

/// Routes of a web application: one request in fifty takes a hundred times as long as most, and
/// two of them inside hold up all others. Of a first class 80 in a hundred jobs are to take at most
/// 0.4 of the mean of them all, of a second one 95 at most 0.8: these times, by target, of so many
/// jobs after `fill`.
fn of_targets(fill: usize, count: usize, seed: u64) -> [f64; 2] {
    let run = |targets: &[&[ResponseTarget]], shares: &[f64]| {
        let goals = (0..).zip(targets);
        let goals = goals.map(|(class, of_class)| goal(&class.to_string(), class, of_class));
        let mut world = World::new(BY_PRIORITY, 2, goals.collect(), shares);
        world.random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(2 * seed + 1));
        world.demands = vec![(5e6, 0.7), (20e6, 0.2), (80e6, 0.08), (400e6, 0.02)];
        world.run_from(60, fill, count);
        world
    };
    let mean_ns = run(&[&[]], &[1.0]).mean(0);
    let at = |part: f64| (part * mean_ns) as u64;
    let first = [ResponseTarget::Share(0.8, at(0.4))];
    let second = [ResponseTarget::Share(0.95, at(0.8))];
    let world = run(&[&first, &second, &[]], &[0.1, 0.1, 0.8]);
    [
        world.percentile(0, 0.8) / at(0.4) as f64,
        world.percentile(1, 0.95) / at(0.8) as f64,
    ]
}

/// A percentile needs jobs to be early by what it is.
#[test]
fn percentiles_are_met_where_a_few_jobs_take_very_long() {
    for seed in 1..=3 {
        let [first, second] = of_targets(6_600, 13_400, seed);
        assert!(first < 1.03 && second < 1.05, "{seed}: {first} {second}");
    }
}

/// Within a minute of forty requests a second, of which one in ten is of the class.
#[test]
fn percentiles_are_met_soon() {
    let mut runs: Vec<[f64; 2]> = (1..=21).map(|seed| of_targets(600, 1_700, seed)).collect();
    let mut median = |at: usize| {
        runs.sort_by(|one, other| one[at].total_cmp(&other[at]));
        runs[10][at]
    };
    let medians = [median(0), median(1)];
    assert!(medians.iter().all(|it| *it < 1.03), "{medians:?}");
}
