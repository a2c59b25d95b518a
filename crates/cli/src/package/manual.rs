//! Manual pages of section 1: what clap_mangen makes of a command, then examples, files, exit
//! status and what else to read.

use super::facts;
use crate::examples::{broken, examples};
use clap_mangen::Man;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// The longest line of a page's source, which programs that check pages insist on.
const SOURCE_COLUMNS: usize = 80;
/// No word is divided, and no line is stretched: both spoil names of flags.
const LAYOUT: &str = ".nh\n.ad l\n";
/// The longest line of an example, which a terminal of 80 columns shows whole.
const EXAMPLE_COLUMNS: usize = 68;

/// Writes a page for this command and each command below it that help shows.
pub fn write(command: clap::Command, date: &str, folder: &Path) -> io::Result<()> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write_below(&command, &[], date, folder)
}

fn write_below(
    command: &clap::Command,
    path: &[&str],
    date: &str,
    folder: &Path,
) -> io::Result<()> {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let path = [path, &[sub.get_name()]].concat();
        write_below(sub, &path, date, folder)?;
    }
    let name = page_name(path);
    fs::write(
        folder.join(format!("{name}.1")),
        page(command, path, &name, date)?,
    )
}

/// `sooner-load-replay`.
fn page_name(path: &[&str]) -> String {
    [&["sooner"], path].concat().join("-")
}

fn page(command: &clap::Command, path: &[&str], name: &str, date: &str) -> io::Result<String> {
    let man = Man::new(command.clone());
    let mut made = Vec::new();
    man.render_name_section(&mut made)?;
    made.extend(synopsis(command).into_bytes());
    man.render_description_section(&mut made)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(&mut made)?;
    }
    if command.get_subcommands().any(|sub| !sub.is_hide_set()) {
        man.render_subcommands_section(&mut made)?;
    }
    let mut body = String::from_utf8_lossy(&made).into_owned();
    body.push_str(&own_sections(command, path));
    Ok(format!(
        ".TH {} 1 \"{date}\" \"Sooner {}\" \"Sooner\"\n{LAYOUT}{}",
        name.to_uppercase(),
        env!("CARGO_PKG_VERSION"),
        clean(&body)
    ))
}

/// The usage as `--help` shows it: clap_mangen would list all flags without their values.
fn synopsis(command: &clap::Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let lines = usage.trim_start_matches("Usage: ").lines();
    let lines: Vec<String> = lines.map(|line| escaped(line.trim())).collect();
    format!(".SH SYNOPSIS\n{}\n", lines.join("\n.br\n"))
}

/// What clap knows nothing of.
fn own_sections(command: &clap::Command, path: &[&str]) -> String {
    let mut text = String::from("\n.SH EXAMPLES\n");
    for (number, (line, what)) in examples(path).iter().enumerate() {
        // A heading begins a paragraph already.
        let begin = if number > 0 { ".PP\n" } else { "" };
        let shown = broken(line, EXAMPLE_COLUMNS)
            .replace('\\', "\\e")
            .replace('-', "\\-");
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "{begin}{}:\n.PP\n.RS 4\n.nf\n{}\n.fi\n.RE\n",
            escaped(what),
            shown.replace('\'', "\\(aq")
        );
    }
    let files: Vec<_> = facts::files(path).collect();
    if !files.is_empty() {
        text.push_str(".SH FILES\n");
    }
    for (file, what) in files {
        let _ = write!(text, ".TP\n.I {}\n{}\n", escaped(file), escaped(what));
    }
    text.push_str(".SH EXIT STATUS\n");
    for (code, what) in facts::exit_codes(path) {
        let _ = write!(text, ".TP\n.B {code}\n{}\n", escaped(what));
    }
    text.push_str(".SH SEE ALSO\n");
    let pages = see_also(command, path);
    let pages: Vec<String> = pages
        .iter()
        .map(|(name, section)| format!(".BR {} ({section})", escaped(name)))
        .collect();
    text.push_str(&pages.join(" ,\n"));
    text.push('\n');
    text
}

/// The command above, those below, and the configuration's page.
fn see_also(command: &clap::Command, path: &[&str]) -> Vec<(String, u8)> {
    let below = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let mut pages: Vec<(String, u8)> = below
        .map(|sub| (page_name(&[path, &[sub.get_name()]].concat()), 1))
        .collect();
    if let Some((_, above)) = path.split_last() {
        pages.push((page_name(above), 1));
    }
    let configuration = facts::configuration_pages(path);
    pages.extend(configuration.iter().map(|name| ((*name).to_owned(), 5)));
    pages.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
    pages
}

/// As one word or sentence of roff.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq")
}

/// The same page without what programs that check pages find fault with: blanks at the ends of
/// lines, breaks beside empty lines, and long lines where they are filled.
fn clean(page: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut is_filled = true;
    // clap_mangen defines this string at the beginning of each part.
    let kept = page
        .lines()
        .filter(|line| !line.starts_with(".ie \\n(.g") && !line.starts_with(".el .ds Aq"))
        .map(|line| line.replace("\\*(Aq", "\\(aq"));
    for line in kept {
        let line = line.trim_end();
        match line {
            ".nf" => is_filled = false,
            ".fi" => is_filled = true,
            _ => {}
        }
        let before = lines.last().map(String::as_str);
        let is_idle_break = line == ".br" && matches!(before, Some(".sp" | ".br" | ".PP"));
        if line.is_empty() || is_idle_break {
            continue;
        }
        if line == ".sp" && before == Some(".br") {
            lines.pop();
        }
        if is_filled && !line.starts_with('.') {
            lines.extend(wrapped(line));
        } else {
            lines.push(line.to_owned());
        }
    }
    lines.join("\n") + "\n"
}

/// At blanks, so that no line begins with what roff takes for a request.
fn wrapped(line: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let length = lines.last().map_or(0, String::len);
        let may_begin = !word.starts_with(['.', '\'']);
        if length > 0 && length + 1 + word.len() > SOURCE_COLUMNS && may_begin {
            lines.push(word.to_owned());
        } else if let Some(last) = lines.last_mut() {
            if length > 0 {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_line_is_one_to_a_shell_and_fits() {
        let (line, _) = examples(&["load", "replay"])[1];
        let broken = broken(line, EXAMPLE_COLUMNS);
        assert!(broken.lines().count() > 1, "{broken}");
        assert!(broken.lines().all(|line| line.len() <= 72), "{broken}");
        let joined = broken.replace("\\\n", "");
        let words: Vec<_> = joined.split_whitespace().collect();
        assert_eq!(words.join(" "), line);
    }

    #[test]
    fn no_line_of_the_source_is_long_or_begins_as_a_request() {
        let text = format!(
            "{} .hidden {}",
            "word ".repeat(15).trim_end(),
            "x".repeat(30)
        );
        let lines = wrapped(&text);
        assert!(lines.len() > 1 && lines.iter().all(|line| !line.starts_with('.')));
        assert_eq!(lines.join(" "), text);
    }
}
