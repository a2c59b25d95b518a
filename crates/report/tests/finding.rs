//! The sentences: in both directions, and never more than the numbers carry.

use crate::support;
use sooner_report::finding;
use sooner_stats::{Report, Verdict};

fn paragraph(report: &Report) -> String {
    finding::sentences(report).join(" ")
}

#[test]
fn better_means_are_named_with_their_ideal() {
    let report = support::fair_and_srpt(0.9, 35);
    let said = paragraph(&report);
    println!(
        "{}\n{said}\n{}",
        finding::headline(&report),
        finding::closing(&report)
    );
    assert!(said.contains("FAIR and SRPT served the same"), "{said}");
    assert!(said.contains("times shorter"), "{said}");
    assert!(
        said.contains("(perfect schedulers: 3.4 times shorter)"),
        "{said}"
    );
    assert!(finding::headline(&report).ends_with("times sooner"));
}

#[test]
fn what_became_slower_is_said() {
    let mut report = support::fair_and_srpt(0.9, 10);
    report.runs[1].largest.mean_response_ms =
        report.runs[0].largest.mean_response_ms.map(|ms| ms * 1.4);
    let said = paragraph(&report);
    assert!(said.contains("SRPT made worse:"), "{said}");
    assert!(
        said.contains("the mean of the largest (40 % longer)"),
        "{said}"
    );
    assert!(!said.contains("No figure of the table is worse"), "{said}");
}

#[test]
fn a_policy_that_loses_gets_no_praise() {
    let mut report = support::fair_and_srpt(0.9, 10);
    let fair = report.runs[0].policy.clone();
    report.runs[0].policy = std::mem::replace(&mut report.runs[1].policy, fair);
    let (said, closing) = (paragraph(&report), finding::closing(&report));
    assert!(
        !finding::headline(&report).contains("sooner"),
        "{}",
        finding::headline(&report)
    );
    assert!(closing.contains("longer than with FAIR"), "{closing}");
    assert!(
        said.contains("SRPT made worse: the mean of all ("),
        "{said}"
    );
}

#[test]
fn no_difference_is_called_no_difference() {
    let mut report = support::fair_and_srpt(0.9, 10);
    report.runs[1] = report.runs[0].clone();
    report.runs[1].policy = "srpt".into();
    assert!(
        finding::closing(&report).contains("not clearly different"),
        "{}",
        finding::closing(&report)
    );
    assert!(paragraph(&report).contains("about the same"));
}

#[test]
fn an_invalid_run_warns_before_anything_else() {
    let mut report = support::fair_and_srpt(0.5, 3);
    report.runs[0].verdict = Verdict::Invalid;
    report.runs[0].verdict_reason = "no ports left".into();
    assert!(paragraph(&report).starts_with("INVALID for FAIR: draw no conclusion"));
    assert!(finding::closing(&report).contains("INVALID: draw no conclusion"));
}

#[test]
fn different_arrivals_and_missing_answers_are_said() {
    let mut report = support::fair_and_srpt(0.5, 3);
    report.runs[1].seed = 2;
    report.runs[1].incompletes = 7;
    let said = paragraph(&report);
    assert!(said.contains("not the same arrivals"), "{said}");
    assert!(
        said.contains("Not answered in full: 0 with FAIR, 7 with SRPT"),
        "{said}"
    );
}
