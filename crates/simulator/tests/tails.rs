//! The far tail of response times: first come, first served against its decay rate, and boosts
//! against first come, first served.

use sooner_simulator::replicate::Simulated;
use sooner_simulator::system::Options;
use sooner_simulator::{Effort, System, TICKS_PER_MEAN, simulate};
use sooner_theory::tail::decay_rate;
use sooner_workload::model::{Arrivals, Users};
use sooner_workload::{Distribution, Schedule};

const LOAD: f64 = 0.8;
/// Exponential; nearly all equal; two kinds.
const LAWS: [&str; 3] = ["exp:mean=1", "weibull:scale=1,shape=4", "h2:mean=1,c2=2"];

fn run(sizes: &str, policy: &str) -> Simulated {
    let users = Users::Open {
        schedule: Schedule::constant(LOAD).expect("a load"),
        arrivals: Arrivals::Poisson,
    };
    let sizes = sizes.parse().expect("a law");
    let policy = policy.parse().expect("a policy");
    let system = System::new(sizes, users, policy, Options::default());
    let effort = Effort {
        jobs: 2_000_000,
        replications: 20,
        seed: 1,
        threads: 2,
        by_size: false,
    };
    simulate(&system.expect("a system"), &effort, &|_| {}).expect("a run")
}

/// In mean sizes.
fn quantile(simulated: &Simulated, share: f64) -> f64 {
    simulated.tally.all().quantile(share).expect("jobs") / TICKS_PER_MEAN
}

/// How fast the tail falls between one job in a hundred and one in 10^4.
fn decay(simulated: &Simulated) -> f64 {
    let (far, near) = (quantile(simulated, 0.9999), quantile(simulated, 0.99));
    100_f64.ln() / (far - near)
}

#[test]
fn the_tail_of_first_come_falls_at_the_rate_of_the_formula() {
    for text in LAWS {
        let law: Distribution = text.parse().expect("a law");
        let gamma = decay_rate(&law, LOAD).expect("a load").expect("light");
        // Per mean size.
        let exact = gamma * law.mean();
        let found = decay(&run(text, "fcfs"));
        println!("{text}: {found}, exact {exact}");
        assert!(
            (found / exact - 1.0).abs() < 0.08,
            "{text}: {found} {exact}"
        );
    }
}

#[test]
fn boosts_have_the_smaller_tail_at_the_same_rate() {
    for text in LAWS {
        let (fcfs, boost, sjf) = (run(text, "fcfs"), run(text, "boost"), run(text, "sjf"));
        println!(
            "{text}: {} {} {}, {} {}",
            quantile(&fcfs, 0.9999),
            quantile(&boost, 0.9999),
            quantile(&sjf, 0.9999),
            decay(&fcfs),
            decay(&boost)
        );
        for share in [0.5, 0.9, 0.99, 0.999] {
            let (one, other) = (quantile(&boost, share), quantile(&fcfs, share));
            assert!(one <= 1.01 * other, "{text} {share}: {one} {other}");
        }
        assert!(
            quantile(&boost, 0.9999) <= 1.03 * quantile(&fcfs, 0.9999),
            "{text}"
        );
        assert!((decay(&boost) / decay(&fcfs) - 1.0).abs() < 0.1, "{text}");
        // What is best for the mean is not for the tail, where sizes have a light one.
        assert!(quantile(&boost, 0.9999) < quantile(&sjf, 0.9999), "{text}");
    }
}
