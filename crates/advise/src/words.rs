//! A line of text as words: bare, in quotes, in brackets, in braces.

/// What a word stood in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Bare,
    /// Quotes, in which a backslash hides the next byte.
    Quoted,
    /// Brackets or braces.
    Enclosed,
}

/// A word without what it stood in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// What that was.
    pub kind: Kind,
    /// Its bytes.
    pub text: &'a [u8],
}

/// The words of a text, one after the other.
#[derive(Clone, Debug)]
pub struct Words<'a>(pub &'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        let text = self.0.trim_ascii_start();
        let (kind, word, rest) = match text {
            [] => return None,
            [b'"', rest @ ..] => {
                let end = end_of_quoted(rest, u8::is_ascii_whitespace);
                let after = &rest[(end + 1).min(rest.len())..];
                (Kind::Quoted, &rest[..end], after)
            }
            [b'[', rest @ ..] if closes(rest, b']') => enclosed(rest, b']'),
            [b'{', rest @ ..] if closes(rest, b'}') => enclosed(rest, b'}'),
            _ => {
                let end = end_of_bare(text);
                (Kind::Bare, &text[..end], &text[end..])
            }
        };
        self.0 = rest;
        Some(Word { kind, text: word })
    }
}

/// Where a bare word ends: blanks in `name="a text"` are the text's, and a comma may follow it.
fn end_of_bare(text: &[u8]) -> usize {
    let blank = text.iter().position(u8::is_ascii_whitespace);
    let end = blank.unwrap_or(text.len());
    let quote = text[..end].windows(2).position(|two| two == b"=\"");
    match quote {
        Some(place) => {
            let begin = place + 2;
            let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b';');
            (begin + end_of_quoted(&text[begin..], is_end) + 1).min(text.len())
        }
        None => end,
    }
}

/// Whether a word ends with what it stands in: an address may only begin with a bracket.
fn closes(rest: &[u8], close: u8) -> bool {
    let end = rest.iter().position(|byte| *byte == close);
    end.is_some_and(|end| rest.get(end + 1).is_none_or(u8::is_ascii_whitespace))
}

fn enclosed(rest: &[u8], close: u8) -> (Kind, &[u8], &[u8]) {
    let end = rest.iter().position(|byte| *byte == close);
    let (text, after) = rest.split_at(end.unwrap_or(rest.len()));
    (Kind::Enclosed, text, after.get(1..).unwrap_or_default())
}

/// Where the quote is that ends a text: some servers write quotes in it as they are, and then it is
/// the first before a blank, or what else `is_end`.
fn end_of_quoted(text: &[u8], is_end: impl Fn(&u8) -> bool) -> usize {
    let (mut place, mut first) = (0, None);
    while let Some(byte) = text.get(place) {
        match byte {
            b'\\' => place += 1,
            b'"' => {
                if text.get(place + 1).is_none_or(&is_end) {
                    return place;
                }
                first = first.or(Some(place));
            }
            _ => {}
        }
        place += 1;
    }
    first.unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        let shown = |word: Word<'_>| {
            let text = String::from_utf8_lossy(word.text).into_owned();
            match word.kind {
                Kind::Bare => text,
                Kind::Quoted => format!("<{text}>"),
                Kind::Enclosed => format!("({text})"),
            }
        };
        let all: Vec<String> = Words(text.as_bytes()).map(shown).collect();
        all.join("|")
    }

    #[test]
    fn words_are_told_apart() {
        assert_eq!(
            of(r#"a  "b \"c\" d" [e f] {g|h} i"#),
            r#"a|<b \"c\" d>|(e f)|(g|h)|i"#
        );
        assert_eq!(of(r#""a "b" c" d"#), r#"<a "b>|c"|d"#);
        assert_eq!(of(r#""x"y" 5"#), r#"<x"y>|5"#);
        assert_eq!(of(r#""never ends"#), "<never ends>");
        assert_eq!(of(r#""ends in \"#), r#"<ends in \>"#);
        assert_eq!(of("[open {too"), "[open|{too");
        assert_eq!(of("[::1]:80 x"), "[::1]:80|x");
        assert_eq!(of(r#"a="0.1, 0.2" b="" c=1"#), r#"a="0.1, 0.2"|b=""|c=1"#);
        assert_eq!(of(r#"a="never ends"#), r#"a="never ends"#);
        assert_eq!(of(r#"a="1, 2", b="3""#), r#"a="1, 2"|,|b="3""#);
        assert_eq!(of(" \t"), "");
        assert_eq!(of("\"\" 1"), "<>|1");
    }
}
