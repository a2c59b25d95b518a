//! Bars and levels at whole places of the horizontal axis: figures of several cases side by side.

use super::axis::push;
use super::{Line, Scale};

/// Share of a place that its bars take together.
const FILLED: f64 = 0.8;
/// Between two bars, CSS pixels; narrow bars have less.
const GAP: f64 = 1.0;

/// Draws bar `nth` of `of` at every point of `line`.
pub fn draw(svg: &mut String, line: &Line, (nth, of): (usize, usize), x: &Scale, y: &Scale) {
    let mut path = String::new();
    for &(px, py) in line.points.iter().filter(|(_, py)| y.shows(*py)) {
        let all = x.unit_at(px) * FILLED;
        let each = all / of.max(1) as f64;
        let left = x.position(px) - all / 2.0 + each * nth as f64;
        let (width, top, bottom) = (each - GAP.min(each / 4.0), y.position(py), y.start());
        push(
            &mut path,
            format_args!("M{left:.1} {bottom:.1}V{top:.1}h{width:.1}V{bottom:.1}z"),
        );
    }
    let class = &line.class;
    push(
        svg,
        format_args!("<path class=\"bar {class}\" d=\"{path}\"/>"),
    );
}

/// Draws a level across the bars at every point of `line`.
pub fn draw_levels(svg: &mut String, line: &Line, x: &Scale, y: &Scale) {
    let mut path = String::new();
    for &(px, py) in line.points.iter().filter(|(_, py)| y.shows(*py)) {
        let half = x.unit_at(px) * (FILLED + 0.1) / 2.0;
        let (at, height) = (x.position(px), y.position(py));
        let (left, right) = (at - half, at + half);
        push(&mut path, format_args!("M{left:.1} {height:.1}H{right:.1}"));
    }
    let class = &line.class;
    push(
        svg,
        format_args!("<path class=\"line ideal {class}\" d=\"{path}\"/>"),
    );
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Path};
    use super::*;

    fn line(path: Path) -> Line {
        Line {
            name: "n".into(),
            class: "c".into(),
            dashed: false,
            path,
            points: vec![(0.0, 10.0), (1.0, 0.0), (2.0, 100.0)],
        }
    }

    #[test]
    fn bars_stand_side_by_side_from_the_bottom() {
        let x = Scale::exact(Kind::Linear, (-0.5, 2.5), (0.0, 300.0));
        let y = Scale::exact(Kind::Log, (1.0, 100.0), (200.0, 0.0));
        let mut svg = String::new();
        line(Path::Bar { nth: 1, of: 2 }).draw(&mut svg, &x, &y);
        assert!(svg.contains("M50.0 200.0V100.0h39.0V200.0z"), "{svg}");
        assert_eq!(svg.matches('z').count(), 2, "a logarithm of 0 is not drawn");
    }

    #[test]
    fn a_bar_has_a_value_only_at_its_place() {
        let levels = line(Path::Level);
        assert_eq!(levels.value_at(2.0), Some(100.0));
        assert_eq!(levels.value_at(1.5), None);
        assert_eq!(levels.value_at(-1.0), None);
    }
}
