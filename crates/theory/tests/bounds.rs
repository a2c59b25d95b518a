//! What holds for any sizes at all.

use proptest::prelude::*;
use sooner_theory::mg1::{Mg1, Policy};
use sooner_workload::Distribution;

/// Laws of every shape, and a few sizes at random.
fn any_sizes() -> impl Strategy<Value = Distribution> {
    let parsed = |text: String| text.parse::<Distribution>().unwrap();
    let values = prop::collection::vec(0.1..1e4f64, 1..6);
    prop_oneof![
        (1.0..1e4f64).prop_map(move |c2| parsed(format!("h2:mean=1,c2={c2}"))),
        (0.3..3.0f64).prop_map(move |shape| parsed(format!("weibull:scale=1,shape={shape}"))),
        (0.1..2.5f64).prop_map(move |sigma| parsed(format!("lognormal:mu=0,sigma={sigma}"))),
        (0.5..3.0f64, 1.5..6.0f64).prop_map(move |(alpha, decades)| {
            let p = 10.0_f64.powf(decades);
            parsed(format!("bpareto:k=1,p={p},alpha={alpha}"))
        }),
        values.prop_map(|values| Distribution::of_values(values).unwrap()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Thesis 6.2: no size fares more than three times worse under SRPT than under processor
    /// sharing at load 0.8, 5.5 times at 0.9.
    #[test]
    fn nobody_pays_without_limit(sizes in any_sizes(), share in 0.0..1.0f64) {
        for (load, limit) in [(0.8, 3.0), (0.9, 5.5)] {
            let queue = Mg1::new(&sizes, load).unwrap();
            let size = sizes.quantile(share);
            let ratio = queue.response(Policy::Srpt, size) / queue.response(Policy::Fair, size);
            prop_assert!(ratio <= limit, "{ratio} times at load {load}, size {size}");
        }
    }

    /// Shortest remaining first has the least mean of all, and below load 1/2 no job fares worse
    /// than by sharing (Bansal and Harchol-Balter 2001).
    #[test]
    fn srpt_is_best_in_the_mean(sizes in any_sizes(), load in 0.05..0.95f64) {
        let queue = Mg1::new(&sizes, load).unwrap();
        let best = queue.solve(Policy::Srpt).mean_response;
        for policy in Policy::ALL {
            let other = queue.solve(policy).mean_response;
            prop_assert!(best <= other * (1.0 + 1e-6), "{}: {other} < {best}", policy.name());
        }
        if load <= 0.5 {
            let largest = sizes.quantile(0.9999);
            let ratio = queue.response(Policy::Srpt, largest) / queue.response(Policy::Fair, largest);
            prop_assert!(ratio <= 1.0 + 1e-9, "{ratio}");
        }
    }

    #[test]
    fn a_longer_job_takes_longer(sizes in any_sizes(), load in 0.05..0.95f64, a in 0.0..1.0f64, b in 0.0..1.0f64) {
        let queue = Mg1::new(&sizes, load).unwrap();
        let (small, large) = (sizes.quantile(a.min(b)), sizes.quantile(a.max(b)));
        for policy in Policy::ALL {
            let (first, second) = (queue.response(policy, small), queue.response(policy, large));
            prop_assert!(first <= second * (1.0 + 1e-9), "{}: {first} {second}", policy.name());
            prop_assert!(first >= small * (1.0 - 1e-9), "{}", policy.name());
        }
    }
}
