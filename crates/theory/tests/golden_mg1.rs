//! M/G/1 against values that other programs and other ways of computing agree on.

use sooner_theory::mg1::{Mg1, Policy};
use sooner_workload::Distribution;

fn queue(sizes: &str, load: f64) -> (Mg1, Distribution) {
    let sizes: Distribution = sizes.parse().unwrap();
    (Mg1::new(&sizes, load).unwrap(), sizes)
}

fn near(found: f64, expected: f64, what: &str) {
    assert!(
        (found / expected - 1.0).abs() < 1e-4,
        "{what}: {found}, expected {expected}"
    );
}

/// Mean response times at load 0.8 and mean size 1: fcfs, sjf, fair, srpt, psjf, las.
#[test]
fn mean_response_times_by_variability() {
    for (sizes, expected) in [
        ("exp:mean=1", [5.0, 2.8822, 5.0, 2.352_773, 2.658_897, 5.0]),
        (
            "h2:mean=1,c2=4",
            [11.0, 4.349_172, 5.0, 2.190_947, 2.423_688, 3.762_321],
        ),
        (
            "h2:mean=1,c2=16",
            [35.0, 10.546_881, 5.0, 2.140_808, 2.344_940, 3.440_155],
        ),
        (
            "h2:mean=1,c2=50",
            [103.0, 28.170_924, 5.0, 2.128_708, 2.325_013, 3.367_491],
        ),
    ] {
        let (queue, _) = queue(sizes, 0.8);
        let policies = [
            Policy::Fcfs,
            Policy::Sjf,
            Policy::Fair,
            Policy::Srpt,
            Policy::Psjf,
            Policy::Las,
        ];
        for (policy, expected) in policies.into_iter().zip(expected) {
            let found = queue.solve(policy).mean_response;
            near(found, expected, &format!("{sizes}, {}", policy.name()));
        }
    }
}

/// Bounded Pareto(1, 1e6, 1.1): E[T]/E[S] and mean slowdown.
#[test]
fn a_heavy_tail() {
    for (load, policy, response, slowdown) in [
        (0.5, Policy::Srpt, 1.3895, 1.0783),
        (0.5, Policy::Psjf, 1.4213, 1.0797),
        (0.5, Policy::Las, 1.5267, 1.1834),
        (0.8, Policy::Srpt, 2.0354, 1.1376),
        (0.8, Policy::Psjf, 2.1336, 1.1402),
        (0.8, Policy::Las, 2.5011, 1.3344),
        (0.8, Policy::Fair, 5.0, 5.0),
        (0.8, Policy::Fcfs, 9051.0, 39048.0),
        (0.9, Policy::Srpt, 2.6262, 1.1605),
        (0.9, Policy::Las, 3.5423, 1.3956),
    ] {
        let (queue, _) = queue("bpareto:k=1,p=1e6,alpha=1.1", load);
        let found = queue.solve(policy);
        let what = format!("{} at {load}", policy.name());
        near(found.mean_response / queue.mean_size(), response, &what);
        near(found.mean_slowdown, slowdown, &what);
    }
}

/// Equal sizes are served in the order in which they came by all that look at sizes: M/D/1.
#[test]
fn equal_sizes() {
    let (queue, _) = queue("det:mean=1", 0.8);
    for policy in [Policy::Fcfs, Policy::Sjf, Policy::Srpt, Policy::Psjf] {
        near(queue.response(policy, 1.0), 3.0, policy.name());
        near(queue.solve(policy).mean_response, 3.0, policy.name());
    }
    near(queue.solve(Policy::Las).mean_response, 15.0, "las");
}

/// A law cut into very many atoms is the law.
#[test]
fn atoms_are_the_limit_of_a_law() {
    let (smooth, sizes) = queue("lognormal:mu=0,sigma=1", 0.8);
    let count = 200_000;
    let values = (0..count).map(|i| sizes.quantile((f64::from(i) + 0.5) / f64::from(count)));
    let atoms = Distribution::of_values(values.collect()).unwrap();
    let atoms = Mg1::new(&atoms, 0.8).unwrap();
    for policy in Policy::ALL {
        let (found, expected) = (atoms.solve(policy), smooth.solve(policy));
        let close =
            |a: f64, b: f64| assert!((a / b - 1.0).abs() < 2e-3, "{}: {a} {b}", policy.name());
        close(found.mean_response, expected.mean_response);
        close(found.mean_slowdown, expected.mean_slowdown);
    }
}

