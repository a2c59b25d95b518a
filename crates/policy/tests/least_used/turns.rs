//! Who used most lately waits where service can be interrupted: responses in turns on a link.

use super::{HALF_LIFE_NS, job};
use sooner_policy::order::Srpt;
use sooner_policy::{
    Arrival, ClientId, GuardLimits, JobId, LeastUsed, PolicyName, Scheduler, Time,
};

const TURN: u64 = 10;

/// Jobs come before the turns that stand beside them; which has each turn, as letters.
fn turns(policy: &mut dyn Scheduler, jobs: &[(usize, Arrival)]) -> String {
    let mut left: Vec<u64> = jobs.iter().map(|(_, job)| job.size.unwrap()).collect();
    let mut order = String::new();
    let now = Time::ZERO;
    for turn in 0.. {
        for (_, job) in jobs.iter().filter(|(before, _)| *before == turn) {
            policy.arrive(*job, now);
        }
        let Some(grant) = policy.next(now) else {
            break;
        };
        let index = jobs.iter().position(|(_, job)| job.id == grant.job);
        let index = index.unwrap();
        let amount = grant.max_amount.min(TURN).min(left[index]);
        left[index] -= amount;
        policy.progress(grant.job, amount, now);
        if left[index] == 0 {
            policy.depart(grant.job, now);
        }
        order.push(char::from(b'A' + u8::try_from(index).unwrap()));
    }
    order
}

/// Three jobs of a client from the beginning.
fn greedy() -> Vec<(usize, Arrival)> {
    (0..3).map(|id| (0, job(id, 0, 4 * TURN))).collect()
}

fn by_client() -> LeastUsed<Srpt> {
    LeastUsed::new(Srpt, HALF_LIFE_NS)
}

#[test]
fn who_used_less_goes_before_the_job_that_is_served_at_the_next_turn() {
    let mut jobs = greedy();
    jobs.push((3, job(3, 1, 3 * TURN)));
    assert_eq!(turns(&mut by_client(), &jobs), "AAADDDABBBBCCCC");
    // By what remains alone one as large would have waited for all that began before it.
    jobs[3].1.size = Some(4 * TURN);
    let mut by_size = PolicyName::Srpt.scheduler(TURN, None);
    assert_eq!(turns(by_size.as_mut(), &jobs), "AAAABBBBCCCCDDDD");
}

#[test]
fn who_has_caught_up_takes_turns_with_the_others() {
    let mut jobs = greedy();
    jobs.push((3, job(3, 1, 7 * TURN)));
    assert_eq!(turns(&mut by_client(), &jobs), "AAADDDADBDBDBDBCCCC");
}

#[test]
fn within_a_client_the_shortest_goes_first() {
    let mut jobs = greedy();
    jobs.push((1, job(3, 0, TURN)));
    jobs.push((4, job(4, 1, 2 * TURN)));
    jobs.push((4, job(5, 1, TURN)));
    assert_eq!(turns(&mut by_client(), &jobs), "ADAAFEEABBBBCCCC");
}

#[test]
fn a_class_goes_before_who_used_less() {
    let mut jobs = greedy();
    let urgent = |job| Arrival { class: 1, ..job };
    jobs.push((0, urgent(job(3, 1, 2 * TURN))));
    assert_eq!(turns(&mut by_client(), &jobs), "AAAABBBBCCCCDD");
    // What it had in one class counts in the other.
    jobs.push((13, urgent(job(4, 0, TURN))));
    assert_eq!(turns(&mut by_client(), &jobs), "AAAABBBBCCCCDDE");
}

#[test]
fn what_was_never_sent_is_given_back() {
    let mut policy = by_client();
    let now = Time::ZERO;
    let lost = job(1, 0, 100);
    policy.arrive(lost, now);
    policy.progress(JobId(1), 100, now);
    policy.depart(JobId(1), now);
    policy.settle(&lost, 30, now);
    let jobs = [(0, job(2, 0, 2 * TURN)), (0, job(3, 1, 7 * TURN))];
    // It had 30 and not 100: the other has caught up after three turns.
    assert_eq!(turns(&mut policy, &jobs), "BBBABABBB");
}

#[test]
fn the_guards_oldest_has_its_turns_beside_those_who_used_less() {
    let limits = GuardLimits {
        oldest_share: 4,
        silence_ns_max: u64::MAX,
        ..GuardLimits::with_turn(TURN)
    };
    let of = |client, job| Arrival {
        client: Some(ClientId(client)),
        ..job
    };
    let mut jobs = vec![(0, of(0, job(0, 0, 30 * TURN)))];
    // New clients, one after the other, each of which has had nothing.
    jobs.extend((1..7).map(|id| (20 + 2 * id as usize, of(id, job(id, id, 2 * TURN)))));
    for (guard, busy) in [(None, "BBCCDDEEFFGGAA"), (Some(limits), "BBCADCEAFDGEFG")] {
        let mut policy = PolicyName::Srpt.scheduler_by_payer(TURN, guard);
        let order = turns(policy.as_mut(), &jobs);
        assert_eq!(&order[22..36], busy, "{order}");
        assert_eq!(order.len(), 42);
    }
}

#[test]
fn ranks_are_what_clients_had() {
    let mut policy = by_client();
    policy.arrive(job(1, 0, 100), Time::ZERO);
    assert_eq!(policy.rank(JobId(1)), Some(0));
    policy.progress(JobId(1), 80, Time::ZERO);
    let mut rank = |half_lives| {
        policy.progress(JobId(1), 0, Time::from_ns(half_lives * HALF_LIFE_NS));
        policy.rank(JobId(1))
    };
    assert_eq!(
        [0, 1, 3, 40].map(&mut rank),
        [Some(80), Some(40), Some(10), Some(0)]
    );
    policy.arrive(job(2, 5, 1), Time::ZERO);
    assert_eq!(policy.rank(JobId(2)), Some(0));
}
