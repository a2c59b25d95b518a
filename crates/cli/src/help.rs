//! What `--help` adds to the flags themselves: groups of commands, headings of options, examples,
//! and what a value is, so that shells complete it.

mod headings;

use crate::examples::{broken, examples};
use clap::builder::ValueHint;
use clap::{Arg, Command};
use std::fmt::Write;

/// The commands by what they are for, in the order in which `sooner --help` shows them.
const GROUPS: [(&str, &[&str]); 3] = [
    ("Run", &["serve", "attach", "gate"]),
    ("Measure", &["demo", "load", "lab"]),
    ("Compute", &["advise", "sim", "solve", "figures"]),
];

/// The longest line of an example, without its indentation and the backslash at its end: a terminal
/// of 80 columns shows it whole, so that a copy of it runs.
const EXAMPLE_COLUMNS: usize = 74;

/// The command line with all of it.
pub fn complete(command: Command) -> Command {
    grouped(with_examples(described(command), &[]))
}

/// The command line as manual pages and completions need it: with headings and hints.
pub fn described(command: Command) -> Command {
    with_hints(headings::with_headings(command, &[]))
}

/// Adds to each command its examples.
fn with_examples(command: Command, path: &[&str]) -> Command {
    let text = examples_of(path);
    let command = match text.as_str() {
        "" => command,
        text => command.after_help(text.to_owned()),
    };
    each_subcommand(command, path, with_examples)
}

/// Changes each subcommand, which gets to know its path.
fn each_subcommand(
    mut command: Command,
    path: &[&str],
    change: impl Fn(Command, &[&str]) -> Command,
) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|inner| inner.get_name().to_owned())
        .collect();
    for name in &names {
        let path = [path, &[name.as_str()]].concat();
        command = command.mut_subcommand(name, |inner| change(inner, &path));
    }
    command
}

fn examples_of(path: &[&str]) -> String {
    let mut text = String::new();
    for (line, what) in examples(path) {
        let heading = if text.is_empty() { "Examples:" } else { "" };
        // Writing to a string cannot fail.
        let line = broken(line, EXAMPLE_COLUMNS).replace('\n', "\n    ");
        let _ = write!(text, "{heading}\n  # {what}\n  {line}\n");
    }
    text.trim_end().to_owned()
}

/// Shows the commands of `sooner` itself in groups.
fn grouped(command: Command) -> Command {
    let mut text = String::new();
    let width = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let width = width.map(|name| name.len()).max().unwrap_or(0);
    for (title, names) in GROUPS {
        let _ = write!(text, "\n{title}:\n");
        for name in names {
            // Some need Linux.
            let Some(inner) = command.find_subcommand(name) else {
                continue;
            };
            let about = inner.get_about().map_or(String::new(), ToString::to_string);
            let _ = writeln!(text, "  {name:width$}  {about}");
        }
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{text}\n\
         Options:\n{{options}}{{after-help}}\n\n\
         `sooner help COMMAND` explains a command and its options.\n"
    );
    command.help_template(template)
}

/// Tells shells what a value is, by the name that help gives it.
fn with_hints(command: Command) -> Command {
    let hinted = command.mut_args(|arg| match hint(&arg) {
        Some(hint) => arg.value_hint(hint),
        None => arg,
    });
    each_subcommand(hinted, &[], |inner, _| with_hints(inner))
}

fn hint(arg: &Arg) -> Option<ValueHint> {
    let name = arg.get_value_names()?.first()?.to_ascii_uppercase();
    let has_ending = |ending: &str| name.ends_with(ending);
    Some(match name.as_str() {
        "FILE" | "LOG" | "TRACE" | "ADDRESS|PATH" => ValueHint::FilePath,
        _ if has_ending(".TOML") || has_ending(".INI") || has_ending(".CONF") => {
            ValueHint::FilePath
        }
        "DIR" | "FOLDER" => ValueHint::DirPath,
        "URL" => ValueHint::Url,
        _ if matches!(arg.get_id().as_str(), "user" | "gate_user") => ValueHint::Username,
        "ADDR:PORT" | "ADDRESS" => ValueHint::Hostname,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory;

    /// Every command that is shown, by its path.
    fn each(command: &Command, path: &str, look: &mut dyn FnMut(&str, &Command)) {
        look(path, command);
        for inner in command
            .get_subcommands()
            .filter(|inner| !inner.is_hide_set())
        {
            each(inner, &format!("{path} {}", inner.get_name()), look);
        }
    }

    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        let shown = command
            .get_subcommands()
            .filter(|inner| !inner.is_hide_set());
        let mut shown: Vec<&str> = shown.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.to_vec())
            .collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(shown, grouped);
    }

    #[test]
    fn the_list_of_commands_fits_a_terminal_of_80_columns() {
        let help = complete(Cli::command()).render_help().to_string();
        let (_, list) = help.split_once("\nRun:\n").expect("the list");
        let long: Vec<&str> = list.lines().filter(|line| line.len() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
    }

    #[test]
    fn files_and_directories_are_completed_as_such() {
        let mut without = Vec::new();
        each(&complete(Cli::command()), "sooner", &mut |path, command| {
            for arg in command.get_arguments() {
                let is_path = arg.get_value_names().is_some_and(|names| {
                    names
                        .iter()
                        .any(|name| matches!(name.as_str(), "FILE" | "DIR" | "FOLDER"))
                });
                let hint = arg.get_value_hint();
                if is_path && !matches!(hint, ValueHint::FilePath | ValueHint::DirPath) {
                    without.push(format!("{path} {}", arg.get_id()));
                }
            }
        });
        assert!(without.is_empty(), "{without:?}");
    }

    #[test]
    fn no_text_of_help_has_words_that_name_nobody() {
        let banned = [
            "nobody",
            "somebody",
            "whoever",
            "whose",
            "for ever",
            "None is needed",
            "for so long",
            "so many",
            "as if",
            "what is asked for",
            "who goes first",
        ];
        let mut found = Vec::new();
        each(&complete(Cli::command()), "sooner", &mut |path, command| {
            let text = command.clone().render_long_help().to_string();
            let words = text.split(|c: char| !c.is_alphanumeric());
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            let lower = format!(" {} ", words.join(" ").to_lowercase());
            for word in banned
                .iter()
                .filter(|word| lower.contains(&format!(" {} ", word.to_lowercase())))
            {
                found.push(format!("{path}: {word}"));
            }
        });
        assert!(found.is_empty(), "{found:#?}");
    }
}
