//! What the rows of `inside` show: the curve, the gate's choice, costs and gains, and what is
//! claimed of them.

use crate::measure::expression::ratio;
use crate::measure::rows::number;
use crate::measure::text::{Shown, Verdict, spread};
use serde_json::Value;

/// Of the most throughput there is, what is enough (thesis 9.3), and what is where a fifth may be
/// lost.
const ENOUGH: f64 = 0.95;
const ENOUGH_AT_A_FIFTH: f64 = 0.8;
/// What may be lost of the throughput, the name of that, and how much longer the class that waits
/// and all may take (thesis 9.4).
const COSTS: [(&str, f64, f64, f64); 2] =
    [("at 5 %", 0.95, 1.16, 1.06), ("at 20 %", 0.8, 1.37, 1.25)];
/// What such slices cannot tell.
const ERROR: f64 = 0.02;
/// How many times faster the class is that goes first.
const GAIN_MIN: f64 = 4.2;
const FIELDS: [&str; 4] = [
    "/classes/0/mean_response_ms",
    "/classes/1/mean_response_ms",
    "/all/mean_response_ms",
    "/throughput_per_sec",
];

/// What the curve and the gate's search say.
pub struct Found {
    /// Each limit's throughput, of the most, and half of its interval.
    pub shares: Vec<(f64, f64, f64)>,
    /// The limit with the most throughput.
    pub best: u32,
    /// The fewest with 0.95 and with 0.8 of it.
    enough: u32,
    pub enough_at_a_fifth: u32,
    /// What the gate finds enough by itself.
    pub choice: u32,
    is_found: bool,
    steps: usize,
    seconds: f64,
}

fn of_part<'a>(rows: &'a [Value], part: &'a str) -> impl Iterator<Item = &'a Value> {
    rows.iter().filter(move |row| row["part"] == part)
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(number).collect()
}

impl Found {
    /// From rows in which the gate has tried something.
    pub fn of(rows: &[Value]) -> Option<Found> {
        let curve: Vec<&Value> = of_part(rows, "curve").collect();
        let limits = numbers(&curve.first()?["limits_transactions"]);
        let rounds: Vec<Vec<f64>> = curve
            .iter()
            .map(|row| numbers(&row["transactions_per_sec"]))
            .collect();
        let rates: Vec<Vec<f64>> = (0..limits.len())
            .map(|at| {
                rounds
                    .iter()
                    .filter_map(|round| round.get(at).copied())
                    .collect()
            })
            .collect();
        let sum = |rates: &Vec<f64>| rates.iter().sum::<f64>();
        let most = rates
            .iter()
            .max_by(|one, other| sum(one).total_cmp(&sum(other)))?;
        let shares: Vec<(f64, f64, f64)> = limits
            .iter()
            .zip(&rates)
            .map(|(limit, rates)| {
                let (share, half) = ratio(rates, most);
                (*limit, share, half)
            })
            .collect();
        let first = |least: f64| {
            let first = shares.iter().find(|(_, share, _)| *share >= least)?;
            Some(first.0 as u32)
        };
        let choice = of_part(rows, "choice").next()?;
        let steps = choice["steps"].as_array()?;
        Some(Found {
            best: first(1.0)?,
            enough: first(ENOUGH)?,
            enough_at_a_fifth: first(ENOUGH_AT_A_FIFTH)?,
            choice: choice["limit_transactions"].as_u64()? as u32,
            is_found: choice["is_found"] == true,
            steps: steps.len(),
            seconds: number(&steps.last()?[0]),
            shares,
        })
    }
}

/// All of it; none where a part was not measured.
pub fn all(name: &str, rows: &[Value]) -> Option<Shown> {
    let found = Found::of(rows)?;
    let mut shown = Shown::default();
    limits(name, rows, &found, &mut shown)?;
    costs(name, rows, &mut shown)?;
    gains(name, rows, &mut shown)?;
    Some(shown)
}

