//! Expressions on `$request_uri`, which is the path as the client wrote it, with its query: what
//! they say of paths is told apart from what they say of queries and of spelling.

use super::super::regex::{self, Paths};

/// The most letters of a class that are looked at one by one.
const CLASS_LETTERS_MAX: usize = 16;
/// Letters that a client may write in a path as they are, beside alphanumeric ones.
const PLAIN: &[u8] = b"-._~!$&'()*+,;=:@/";

/// What an expression is about, with `?` where a query begins; `None` where it cannot be said.
pub fn targets(expression: &str) -> Option<Paths> {
    let expression = without_classes(expression);
    regex::paths(&expression).or_else(|| by_alternatives(&expression))
}

/// The paths among these, and what is left of them as it was written: what only a query fits, or
/// only another spelling of a path.
pub fn parts(targets: Paths) -> (Paths, Vec<String>) {
    let (mut texts, mut others) = (Vec::new(), Vec::new());
    for text in &targets.texts {
        let path = of_path(text);
        let is_covered = || {
            let begin = text.split("%3F").next().unwrap_or_default();
            let longer = format!("{begin}*");
            targets
                .texts
                .iter()
                .any(|own| *own == begin || *own == longer)
        };
        let is_left_out = match &path {
            Some(path) => may_be_in_query(path),
            None => !(text.contains("%3F") && is_covered()),
        };
        let written = unescaped(text);
        if is_left_out && !others.contains(&written) {
            others.push(written);
        }
        texts.extend(path.filter(|path| !texts.contains(path)));
    }
    (Paths { texts, ..targets }, others)
}

/// The path that a text is about; `None` where it is about a query, or about what a client may
/// spell in another way.
fn of_path(text: &str) -> Option<String> {
    let mut pieces = text.split("%25");
    let mut path = pieces.next()?.to_owned();
    for piece in pieces {
        let byte = piece
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())?;
        if byte.is_ascii_alphanumeric() || byte.is_ascii_control() || PLAIN.contains(&byte) {
            return None;
        }
        path.push('%');
        path.push_str(piece);
    }
    (!text.contains("%3F")).then_some(path)
}

/// Whether something behind a star is what queries have.
fn may_be_in_query(path: &str) -> bool {
    let behind = path.split_once('*').map_or("", |(_, behind)| behind);
    behind.contains(['=', '&'])
}

/// A text with stars as an expression has it.
fn unescaped(text: &str) -> String {
    let text = text.trim_matches('*');
    let escapes = [("%2A", "*"), ("%23", "#"), ("%3F", "?"), ("%25", "%")];
    escapes
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The same expression with classes of a few letters as alternatives.
fn without_classes(expression: &str) -> String {
    let mut own = String::with_capacity(expression.len());
    let mut rest = expression;
    while let Some(letter) = rest.chars().next() {
        let whole = match letter {
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '[' => class_bytes(rest),
            letter => letter.len_utf8(),
        };
        let (piece, behind) = rest.split_at(whole);
        let is_repeated = behind.starts_with(['*', '+', '{']);
        match class_letters(piece).filter(|_| !is_repeated) {
            Some(letters) => own.push_str(&format!("(?:{})", letters.join("|"))),
            None => own.push_str(piece),
        }
        rest = behind;
    }
    own
}

/// How long the class is that a text begins with, with its brackets.
fn class_bytes(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        // A bracket at the beginning is a letter.
        let is_first = at == 1 || (at == 2 && text.starts_with("[^"));
        match letter {
            ']' if !is_escaped && !is_first => return at + 1,
            _ => is_escaped = letter == '\\' && !is_escaped,
        }
    }
    text.len()
}

/// The letters of a class, as expressions; `None` where it names them in another way.
fn class_letters(class: &str) -> Option<Vec<String>> {
    let inside = class.strip_prefix('[')?.strip_suffix(']')?;
    let mut letters = Vec::new();
    let mut rest = inside.chars();
    while let Some(letter) = rest.next() {
        let letter = match letter {
            '\\' => rest.next().filter(|own| !own.is_ascii_alphanumeric())?,
            '^' | '-' | '[' => return None,
            letter => letter,
        };
        let is_word = letter.is_ascii_alphanumeric() || !letter.is_ascii();
        letters.push(if is_word {
            letter.to_string()
        } else {
            format!("\\{letter}")
        });
    }
    (1..=CLASS_LETTERS_MAX)
        .contains(&letters.len())
        .then_some(letters)
}

