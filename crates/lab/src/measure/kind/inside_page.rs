//! A page of what a class that goes first gains, by how many transactions are let in at a time.

use super::ways_inside::Way;
use serde_json::Value;
use sooner_report::curves::{Curve, Figure, Page};
use sooner_stats::summary::median_and_spread;

/// The mean of the class that goes first, ms, and transactions a second.
const FIGURES: [(&str, &str, &str, bool); 2] = [
    (
        "The class that goes first",
        "/report/classes/0/mean_response_ms",
        "mean response time, ms",
        true,
    ),
    (
        "Throughput",
        "/report/throughput_per_sec",
        "transactions a second",
        false,
    ),
];

/// Of ways by their names, as rows have them; none where all let in as many.
pub fn page(title: &str, ways: &[(&str, &Way)], rows: &[Value]) -> Option<Page> {
    let mut limits: Vec<u32> = ways.iter().filter_map(|(_, way)| way.inside).collect();
    limits.sort_unstable();
    limits.dedup();
    let [least, .., most] = limits[..] else {
        return None;
    };
    let figure = |(heading, field, y, y_is_log): (&str, &str, &str, bool)| Figure {
        heading: heading.to_owned(),
        x: "transactions let in at a time".to_owned(),
        x_is_log: true,
        y: y.to_owned(),
        y_is_log,
        caption: "Medians. What lets in all is a line across.".to_owned(),
        curves: curves(ways, rows, field, [least, most]),
    };
    Some(Page {
        title: title.to_owned(),
        summary: "Who goes first is said outside, inside, or in both places.".to_owned(),
        figures: FIGURES.map(figure).into(),
    })
}

/// What the names of ways begin with is a curve each.
fn curves(ways: &[(&str, &Way)], rows: &[Value], field: &str, ends: [u32; 2]) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for (name, way) in ways {
        let Some(y) = median(rows, name, field) else {
            continue;
        };
        let x = way.inside.map_or(ends.to_vec(), |limit| vec![limit]);
        let points = x.into_iter().map(|limit| (f64::from(limit), y));
        let family = name.split(',').next().unwrap_or(name).to_owned();
        let at = curves.iter().position(|curve| curve.name == family);
        let at = at.unwrap_or_else(|| {
            curves.push(Curve {
                name: family.clone(),
                is_exact: false,
                policy: family,
                points: Vec::new(),
            });
            curves.len() - 1
        });
        curves[at].points.extend(points);
    }
    for curve in &mut curves {
        curve.points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    curves
}

fn median(rows: &[Value], way: &str, field: &str) -> Option<f64> {
    let own = rows.iter().filter(|row| row["way"] == way);
    let values: Vec<f64> = own.filter_map(|row| row.pointer(field)?.as_f64()).collect();
    Some(median_and_spread(&values)?.median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn way(inside: Option<u32>) -> Way {
        Way {
            inside,
            ..Way::default()
        }
    }

    #[test]
    fn a_family_is_a_curve_and_what_lets_in_all_a_line_across() {
        let [all, four, two] = [None, Some(4), Some(2)].map(way);
        let ways = [
            ("inside", &all),
            ("outside, 4", &four),
            ("outside, 2", &two),
        ];
        let row = |way: &str, ms: f64| {
            let classes = json!([{ "mean_response_ms": ms }]);
            json!({"way": way, "report": {"classes": classes, "throughput_per_sec": 5.0}})
        };
        let rows = [
            ("inside", 7.0),
            ("outside, 4", 3.0),
            ("outside, 4", 9.0),
            ("outside, 4", 4.0),
        ];
        let mut rows: Vec<Value> = rows.map(|(way, ms)| row(way, ms)).into();
        rows.push(row("outside, 2", 1.0));
        let page = page("x", &ways, &rows).unwrap();
        let curves = &page.figures[0].curves;
        let found: Vec<_> = curves
            .iter()
            .map(|own| (own.name.as_str(), own.points.clone()))
            .collect();
        let across = vec![(2.0, 7.0), (4.0, 7.0)];
        assert_eq!(
            found,
            [
                ("inside", across),
                ("outside", vec![(2.0, 1.0), (4.0, 4.0)])
            ]
        );
        assert!(super::page("x", &ways[..2], &rows).is_none());
    }
}
