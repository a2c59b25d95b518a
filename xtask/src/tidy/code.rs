//! Reading Rust source without a parser: code with its comments and literals blanked out, and the
//! functions in it. Enough for counting lines and finding words; rustc judges everything else.

use std::ops::Range;

/// The code with every comment, string and character literal replaced by spaces. Bytes and lines keep their places.
pub fn blanked(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        match literal_or_comment(bytes, at) {
            Some(end) => {
                let end = end.min(bytes.len());
                code[at..end]
                    .iter_mut()
                    .filter(|byte| **byte != b'\n')
                    .for_each(|byte| *byte = b' ');
                at = end;
            }
            None => at += 1,
        }
    }
    // Only whole literals and comments were blanked, so this replaces nothing.
    String::from_utf8_lossy(&code).into_owned()
}

/// A function: its name, the line it starts on (from 1) and its length in lines, signature included.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    pub line: usize,
    pub lines: usize,
}

/// The functions with a body in blanked code.
pub fn functions(code: &str) -> Vec<Function> {
    words(code)
        .filter(|word| &code[word.clone()] == "fn")
        .filter_map(|word| function_at(code, word))
        .collect()
}

/// The words (identifiers, keywords, numbers) of blanked code, by place.
pub fn words(code: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + code[from..].find(is_word)?;
        let length = code[start..]
            .find(|c| !is_word(c))
            .unwrap_or(code.len() - start);
        from = start + length;
        Some(start..from)
    })
}

/// The line of a place in the text, from 1.
pub fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
}

fn function_at(code: &str, keyword: Range<usize>) -> Option<Function> {
    // `fn(u8) -> u8` is a type: no name follows the keyword.
    let rest = &code[keyword.end..];
    let name = rest.trim_start();
    if name.len() == rest.len() || name.starts_with('(') {
        return None;
    }
    let name_length = name.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    let body = body_after(code.as_bytes(), keyword.end)?;
    let line = line_of(code, keyword.start);
    Some(Function {
        name: name[..name_length].to_owned(),
        line,
        lines: line_of(code, body.end) - line + 1,
    })
}

/// From the opening brace of the next body to its closing one; `None` for a declaration without a body.
fn body_after(code: &[u8], from: usize) -> Option<Range<usize>> {
    let (mut nested, mut start) = (0_usize, None);
    for (at, byte) in code.iter().enumerate().skip(from) {
        match byte {
            b'{' if nested == 0 && start.is_none() => (start, nested) = (Some(at), 1),
            b';' if nested == 0 => return None,
            b'{' | b'(' | b'[' => nested += 1,
            b'}' | b')' | b']' => nested = nested.saturating_sub(1),
            _ => {}
        }
        if let (Some(start), 0) = (start, nested) {
            return Some(start..at);
        }
    }
    None
}

/// Where the literal or comment that starts here ends; `None` when none starts here.
fn literal_or_comment(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let in_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    match rest {
        [b'/', b'/', ..] => Some(
            at + rest
                .iter()
                .position(|byte| *byte == b'\n')
                .unwrap_or(rest.len()),
        ),
        [b'/', b'*', ..] => Some(at + block_comment(rest)),
        [b'"', ..] => Some(at + quoted(rest, b'"')),
        [b'\'', ..] => character(rest).map(|length| at + length),
        [b'r', b'"' | b'#', ..] if !in_word || raw_prefix(bytes, at) => {
            raw_string(rest).map(|length| at + length)
        }
        _ => None,
    }
}

/// Whether the `r` here ends the prefix `br` or `cr` of a raw string.
fn raw_prefix(bytes: &[u8], at: usize) -> bool {
    let letter_before = |back: usize| at.checked_sub(back).map(|place| bytes[place]);
    matches!(letter_before(1), Some(b'b' | b'c'))
        && !letter_before(2).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (at, depth) = (at + 2, depth + 1),
            [b'*', b'/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// The length of a character literal; `None` for a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(&rest[1..rest.len().min(8)]);
    match text.chars().next()? {
        '\\' => Some(quoted(rest, b'\'')),
        one => (rest.get(1 + one.len_utf8()) == Some(&b'\'')).then(|| 2 + one.len_utf8()),
    }
}

/// The length of `r"..."` or `r#"..."#`; `None` for a raw identifier.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    let text = 1 + hashes + 1;
    (rest.get(text - 1) == Some(&b'"')).then_some(())?;
    let end = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
    let length = rest[text..]
        .windows(end.len())
        .position(|window| window == end);
    Some(length.map_or(rest.len(), |length| text + length + end.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_comments_and_literals_only() {
        let source = r##"a("fn x {", 'b', '\'', b"\"", r#"raw " fn"#, br"\", 'é'); // fn y {
fn life<'a>(x: &'a str) { /* { /* nested */ } */ r#type }"##;
        let code = blanked(source);
        assert_eq!(code.len(), source.len());
        assert_eq!(
            code.split_whitespace().collect::<String>(),
            "a(,,,b,,b,);fnlife<'a>(x:&'astr){r#type}"
        );
    }

    #[test]
    fn measures_functions_with_bodies() {
        let code = blanked(
            "fn a() {}\ntrait T { fn none(&self, x: [u8; 4]); }\nfn b(\n  x: fn(u8) -> u8,\n  y: [u8; { 2 }],\n) {\n  '}'\n}\n",
        );
        let found: Vec<_> = functions(&code)
            .into_iter()
            .map(|f| (f.name, f.line, f.lines))
            .collect();
        assert_eq!(found, [("a".to_owned(), 1, 1), ("b".to_owned(), 3, 6)]);
    }
}
