//! What each figure of the page shows: its axes, lines and words.

use crate::number::{bytes, duration, significant, size_range};
use crate::plot::{Axis, Chart, Kind, Line, Path, STRIP_WIDTH_MIN, Ticks, Wording};
use sooner_stats::{CcdfPoint, Run, Second, SizeBucket};
use std::cmp::Reverse;

/// A run as a figure shows it.
pub struct Series<'a> {
    /// As the legend calls it.
    pub name: String,
    /// CSS classes of its lines.
    pub class: String,
    /// What is drawn.
    pub run: &'a Run,
}

/// The points of a figure's lines: measured, ideal SRPT and ideal PS.
struct Points<'a> {
    measured: &'a dyn Fn(&Run) -> Vec<(f64, f64)>,
    ideal_srpt: Vec<(f64, f64)>,
    ideal_ps: Vec<(f64, f64)>,
}

/// The run for which ideals are drawn: arrivals are the same, and ideals are told of the requests
/// that completed.
fn reference<'a>(series: &[Series<'a>]) -> &'a Run {
    let fullest = series
        .iter()
        .min_by_key(|one| Reverse(one.run.all.completed));
    fullest.expect("a figure has a run").run
}

/// One measured line a run, and both ideals on top.
fn lines(series: &[Series<'_>], path: Path, points: Points<'_>) -> Vec<Line> {
    let measured = series.iter().map(|one| Line {
        name: one.name.clone(),
        class: one.class.clone(),
        dashed: false,
        path,
        points: (points.measured)(one.run),
    });
    let ideal = |name: &str, class: &str, points| Line {
        name: name.into(),
        class: class.into(),
        dashed: true,
        path,
        points,
    };
    let ideals = [
        ideal("Ideal PS", "fair", points.ideal_ps),
        ideal("Ideal SRPT", "srpt", points.ideal_srpt),
    ];
    measured.chain(ideals).collect()
}

/// `(x, y)` of every item that has a y.
fn xy<T>(items: &[T], x: impl Fn(&T) -> f64, y: impl Fn(&T) -> Option<f64>) -> Vec<(f64, f64)> {
    items
        .iter()
        .filter_map(|item| Some((x(item), y(item)?)))
        .collect()
}

/// Mean response time by size.
pub fn by_size(series: &[Series<'_>]) -> Chart {
    // the bucket's middle would hide the tail's end; its upper percentile is what the label names
    let x = |bucket: &SizeBucket| bucket.size_percentile;
    let first = &reference(series).by_size;
    let points = Points {
        measured: &|run| xy(&run.by_size, x, |b| b.mean_response_ms),
        ideal_srpt: xy(first, x, |b| b.ideal_srpt_mean_response_ms),
        ideal_ps: xy(first, x, |b| b.ideal_ps_mean_response_ms),
    };
    let sizes: Vec<(f64, u64, u64)> = first
        .iter()
        .map(|b| (b.size_percentile, b.min_size_bytes, b.max_size_bytes))
        .collect();
    let bucket_at = move |percentile: f64| {
        let at = sizes.partition_point(|(upper, ..)| *upper < percentile - 1e-6);
        sizes.get(at.min(sizes.len().saturating_sub(1))).copied()
    };
    let size_at = bucket_at.clone();
    let ticks = (0..=10).map(|i| f64::from(i) * 10.0);
    let below = |percentile: f64| {
        size_at(percentile).map_or(String::new(), |(_, low, high)| {
            bytes(if percentile == 0.0 { low } else { high } as f64)
        })
    };
    Chart {
        id: "by-size".into(),
        name: "Mean response time by size percentile".into(),
        description: "Mean response time, logarithmic, against the percentile of response size; \
            measured and ideal."
            .into(),
        x: Axis {
            title: "Percentile of response size, and that size".into(),
            kind: Kind::Linear,
            domain: Some((0.0, 100.0)),
            ticks: Ticks::At(ticks.map(|p| (p, below(p))).collect()),
            label: Box::new(|p| format!("{p:.0} %")),
        },
        y: time_axis("Mean response time; logarithmic"),
        lines: lines(series, Path::Straight, points),
        level: None,
        strip_width_min: STRIP_WIDTH_MIN,
        wording: Wording {
            x: Box::new(move |p| match bucket_at(p) {
                Some((upper, low, high)) => {
                    let sizes = size_range(low, high);
                    format!("{upper:.1} %: {sizes}")
                }
                None => format!("{p:.1} %"),
            }),
            y: Box::new(duration),
        },
    }
}

/// The share of responses that take at least so long.
pub fn distribution(series: &[Series<'_>]) -> Chart {
    let curve = |points: &[CcdfPoint], response: fn(&CcdfPoint) -> f64| {
        let mut curve = xy(points, response, |p| Some(p.fraction_at_least));
        curve.sort_by(|a, b| a.0.total_cmp(&b.0));
        curve
    };
    let first = &reference(series).ccdf;
    let points = Points {
        measured: &|run| curve(&run.ccdf, |p| p.response_ms),
        ideal_srpt: curve(first, |p| p.ideal_srpt_response_ms),
        ideal_ps: curve(first, |p| p.ideal_ps_response_ms),
    };
    Chart {
        id: "distribution".into(),
        name: "Distribution of the response time".into(),
        description: "Share of responses that take at least a given time, both axes logarithmic; \
            measured and ideal."
            .into(),
        x: Axis {
            title: "Response time".into(),
            kind: Kind::Log,
            domain: None,
            ticks: Ticks::Round,
            label: Box::new(tick_duration),
        },
        y: Axis {
            title: "Share of responses that take at least as long; logarithmic".into(),
            kind: Kind::Log,
            domain: None,
            ticks: Ticks::Round,
            label: Box::new(tick_percent),
        },
        lines: lines(series, Path::Steps, points),
        level: None,
        strip_width_min: STRIP_WIDTH_MIN,
        wording: Wording {
            x: Box::new(|ms| format!("Share taking {} or more", duration(ms))),
            y: Box::new(percent),
        },
    }
}

/// Mean response time of the requests of each second.
pub fn over_time(series: &[Series<'_>]) -> Chart {
    let first = whole_seconds(reference(series));
    let points = Points {
        measured: &|run| xy(whole_seconds(run), middle, |s| s.mean_response_ms),
        ideal_srpt: xy(first, middle, |s| s.ideal_srpt_mean_response_ms),
        ideal_ps: xy(first, middle, |s| s.ideal_ps_mean_response_ms),
    };
    Chart {
        id: "over-time".into(),
        name: "Mean response time over time".into(),
        description: "Mean response time of the requests that arrived in each second, \
            logarithmic; measured and ideal."
            .into(),
        x: seconds_axis(first),
        y: time_axis("Mean response time of the requests that arrived in each second; logarithmic"),
        lines: lines(series, Path::Straight, points),
        level: None,
        strip_width_min: STRIP_WIDTH_MIN,
        wording: Wording {
            x: Box::new(second_words),
            y: Box::new(duration),
        },
    }
}

/// The work that arrived in each second.
pub fn load(run: &Run) -> Chart {
    let line = Line {
        name: "Offered load".into(),
        class: "p5".into(),
        dashed: false,
        path: Path::Straight,
        points: xy(whole_seconds(run), middle, |s| Some(s.load)),
    };
    Chart {
        id: "load".into(),
        name: "Offered load over time".into(),
        description:
            "Work that arrived in each second as a share of what the link carries in a second."
                .into(),
        x: seconds_axis(whole_seconds(run)),
        y: Axis {
            title: "Offered load in each second; dotted: what the link carries".into(),
            kind: Kind::Linear,
            domain: None,
            ticks: Ticks::Round,
            label: Box::new(|load| format!("{load}")),
        },
        lines: vec![line],
        level: Some(1.0),
        strip_width_min: STRIP_WIDTH_MIN,
        wording: Wording {
            x: Box::new(second_words),
            y: Box::new(|load| format!("{load:.2}")),
        },
    }
}

/// The run's seconds without the fraction of one at its end, which would look like a pause.
fn whole_seconds(run: &Run) -> &[Second] {
    let start = run.per_second.first().map_or(0, |s| s.second);
    let end = start + run.measured_s as u64;
    let whole = run.per_second.partition_point(|s| s.second < end);
    &run.per_second[..whole]
}

/// Where a second is drawn: at its middle.
fn middle(second: &Second) -> f64 {
    second.second as f64 + 0.5
}

fn second_words(at: f64) -> String {
    format!("Second {:.0} to {:.0}", at - 0.5, at + 0.5)
}

fn seconds_axis(seconds: &[Second]) -> Axis {
    let first = seconds.first().map_or(0, |s| s.second) as f64;
    let last = seconds.last().map_or(0, |s| s.second) as f64 + 1.0;
    Axis {
        title: "Time since the start, s".into(),
        kind: Kind::Linear,
        domain: Some((first, last)),
        ticks: Ticks::Round,
        label: Box::new(significant_seconds),
    }
}

/// Seconds at a tick.
pub fn significant_seconds(s: f64) -> String {
    format!("{}", (s * 10.0).round() / 10.0)
}

/// Logarithmic, in the unit that reads best.
pub fn time_axis(title: &str) -> Axis {
    Axis {
        title: title.into(),
        kind: Kind::Log,
        domain: None,
        ticks: Ticks::Round,
        label: Box::new(tick_duration),
    }
}

/// A duration at a tick, where three digits would only be zeros: `100 ms`, `2 s`.
pub fn tick_duration(ms: f64) -> String {
    if ms == 0.0 {
        return "0".to_owned();
    }
    let (value, unit) = match ms {
        _ if ms < 0.9995 => (ms * 1e3, "µs"),
        _ if ms < 999.5 => (ms, "ms"),
        _ => (ms / 1e3, "s"),
    };
    format!("{} {unit}", (value * 1000.0).round() / 1000.0)
}

/// A share as a percentage: `0.588 %`.
fn percent(share: f64) -> String {
    format!("{} %", significant(share * 100.0))
}

/// A share at a tick: `0.1 %`, `100 %`.
fn tick_percent(share: f64) -> String {
    format!("{} %", (share * 1e7).round() / 1e5)
}
