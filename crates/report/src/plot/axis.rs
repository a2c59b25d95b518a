//! An axis: what it shows, how its values are written, its grid lines and labels.

use super::frame::LABEL_HEIGHT;
use super::{Frame, Kind, Scale};
use crate::escape;
use std::fmt::Write;

/// One axis of a chart.
pub struct Axis {
    /// What is shown, with its unit.
    pub title: String,
    /// How values are spread.
    pub kind: Kind,
    /// Exactly this domain; otherwise it covers the lines.
    pub domain: Option<(f64, f64)>,
    /// Where the labels stand.
    pub ticks: Ticks,
    /// How a value is written beside a tick.
    pub label: Box<dyn Fn(f64) -> String>,
}

/// Where an axis has its labels.
pub enum Ticks {
    /// At round numbers.
    Round,
    /// At these values, each with a second line below its label.
    At(Vec<(f64, String)>),
}

/// A label at a position: its first line and perhaps a second.
struct Label {
    position: f64,
    lines: Vec<String>,
}

impl Axis {
    /// Lines of text in each of its labels.
    pub fn label_rows(&self) -> usize {
        match self.ticks {
            Ticks::Round => 1,
            Ticks::At(_) => 2,
        }
    }

    /// The scale of this axis over `range`, for lines that take these `values`.
    pub fn scale(&self, values: impl Iterator<Item = f64>, range: (f64, f64)) -> Scale {
        match self.domain {
            Some(domain) => Scale::exact(self.kind, domain, range),
            None => Scale::covering(self.kind, values, range),
        }
    }

    /// Draws grid, labels and title of a horizontal axis.
    pub fn draw_x(&self, svg: &mut String, scale: &Scale, frame: &Frame) {
        let (bottom, top) = frame.y_range();
        let labels = thinned(
            self.labels(svg, scale, frame.x_labels_max, |p| {
                format!("<path class=\"grid\" d=\"M{p:.1} {top:.1}V{bottom:.1}\"/>")
            }),
            frame.x_labels_max,
        );
        for label in labels {
            for (i, line) in label.lines.iter().enumerate() {
                let y = bottom + 17.0 + LABEL_HEIGHT * i as f64;
                let class = if i == 0 { "tick" } else { "tick faint" };
                let text = escape::html(line);
                let x = label.position;
                push(
                    svg,
                    format_args!(
                        "<text class=\"{class} mid\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
                    ),
                );
            }
        }
        let (x, y) = (
            (frame.x_range().0 + frame.x_range().1) / 2.0,
            frame.height - 6.0,
        );
        let title = escape::html(&self.title);
        push(
            svg,
            format_args!("<text class=\"axis mid\" x=\"{x:.1}\" y=\"{y:.1}\">{title}</text>"),
        );
    }

    /// Draws grid and labels of a vertical axis; its title stands above the picture.
    pub fn draw_y(&self, svg: &mut String, scale: &Scale, frame: &Frame) {
        let (left, right) = frame.x_range();
        let labels = self.labels(svg, scale, 5, |p| {
            format!("<path class=\"grid\" d=\"M{left:.1} {p:.1}H{right:.1}\"/>")
        });
        for label in labels {
            let (x, y) = (left - 8.0, label.position + 4.0);
            let text = escape::html(&label.lines[0]);
            push(
                svg,
                format_args!("<text class=\"tick end\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"),
            );
        }
    }

    /// Draws the grid lines and returns the labels.
    fn labels(
        &self,
        svg: &mut String,
        scale: &Scale,
        wanted: usize,
        grid: impl Fn(f64) -> String,
    ) -> Vec<Label> {
        let mut labels = Vec::new();
        match &self.ticks {
            Ticks::Round => {
                for tick in scale.ticks(wanted) {
                    let position = scale.position(tick.value);
                    if tick.labelled {
                        svg.push_str(&grid(position));
                        labels.push(Label {
                            position,
                            lines: vec![(self.label)(tick.value)],
                        });
                    } else {
                        svg.push_str(&grid(position).replace("\"grid\"", "\"grid fine\""));
                    }
                }
            }
            Ticks::At(ticks) => {
                for (value, below) in ticks {
                    let position = scale.position(*value);
                    svg.push_str(&grid(position));
                    labels.push(Label {
                        position,
                        lines: vec![(self.label)(*value), below.clone()],
                    });
                }
            }
        }
        labels
    }
}

/// Every k-th label, so that no more than `max` remain; first and last stay where the step allows.
fn thinned(labels: Vec<Label>, max: usize) -> Vec<Label> {
    let step = (1..)
        .find(|step| labels.len().saturating_sub(1) / step < max)
        .unwrap_or(1);
    let even = (1..=labels.len())
        .find(|s| *s >= step && labels.len().saturating_sub(1).is_multiple_of(*s));
    let step = even.filter(|even| *even <= 2 * step).unwrap_or(step);
    labels.into_iter().step_by(step).collect()
}

/// Appends formatted text; writing to a string cannot fail.
pub fn push(svg: &mut String, text: std::fmt::Arguments<'_>) {
    svg.write_fmt(text).expect("writing to a string");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(n: usize) -> Vec<Label> {
        (0..n)
            .map(|i| Label {
                position: i as f64,
                lines: vec![],
            })
            .collect()
    }

    #[test]
    fn thinning_keeps_both_ends_where_it_can() {
        let kept: Vec<f64> = thinned(labels(11), 6).iter().map(|l| l.position).collect();
        assert_eq!(kept, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        let kept: Vec<f64> = thinned(labels(11), 5).iter().map(|l| l.position).collect();
        assert_eq!(kept, [0.0, 5.0, 10.0]);
    }

    #[test]
    fn few_labels_all_stay() {
        assert_eq!(thinned(labels(4), 5).len(), 4);
        assert_eq!(thinned(labels(1), 5).len(), 1);
        assert!(thinned(labels(0), 5).is_empty());
    }
}
