//! The limit on jobs inside a backend (thesis 9.3 and 9.4).

use crate::runs::{curve, responses};
use crate::{Drawn, Effort, Finding};
use anyhow::{Context, Result};
use sooner_report::curves::Figure;
use sooner_theory::closed::{self, Station};
use sooner_theory::mpl;

/// Disks, all equally busy: the worst case.
const DISKS: [usize; 6] = [1, 2, 4, 8, 12, 16];
/// Limits along the axis of Figure 9.10.
const LIMITS: [usize; 10] = [1, 2, 3, 5, 7, 10, 15, 20, 30, 40];

/// Figure 9.7: throughput by jobs inside, and how many are enough.
pub fn needed(_effort: &Effort) -> Result<Drawn> {
    let (mut throughputs, mut enough) = (Vec::new(), vec![Vec::new(), Vec::new()]);
    for disks in DISKS {
        let stations = vec![
            Station::Queue {
                demand: 1.0 / disks as f64
            };
            disks
        ];
        let found = closed::throughputs(&stations, 100)?;
        let most = disks as f64;
        let points = found
            .iter()
            .enumerate()
            .map(|(before, x)| ((before + 1) as f64, x / most));
        throughputs.push(curve(
            format!("{disks} disks"),
            disks.to_string(),
            points.collect(),
        ));
        for (share, points) in [0.8, 0.95].into_iter().zip(&mut enough) {
            let users = closed::users_for_share(&stations, share)?;
            points.push((
                disks as f64,
                users.context("a share that can be reached")? as f64,
            ));
        }
    }
    // With m equal queues n jobs give n / (n + m - 1) of the most: 0.8 of it needs 4 (m - 1), 0.95
    // needs 19 (m - 1).
    let is_linear = |points: &[(f64, f64)], slope: f64| {
        points
            .iter()
            .all(|(disks, jobs)| (jobs - (slope * (disks - 1.0)).max(1.0)).abs() <= 1.0)
    };
    let findings = vec![Finding {
        of: "Figure 9.7",
        claim: "the jobs inside that 80 % and 95 % of the throughput need grow linearly with the disks",
        holds: is_linear(&enough[0], 4.0) && is_linear(&enough[1], 19.0),
        evidence: format!("16 disks: {} and {} jobs", enough[0][5].1, enough[1][5].1),
    }];
    let names = ["80 % of the throughput", "95 % of the throughput"];
    let curves = names
        .iter()
        .zip(enough)
        .map(|(name, points)| curve(*name, *name, points))
        .collect();
    let of = |heading: &str, x: &str, y: &str, curves| Figure {
        heading: heading.into(),
        x: x.into(),
        x_is_log: false,
        y: y.into(),
        y_is_log: false,
        caption: "Equally busy disks, exact.".into(),
        curves,
    };
    Ok(Drawn {
        figures: vec![
            of(
                "Throughput by jobs inside",
                "jobs inside",
                "share of the highest throughput",
                throughputs,
            ),
            of("Jobs that are enough", "disks", "jobs inside", curves),
        ],
        findings,
    })
}

/// Figure 9.10: response time by the limit, for several variabilities, at load 0.7 and 0.9.
pub fn response(_effort: &Effort) -> Result<Drawn> {
    let mut figures = Vec::new();
    for load in [0.7, 0.9] {
        let mut curves = Vec::new();
        for c2 in [1.0, 2.0, 5.0, 10.0, 15.0] {
            let sizes = crate::runs::h2(c2)?;
            let mut points = Vec::new();
            for limit in LIMITS {
                points.push((limit as f64, mpl::solve(&sizes, load, limit)?.mean_response));
            }
            curves.push(curve(format!("C² {c2}"), c2.to_string(), points));
        }
        figures.push(responses(
            format!("Load {load}"),
            "most jobs inside",
            false,
            "Exact; first come, first served outside, sharing inside.",
            curves,
        ));
    }
    let over_sharing = |figure: usize, curve: usize, limit: usize, load: f64| -> f64 {
        let points = &figures[figure].curves[curve].points;
        let found = points
            .iter()
            .find(|point| point.0 == limit as f64)
            .map_or(f64::NAN, |point| point.1);
        found * (1.0 - load)
    };
    let low = over_sharing(1, 1, 5, 0.9);
    let (ten, thirty) = (over_sharing(0, 4, 10, 0.7), over_sharing(1, 4, 30, 0.9));
    let too_low = over_sharing(1, 4, 10, 0.9);
    let findings = vec![
        Finding {
            of: "Figure 9.10",
            claim: "with C² up to 2 a limit of 5 costs little",
            holds: low < 1.35,
            evidence: format!("C² 2, load 0.9: {low:.2} times sharing"),
        },
        Finding {
            of: "Figure 9.10",
            claim: "with C² 15 it takes 10 at load 0.7 and 30 at load 0.9 to come near sharing",
            holds: ten < 1.35 && thirty < 1.35 && too_low > 2.0,
            evidence: format!(
                "{ten:.2} times sharing at 0.7 with 10, {thirty:.2} at 0.9 with 30; with 10 it is {too_low:.2} there"
            ),
        },
    ];
    Ok(Drawn { figures, findings })
}
