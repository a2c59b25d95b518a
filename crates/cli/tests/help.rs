//! `--help` of every command: grouped, with headings, with two examples; `sooner` alone; and what
//! completions offer.

use std::fs;
use std::process::{Command, Output};

fn sooner(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(words).output().unwrap()
}

fn help(path: &[&str]) -> String {
    let output = sooner(&[path, &["--help"]].concat());
    assert!(output.status.success(), "{path:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The names of the commands below a heading.
fn names<'a>(text: &'a str, heading: &str) -> Vec<&'a str> {
    let Some((_, list)) = text.split_once(&format!("\n{heading}:\n")) else {
        return Vec::new();
    };
    let list = list.lines().map_while(|line| line.strip_prefix("  "));
    let names = list.filter(|line| !line.starts_with(' '));
    names.filter_map(|line| line.split(' ').next()).collect()
}

fn each(path: &[&str], look: &mut dyn FnMut(&[&str], &str)) {
    let text = help(path);
    look(path, &text);
    let headings = ["Run", "Measure", "Compute", "Commands"];
    for name in headings.iter().flat_map(|heading| names(&text, heading)) {
        if name != "help" {
            each(&[path, &[name]].concat(), look);
        }
    }
}

#[test]
fn the_program_alone_prints_its_help_and_succeeds() {
    let output = sooner(&[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Usage: sooner"), "{text}");
    // A group of commands alone is a mistake, because nothing says which one.
    let output = sooner(&["load"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}

#[test]
fn commands_are_grouped_by_what_they_are_for() {
    let text = help(&[]);
    assert_eq!(names(&text, "Run"), ["serve", "attach", "gate"]);
    assert_eq!(names(&text, "Measure"), ["demo", "load", "lab"]);
    let computing = ["advise", "sim", "solve", "figures"];
    assert_eq!(names(&text, "Compute"), computing);
    let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word}: {text}"));
    assert!(at("\nRun:") < at("\nMeasure:") && at("\nMeasure:") < at("\nCompute:"));
}

#[test]
fn every_help_has_two_examples_and_headings() {
    let mut count = 0;
    each(&[], &mut |path, text| {
        count += 1;
        let (options, examples) = text
            .split_once("\nExamples:\n")
            .unwrap_or_else(|| panic!("no examples: {path:?}"));
        let lines = examples.lines();
        let commands = lines.filter(|line| !line.trim_start().starts_with('#'));
        let commands = commands.filter(|line| line.starts_with("  ") && line.contains("sooner "));
        assert_eq!(commands.count(), 2, "{path:?}: {examples}");
        assert!(options.contains("\nOptions:\n"), "{path:?}");
        let is_long = options.matches("\n      --").count() >= 10;
        let headings = options.lines().filter(|line| {
            line.ends_with(':') && !line.starts_with(' ') && !line.starts_with("Usage")
        });
        assert!(!is_long || headings.count() >= 3, "{path:?}: {options}");
    });
    assert!(count > 30, "{count}");
}

#[test]
fn completions_offer_values_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["package", folder.path().to_str().unwrap()];
    assert!(sooner(&words).status.success());
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let zsh = read("completions/_sooner");
    for offered in [
        // Policies of a link and of the simulator, traces, experiments, figures.
        "swift\\:",
        "gittins\\:",
        "epa\\:",
        "nasa\\:",
        "attach-web\\:",
        "13.3\\:",
        "read-committed",
        "user-space\\:",
        // Kinds of values.
        ":_files",
        ":_files -/",
        ":_urls",
        ":_users",
    ] {
        assert!(zsh.contains(offered), "{offered}");
    }
    let bash = read("completions/sooner.bash");
    for offered in ["gittins", "attach-web", "compgen -f", "plusdirs"] {
        assert!(bash.contains(offered), "{offered}");
    }
}
