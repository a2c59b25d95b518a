//! The words of a text in SQL (PostgreSQL's documentation, "Lexical Structure"), without what is
//! quoted or commented away.

/// What a text is made of, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A keyword or a name.
    Word(&'a [u8]),
    /// A name in double quotes, without them.
    Quoted(&'a [u8]),
    /// The end of a command.
    Semicolon,
    /// A text, a number, an operator.
    Other,
}

/// What a backslash is in a text without a prefix: what standard_conforming_strings says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backslash {
    /// A letter as any other (`on`).
    Letter,
    /// It takes the next byte, a quote as well (`off`).
    Escape,
}

/// Why a text may end elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// With the other value of standard_conforming_strings it does.
    Setting,
    /// Where the second byte of a letter may be a backslash in the encoding, it may.
    Encoding,
}

/// Cuts a text into tokens. What is not closed goes to the end.
#[derive(Clone)]
pub struct Tokens<'a> {
    rest: &'a [u8],
    backslash: Backslash,
    /// Of the last token.
    doubt: Option<Doubt>,
    is_open: bool,
}

impl<'a> Tokens<'a> {
    /// As they are with standard_conforming_strings on.
    pub fn new(sql: &'a [u8]) -> Self {
        Self::with(sql, Backslash::Letter)
    }

    /// As they are with either value of it.
    pub fn with(sql: &'a [u8], backslash: Backslash) -> Self {
        Self {
            rest: sql,
            backslash,
            doubt: None,
            is_open: false,
        }
    }

    /// Whether the last token may end elsewhere.
    pub fn doubt(&self) -> Option<Doubt> {
        self.doubt
    }

    /// Whether a comment or a quote was not closed.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// The next token, and how it is written.
    pub fn next_with_text(&mut self) -> Option<(Token<'a>, &'a [u8])> {
        self.skip_blank();
        let before = self.rest;
        let token = self.next()?;
        Some((token, &before[..before.len() - self.rest.len()]))
    }

    /// Takes the first bytes away.
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Takes everything up to and with the next `end`.
    fn take_through(&mut self, end: &[u8]) {
        let found = self.rest.windows(end.len()).position(|bytes| bytes == end);
        self.is_open |= found.is_none();
        self.take(found.map_or(self.rest.len(), |at| at + end.len()));
    }

    /// Takes white space and comments away.
    fn skip_blank(&mut self) {
        loop {
            match self.rest {
                [byte, ..] if byte.is_ascii_whitespace() || *byte == 0x0b => {
                    self.take(1);
                }
                [b'-', b'-', ..] => {
                    let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
                    let count = self.rest.iter().take_while(|byte| !ends(byte)).count();
                    self.take(count);
                }
                [b'/', b'*', ..] => self.skip_comment(),
                _ => return,
            }
        }
    }

    /// They nest.
    fn skip_comment(&mut self) {
        let mut depth = 0;
        loop {
            match self.rest {
                [b'/', b'*', ..] => {
                    self.take(2);
                    depth += 1;
                }
                [b'*', b'/', ..] => {
                    self.take(2);
                    depth -= 1;
                    if depth == 0 {
                        return;
                    }
                }
                [_, ..] => {
                    self.take(1);
                }
                [] => {
                    self.is_open = true;
                    return;
                }
            }
        }
    }

