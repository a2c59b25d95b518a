//! The server's last words to a client when the gate ends its connection.

use super::HEADER_BYTES;
use bytes::{BufMut, BytesMut};

/// Writes an ErrorResponse as one that ends the connection, whatever its severity was.
pub fn write_as_fatal(out: &mut BytesMut, message: &[u8]) {
    let mut body = BytesMut::with_capacity(message.len() + 2);
    let fields = message.get(HEADER_BYTES..).unwrap_or_default();
    for field in fields.split(|byte| *byte == 0) {
        match field.split_first() {
            Some((kind @ (b'S' | b'V'), _)) => {
                body.put_u8(*kind);
                body.put_slice(b"FATAL\0");
            }
            Some(_) => {
                body.put_slice(field);
                body.put_u8(0);
            }
            None => {}
        }
    }
    body.put_u8(0);
    out.put_u8(b'E');
    out.put_i32(4 + body.len() as i32);
    out.put_slice(&body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_severity_is_another() {
        let mut out = BytesMut::new();
        write_as_fatal(
            &mut out,
            b"E\0\0\0\x26SFEHLER\0VERROR\0C22023\0Mbad value\0\0",
        );
        let expected = b"E\0\0\0\x25SFATAL\0VFATAL\0C22023\0Mbad value\0\0";
        assert_eq!(&out[..], expected);
        // What is cut off is closed.
        let mut out = BytesMut::new();
        write_as_fatal(&mut out, b"E\0\0\0\x28C220");
        assert_eq!(&out[..], b"E\0\0\0\x0aC220\0\0");
    }
}
