//! The header fields of one request, as far as they say how its body ends.

/// The bytes of a name or value that are kept: those looked for are shorter.
const KEPT_BYTES: usize = 24;

/// How the body after a head ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// After so many bytes.
    Length(u64),
    /// With its last chunk.
    Chunked,
    /// Not known for certain.
    Unclear,
}

/// A text of which the beginning is kept.
#[derive(Clone, Copy, Debug, Default)]
struct Beginning {
    bytes: [u8; KEPT_BYTES],
    length: usize,
}

impl Beginning {
    fn push(&mut self, bytes: &[u8]) {
        let free = self.bytes.get_mut(self.length..).unwrap_or_default();
        for (place, byte) in free.iter_mut().zip(bytes) {
            *place = byte.to_ascii_lowercase();
        }
        self.length += bytes.len();
    }

    /// All of it without blanks and CR at its end; `None` if not all was kept.
    fn trimmed(&self) -> Option<&[u8]> {
        self.bytes.get(..self.length).map(<[u8]>::trim_ascii_end)
    }
}

/// What the fields so far say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fields {
    name: Beginning,
    value: Beginning,
    length: Option<u64>,
    is_chunked: bool,
    is_unclear: bool,
    asks_to_switch: bool,
}

impl Fields {
    /// More of a name.
    pub fn push_name(&mut self, bytes: &[u8]) {
        self.name.push(bytes);
    }

    /// More of a value.
    pub fn push_value(&mut self, bytes: &[u8]) {
        let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
        let blanks = if self.value.length == 0 {
            bytes.iter().take_while(is_blank).count()
        } else {
            0
        };
        self.value.push(&bytes[blanks..]);
    }

    /// The name and value so far are one field.
    pub fn end_field(&mut self) {
        match self.name.trimmed() {
            Some(b"content-length") => {
                let is_first = self.length.is_none();
                self.length = self.value.trimmed().and_then(number);
                self.is_unclear |= !is_first || self.length.is_none();
            }
            Some(b"transfer-encoding") => {
                let is_chunked = self.value.trimmed() == Some(b"chunked");
                self.is_unclear |= self.is_chunked || !is_chunked;
                self.is_chunked = true;
            }
            Some(b"upgrade") => self.asks_to_switch = true,
            _ => {}
        }
        self.name = Beginning::default();
        self.value = Beginning::default();
    }

    /// Whether another protocol may follow the message.
    pub fn asks_to_switch(&self) -> bool {
        self.asks_to_switch
    }

    /// How the body ends, now that the head has.
    pub fn framing(&self, is_http_1_1: bool) -> Framing {
        match (self.is_unclear, self.is_chunked, self.length) {
            (false, false, length) => Framing::Length(length.unwrap_or(0)),
            (false, true, None) if is_http_1_1 => Framing::Chunked,
            _ => Framing::Unclear,
        }
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits)
        .ok()
        .filter(|_| is_number)?
        .parse()
        .ok()
}
