//! Configuration files and the flags that go over them, for every command that has both.

use anyhow::Context;
use sooner_config::{Misconfigured, SourceText, Spanned, from_command_line};
use std::fs;
use std::path::Path;

/// Reads the file that `--config` names, if it names one; `flags` go over its keys.
pub fn read(
    file: Option<&Path>,
    flags: &'static [(&'static str, &'static str)],
) -> anyhow::Result<SourceText> {
    let (name, text) = match file {
        Some(file) => {
            let name = file.display().to_string();
            let text = fs::read_to_string(file)
                .with_context(|| format!("cannot read the configuration {name}"))?;
            (name, text)
        }
        None => (String::new(), String::new()),
    };
    Ok(SourceText { name, text, flags })
}

/// A mistake as an error of one line, with its place.
pub fn located(source: &SourceText, mistake: &Misconfigured) -> anyhow::Error {
    anyhow::Error::msg(source.render(mistake))
}

/// All mistakes as one error, a line each.
pub fn all_located(source: &SourceText, mistakes: &[Misconfigured]) -> anyhow::Error {
    let lines = mistakes.iter().map(|mistake| source.render(mistake));
    anyhow::Error::msg(lines.collect::<Vec<_>>().join("\n"))
}

/// What only a start refuses, as a check before a reload says it.
pub fn at_next_start(mut mistake: Misconfigured) -> Misconfigured {
    mistake
        .message
        .push_str("; a reload works all the same, the next start would fail");
    mistake
}

/// A flag over a key that may be missing.
pub fn put<T: Clone>(key: &mut Option<Spanned<T>>, flag: Option<&T>) {
    if let Some(value) = flag {
        *key = Some(from_command_line(value.clone()));
    }
}

/// A flag that may be given several times: all of them over all of the file's.
pub fn put_all<T: Clone>(key: &mut Vec<Spanned<T>>, flags: &[T]) {
    if !flags.is_empty() {
        *key = flags.iter().cloned().map(from_command_line).collect();
    }
}
