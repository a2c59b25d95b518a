//! Partly-open systems (thesis 13.2): load 0.6, C² 8.

use crate::runs::{curve, h2, mean, partly_open, responses, run};
use crate::{Drawn, Effort, Finding};
use anyhow::Result;
use sooner_report::curves::Curve;
use sooner_simulator::Policy;

const LOAD: f64 = 0.6;
const C2: f64 = 8.0;
const POLICIES: [Policy; 4] = [Policy::Pesjf, Policy::FAIR, Policy::FCFS, Policy::Peljf];
/// Mean jobs a visit along the axis.
const VISITS: [f64; 8] = [1.0, 2.0, 4.0, 7.0, 10.0, 20.0, 40.0, 100.0];
/// Mean think times along the axis, in mean sizes.
const THINKS: [f64; 6] = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0];

/// Figure 13.4, principles (vii) and (viii).
pub fn draw(effort: &Effort) -> Result<Drawn> {
    let (mut by_visits, mut by_think) = (Vec::new(), Vec::new());
    for policy in POLICIES {
        let mut points = Vec::new();
        for visits in VISITS {
            points.push((
                visits,
                mean(&run(
                    &h2(C2)?,
                    partly_open(LOAD, visits, 1.0)?,
                    policy,
                    effort,
                )?),
            ));
        }
        by_visits.push(curve(policy.to_string(), policy.to_string(), points));
        let mut points = Vec::new();
        for think in THINKS {
            points.push((
                think,
                mean(&run(
                    &h2(C2)?,
                    partly_open(LOAD, 4.0, think)?,
                    policy,
                    effort,
                )?),
            ));
        }
        by_think.push(curve(policy.to_string(), policy.to_string(), points));
    }
    let findings = vec![visits_matter(&by_visits), thinking_does_not(&by_think)];
    Ok(Drawn {
        figures: vec![
            responses(
                "By jobs a visit, think time 1",
                "mean jobs a visit",
                true,
                "Load 0.6, C² 8.",
                by_visits,
            ),
            responses(
                "By think time, four jobs a visit",
                "mean think time, in mean sizes",
                true,
                "Load 0.6, C² 8.",
                by_think,
            ),
        ],
        findings,
    })
}

fn visits_matter(curves: &[Curve]) -> Finding {
    // What the order is worth at each number of visits: the worst over the best.
    let worth = |place: usize| {
        let at = curves.iter().map(|curve| curve.points[place].1);
        let (best, worst) = at.fold((f64::INFINITY, 0.0_f64), |(best, worst), y| {
            (best.min(y), worst.max(y))
        });
        worst / best
    };
    let [one, two, ten, hundred] = [0, 1, 4, 7].map(worth);
    Finding {
        of: "principle (vii)",
        claim: "a partly-open system is like an open one while visits are short, like a closed one when they are long",
        holds: two > 1.0 + (one - 1.0) / 3.0
            && ten < 1.0 + (one - 1.0) / 5.0
            && hundred < 1.0 + (one - 1.0) / 15.0,
        evidence: format!(
            "the worst order over the best: {one:.2} with one job a visit, {two:.2} with 2, {ten:.2} with 10, {hundred:.2} with 100"
        ),
    }
}

fn thinking_does_not(curves: &[Curve]) -> Finding {
    let spreads: Vec<(String, f64)> = curves
        .iter()
        .map(|curve| {
            let ys = curve.points.iter().map(|point| point.1);
            let (low, high) = ys.fold((f64::INFINITY, 0.0_f64), |(low, high), y| {
                (low.min(y), high.max(y))
            });
            (curve.name.clone(), high / low)
        })
        .collect();
    // The first two are PESJF and sharing.
    let holds = spreads[..2].iter().all(|(_, spread)| *spread < 1.1)
        && spreads.iter().all(|(_, spread)| *spread < 2.0);
    let words: Vec<String> = spreads
        .iter()
        .map(|(name, spread)| format!("{name} {spread:.2}"))
        .collect();
    Finding {
        of: "principle (viii)",
        claim: "think time has little effect on response times in a partly-open system: none where the order is good, less than twice where it is not",
        holds,
        evidence: format!(
            "highest over lowest mean for think times of 0.1 to 30: {}",
            words.join(", ")
        ),
    }
}
