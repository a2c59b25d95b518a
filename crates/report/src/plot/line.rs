//! A line of a chart.

use super::axis::push;
use super::{Scale, bars};

/// One line of a chart, named in the legend.
#[derive(Clone, Debug)]
pub struct Line {
    /// As the legend calls it.
    pub name: String,
    /// CSS class that carries its colour.
    pub class: String,
    /// Dashed lines are computed, solid ones measured.
    pub dashed: bool,
    /// How its points are joined.
    pub path: Path,
    /// In rising order of x.
    pub points: Vec<(f64, f64)>,
}

/// How the points of a line are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Straight from point to point.
    Straight,
    /// Level until the next point: a distribution.
    Steps,
    /// Not joined: bars from the bottom, this one of so many side by side at each whole x.
    Bar {
        /// Counted from 0.
        nth: usize,
        /// Bars at each x.
        of: usize,
    },
    /// Not joined: a level across all bars of each whole x.
    Level,
}

impl Line {
    /// The path through all points that both scales can show; it is broken where one cannot.
    pub fn draw(&self, svg: &mut String, x: &Scale, y: &Scale) {
        match self.path {
            Path::Straight | Path::Steps => self.draw_path(svg, x, y),
            Path::Bar { nth, of } => bars::draw(svg, self, (nth, of), x, y),
            Path::Level => bars::draw_levels(svg, self, x, y),
        }
    }

    fn draw_path(&self, svg: &mut String, x: &Scale, y: &Scale) {
        let mut path = String::new();
        let mut pen_down = false;
        for &(px, py) in &self.points {
            if !(x.shows(px) && y.shows(py)) {
                pen_down = false;
                continue;
            }
            let (px, py) = (x.position(px), y.position(py));
            match (pen_down, self.path) {
                (false, _) => push(&mut path, format_args!("M{px:.1} {py:.1}")),
                (true, Path::Steps) => push(&mut path, format_args!("H{px:.1}V{py:.1}")),
                (true, _) => push(&mut path, format_args!("L{px:.1} {py:.1}")),
            }
            pen_down = true;
        }
        let dash = if self.dashed { " ideal" } else { "" };
        let class = &self.class;
        push(
            svg,
            format_args!("<path class=\"line {class}{dash}\" d=\"{path}\"/>"),
        );
    }

    /// The value at `x`: of the last point not after it (steps), of the nearest point, or of
    /// exactly this x (bars, levels).
    pub fn value_at(&self, x: f64) -> Option<f64> {
        let after = self.points.partition_point(|p| p.0 <= x);
        let before = after.checked_sub(1).map(|i| self.points[i]);
        let next = self.points.get(after).copied();
        match (self.path, before, next) {
            (Path::Straight, Some(b), Some(n)) if n.0 - x < x - b.0 => Some(n.1),
            (Path::Bar { .. } | Path::Level, Some(b), _) => (b.0 == x).then_some(b.1),
            (_, Some(b), _) => Some(b.1),
            (Path::Straight, None, next) => next.map(|n| n.1),
            (Path::Steps, None, _) => None,
            (Path::Bar { .. } | Path::Level, None, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn line(path: Path, points: Vec<(f64, f64)>) -> Line {
        Line {
            name: "n".into(),
            class: "c".into(),
            dashed: false,
            path,
            points,
        }
    }

    #[test]
    fn steps_hold_their_value_and_straight_lines_take_the_nearest() {
        let points = vec![(1.0, 10.0), (2.0, 20.0), (4.0, 40.0)];
        let steps = line(Path::Steps, points.clone());
        assert_eq!(
            [0.5, 1.9, 3.9, 9.0].map(|x| steps.value_at(x)),
            [None, Some(10.0), Some(20.0), Some(40.0)]
        );
        let straight = line(Path::Straight, points);
        assert_eq!(
            [0.5, 1.9, 3.9, 9.0].map(|x| straight.value_at(x)),
            [10.0, 20.0, 40.0, 40.0].map(Some)
        );
    }

    #[test]
    fn a_point_that_cannot_be_shown_breaks_the_line() {
        let scale = Scale::exact(Kind::Log, (1.0, 100.0), (0.0, 100.0));
        let mut svg = String::new();
        line(
            Path::Straight,
            vec![(1.0, 1.0), (2.0, 2.0), (5.0, 0.0), (7.0, 7.0), (9.0, 9.0)],
        )
        .draw(&mut svg, &scale, &scale);
        assert_eq!(svg.matches('M').count(), 2);
        assert_eq!(svg.matches('L').count(), 2);
        assert!(!svg.contains("NaN"));
    }
}