/// Each alternative by itself, where one of them cannot be said.
fn by_alternatives(expression: &str) -> Option<Paths> {
    let mut all = Paths {
        texts: Vec::new(),
        is_exact: true,
        ignores_case: expression.contains("(?i)"),
    };
    for alternative in alternatives(inside_of_group(expression)) {
        let own = regex::paths(alternative).or_else(|| by_needed_letter(alternative))?;
        all.is_exact &= own.is_exact;
        for text in own.texts {
            if !all.texts.contains(&text) {
                all.texts.push(text);
            }
        }
    }
    Some(all)
}

/// An expression as all that has a letter which it cannot do without.
fn by_needed_letter(expression: &str) -> Option<Paths> {
    let pieces: Vec<(usize, &str)> = pieces(expression).collect();
    let is_needed = |at: usize| {
        let next = pieces.get(at + 1).map_or("", |(_, piece)| *piece);
        !next.starts_with(['*', '?', '{'])
    };
    let found = |wanted: &str| {
        let mut all = pieces.iter().enumerate();
        all.any(|(at, (_, piece))| *piece == wanted && is_needed(at))
    };
    let needed = [
        ("\\?", "?"),
        ("=", "="),
        ("\\=", "="),
        ("&", "&"),
        ("\\&", "&"),
    ];
    let (_, letter) = needed.into_iter().find(|(wanted, _)| found(wanted))?;
    Some(Paths {
        texts: vec![format!("*{}*", regex::escaped(letter))],
        is_exact: letter == "?",
        ignores_case: false,
    })
}

/// What stands in the group that is the whole expression.
fn inside_of_group(mut expression: &str) -> &str {
    while pieces(expression).count() == 1
        && let Some(inside) = expression.strip_prefix('(')
        && let Some(inside) = inside.strip_suffix(')')
    {
        let inside = inside.strip_prefix("?:").unwrap_or(inside);
        if inside.starts_with('?') {
            break;
        }
        expression = inside;
    }
    expression
}

fn alternatives(expression: &str) -> Vec<&str> {
    let (mut all, mut begin) = (Vec::new(), 0);
    for (at, _) in pieces(expression).filter(|(_, piece)| *piece == "|") {
        all.push(&expression[begin..at]);
        begin = at + 1;
    }
    all.push(&expression[begin..]);
    all
}

/// The letters, escapes, classes and groups of an expression, with their places.
fn pieces(expression: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &expression[at..];
        let bytes = match rest.chars().next()? {
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '[' => class_bytes(rest),
            '(' => group_bytes(rest),
            letter => letter.len_utf8(),
        };
        at += bytes;
        Some((at - bytes, &rest[..bytes]))
    })
}

/// How long the group is that a text begins with, with its brackets.
fn group_bytes(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        at += match letter {
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '[' => class_bytes(rest),
            letter => letter.len_utf8(),
        };
        match letter {
            '(' => depth += 1,
            ')' if depth == 1 => return at,
            ')' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Paths, and what is left out behind a bar.
    fn read(expression: &str) -> String {
        let Some(targets) = targets(expression) else {
            return "unsaid".into();
        };
        let (paths, others) = parts(targets);
        let mark = if paths.is_exact { "" } else { " more" };
        format!("{}{mark} | {}", paths.texts.join(" "), others.join(" "))
    }

    #[test]
    fn paths_and_queries_are_told_apart() {
        for (expression, expected) in [
            ("(/backup/|%00|union=)", "*/backup/* *union=* | %00 union="),
            (r"/users|\?author=", "*/users* | ?author="),
            (r"^/admin(\?.*)?$", "/admin | "),
            (r"^/admin(\?|$)", "/admin | "),
            (r"^/admin(/|\?)", "/admin/* | /admin?"),
            (r"\.(git|sql)(\?|$)", "*.git *.sql | "),
            (r"[\?&]id=1", "*&id=1* | ?id=1 &id=1"),
            ("^/v=1/x$", "/v=1/x | "),
            (r"\?x", " | ?x"),
            ("/a%20b", "*/a%20b* | "),
            (r"/%2e\.|%C3%A9|%", "*%C3%A9* | /%2e. %"),
            ("[<>%]", "*<* *>* | %"),
            (r"(\bunion\b.*=|/old/)", "*=* */old/* more | ="),
            (r"(\bx\b.*\?y|/old/)", "*/old/* | ?"),
            (r"(\bx\b=?|/old/)", "unsaid"),
            (r"\bx\b", "unsaid"),
            (r"(a\b(b|c)[|]=|/old/)", "*=* */old/* more | ="),
        ] {
            assert_eq!(read(expression), expected, "{expression}");
        }
    }

    proptest! {
        #[test]
        fn no_expression_panics(expression in "[a-c/.?*+=&%|()\\[\\]{}^$\\\\\u{e9}-]{0,16}") {
            _ = read(&expression);
        }
    }
}
