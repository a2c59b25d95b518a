//! `sooner serve import` against nginx itself: shapes like public configurations, each served by
//! nginx and by Sooner with what it makes of them, and the same requests to both.

mod balancer;
mod defaults;
mod files;
mod got;
mod led;
mod nested;
mod php;
mod place;
mod requests;
mod scripts;

use balancer::BALANCER_CASES;
use defaults::DEFAULT_CASES;
use led::LED_CASES;
use nested::NESTED_CASES;
use php::Php;
use place::{Place, SHAPES};
use requests::{CASES, Case, Difference, REASONS};
use scripts::MORE_CASES;
use sooner_testbed::{nginx, skip};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

#[test]
fn both_answer_the_same() {
    if !nginx::has_modules(&["http_ssl_module", "http_gzip_static_module"]) {
        skip("both_answer_the_same", "no nginx with ssl and gzip_static");
        return;
    }
    let Some(php) = Php::start("both_answer_the_same") else {
        return;
    };
    let echo = place::echo();
    let mut wrong = Vec::new();
    let mut compared = 0;
    let mut kept = 0;
    for shape in SHAPES {
        let all = CASES.iter().chain(MORE_CASES);
        let all = all.chain(DEFAULT_CASES).chain(BALANCER_CASES);
        let all = all.chain(NESTED_CASES).chain(LED_CASES);
        let cases: Vec<&Case> = all.filter(|case| case.shape == shape).collect();
        assert!(!cases.is_empty(), "no request for {shape}");
        let place = Place::new(shape, &echo, &php);
        let servers = place.start();
        for case in cases {
            let Some((mut theirs, ours)) = servers.both(case) else {
                skip("both_answer_the_same", "no curl for requests over TLS");
                continue;
            };
            compared += 1;
            // Where a header says it there is no date.
            if ours.expires.is_empty() {
                theirs.expires.clear();
            } else {
                kept += 1;
            }
            let is_right = match case.differs {
                None => ours == theirs,
                Some(Difference { ours: status, .. }) => ours.status == status && ours != theirs,
            };
            if !is_right {
                wrong.push(format!(
                    "{shape} {}\n  nginx  {theirs:?}\n  sooner {ours:?}",
                    case.text()
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {compared}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(compared >= 200 && kept >= 10, "{compared} {kept}");
}

#[test]
fn every_reason_for_a_difference_is_used() {
    let used: BTreeSet<&str> = CASES
        .iter()
        .chain(MORE_CASES)
        .chain(DEFAULT_CASES)
        .chain(BALANCER_CASES)
        .chain(LED_CASES)
        .filter_map(|case| Some(case.differs?.why))
        .collect();
    assert_eq!(used, BTreeSet::from(REASONS));
}

#[test]
fn bad_input_has_its_line_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("n.conf"), "server {\n root /x\n}\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args(["serve", "import", "n.conf", "--out", "s.toml"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(
        said,
        "sooner: n.conf:3: unexpected }; write ; behind root /x\n"
    );
    assert!(!folder.path().join("s.toml").exists());
}