/// Tails without a second moment, and sizes down to what a float cannot tell from 0, leave every
/// figure finite that is.
#[test]
fn extreme_laws_have_finite_figures() {
    let mut laws: Vec<String> = (105..=200)
        .step_by(2)
        .map(|alpha| format!("pareto:k=1,alpha={}", f64::from(alpha) / 100.0))
        .collect();
    laws.extend(
        [
            "weibull:scale=1.46,shape=0.382",
            "lognormal:mu=0,sigma=9",
            "surge",
        ]
        .map(String::from),
    );
    for law in laws {
        let (queue, _) = queue(&law, 0.8);
        let means = [Policy::Srpt, Policy::Psjf, Policy::Fair].map(|policy| queue.solve(policy));
        let [srpt, psjf, fair] = means.each_ref().map(|one| one.mean_response);
        assert!(
            srpt <= psjf && psjf <= fair * (1.0 + 1e-6),
            "{law}: {means:?}"
        );
        near(fair, 5.0 * queue.mean_size(), &law);
        assert!(
            means.iter().all(|one| one.mean_slowdown.is_finite()),
            "{law}: {means:?}"
        );
        let las = queue.solve(Policy::Las);
        assert!(
            las.mean_response.is_finite() && las.mean_slowdown.is_finite(),
            "{law}: {las:?}"
        );
    }
}

/// Jobs without any work, as traces have them.
#[test]
fn sizes_of_zero() {
    let sizes = Distribution::of_values(vec![0.0, 1.0, 3.0]).unwrap();
    let queue = Mg1::new(&sizes, 0.6).unwrap();
    assert_eq!(queue.response(Policy::Srpt, 0.0), 0.0);
    let slowdown = |policy| queue.solve(policy).mean_slowdown;
    near(slowdown(Policy::Fair), 2.5, "fair");
    assert!(slowdown(Policy::Srpt) < 2.5 && slowdown(Policy::Las) < 5.0);
    assert_eq!(slowdown(Policy::Fcfs), f64::INFINITY);
}

/// Where the second moment is infinite, the jobs that wait for others wait without end, and the
/// others do not.
#[test]
fn what_does_not_exist_is_infinite() {
    let (queue, _) = queue("pareto:k=1,alpha=1.5", 0.8);
    assert_eq!(queue.solve(Policy::Fcfs).mean_response, f64::INFINITY);
    assert_eq!(queue.solve(Policy::Sjf).mean_slowdown, f64::INFINITY);
    assert!(queue.solve(Policy::Srpt).mean_response < 3.0 * 3.0);
    let (queue, _) = self::queue("exp:mean=1", 0.5);
    assert_eq!(queue.solve(Policy::Fcfs).mean_slowdown, f64::INFINITY);
}

/// The bounded Pareto law between k and 1e10 with this tail index and mean 3000 (Crovella et al.
/// 1999, section 6.1).
fn heavy(alpha: f64) -> String {
    let (mut low, mut high) = (1e-3_f64, 3000.0_f64);
    for _ in 0..200 {
        let k = (low * high).sqrt();
        let law: Distribution = format!("bpareto:k={k},p=1e10,alpha={alpha}")
            .parse()
            .unwrap();
        if law.mean() < 3000.0 {
            low = k
        } else {
            high = k
        }
    }
    format!("bpareto:k={low},p=1e10,alpha={alpha}")
}

/// Figures 7 and 8 of the same paper, load 0.9: who pays under SRPT. Up to the 99th percentile no
/// job does with a heavy tail; beyond it, where their grid seems to end, the very largest does.
#[test]
fn who_pays_under_srpt() {
    let (queue, sizes) = queue(&heavy(1.1), 0.9);
    let slowdowns = |queue: &Mg1, sizes: &Distribution, shares: &[f64]| -> Vec<f64> {
        let of_size = queue.by_share(Policy::Srpt, sizes, shares);
        of_size.iter().map(|one| one.mean_slowdown).collect()
    };
    let found = slowdowns(&queue, &sizes, &[0.99, 0.999, 1.0 - 1e-15]);
    for (found, expected) in found.iter().zip([1.62, 2.08, 9.5]) {
        assert!(
            (found / expected - 1.0).abs() < 5e-3,
            "{found}, expected {expected}"
        );
    }
    let (queue, sizes) = self::queue("exp:mean=3000", 0.9);
    let found = slowdowns(&queue, &sizes, &[0.99]);
    // Under sharing every job has 10: the largest 1 % of an exponential law fare worse than that.
    assert!(found[0] > 10.0, "{found:?}");
}
