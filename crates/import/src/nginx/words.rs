//! Words, braces and semicolons, as nginx cuts a file.

use crate::ini::{At, ImportError};
use std::iter::Peekable;
use std::str::Chars;
use std::sync::Arc;

/// Stands for bytes that are no text.
const NO_TEXT: char = '\u{fffd}';

/// What a file consists of.
#[derive(Debug, PartialEq, Eq)]
pub enum Token {
    /// A word, without its quotes.
    Word(String),
    /// `;`
    End,
    /// `{`
    Open,
    /// `}`
    Close,
}

/// The tokens of one file.
pub struct Words<'a> {
    letters: Peekable<Chars<'a>>,
    at: At,
}

impl<'a> Words<'a> {
    /// Those of a file with this name.
    pub fn of(file: &str, text: &'a str) -> Self {
        Self {
            letters: text.chars().peekable(),
            at: At {
                file: Arc::from(file),
                line: 1,
            },
        }
    }

    fn letter(&mut self) -> Option<char> {
        let letter = self.letters.next()?;
        if letter == '\n' {
            self.at.line += 1;
        }
        Some(letter)
    }

    /// The next one, and where it begins; none at the end of the file.
    pub fn token(&mut self) -> Result<Option<(At, Token)>, ImportError> {
        loop {
            match self.letters.peek() {
                Some(letter) if is_space(*letter) => {
                    self.letter();
                }
                Some('#') => while self.letter().is_some_and(|letter| letter != '\n') {},
                _ => break,
            }
        }
        let at = self.at.clone();
        let Some(&letter) = self.letters.peek() else {
            return Ok(None);
        };
        let token = match letter {
            ';' => Token::End,
            '{' => Token::Open,
            '}' => Token::Close,
            '"' | '\'' => {
                self.letter();
                return Ok(Some((at.clone(), Token::Word(self.quoted(&at, letter)?))));
            }
            _ => return Ok(Some((at.clone(), Token::Word(self.bare(&at)?)))),
        };
        self.letter();
        Ok(Some((at, token)))
    }

    fn quoted(&mut self, at: &At, quote: char) -> Result<String, ImportError> {
        let mut word = String::new();
        loop {
            match self.letter() {
                None => {
                    return Err(at.wrong(format!("this quote has no end; write {quote} behind it")));
                }
                Some('\\') => self.escaped(&mut word),
                Some(letter) if letter == quote => break,
                Some(letter) => word.push(letter),
            }
        }
        match self.letters.peek() {
            Some(&letter) if !is_space(letter) && !matches!(letter, ';' | '{' | ')') => {
                let here = self.at.clone();
                Err(here.wrong(format!(
                    "unexpected {letter:?} behind a quote; write a space between"
                )))
            }
            _ => is_text(word, at),
        }
    }

    fn bare(&mut self, at: &At) -> Result<String, ImportError> {
        let mut word = String::new();
        while let Some(&letter) = self.letters.peek() {
            let is_of_variable = letter == '{' && word.ends_with('$');
            if is_space(letter) || (matches!(letter, ';' | '{') && !is_of_variable) {
                break;
            }
            self.letter();
            match letter {
                '\\' => self.escaped(&mut word),
                letter => word.push(letter),
            }
        }
        is_text(word, at)
    }

    /// A backslash goes only before a quote and another one, and makes three letters.
    fn escaped(&mut self, word: &mut String) {
        match self.letter() {
            Some(letter @ ('"' | '\'' | '\\')) => word.push(letter),
            Some('t') => word.push('\t'),
            Some('r') => word.push('\r'),
            Some('n') => word.push('\n'),
            Some(letter) => word.extend(['\\', letter]),
            None => word.push('\\'),
        }
    }

    /// Skips a block of another language, of which the brace has been read.
    pub fn skip_block(&mut self, at: &At) -> Result<(), ImportError> {
        let mut depth = 1;
        let mut quote = None;
        while depth > 0 {
            match (self.letter(), quote) {
                (Some('\\'), Some(_)) => {
                    self.letter();
                }
                (Some(letter), Some(own)) if letter == own => quote = None,
                (Some(_), Some(_)) => {}
                (Some(letter @ ('"' | '\'')), None) => quote = Some(letter),
                (Some('-'), None) if self.letters.peek() == Some(&'-') => {
                    while self.letter().is_some_and(|letter| letter != '\n') {}
                }
                (Some('{'), None) => depth += 1,
                (Some('}'), None) => depth -= 1,
                (Some(_), None) => {}
                (None, _) => return Err(at.wrong("this block has no end; write } behind it")),
            }
        }
        Ok(())
    }
}

fn is_text(word: String, at: &At) -> Result<String, ImportError> {
    if word.contains(NO_TEXT) {
        return Err(at.wrong("not in UTF-8; write it so"));
    }
    if word.contains('\0') {
        return Err(at.wrong("a zero byte, as in UTF-16; save the file in UTF-8"));
    }
    Ok(word)
}

fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<String, String> {
        let mut words = Words::of("f", text);
        let mut all = Vec::new();
        loop {
            match words.token().map_err(|error| error.to_string())? {
                Some((at, Token::Word(word))) => all.push(format!("{}:{word}", at.line)),
                Some((_, Token::End)) => all.push(";".into()),
                Some((_, Token::Open)) => all.push("{".into()),
                Some((_, Token::Close)) => all.push("}".into()),
                None => return Ok(all.join("|")),
            }
        }
    }

    #[test]
    fn words_are_cut_as_nginx_does() {
        for (text, expected) in [
            ("a b;", "1:a|1:b|;"),
            ("a # c; }\n b;", "1:a|2:b|;"),
            ("a{b c#d;}", "1:a|{|1:b|1:c#d|;|}"),
            ("a \"b c\" 'd\"';", "1:a|1:b c|1:d\"|;"),
            (
                r#"a "b\"c" \.php$ "\d" "x\ty";"#,
                "1:a|1:b\"c|1:\\.php$|1:\\d|1:x\ty|;",
            ),
            ("a ${b}c;", "1:a|1:${b}c|;"),
            ("if ($a = \"b\") {}", "1:if|1:($a|1:=|1:b|1:)|{|}"),
            ("a '\n' b;", "1:a|1:\n|2:b|;"),
            ("a }b;", "1:a|}|1:b|;"),
        ] {
            assert_eq!(words(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_broken_has_its_line() {
        for (text, said) in [
            ("a\n\"b;", "f:2: this quote has no end; write \" behind it"),
            ("a 'b'c;", "f:1: unexpected 'c' behind a quote"),
            ("a\n\u{fffd};", "f:2: not in UTF-8"),
            ("a\nb\0;", "f:2: a zero byte"),
        ] {
            let error = words(text).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
