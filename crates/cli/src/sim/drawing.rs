//! The mean response times of a sweep as curves: along the first number that varies, one figure for
//! each combination of what else does.

use super::results::Done;
use sooner_report::curves::{Curve, Figure, Page, render};
use sooner_simulator::TICKS_PER_MEAN;
use sooner_simulator::replicate::CONFIDENCE;

/// The HTML page.
pub fn page(done: &[Done<'_>]) -> String {
    let axis = done.first().and_then(|one| {
        let varied = one.case.varied.iter();
        varied
            .map(|(name, _)| *name)
            .find(|name| done.iter().all(|one| x(one, name).is_some()))
    });
    let figures = match axis {
        Some(axis) => sweeps(done, axis),
        None => vec![by_size(done)],
    };
    let jobs = done
        .iter()
        .map(|one| one.simulated.tally.sums().0)
        .max()
        .unwrap_or_default();
    render(&Page {
        title: "Response times, simulated".into(),
        summary: format!("sooner sim, {jobs} jobs a point; dashed where there is an exact value"),
        figures,
    })
}

/// The number that varies.
fn x(done: &Done<'_>, name: &str) -> Option<f64> {
    let value = done.case.varied.iter().find(|(other, _)| *other == name)?;
    value.1.parse().ok()
}

/// What varies beside the axis.
fn rest(done: &Done<'_>, axis: &str) -> String {
    let others = done.case.varied.iter().filter(|(name, _)| *name != axis);
    let words: Vec<String> = others
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    words.join(", ")
}

fn sweeps(done: &[Done<'_>], axis: &'static str) -> Vec<Figure> {
    let mut headings: Vec<String> = Vec::new();
    for one in done {
        let heading = rest(one, axis);
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    headings
        .into_iter()
        .map(|heading| {
            let of_it: Vec<&Done<'_>> = done
                .iter()
                .filter(|one| rest(one, axis) == heading)
                .collect();
            let heading = if heading.is_empty() {
                format!("Mean response time by {axis}")
            } else {
                heading
            };
            let xs: Vec<f64> = of_it.iter().filter_map(|one| x(one, axis)).collect();
            let (low, high) = xs.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), x| {
                (low.min(*x), high.max(*x))
            });
            Figure {
                heading,
                x: axis.into(),
                x_is_log: low > 0.0 && high / low > 20.0,
                y: "mean response time, in mean sizes".into(),
                y_is_log: true,
                caption: String::new(),
                curves: curves(&of_it, axis),
            }
        })
        .collect()
}

/// Simulated and exact means of every policy, along the axis.
fn curves(done: &[&Done<'_>], axis: &str) -> Vec<Curve> {
    let mut policies: Vec<String> = Vec::new();
    for one in done {
        let name = one.case.policy.to_string();
        if !policies.contains(&name) {
            policies.push(name);
        }
    }
    let curve = |policy: &str, is_exact: bool| {
        let of_it = done
            .iter()
            .filter(|one| one.case.policy.to_string() == policy);
        let y = |one: &&&Done<'_>| {
            if is_exact {
                one.exact.filter(|mean| mean.is_finite())
            } else {
                (one.infinite.is_none()).then(|| one.simulated.controlled(CONFIDENCE).mean)
            }
        };
        let mut points: Vec<(f64, f64)> = of_it
            .filter_map(|one| Some((x(one, axis)?, y(&one)?)))
            .collect();
        points.sort_unstable_by(|left, right| left.0.total_cmp(&right.0));
        Curve {
            name: if is_exact {
                format!("{policy}, exact")
            } else {
                policy.to_owned()
            },
            is_exact,
            policy: policy.to_owned(),
            points,
        }
    };
    let both = policies
        .iter()
        .flat_map(|policy| [curve(policy, false), curve(policy, true)]);
    both.filter(|curve| !curve.points.is_empty()).collect()
}

/// Where nothing varies but the policy: slowdown by size, if it was kept.
fn by_size(done: &[Done<'_>]) -> Figure {
    let curve = |one: &Done<'_>| {
        let buckets = one
            .simulated
            .tally
            .by_size
            .iter()
            .skip(usize::from(one.infinite_slowdown.is_some()))
            .filter(|bucket| bucket.n > 0);
        let of = |bucket: &sooner_simulator::tally::SizeBucket| {
            let n = bucket.n as f64;
            (
                bucket.size_sum / n / TICKS_PER_MEAN,
                bucket.slowdown_sum / n,
            )
        };
        Curve {
            name: one.case.policy.to_string(),
            is_exact: false,
            policy: one.case.policy.to_string(),
            points: buckets.map(of).collect(),
        }
    };
    Figure {
        heading: "Slowdown by size".into(),
        x: "size, in mean sizes".into(),
        x_is_log: true,
        y: "mean slowdown".into(),
        y_is_log: true,
        caption: "Jobs in order of size, in 200 groups of equal count.".into(),
        curves: done.iter().map(curve).collect(),
    }
}