    /// Takes the rest of a text or quoted name; with `escapes` a backslash takes the next byte.
    fn take_quoted(&mut self, quote: u8, escapes: bool) -> &'a [u8] {
        let (count, is_closed) = quoted_bytes(self.rest, quote, escapes);
        let inside = self.take(count);
        self.take(usize::from(is_closed));
        self.is_open |= !is_closed;
        if escapes && has_backslash_behind_letter(inside) {
            self.doubt = Some(Doubt::Encoding);
        }
        inside
    }

    /// Takes the rest of a text without a prefix.
    fn take_text(&mut self) {
        let escapes = self.backslash == Backslash::Escape;
        let [own, other] =
            [escapes, !escapes].map(|escapes| quoted_bytes(self.rest, b'\'', escapes));
        self.take_quoted(b'\'', escapes);
        if own != other {
            self.doubt = self.doubt.or(Some(Doubt::Setting));
        }
    }

    /// Takes a text that was begun with `E'`; what continues it on another line has its escapes.
    fn take_escaped(&mut self) {
        self.take_quoted(b'\'', true);
        loop {
            let mut ahead = self.clone();
            ahead.skip_blank();
            let between = &self.rest[..self.rest.len() - ahead.rest.len()];
            let has_line = between.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
            if !has_line || ahead.rest.first() != Some(&b'\'') {
                return;
            }
            self.take(between.len() + 1);
            self.take_quoted(b'\'', true);
        }
    }

    /// A number and what is written together with it: 1.5e-3, 0x1f, 1_000.
    fn take_number(&mut self) {
        let mut count = 0;
        while let Some(byte) = self.rest.get(count) {
            let is_more = is_in_word(*byte) || *byte == b'.';
            if !is_more && !is_exponents_sign(self.rest, count) {
                break;
            }
            count += 1;
        }
        self.take(count);
    }

    /// A dollar and what follows: a text in dollar quotes, a parameter, or nothing of the kind.
    fn take_dollar(&mut self) {
        let tag_bytes = self.rest[1..]
            .iter()
            .take_while(|byte| is_in_word(**byte))
            .count();
        let begins_with_digit = self.rest.get(1).is_some_and(u8::is_ascii_digit);
        if self.rest.get(1 + tag_bytes) == Some(&b'$') && !begins_with_digit {
            let quote = self.take(tag_bytes + 2);
            self.take_through(quote);
        } else {
            self.take(1 + tag_bytes);
        }
    }
}

/// Whether the byte at this place of a number is the sign of its exponent: the number is a decimal
/// one up to there, and a digit follows. What looks like two signs begins a comment.
fn is_exponents_sign(number: &[u8], at: usize) -> bool {
    let is_decimal = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'_');
    let Some((b'e' | b'E', before)) = number[..at].split_last() else {
        return false;
    };
    matches!(number[at], b'+' | b'-')
        && before.iter().all(is_decimal)
        && number.get(at + 1).is_some_and(u8::is_ascii_digit)
}

/// Where the rest of a text in quotes ends: bytes inside, in which two quotes are one, and whether
/// it is closed.
fn quoted_bytes(rest: &[u8], quote: u8, escapes: bool) -> (usize, bool) {
    let mut end = 0;
    while let Some(byte) = rest.get(end) {
        let next = rest.get(end + 1);
        match *byte {
            b'\\' if escapes => end += 2,
            byte if byte == quote && next == Some(&quote) => end += 2,
            byte if byte == quote => return (end, true),
            _ => end += 1,
        }
    }
    (end.min(rest.len()), false)
}

/// Whether a backslash may be half of a letter, as in Shift JIS or GBK. In UTF-8 none is.
fn has_backslash_behind_letter(text: &[u8]) -> bool {
    let mut pairs = text.windows(2);
    pairs.any(|pair| pair[0] >= 0x80 && pair[1] == b'\\') && str::from_utf8(text).is_err()
}

