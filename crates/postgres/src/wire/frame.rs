//! Messages cut out of a stream of bytes, without a copy and without holding what is not looked at.
//!
//! A message is a tag, a length that counts itself but not the tag, and a body. A row may have a
//! gigabyte: only what matters of a message is waited for, the rest passes as it comes, so that
//! what a connection holds is bounded by [`Look`] and not by its peer.

/// The tag and the length.
pub const HEADER_BYTES: usize = 5;

/// How much of a message has to be there before it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// All of it, and it is a mistake for its body to have more than so many bytes.
    Whole(usize),
    /// So many bytes of its body, or all of it where it is shorter.
    Head(usize),
    /// No message has this tag.
    Unknown,
}

/// Which part of a message a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its beginning, header included, with at least what [`Look`] asks for.
    First,
    /// What follows.
    More,
}

/// Bytes of one message, as they are to be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The message's tag.
    pub tag: u8,
    /// Which part of it this is.
    pub part: Part,
    /// With the header, if it is the first.
    pub bytes: &'a [u8],
    /// Whether the message ends with it.
    pub is_last: bool,
}

impl<'a> Piece<'a> {
    /// The bytes without the header; of the first piece what is there of the body.
    pub fn body(&self) -> &'a [u8] {
        match self.part {
            Part::First => &self.bytes[HEADER_BYTES..],
            Part::More => self.bytes,
        }
    }
}

/// Why a stream is not a stream of messages. Nothing that follows can be trusted: the connection is
/// to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The tag stands for no message.
    #[error("no message has the type {0:#04x}")]
    UnknownTag(u8),
    /// A length counts itself, so it is at least 4; as a signed number it is not negative.
    #[error("a message of type {:?} has the length {length}", char::from(*.tag))]
    Length {
        /// The message's tag.
        tag: u8,
        /// What stands there.
        length: i32,
    },
    /// A message that has to be whole is longer than any that makes sense.
    #[error("a message of type {:?} has {body_bytes} bytes, at most {max_bytes} are allowed", char::from(*.tag))]
    TooLong {
        /// The message's tag.
        tag: u8,
        /// Bytes of its body.
        body_bytes: usize,
        /// The most that are taken.
        max_bytes: usize,
    },
}

/// Cuts one direction of a connection into messages.
#[derive(Clone, Debug)]
pub struct Splitter {
    look: fn(u8) -> Look,
    /// The message that is not complete yet, and how many bytes it lacks.
    passing: Option<(u8, usize)>,
}

impl Splitter {
    /// At the beginning of a message; `look` says what of each type has to be there.
    pub fn new(look: fn(u8) -> Look) -> Self {
        Self {
            look,
            passing: None,
        }
    }

    /// Whether the next byte begins a message.
    pub fn is_between_messages(&self) -> bool {
        self.passing.is_none()
    }

