//! The Huffman code of HPACK (RFC 7541, appendix B). It is canonical, so the symbols in the order
//! of their codes and the number of codes of each length say all of it.

/// The shortest code, bits.
const LENGTH_MIN: usize = 5;
/// How many codes there are of each length from the shortest on; the last of the longest is that of
/// the end.
const COUNTS: [u16; 26] = [
    10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3, 0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19, 29, 0, 4,
];
/// The octets in the order of their codes.
const SYMBOLS: [u8; 256] = [
    48, 49, 50, 97, 99, 101, 105, 111, 115, 116, 32, 37, 45, 46, 47, 51, 52, 53, 54, 55, 56, 57,
    61, 65, 95, 98, 100, 102, 103, 104, 108, 109, 110, 112, 114, 117, 58, 66, 67, 68, 69, 70, 71,
    72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 89, 106, 107, 113, 118, 119,
    120, 121, 122, 38, 42, 44, 59, 88, 90, 33, 34, 40, 41, 63, 39, 43, 124, 35, 62, 0, 36, 64, 91,
    93, 126, 94, 125, 60, 96, 123, 92, 195, 208, 128, 130, 131, 162, 184, 194, 224, 226, 153, 161,
    167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230, 129, 132, 133, 134, 136, 146, 154, 156,
    160, 163, 164, 169, 170, 173, 178, 181, 185, 186, 187, 189, 190, 196, 198, 228, 232, 233, 1,
    135, 137, 138, 139, 140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158, 165, 166, 168, 174,
    175, 180, 182, 183, 188, 191, 197, 231, 239, 9, 142, 144, 145, 148, 159, 171, 206, 215, 225,
    236, 237, 199, 207, 234, 235, 192, 193, 200, 201, 202, 205, 210, 213, 218, 219, 238, 240, 242,
    243, 255, 203, 204, 211, 212, 214, 221, 222, 223, 241, 244, 245, 246, 247, 248, 250, 251, 252,
    253, 254, 2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28,
    29, 30, 31, 127, 220, 249, 10, 13, 22,
];

/// The text is not what the code makes of any octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHuffman;

/// Appends what `coded` stands for to `decoded`.
pub fn decode(coded: &[u8], decoded: &mut Vec<u8>) -> Result<(), NotHuffman> {
    let mut code = Code::default();
    for &byte in coded {
        for shift in (0..8).rev() {
            if let Some(symbol) = code.push(u32::from(byte >> shift & 1))? {
                decoded.push(symbol);
                code = Code::default();
            }
        }
    }
    // The rest of the last octet begins the code of the end, which is all ones (RFC 7541, 5.2).
    let is_padding = code.bits < 8 && code.value + 1 == 1 << code.bits;
    is_padding.then_some(()).ok_or(NotHuffman)
}

/// The bits of a code so far, and where the codes of their length begin.
#[derive(Default)]
struct Code {
    bits: usize,
    value: u32,
    first: u32,
    symbols_before: usize,
}

impl Code {
    fn push(&mut self, bit: u32) -> Result<Option<u8>, NotHuffman> {
        self.bits += 1;
        self.value = self.value << 1 | bit;
        self.first <<= 1;
        let Some(index) = self.bits.checked_sub(LENGTH_MIN) else {
            return Ok(None);
        };
        let count = COUNTS.get(index).copied().ok_or(NotHuffman)?;
        let offset = self.value - self.first;
        if offset < u32::from(count) {
            let symbol = SYMBOLS.get(self.symbols_before + offset as usize);
            return symbol.copied().map(Some).ok_or(NotHuffman);
        }
        self.first += u32::from(count);
        self.symbols_before += usize::from(count);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(coded: &[u8]) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        decode(coded, &mut text).ok().map(|()| text)
    }

    #[test]
    fn what_the_standard_shows_is_read() {
        // RFC 7541, C.4.1, C.4.2 and C.6.1.
        let coded = b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
        assert_eq!(decoded(coded).unwrap(), b"www.example.com");
        assert_eq!(decoded(b"\xa8\xeb\x10\x64\x9c\xbf").unwrap(), b"no-cache");
        let coded = b"\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff";
        assert_eq!(decoded(coded).unwrap(), b"Mon, 21 Oct 2013 20:13:21 GMT");
        assert_eq!(decoded(b"").unwrap(), b"");
        // The longest code of an octet: 22 has 30 bits.
        assert_eq!(decoded(b"\xff\xff\xff\xfb").unwrap(), [22]);
    }

    #[test]
    fn padding_is_the_beginning_of_the_end_and_shorter_than_an_octet() {
        assert_eq!(decoded(b"\x07").unwrap(), b"0");
        for coded in [
            &b"\x00"[..],
            b"\x07\xff",
            b"\xff",
            b"\xff\xff\xff\xff",
            b"\x06",
        ] {
            assert_eq!(decoded(coded), None, "{coded:?}");
        }
    }
}
