//! A flag that needs another one is refused without it, also beside a flag that excludes the other
//! one: clap takes what is needed for given there, and the flag would be ignored.

use clap::builder::ValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use std::collections::BTreeSet;

/// The flags that are missing of these words; none where something else is wrong.
fn missing(command: &Command, words: &[String]) -> Option<BTreeSet<String>> {
    let error = command.clone().try_get_matches_from(words).err()?;
    if error.kind() != ErrorKind::MissingRequiredArgument {
        return None;
    }
    match error.get(ContextKind::InvalidArg)? {
        ContextValue::Strings(names) => Some(names.iter().cloned().collect()),
        _ => None,
    }
}

/// The flag as it is typed, with a value where it takes one.
fn typed(arg: &Arg) -> Option<Vec<String>> {
    let flag = format!("--{}", arg.get_long()?);
    Some(match arg.get_action().takes_values() {
        true => vec![flag, "1".into()],
        false => vec![flag],
    })
}

/// Flags of a command that are taken without what they need.
fn holes(command: &Command) -> Vec<String> {
    let of_any_value = |arg: Arg| match arg.get_action().takes_values() {
        true => arg.value_parser(ValueParser::string()),
        false => arg,
    };
    let command = command.clone().mut_args(of_any_value);
    let words = |parts: &[&[String]]| [&["sooner".to_owned()], &parts.concat()[..]].concat();
    let always = missing(&command, &words(&[])).unwrap_or_default();
    let flags: Vec<(&Arg, Vec<String>)> = command
        .get_arguments()
        .filter_map(|arg| Some((arg, typed(arg)?)))
        .collect();
    let mut found = Vec::new();
    for (arg, one) in &flags {
        let needed = missing(&command, &words(&[one])).unwrap_or_default();
        let needed: Vec<&String> = needed.difference(&always).collect();
        let names_needed = |arg: &Arg| {
            let flag = format!("--{}", arg.get_long().unwrap_or_default());
            let is_it = |name: &&String| name.split(['<', '>', '|', ' ']).any(|one| one == flag);
            needed.iter().any(is_it)
        };
        let (needed_args, others): (Vec<_>, Vec<_>) =
            flags.iter().partition(|(other, _)| names_needed(other));
        for (other, two) in others.iter().filter(|(other, _)| other != arg) {
            let excludes = |needed: &Arg| {
                let of_needed = command.get_arg_conflicts_with(needed);
                let of_other = command.get_arg_conflicts_with(other);
                of_needed.contains(other) || of_other.contains(&needed)
            };
            let is_excluded = needed_args.iter().all(|(needed, _)| excludes(needed));
            if !needed_args.is_empty() && is_excluded {
                let beside = command.clone().try_get_matches_from(words(&[one, two]));
                let kind = beside.err().map(|error| error.kind());
                let names_need = missing(&command, &words(&[one, two]))
                    .is_some_and(|names| names.difference(&always).next().is_some());
                if kind != Some(ErrorKind::ArgumentConflict) && !names_need {
                    found.push([&one[..], two].concat().join(" "));
                }
            }
        }
    }
    found
}

fn each(command: &Command, path: &str, look: &mut impl FnMut(&str, &Command)) {
    let path = format!("{path} {}", command.get_name());
    look(&path, command);
    for inner in command.get_subcommands() {
        each(inner, &path, look);
    }
}

#[test]
fn no_flag_is_taken_without_what_it_needs() {
    let mut command = crate::command_line();
    command.build();
    let mut found = Vec::new();
    each(&command, "", &mut |path, command| {
        found.extend(
            holes(command)
                .into_iter()
                .map(|hole| format!("{path} {hole}")),
        );
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_flag_that_is_taken_so_is_found() {
    let flag = |name: &'static str| Arg::new(name).long(name).action(clap::ArgAction::SetTrue);
    let command = Command::new("sooner")
        .arg(flag("explain"))
        .arg(flag("order").conflicts_with("explain"))
        .arg(flag("json").requires("explain"));
    assert_eq!(holes(&command), ["--json --order"]);
}
