//! Open against closed systems (thesis 13.1).

use crate::runs::{closed, closed_at, curve, h2, mean, open, responses, run, thinks};
use crate::{Drawn, Effort, Finding};
use anyhow::Result;
use sooner_report::curves::{Curve, Figure};
use sooner_simulator::Policy;

/// Loads of open systems along an axis.
const LOADS: [f64; 9] = [0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95];
/// Variabilities along an axis.
const C2S: [f64; 6] = [1.0, 4.0, 8.0, 16.0, 30.0, 50.0];
/// As in the thesis.
const C2: f64 = 8.0;
/// The policies of Figure 13.3, the best first.
const POLICIES: [Policy; 4] = [Policy::Pesjf, Policy::FAIR, Policy::FCFS, Policy::Peljf];

/// Figure 13.1: the load of a closed system by its think time, variability and users.
pub fn load(effort: &Effort) -> Result<Drawn> {
    let mut curves = Vec::new();
    for users in [10, 100] {
        let mut points = Vec::new();
        for think in thinks(users) {
            let found = run(&h2(C2)?, closed(users, think)?, Policy::FCFS, effort)?;
            points.push((think.max(0.1), found.realised_load));
        }
        points.reverse();
        curves.push(curve(format!("{users} users"), users.to_string(), points));
    }
    let mut by_c2 = Vec::new();
    for c2 in C2S {
        let found = run(&h2(c2)?, closed(10, 5.0)?, Policy::FCFS, effort)?;
        by_c2.push((c2, found.realised_load));
    }
    let (first, last) = (by_c2[0].1, by_c2[by_c2.len() - 1].1);
    let findings = vec![Finding {
        of: "13.1",
        claim: "more variable sizes lower the load of a closed system a little",
        holds: last < first && last > 0.7 * first,
        evidence: format!("10 users who think 5: load {first:.3} at C² 1, {last:.3} at C² 50"),
    }];
    let shared = |heading: &str, x: &str, curves| Figure {
        heading: heading.into(),
        x: x.into(),
        x_is_log: true,
        y: "load".into(),
        y_is_log: false,
        caption: "First come, first served.".into(),
        curves,
    };
    Ok(Drawn {
        figures: vec![
            shared(
                "Load by think time, C² 8",
                "think time, in mean sizes",
                curves,
            ),
            shared(
                "Load by variability, 10 users who think 5",
                "C² of sizes",
                vec![curve("10 users", "10", by_c2)],
            ),
        ],
        findings,
    })
}

/// Mean response time of closed systems by the load they come to.
fn closed_curve(users: u32, policy: Policy, effort: &Effort) -> Result<Vec<(f64, f64)>> {
    let mut points = Vec::new();
    for think in thinks(users) {
        let found = run(&h2(C2)?, closed(users, think)?, policy, effort)?;
        points.push((found.realised_load, mean(&found)));
    }
    points.sort_unstable_by(|left, right| left.0.total_cmp(&right.0));
    Ok(points)
}

/// Mean response time of open systems by load.
fn open_curve(policy: Policy, effort: &Effort) -> Result<Vec<(f64, f64)>> {
    let point = |load: &f64| Ok((*load, mean(&run(&h2(C2)?, open(*load)?, policy, effort)?)));
    LOADS.iter().map(point).collect()
}

/// Figure 13.2, principles (i) to (iii).
pub fn first_come(effort: &Effort) -> Result<Drawn> {
    let fcfs = Policy::FCFS;
    let mut by_load = vec![curve("open", "open", open_curve(fcfs, effort)?)];
    for users in [10, 100, 1000] {
        by_load.push(curve(
            format!("{users} users"),
            users.to_string(),
            closed_curve(users, fcfs, effort)?,
        ));
    }
    let mut by_c2 = vec![curve("open", "open", Vec::new())];
    for c2 in C2S {
        by_c2[0]
            .points
            .push((c2, mean(&run(&h2(c2)?, open(0.9)?, fcfs, effort)?)));
    }
    for users in [10, 100, 1000] {
        let mut points = Vec::new();
        for c2 in C2S {
            points.push((c2, closed_at(&h2(c2)?, users, 0.9, fcfs, effort)?.1));
        }
        by_c2.push(curve(format!("{users} users"), users.to_string(), points));
    }
    let findings = first_come_findings(&by_c2);
    Ok(Drawn {
        figures: vec![
            responses(
                "By load, C² 8",
                "load",
                false,
                "First come, first served. The load of closed systems follows from the think time.",
                by_load,
            ),
            responses(
                "By variability, load 0.9",
                "C² of sizes",
                true,
                "First come, first served.",
                by_c2,
            ),
        ],
        findings,
    })
}

