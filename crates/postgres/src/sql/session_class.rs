//! `SET sooner.class = gold`: a session's own word about what its transactions are.
//!
//! PostgreSQL takes any setting with a dot in its name. This one is the gate's: it is remembered
//! here, and means nothing to the server.

use super::is;
use super::tokens::{Token, Tokens};

/// The setting's name.
pub const SESSION_CLASS: &str = "sooner.class";

/// What a command that does nothing else says of it: another word, or that the first counts again.
/// Behind SET LOCAL nothing is left to be ordered.
pub fn session_class(sql: &[u8]) -> Option<Option<String>> {
    // Longer than any that is alone.
    const LONGEST_BYTES: usize = 400;
    if sql.len() > LONGEST_BYTES {
        return None;
    }
    let mut tokens = Tokens::new(sql);
    let mut next = || tokens.next_with_text();
    let (Token::Word(verb), _) = next()? else {
        return None;
    };
    let (is_set, is_reset) = (is(verb, "set"), is(verb, "reset"));
    let mut name = next()?;
    if is_set && matches!(name.0, Token::Word(word) if is(word, "session")) {
        name = next()?;
    }
    let is_it = match name.0 {
        Token::Quoted(whole) => is(whole, SESSION_CLASS),
        Token::Word(first) => {
            is(first, "sooner") && next()?.1 == b"." && is_word(next()?.0, "class")
        }
        _ => false,
    };
    if !is_it || !(is_set || is_reset) {
        return None;
    }
    let value = if is_set { value(&mut next)? } else { None };
    let mut behind = std::iter::from_fn(next).skip_while(|(token, _)| *token == Token::Semicolon);
    behind.next().is_none().then_some(value)
}

fn is_word(token: Token<'_>, keyword: &str) -> bool {
    matches!(token, Token::Word(word) if is(word, keyword))
}

/// What stands behind the name of a SET.
fn value<'a>(next: &mut impl FnMut() -> Option<(Token<'a>, &'a [u8])>) -> Option<Option<String>> {
    let (token, text) = next()?;
    if text != b"=" && !is_word(token, "to") {
        return None;
    }
    let (token, text) = next()?;
    let text = match token {
        Token::Word(word) if is(word, "default") => return Some(None),
        Token::Word(word) => word.to_ascii_lowercase(),
        Token::Quoted(name) => name.to_vec(),
        Token::Other => inside_quotes(text)?,
        Token::Semicolon => return None,
    };
    String::from_utf8(text).ok().map(Some)
}

fn inside_quotes(text: &[u8]) -> Option<Vec<u8>> {
    let inside = text.strip_prefix(b"'")?.strip_suffix(b"'")?;
    let text = str::from_utf8(inside).ok()?;
    Some(text.replace("''", "'").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_set_and_taken_back() {
        let word = |word: &str| Some(Some(word.to_owned()));
        for (sql, expected) in [
            ("SET sooner.class = 'gold'", word("gold")),
            ("set session Sooner.Class to Gold;", word("gold")),
            ("SET \"sooner.class\" = 'it''s'", word("it's")),
            ("SET sooner.class TO DEFAULT", Some(None)),
            ("/* x */ RESET sooner.class", Some(None)),
            ("SET LOCAL sooner.class = 'gold'", None),
            ("SET sooner.class = 'gold'; SELECT 1", None),
            ("SET sooner.class", None),
            ("SET sooner.other = 1", None),
            ("SET sooner.class = 'gold', 'silver'", None),
            ("SELECT 1", None),
            ("", None),
        ] {
            assert_eq!(session_class(sql.as_bytes()), expected, "{sql}");
        }
    }
}
