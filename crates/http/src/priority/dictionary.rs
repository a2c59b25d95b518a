//! Structured fields (RFC 8941), dictionaries only: what the Priority field is written in.
//!
//! The whole grammar is read, although two small types are all that Priority needs: a dictionary may hold members of other types that
//! are to be ignored one by one, while a dictionary that is not well-formed is to be ignored as a whole.

/// The value of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// `key`, `key=?1` or `key=?0`.
    Boolean(bool),
    /// `key=5`; at most 15 digits.
    Integer(i64),
    /// A decimal, string, token, byte sequence or inner list.
    Other,
}

/// The field is no dictionary: nothing of it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Calls `take` with every member of `field` in order (RFC 8941, 4.2.2). When the end says [`Malformed`], the members so far do not count
/// either.
pub fn read_dictionary<'a>(
    field: &'a [u8],
    take: impl FnMut(&'a [u8], Value),
) -> Result<(), Malformed> {
    let mut reader = Reader {
        rest: field.trim_ascii_end(),
    };
    reader.take_while(is_space);
    reader.dictionary(take).ok_or(Malformed)
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn take_if(&mut self, wanted: u8) -> bool {
        let is_wanted = self.peek() == Some(wanted);
        if is_wanted {
            self.rest = &self.rest[1..];
        }
        is_wanted
    }

    fn take_while(&mut self, is_wanted: impl Fn(u8) -> bool) -> &'a [u8] {
        let len = self.rest.iter().position(|&byte| !is_wanted(byte));
        let (taken, rest) = self.rest.split_at(len.unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn dictionary(&mut self, mut take: impl FnMut(&'a [u8], Value)) -> Option<()> {
        if self.rest.is_empty() {
            return Some(());
        }
        loop {
            let key = self.key()?;
            let value = if self.take_if(b'=') {
                self.item_or_inner_list()?
            } else {
                Value::Boolean(true)
            };
            self.parameters()?;
            take(key, value);
            self.take_while(is_blank);
            if self.rest.is_empty() {
                return Some(());
            }
            if !self.take_if(b',') {
                return None;
            }
            self.take_while(is_blank);
        }
    }

    fn key(&mut self) -> Option<&'a [u8]> {
        if !matches!(self.peek()?, b'a'..=b'z' | b'*') {
            return None;
        }
        Some(self.take_while(
            |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*'),
        ))
    }

    fn item_or_inner_list(&mut self) -> Option<Value> {
        if self.take_if(b'(') {
            self.inner_list_after_bracket()?;
            return Some(Value::Other);
        }
        self.bare_item()
    }

    fn inner_list_after_bracket(&mut self) -> Option<()> {
        loop {
            self.take_while(is_space);
            if self.take_if(b')') {
                return Some(());
            }
            self.bare_item()?;
            self.parameters()?;
            if !matches!(self.peek()?, b' ' | b')') {
                return None;
            }
        }
    }

    fn parameters(&mut self) -> Option<()> {
        while self.take_if(b';') {
            self.take_while(is_space);
            self.key()?;
            if self.take_if(b'=') {
                self.bare_item()?;
            }
        }
        Some(())
    }

    fn bare_item(&mut self) -> Option<Value> {
        match self.peek()? {
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b':' => self.byte_sequence(),
            b'?' => self.boolean(),
            b'*' | b'A'..=b'Z' | b'a'..=b'z' => {
                self.take_while(is_of_token);
                Some(Value::Other)
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<Value> {
        let is_negative = self.take_if(b'-');
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        if self.take_if(b'.') {
            let fraction = self.take_while(|byte| byte.is_ascii_digit());
            let fits = (1..=12).contains(&digits.len()) && (1..=3).contains(&fraction.len());
            return fits.then_some(Value::Other);
        }
        if !(1..=15).contains(&digits.len()) {
            return None;
        }
        let magnitude = digits
            .iter()
            .fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        Some(Value::Integer(if is_negative {
            -magnitude
        } else {
            magnitude
        }))
    }

    fn string(&mut self) -> Option<Value> {
        self.take_if(b'"');
        loop {
            self.take_while(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\');
            if self.take_if(b'"') {
                return Some(Value::Other);
            }
            if !self.take_if(b'\\') || !(self.take_if(b'"') || self.take_if(b'\\')) {
                return None;
            }
        }
    }

    fn byte_sequence(&mut self) -> Option<Value> {
        self.take_if(b':');
        self.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
        self.take_if(b':').then_some(Value::Other)
    }

    fn boolean(&mut self) -> Option<Value> {
        self.take_if(b'?');
        let is_true = self.take_if(b'1');
        (is_true || self.take_if(b'0')).then_some(Value::Boolean(is_true))
    }
}

fn is_space(byte: u8) -> bool {
    byte == b' '
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(field: &str) -> Result<Vec<(String, Value)>, Malformed> {
        let mut members = Vec::new();
        read_dictionary(field.as_bytes(), |key, value| {
            members.push((String::from_utf8_lossy(key).into_owned(), value));
        })?;
        Ok(members)
    }

    #[test]
    fn reads_every_type() {
        let field = r#" a, b=-12;p;q="x", c=1.5,	d="\"\\ ,", e=tok/en:*, f=:aGk=:, g=?0, h=(1 "x";y (), *i=( ) "#;
        assert_eq!(members(field), Err(Malformed), "lists do not nest");
        let field = field.replace(" ()", ")");
        let expected = [
            ("a", Value::Boolean(true)),
            ("b", Value::Integer(-12)),
            ("c", Value::Other),
            ("d", Value::Other),
            ("e", Value::Other),
            ("f", Value::Other),
            ("g", Value::Boolean(false)),
            ("h", Value::Other),
            ("*i", Value::Other),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value));
        assert_eq!(members(&field), Ok(expected.to_vec()));
        assert_eq!(members(""), Ok(Vec::new()));
        assert_eq!(members("  "), Ok(Vec::new()));
    }

    #[test]
    fn refuses_as_a_whole() {
        let fields = [
            ",",
            "a,",
            "a,,b",
            "a b",
            "A",
            "1=a",
            "a=",
            "a=,b",
            "a=-",
            "a=1.",
            "a=.5",
            "a=1.2345",
            "a=1234567890123456",
            "a=1234567890123.1",
            "a=\"x",
            "a=\"\\x\"",
            "a=\"\u{e9}\"",
            "a=:x",
            "a=?2",
            "a=?",
            "a=(1",
            "a=(1,2)",
            "a;",
            "a;=1",
            "a;B",
            "a=@1",
            "=1",
            "a= 1",
            "a =1",
        ];
        for field in fields {
            assert_eq!(members(field), Err(Malformed), "{field}");
        }
    }
}
