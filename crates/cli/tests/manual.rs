//! The reference against the program: every flag of every command is in its section, with the
//! default it really has, and every key of the configuration file is in its table.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// One flag as `--help` shows it.
struct Flag {
    name: String,
    default: Option<String>,
}

fn help(command: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args(command)
        .arg("--help")
        .output()
        .expect("the program starts");
    String::from_utf8(output.stdout).expect("help is text")
}

/// The commands that have flags, or no commands of their own.
fn leaves(command: Vec<String>) -> Vec<Vec<String>> {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let text = help(&words);
    let headings = ["\nRun:\n", "\nMeasure:\n", "\nCompute:\n", "\nCommands:\n"];
    let lists = headings
        .iter()
        .filter_map(|heading| text.split_once(heading));
    let lists: Vec<&str> = lists.map(|(_, list)| list).collect();
    if lists.is_empty() {
        return vec![command];
    }
    let own = (!flags(&command).is_empty()).then(|| command.clone());
    lists
        .into_iter()
        .flat_map(|list| list.lines().map_while(|line| line.strip_prefix("  ")))
        // A deeper line goes on with the description above it.
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split(' ').next())
        .filter(|name| *name != "help")
        .flat_map(|name| leaves([command.as_slice(), &[name.to_owned()]].concat()))
        .chain(own)
        .collect()
}

fn flags(command: &[String]) -> Vec<Flag> {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    // A short name stands before the long one.
    let text: String = help(&words)
        .lines()
        .map(|line| match line.split_once(", --") {
            Some((short, long))
                if short.len() == 4
                    && !["help", "version"].contains(&long.split(" ").next().unwrap_or("")) =>
            {
                format!("      --{long}\n")
            }
            _ => format!("{line}\n"),
        })
        .collect();
    // Each flag begins a line; what follows it up to the next one is its description.
    text.split("\n      --")
        .skip(1)
        .map(|entry| entry.split_whitespace().collect::<Vec<_>>())
        .map(|words| Flag {
            name: format!("--{}", words[0]),
            default: default(&words.join(" ")),
        })
        .collect()
}

/// The default, where it is a value and not a description.
fn default(entry: &str) -> Option<String> {
    let (value, _) = entry.split_once("[default: ")?.1.split_once(']')?;
    (!value.contains(' ')).then(|| value.to_owned())
}

/// The part of the reference about one command.
fn section<'a>(manual: &'a str, command: &[String]) -> &'a str {
    let title = format!("\n## sooner {}", command.join(" "));
    let (_, rest) = manual
        .split_once(&title)
        .unwrap_or_else(|| panic!("docs/reference has no section `{}`", title.trim()));
    rest.split_once("\n## ")
        .map_or(rest, |(section, _)| section)
}

/// The pages about commands, whichever page a command is on, as one text.
fn manual() -> String {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let read = |path: &Path| fs::read_to_string(path).expect("a page");
    let pages = fs::read_dir(Path::new(docs).join("reference")).expect("docs/reference");
    pages
        .map(|page| page.expect("a page").path())
        .chain([Path::new(docs).join("manual.md")])
        .map(|page| read(&page) + "\n")
        .collect()
}

#[test]
fn every_flag_is_in_the_manual_with_its_default() {
    let manual = manual();
    let commands = leaves(Vec::new());
    assert!(commands.len() >= 5, "{commands:?}");
    let mut missing = Vec::new();
    for command in commands {
        let section = section(&manual, &command);
        for Flag { name, default } in flags(&command) {
            let mut rows = section.lines().filter(|line| {
                let first_cell = line.split(" | ").next().unwrap_or_default();
                first_cell.split(['`', ' ', ',']).any(|word| word == name)
            });
            let told = rows.next().is_some_and(|row| {
                default
                    .as_ref()
                    .is_none_or(|default| row.contains(default.as_str()))
            });
            if !told {
                missing.push(format!("sooner {} {name} {default:?}", command.join(" ")));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "not in docs/reference, or with another default: {missing:#?}"
    );
}

#[test]
fn the_manual_has_the_keys_of_the_configuration_file_and_no_others() {
    let manual = manual();
    let (_, rest) = manual
        .split_once("\n## Configuration file\n")
        .expect("the section");
    let (section, _) = rest.split_once("\n## ").expect("another section");
    holds(section, sooner_web::config::keys());
}

#[test]
fn the_page_about_the_gate_has_the_keys_of_its_configuration_file_and_no_others() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/gate/configuration.md"
    );
    let page = fs::read_to_string(path).expect("docs/gate/configuration.md");
    let (_, rest) = page.split_once("\n## Keys\n").expect("the section");
    let section = rest
        .split_once("\n## ")
        .map_or(rest, |(section, _)| section);
    holds(
        section,
        sooner_config::keys::<sooner_pooler::config::Config>(),
    );
}

/// Fails unless the first cells of a section's tables are these keys.
fn holds(section: &str, keys: Vec<String>) {
    let told: BTreeSet<String> = section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .filter_map(|line| line[2..].split(" | ").next())
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect();
    let read: BTreeSet<String> = keys.into_iter().collect();
    let missing: Vec<_> = read.difference(&told).collect();
    let gone: Vec<_> = told.difference(&read).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "not in the manual: {missing:?}; in the manual alone: {gone:?}"
    );
}
