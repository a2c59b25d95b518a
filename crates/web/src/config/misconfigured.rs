//! A mistake in the configuration that TOML's own rules allow: a path that is not there, a name nobody defined, a wrong certificate.
//! The owner of a table says which key and what would be right; where in the file that is, follows from the span.

use std::fmt::Display;
use std::ops::Range;

use toml::Spanned;

/// One mistake. The message says what is wrong and what would be right; the place is added by `ParseError::render`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct Misconfigured {
    /// Bytes of the file that hold the wrong value; `None` when no value of the file is to blame (it came from a flag, or is missing).
    pub span: Option<Range<usize>>,
    /// The key as a user would look for it: `site.root`, `tls.key`.
    pub key: String,
    /// What is wrong and what would be right, lower case, without a line break.
    pub message: String,
}

impl Misconfigured {
    /// A mistake in the value `value` of `key`. A value that is in no file (a flag's, a default's: span 0..0) has no place.
    pub fn at<T>(value: &Spanned<T>, key: &str, message: impl Display) -> Self {
        let span = value.span();
        Self {
            span: (span != (0..0)).then_some(span),
            key: key.to_owned(),
            message: message.to_string(),
        }
    }

    /// A mistake that is no single value's: something is missing, or the value came from the command line.
    pub fn without_place(key: &str, message: impl Display) -> Self {
        Self {
            span: None,
            key: key.to_owned(),
            message: message.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_the_file_has_a_place_and_a_flags_value_has_none() {
        let from_file = Misconfigured::at(&Spanned::new(3..7, "x"), "root", "not there");
        assert_eq!(from_file.span, Some(3..7));
        let from_flag = Misconfigured::at(&Spanned::new(0..0, "x"), "root", "not there");
        assert_eq!(from_flag, Misconfigured::without_place("root", "not there"));
        assert_eq!(from_file.to_string(), "root: not there");
    }
}
