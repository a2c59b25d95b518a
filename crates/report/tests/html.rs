//! The page: self-contained, escaped, complete, and true to the numbers.

use crate::support;
use sooner_report::{Context, html};
use sooner_stats::{Report, Verdict};

fn context() -> Context {
    Context {
        summary: "EPA trace, 10 Mbit/s, load 0.9, seed 1".into(),
        command: "sooner demo --uplink 10mbit --seconds 35 --rho 0.9 --seed 1".into(),
        version: "0.1.0".into(),
        commit: Some("0123abc".into()),
        measured_at: "Sat, 21 Nov 2026 21:00:00 GMT".into(),
        machine: "AMD EPYC 7B13, 2 cores, Linux 6.8.0".into(),
        uplink: "10 Mbit/s, limited in user space, loopback".into(),
        trace: "EPA-HTTP, 29 August 1995".into(),
        schedule: "load 0.9 for 35 s, Poisson".into(),
    }
}

#[test]
fn the_page_is_one_file_without_network_or_script() {
    let page = html::render(&support::fair_and_srpt(0.9, 35), &context());
    std::fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/sample.html"), &page)
        .expect("a place for the sample page");
    for forbidden in [
        "http://", "https://", "<script", "<link", "@import", "url(", "src=",
    ] {
        assert!(!page.contains(forbidden), "the page contains {forbidden}");
    }
    for not_a_number in ["NaN", "inf ", "None", "Some("] {
        assert!(
            !page.contains(not_a_number),
            "the page contains {not_a_number}"
        );
    }
    assert!(page.len() < 800_000, "{} bytes", page.len());
}

#[test]
fn elements_are_balanced_and_ids_unique() {
    let page = html::render(&support::fair_and_srpt(0.8, 10), &context());
    for element in [
        "svg", "g", "text", "figure", "table", "tbody", "tr", "th", "td", "ul", "li", "dl", "p",
        "main",
    ] {
        let opened = page.matches(&format!("<{element} ")).count()
            + page.matches(&format!("<{element}>")).count();
        assert_eq!(
            opened,
            page.matches(&format!("</{element}>")).count(),
            "<{element}>"
        );
    }
    let ids: Vec<&str> = page
        .split(" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(ids.len(), unique.len());
    assert_eq!(
        page.matches("role=\"img\"").count(),
        8,
        "four figures, each wide and narrow"
    );
}

#[test]
fn every_figure_shows_both_measured_runs_and_both_ideals() {
    let page = html::render(&support::fair_and_srpt(0.9, 10), &context());
    for line in [
        "line fair\"",
        "line srpt\"",
        "line fair ideal\"",
        "line srpt ideal\"",
    ] {
        // legend, wide and narrow in each of the three figures that compare
        assert_eq!(page.matches(line).count(), 9, "{line}");
    }
    for name in ["FAIR measured", "SRPT measured", "Ideal PS", "Ideal SRPT"] {
        assert!(page.contains(name), "{name}");
    }
}

#[test]
fn text_from_outside_cannot_become_markup() {
    let hostile = "<script>alert('x')</script>\"&";
    let mut report = support::fair_and_srpt(0.5, 3);
    report.runs[0].policy = hostile.into();
    report.runs[0].verdict = Verdict::Invalid;
    report.runs[0].verdict_reason = hostile.into();
    let context = Context {
        command: hostile.into(),
        trace: hostile.into(),
        machine: hostile.into(),
        ..context()
    };
    let page = html::render(&report, &context);
    assert!(!page.to_lowercase().contains("<script"));
    assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;"));
}

#[test]
fn an_invalid_run_is_said_first() {
    let mut report = support::fair_and_srpt(0.5, 3);
    report.runs[1].verdict = Verdict::Invalid;
    report.runs[1].verdict_reason = "send lag p99 12 ms is above 1 ms".into();
    let page = html::render(&report, &context());
    let banner = page.find("role=\"alert\"").expect("a banner");
    assert!(banner < page.find("<figure>").expect("a figure"));
    assert!(page.contains("<h1>This measurement is not valid</h1>"));
}

#[test]
fn fewer_than_two_runs_still_make_a_page() {
    let mut report = support::fair_and_srpt(0.5, 3);
    report.runs.truncate(1);
    assert!(html::render(&report, &context()).contains("FAIR"));
    let empty = Report::new(Vec::new());
    assert!(html::render(&empty, &Context::default()).contains("</html>"));
}

#[test]
fn absent_fields_of_the_set_up_leave_no_empty_row() {
    let page = html::render(
        &support::fair_and_srpt(0.5, 3),
        &Context {
            commit: None,
            machine: String::new(),
            ..context()
        },
    );
    assert!(
        !page.contains("<dt>Commit</dt>")
            && !page.contains("<dt>Machine</dt>")
            && page.contains("<dt>Command</dt>")
    );
}
