//! A page of figures with curves, for what is simulated or solved at several points.

use crate::escape::html as text;
use crate::html::STYLE;
use crate::html::figures::figure;
use crate::number::significant;
use crate::plot::{Axis, Chart, Kind, Line, Path, STRIP_WIDTH_MIN, Ticks, Wording};

/// Height of a figure on wide and on narrow pages, CSS pixels.
const HEIGHTS: (f64, f64) = (360.0, 320.0);
/// Colours of curves that have none of their own.
const COLOURS: [&str; 6] = ["p2", "p3", "p4", "p5", "p6", "p7"];

/// A page.
pub struct Page {
    /// Its title.
    pub title: String,
    /// Under the title: what was done.
    pub summary: String,
    /// One below the other.
    pub figures: Vec<Figure>,
}

/// One figure.
pub struct Figure {
    /// Above it.
    pub heading: String,
    /// What is along the horizontal axis, with its unit.
    pub x: String,
    /// Whether its ratios, not its differences, take equal space.
    pub x_is_log: bool,
    /// What is along the vertical axis, with its unit.
    pub y: String,
    /// Likewise.
    pub y_is_log: bool,
    /// What is to be seen.
    pub caption: String,
    /// In the order of the legend.
    pub curves: Vec<Curve>,
}

/// One curve.
pub struct Curve {
    /// As the legend has it; `fair` and `srpt` keep their colours.
    pub name: String,
    /// Computed ones are dashed, and have the colour of the simulated one of the same policy.
    pub is_exact: bool,
    /// The policy that gives its colour.
    pub policy: String,
    /// In rising order of x.
    pub points: Vec<(f64, f64)>,
}

/// The whole file, which needs no network.
pub fn render(page: &Page) -> String {
    let (title, summary) = (text(&page.title), text(&page.summary));
    let policies = policies(page);
    let figures: String = page
        .figures
        .iter()
        .enumerate()
        .map(|(index, one)| {
            let heading = text(&one.heading);
            let chart = chart(one, index, &policies);
            format!(
                "<h2>{heading}</h2>\n{}",
                figure(&chart, HEIGHTS, &one.caption)
            )
        })
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} - Sooner</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n<p class=\"by\">{summary}</p>\n{figures}</main>\n</body>\n</html>\n"
    )
}

/// All policies of a page that have no colour of their own.
fn policies(page: &Page) -> Vec<&str> {
    let mut names = Vec::new();
    for curve in page.figures.iter().flat_map(|figure| &figure.curves) {
        let name = curve.policy.as_str();
        if !names.contains(&name) && !matches!(name, "fair" | "srpt") {
            names.push(name);
        }
    }
    names
}

fn class(policy: &str, policies: &[&str]) -> String {
    match policies.iter().position(|name| *name == policy) {
        Some(place) => COLOURS[place % COLOURS.len()].into(),
        None => policy.into(),
    }
}

fn chart(figure: &Figure, index: usize, policies: &[&str]) -> Chart {
    let line = |curve: &Curve| Line {
        name: curve.name.clone(),
        class: class(&curve.policy, policies),
        dashed: curve.is_exact,
        path: Path::Straight,
        points: curve.points.clone(),
    };
    let axis = |title: &str, is_log: bool| Axis {
        title: if is_log {
            format!("{title}; logarithmic")
        } else {
            title.into()
        },
        kind: if is_log { Kind::Log } else { Kind::Linear },
        domain: None,
        ticks: Ticks::Round,
        label: Box::new(significant),
    };
    Chart {
        id: format!("figure-{index}"),
        name: figure.heading.clone(),
        description: format!("{} against {}.", figure.y, figure.x),
        x: axis(&figure.x, figure.x_is_log),
        y: axis(&figure.y, figure.y_is_log),
        lines: figure.curves.iter().map(line).collect(),
        level: None,
        strip_width_min: STRIP_WIDTH_MIN,
        wording: Wording {
            x: Box::new(significant),
            y: Box::new(significant),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_has_one_colour_on_a_page_and_computed_curves_are_dashed() {
        let curve = |policy: &str, is_exact| Curve {
            name: policy.into(),
            is_exact,
            policy: policy.into(),
            points: vec![(0.5, 2.0), (0.9, 10.0)],
        };
        let figure = |curves| Figure {
            heading: "mean & load".into(),
            x: "load".into(),
            x_is_log: false,
            y: "mean response".into(),
            y_is_log: true,
            caption: String::new(),
            curves,
        };
        let page = Page {
            title: "A sweep".into(),
            summary: String::new(),
            figures: vec![
                figure(vec![
                    curve("fair", false),
                    curve("las", false),
                    curve("las", true),
                ]),
                figure(vec![curve("fcfs", false), curve("las", false)]),
            ],
        };
        let html = render(&page);
        assert!(html.contains("mean &amp; load"));
        assert_eq!(policies(&page), ["las", "fcfs"]);
        assert!(
            html.contains("class=\"line p2 ideal\"") && html.contains("class=\"line fair\""),
            "{html}"
        );
    }
}
