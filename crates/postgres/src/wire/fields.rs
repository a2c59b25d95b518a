//! The fields of a message's body, read from its beginning.

/// A body that does not have what its type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// What is left of a body.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The bytes up to the next zero, which is taken as well.
    pub fn text(&mut self) -> Result<&'a [u8], Malformed> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let end = end.ok_or(Malformed("a text does not end"))?;
        let text = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Ok(text)
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let (byte, rest) = self.0.split_first().ok_or(Malformed("a byte is missing"))?;
        self.0 = rest;
        Ok(*byte)
    }

    /// Two bytes.
    pub fn int16(&mut self) -> Result<i16, Malformed> {
        Ok(i16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    /// Four bytes.
    pub fn int32(&mut self) -> Result<i32, Malformed> {
        let (bytes, rest) = self
            .0
            .split_first_chunk::<4>()
            .ok_or(Malformed("a number is missing"))?;
        self.0 = rest;
        Ok(i32::from_be_bytes(*bytes))
    }

    /// That nothing is left.
    pub fn end(self) -> Result<(), Malformed> {
        match self.0 {
            [] => Ok(()),
            _ => Err(Malformed("there is more than the message has")),
        }
    }
}
