//! The configuration file as it was read, and a mistake in it as one line: `FILE:LINE: KEY: what is
//! wrong; what would be right`.

use super::Misconfigured;
use crate::printable::is_printable;

/// The text of a configuration file under the name that the operator gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceText {
    /// The file's name; empty when there is no file.
    pub name: String,
    /// What it holds.
    pub text: String,
    /// Keys that flags put over the file, each with its flag.
    pub flags: &'static [(&'static str, &'static str)],
}

impl SourceText {
    /// `mistake` in one line, without a line break at its end.
    pub fn render(&self, mistake: &Misconfigured) -> String {
        let Misconfigured { key, message, .. } = mistake;
        if let (true, Some(flag)) = (mistake.is_from_command_line(), self.flag(key.trim())) {
            return one_line(&format!("{flag}: {message}"));
        }
        let line = format!("{}: {message}", key.trim());
        let line = match self.place(mistake) {
            Some(place) => format!("{place}: {line}"),
            None => line,
        };
        one_line(&line)
    }

    /// A number that differs for different texts and is the same on every machine (FNV-1a, 64
    /// bits).
    pub fn hash(&self) -> u64 {
        self.text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    fn flag(&self, key: &str) -> Option<&'static str> {
        let mut flags = self.flags.iter();
        flags
            .find(|(known, _)| *known == key)
            .map(|(_, flag)| *flag)
    }

    fn place(&self, mistake: &Misconfigured) -> Option<String> {
        if mistake.is_from_command_line() {
            return Some("command line".into());
        }
        match &mistake.span {
            _ if self.name.is_empty() => None,
            Some(span) => Some(format!("{}:{}", self.name, self.line_of(span.start))),
            None => Some(self.name.clone()),
        }
    }

    /// The line that byte `at` is in, counted from 1.
    fn line_of(&self, at: usize) -> usize {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }
}

/// Whatever was written into a value, a message stays one line and does nothing to a terminal.
fn one_line(text: &str) -> String {
    let blank = |letter| if is_printable(letter) { letter } else { ' ' };
    text.chars().map(blank).collect()
}

#[cfg(test)]
mod tests {
    use super::super::from_command_line;
    use super::*;
    use toml::Spanned;

    #[test]
    fn a_mistake_is_one_line_with_its_place() {
        let mut file = SourceText {
            name: "sooner.toml".into(),
            text: "listen = []\nroot = \"/x\"\n".into(),
            flags: &[],
        };
        let root = |span| Misconfigured::at(&Spanned::new(span, ()), "root", "not there");
        assert_eq!(file.render(&root(19..23)), "sooner.toml:2: root: not there");
        assert_eq!(file.render(&root(0..0)), "sooner.toml: root: not there");
        let flag = Misconfigured::at(&from_command_line(()), "root", "not\nthere");
        assert_eq!(file.render(&flag), "command line: root: not there");
        file.flags = &[("listen", "--listen"), ("root", "DIR")];
        assert_eq!(file.render(&flag), "DIR: not there");
        let no_file = SourceText::default();
        assert_eq!(no_file.render(&root(0..0)), "root: not there");
    }

    #[test]
    fn the_hash_is_the_published_one() {
        let hash = |text: &str| {
            let text = text.into();
            let rest = SourceText::default();
            SourceText { text, ..rest }.hash()
        };
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_place_past_the_end_is_the_last_line() {
        let file = SourceText {
            name: "f".into(),
            text: "a\nb".into(),
            flags: &[],
        };
        let mistake = Misconfigured::at(&Spanned::new(9..10, ()), "k", "m");
        assert_eq!(file.render(&mistake), "f:2: k: m");
    }
}
