//! Adds a setting to the server's first frame: that the priorities of RFC 7540 are not used.
//!
//! Chromium and nghttp2 send PRIORITY_UPDATE only to servers that say so (RFC 9218, 2.1), and it must be said in the first SETTINGS frame,
//! which the HTTP/2 library writes and into which it lets nobody put what it does not know.

const HEADER_BYTES: usize = 9;
const SETTINGS: u8 = 4;
/// SETTINGS_NO_RFC7540_PRIORITIES = 1.
const NO_OLD_PRIORITIES: [u8; 6] = [0, 9, 0, 0, 0, 1];

/// What to write instead of the beginning of the first write.
#[derive(Debug, PartialEq, Eq)]
pub struct Opening {
    /// The amended frame.
    pub frame: Vec<u8>,
    /// How many of the bytes to be written it stands for.
    pub replaced_bytes: usize,
}

/// The amended frame, if `bytes` begin with a whole SETTINGS frame.
pub fn amend(bytes: &[u8]) -> Option<Opening> {
    let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
    let is_settings = header[3..] == [SETTINGS, 0, 0, 0, 0, 0];
    let payload_bytes = u32::from_be_bytes([0, header[0], header[1], header[2]]);
    let payload = rest.get(..payload_bytes as usize)?;
    if !is_settings {
        return None;
    }
    let length = (payload_bytes + NO_OLD_PRIORITIES.len() as u32).to_be_bytes();
    let frame = [&length[1..], &header[3..], payload, &NO_OLD_PRIORITIES].concat();
    Some(Opening {
        frame,
        replaced_bytes: HEADER_BYTES + payload.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_setting_is_added_and_the_rest_is_left() {
        let written = *b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x80\0\0\0\x04\x01\0\0\0\0";
        let opening = amend(&written).unwrap();
        assert_eq!(
            opening.frame,
            b"\0\0\x0c\x04\0\0\0\0\0\0\x03\0\0\0\x80\0\x09\0\0\0\x01"
        );
        assert_eq!(opening.replaced_bytes, 15);
    }

    #[test]
    fn anything_else_is_not_touched() {
        assert_eq!(amend(b""), None);
        assert_eq!(amend(b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0"), None, "cut");
        assert_eq!(amend(b"\0\0\0\x04\x01\0\0\0\0"), None, "an acknowledgement");
        assert_eq!(amend(b"\0\0\0\x07\0\0\0\0\0"), None, "another frame");
    }
}
