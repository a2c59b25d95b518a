//! The figures of the queue on the HTML page.

use super::figures::QueueFigures;
use sooner_report::curves::{Curve, Figure};

/// Points over time: more would not be seen.
const POINTS: usize = 1000;

/// How many were inside, and what the servers did with them.
pub fn figures(queue: &QueueFigures) -> Vec<Figure> {
    let mut all = vec![over_time(queue)];
    if let Some(curve) = &queue.curve {
        let of = |y: fn(&super::Level) -> f64| -> Vec<(f64, f64)> {
            curve
                .levels
                .iter()
                .map(|level| (level.inside, y(level)))
                .collect()
        };
        all.push(figure(
            "What the servers do with so many inside",
            "requests inside",
            "departures a second",
            "Where this stops growing, more inside only makes every request longer.",
            ("departures", of(|level| level.per_sec)),
        ));
        all.push(figure(
            "How long a request takes with so many inside",
            "requests inside",
            "time, ms",
            "Of a request that always has so many inside, itself among them.",
            ("time", of(|level| level.mean_ms)),
        ));
    }
    all
}

fn over_time(queue: &QueueFigures) -> Figure {
    let minutes = &queue.inside.by_minute;
    let size = minutes.len().div_ceil(POINTS).max(1);
    let highest = |minutes: &[(f64, f64)]| {
        let most = minutes.iter().map(|minute| minute.1).fold(0.0, f64::max);
        (minutes[0].0 / 60.0, most)
    };
    figure(
        "Requests inside the servers",
        "hours since the first request",
        "requests inside, in the mean of a minute",
        "Each point is the busiest of its minutes.",
        ("inside", minutes.chunks(size).map(highest).collect()),
    )
}

fn figure(
    heading: &str,
    x: &str,
    y: &str,
    caption: &str,
    (name, points): (&str, Vec<(f64, f64)>),
) -> Figure {
    Figure {
        heading: heading.into(),
        x: x.into(),
        x_is_log: false,
        y: y.into(),
        y_is_log: false,
        caption: caption.into(),
        curves: vec![Curve {
            name: name.into(),
            is_exact: false,
            policy: name.into(),
            points,
        }],
    }
}
