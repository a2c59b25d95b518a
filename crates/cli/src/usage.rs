//! What is wrong with a command line: every mistake one line that says what would be right.
//!
//! clap stops at the first mistake. What it found wrong is taken out of the words, or put right
//! where there is no doubt what was meant, and the rest is read again.

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use std::ffi::OsString;

#[cfg(test)]
mod requirements;

/// More mistakes than this are not told.
const MOST: usize = 10;

/// The mistakes of `words`, of which `error` is the first; `reread` gives the next one.
pub fn mistakes(
    command: &Command,
    error: Error,
    mut words: Vec<OsString>,
    reread: impl Fn(&[OsString]) -> Option<Error>,
) -> Vec<String> {
    let asked = Asked::of(command, &words);
    let mut told = Vec::new();
    let mut names = Vec::new();
    let mut is_guess = false;
    let mut next = Some(error);
    while let Some(error) = next.filter(|_| told.len() < MOST) {
        if is_guess && depends_on_guess(&error) {
            break;
        }
        match asked.said(&error, &names) {
            Some(line) if !told.contains(&line) => told.push(line),
            _ => break,
        }
        names.extend(flag_of(&error));
        let Some(rest) = repaired(&error, &words) else {
            break;
        };
        is_guess |= error.kind() == ErrorKind::UnknownArgument;
        words = rest;
        next = reread(&words);
    }
    told
}

/// Whether the mistake may be one only because of how an unknown flag was left out.
fn depends_on_guess(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::UnknownArgument => flag_of(error).is_none(),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => false,
        _ => true,
    }
}

/// The subcommand that the words are for.
struct Asked<'a> {
    command: &'a Command,
    path: String,
}

impl<'a> Asked<'a> {
    fn of(mut command: &'a Command, words: &[OsString]) -> Self {
        let mut path = command.get_name().to_owned();
        for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
            if let Some(inner) = command.find_subcommand(word) {
                command = inner;
                path = format!("{path} {word}");
            }
        }
        Self { command, path }
    }

    fn see(&self) -> String {
        format!("see `{} --help`", self.path)
    }

    fn subcommands(&self) -> String {
        let shown = self.command.get_subcommands();
        let shown = shown.filter(|inner| !inner.is_hide_set());
        or(shown.map(|inner| inner.get_name().to_owned()).collect())
    }

    /// The mistake in one line; none where everything in it was told before, of these flags.
    fn said(&self, error: &Error, told: &[String]) -> Option<String> {
        let see = self.see();
        let name = texts(error, ContextKind::InvalidArg)
            .first()
            .map(|arg| bare(arg));
        let name = name.unwrap_or_default();
        let value = texts(error, ContextKind::InvalidValue)
            .pop()
            .unwrap_or_default();
        let nearest = |kind| texts(error, kind).into_iter().next();
        Some(match error.kind() {
            ErrorKind::UnknownArgument if !name.starts_with('-') => {
                format!("`{name}` is unexpected here; {see}")
            }
            ErrorKind::UnknownArgument => match nearest(ContextKind::SuggestedArg) {
                Some(nearest) => {
                    format!("there is no flag {name}; did you mean {}?", bare(&nearest))
                }
                None => format!("there is no flag {name}; {see}"),
            },
            ErrorKind::InvalidSubcommand => {
                let word = nearest(ContextKind::InvalidSubcommand).unwrap_or_default();
                match nearest(ContextKind::SuggestedSubcommand) {
                    Some(nearest) => {
                        format!("there is no subcommand `{word}`; did you mean `{nearest}`?")
                    }
                    None => format!(
                        "there is no subcommand `{word}`; use {}; {see}",
                        self.subcommands()
                    ),
                }
            }
            ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                format!("a subcommand is missing: use {}; {see}", self.subcommands())
            }
            ErrorKind::InvalidValue => invalid_value(error, &name, &value),
            ErrorKind::ValueValidation => format!("{name}: {}", refusal(error, &value)),
            ErrorKind::MissingRequiredArgument => {
                let missing = texts(error, ContextKind::InvalidArg).into_iter();
                let missing: Vec<String> = missing
                    .filter(|arg| !alternatives(arg).any(|one| told.contains(&bare(one))))
                    .map(|arg| or(alternatives(&arg).map(unbracketed).collect()))
                    .collect();
                match missing.len() {
                    0 => return None,
                    1 => format!("{} is missing; {see}", missing[0]),
                    _ => format!("{} are missing; {see}", list(missing, "and")),
                }
            }
            ErrorKind::ArgumentConflict => {
                let mut others = texts(error, ContextKind::PriorArg);
                others.iter_mut().for_each(|other| *other = bare(other));
                if others.contains(&name) || others.is_empty() {
                    format!("{name} is given twice; give it once")
                } else {
                    format!(
                        "{name} and {} do not go together; leave one of them out",
                        list(others, "and")
                    )
                }
            }
            _ => as_one_line(error, &see),
        })
    }
}

/// A value that is missing, or none of those there are.
fn invalid_value(error: &Error, name: &str, value: &str) -> String {
    if value.is_empty() {
        let form = texts(error, ContextKind::InvalidArg).join(" ");
        return format!("{name}: its value is missing; write {}", unbracketed(&form));
    }
    let all = or(texts(error, ContextKind::ValidValue));
    match texts(error, ContextKind::SuggestedValue).first() {
        Some(nearest) => {
            format!("{name}: there is no `{value}`; did you mean `{nearest}`? It is {all}")
        }
        None => format!("{name}: there is no `{value}`; it is {all}"),
    }
}