/// What Figure 13.2(b) shows: all of it is at the same load.
fn first_come_findings(by_c2: &[Curve]) -> Vec<Finding> {
    let at = |curve: usize, c2: f64| {
        let points = by_c2[curve].points.iter();
        points
            .clone()
            .find(|point| point.0 == c2)
            .map_or(f64::NAN, |point| point.1)
    };
    let [open, ten, hundred, thousand] = [0, 1, 2, 3].map(|curve| at(curve, C2));
    let growth = |curve| at(curve, 50.0) / at(curve, 1.0);
    let far = at(3, 50.0) / at(0, 50.0);
    vec![
        Finding {
            of: "principle (i)",
            claim: "mean response times are far lower in closed systems than in open ones of the same load",
            holds: ten < open / 3.0 && hundred < open,
            evidence: format!(
                "load 0.9, C² 8: open {open:.1}, 100 users {hundred:.1}, 10 users {ten:.1}"
            ),
        },
        Finding {
            of: "principle (ii)",
            claim: "with more users closed systems become open ones, but slowly",
            holds: ten < hundred && hundred < thousand && thousand < open * 1.05 && far < 0.9,
            evidence: format!(
                "10, 100, 1000 users: {ten:.1}, {hundred:.1}, {thousand:.1} of open {open:.1}; at C² 50 1000 users still have {far:.2} of it"
            ),
        },
        Finding {
            of: "principle (iii)",
            claim: "variability has a large effect in open systems, a much smaller one in closed ones",
            holds: growth(0) > 5.0 * growth(1) && growth(1) < 4.0,
            evidence: format!(
                "from C² 1 to 50: {:.1} times in the open system, {:.1} times with 10 users",
                growth(0),
                growth(1)
            ),
        },
    ]
}

/// Figure 13.3, principles (iv) to (vi).
pub fn order(effort: &Effort) -> Result<Drawn> {
    let mut figures = Vec::new();
    for is_open in [true, false] {
        let mut curves = Vec::new();
        for policy in POLICIES {
            let points = if is_open {
                open_curve(policy, effort)?
            } else {
                closed_curve(100, policy, effort)?
            };
            curves.push(curve(policy.to_string(), policy.to_string(), points));
        }
        let heading = if is_open {
            "Open, by load"
        } else {
            "100 users, by load"
        };
        figures.push(responses(heading, "load", false, "C² 8.", curves));
    }
    for is_open in [true, false] {
        let mut curves = Vec::new();
        for policy in POLICIES {
            let mut points = Vec::new();
            for c2 in [2.0, 4.0, 8.0, 16.0, 30.0, 50.0] {
                let mean = if is_open {
                    mean(&run(&h2(c2)?, open(0.9)?, policy, effort)?)
                } else {
                    closed_at(&h2(c2)?, 100, 0.9, policy, effort)?.1
                };
                points.push((c2, mean));
            }
            curves.push(curve(policy.to_string(), policy.to_string(), points));
        }
        let heading = if is_open {
            "Open, by variability"
        } else {
            "100 users, by variability"
        };
        figures.push(responses(heading, "C² of sizes", true, "Load 0.9.", curves));
    }
    let findings = order_findings(&figures, effort)?;
    Ok(Drawn { figures, findings })
}

fn order_findings(figures: &[Figure], effort: &Effort) -> Result<Vec<Finding>> {
    // FCFS over PESJF: what the order is worth, at the same load.
    let worth_open = |load: f64| -> Result<f64> {
        let of =
            |policy| Ok::<f64, anyhow::Error>(mean(&run(&h2(C2)?, open(load)?, policy, effort)?));
        Ok(of(Policy::FCFS)? / of(Policy::Pesjf)?)
    };
    let worth_closed = |load: f64| -> Result<f64> {
        let of =
            |policy| Ok::<f64, anyhow::Error>(closed_at(&h2(C2)?, 100, load, policy, effort)?.1);
        Ok(of(Policy::FCFS)? / of(Policy::Pesjf)?)
    };
    let (open_high, closed_high) = (worth_open(0.95)?, worth_closed(0.95)?);
    let (low, moderate) = (worth_closed(0.3)?, worth_closed(0.85)?);
    let full =
        |policy| Ok::<f64, anyhow::Error>(mean(&run(&h2(C2)?, closed(100, 0.0)?, policy, effort)?));
    let saturated = full(Policy::FCFS)? / full(Policy::Pesjf)?;
    let growth = |figure: usize, curve: usize| {
        let points = &figures[figure].curves[curve].points;
        points[points.len() - 1].1 / points[0].1
    };
    let (pesjf, fair, fcfs) = (growth(2, 0), growth(2, 1), growth(2, 2));
    let (closed_pesjf, closed_fcfs) = (growth(3, 0), growth(3, 2));
    Ok(vec![
        Finding {
            of: "principle (iv)",
            claim: "the order is worth much in open systems, much less in closed ones",
            holds: open_high > 2.0 * closed_high && open_high > 5.0,
            evidence: format!(
                "FCFS over PESJF at load 0.95: {open_high:.1} open, {closed_high:.1} with 100 users"
            ),
        },
        Finding {
            of: "principle (v)",
            claim: "in closed systems the order is worth something only at moderate load and with many users",
            holds: moderate > 1.5 && low < moderate / 1.3 && (0.9..1.15).contains(&saturated),
            evidence: format!(
                "100 users, FCFS over PESJF: {low:.2} at load 0.3, {moderate:.2} at 0.85, {saturated:.2} without think time"
            ),
        },
        Finding {
            of: "principle (vi)",
            claim: "the order limits what variability does, in both systems",
            holds: pesjf < 1.5 && fair < 1.5 && fcfs > 8.0 && closed_pesjf < closed_fcfs,
            evidence: format!(
                "from C² 2 to 50 at load 0.9, open: FCFS {fcfs:.1} times, sharing {fair:.2}, PESJF {pesjf:.2}; 100 users: FCFS {closed_fcfs:.1}, PESJF {closed_pesjf:.2}"
            ),
        },
    ])
}
