//! Every finding holds, with as few jobs as can show it.

use sooner_figures::{ALL, Effort};

fn holds(names: &[&str], jobs: u64) {
    let effort = Effort {
        jobs,
        seed: 1,
        threads: 2,
        told: || (),
    };
    for name in names {
        let entry = ALL.iter().find(|entry| entry.name == *name).expect(name);
        let drawn = entry.draw(&effort).expect(name);
        assert!(!drawn.figures.is_empty() && !drawn.findings.is_empty());
        for finding in &drawn.findings {
            println!("{}: {}: {}", finding.of, finding.holds, finding.evidence);
        }
        let failed: Vec<_> = drawn
            .findings
            .iter()
            .filter(|finding| !finding.holds)
            .collect();
        assert!(failed.is_empty(), "{failed:#?}");
    }
}

#[test]
fn open_closed_and_partly_open_systems() {
    holds(&["13.1", "13.3", "13.4"], 30_000);
    holds(&["13.2"], 100_000);
}

#[test]
fn case_studies() {
    holds(&["14.1"], 100_000);
}

#[test]
fn slowdown_by_size_and_limits() {
    holds(&["7-8", "9.7", "9.10"], 30_000);
}
