//! Closed networks against exact values, and against what must hold for all of them.

use proptest::prelude::*;
use sooner_theory::closed::{Station, solve, throughputs, users_for_share};

fn near(found: f64, expected: f64) {
    assert!(
        (found / expected - 1.0).abs() < 1e-6,
        "{found}, expected {expected}"
    );
}

/// Processor sharing with think time: GNU Octave's queueing package.
#[test]
fn one_station_and_think_time() {
    for (users, think, response, throughput) in [
        (10, 5.0, 5.187_289, 0.981_615),
        (100, 100.0, 8.190_035, 0.924_300),
    ] {
        let stations = [
            Station::Queue { demand: 1.0 },
            Station::Delay { time: think },
        ];
        let found = solve(&stations, users).unwrap();
        near(found.mean_response, response);
        near(found.throughput, throughput);
        near(found.mean_jobs.iter().sum(), users as f64);
    }
}

/// Equal queues: throughput n / (n + k - 1) over the demand.
#[test]
fn balanced_queues() {
    let stations = vec![Station::Queue { demand: 0.5 }; 4];
    for (n, throughput) in (1_u32..).zip(throughputs(&stations, 50).unwrap()) {
        let n = f64::from(n);
        near(throughput, n / (n + 3.0) / 0.5);
    }
    // The number of users for a share of the best grows with the number of resources (Figure 9.7).
    let needed = |queues, share| {
        let stations = vec![Station::Queue { demand: 1.0 }; queues];
        users_for_share(&stations, share).unwrap().unwrap()
    };
    assert_eq!(
        [1, 2, 3, 4, 5].map(|queues| needed(queues, 0.8)),
        [1, 4, 8, 12, 16]
    );
    assert_eq!(
        [1, 2, 3, 4, 5].map(|queues| needed(queues, 0.95)),
        [1, 19, 38, 57, 76]
    );
}

/// As many servers as users are a delay; a station twice as fast has half the demand.
#[test]
fn stations_that_are_the_same_give_the_same() {
    let rest = Station::Queue { demand: 1.0 };
    let with = |other: Station| solve(&[rest.clone(), other], 7).unwrap().throughput;
    let delay = with(Station::Delay { time: 3.0 });
    near(
        with(Station::Servers {
            demand: 3.0,
            count: 7,
        }),
        delay,
    );
    let speeds = (1..=7).map(f64::from).collect();
    near(
        with(Station::LoadDependent {
            demand: 3.0,
            speeds,
        }),
        delay,
    );
    let half = with(Station::Queue { demand: 0.5 });
    let speeds = vec![2.0];
    near(
        with(Station::LoadDependent {
            demand: 1.0,
            speeds,
        }),
        half,
    );
}

/// With hardly any work, the response is the work.
#[test]
fn a_short_response_after_long_thought() {
    let stations = [
        Station::Queue { demand: 1e-3 },
        Station::Delay { time: 1e6 },
    ];
    near(solve(&stations, 100).unwrap().mean_response, 1e-3);
}

#[test]
fn what_cannot_be_is_said() {
    let error = |stations: &[Station], users| solve(stations, users).unwrap_err().to_string();
    let queue = [Station::Queue { demand: 1.0 }];
    assert!(error(&queue, 0).contains("1 to 5000"));
    assert!(error(&[Station::Queue { demand: -1.0 }], 1).contains("0 or above"));
    assert!(error(&[Station::Queue { demand: 0.0 }], 1).contains("no station has a demand"));
    assert!(error(&[], 1).contains("no station has a demand"));
    let speeds = vec![2.0, 1.0];
    assert!(
        error(
            &[Station::LoadDependent {
                demand: 1.0,
                speeds
            }],
            1
        )
        .contains("none less")
    );
    let thinking = users_for_share(&[Station::Delay { time: 1.0 }], 0.5);
    assert!(
        thinking
            .unwrap_err()
            .to_string()
            .contains("no highest throughput")
    );
}

proptest! {
    #[test]
    fn more_users_never_do_less_and_nobody_is_lost(demands in prop::collection::vec(0.01..10.0f64, 1..5), think in 0.0..50.0f64, users in 1usize..60) {
        let mut stations: Vec<Station> = demands.iter().map(|&demand| Station::Queue { demand }).collect();
        stations.push(Station::Delay { time: think });
        let found = throughputs(&stations, users).unwrap();
        prop_assert!(found.windows(2).all(|pair| pair[1] >= pair[0] * (1.0 - 1e-9)));
        let largest = demands.iter().copied().fold(0.0, f64::max);
        let total: f64 = demands.iter().sum();
        let bound = (1.0 / largest).min(users as f64 / (total + think));
        prop_assert!(found[users - 1] <= bound * (1.0 + 1e-9));
        let solved = solve(&stations, users).unwrap();
        let jobs: f64 = solved.mean_jobs.iter().sum();
        prop_assert!((jobs / users as f64 - 1.0).abs() < 1e-6);
        // Little's law over the whole round.
        let round = solved.mean_response + think;
        prop_assert!((solved.throughput * round / users as f64 - 1.0).abs() < 1e-6);
    }
}
