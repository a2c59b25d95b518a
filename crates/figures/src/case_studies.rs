//! The two case studies of the thesis that are simulated (Figure 14.1, rows three and four), by
//! laws with the published moments.
//!
//! The auction site's requests have mean 0.09 s and C² 9.19, the Pittsburgh C90's jobs mean 4562.6
//! s and C² 43.16; both are taken to be lognormal, and times are in means. Jobs of the
//! supercomputer are not interrupted. Logs of other supercomputers can take the place of its law
//! ([`of_log`]).

use crate::runs::{closed, closed_at, curve, mean, open, partly_open, responses, run};
use crate::{Drawn, Effort, Finding};
use anyhow::Result;
use sooner_report::curves::Curve;
use sooner_simulator::Policy;
use sooner_workload::Distribution;

/// Users of the closed systems, as in the thesis.
const USERS: u32 = 50;
const LOADS: [f64; 6] = [0.3, 0.5, 0.7, 0.8, 0.9, 0.95];
const VISITS: [f64; 6] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0];

struct Case {
    name: &'static str,
    c2: f64,
    /// The best first.
    policies: &'static [Policy],
}

const CASES: [Case; 2] = [
    Case {
        name: "Auction site",
        c2: 9.19,
        policies: &[Policy::SRPT, Policy::FAIR, Policy::FCFS],
    },
    Case {
        name: "Supercomputer",
        c2: 43.16,
        policies: &[Policy::Sjf, Policy::FCFS, Policy::Ljf],
    },
];

/// A lognormal law of mean 1.
fn lognormal(c2: f64) -> Result<Distribution> {
    let variance = (1.0 + c2).ln();
    Ok(format!("lognormal:mu={},sigma={}", -variance / 2.0, variance.sqrt()).parse()?)
}

/// Closed, open and partly-open, side by side.
pub fn draw(effort: &Effort) -> Result<Drawn> {
    let mut drawn = Drawn {
        figures: Vec::new(),
        findings: Vec::new(),
    };
    for case in &CASES {
        study(case, case.name, &lognormal(case.c2)?, effort, &mut drawn)?;
    }
    // No user thinks: whatever the order, the server is never idle, and the mean follows from the
    // users.
    let idle = run(&lognormal(9.19)?, closed(USERS, 0.0)?, Policy::FCFS, effort)?;
    drawn.findings.push(Finding {
        of: "Auction site",
        claim: "without think time a closed system's mean response time is its users times the mean size",
        holds: (mean(&idle) / f64::from(USERS) - 1.0).abs() < 0.05,
        evidence: format!("{:.1} of {USERS}", mean(&idle)),
    });
    Ok(drawn)
}

/// The supercomputer's row once more, with the run times of a log that stands in for Pittsburgh's.
pub fn of_log(name: &str, run_s: &[f64], effort: &Effort) -> Result<Drawn> {
    let mean_s = run_s.iter().sum::<f64>() / run_s.len().max(1) as f64;
    let sizes = Distribution::of_values(run_s.iter().map(|time| time / mean_s).collect())?;
    let mut drawn = Drawn {
        figures: Vec::new(),
        findings: Vec::new(),
    };
    study(&CASES[1], name, &sizes, effort, &mut drawn)?;
    Ok(drawn)
}

/// One case: three figures, and whether they show what the thesis says of all four.
fn study(
    case: &Case,
    name: &str,
    sizes: &Distribution,
    effort: &Effort,
    drawn: &mut Drawn,
) -> Result<()> {
    let (mut shut, mut free, mut visits) = (Vec::new(), Vec::new(), Vec::new());
    for &policy in case.policies {
        let of = |points| curve(policy.to_string(), policy.to_string(), points);
        let (mut at_load, mut came, mut stayed) = (Vec::new(), Vec::new(), Vec::new());
        for load in LOADS {
            at_load.push((load, closed_at(sizes, USERS, load, policy, effort)?.1));
            came.push((load, mean(&run(sizes, open(load)?, policy, effort)?)));
        }
        for n in VISITS {
            let users = partly_open(0.9, n, 1.0)?;
            stayed.push((n, mean(&run(sizes, users, policy, effort)?)));
        }
        shut.push(of(at_load));
        free.push(of(came));
        visits.push(of(stayed));
    }
    let fcfs = case.policies.iter().position(|one| *one == Policy::FCFS);
    let fcfs = fcfs.unwrap_or_default();
    let worth =
        |curves: &[Curve], place: usize| curves[fcfs].points[place].1 / curves[0].points[place].1;
    let at_090 = 4;
    let (closed_worth, open_worth) = (worth(&shut, at_090), worth(&free, at_090));
    let (short, long) = (worth(&visits, 0), worth(&visits, 5));
    let gap = free[fcfs].points[at_090].1 / shut[fcfs].points[at_090].1;
    let worst = free.last().map_or(1.0, |last| {
        last.points[at_090].1 / free[fcfs].points[at_090].1
    });
    drawn.findings.push(Finding {
        of: case.name,
        claim: "closed response times are far below open ones, the order is worth far less there, and long visits make a partly-open system like a closed one",
        holds: gap > 3.0 && open_worth > 2.0 * closed_worth && long < short / 2.0,
        evidence: format!("{name}, load 0.9, FCFS: open {gap:.1} times the closed mean; FCFS over the best: {open_worth:.1} open, {closed_worth:.1} closed, {short:.1} with one job a visit, {long:.1} with 50; the worst over FCFS: {worst:.1} open"),
    });
    let means = free.iter().map(|curve| curve.points[at_090].1);
    drawn.findings.push(Finding {
        of: case.name,
        claim: "in the open system each policy is worse than the one named before it",
        holds: means.is_sorted(),
        evidence: format!("{name}, load 0.9: {}", in_order(&free, at_090)),
    });
    for (heading, x, is_log, curves) in [
        ("closed, 50 users", "load", false, shut),
        ("open", "load", false, free),
        ("partly-open, load 0.9", "mean jobs a visit", true, visits),
    ] {
        let heading = format!("{name}: {heading}");
        drawn
            .figures
            .push(responses(heading, x, is_log, "", curves));
    }
    Ok(())
}

/// The policies with their means at a place of the curves.
fn in_order(curves: &[Curve], place: usize) -> String {
    let one = |curve: &Curve| format!("{} {:.2}", curve.name, curve.points[place].1);
    curves.iter().map(one).collect::<Vec<_>>().join(", ")
}
