//! The forecast as an HTML page: load over time, response time by size.

use crate::forecast::Forecast;
use crate::queue;
use crate::survey::LinkFigures;
use crate::text::advice;
use sooner_report::curves::{Curve, Figure, Page, render};
use sooner_report::number::significant;

/// Points of the load over time: more would not be seen.
const POINTS: usize = 1000;

/// The page.
pub fn html(forecast: &Forecast) -> String {
    let mut figures: Vec<Figure> = forecast.survey.link.iter().map(load).collect();
    for scenario in &forecast.scenarios {
        let curve = |outcome: &crate::Outcome| Curve {
            name: outcome.policy.clone(),
            is_exact: false,
            policy: outcome.policy.clone(),
            points: (1..)
                .zip(&outcome.by_size_mean_ms)
                .map(|(group, ms)| (f64::from(group), *ms))
                .collect(),
        };
        figures.push(Figure {
            heading: format!(
                "{} times the traffic, busiest hour at {}",
                significant(scenario.growth),
                significant(scenario.busiest_hour_load)
            ),
            x: "percentile of response size".into(),
            x_is_log: false,
            y: "mean response time, ms".into(),
            y_is_log: true,
            caption: "Simulated on the uplink alone; requests in order of size, in a hundred groups of equal count.".into(),
            curves: scenario.outcomes.iter().map(curve).collect(),
        });
    }
    figures.extend(forecast.queue.iter().flat_map(queue::page::figures));
    render(&Page {
        title: "What order would do for this traffic".into(),
        summary: summary(forecast),
        figures,
    })
}

fn summary(forecast: &Forecast) -> String {
    let mut said = advice(forecast);
    said.extend(forecast.queue.iter().flat_map(|queue| queue.advice.clone()));
    said.join(" ")
}

fn load(link: &LinkFigures) -> Figure {
    let minutes = &link.load_by_minute;
    // The highest of as many minutes as fall on one point.
    let size = minutes.len().div_ceil(POINTS).max(1);
    let highest = |minutes: &[(f64, f64)]| {
        let load = minutes.iter().map(|minute| minute.1).fold(0.0, f64::max);
        (minutes[0].0 / 60.0, load)
    };
    Figure {
        heading: "Load of the uplink".into(),
        x: "hours since the first request".into(),
        x_is_log: false,
        y: "work that came in a minute, as a share of what the uplink carries".into(),
        y_is_log: false,
        caption: "Each point is the busiest of its minutes.".into(),
        curves: vec![Curve {
            name: "load".into(),
            is_exact: false,
            policy: "load".into(),
            points: minutes.chunks(size).map(highest).collect(),
        }],
    }
}
