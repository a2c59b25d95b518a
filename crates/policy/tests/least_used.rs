//! Who used most lately waits.

mod turns;

use proptest::prelude::*;
use sooner_policy::order::{Fcfs, Srpt};
use sooner_policy::{
    Arrival, ClientId, Guard, GuardLimits, JobId, LeastUsed, NETWORK_PART, Order, Payer, Scheduler,
    Time,
};

const HALF_LIFE_NS: u64 = 1_000_000;

fn job(id: u64, client: u64, size: u64) -> Arrival {
    Arrival {
        id: JobId(id),
        class: 0,
        size: Some(size),
        trickle: 0,
        client: None,
        payer: Some(Payer {
            client: ClientId(client),
            network: None,
        }),
    }
}

fn in_network(job: Arrival, network: u64) -> Arrival {
    let network = Some(ClientId(network));
    let payer = job.payer.map(|payer| Payer { network, ..payer });
    Arrival { payer, ..job }
}

/// Serves all jobs to their ends, one after the other; their clients in that order, as letters.
fn served<O: Order + Clone>(policy: &mut LeastUsed<O>, jobs: &[Arrival], now: Time) -> String {
    jobs.iter().for_each(|job| policy.arrive(*job, now));
    let mut order = String::new();
    while let Some(grant) = policy.next(now) {
        let job = jobs.iter().find(|job| job.id == grant.job).unwrap();
        let client = job.payer.unwrap().client.0;
        order.push(char::from(b'A' + u8::try_from(client).unwrap()));
        policy.progress(grant.job, job.size.unwrap_or(1), now);
        policy.depart(grant.job, now);
    }
    order
}

#[test]
fn clients_take_turns_however_many_jobs_they_have() {
    let mut policy = LeastUsed::new(Fcfs, HALF_LIFE_NS);
    let jobs: Vec<Arrival> = [0, 0, 0, 0, 0, 1, 1, 2]
        .into_iter()
        .zip(0..)
        .map(|(client, id)| job(id, client, 10))
        .collect();
    assert_eq!(served(&mut policy, &jobs, Time::ZERO), "ABCABAAA");
}

#[test]
fn what_was_had_long_ago_counts_for_little() {
    let mut policy = LeastUsed::new(Fcfs, HALF_LIFE_NS);
    // A has 100, B 10 and C nothing: after some half-lives A counts as less than B anew.
    let now = Time::from_ns(5);
    assert_eq!(
        served(&mut policy, &[job(1, 0, 100), job(2, 1, 10)], now),
        "AB"
    );
    let both = [job(3, 0, 1), job(4, 1, 1), job(5, 2, 1)];
    assert_eq!(served(&mut policy, &both, now), "CBA");
    let later = now.after(10 * HALF_LIFE_NS);
    assert_eq!(served(&mut policy, &[job(6, 1, 10)], later), "B");
    assert_eq!(served(&mut policy, &both, later), "CAB");
}

#[test]
fn of_equals_goes_who_came_first() {
    let mut policy = LeastUsed::new(Fcfs, HALF_LIFE_NS);
    let jobs = [(1, 7), (2, 3), (3, 7), (4, 9), (5, 0)].map(|(id, client)| job(id, client, 10));
    assert_eq!(served(&mut policy, &jobs, Time::ZERO), "HDJAH");
}

#[test]
fn a_class_goes_first_and_a_clients_own_jobs_go_in_order() {
    let mut policy = LeastUsed::new(Srpt, HALF_LIFE_NS);
    let in_class = |class, arrival| Arrival { class, ..arrival };
    let jobs = [
        in_class(1, job(1, 0, 5)),
        in_class(0, job(2, 1, 50)),
        in_class(0, job(3, 1, 20)),
        in_class(1, job(4, 1, 1)),
    ];
    jobs.iter().for_each(|job| policy.arrive(*job, Time::ZERO));
    let mut order = String::new();
    while let Some(grant) = policy.next(Time::ZERO) {
        order += &grant.job.0.to_string();
        let size = jobs.iter().find(|job| job.id == grant.job).unwrap().size;
        policy.progress(grant.job, size.unwrap(), Time::ZERO);
        policy.depart(grant.job, Time::ZERO);
    }
    assert_eq!(order, "3214");
}

#[test]
fn what_a_job_took_in_truth_is_charged() {
    let mut policy = LeastUsed::new(Fcfs, HALF_LIFE_NS);
    let now = Time::ZERO;
    let (liar, other) = (job(1, 0, 1), job(2, 1, 100));
    assert_eq!(served(&mut policy, &[liar, other], now), "AB");
    policy.settle(&liar, 1000, now);
    policy.settle(&other, 90, now);
    assert_eq!(
        served(&mut policy, &[job(3, 0, 1), job(4, 1, 1)], now),
        "BA"
    );
    policy.settle(&job(3, 0, 1_000_000), 0, now);
    assert_eq!(
        served(&mut policy, &[job(5, 0, 1), job(6, 1, 1)], now),
        "AB"
    );
}

