//! How many transactions a database needs inside, and what the gate finds by itself.
//!
//! The curve and the comparison of the gate's choice with the best are measured by turns in short slices; while the gate looks, it is watched.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use sooner_report::curves::{Curve, Figure, Page, render};

use super::Effort;
use super::check::Checks;
use super::oltp::{Load, Place};
use super::record::Record;
use super::slices::{Slices, ratio};

pub const USERS: u32 = 100;
/// Transactions at a time that are tried; the last is what a pool usually has, or more.
const LIMITS: [u32; 12] = [1, 2, 3, 4, 5, 6, 8, 11, 16, 24, 40, 100];
/// Of transactions that are of another class than the rest.
const HIGH: &str = "high=0.1";
/// Of the most throughput there is, what is enough (thesis 9.3), and what is where a fifth may be lost.
const ENOUGH: f64 = 0.95;
const ENOUGH_AT_A_FIFTH: f64 = 0.8;

/// How much is measured.
pub struct Lengths {
    rounds: usize,
    pub pairs: usize,
    search_seconds: u32,
}

impl Lengths {
    /// For figures, the more repetitions the more of them, or only to see that it works.
    pub fn new(effort: Effort) -> Self {
        let repetitions = effort.repetitions as usize;
        match effort.quick {
            true => Self {
                rounds: 2,
                pairs: 2,
                search_seconds: 20,
            },
            false => Self {
                rounds: 12 * repetitions,
                pairs: 20 * repetitions,
                search_seconds: 900,
            },
        }
    }
}

/// What the curve says.
pub struct Found {
    /// The limit with the most throughput.
    pub best: u32,
    /// What the gate finds enough by itself.
    pub choice: u32,
    /// The fewest with 0.8 of it.
    pub enough_at_a_fifth: u32,
}

/// Each limit's rates, one a round.
type Rates = Vec<(u32, Vec<f64>)>;

/// What the gate did until it had found a limit: seconds, limit, and its words.
type Steps = Vec<(f64, u32, String)>;

/// The curve and the choice of one set-up, with what is claimed of them; a page with both as plots beside the record.
pub fn measure(
    place: &Place,
    name: &str,
    lengths: &Lengths,
    record: &mut Record,
    text: &mut String,
    checks: &mut Checks,
) -> anyhow::Result<Found> {
    let rates = curve(place, lengths, record)?;
    let shares = shares(&rates);
    let first = |least| first(&shares, least).context("nothing was measured");
    let (best, enough) = (first(1.0)?, first(ENOUGH)?);
    let enough_at_a_fifth = first(ENOUGH_AT_A_FIFTH)?;
    *text += &format!(
        "\n## {name}\n\n| inside | throughput, of that with {} | half of its 95 % interval |\n|---|---|---|\n",
        best
    );
    for (limit, share, half) in &shares {
        *text += &format!("| {limit} | {share:.3} | {half:.3} |\n");
    }
    *text += &format!(
        "\n{best} inside give the most; {enough} are enough for {ENOUGH} of it, {enough_at_a_fifth} for {ENOUGH_AT_A_FIFTH}.\n\n"
    );
    let (steps, is_found) = search(place, lengths)?;
    let &(seconds, choice, _) = steps.last().context("the gate tried nothing")?;
    record.add(&json!({"part": "choice", "is_found": is_found, "limit_transactions": choice, "steps": steps}))?;
    let (share, half) = side_by_side(place, lengths, choice, best, record)?;
    *text += &format!(
        "The gate chose {choice} after {} changes in {seconds:.0} s, with {share:.3} (± {half:.3}) of the throughput with {} inside.\n\n",
        steps.len(),
        best
    );
    checks.claim(is_found, format!("{name}: the gate has found a limit"));
    checks.at_least(
        &format!("{name}: throughput at the gate's choice / at the best"),
        share,
        ENOUGH,
    );
    let above = f64::from(choice) - f64::from(enough);
    let what = format!("{name}: the gate's choice - the fewest that are enough");
    checks.at_most(&what, above, 2.0);
    let changes = steps.len() as f64;
    checks.at_most(&format!("{name}: changes until then"), changes, 10.0);
    record.page(name, &render(&page(name, &shares, &steps)))?;
    Ok(Found {
        best,
        choice,
        enough_at_a_fifth,
    })
}

/// All, for so long at most. They change their class, which costs the gate a command on the server, wherever classes count or do not.
pub fn users(seconds: u32, seed: u32) -> Load<'static> {
    Load {
        classes: &[HIGH],
        ..Load::closed(USERS, seconds, seed)
    }
}

