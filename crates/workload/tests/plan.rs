//! Properties of planned arrivals on the traces that ship: the load is exact, the order and the
//! sizes are the trace's.

use proptest::prelude::*;
use sooner_workload::wire::WireModel;
use sooner_workload::{
    Arrival, Plan, PlanError, PlanOptions, Process, Rate, Trace, VisitLength, Visits, plan,
};
use std::num::NonZeroU32;
use std::sync::LazyLock;

static EPA: LazyLock<Trace> = LazyLock::new(|| Trace::embedded("epa").expect("epa is built in"));
static NASA: LazyLock<Trace> = LazyLock::new(|| Trace::embedded("nasa").expect("nasa is built in"));

fn options(schedule: &str, duration_s: f64, rate: &str, seed: u64) -> PlanOptions {
    PlanOptions {
        schedule: schedule.parse().expect("a schedule"),
        duration_s,
        rate: rate.parse().expect("a rate"),
        seed,
        process: Process::Poisson,
        wire: WireModel::default(),
        head_bytes: 250,
        requests_per_connection: NonZeroU32::MIN,
        clients: NonZeroU32::MIN,
        visits: None,
        crowd: None,
    }
}

/// Load of the arrivals in each phase, from the arrivals alone.
fn loads(plan: &Plan, rate: Rate) -> Vec<f64> {
    let in_phase = |arrival: &&Arrival, from_s: f64, to_s: f64| {
        let at_s = arrival.at_ns as f64 / 1e9;
        (from_s..to_s).contains(&at_s)
    };
    let load = |from_s: f64, duration_s: f64| {
        let arrivals = plan
            .arrivals
            .iter()
            .filter(|arrival| in_phase(arrival, from_s, from_s + duration_s));
        let work_bytes: u64 = arrivals.map(|arrival| arrival.work_bytes).sum();
        work_bytes as f64 / (rate.bytes_per_sec() * duration_s)
    };
    plan.phases
        .iter()
        .map(|phase| load(phase.start_s, phase.duration_s))
        .collect()
}

fn any_options() -> impl Strategy<Value = PlanOptions> {
    let schedule = prop_oneof![
        (0.05..2.0f64).prop_map(|load| format!("{load}")),
        (0.1..0.6f64, 0.7..1.8f64, 2.0..30.0f64, 2.0..30.0f64)
            .prop_map(|(low, high, low_s, high_s)| format!("{low},{high},{low_s},{high_s}")),
    ];
    let process = prop_oneof![Just(Process::Poisson), Just(Process::Trace)];
    let rate = prop_oneof![
        Just("4mbit"),
        Just("10mbit"),
        Just("37.5mbit"),
        Just("100mbit")
    ];
    let wire =
        (any::<bool>(), any::<bool>(), 0..6000u64).prop_map(|(tls, http2, opening_bytes)| {
            WireModel {
                segment_bytes: if tls { 524 } else { 1448 },
                tls,
                http2,
                opening_bytes,
            }
        });
    (
        schedule,
        3.0..90.0f64,
        rate,
        any::<u64>(),
        process,
        (wire, 0..500u64),
        1..60u32,
    )
        .prop_map(
            |(schedule, duration_s, rate, seed, process, (wire, head_bytes), per_connection)| {
                PlanOptions {
                    process,
                    wire,
                    head_bytes,
                    requests_per_connection: NonZeroU32::new(per_connection).expect("above 0"),
                    ..options(&schedule, duration_s, rate, seed)
                }
            },
        )
}

