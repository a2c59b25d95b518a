//! Text that others wrote, made harmless to a terminal and to the reader of a log.
//!
//! What is escaped is what Rust's `escape_debug` takes for unprintable: control characters (C0, C1,
//! DEL), format characters (those that turn the direction of text among them), line and paragraph
//! separators, other white space than the blank, and what is not assigned.

use std::borrow::Cow;

/// The most characters of a text that are kept: clients choose the length of names.
const CHARACTERS_MAX: usize = 2000;

/// Whether a terminal shows `character` as itself, and nothing beside it.
pub fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return !character.is_ascii_control();
    }
    // Behind another one: a character that combines with the one before it counts as printable.
    let mut text = String::from('a');
    text.push(character);
    text.escape_debug().nth(1) == Some(character)
}

/// `text` with escapes in place of what is not printable, in one line of bounded length.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.len() <= CHARACTERS_MAX && text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let mut printable = String::with_capacity(text.len().min(CHARACTERS_MAX));
    let mut characters = text.chars();
    for character in characters.by_ref().take(CHARACTERS_MAX) {
        if is_printable(character) {
            printable.push(character)
        } else {
            printable.extend(character.escape_default())
        }
    }
    if characters.next().is_some() {
        printable.push_str("...");
    }
    Cow::Owned(printable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_steers_a_terminal_or_turns_text_round_is_escaped() {
        let steering = [
            '\0',
            '\n',
            '\u{1b}',
            '\u{7f}',
            '\u{80}',
            '\u{85}',
            '\u{9b}',
            '\u{9d}',
            '\u{9f}',
            '\u{ad}',
            '\u{61c}',
            '\u{200b}',
            '\u{200e}',
            '\u{200f}',
            '\u{2028}',
            '\u{2029}',
            '\u{202a}',
            '\u{202e}',
            '\u{2066}',
            '\u{2069}',
            '\u{206f}',
            '\u{feff}',
            '\u{fff9}',
            '\u{e0001}',
        ];
        for character in steering {
            assert!(!is_printable(character), "{:x}", character as u32);
        }
        for character in "aZ \"'\\~\u{e9}\u{301}\u{5d0}\u{4e2d}\u{1f600}".chars() {
            assert!(is_printable(character), "{:x}", character as u32);
        }
        assert_eq!(printable("a\u{202e}b\u{9b}2J\n"), "a\\u{202e}b\\u{9b}2J\\n");
        assert_eq!(printable("caf\u{e9} \"x\""), "caf\u{e9} \"x\"");
    }

    proptest! {
        #[test]
        fn any_text_becomes_one_printable_line_of_bounded_length(text in ".{0,3000}") {
            let line = printable(&text);
            prop_assert!(line.chars().all(is_printable));
            prop_assert!(line.chars().count() <= 10 * CHARACTERS_MAX + 3);
        }
    }
}
