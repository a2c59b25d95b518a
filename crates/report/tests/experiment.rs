//! The page of an experiment: both directions are told, and runs that may not be believed do not
//! count.

use crate::support;
use sooner_report::experiment::{Case, Figure, Page, Patience, Peer, Repetition, headline, render};
use sooner_report::number::duration;
use sooner_stats::{Run, Verdict};

fn peer(name: &str, runs: &[&Run]) -> Peer {
    let repetition = |run: &&Run| Repetition {
        run: (*run).clone(),
        patience: Patience::default(),
        clients: Vec::new(),
        host: Vec::new(),
        connections: Vec::new(),
    };
    Peer {
        name: name.into(),
        runs: runs.iter().map(repetition).collect(),
    }
}

fn case(name: &str, at: f64, peers: Vec<Peer>) -> Case {
    Case {
        name: name.into(),
        published: None,
        published_gain: None,
        at: Some(at),
        peers,
        setup: Vec::new(),
    }
}

fn page(baseline: &str, cases: Vec<Case>) -> Page {
    Page {
        question: "Which?".into(),
        baseline: baseline.into(),
        cases,
        figures: vec![Figure::Range, Figure::Cases],
        range_title: "Load".into(),
        ..Page::default()
    }
}

/// The y labels of the picture with this name.
fn y_labels(page: &str, name: &str) -> Vec<String> {
    let picture = page
        .split("<svg class=\"wide\"")
        .find(|svg| svg.contains(name));
    let labels = picture
        .expect("a picture")
        .split("class=\"tick end\"")
        .skip(1);
    labels
        .filter_map(|rest| Some(rest.split('>').nth(1)?.split('<').next()?.to_owned()))
        .collect()
}

#[test]
fn who_gains_and_who_pays_are_both_told() {
    let report = support::fair_and_srpt(0.9, 10);
    let [fair, srpt] = &report.runs[..] else {
        panic!("two runs")
    };
    let both = || vec![peer("nginx", &[fair]), peer("sooner srpt", &[srpt])];
    let told = headline(&page("nginx", vec![case("one", 0.0, both())])).join(" ");
    assert!(
        told.contains("shorter") && told.contains("Who pays"),
        "{told}"
    );
    // the other way round everything is longer, and that is said as plainly
    let told = headline(&page("sooner srpt", vec![case("one", 0.0, both())])).join(" ");
    assert!(told.contains("Who pays, under nginx: all ("), "{told}");
    assert!(
        told.contains("the smallest half (") && told.contains(" times longer"),
        "{told}"
    );
    let cases = vec![case("one", 0.0, both()), case("two", 1.0, both())];
    let told = headline(&page("sooner srpt", cases)).join(" ");
    assert!(told.contains("all in 2 of 2 cases (at worst"), "{told}");
}

#[test]
fn a_run_that_may_not_be_believed_counts_only_where_there_is_no_other() {
    let (report, other) = (
        support::fair_and_srpt(0.9, 5),
        support::fair_and_srpt(0.5, 5),
    );
    let (good, mut bad) = (&report.runs[0], other.runs[0].clone());
    bad.verdict = Verdict::Invalid;
    bad.seed = 2;
    let mean = |run: &Run| {
        format!(
            "<td>{}</td>",
            duration(run.all.mean_response_ms.expect("measured"))
        )
    };
    let shown = render(&page(
        "nginx",
        vec![case("one", 0.0, vec![peer("nginx", &[good, &bad])])],
    ));
    assert!(shown.contains(&mean(good)) && !shown.contains(&mean(&bad)));
    assert!(shown.contains("1 of 2, <span class=\"bad\">rest INVALID"));
    let shown = render(&page(
        "nginx",
        vec![case("one", 0.0, vec![peer("nginx", &[&bad])])],
    ));
    assert!(shown.contains(&mean(&bad)) && shown.contains("<span class=\"bad\">INVALID</span>"));
    // What is told of two peers is told of runs that both may be believed.
    let beside = |nginx: &Run| {
        let peers = vec![peer("nginx", &[nginx]), peer("sooner", &[&report.runs[1]])];
        render(&page("nginx", vec![case("one", 0.0, peers)]))
    };
    assert!(beside(good).contains("mean response time of"));
    assert!(!beside(&bad).contains("mean response time of"));
}

#[test]
fn a_range_is_logarithmic_only_where_it_spans_a_decade() {
    let of_load = |load, at| {
        let report = support::fair_and_srpt(load, 5);
        let peers = vec![
            peer("nginx", &[&report.runs[0]]),
            peer("sooner srpt", &[&report.runs[1]]),
        ];
        case(&format!("load {load}"), at, peers)
    };
    let narrow = render(&page("nginx", vec![of_load(0.3, 0.3), of_load(0.4, 0.4)]));
    assert_eq!(y_labels(&narrow, "against: Load")[0], "0");
    let wide = render(&page("nginx", vec![of_load(0.3, 0.3), of_load(1.5, 1.5)]));
    assert!(!y_labels(&wide, "against: Load").contains(&"0".to_owned()));
}

#[test]
fn a_page_of_nothing_is_still_a_page() {
    let nobody = case("one", 0.0, vec![peer("nginx", &[])]);
    let shown = render(&page("nginx", vec![nobody, case("two", 1.0, Vec::new())]));
    assert!(shown.contains("Not measured.") && shown.contains("no two servers to compare yet"));
    assert!(!shown.contains("<svg") && shown.ends_with("</html>\n"));
    assert!(render(&Page::default()).ends_with("</html>\n"));
}
