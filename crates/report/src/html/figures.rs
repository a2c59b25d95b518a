//! The page's figures: response time by size, its distribution, and the run over time.

use super::charts::{self, Series};
use crate::escape::html as text;
use crate::groups::{policy_class, policy_name};
use crate::plot::{Chart, Frame, Line};
use sooner_stats::Report;

/// All figures, each with heading, legend and caption.
pub fn render(report: &Report) -> String {
    let runs = &report.runs;
    if runs.is_empty() {
        return String::new();
    }
    let series: Vec<Series<'_>> = runs
        .iter()
        .enumerate()
        .map(|(i, run)| Series {
            name: format!("{} measured", policy_name(run)),
            class: policy_class(runs, i),
            run,
        })
        .collect();
    let n = runs[0].by_size.len();
    let by_size_caption =
        format!("Requests in order of size, in {n} groups of equal count. {DASHED}");
    [
        section(
            "Response time by size",
            &charts::by_size(&series),
            (380.0, 330.0),
            &by_size_caption,
        ),
        section(
            "How many responses take how long",
            &charts::distribution(&series),
            (380.0, 330.0),
            DISTRIBUTION,
        ),
        section("Over time", &charts::over_time(&series), (270.0, 260.0), ""),
        section("", &charts::load(&runs[0]), (165.0, 165.0), LOAD),
    ]
    .concat()
}

const DASHED: &str = "Dashed: perfect schedulers with the very same arrivals.";
const DISTRIBUTION: &str = "Both axes are logarithmic. Further left is better; the right end is \
    the longest response. Dashed: perfect schedulers with the very same arrivals.";
const LOAD: &str = "Work that arrived in each second, as a share of what the link carries. Above 1 \
    a queue builds up under every policy; they differ in who waits in it.";

/// Heading, legend, both sizes of the picture, caption. An empty heading continues the section
/// before.
fn section(heading: &str, chart: &Chart, (wide, narrow): (f64, f64), caption: &str) -> String {
    let heading = if heading.is_empty() {
        String::new()
    } else {
        format!("<h2>{heading}</h2>\n")
    };
    heading + &figure(chart, (wide, narrow), caption)
}

/// Legend, both sizes of the picture, caption.
pub fn figure(chart: &Chart, (wide, narrow): (f64, f64), caption: &str) -> String {
    let legend = if chart.lines.len() > 1 {
        legend(&chart.lines)
    } else {
        String::new()
    };
    let rows = chart.x.label_rows();
    let wide = chart.render(&Frame::wide(wide, rows));
    let narrow = chart.render(&Frame::narrow(narrow, rows));
    let (unit, caption) = (text(&chart.y.title), text(caption));
    format!(
        "<figure>\n{legend}<p class=\"unit\">{unit}</p>\n{wide}\n{narrow}\n\
         <figcaption>{caption}</figcaption>\n</figure>\n"
    )
}

fn legend(lines: &[Line]) -> String {
    let item = |line: &Line| {
        let dash = if line.dashed { " ideal" } else { "" };
        let (class, name) = (&line.class, text(&line.name));
        format!(
            "<li><svg viewBox=\"0 0 28 10\" aria-hidden=\"true\">\
             <path class=\"line {class}{dash}\" d=\"M1 5H27\"/></svg>{name}</li>\n"
        )
    };
    let items: String = lines.iter().map(item).collect();
    format!("<ul class=\"legend\">\n{items}</ul>\n")
}
