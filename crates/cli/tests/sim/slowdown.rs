//! Mean slowdowns that no simulation can find, and files that are standard output.

use super::{json, sim};
use serde_json::Value;
use std::fs;
use std::process::Command;

#[test]
fn infinite_mean_slowdowns_are_called_infinite() {
    for (line, infinite) in [
        ("exp:mean=1 --policy fcfs,sjf,ljf,hrrn,pljf", true),
        ("exp:mean=1 --policy fair,srpt,psjf,las,fsp", false),
        ("h2:mean=1,c2=8 --policy fcfs,pesjf", true),
        ("weibull:scale=1,shape=0.5 --policy fcfs", true),
        ("weibull:scale=1,shape=2 --policy fcfs", false),
        ("det:mean=1 --policy fcfs,sjf", false),
        ("bpareto:k=1,p=1e6,alpha=1.5 --policy fcfs,sjf", false),
        ("exp:mean=1 --mpl 2 --policy fair", true),
        ("exp:mean=1 --servers 2 --policy fcfs", true),
    ] {
        let words = format!("--sizes {line} --load 0.5 --jobs 2e4 --by-size");
        let words: Vec<&str> = words.split(' ').collect();
        for run in json(&words)["runs"].as_array().unwrap() {
            assert_eq!(run["mean_slowdown_is_infinite"], infinite, "{line}: {run}");
            for place in [
                "/all/mean_slowdown",
                "/smallest_half/mean_slowdown",
                "/by_size/0/mean_slowdown",
            ] {
                let mean = run.pointer(place).unwrap();
                assert_eq!(mean.is_null(), infinite, "{line}: {place}");
            }
            assert!(run["all"]["mean_response"].is_number(), "{line}");
            let largest = &run["largest_1_percent"]["mean_slowdown"];
            assert!(!infinite || largest.is_number(), "{line}");
        }
        let output = sim(&words);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.contains("infinite"), infinite, "{line}: {text}");
    }
}

#[test]
fn a_page_on_standard_output_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let words = "sim --sizes exp:mean=1 --load 0.5 --policy fair --jobs 2e4 --html";
    for (name, page) in [("stdout", "/dev/stdout"), ("own", "own")] {
        let path = folder.path().join(name);
        let output = fs::File::create(&path).unwrap();
        let done = Command::new(env!("CARGO_BIN_EXE_sooner"))
            .args(words.split(' '))
            .arg(page)
            .current_dir(&folder)
            .stdout(output)
            .status()
            .unwrap();
        assert!(done.success());
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("</html>"), "{text}");
        assert!(text.contains("mean response"), "{text}");
    }
}

#[test]
fn slowdown_is_relative_to_alone_on_one_of_the_servers() {
    let words = ["--sizes", "det:mean=1", "--load", "0.01", "--jobs", "20000"];
    for policy in ["fcfs", "fair", "srpt"] {
        for servers in ["1", "4"] {
            let more = ["--servers", servers, "--policy", policy, "--by-size"];
            let run = &json(&[&words[..], &more].concat())["runs"][0];
            for place in ["/all", "/smallest_half", "/largest", "/by_size/0"] {
                let slowdown = run.pointer(&format!("{place}/mean_slowdown"));
                let slowdown = slowdown.and_then(Value::as_f64).unwrap();
                assert!(
                    (1.0..1.05).contains(&slowdown),
                    "{servers} {policy} {place}: {slowdown}"
                );
            }
        }
    }
}

#[test]
fn columns_of_csv_have_a_name_each() {
    let words = [
        "--sizes",
        "exp:mean=1",
        "--load",
        "0.3,0.5",
        "--policy",
        "fcfs,fair",
    ];
    let output = sim(&[&words[..], &["--jobs", "2000", "--csv"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let heads: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let apart: std::collections::HashSet<&&str> = heads.iter().collect();
    assert_eq!(apart.len(), heads.len(), "{heads:?}");
    for head in [
        "load",
        "realised load",
        "mean response exact",
        "in queue (Lq) ± 95 %",
    ] {
        assert!(heads.contains(&head), "{head}: {heads:?}");
    }
}