fn limits(name: &str, rows: &[Value], found: &Found, shown: &mut Shown) -> Option<()> {
    let Found { best, choice, .. } = found;
    shown.tables += &format!(
        "\n## {name}\n\n| inside | throughput, of that with {best} | half of its 95 % interval |\n|---|---|---|\n"
    );
    for (limit, share, half) in &found.shares {
        shown.tables += &format!("| {limit} | {share:.3} | {half:.3} |\n");
    }
    shown.tables += &format!(
        "\n{best} inside give the most; {} are enough for {ENOUGH} of it, {} for {ENOUGH_AT_A_FIFTH}.\n\n",
        found.enough, found.enough_at_a_fifth
    );
    let by_turns = &of_part(rows, "choice by turns").next()?["transactions_per_sec"];
    let (share, half) = ratio(&numbers(&by_turns[0]), &numbers(&by_turns[1]));
    shown.tables += &format!(
        "The gate chose {choice} after {} changes in {:.0} s, with {share:.3} (± {half:.3}) of the throughput with {best} inside.\n\n",
        found.steps, found.seconds
    );
    let what = |what: &str| format!("{name}: {what}");
    let above = f64::from(*choice) - f64::from(found.enough);
    shown.verdicts.extend([
        Verdict {
            holds: found.is_found,
            text: what("the gate has found a limit"),
        },
        Verdict::at_least(
            &what("throughput at the gate's choice / at the best"),
            share,
            ENOUGH,
        ),
        Verdict::at_most(
            &what("the gate's choice - the fewest that are enough"),
            above,
            2.0,
        ),
        Verdict::at_most(&what("changes until then"), found.steps as f64, 10.0),
    ]);
    Some(())
}

fn costs(name: &str, rows: &[Value], shown: &mut Shown) -> Option<()> {
    let costs = of_part(rows, "costs by turns").next()?;
    let each = |field: &str| [0, 1, 2].map(|at| numbers(&costs[field][at]));
    let figures = [each("transactions_per_sec"), each("low_ms"), each("all_ms")];
    shown.tables +=
        "| of FIFO at its best, by turns | throughput | low | all |\n|---|---|---|---|\n";
    for (at, (loss, rate_share, low_most, all_most)) in (1..).zip(COSTS) {
        let of_fifo = figures
            .each_ref()
            .map(|figures| ratio(&figures[at], &figures[0]));
        let cells = of_fifo.map(|(share, half)| format!("{share:.3} (± {half:.3})"));
        let limit = &costs["limits_transactions"][at];
        shown.tables += &format!("| priority, {limit} inside | {} |\n", cells.join(" | "));
        let what = |what: &str| format!("{name}, {loss}: {what} / FIFO at its best");
        shown.verdicts.extend([
            Verdict::at_least(&what("throughput"), of_fifo[0].0, rate_share - ERROR),
            Verdict::at_most(&what("low"), of_fifo[1].0, low_most),
            Verdict::at_most(&what("all"), of_fifo[2].0, all_most),
        ]);
    }
    shown.tables.push('\n');
    Some(())
}

fn gains(name: &str, rows: &[Value], shown: &mut Shown) -> Option<()> {
    let runs: Vec<&Value> = of_part(rows, "priorities").collect();
    // The first turn has the ways in their order.
    let ways: Vec<&str> = runs
        .iter()
        .filter(|run| run["turn"] == 0)
        .filter_map(|run| run["way"].as_str())
        .collect();
    // Two ways may be the same, such as two limits: what is measured of the one counts once for it,
    // by its place in the turn.
    let turns = runs.len() / ways.len().max(1);
    let mut all = vec![[const { Vec::new() }; FIELDS.len()]; ways.len()];
    for turn in 0..turns {
        let of_turn = runs.iter().filter(|run| run["turn"] == turn);
        for (place, run) in of_turn.enumerate() {
            let way = (place + turn) % ways.len();
            for (figures, field) in all[way].iter_mut().zip(FIELDS) {
                figures.push(run["report"].pointer(field).map_or(f64::NAN, number));
            }
        }
    }
    shown.tables +=
        "| way | high, ms | low, ms | all, ms | transactions a second |\n|---|---|---|---|---|\n";
    for (way, figures) in ways.iter().zip(&all) {
        let cells = figures.each_ref().map(|figures| spread(figures, 1));
        shown.tables += &format!("| {way} | {} |\n", cells.join(" | "));
    }
    let [_, priority, fifth, large_fifo, large, pgbouncer] = &all[..] else {
        return None;
    };
    let low_of_high = |[high, low, ..]: &[Vec<f64>; 4]| ratio(low, high);
    let (gain, half) = low_of_high(priority);
    shown.tables += &format!(
        "\nLow / high: {gain:.1} (± {half:.1}) at 5 %, {:.1} at 20 %; with 100 inside {:.2}, and without classes {:.2}.\n",
        low_of_high(fifth).0,
        low_of_high(large).0,
        low_of_high(large_fifo).0,
    );
    shown.tables += &format!(
        "PgBouncer's high class / the gate's: {:.1}.\n",
        ratio(&pgbouncer[0], &priority[0]).0
    );
    shown.verdicts.push(Verdict::at_least(
        &format!("{name}: low / high"),
        gain,
        GAIN_MIN,
    ));
    Some(())
}
