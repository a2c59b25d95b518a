//! Regular expressions as the paths that Sooner has: texts with stars. What cannot be said becomes
//! more than it was, and says that it did.

/// The most texts one expression may stand for.
const TEXTS_MAX: usize = 64;
/// The most stars in a text.
const STARS_MAX: usize = 4;
/// Groups inside each other.
const DEPTH_MAX: usize = 16;

/// The paths of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// Texts with stars, as `site.location.paths` has them.
    pub texts: Vec<String>,
    /// Whether they stand for the very same paths, and not for more.
    pub is_exact: bool,
    /// Whether the expression says itself that capitals make no difference.
    pub ignores_case: bool,
}

/// The paths that an expression is about; `None` where nothing can be said of them.
pub fn paths(expression: &str) -> Option<Paths> {
    let expression = without_hidden(expression);
    let mut reader = Reader {
        letters: expression.chars().collect(),
        at: 0,
        is_exact: true,
        ignores_case: false,
    };
    let parts = reader.alternatives(0)?;
    if reader.at < reader.letters.len() {
        return None;
    }
    let mut texts: Vec<String> = Vec::new();
    for part in parts {
        let mut text = part.text;
        if !part.begins {
            text.insert(0, '*');
        }
        if !part.ends {
            text.push('*');
        }
        while text.contains("**") {
            text = text.replace("**", "*");
        }
        if text.matches('*').count() > STARS_MAX {
            return None;
        }
        // What cannot begin a path fits none.
        if text.starts_with(['/', '*']) && !texts.contains(&text) {
            texts.push(text);
        }
    }
    (!texts.is_empty()).then_some(Paths {
        texts,
        is_exact: reader.is_exact,
        ignores_case: reader.ignores_case,
    })
}

/// The same expression but for names that begin with a dot, which are not sent anyway: one letter
/// before the dot of an end (`[^/]\.php$`, `/(.+\.php)$`) is as good as none.
fn without_hidden(expression: &str) -> String {
    let own = match expression.strip_prefix("[^/]") {
        Some(rest) if rest.starts_with("\\.") => rest,
        _ => expression,
    };
    let mut own = own.to_owned();
    for begin in ["/(", "/", "^(", "^"] {
        for some in [".+", ".+?"] {
            own = own.replace(&format!("{begin}{some}\\."), &format!("{begin}.*\\."));
        }
    }
    own
}

#[derive(Clone, Debug, Default)]
struct Part {
    text: String,
    begins: bool,
    ends: bool,
}

struct Reader {
    letters: Vec<char>,
    at: usize,
    is_exact: bool,
    ignores_case: bool,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn starts_with(&self, text: &str) -> bool {
        let rest = self.letters.get(self.at..).unwrap_or_default();
        text.chars()
            .enumerate()
            .all(|(at, own)| rest.get(at) == Some(&own))
    }

    fn alternatives(&mut self, depth: usize) -> Option<Vec<Part>> {
        let mut all = self.sequence(depth)?;
        while self.peek() == Some('|') {
            self.at += 1;
            all.extend(self.sequence(depth)?);
        }
        (all.len() <= TEXTS_MAX).then_some(all)
    }

    fn sequence(&mut self, depth: usize) -> Option<Vec<Part>> {
        let mut parts = vec![Part::default()];
        while let Some(letter) = self.peek() {
            if matches!(letter, '|' | ')') {
                break;
            }
            let next = self.atom(depth)?;
            parts = joined(&parts, &next)?;
        }
        Some(parts)
    }

    /// One piece with what follows it, how often it may come.
    fn atom(&mut self, depth: usize) -> Option<Vec<Part>> {
        let letter = self.peek()?;
        self.at += 1;
        let own = match letter {
            '^' => {
                return Some(vec![Part {
                    begins: true,
                    ..Part::default()
                }]);
            }
            '$' => {
                return Some(vec![Part {
                    ends: true,
                    ..Part::default()
                }]);
            }
            '(' => self.group(depth)?,
            '[' => self.class()?,
            '.' => self.any(true),
            '\\' => self.escape()?,
            '*' | '+' | '?' | '{' => return None,
            letter => literal(letter)?,
        };
        self.repeated(own, letter == '.')
    }

    fn repeated(&mut self, own: Vec<Part>, is_any: bool) -> Option<Vec<Part>> {
        let repeated = match self.peek() {
            Some('?') => {
                let mut with_nothing = if is_any { self.any(false) } else { own };
                with_nothing.push(Part::default());
                with_nothing
            }
            Some('*' | '+') => {
                if is_any && self.peek() == Some('*') {
                    self.any(true)
                } else {
                    self.any(false)
                }
            }
            Some('{') => {
                while self.peek().is_some_and(|letter| letter != '}') {
                    self.at += 1;
                }
                self.any(false)
            }
            // A dot alone is one letter, and a star is any number.
            _ if is_any => return Some(self.any(false)),
            _ => return Some(own),
        };
        self.at += 1;
        // Lazy and possessive ones stand for the same paths.
        if matches!(self.peek(), Some('?' | '+')) {
            self.at += 1;
        }
        Some(repeated)
    }

    fn any(&mut self, is_exact: bool) -> Vec<Part> {
        self.is_exact &= is_exact;
        vec![Part {
            text: "*".into(),
            ..Part::default()
        }]
    }