    /// The next piece at the beginning of `bytes`, which the caller takes away then; `None` where
    /// more has to come first.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<Piece<'a>>, FrameError> {
        match self.passing {
            Some((tag, missing_bytes)) if !bytes.is_empty() => {
                Ok(Some(self.cut(tag, Part::More, bytes, missing_bytes)))
            }
            Some(_) => Ok(None),
            None => self.first(bytes),
        }
    }

    fn first<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<Piece<'a>>, FrameError> {
        let Some(tag) = bytes.first().copied() else {
            return Ok(None);
        };
        let look = (self.look)(tag);
        if look == Look::Unknown {
            return Err(FrameError::UnknownTag(tag));
        }
        let Some(length) = bytes[1..].first_chunk::<4>() else {
            return Ok(None);
        };
        let length = i32::from_be_bytes(*length);
        let body_bytes = usize::try_from(length)
            .ok()
            .and_then(|length| length.checked_sub(4))
            .ok_or(FrameError::Length { tag, length })?;
        let needed_bytes = match look {
            Look::Whole(max_bytes) if body_bytes > max_bytes => {
                return Err(FrameError::TooLong {
                    tag,
                    body_bytes,
                    max_bytes,
                });
            }
            Look::Whole(_) | Look::Unknown => body_bytes,
            Look::Head(head_bytes) => body_bytes.min(head_bytes),
        };
        if bytes.len() < HEADER_BYTES + needed_bytes {
            return Ok(None);
        }
        Ok(Some(self.cut(
            tag,
            Part::First,
            bytes,
            HEADER_BYTES + body_bytes,
        )))
    }

    fn cut<'a>(&mut self, tag: u8, part: Part, bytes: &'a [u8], missing_bytes: usize) -> Piece<'a> {
        let taken_bytes = bytes.len().min(missing_bytes);
        let left_bytes = missing_bytes - taken_bytes;
        self.passing = (left_bytes > 0).then_some((tag, left_bytes));
        Piece {
            tag,
            part,
            bytes: &bytes[..taken_bytes],
            is_last: left_bytes == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn look(tag: u8) -> Look {
        match tag {
            b'Z' => Look::Whole(1),
            b'Q' => Look::Head(4),
            b'D' => Look::Head(0),
            _ => Look::Unknown,
        }
    }

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = (body.len() as i32 + 4).to_be_bytes();
        [&[tag], &length[..], body].concat()
    }

    /// What comes out when the stream arrives in parts: a letter a first piece, in capitals as its
    /// tag, `.` for more, `|` at an end.
    fn decisions(stream: &[u8], part_bytes: usize) -> String {
        let mut splitter = Splitter::new(look);
        let (mut said, mut held, mut passed) = (String::new(), Vec::new(), Vec::new());
        for part in stream.chunks(part_bytes.max(1)) {
            held.extend_from_slice(part);
            while let Some(piece) = splitter.next(&held).unwrap() {
                match piece.part {
                    Part::First => said.push(char::from(piece.tag)),
                    Part::More => said.push('.'),
                }
                if piece.is_last {
                    said.push('|');
                }
                passed.extend_from_slice(piece.bytes);
                let taken = piece.bytes.len();
                held.drain(..taken);
            }
        }
        assert_eq!(passed, stream);
        assert!(held.is_empty() && splitter.is_between_messages());
        said
    }

    #[test]
    fn what_is_looked_at_is_waited_for_and_the_rest_passes_as_it_comes() {
        let stream = [
            message(b'D', &[7; 20]),
            message(b'Q', b"SELECT 1\0"),
            message(b'Z', b"I"),
        ]
        .concat();
        assert_eq!(decisions(&stream, stream.len()), "D|Q|Z|");
        assert_eq!(decisions(&stream, 10), "D..|Q|Z|");
        assert_eq!(
            decisions(&stream, 1),
            format!("D{}|Q.....|Z|", ".".repeat(20))
        );
    }

    #[test]
    fn what_cannot_be_a_message_is_refused_before_it_is_held() {
        let next = |bytes: &[u8]| Splitter::new(look).next(bytes).map(|_| ());
        assert_eq!(next(b"X"), Err(FrameError::UnknownTag(b'X')));
        for length in [-1, 0, 3, i32::MIN] {
            let bytes = [&b"D"[..], &length.to_be_bytes()].concat();
            assert_eq!(next(&bytes), Err(FrameError::Length { tag: b'D', length }));
        }
        let (tag, body_bytes, max_bytes) = (b'Z', 2, 1);
        let too_long = FrameError::TooLong {
            tag,
            body_bytes,
            max_bytes,
        };
        assert_eq!(next(&message(b'Z', b"II")[..5]), Err(too_long));
        assert_eq!(next(&[&b"D"[..], &i32::MAX.to_be_bytes()].concat()), Ok(()));
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_same_messages_come_out(
            bodies in prop::collection::vec((prop::sample::select(vec![b'D', b'Q']), prop::collection::vec(any::<u8>(), 0..40)), 0..8),
            part_bytes in 1_usize..64,
        ) {
            let stream: Vec<u8> = bodies.iter().flat_map(|(tag, body)| message(*tag, body)).collect();
            let ends = |said: String| said.replace('.', "");
            prop_assert_eq!(ends(decisions(&stream, part_bytes)), ends(decisions(&stream, usize::MAX)));
        }

        #[test]
        fn any_bytes_are_messages_or_a_mistake(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut splitter = Splitter::new(look);
            let mut left = &bytes[..];
            while let Ok(Some(piece)) = splitter.next(left) {
                prop_assert!(!piece.bytes.is_empty());
                left = &left[piece.bytes.len()..];
            }
        }
    }
}