fn is_in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Bytes before the quote of a constant that begins here; any other word before one is a word.
fn prefix_bytes(rest: &[u8]) -> usize {
    match rest {
        [
            b'e' | b'E' | b'b' | b'B' | b'x' | b'X' | b'n' | b'N',
            b'\'',
            ..,
        ] => 1,
        [b'u' | b'U', b'&', b'\'', ..] => 2,
        _ => 0,
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.doubt = None;
        self.skip_blank();
        Some(match *self.rest.first()? {
            b';' => {
                self.take(1);
                Token::Semicolon
            }
            b'\'' => {
                self.take(1);
                self.take_text();
                Token::Other
            }
            b'"' => {
                self.take(1);
                Token::Quoted(self.take_quoted(b'"', false))
            }
            b'$' => {
                self.take_dollar();
                Token::Other
            }
            b'.' if self.rest.get(1).is_some_and(u8::is_ascii_digit) => {
                self.take_number();
                Token::Other
            }
            byte if byte.is_ascii_digit() => {
                self.take_number();
                Token::Other
            }
            _ if prefix_bytes(self.rest) > 0 => {
                let prefix = self.take(prefix_bytes(self.rest));
                self.take(1);
                match prefix {
                    b"e" | b"E" => self.take_escaped(),
                    // Of another type, and read as without a prefix.
                    b"n" | b"N" => self.take_text(),
                    _ => {
                        self.take_quoted(b'\'', false);
                    }
                }
                Token::Other
            }
            byte if is_in_word(byte) => {
                // A dollar may stand inside a name, not at its beginning.
                let in_name = |byte: &&u8| is_in_word(**byte) || **byte == b'$';
                let word = self.rest.iter().take_while(in_name).count();
                Token::Word(self.take(word))
            }
            _ => {
                self.take(1);
                Token::Other
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `w` a word, `q` a quoted name, `o` something else, each as it is written.
    fn cut(sql: &str) -> Vec<String> {
        let mut tokens = Tokens::new(sql.as_bytes());
        let all = std::iter::from_fn(|| tokens.next_with_text());
        let written = all.map(|(token, text)| {
            let kind = match token {
                Token::Word(_) => 'w',
                Token::Quoted(_) => 'q',
                Token::Semicolon | Token::Other => 'o',
            };
            format!("{kind}:{}", String::from_utf8_lossy(text))
        });
        written.collect()
    }

    #[test]
    fn only_five_prefixes_belong_to_the_quote_behind_them() {
        for (sql, expected) in [
            ("date'x' b", &["w:date", "o:'x'", "w:b"][..]),
            (
                "E'a\\'b' n'c' X'1' b'0'",
                &["o:E'a\\'b'", "o:n'c'", "o:X'1'", "o:b'0'"],
            ),
            ("U&'a' u&b", &["o:U&'a'", "w:u", "o:&", "w:b"]),
            ("fe'a\\' b", &["w:fe", "o:'a\\'", "w:b"]),
            ("t'a' e 'b\\' c", &["w:t", "o:'a'", "w:e", "o:'b\\'", "w:c"]),
            ("LIKE'not closed", &["w:LIKE", "o:'not closed"]),
        ] {
            assert_eq!(cut(sql), expected, "{sql}");
        }
    }

    #[test]
    fn a_comment_of_a_line_ends_at_either_end_of_a_line() {
        for sql in ["a--x\nb", "a -- x\rb", "a --\r\nb", "--\ra b --"] {
            assert_eq!(cut(sql), ["w:a", "w:b"], "{sql:?}");
        }
    }

    #[test]
    fn a_text_with_escapes_goes_on_in_the_next_line() {
        for (sql, expected) in [
            ("E'a'\n'b\\' c' d", &["o:E'a'\n'b\\' c'", "w:d"][..]),
            ("e'a' -- x\r 'b' c", &["o:e'a' -- x\r 'b'", "w:c"]),
            ("E'a' 'b\\' c", &["o:E'a'", "o:'b\\'", "w:c"]),
        ] {
            assert_eq!(cut(sql), expected, "{sql}");
        }
    }

    #[test]
    fn a_sign_belongs_to_a_number_only_in_its_exponent() {
        for (sql, expected) in [
            ("1.5e-3 1E+2 .5e-1", &["o:1.5e-3", "o:1E+2", "o:.5e-1"][..]),
            ("1_000e-5 1.e-5", &["o:1_000e-5", "o:1.e-5"]),
            // The end of a hexadecimal number is no exponent.
            ("0x1e--it's\n b", &["o:0x1e", "w:b"]),
            ("0x1E-1", &["o:0x1E", "o:-", "o:1"]),
            ("0x1e-/*'*/ b", &["o:0x1e", "o:-", "w:b"]),
            ("1e--it's\n b", &["o:1e", "w:b"]),
            ("1e5--it's\n b", &["o:1e5", "w:b"]),
            ("1e5e-3", &["o:1e5e", "o:-", "o:3"]),
        ] {
            assert_eq!(cut(sql), expected, "{sql}");
        }
    }

    #[test]
    fn where_a_text_may_end_elsewhere_is_known() {
        let doubts = |sql: &[u8]| {
            let mut tokens = Tokens::new(sql);
            let all = std::iter::from_fn(|| tokens.next().map(|_| tokens.doubt()));
            (all.flatten().collect::<Vec<_>>(), tokens.is_open())
        };
        assert_eq!(doubts(b"'a\\b' 'c'"), (vec![], false));
        assert_eq!(doubts(b"'a\\' b"), (vec![Doubt::Setting], false));
        assert_eq!(doubts(b"n'a\\''b' $x$ $"), (vec![Doubt::Setting], true));
        assert_eq!(doubts("E'\u{e9}\\'b' /* ".as_bytes()), (vec![], true));
        assert_eq!(doubts(b"E'\x83\\' b"), (vec![Doubt::Encoding], true));
    }
}
