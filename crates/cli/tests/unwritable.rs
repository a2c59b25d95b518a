//! Commands that cannot write their results: a full disk is one line and exit code 1, a reader that
//! has left ends them as it ends `cat`.

use rustix::process::Signal;
use std::fs::{self, File, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

fn sooner(words: &[&str], stdout: impl Into<Stdio>) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin("sooner"))
        .args(words)
        .stdout(stdout)
        .output()
        .unwrap()
}

/// Commands that need nothing, in every form of their results.
const COMMANDS: [&[&str]; 12] = [
    &[
        "sim",
        "--sizes",
        "exp:mean=1",
        "--load",
        "0.5",
        "--jobs",
        "2000",
    ],
    &[
        "sim",
        "--sizes",
        "exp:mean=1",
        "--load",
        "0.5",
        "--jobs",
        "2000",
        "--json",
    ],
    &[
        "sim",
        "--sizes",
        "exp:mean=1",
        "--load",
        "0.5",
        "--jobs",
        "2000",
        "--csv",
    ],
    &["solve", "mg1", "--sizes", "exp:mean=1", "--load", "0.5"],
    &["solve", "mva", "--demands", "1,2", "--json"],
    &["solve", "mpl", "--sizes", "exp:mean=1", "--load", "0.5"],
    &["solve", "model", "--sizes", "exp:mean=1", "--load", "0.5"],
    &["figures", "13.4", "--jobs", "1000"],
    &["load", "surge-fit", "--draws", "10000"],
    &["attach", "status"],
    &["--help"],
    &["--version"],
];

#[test]
fn results_that_find_no_room_are_one_line_and_exit_code_1() {
    for words in COMMANDS {
        let output = sooner(words, full());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(
            said.ends_with(
                "sooner: cannot write to standard output: No space left on device (os error 28)\n"
            ),
            "{words:?}: {said}"
        );
        let progress = said.lines().count() - 1;
        assert!(
            progress <= usize::from(words[0] == "figures"),
            "{words:?}: {said}"
        );
    }
}

#[test]
fn a_reader_that_leaves_ends_a_command_as_it_ends_cat() {
    for words in COMMANDS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = sooner(words, writer);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            output.status.signal(),
            Some(Signal::PIPE.as_raw()),
            "{words:?}: {said}"
        );
        assert!(
            words[0] == "figures" || said.is_empty(),
            "{words:?}: {said}"
        );
    }
}

#[test]
fn a_page_that_finds_no_room_costs_no_figure() {
    for words in [
        &[
            "sim",
            "--sizes",
            "exp:mean=1",
            "--load",
            "0.5",
            "--jobs",
            "2000",
        ][..],
        &["figures", "13.4", "--jobs", "1000"],
    ] {
        let words = [words, &["--html", "/dev/full"]].concat();
        let output = sooner(&words, Stdio::piped());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let line =
            "sooner: --html /dev/full: cannot write: No space left on device (os error 28)\n";
        assert!(said.ends_with(line), "{said}");
        assert!(
            output.stdout.len() > 100,
            "{words:?}: the figures are printed"
        );
    }
}

#[test]
fn a_page_that_cannot_be_is_refused_before_the_work_and_keeps_what_is_there() {
    let output = sooner(
        &[
            "sim",
            "--sizes",
            "exp:mean=1",
            "--load",
            "0.5",
            "--html",
            "/no/such/page",
        ],
        Stdio::piped(),
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    fs::write(&page, "old").unwrap();
    let words = [
        "sim",
        "--sizes",
        "exp:mean=1",
        "--load",
        "7",
        "--html",
        page.to_str().unwrap(),
    ];
    assert_eq!(sooner(&words, Stdio::piped()).status.code(), Some(2));
    assert_eq!(fs::read_to_string(&page).unwrap(), "old");
}

#[test]
fn a_mistake_that_cannot_be_told_is_no_panic() {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("sooner"));
    let status = command.args(["sim", "--load", "x"]).stderr(full()).status();
    assert_eq!(status.unwrap().code(), Some(2));
}
