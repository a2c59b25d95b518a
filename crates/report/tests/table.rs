//! The table for people.

use crate::support;
use sooner_report::table;
use sooner_stats::Verdict;

#[test]
fn it_fits_a_hundred_columns_and_has_every_group_and_policy() {
    let text = table::render(&support::fair_and_srpt(0.9, 35));
    println!("{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    assert!(text.lines().all(|line| line == line.trim_end()));
    for group in ["all", "smallest half", "largest 1 %", "largest"] {
        assert_eq!(
            text.lines()
                .filter(|line| line.starts_with(&format!("{group} (")))
                .count(),
            1,
            "{group}"
        );
    }
    assert_eq!(
        text.lines()
            .filter(|line| line.trim_start().starts_with("fair"))
            .count(),
        5
    );
    assert_eq!(
        text.lines()
            .filter(|line| line.trim_start().starts_with("srpt"))
            .count(),
        5
    );
}

#[test]
fn columns_stand_below_their_headings() {
    let text = table::render(&support::fair_and_srpt(0.9, 10));
    let first = text.lines().next().expect("a heading");
    let row = text
        .lines()
        .find(|line| line.starts_with("  fair"))
        .expect("a row");
    assert_eq!(first.chars().count(), row.chars().count());
    assert_eq!(row.split_whitespace().count(), 6);
}

#[test]
fn what_was_not_measured_is_a_dash() {
    let mut report = support::fair_and_srpt(0.5, 3);
    report.runs[0].largest.mean_response_ms = None;
    let text = table::render(&report);
    let largest = text.split("largest (").nth(1).expect("the last group");
    let row = largest.lines().nth(1).expect("its first row");
    assert_eq!(row.split_whitespace().nth(1), Some("-"), "{row}");
}

#[test]
fn an_invalid_run_says_why() {
    let mut report = support::fair_and_srpt(0.5, 3);
    report.runs[1].verdict = Verdict::Invalid;
    report.runs[1].verdict_reason = "the generator used 99 % of its core".into();
    let text = table::render(&report);
    assert!(
        text.contains("INVALID: SRPT: the generator used 99 % of its core"),
        "{text}"
    );
}

#[test]
fn the_load_that_was_requested_is_shown_beside_what_came() {
    let report = support::fair_and_srpt(0.5, 3);
    let column = |text: &str, heading: &str, policy: &str| {
        let (_, runs) = text.split_once(heading).expect("its heading");
        let mut rows = runs.lines().skip(1);
        let row = rows.find(|row| row.starts_with(policy)).expect("its row");
        row.split_whitespace().nth(2).map(str::to_owned)
    };
    let text = table::render_requested(&report, &[Some(0.8), None]);
    assert_eq!(
        column(&text, "load asked", "fair").as_deref(),
        Some("0.800")
    );
    assert_eq!(
        column(&text, "load asked", "srpt").as_deref(),
        Some("0.500")
    );
    let text = table::render(&report);
    assert_eq!(column(&text, "offered", "fair").as_deref(), Some("0.500"));
}
