//! Directives and their blocks, files that are included in their place.

use super::check;
use super::files::Sources;
use super::foreign;
use super::words::{Token, Words};
use crate::ini::{At, ImportError};
use std::path::Path;

/// Blocks and files inside each other; nginx's own files need four.
const DEPTH_MAX: usize = 24;
/// Files that may be read: a file that includes itself twice would be read without end.
const FILES_MAX: usize = 2000;
/// Files that nginx brings along, which may be missing where it is not installed: they say nothing
/// of who may come.
const BROUGHT_ALONG: [&str; 8] = [
    "mime.types",
    "fastcgi_params",
    "fastcgi.conf",
    "uwsgi_params",
    "scgi_params",
    "koi-utf",
    "koi-win",
    "win-utf",
];

/// One directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// Where it begins.
    pub at: At,
    /// Its name.
    pub name: String,
    /// What follows the name.
    pub args: Vec<String>,
    /// What is in its braces, if it has some.
    pub block: Option<Vec<Directive>>,
    /// The first argument on another line than the one before it that is the name of a directive,
    /// and its line: a `;` may be missing there.
    pub runs_into: Option<(usize, usize)>,
}

impl Directive {
    /// One of words with a blank between each two, in the first line of a file.
    #[cfg(test)]
    pub fn of_words(text: &str) -> Directive {
        let mut words = text.split(' ').map(str::to_owned);
        Directive {
            at: At {
                file: "f".into(),
                line: 1,
            },
            name: words.next().unwrap_or_default(),
            args: words.collect(),
            block: None,
            runs_into: None,
        }
    }

    /// Its first argument, or nothing.
    pub fn first(&self) -> &str {
        self.args.first().map_or("", String::as_str)
    }

    /// What is in its braces.
    pub fn inside(&self) -> &[Self] {
        self.block.as_deref().unwrap_or_default()
    }

    /// As it was written, on one line and not too long.
    pub fn text(&self) -> String {
        let mut text = self.name.clone();
        for arg in &self.args {
            let needs_quotes = arg.is_empty() || arg.contains([' ', '\t', '\n', ';']);
            if needs_quotes {
                text.push_str(&format!(" \"{arg}\""));
            } else {
                text.push_str(&format!(" {arg}"));
            }
        }
        if self.block.is_some() {
            text.push_str(" {...}");
        }
        let text = text.replace(char::is_control, " ");
        match text.char_indices().nth(80) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text,
        }
    }
}

/// All directives of a file and of those that it includes.
pub fn read(sources: &Sources<'_>) -> Result<Vec<Directive>, ImportError> {
    let (path, name) = &sources.main;
    let text = sources
        .text(path)
        .map_err(|error| ImportError::Unreadable {
            file: name.clone(),
            what: error.to_string(),
        })?;
    foreign::check_beginning(name, &text)?;
    foreign::check(name, &text)?;
    let mut reader = Reader { sources, files: 1 };
    reader.file(name, &text, 0)
}

struct Reader<'a> {
    sources: &'a Sources<'a>,
    files: usize,
}

impl Reader<'_> {
    fn file(
        &mut self,
        name: &str,
        text: &str,
        depth: usize,
    ) -> Result<Vec<Directive>, ImportError> {
        foreign::check_beginning(name, text)?;
        let mut words = Words::of(name, text);
        self.block(&mut words, None, depth)
    }

    /// Up to the end of the block that begins at `opened`, or of the file.
    fn block(
        &mut self,
        words: &mut Words<'_>,
        opened: Option<&At>,
        depth: usize,
    ) -> Result<Vec<Directive>, ImportError> {
        let mut directives = Vec::new();
        let mut pending: Option<Directive> = None;
        let mut line_before = 0;
        loop {
            let Some((at, token)) = words.token()? else {
                return match (pending, opened) {
                    (Some(last), _) => Err(last
                        .at
                        .wrong(format!("{} has no end; write ; behind it", last.name))),
                    (None, Some(opened)) => {
                        Err(opened.wrong("this block has no end; write } behind it"))
                    }
                    (None, None) => Ok(directives),
                };
            };
            let line = at.line;
            match (token, pending.take()) {
                (Token::Word(name), None) => {
                    pending = Some(Directive {
                        at,
                        name,
                        args: Vec::new(),
                        block: None,
                        runs_into: None,
                    });
                }
                (Token::Word(arg), Some(mut directive)) => {
                    let is_next = line_before < line && check::is_known(&arg);
                    if is_next && directive.runs_into.is_none() {
                        directive.runs_into = Some((directive.args.len(), line));
                    }
                    directive.args.push(arg);
                    pending = Some(directive);
                }
                (Token::End, Some(directive)) if directive.name == "include" => {
                    directives.extend(self.included(&directive, depth)?);
                }
                (Token::End, Some(directive)) => directives.push(directive),
                (Token::Open, Some(mut directive)) => {
                    if depth >= DEPTH_MAX {
                        return Err(at.wrong(format!(
                            "more than {DEPTH_MAX} blocks and files inside each other; leave this one out"
                        )));
                    }
                    directive.block = Some(if directive.name.ends_with("_by_lua_block") {
                        words.skip_block(&at)?;
                        Vec::new()
                    } else {
                        self.block(words, Some(&at), depth + 1)?
                    });
                    directives.push(directive);
                }
                (Token::Close, None) if opened.is_some() => return Ok(directives),
                (Token::Close, None) => return Err(at.wrong("unexpected }: no block is open")),
                (Token::Close, Some(last)) => {
                    return Err(at.wrong(format!("unexpected }}; write ; behind {}", last.text())));
                }
                (Token::End, None) => {
                    return Err(at.wrong("unexpected ;: no directive is before it"));
                }
                (Token::Open, None) => {
                    return Err(at.wrong("unexpected {: no directive is before it"));
                }
            }
            line_before = line;
        }
    }

    fn included(
        &mut self,
        directive: &Directive,
        depth: usize,
    ) -> Result<Vec<Directive>, ImportError> {
        let at = &directive.at;
        let [name] = directive.args.as_slice() else {
            return Err(at.wrong("include names one file or pattern; write include FILE;"));
        };
        if depth >= DEPTH_MAX {
            return Err(at.wrong(format!(
                "more than {DEPTH_MAX} blocks and files inside each other; leave this one out"
            )));
        }
        let mut directives = Vec::new();
        for path in self.sources.included(name) {
            self.files += 1;
            if self.files > FILES_MAX {
                return Err(at.wrong(format!("more than {FILES_MAX} files; leave this one out")));
            }
            let shown = path.display().to_string();
            match self.sources.text(&path) {
                Ok(text) => directives.extend(self.file(&shown, &text, depth + 1)?),
                Err(_) if is_brought_along(&path) => {}
                Err(error) => return Err(at.wrong(format!("cannot read {shown}: {error}"))),
            }
        }
        Ok(directives)
    }
}

fn is_brought_along(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    BROUGHT_ALONG.iter().any(|known| name == *known)
}
