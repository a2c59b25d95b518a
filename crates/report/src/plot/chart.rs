//! A chart: lines over two axes, with a readout under the pointer.

use super::axis::push;
use super::readout::{self, Wording};
use super::{Axis, Frame, Line};
use crate::escape;

/// What a chart shows.
pub struct Chart {
    /// Unique on the page; used to name the picture for screen readers.
    pub id: String,
    /// What a screen reader calls the picture.
    pub name: String,
    /// What a screen reader says of it.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Drawn in this order, the last on top.
    pub lines: Vec<Line>,
    /// A level worth a line of its own.
    pub level: Option<f64>,
    /// Least width of what can be pointed at, CSS pixels: a page of many pictures has fewer
    /// readouts.
    pub strip_width_min: f64,
    /// How the values under the pointer are written.
    pub wording: Wording,
}

impl Chart {
    /// The SVG element of this size.
    pub fn render(&self, frame: &Frame) -> String {
        let Frame {
            width,
            height,
            class,
            ..
        } = frame;
        let id = format!("{}-{class}", self.id);
        let (name, description) = (escape::html(&self.name), escape::html(&self.description));
        let mut svg = format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
             <title id=\"{id}-t\">{name}</title><desc id=\"{id}-d\">{description}</desc>"
        );
        let points = || self.lines.iter().flat_map(|line| line.points.iter());
        let x = self.x.scale(points().map(|p| p.0), frame.x_range());
        let y = self
            .y
            .scale(points().map(|p| p.1).chain(self.level), frame.y_range());
        self.x.draw_x(&mut svg, &x, frame);
        self.y.draw_y(&mut svg, &y, frame);
        if let Some(level) = self.level {
            let (left, right) = frame.x_range();
            let at = y.position(level);
            push(
                &mut svg,
                format_args!("<path class=\"level\" d=\"M{left:.1} {at:.1}H{right:.1}\"/>"),
            );
        }
        for line in &self.lines {
            line.draw(&mut svg, &x, &y);
        }
        let places = self.places();
        let places = readout::apart(&places, &x, self.strip_width_min);
        readout::draw(
            &mut svg,
            &places,
            &self.lines,
            (&x, &y),
            frame,
            &self.wording,
        );
        svg.push_str("</svg>");
        svg
    }

    /// Every x at which some line has a point, in rising order.
    fn places(&self) -> Vec<f64> {
        let mut places: Vec<f64> = self
            .lines
            .iter()
            .flat_map(|l| l.points.iter().map(|p| p.0))
            .collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }
}
