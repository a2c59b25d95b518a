//! The method of one request, as far as what follows depends on it.

const CONNECT: &[u8; 7] = b"CONNECT";

/// A method of which the beginning is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Method {
    bytes: [u8; CONNECT.len()],
    length: usize,
}

impl Method {
    /// More of it.
    pub fn push(&mut self, bytes: &[u8]) {
        let free = self.bytes.get_mut(self.length..).unwrap_or_default();
        for (place, byte) in free.iter_mut().zip(bytes) {
            *place = *byte;
        }
        self.length += bytes.len();
    }

    /// Whether it asks for a tunnel, in which no request follows. COPY and CHECKOUT do not.
    pub fn is_connect(&self) -> bool {
        self.length == CONNECT.len() && self.bytes == *CONNECT
    }
}
