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

#[test]
fn completions_offer_nothing_that_help_hides() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["package", folder.path().to_str().unwrap()];
    assert!(sooner(&words).status.success());
    for shell in ["sooner.bash", "_sooner", "sooner.fish"] {
        let text = fs::read_to_string(folder.path().join("completions").join(shell)).unwrap();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let words: Vec<&str> = words.map(|word| word.trim_start_matches('-')).collect();
        for hidden in ["emulate", "emulate-check", "compete", "clsact"] {
            assert!(!words.contains(&hidden), "{shell}: {hidden}");
        }
        // As a command of each shell: as a word it is in texts.
        for hidden in [",package)", "'package:", "-a \"package\""] {
            assert!(!text.contains(hidden), "{shell}: {hidden}");
        }
        for offered in [
            "attach", "replay", "forward", "no-shape", "policy", "version",
        ] {
            assert!(words.contains(&offered), "{shell}: {offered}");
        }
    }
}

/// What bash offers behind these words; none without bash.
fn offered_by_bash(words: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let package = ["package", folder.path().to_str().unwrap()];
    assert!(sooner(&package).status.success());
    let script = format!(
        "source completions/sooner.bash; COMP_WORDS=(sooner {words}); \
         COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
         _sooner sooner \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; echo \"${{COMPREPLY[*]}}\""
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder.path())
        .output();
    let output = output.ok()?;
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

#[test]
fn bash_offers_files_where_an_argument_is_one() {
    let Some(flags) = offered_by_bash("gate check --") else {
        eprintln!(
            "skipped: bash_offers_files_where_an_argument_is_one: no bash; apt-get install bash"
        );
        return;
    };
    assert!(flags.contains("--observe"), "{flags}");
    // It offers files itself where it is offered nothing.
    for words in ["gate check ''", "gate check gate.toml ''"] {
        assert_eq!(offered_by_bash(words).as_deref(), Some(""), "{words}");
    }
    let commands = offered_by_bash("gate ''").unwrap();
    assert!(
        commands.contains("check") && commands.contains("import"),
        "{commands}"
    );
}
