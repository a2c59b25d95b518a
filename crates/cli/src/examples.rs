//! Two examples for each command: manual pages and `--help` show the same ones. The tests have the
//! command line read every one of them.

mod compute;
mod measure;
mod run;

/// A command line and what it does.
pub type Example = (&'static str, &'static str);

/// The examples of a command by its path without `sooner`, like `["load", "replay"]`; none for a
/// command that is hidden or unknown.
pub fn examples(command_path: &[&str]) -> &'static [Example] {
    let path = command_path.join(" ");
    let found = TABLES.into_iter().flatten().find(|(name, _)| *name == path);
    found.map_or(&[], |(_, examples)| examples)
}

/// A command line in several lines that a shell reads as one. A flag stays beside its value. No line
/// is longer than `columns`, apart from the backslash.
pub fn broken(line: &str, columns: usize) -> String {
    let mut parts: Vec<String> = Vec::new();
    for word in line.split(' ') {
        match parts.last_mut() {
            Some(flag)
                if flag.starts_with("--") && !flag.contains(' ') && !word.starts_with('-') =>
            {
                flag.push(' ');
                flag.push_str(word);
            }
            _ => parts.push(word.to_owned()),
        }
    }
    let mut lines = vec![String::new()];
    for word in &parts {
        let length = lines.last().map_or(0, String::len);
        if length > 0 && length + 1 + word.len() > columns {
            lines.push(format!("    {word}"));
        } else if let Some(last) = lines.last_mut() {
            let gap = if length > 0 { " " } else { "" };
            last.push_str(gap);
            last.push_str(word);
        }
    }
    lines.join(" \\\n")
}

/// A command's path and its examples.
type Entry = (&'static str, &'static [Example]);

const TABLES: [&[Entry]; 3] = [run::TABLE, measure::TABLE, compute::TABLE];

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::ffi::OsString;

    /// Every command that help shows, by its path.
    fn paths(command: &clap::Command, path: &[&str], into: &mut Vec<String>) {
        into.push(path.join(" "));
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            paths(sub, &[path, &[sub.get_name()]].concat(), into);
        }
    }

    /// The words of a line as a shell gives them to `sooner`, without what is the shell's and sudo's.
    fn words(line: &str) -> Vec<OsString> {
        let line = line.split(['>', '|']).next().expect("a first part");
        let from = line.find("sooner ").expect("the program");
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for letter in line[from..].trim_end().chars() {
            match letter {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                other => words.last_mut().expect("a word").push(other),
            }
        }
        words.into_iter().map(OsString::from).collect()
    }

    #[test]
    fn every_command_has_two_examples_and_each_is_read() {
        let mut found = Vec::new();
        paths(&crate::Cli::command(), &[], &mut found);
        assert!(found.len() > 30, "{found:?}");
        for path in &found {
            let parts: Vec<&str> = path.split_whitespace().collect();
            let examples = examples(&parts);
            assert_eq!(examples.len(), 2, "sooner {path}");
            for (line, what) in examples {
                if let Err(error) = crate::parse(&words(line)) {
                    panic!("{line}: {error}");
                }
                assert!(line.contains(&format!("sooner {path}")), "{path}: {line}");
                assert!(line.len() <= 130 && what.len() <= 76, "too long: {line}");
                for shown in broken(line, 74).lines() {
                    assert!(shown.len() <= 76, "wraps at 80 columns: {shown}");
                }
            }
        }
        for (path, _) in TABLES.into_iter().flatten() {
            assert!(found.iter().any(|one| one == path), "no command {path}");
        }
    }
}
