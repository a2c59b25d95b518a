//! Which failures of a log's replay are excused: those that the measured requests had in the log.

use super::stopped::stopped;
use super::{Site, run};
use std::fs;
use std::path::PathBuf;

/// A log of requests for what the server does not have: `count` in each of two seconds, which are
/// `apart` seconds apart, with their statuses.
fn missing(site: &Site, count: usize, apart: usize, statuses: [u16; 2]) -> PathBuf {
    let path = site.folder.path().join("old.log");
    let mut text = String::new();
    for (second, status) in [0, apart].into_iter().zip(statuses) {
        let (minute, second) = (second / 60, second % 60);
        let line = format!(
            "10.0.0.1 - - [10/Oct/2000:13:{minute:02}:{second:02} +0000] \
             \"GET /missing HTTP/1.1\" {status} 9 \"-\" \"x\"\n"
        );
        text += &line.repeat(count);
    }
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn failures_of_the_warm_up_excuse_none_behind_it() {
    let Some(site) = Site::start("failures_of_the_warm_up") else {
        return;
    };
    let url = site.url("");
    // The first come in 125 ms, the others later than 375 ms.
    for (statuses, is_excused) in [([404, 200], false), ([200, 404], true)] {
        let old = missing(&site, 40, 4, statuses);
        let fixed = ["replay", old.to_str().unwrap(), "--url", &url];
        let flags = ["--speed", "8x", "--warm-up", "250ms"];
        let (_, ran) = run(&[&fixed[..], &flags].concat());
        let reason = ran["verdict_reason"].as_str().unwrap();
        assert_eq!(reason.contains("requests failed"), !is_excused, "{ran}");
        let remarks = ran["remarks"].to_string();
        assert_eq!(remarks.contains("may get it again"), is_excused, "{ran}");
    }
}

#[test]
fn failures_that_were_not_sent_again_excuse_none() {
    let Some(site) = Site::start("failures_that_were_not_sent_again") else {
        return;
    };
    let old = missing(&site, 10, 600, [200, 404]);
    let url = site.url("");
    let words = ["replay", old.to_str().unwrap(), "--url", &url];
    let ran = stopped(&site, &words, 10);
    let reason = ran["verdict_reason"].as_str().unwrap();
    assert!(reason.contains("requests failed"), "{ran}");
    let remarks = ran["remarks"].to_string();
    assert!(!remarks.contains("may get it again"), "{ran}");
}
