//! Amends the settings in the server's first frame.
//!
//! One is added: that the priorities of RFC 7540 are not used. Chromium and nghttp2 send
//! PRIORITY_UPDATE only to servers that say so (RFC 9218, 2.1), and it must be said in the first
//! SETTINGS frame, which the HTTP/2 library writes, and it takes no settings that it does not know.
//!
//! One is changed: how long heads may be. The library takes longer ones than that
//! (`web::http2::bounds`), to leave the refusal to us.

use super::{FrameHeader, HEADER_BYTES, kind};

/// SETTINGS_NO_RFC7540_PRIORITIES = 1.
const NO_OLD_PRIORITIES: [u8; 6] = [0, 9, 0, 0, 0, 1];

/// SETTINGS_MAX_HEADER_LIST_SIZE, as it is written.
const HEAD_BYTES_MAX: [u8; 2] = [0, 6];
const SETTING_BYTES: usize = 6;

/// What to write instead of the beginning of the first write.
#[derive(Debug, PartialEq, Eq)]
pub struct Settings {
    /// The amended frame.
    pub frame: Vec<u8>,
    /// How many of the bytes to be written it stands for.
    pub replaced_bytes: usize,
}

/// The amended frame, if `bytes` begin with a whole SETTINGS frame; heads may be up to
/// `head_bytes_max` long.
pub fn amend_settings(bytes: &[u8], head_bytes_max: u32) -> Option<Settings> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let mut header = FrameHeader::read(header);
    let payload = rest.get(..header.payload_bytes as usize)?;
    if header.kind != kind::SETTINGS || header.flags != 0 || header.stream != 0 {
        return None;
    }
    header.payload_bytes += NO_OLD_PRIORITIES.len() as u32;
    let mut frame = [&header.write(), payload, &NO_OLD_PRIORITIES].concat();
    for setting in frame[HEADER_BYTES..].chunks_exact_mut(SETTING_BYTES) {
        if setting.starts_with(&HEAD_BYTES_MAX) {
            setting[HEAD_BYTES_MAX.len()..].copy_from_slice(&head_bytes_max.to_be_bytes());
        }
    }
    Some(Settings {
        frame,
        replaced_bytes: HEADER_BYTES + payload.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_setting_is_added_one_changed_and_the_rest_is_left() {
        let written =
            *b"\0\0\x0c\x04\0\0\0\0\0\0\x03\0\0\0\x80\0\x06\0\0\0\x07\0\0\0\x04\x01\0\0\0\0";
        let settings = amend_settings(&written, 0x1234).unwrap();
        assert_eq!(
            settings.frame,
            b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x80\0\x06\0\0\x12\x34\0\x09\0\0\0\x01"
        );
        assert_eq!(settings.replaced_bytes, 21);
    }

    #[test]
    fn anything_else_is_not_touched() {
        assert_eq!(amend_settings(b"", 1), None);
        assert_eq!(
            amend_settings(b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0", 1),
            None,
            "cut"
        );
        assert_eq!(
            amend_settings(b"\0\0\0\x04\x01\0\0\0\0", 1),
            None,
            "an acknowledgement"
        );
        assert_eq!(
            amend_settings(b"\0\0\0\x07\0\0\0\0\0", 1),
            None,
            "another frame"
        );
    }
}