    fn group(&mut self, depth: usize) -> Option<Vec<Part>> {
        if depth >= DEPTH_MAX {
            return None;
        }
        if self.starts_with("?i)") {
            self.at += 3;
            self.ignores_case = true;
            return Some(vec![Part::default()]);
        }
        let looks_around = ["?!", "?=", "?<!", "?<="]
            .iter()
            .any(|sign| self.starts_with(sign));
        if self.starts_with("?:") {
            self.at += 2;
        } else if self.starts_with("?<") || self.starts_with("?P<") || looks_around {
            let end = if looks_around { ['!', '='] } else { ['>', '>'] };
            while self.peek().is_some_and(|letter| !end.contains(&letter)) {
                self.at += 1;
            }
            self.at += 1;
        } else if self.starts_with("?") {
            return None;
        }
        let inside = self.alternatives(depth + 1)?;
        if self.peek() != Some(')') {
            return None;
        }
        self.at += 1;
        if looks_around {
            self.is_exact = false;
            return Some(vec![Part::default()]);
        }
        Some(inside)
    }

    /// A few letters are written one by one; many are anything.
    fn class(&mut self) -> Option<Vec<Part>> {
        let begin = self.at;
        while self
            .peek()
            .is_some_and(|letter| letter != ']' || self.at == begin)
        {
            self.at += if self.peek() == Some('\\') { 2 } else { 1 };
        }
        let inside: Vec<char> = self.letters.get(begin..self.at)?.to_vec();
        self.peek()?;
        self.at += 1;
        let is_few = inside.len() <= 4 && !inside.contains(&'-') && !inside.contains(&'\\');
        if !is_few || inside.first() == Some(&'^') {
            return Some(self.any(false));
        }
        let letters: Option<Vec<Vec<Part>>> = inside.into_iter().map(literal).collect();
        Some(letters?.concat())
    }

    fn escape(&mut self) -> Option<Vec<Part>> {
        let letter = self.peek()?;
        self.at += 1;
        match letter {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'h' => Some(self.any(false)),
            letter if letter.is_ascii_alphanumeric() => None,
            letter => literal(letter),
        }
    }
}

/// A letter that stands for itself.
fn literal(letter: char) -> Option<Vec<Part>> {
    Some(vec![Part {
        text: escaped(letter.encode_utf8(&mut [0; 4])),
        ..Part::default()
    }])
}

/// A text as `site.location.paths` has it, in which no letter means something else.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '%' => escaped.push_str("%25"),
            '*' => escaped.push_str("%2A"),
            '?' => escaped.push_str("%3F"),
            '#' => escaped.push_str("%23"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

fn joined(before: &[Part], behind: &[Part]) -> Option<Vec<Part>> {
    if before.len() * behind.len() > TEXTS_MAX {
        return None;
    }
    let mut all: Vec<Part> = Vec::new();
    for one in before {
        for other in behind {
            let is_at_start = one.text.is_empty() && !one.begins;
            if one.ends || (other.begins && !is_at_start) {
                // Nothing comes behind the end or before the beginning: it fits no path.
                if one.ends && other.text.is_empty() && !other.begins {
                    all.push(one.clone());
                }
                continue;
            }
            all.push(Part {
                text: format!("{}{}", one.text, other.text),
                begins: one.begins || other.begins,
                ends: other.ends,
            });
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_said_is_the_same() {
        for (expression, texts) in [
            (r"\.php$", "*.php"),
            (r"/\.ht", "*/.ht*"),
            (r"^/api/", "/api/*"),
            (r"^/a$", "/a"),
            (r"\.(jpe?g|png)$", "*.jpg *.jpeg *.png"),
            (
                r"^/(?:build|tests)(?:$|/)",
                "/build /build/* /tests /tests/*",
            ),
            (r"^/img/.*\.png$", "/img/*.png"),
            (r"^(.*)$", "*"),
            (r"\.php(?:$|/)", "*.php *.php/*"),
            (r"^/(a|b)/(?<x>.*)$", "/a/* /b/*"),
            (r"(^|/)\.", "*/.*"),
            (r"\.[jt]s$", "*.js *.ts"),
            (r"(?:#.*#|~)$", "*%23*%23 *~"),
            (r"[^/]\.php(/|$)", "*.php *.php/*"),
            (r"^/pma/(.+\.php)$", "/pma/*.php"),
            (r"^(.+?\.php)(/.*)?$", "*.php *.php/*"),
        ] {
            let paths = paths(expression).unwrap_or_else(|| panic!("{expression}"));
            let mut own: Vec<_> = paths.texts.iter().map(String::as_str).collect();
            let mut expected: Vec<_> = texts.split(' ').collect();
            own.sort_unstable();
            expected.sort_unstable();
            assert_eq!((own, paths.is_exact), (expected, true), "{expression}");
        }
    }

    #[test]
    fn what_cannot_be_said_is_more_and_says_so() {
        for (expression, texts) in [
            (r"^/u/[0-9]+/a$", "/u/*/a"),
            (r"^/u/\d{3}$", "/u/*"),
            (r"/\.(?!well-known)", "*/.*"),
            (r"^/a.b$", "/a*b"),
            (r"^/(.+)\.php$", "/*.php"),
        ] {
            let paths = paths(expression).unwrap();
            assert_eq!(
                (paths.texts.join(" ").as_str(), paths.is_exact),
                (texts, false),
                "{expression}"
            );
        }
    }

    #[test]
    fn of_some_nothing_is_said() {
        for expression in ["(", "*", "a)", r"^/\bx", "x{", "[", "\\"] {
            let paths = paths(expression);
            assert!(paths.is_none_or(|paths| !paths.is_exact), "{expression}");
        }
    }
}
