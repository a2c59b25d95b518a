//! Lines of a pgbouncer.ini: sections, settings with the lines they stand in, files that are
//! included in their place.

use crate::values::in_double_quotes;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files inside files that PgBouncer reads.
const DEPTH_MAX: usize = 10;
/// Stands for bytes that are no text.
const NO_TEXT: char = '\u{fffd}';

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// As it was named.
    pub file: Arc<str>,
    /// Counted from 1.
    pub line: usize,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// A line that PgBouncer or nginx would refuse, or that has no meaning here.
    #[error("{}:{}: {what}", at.file, at.line)]
    Line {
        /// Where.
        at: At,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// The file itself.
    #[error("cannot read {file}: {what}")]
    Unreadable {
        /// Its name.
        file: String,
        /// Why.
        what: String,
    },
    /// The result is not one that Sooner reads.
    #[error("the result would be wrong, which is a bug in sooner; please report it: {what}")]
    Own {
        /// What it says to it.
        what: String,
    },
}

impl At {
    /// A mistake here.
    pub(super) fn wrong(&self, what: impl Into<String>) -> ImportError {
        // One line, whatever was written into a value.
        let what = what.into().replace(char::is_control, " ");
        ImportError::Line {
            at: self.clone(),
            what,
        }
    }
}

/// One line that says something.
pub enum Line {
    /// `[NAME]`
    Section(String),
    /// `KEY = VALUE`
    Setting(String, String),
}

/// All lines in their order, those of included files where they are included.
pub fn read(file: &str, files: &Files<'_>) -> Result<Vec<(At, Line)>, ImportError> {
    let text = files.text(file).map_err(|error| ImportError::Unreadable {
        file: file.to_owned(),
        what: error.to_string(),
    })?;
    let mut reader = Reader {
        files,
        lines: Vec::new(),
    };
    reader.read(file, &text, 0)?;
    Ok(reader.lines)
}

struct Reader<'a> {
    files: &'a Files<'a>,
    lines: Vec<(At, Line)>,
}

impl Reader<'_> {
    fn read(&mut self, file: &str, text: &str, depth: usize) -> Result<(), ImportError> {
        let file: Arc<str> = file.into();
        for (index, line) in text.split('\n').enumerate() {
            let at = At {
                file: file.clone(),
                line: index + 1,
            };
            self.read_line(at, line.trim_matches(is_space), depth)?;
        }
        Ok(())
    }

    fn read_line(&mut self, at: At, line: &str, depth: usize) -> Result<(), ImportError> {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return Ok(());
        }
        if line.contains(NO_TEXT) {
            return Err(at.wrong("not in UTF-8; write it so"));
        }
        if line.contains('\0') {
            return Err(at.wrong("a zero byte, as in UTF-16; save the file in UTF-8"));
        }
        let included = line.strip_prefix("%include");
        if let Some(name) = included.filter(|name| name.starts_with([' ', '\t'])) {
            return self.include(&at, name.trim_start_matches([' ', '\t']), depth);
        }
        if let Some(rest) = line.strip_prefix('[') {
            let Some((name, behind)) = rest.split_once(']') else {
                return Err(at.wrong("a section without its end; write [NAME]"));
            };
            self.lines
                .push((at.clone(), Line::Section(name.to_owned())));
            // What follows the bracket is read as a line of its own.
            return self.read_line(at, behind.trim_start_matches(is_space), depth);
        }
        let (key, rest) = match in_double_quotes(line) {
            Some(quoted) => quoted,
            None => {
                let end = line.find(|letter| !is_of_key(letter)).unwrap_or(line.len());
                (line[..end].to_owned(), &line[end..])
            }
        };
        let Some(value) = rest.trim_start_matches([' ', '\t']).strip_prefix('=') else {
            return Err(at.wrong(format!("{line:?} is not a setting; write KEY = VALUE")));
        };
        if key.is_empty() {
            return Err(at.wrong("a value without a key; write KEY = VALUE"));
        }
        let value = value.trim_start_matches([' ', '\t']).to_owned();
        self.lines.push((at, Line::Setting(key, value)));
        Ok(())
    }

    fn include(&mut self, at: &At, name: &str, depth: usize) -> Result<(), ImportError> {
        if depth >= DEPTH_MAX {
            return Err(at.wrong(format!(
                "more than {DEPTH_MAX} files inside each other; leave this one out"
            )));
        }
        let text = self.files.text(name).map_err(|error| {
            at.wrong(format!(
                "cannot read {name}: {error}; names are relative to the folder that PgBouncer is started in, so run this command there"
            ))
        })?;
        self.read(name, &text, depth + 1)
    }
}

fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\u{b}' | '\u{c}')
}

fn is_of_key(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_.-*".contains(letter)
}

/// PgBouncer takes relative names from the folder that it was started in, those after `%include`
/// too.
#[derive(Clone, Copy)]
pub struct Files<'a> {
    /// That folder.
    pub folder: &'a Path,
    /// Reads a file of text.
    pub read: &'a dyn Fn(&Path) -> io::Result<String>,
}

impl Files<'_> {
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A name as gate.toml has it: there, relative names are beside that file.
    pub(super) fn absolute(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub(super) fn text(&self, name: &str) -> io::Result<String> {
        (self.read)(&self.path(name))
    }
}