proptest! {
    // Failures are reproduced from the seed that is printed.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_load_of_every_phase_is_as_asked(options in any_options(), nasa in any::<bool>()) {
        let trace: &Trace = if nasa { &NASA } else { &EPA };
        let plan = plan(trace, &options).expect("a plan");
        for (phase, load) in plan.phases.iter().zip(loads(&plan, options.rate)) {
            prop_assert!((load / phase.asked_load - 1.0).abs() <= 0.01, "{load} for {}", phase.asked_load);
            prop_assert!((load / phase.offered_load - 1.0).abs() < 1e-6);
        }
        prop_assert!(plan.arrivals.is_sorted_by_key(|arrival| arrival.at_ns));
        prop_assert!(plan.arrivals.iter().all(|arrival| (arrival.at_ns as f64) < options.duration_s * 1e9));
    }

    #[test]
    fn even_a_few_kilobytes_of_work_are_met(bits_per_sec in 16_000..400_000u64, seed in any::<u64>(), nasa in any::<bool>()) {
        let trace: &Trace = if nasa { &NASA } else { &EPA };
        let options = options("1", 1.0, &format!("{bits_per_sec}bit"), seed);
        let plan = plan(trace, &options).expect("a plan");
        prop_assert!((plan.offered_load - 1.0).abs() <= 0.01);
    }

    #[test]
    fn visits_keep_the_load_and_their_connections(
        options in any_options(),
        stay in 0.0..0.98f64,
        exact in prop::option::of(1..60u32),
        think_s in 0.0..10.0f64,
    ) {
        let length = match exact {
            Some(count) => VisitLength::Exactly(NonZeroU32::new(count).expect("above 0")),
            None => VisitLength::Stay(stay),
        };
        let options = PlanOptions { visits: Some(Visits { length, think_s }), ..options };
        // A phase of few requests may have none that fit when each opens connections of its own.
        let Ok(plan) = plan(&EPA, &options) else { return Ok(()) };
        for (phase, load) in plan.phases.iter().zip(loads(&plan, options.rate)) {
            prop_assert!((load / phase.asked_load - 1.0).abs() <= 0.01, "{load} for {}", phase.asked_load);
        }
        prop_assert!(plan.arrivals.is_sorted_by_key(|arrival| arrival.at_ns));
        let begins = plan.arrivals.iter().filter(|arrival| arrival.think_ns.is_none()).count() as u64;
        prop_assert_eq!(begins, plan.phases.iter().map(|phase| phase.visits).sum::<u64>());
        let (mut place, most) = (0, options.requests_per_connection.get());
        for arrival in &plan.arrivals {
            place = if arrival.think_ns.is_none() { 0 } else { place + 1 };
            prop_assert_eq!(arrival.new_connection, place % most == 0);
            prop_assert!(exact.is_none_or(|count| place < count));
        }
    }

    #[test]
    fn one_request_in_k_counts_a_connection(options in any_options()) {
        let plan = plan(&EPA, &options).expect("a plan");
        let most = options.requests_per_connection.get() as usize;
        let mut rest = &plan.arrivals[..];
        for phase in &plan.phases {
            let (arrivals, later) = rest.split_at(phase.requests as usize);
            for (nth, arrival) in arrivals.iter().enumerate() {
                prop_assert_eq!(arrival.new_connection, nth % most == 0);
                prop_assert_eq!(arrival.work_bytes, options.wire.work_bytes(arrival.size_bytes, options.head_bytes, arrival.new_connection));
            }
            rest = later;
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_plan_and_another_seed_another() {
    let first = plan(&EPA, &options("0.9", 35.0, "10mbit", 1)).expect("a plan");
    assert_eq!(
        first,
        plan(&EPA, &options("0.9", 35.0, "10mbit", 1)).expect("a plan")
    );
    assert_ne!(
        first,
        plan(&EPA, &options("0.9", 35.0, "10mbit", 2)).expect("a plan")
    );
}

#[test]
fn source_addresses_get_equal_shares_and_change_nothing_else() {
    let one = options("0.9", 120.0, "10mbit", 1);
    let four = PlanOptions {
        clients: NonZeroU32::new(4).expect("above 0"),
        ..one.clone()
    };
    let (one, four) = (
        plan(&EPA, &one).expect("a plan"),
        plan(&EPA, &four).expect("a plan"),
    );
    let mut counts = [0.0; 4];
    for (alone, shared) in one.arrivals.iter().zip(&four.arrivals) {
        assert_eq!(
            *alone,
            Arrival {
                client: 0,
                ..*shared
            }
        );
        counts[shared.client as usize] += 1.0;
    }
    let share = four.arrivals.len() as f64 / 4.0;
    // Binomial: four standard deviations.
    let near = |count: f64| (count - share).abs() < 4.0 * (share * 0.75).sqrt();
    assert!(counts.into_iter().all(near), "{counts:?}");
}

#[test]
fn visits_ask_in_the_order_of_the_trace_at_the_rate_of_their_beginnings() {
    let visits = |count| Visits {
        length: VisitLength::Exactly(NonZeroU32::new(count).expect("above 0")),
        think_s: 1.5,
    };
    let plan_of = |count| {
        let options = PlanOptions {
            visits: Some(visits(count)),
            ..options("0.9", 120.0, "10mbit", 1)
        };
        plan(&EPA, &options).expect("a plan")
    };
    let (single, five) = (plan_of(1), plan_of(5));
    assert!(
        single
            .arrivals
            .iter()
            .all(|arrival| arrival.think_ns.is_none())
    );
    let places: Vec<bool> = five
        .arrivals
        .iter()
        .map(|arrival| arrival.think_ns.is_none())
        .collect();
    assert!(
        places
            .chunks(5)
            .all(|visit| visit[0] && !visit[1..].contains(&true))
    );
    let thoughts: Vec<u64> = five
        .arrivals
        .iter()
        .filter_map(|arrival| arrival.think_ns)
        .collect();
    let mean_s = thoughts.iter().sum::<u64>() as f64 / thoughts.len() as f64 / 1e9;
    assert!((mean_s - 1.5).abs() < 0.15, "{mean_s}");
}

#[test]
fn a_phase_holds_consecutive_requests_of_the_trace() {
    let plan = plan(&EPA, &options("0.2,1.2,10,10", 40.0, "10mbit", 7)).expect("a plan");
    let objects: Vec<u32> = EPA
        .requests
        .iter()
        .chain(&EPA.requests)
        .map(|request| request.object)
        .collect();
    let mut first = 0;
    for phase in &plan.phases {
        let end = first + phase.requests as usize;
        let chosen: Vec<u32> = plan.arrivals[first..end]
            .iter()
            .map(|arrival| arrival.object)
            .collect();
        assert!(objects.windows(chosen.len()).any(|window| window == chosen));
        first = end;
    }
    assert_eq!(first, plan.arrivals.len());
}

/// Mean size and C² of sizes.
fn moments(sizes: impl Iterator<Item = u64>) -> (f64, f64) {
    let (count, sum, squares) = sizes.fold((0.0, 0.0, 0.0), |(count, sum, squares), bytes| {
        let bytes = bytes as f64;
        (count + 1.0, sum + bytes, squares + bytes * bytes)
    });
    (sum / count, squares * count / (sum * sum) - 1.0)
}

/// The figures that the module header of `arrivals` states.
#[test]
fn sizes_are_nearly_those_of_the_trace() {
    for (trace, schedule, duration_s, least_mean, least_c2) in [
        (&EPA, "0.9", 35.0, 0.97, 0.97),
        (&EPA, "0.8", 120.0, 0.99, 0.99),
        (&EPA, "0.2,1.2,10,10", 40.0, 0.94, 0.92),
        (&NASA, "0.9", 35.0, 0.98, 0.97),
    ] {
        let plans: Vec<Plan> = (0..300)
            .map(|seed| {
                plan(trace, &options(schedule, duration_s, "10mbit", seed)).expect("a plan")
            })
            .collect();
        let planned = moments(
            plans
                .iter()
                .flat_map(|plan| &plan.arrivals)
                .map(|arrival| arrival.size_bytes),
        );
        let traced = moments(
            trace
                .requests
                .iter()
                .map(|request| trace.object_of(request).size_bytes),
        );
        let (mean, c2) = (planned.0 / traced.0, planned.1 / traced.1);
        assert!(
            (least_mean..1.02).contains(&mean),
            "{} {schedule}: mean size {mean} of the trace's",
            trace.name
        );
        assert!(
            (least_c2..1.03).contains(&c2),
            "{} {schedule}: C² {c2} of the trace's",
            trace.name
        );
    }
}

#[test]
fn a_phase_too_small_for_the_trace_is_refused() {
    let error = plan(&EPA, &options("0.01", 1.0, "1kbit", 0)).expect_err("one byte of work");
    assert!(
        matches!(
            error,
            PlanError::NoFit {
                target_bytes: 1,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("make the phase longer"));
}

#[test]
fn durations_and_amounts_out_of_range_are_refused() {
    for duration_s in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        assert!(matches!(
            plan(&EPA, &options("0.5", duration_s, "1mbit", 0)),
            Err(PlanError::Duration(_))
        ));
    }
    assert!(matches!(
        plan(&EPA, &options("0.9", 86_400.0, "100gbit", 0)),
        Err(PlanError::TooMany(_))
    ));
    // So many phases are not even counted.
    assert_eq!(
        plan(&EPA, &options("0.5,1.5,1e-9,1e-9", 35.0, "1mbit", 0)),
        Err(PlanError::Phase(1e-9))
    );
}