#[test]
fn clients_without_a_network_are_not_neighbours() {
    let mut policy = LeastUsed::new(Fcfs, HALF_LIFE_NS);
    let now = Time::ZERO;
    let first: Vec<Arrival> = (0..25)
        .map(|client| job(client, client, 100 - client))
        .collect();
    served(&mut policy, &first, now);
    let second: Vec<Arrival> = (0..25).map(|client| job(100 + client, client, 1)).collect();
    assert_eq!(
        served(&mut policy, &second, now),
        "YXWVUTSRQPONMLKJIHGFEDCBA"
    );
}

#[test]
fn many_addresses_of_one_network_count_as_a_few() {
    let mut policy = LeastUsed::new(Fcfs, HALF_LIFE_NS);
    let now = Time::ZERO;
    // Each job of network 900 is from an address of its own; client 1 has 100 in its own network.
    let from = |network, job: Arrival| in_network(job, network);
    let mut order = String::new();
    let waits = from(901, job(0, 1, 100));
    policy.arrive(waits, now);
    policy.progress(JobId(0), 100, now);
    for id in 1..100 {
        let attacker = from(900, job(id, 1000 + id, 100));
        policy.arrive(attacker, now);
        let next = policy.next(now).unwrap().job;
        order.push(if next == JobId(0) { 'A' } else { 'x' });
        if next != JobId(0) {
            policy.progress(next, 100, now);
            policy.depart(next, now);
        } else {
            break;
        }
    }
    // After so many a sixteenth of theirs is as much as A had, and A came first.
    assert_eq!(order.len(), NETWORK_PART as usize + 1, "{order}");
    assert!(order.ends_with('A'));
}

proptest! {
    /// With equal jobs that all wait, no client is more than one job ahead of another.
    #[test]
    fn clients_have_the_same(counts in prop::collection::vec(1..20_usize, 1..6), size in 1..1000_u64) {
        let mut policy = LeastUsed::new(Srpt, HALF_LIFE_NS);
        let clients = (0..).zip(&counts).flat_map(|(client, &count)| vec![client; count]);
        let jobs: Vec<Arrival> = clients.zip(0..).map(|(client, id)| job(id, client, size)).collect();
        let order = served(&mut policy, &jobs, Time::ZERO);
        prop_assert_eq!(order.len(), jobs.len());
        let mut had = vec![0; counts.len()];
        for letter in order.bytes() {
            let client = usize::from(letter - b'A');
            let others = had.iter().zip(&counts).filter(|(had, count)| had < count);
            let least = others.map(|(had, _)| *had).min().unwrap();
            prop_assert!(had[client] == least);
            had[client] += 1;
        }
    }

    /// Whatever is done to it, it serves who can be served, and the guard's oldest gets its share.
    #[test]
    fn it_never_loses_a_job(steps in prop::collection::vec((0..7_u8, 0..8_u64, 0..4_u64, 1..2000_u64), 0..200)) {
        let limits = GuardLimits { silence_ns_max: u64::MAX, ..GuardLimits::with_turn(100) };
        let mut policy = Guard::new(LeastUsed::new(Srpt, HALF_LIFE_NS), limits);
        let mut now = Time::ZERO;
        let mut present = std::collections::BTreeMap::new();
        for (what, id, client, amount) in steps {
            let arrival = in_network(job(id, client, amount), client / 2);
            let arrival = Arrival { class: (id % 3) as u8, ..arrival };
            match what {
                0 | 1 => {
                    policy.arrive(arrival, now);
                    present.entry(id).or_insert(true);
                }
                2 => {
                    policy.depart(JobId(id), now);
                    present.remove(&id);
                }
                3 => {
                    policy.block(JobId(id), now);
                    present.entry(id).and_modify(|ready| *ready = false);
                }
                4 => {
                    policy.unblock(JobId(id), now);
                    present.entry(id).and_modify(|ready| *ready = true);
                }
                5 => policy.reclassify(JobId(id), client as u8, now),
                _ => {
                    now = now.after(amount * HALF_LIFE_NS / 50);
                    policy.settle(&arrival, amount * 3, now);
                }
            }
            let next = policy.next(now);
            prop_assert_eq!(next.is_some(), present.values().any(|ready| *ready));
            if let Some(grant) = next {
                prop_assert_eq!(present.get(&grant.job.0), Some(&true));
                policy.progress(grant.job, grant.max_amount.min(amount), now);
            }
        }
    }
}