/// Every limit once a round, up and down by turns.
fn curve(place: &Place, lengths: &Lengths, record: &mut Record) -> anyhow::Result<Rates> {
    let mut rates: Rates = LIMITS.iter().map(|limit| (*limit, Vec::new())).collect();
    let mut slices = Slices::start(place, &users(3000, 1))?;
    for round in 0..lengths.rounds {
        let mut order: Vec<usize> = (0..rates.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            let (limit, rates) = &mut rates[at];
            rates.push(slices.rate(*limit)?);
        }
        let now: Vec<f64> = rates.iter().map(|(_, rates)| rates[round]).collect();
        record.add(&json!({"part": "curve", "round": round, "limits_transactions": LIMITS, "transactions_per_sec": now}))?;
    }
    Ok(rates)
}

/// Each limit's throughput, of the most, and half of its interval.
fn shares(rates: &Rates) -> Vec<(u32, f64, f64)> {
    let sum = |rates: &[f64]| rates.iter().sum::<f64>();
    let best = rates
        .iter()
        .max_by(|one, other| sum(&one.1).total_cmp(&sum(&other.1)));
    let best = best.map(|(_, rates)| rates.clone()).unwrap_or_default();
    rates
        .iter()
        .map(|(limit, rates)| {
            let (share, half) = ratio(rates, &best);
            (*limit, share, half)
        })
        .collect()
}

/// The fewest inside with this share of the most throughput, or more.
fn first(shares: &[(u32, f64, f64)], least: f64) -> Option<u32> {
    let first = shares.iter().find(|(_, share, _)| *share >= least);
    first.map(|(limit, _, _)| *limit)
}

/// What the gate finds while there is load, and whether it has found it.
fn search(place: &Place, lengths: &Lengths) -> anyhow::Result<(Steps, bool)> {
    let _gate = place.gate("[limits]\ntransactions = \"auto\"\ntransactions_max = 100\n")?;
    let _users = place.users_meanwhile(&users(lengths.search_seconds + 60, 2))?;
    let begin = Instant::now();
    let mut steps: Steps = Vec::new();
    loop {
        sleep(Duration::from_millis(200));
        let seconds = begin.elapsed().as_secs_f64();
        let log = fs::read_to_string(place.log())?;
        let words = |line: &str| Some(line.split_once(".s.PGSQL.5432: ")?.1.to_owned());
        for line in log.lines().filter_map(words).skip(steps.len()) {
            let limit = line.split(' ').next().unwrap_or_default().parse()?;
            eprintln!("{seconds:.0} s: {line}");
            let is_found = line.contains("enough");
            steps.push((seconds, limit, line));
            if is_found {
                return Ok((steps, true));
            }
        }
        if seconds > f64::from(lengths.search_seconds) {
            return Ok((steps, false));
        }
    }
}

/// The throughput at one limit, of that at another one.
fn side_by_side(
    place: &Place,
    lengths: &Lengths,
    one: u32,
    other: u32,
    record: &mut Record,
) -> anyhow::Result<(f64, f64)> {
    let mut slices = Slices::start(place, &users(3000, 3))?;
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..lengths.pairs {
        rates[0].push(slices.rate(one)?);
        rates[1].push(slices.rate(other)?);
    }
    record.add(&json!({"part": "choice by turns", "limits_transactions": [one, other], "transactions_per_sec": rates}))?;
    Ok(ratio(&rates[0], &rates[1]))
}

fn page(name: &str, shares: &[(u32, f64, f64)], steps: &Steps) -> Page {
    let points = shares.iter();
    let points = points.map(|(limit, share, _)| (f64::from(*limit), *share));
    let curve = |name: &str, points| Curve {
        name: name.to_owned(),
        is_exact: false,
        policy: name.to_owned(),
        points,
    };
    let mut stairs = Vec::new();
    for (at, (seconds, limit, _)) in steps.iter().enumerate() {
        let until = steps.get(at + 1).map_or(*seconds, |next| next.0);
        stairs.extend([(*seconds, f64::from(*limit)), (until, f64::from(*limit))]);
    }
    Page {
        title: format!("{name}: how many transactions at a time"),
        summary: format!("{USERS} users without a pause on PostgreSQL through `sooner gate`."),
        figures: vec![
            Figure {
                heading: "Throughput".into(),
                x: "transactions inside".into(),
                x_is_log: true,
                y: "of the most".into(),
                y_is_log: false,
                caption: "Every limit by turns, in slices of 0.6 s.".into(),
                curves: vec![curve("throughput", points.collect())],
            },
            Figure {
                heading: "What the gate tries".into(),
                x: "seconds".into(),
                x_is_log: false,
                y: "transactions inside".into(),
                y_is_log: true,
                caption: "Each number that it tries, by turns with one that it knows; the last is what it has found.".into(),
                curves: vec![curve("tried", stairs)],
            },
        ],
    }
}