/// Why a value was refused.
fn refusal(error: &Error, value: &str) -> String {
    let source = std::error::Error::source(error).map_or_else(String::new, ToString::to_string);
    let number = match source.as_str() {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "is not a whole number"
        }
        "invalid float literal" | "cannot parse float from empty string" => "is not a number",
        "number too large to fit in target type" => "is too large",
        "number too small to fit in target type" => "is too small",
        "number would be zero for non-zero type" => "is too small; write a whole number above 0",
        _ => "",
    };
    if !number.is_empty() {
        return format!("`{value}` {number}");
    }
    let range = source.split_once(" is not in ").map(|(_, range)| range);
    match range.and_then(|range| range.split_once("..")) {
        Some((low, "")) => format!("`{value}` is out of range; write a whole number from {low}"),
        Some((low, high)) => format!(
            "`{value}` is out of range; write a whole number from {low} to {}",
            high.trim_start_matches('=')
        ),
        None if source.contains(value) => source,
        None => format!("`{}`: {source}", without_password(value)),
    }
}

/// A value as it may be shown: without the user and the password before the host of a URL, and
/// without what `password=` says.
fn without_password(value: &str) -> String {
    let mut shown = value.to_owned();
    if let Some(begin) = value.find("://").map(|at| at + 3) {
        let end = value[begin..]
            .find('?')
            .map_or(value.len(), |at| begin + at);
        if let Some(at) = value[begin..end].rfind('@') {
            shown.replace_range(begin..=begin + at, "");
        }
    }
    if let Some((before, _)) = shown.split_once("password=") {
        shown = format!("{before}password=...");
    }
    shown
}

/// The words without the mistake, or with what was certainly meant; none where the rest would mean
/// something else.
fn repaired(error: &Error, words: &[OsString]) -> Option<Vec<OsString>> {
    let flag = flag_of(error)?;
    let value = texts(error, ContextKind::InvalidValue)
        .pop()
        .unwrap_or_default();
    let text = |at: usize| words.get(at).and_then(|word| word.to_str());
    let has_value =
        |at: usize| text(at).is_some_and(|word| !value.is_empty() && word.contains(&value));
    let is_flag = |at: usize| text(at) == Some(flag.as_str());
    let with_value = format!("{flag}=");
    let is_joined = |at: usize| text(at).is_some_and(|word| word.starts_with(&with_value));
    let mut all = 1..words.len();
    let mut rest = words.to_vec();
    match error.kind() {
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let at = all.find(|&at| {
                (is_joined(at) && has_value(at)) || (is_flag(at) && has_value(at + 1))
            })?;
            let end = if is_joined(at) { at } else { at + 1 };
            rest.drain(at..=end);
        }
        ErrorKind::UnknownArgument => {
            let at = all.find(|&at| is_joined(at) || is_flag(at))?;
            let nearest = texts(error, ContextKind::SuggestedArg).into_iter().next();
            match nearest.map(|nearest| bare(&nearest)) {
                Some(nearest) => {
                    let word = text(at)?.replacen(&flag, &nearest, 1);
                    rest[at] = word.into();
                }
                None => {
                    rest.remove(at);
                    let is_value = |word: &OsString| !word.to_string_lossy().starts_with('-');
                    if is_flag(at) && rest.get(at).is_some_and(is_value) {
                        rest.remove(at);
                    }
                }
            }
        }
        _ => return None,
    }
    Some(rest)
}

/// The flag that the mistake is at, without its value.
fn flag_of(error: &Error) -> Option<String> {
    let name = bare(texts(error, ContextKind::InvalidArg).first()?);
    name.starts_with('-').then_some(name)
}

fn texts(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// `--load` of `--load <LOAD>`, `DIR` of `<DIR>`.
fn bare(arg: &str) -> String {
    unbracketed(arg.split([' ', '=']).next().unwrap_or(arg))
}

/// `--pid <PID>` and `--port <PORT>` of `<--pid <PID>|--port <PORT>>`.
fn alternatives(arg: &str) -> impl Iterator<Item = &str> {
    let group = arg
        .strip_prefix("<--")
        .and_then(|_| arg.get(1..arg.len() - 1));
    group.unwrap_or(arg).split('|')
}

fn unbracketed(arg: &str) -> String {
    arg.replace(['<', '>', '[', ']'], "").replace("...", "")
}

fn or(words: Vec<String>) -> String {
    list(words, "or")
}

/// `a, b or c`.
fn list(mut words: Vec<String>, last: &str) -> String {
    match (words.pop(), words.is_empty()) {
        (Some(word), false) => format!("{} {last} {word}", words.join(", ")),
        (word, _) => word.unwrap_or_default(),
    }
}

/// What clap says, for the kinds of mistakes that are rare.
fn as_one_line(error: &Error, see: &str) -> String {
    let text = error.render().to_string();
    let text = text.split("\n\nUsage").next().unwrap_or_default();
    let text = text.split("\n\nFor more").next().unwrap_or_default();
    let parts = text.split("\n\n").map(|part| {
        let words: Vec<_> = part.split_whitespace().collect();
        words.join(" ")
    });
    let parts: Vec<String> = parts.collect();
    format!("{}; {see}", parts.join("; ").trim_start_matches("error: "))
}
