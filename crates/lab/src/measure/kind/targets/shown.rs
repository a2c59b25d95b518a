//! What the rows of `targets` show: what each class achieved of its target, variability, and more
//! load than targets allow.

use super::{Class, Target, TargetKeys};
use crate::measure::expression::{median, ratio};
use crate::measure::rows::number;
use crate::measure::text::{Shown, Verdict, spread};
use serde_json::Value;

/// Achieved, of a target for a percentile.
const PERCENTILE_MAX: f64 = 1.05;
/// The latest class over the least late, where lateness is shared.
const PROPORTION_MAX: f64 = 1.15;

/// All of it.
pub fn all(keys: &TargetKeys, rows: &[Value]) -> Shown {
    let mut shown = Shown {
        tables: "| row | class | target, of R or of the percentile without targets | achieved / target, mean and half of its 95 % interval | median and range |\n|---|---|---|---|---|\n".into(),
        verdicts: Vec::new(),
    };
    let mut slower = Vec::new();
    for row in &keys.row {
        let counted = counted(rows, &row.name);
        slower.extend(counted.iter().map(|row| number(&row["all_of_r"])));
        if !counted.is_empty() {
            achieved(keys, &row.name, &row.classes, &counted, &mut shown);
        }
    }
    shown.tables += &format!(
        "\nMean of all with targets, of R without: {}\n",
        spread(&slower, 3)
    );
    variability(keys, rows, &mut shown);
    more_load(keys, rows, &mut shown);
    shown
}

/// Of each turn the try in which R changed least.
fn counted<'a>(rows: &'a [Value], name: &str) -> Vec<&'a Value> {
    let mut counted: Vec<&Value> = Vec::new();
    let drift = |row: &Value| number(&row["r_changed_by"]);
    for row in rows.iter().filter(|row| row["row"] == name) {
        match counted.iter_mut().find(|one| one["turn"] == row["turn"]) {
            Some(one) if drift(row) < drift(one) => *one = row,
            Some(_) => {}
            None => counted.push(row),
        }
    }
    counted
}

/// What a class has achieved in a run, of its target.
fn of_target(classes: &[Class], at: usize, row: &Value) -> f64 {
    number(&row["report"]["classes"][at][classes[at].field()]) / number(&row["targets_ms"][at])
}

fn achieved(keys: &TargetKeys, name: &str, classes: &[Class], rows: &[&Value], shown: &mut Shown) {
    for (at, class) in classes.iter().enumerate() {
        let achieved: Vec<f64> = rows.iter().map(|row| of_target(classes, at, row)).collect();
        let (words, most) = match class.target() {
            Target::Mean(of) => (format!("mean {of}"), keys.mean_max),
            Target::Percentile(percent, of) => (format!("p{percent} {of}"), PERCENTILE_MAX),
            Target::Rest => ("mean, what is left over".into(), keys.mean_max),
        };
        let (mean, half) = ratio(&achieved, &[1.0]);
        let number = at + 1;
        shown.tables += &format!(
            "| {name} | c{number} | {words} | {mean:.3} (± {half:.3}) | {} |\n",
            spread(&achieved, 3),
        );
        let what = format!("{} {name}, c{number}, {words}", keys.set_up);
        // An interval of half of what is allowed, around all that is allowed.
        let upper_most = most + (most - 1.0) / 2.0;
        shown.verdicts.extend([
            Verdict::at_most(&format!("{what}: achieved / target"), mean, most),
            Verdict::at_most(
                &format!("{what}: upper end of its interval"),
                mean + half,
                upper_most,
            ),
        ]);
    }
}

fn variability(keys: &TargetKeys, rows: &[Value], shown: &mut Shown) {
    let c2 = |is_wanted: &dyn Fn(&Value) -> bool| {
        let wanted = rows.iter().filter(|row| is_wanted(row));
        wanted
            .map(|row| number(&row["report"]["all"]["response_c2"]))
            .collect::<Vec<f64>>()
    };
    let alone = c2(&|row| row["row"] == "variability, without a gate");
    let [before, after] = [false, true].map(|is_reduced| {
        c2(&|row| row["row"] == "variability" && row["is_reduced"] == is_reduced)
    });
    let inside = rows.iter().find_map(|row| row["inside"].as_u64());
    shown.tables += &format!(
        "\nC2 of all response times: {} without a gate, {} with {} inside, reduced {}\n\n",
        spread(&alone, 3),
        spread(&before, 3),
        inside.unwrap_or(keys.inside.into()),
        spread(&after, 3)
    );
    let pairs: Vec<f64> = after
        .iter()
        .zip(&before)
        .map(|(one, other)| one / other)
        .collect();
    let what = format!("{}: C2, reduced", keys.set_up);
    shown
        .verdicts
        .push(Verdict::at_most(&what, median(&after), keys.c2_max));
    // The paper's bound is of many inside; with few, first come first served may already be far
    // below it.
    let what = format!("{what} / first come first served with as many inside");
    shown
        .verdicts
        .push(Verdict::at_most(&what, median(&pairs), 1.0));
}

fn more_load(keys: &TargetKeys, rows: &[Value], shown: &mut Shown) {
    shown.tables += "| late | users | achieved / target: c1 | c2 | c3 |\n|---|---|---|---|---|\n";
    let name = &keys.set_up;
    for row in rows.iter().filter(|row| row["row"] == "more load") {
        let achieved: Vec<f64> = (0..keys.more_load.len())
            .map(|at| of_target(&keys.more_load, at, row))
            .collect();
        let cells: Vec<String> = achieved.iter().map(|one| format!("{one:.2}")).collect();
        let (late, users) = (row["late"].as_str().unwrap_or_default(), &row["users"]);
        shown.tables += &format!("| {late} | {users} | {} |\n", cells.join(" | "));
        if *users != 300 {
            continue;
        }
        let most = achieved.iter().copied().fold(0.0, f64::max);
        let least = achieved.iter().copied().fold(f64::INFINITY, f64::min);
        shown.verdicts.push(match late {
            "by-priority" => {
                let what =
                    format!("{name}: thrice the users, by priority: c1 and c2, achieved / target");
                Verdict::at_most(&what, achieved[0].max(achieved[1]), keys.mean_max)
            }
            _ => {
                let what =
                    format!("{name}: thrice the users, in proportion: the latest / the least late");
                Verdict::at_most(&what, most / least, PROPORTION_MAX)
            }
        });
    }
}
