//! Lines of any bytes, in bounded memory.

use std::io::{self, BufRead};

/// Longest line that is looked at.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Lines without their end.
pub struct Lines<'a> {
    reader: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    number: u64,
    read_bytes: u64,
    /// No line is begun at or behind this place: what grows while it is read would never end.
    end_bytes: u64,
}

/// A line.
pub struct Line<'a> {
    /// From 1.
    pub number: u64,
    /// Its bytes, or the first of them.
    pub text: &'a [u8],
    /// Whether it is longer than is looked at.
    pub is_long: bool,
}

impl<'a> Lines<'a> {
    /// The lines that begin in the first `end_bytes`.
    pub fn new(reader: Box<dyn BufRead + 'a>, end_bytes: u64) -> Self {
        Self {
            reader,
            line: Vec::new(),
            number: 0,
            read_bytes: 0,
            end_bytes,
        }
    }

    /// Number of the last line.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line; the last one may have no end. Zeros before it, which a truncated file has
    /// where it was, are left out.
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let mut is_begun = false;
        let mut is_long = false;
        if self.read_bytes >= self.end_bytes {
            return Ok(None);
        }
        loop {
            let ahead = match self.reader.fill_buf() {
                Ok(ahead) => ahead,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if ahead.is_empty() {
                break;
            }
            let end = ahead.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(ahead.len(), |end| end + 1);
            let mut part = &ahead[..end.unwrap_or(taken)];
            if self.line.is_empty() {
                let zeros = part.iter().take_while(|byte| **byte == 0).count();
                part = &part[zeros..];
            }
            let room = LINE_BYTES_MAX - self.line.len();
            is_long |= part.len() > room;
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            is_begun = true;
            self.reader.consume(taken);
            self.read_bytes += taken as u64;
            if end.is_some() {
                break;
            }
        }
        self.number += u64::from(is_begun);
        Ok(is_begun.then_some(Line {
            number: self.number,
            text: &self.line,
            is_long,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(content: &[u8], end_bytes: u64) -> Vec<(usize, bool)> {
        // In small pieces, as a pipe gives them.
        let reader = io::BufReader::with_capacity(3, content);
        let mut lines = Lines::new(Box::new(reader), end_bytes);
        let mut all = Vec::new();
        while let Some(line) = lines.next().expect("memory") {
            assert_eq!(line.number, all.len() as u64 + 1);
            all.push((line.text.len(), line.is_long));
        }
        all
    }

    #[test]
    fn lines_are_cut_and_counted() {
        let short = |length| (length, false);
        assert_eq!(of(b"", u64::MAX), []);
        assert_eq!(of(b"a\n\nbcdef", u64::MAX), [short(1), short(0), short(5)]);
        assert_eq!(of(b"\0\0\0\0\0ab\0c\n\0\n", u64::MAX), [short(4), short(0)]);
        let long = [vec![b'x'; LINE_BYTES_MAX + 1], b"\ny\n".to_vec()].concat();
        assert_eq!(of(&long, u64::MAX), [(LINE_BYTES_MAX, true), short(1)]);
        assert_eq!(of(b"ab\ncd\nef\n", 4), [short(2), short(2)]);
    }
}
