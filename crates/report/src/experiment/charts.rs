//! The pictures that only experiments have: connections over time, means over a range, means of all
//! cases.

use super::palette::Palette;
use super::{Case, Page, Peer, spread};
use crate::groups::ALL;
use crate::html::charts::{significant_seconds, tick_duration};
use crate::number::{count, duration, significant};
use crate::plot::{Axis, Chart, Kind, Line, Path, Ticks, Wording};
use sooner_stats::Group;

/// Least width of a readout's strip: a page has many pictures with many lines.
pub const STRIP_WIDTH_MIN: f64 = 20.0;
/// Longest name of a case below a bar; longer ones are numbered.
const SHORT_NAME_MAX: usize = 7;

/// Open connections over time, of each peer's first run; none where they were not counted.
pub fn connections(case: &Case, palette: &Palette) -> Option<Chart> {
    let lines = case.peers.iter().filter_map(|peer| {
        let one = peer.counted().find(|one| !one.connections.is_empty())?;
        Some(line(peer, palette, Path::Straight, one.connections.clone()))
    });
    let lines: Vec<Line> = lines.collect();
    (!lines.is_empty()).then(|| Chart {
        id: "connections".into(),
        name: "Open connections over time".into(),
        description: "Number of open connections in each second, one line for each server.".into(),
        x: axis("Time since the start, s", Kind::Linear, significant_seconds),
        y: axis(
            "Open connections",
            Kind::Linear,
            |n| count(n.round() as u64),
        ),
        lines,
        level: None,
        strip_width_min: STRIP_WIDTH_MIN,
        wording: Wording {
            x: Box::new(|s| format!("Second {}", significant_seconds(s))),
            y: Box::new(|n| count(n.round() as u64)),
        },
    })
}

/// Means over the cases' places; none with fewer than two places.
pub fn range(page: &Page, palette: &Palette) -> Option<Chart> {
    let mut placed: Vec<(f64, &Case)> = page
        .cases
        .iter()
        .filter_map(|case| Some((case.at?, case)))
        .collect();
    placed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let lines = lines(&placed, palette, |_, _| Path::Straight, Path::Straight);
    if lines.iter().all(|line| line.points.len() < 2) {
        return None;
    }
    let title = page.range_title.clone();
    let (kind, scale_words) = kind_for(&lines);
    Some(Chart {
        id: "range".into(),
        name: format!("Mean response time against: {title}"),
        description: format!("Mean response time, {scale_words}; measured and ideal."),
        x: axis(&title, Kind::Linear, |value| {
            format!("{}", (value * 1000.0).round() / 1000.0)
        }),
        y: axis(
            &format!("Mean response time; {scale_words}"),
            kind,
            tick_duration,
        ),
        lines,
        level: None,
        strip_width_min: STRIP_WIDTH_MIN,
        wording: Wording {
            x: Box::new(move |value| format!("{title}: {}", significant(value))),
            y: Box::new(duration),
        },
    })
}

/// Means of all cases as bars, with both ideals as levels across them; none while nothing was
/// measured.
pub fn cases(page: &Page, palette: &Palette) -> Option<Chart> {
    let measured = page.cases.iter().filter(|case| case.is_measured());
    let placed: Vec<(f64, &Case)> = (0..)
        .zip(measured)
        .map(|(i, case)| (f64::from(i), case))
        .collect();
    let last = placed.last()?.0;
    let bar = |nth, of| Path::Bar { nth, of };
    let names: Vec<String> = placed.iter().map(|(_, case)| case.name.clone()).collect();
    let labels = short_names(page);
    let name_at =
        move |list: &[String], at: f64| list.get(at.round() as usize).cloned().unwrap_or_default();
    let ticks = placed.iter().map(|(at, case)| {
        let gain = case.published_gain;
        let below = gain.map_or(String::new(), |gain| {
            format!("paper {}×", significant(gain))
        });
        (*at, below)
    });
    Some(Chart {
        id: "cases".into(),
        name: "Mean response time of every case".into(),
        description:
            "Mean response time of every case as bars, logarithmic, with the ideals as levels."
                .into(),
        x: Axis {
            title: "Case; below it the published gain".into(),
            kind: Kind::Linear,
            domain: Some((-0.5, last + 0.5)),
            ticks: Ticks::At(ticks.collect()),
            label: Box::new(move |at| name_at(&labels, at)),
        },
        y: axis("Mean response time; logarithmic", Kind::Log, tick_duration),
        lines: lines(&placed, palette, bar, Path::Level),
        level: None,
        strip_width_min: STRIP_WIDTH_MIN,
        wording: Wording {
            x: Box::new(move |at| name_at(&names, at)),
            y: Box::new(duration),
        },
    })
}

