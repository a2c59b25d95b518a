//! `sooner load surge` and `surge-fit` as processes.

use assert_cmd::Command;
use serde_json::Value;

fn load(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("sooner").expect("the program is built");
    command.arg("load").args(args);
    command
}

/// Exit code and stdout.
fn fit(args: &[&str]) -> (Option<i32>, String) {
    let output = load(&[&["surge-fit", "--draws", "20000"], args].concat())
        .output()
        .expect("the program starts");
    (
        output.status.code(),
        String::from_utf8(output.stdout).expect("text"),
    )
}

#[test]
fn what_was_published_fits_and_another_parameter_does_not() {
    let (code, table) = fit(&[]);
    assert_eq!(code, Some(0), "{table}");
    assert!(
        table.contains("inactive OFF") && table.contains("agree with what was published"),
        "{table}"
    );
    let (code, table) = fit(&["--inactive-off", "pareto:k=1,alpha=1.7"]);
    assert_eq!(code, Some(1), "{table}");
    assert!(
        table.contains("DIFFERS") && table.contains("lines DIFFER"),
        "{table}"
    );
}

#[test]
fn the_comparison_is_there_for_programs() {
    let (code, text) = fit(&["--sizes", "exp:mean=11108", "--json"]);
    assert_eq!(code, Some(1));
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&json["schema"], &json["fits"]), (&1.into(), &false.into()));
    let rows = json["rows"].as_array().expect("rows");
    let misfit = |quantity: &str| {
        rows.iter()
            .any(|row| row["quantity"] == quantity && row["fits"] == false)
    };
    assert!(misfit("sizes") && !misfit("popularity") && !misfit("inactive OFF"));
}

#[test]
fn bad_input_is_one_line_with_a_remedy() {
    let surge: [&str; 7] = [
        "surge",
        "--url",
        "http://127.0.0.1:9",
        "--uplink",
        "10mbit",
        "--for",
        "10",
    ];
    for (args, words) in [
        ([&surge[..], &["--users", "0"]].concat(), "1 to 100000"),
        (
            [&surge[..], &["--users", "5", "--warm-up", "20"]].concat(),
            "--warm-up",
        ),
        (
            [
                &surge[..],
                &["--users", "5", "--active-off", "weibull:scale=1"],
            ]
            .concat(),
            "shape is missing",
        ),
        (
            [&surge[..], &["--users", "5"]].concat(),
            "connection refused",
        ),
        (vec!["surge-fit", "--draws", "5"], "give 10000 to"),
        (
            vec!["mkroot", "surge:x", "/no/such"],
            "write a whole number, as in surge:1",
        ),
    ] {
        let output = load(&args).output().expect("the program starts");
        let message = String::from_utf8(output.stderr).expect("text");
        assert_eq!(
            (output.status.code(), message.lines().count()),
            (Some(2), 1),
            "{args:?} {message}"
        );
        assert!(message.contains(words), "{args:?} {message}");
    }
}
