//! The page's pictures: those of a case below its table, those of all cases before.

use super::palette::Palette;
use super::{Case, Figure, Page, charts};
use crate::escape::html as text;
use crate::html::charts::{self as common, Series};
use crate::html::figures::figure;
use crate::plot::Chart;

/// Heights of a picture, wide and narrow.
const TALL: (f64, f64) = (360.0, 320.0);
const FLAT: (f64, f64) = (250.0, 240.0);
const DASHED: &str = "Thin and dashed: perfect schedulers with the very same arrivals.";

/// The pictures of all cases together.
pub fn overall(page: &Page, palette: &Palette) -> String {
    let shown = page.figures.iter().filter_map(|kind| match kind {
        Figure::Range => Some(figure(&charts::range(page, palette)?, TALL, DASHED)),
        Figure::Cases => {
            let caption = format!("{}{DASHED}", numbered(page));
            Some(figure(&charts::cases(page, palette)?, TALL, &caption))
        }
        _ => None,
    });
    let shown: String = shown.collect();
    if shown.is_empty() {
        shown
    } else {
        format!("<h2>In one picture</h2>\n{shown}")
    }
}

/// Which case has which number, where their names are too long for the picture.
fn numbered(page: &Page) -> String {
    let names = charts::short_names(page);
    let measured = page.cases.iter().filter(|case| case.is_measured());
    let pairs = names.iter().zip(measured);
    let told: Vec<String> = pairs
        .filter(|(short, case)| **short != case.name)
        .map(|(short, case)| format!("{short}: {}", case.name))
        .collect();
    if told.is_empty() {
        String::new()
    } else {
        format!("{}. ", told.join(", "))
    }
}

/// The pictures of the case at `index`: each peer's first run that counts.
pub fn of_case(page: &Page, case: &Case, index: usize, palette: &Palette) -> String {
    let series: Vec<Series<'_>> = case
        .peers
        .iter()
        .filter_map(|peer| {
            let one = peer.counted().next()?;
            Some(Series {
                name: peer.name.clone(),
                class: palette.class(&peer.name).to_owned(),
                run: &one.run,
            })
        })
        .collect();
    if series.is_empty() {
        return String::new();
    }
    let seeds = seed_words(&series);
    let shown = page.figures.iter().filter_map(|kind| {
        let (heading, chart, heights, caption) = match kind {
            Figure::BySize => (
                "Response time by size",
                Some(common::by_size(&series)),
                TALL,
                DASHED,
            ),
            Figure::Distribution => (
                "How many responses take how long",
                Some(common::distribution(&series)),
                TALL,
                DASHED,
            ),
            Figure::OverTime => (
                "Response time over time",
                Some(common::over_time(&series)),
                FLAT,
                DASHED,
            ),
            Figure::Connections => (
                "Open connections",
                charts::connections(case, palette),
                FLAT,
                "",
            ),
            Figure::Range | Figure::Cases => return None,
        };
        let chart = chart.filter(has_points)?;
        let chart = Chart {
            id: format!("case{index}-{}", chart.id),
            strip_width_min: charts::STRIP_WIDTH_MIN,
            ..chart
        };
        let (heading, caption) = (text(heading), format!("{seeds} {caption}"));
        Some(format!(
            "<h3>{heading}</h3>\n{}",
            figure(&chart, heights, caption.trim_end())
        ))
    });
    shown.collect()
}

fn has_points(chart: &Chart) -> bool {
    chart.lines.iter().any(|line| !line.points.is_empty())
}

/// Which of the repetitions is drawn.
fn seed_words(series: &[Series<'_>]) -> String {
    let first = series[0].run.seed;
    if series.iter().all(|one| one.run.seed == first) {
        return format!("The run with seed {first}.");
    }
    let each = series
        .iter()
        .map(|one| format!("{} {}", one.name, one.run.seed));
    let each: Vec<String> = each.collect();
    format!("Runs with different seeds: {}.", each.join(", "))
}