/// The cases' names, or their numbers where one is too long to stand below its bars.
pub fn short_names(page: &Page) -> Vec<String> {
    let measured = page.cases.iter().filter(|case| case.is_measured());
    let names: Vec<String> = measured.map(|case| case.name.clone()).collect();
    let is_short = |name: &String| name.chars().count() <= SHORT_NAME_MAX;
    if names.iter().all(is_short) {
        return names;
    }
    (1..=names.len()).map(|number| number.to_string()).collect()
}

/// The mean of every peer at every place, then both ideals.
fn lines(
    placed: &[(f64, &Case)],
    palette: &Palette,
    path: impl Fn(usize, usize) -> Path,
    ideal_path: Path,
) -> Vec<Line> {
    let mean = |peer: &Peer, of: fn(&Group) -> Option<f64>| {
        spread::of_group(peer, ALL[0].of, of).map(|spread| spread.median)
    };
    let served: Vec<&str> = palette
        .names()
        .filter(|name| {
            let in_case = |(_, case): &(f64, &Case)| {
                case.peer(name).is_some_and(|peer| !peer.runs.is_empty())
            };
            placed.iter().any(in_case)
        })
        .collect();
    let measured = served.iter().enumerate().map(|(i, name)| {
        let points = placed
            .iter()
            .filter_map(|(at, case)| Some((*at, mean(case.peer(name)?, |g| g.mean_response_ms)?)));
        Line {
            name: (*name).to_owned(),
            class: palette.class(name).to_owned(),
            dashed: false,
            path: path(i, served.len()),
            points: points.collect(),
        }
    });
    let ideal = |name: &str, class: &str, of: fn(&Group) -> Option<f64>| {
        let points = placed
            .iter()
            .filter_map(|(at, case)| Some((*at, mean(spread::fullest(case)?, of)?)));
        Line {
            name: name.into(),
            class: class.into(),
            dashed: true,
            path: ideal_path,
            points: points.collect(),
        }
    };
    let ideals = [
        ideal("Ideal PS", "fair", |g| g.ideal_ps_mean_response_ms),
        ideal("Ideal SRPT", "srpt", |g| g.ideal_srpt_mean_response_ms),
    ];
    measured.chain(ideals).collect()
}

/// Logarithmic where the values span a decade.
fn kind_for(lines: &[Line]) -> (Kind, &'static str) {
    let values = || {
        lines
            .iter()
            .flat_map(|line| line.points.iter().map(|p| p.1))
    };
    let (low, high) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(0.0, f64::max),
    );
    if low > 0.0 && high / low >= 10.0 {
        (Kind::Log, "logarithmic")
    } else {
        (Kind::Linear, "linear")
    }
}

fn line(peer: &Peer, palette: &Palette, path: Path, points: Vec<(f64, f64)>) -> Line {
    Line {
        name: peer.name.clone(),
        class: palette.class(&peer.name).to_owned(),
        dashed: false,
        path,
        points,
    }
}

fn axis(title: &str, kind: Kind, label: fn(f64) -> String) -> Axis {
    Axis {
        title: title.into(),
        kind,
        domain: None,
        ticks: Ticks::Round,
        label: Box::new(label),
    }
}
