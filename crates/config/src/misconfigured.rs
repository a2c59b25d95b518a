//! A mistake in the configuration: what TOML refuses, and what it allows and cannot work, such as a
//! path that is not there, a name that is not defined, a wrong certificate. The owner of a table
//! says which key and what would be right; the place follows from the span.

use std::fmt::Display;
use std::ops::Range;

use toml::Spanned;

/// Where a value is that came from the command line: in no file.
const COMMAND_LINE: Range<usize> = usize::MAX..usize::MAX;

/// One mistake; [`SourceText::render`](super::SourceText::render) adds the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct Misconfigured {
    /// Bytes of the file that hold the wrong value; `None` when no value of the file is to blame.
    pub span: Option<Range<usize>>,
    /// The key as a user would look for it: `site.root`, `tls.key`.
    pub key: String,
    /// What is wrong and what would be right, lower case, without a line break.
    pub message: String,
}

impl Misconfigured {
    /// A mistake in the value `value` of `key`. A default (its span is 0..0) has no place.
    pub fn at<T>(value: &Spanned<T>, key: &str, message: impl Display) -> Self {
        let span = value.span();
        Self {
            span: (span != (0..0)).then_some(span),
            key: key.to_owned(),
            message: message.to_string(),
        }
    }

    /// A mistake that is no single value's, such as something that is missing.
    pub fn without_place(key: &str, message: impl Display) -> Self {
        Self {
            span: None,
            key: key.to_owned(),
            message: message.to_string(),
        }
    }

    /// Whether the wrong value came from the command line.
    pub fn is_from_command_line(&self) -> bool {
        self.span == Some(COMMAND_LINE)
    }
}

/// A value given on the command line instead of the file.
pub fn from_command_line<T>(value: T) -> Spanned<T> {
    Spanned::new(COMMAND_LINE, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_knows_where_it_came_from() {
        let of_file = Misconfigured::at(&Spanned::new(3..7, "x"), "root", "not there");
        assert_eq!(of_file.span, Some(3..7));
        assert_eq!(of_file.to_string(), "root: not there");
        let of_default = Misconfigured::at(&Spanned::new(0..0, "x"), "root", "not there");
        assert_eq!(
            of_default,
            Misconfigured::without_place("root", "not there")
        );
        let of_flag = Misconfigured::at(&from_command_line("x"), "root", "not there");
        assert!(of_flag.is_from_command_line() && !of_file.is_from_command_line());
    }
}
