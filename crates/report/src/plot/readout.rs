//! What a chart shows under the pointer: the values of all lines at one place, by CSS alone.
//!
//! The plot is covered with invisible strips. The one under the pointer (or the finger) shows a
//! crosshair, a dot on every line and a small box with the values.

use super::axis::push;
use super::{Frame, Line, Scale};
use crate::escape;

/// Narrower strips cannot be pointed at.
pub const STRIP_WIDTH_MIN: f64 = 7.0;
const ROW_HEIGHT: f64 = 17.0;
const CHARACTER_WIDTH: f64 = 6.7;

/// How values are written in the box.
pub struct Wording {
    /// The heading: where the pointer is.
    pub x: Box<dyn Fn(f64) -> String>,
    /// A line's value.
    pub y: Box<dyn Fn(f64) -> String>,
}

/// Draws a strip for each of `places`, which are in rising order.
pub fn draw(
    svg: &mut String,
    places: &[f64],
    lines: &[Line],
    (x, y): (&Scale, &Scale),
    frame: &Frame,
    wording: &Wording,
) {
    let positions: Vec<f64> = places.iter().map(|place| x.position(*place)).collect();
    for (i, place) in places.iter().enumerate() {
        let (left, right) = strip(&positions, i, frame);
        let (bottom, top) = frame.y_range();
        let (width, height, at) = (right - left, bottom - top, positions[i]);
        push(
            svg,
            format_args!(
                "<g class=\"hit\"><rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
            ),
        );
        push(
            svg,
            format_args!(
                "<g class=\"readout\"><path class=\"cross\" d=\"M{at:.1} {top:.1}V{bottom:.1}\"/>"
            ),
        );
        let values: Vec<(&Line, f64)> = lines
            .iter()
            .filter_map(|line| Some((line, line.value_at(*place)?)))
            .filter(|(_, value)| y.shows(*value))
            .collect();
        for (line, value) in &values {
            let (class, cy) = (&line.class, y.position(*value));
            push(
                svg,
                format_args!("<circle class=\"{class}\" cx=\"{at:.1}\" cy=\"{cy:.1}\" r=\"3\"/>"),
            );
        }
        draw_box(svg, at, frame, &(wording.x)(*place), &values, wording);
        svg.push_str("</g></g>");
    }
}

/// The places that are at least `width_min` apart.
pub fn apart(places: &[f64], x: &Scale, width_min: f64) -> Vec<f64> {
    let mut chosen: Vec<f64> = Vec::new();
    for &place in places.iter().filter(|place| x.shows(**place)) {
        let far = |last: &f64| x.position(place) - x.position(*last) >= width_min;
        if chosen.last().is_none_or(far) {
            chosen.push(place);
        }
    }
    chosen
}

/// From half-way to the neighbour on the left to half-way to the one on the right.
fn strip(positions: &[f64], i: usize, frame: &Frame) -> (f64, f64) {
    let (first, last) = frame.x_range();
    let left = if i == 0 {
        first
    } else {
        (positions[i - 1] + positions[i]) / 2.0
    };
    let right = positions
        .get(i + 1)
        .map_or(last, |next| (positions[i] + next) / 2.0);
    (left, right.max(left))
}

fn draw_box(
    svg: &mut String,
    at: f64,
    frame: &Frame,
    heading: &str,
    values: &[(&Line, f64)],
    wording: &Wording,
) {
    let rows: Vec<(&str, &str, String)> = values
        .iter()
        .map(|(line, value)| (line.class.as_str(), line.name.as_str(), (wording.y)(*value)))
        .collect();
    let longest = rows
        .iter()
        .map(|(_, name, value)| name.chars().count() + value.chars().count() + 4);
    let characters = longest
        .chain([heading.chars().count() * 11 / 10])
        .max()
        .unwrap_or(0);
    let width = characters as f64 * CHARACTER_WIDTH + 18.0;
    let height = (rows.len() + 1) as f64 * ROW_HEIGHT + 9.0;
    let (first, last) = frame.x_range();
    let beside = if at + 12.0 + width <= last {
        at + 12.0
    } else {
        at - 12.0 - width
    };
    let left = beside.max(first).min(last - width);
    let top = frame.top + 4.0;
    push(
        svg,
        format_args!(
            "<rect class=\"box\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"4\"/>"
        ),
    );
    let text = escape::html(heading);
    let (inside, mut y) = (left + 9.0, top + ROW_HEIGHT);
    push(
        svg,
        format_args!("<text class=\"head\" x=\"{inside:.1}\" y=\"{y:.1}\">{text}</text>"),
    );
    let (names, end) = (inside + 12.0, left + width - 9.0);
    for (class, name, value) in rows {
        y += ROW_HEIGHT;
        let (name, dot) = (escape::html(name), y - 4.0);
        push(
            svg,
            format_args!(
                "<circle class=\"{class}\" cx=\"{inside:.1}\" cy=\"{dot:.1}\" r=\"3.5\"/>"
            ),
        );
        push(
            svg,
            format_args!("<text x=\"{names:.1}\" y=\"{y:.1}\">{name}</text>"),
        );
        let value = escape::html(&value);
        push(
            svg,
            format_args!("<text class=\"end\" x=\"{end:.1}\" y=\"{y:.1}\">{value}</text>"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crowded_places_share_a_strip() {
        let x = Scale::exact(super::super::Kind::Linear, (0.0, 100.0), (0.0, 100.0));
        assert_eq!(
            apart(&[0.0, 1.0, 6.9, 7.0, 8.0, 20.0], &x, STRIP_WIDTH_MIN),
            [0.0, 7.0, 20.0]
        );
    }

    #[test]
    fn strips_tile_the_plot() {
        let frame = Frame::wide(300.0, 1);
        let positions = [100.0, 200.0, 500.0];
        let strips: Vec<_> = (0..3).map(|i| strip(&positions, i, &frame)).collect();
        assert_eq!(strips[0].0, frame.x_range().0);
        assert_eq!(strips[2].1, frame.x_range().1);
        assert!(strips.windows(2).all(|pair| pair[0].1 == pair[1].0));
    }
}
