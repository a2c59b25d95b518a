//! The shape of netlink messages: a header of 16 bytes, a fixed body, attributes that each start
//! with length and kind.

const HEADER_BYTES: usize = 16;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// The low bits of an attribute's kind; the two above say "nested" and "network byte order".
const KIND_MASK: u16 = 0x3fff;
const NLM_F_REQUEST: u16 = 1;

/// A request under construction.
#[derive(Debug, Clone)]
pub struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// Starts a message of this kind with its fixed body; `flags` come on top of NLM_F_REQUEST.
    pub fn new(kind: u16, flags: u16, body: &[u8]) -> Request {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | NLM_F_REQUEST).to_ne_bytes());
        bytes.extend_from_slice(body);
        let mut request = Request { bytes };
        request.pad();
        request
    }

    /// Appends an attribute.
    pub fn attribute(mut self, kind: u16, payload: &[u8]) -> Request {
        self.start_attribute(kind, ATTRIBUTE_HEADER_BYTES + payload.len());
        self.bytes.extend_from_slice(payload);
        self.pad();
        self
    }

    /// Appends an attribute of four bytes.
    pub fn attribute_u32(self, kind: u16, value: u32) -> Request {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// Appends an attribute of text, ended by a zero as the kernel wants it.
    pub fn attribute_text(self, kind: u16, text: &str) -> Request {
        let mut payload = text.as_bytes().to_vec();
        payload.push(0);
        self.attribute(kind, &payload)
    }

    /// Appends an attribute that contains the attributes `inner` appends.
    pub fn nested(mut self, kind: u16, inner: impl FnOnce(Request) -> Request) -> Request {
        let start = self.bytes.len();
        self.start_attribute(kind, 0);
        let mut request = inner(self);
        let length = attribute_length(request.bytes.len() - start);
        request.bytes[start..start + 2].copy_from_slice(&length);
        request
    }

    /// The finished message under this sequence number.
    pub fn with_sequence(&mut self, sequence: u32) -> &[u8] {
        let length = u32::try_from(self.bytes.len()).expect("a request is a few hundred bytes");
        self.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        &self.bytes
    }

    fn start_attribute(&mut self, kind: u16, length: usize) {
        self.bytes.extend_from_slice(&attribute_length(length));
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

fn attribute_length(length: usize) -> [u8; 2] {
    u16::try_from(length)
        .expect("an attribute of ours is below 64 KB")
        .to_ne_bytes()
}

/// One message of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// What it is (RTM_..., or NLMSG_...).
    pub kind: u16,
    /// The sequence number of the request it answers.
    pub sequence: u32,
    /// Fixed body and attributes.
    pub payload: &'a [u8],
}

/// The messages of a datagram; ends at the first that is cut short.
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = u32_at(bytes, 0)? as usize;
        let payload = bytes.get(HEADER_BYTES..length)?;
        let message = Message {
            kind: u16_at(bytes, 4)?,
            sequence: u32_at(bytes, 8)?,
            payload,
        };
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

/// The attributes in `bytes` as kind and payload; ends at the first that is cut short.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let payload = bytes.get(ATTRIBUTE_HEADER_BYTES..length)?;
        let kind = u16_at(bytes, 2)? & KIND_MASK;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, payload))
    })
}

/// The payload of the first attribute of this kind.
pub fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes)
        .find(|(kind, _)| *kind == wanted)
        .map(|(_, payload)| payload)
}

/// The two bytes at `at` as a number of the host's byte order.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

/// The four bytes at `at` as a number of the host's byte order.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

/// The eight bytes at `at` as a number of the host's byte order.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn header_body_and_attributes_are_padded_to_four_bytes() {
        let mut request = Request::new(0x1234, 0x0300, &[1, 2, 3])
            .attribute_text(7, "ab")
            .attribute(9, &[]);
        let bytes = request.with_sequence(5);
        assert_eq!(bytes.len(), 16 + 4 + 8 + 4);
        assert_eq!(u32_at(bytes, 0), Some(32));
        assert_eq!(
            (u16_at(bytes, 4), u16_at(bytes, 6)),
            (Some(0x1234), Some(0x0301))
        );
        assert_eq!(u32_at(bytes, 8), Some(5));
        assert_eq!(bytes[16..20], [1, 2, 3, 0]);
        assert_eq!(
            (u16_at(bytes, 20), u16_at(bytes, 22), &bytes[24..28]),
            (Some(7), Some(7), &b"ab\0\0"[..])
        );
        assert_eq!((u16_at(bytes, 28), u16_at(bytes, 30)), (Some(4), Some(9)));
    }

    #[test]
    fn a_nest_holds_its_attributes() {
        let mut request =
            Request::new(1, 0, &[]).nested(2, |inner| inner.attribute_u32(3, 4).attribute(5, &[6]));
        let bytes = request.with_sequence(1);
        let nest = attribute(&bytes[16..], 2).unwrap();
        assert_eq!(
            attributes(nest).collect::<Vec<_>>(),
            vec![(3, &4_u32.to_ne_bytes()[..]), (5, &[6][..])]
        );
    }

    #[test]
    fn what_is_built_is_read_back() {
        let mut first = Request::new(20, 0, &[9; 4]);
        let mut second = Request::new(21, 0, &[]);
        let mut both = first.with_sequence(1).to_vec();
        both.extend_from_slice(second.with_sequence(2));
        let read: Vec<_> = messages(&both)
            .map(|message| (message.kind, message.sequence, message.payload.len()))
            .collect();
        assert_eq!(read, [(20, 1, 4), (21, 2, 0)]);
    }

    #[test]
    fn lengths_that_lie_end_the_reading() {
        let mut header = [0; 16];
        for length in [0, 1, 15, 17, u32::MAX] {
            header[..4].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(messages(&header).count(), 0, "length {length}");
        }
        for length in [0_u16, 3, 5, u16::MAX] {
            let mut attribute = [0; 4];
            attribute[..2].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(attributes(&attribute).count(), 0, "length {length}");
        }
    }

    proptest! {
        #[test]
        fn reading_any_bytes_ends(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(messages(&bytes).count() <= bytes.len() / HEADER_BYTES + 1);
            prop_assert!(attributes(&bytes).count() <= bytes.len() / ATTRIBUTE_HEADER_BYTES + 1);
        }

        #[test]
        fn attributes_come_back_in_order(payloads in proptest::collection::vec((0_u16..0x3fff, proptest::collection::vec(any::<u8>(), 0..20)), 0..10)) {
            let request = payloads.iter().fold(Request::new(1, 0, &[]), |request, (kind, payload)| request.attribute(*kind, payload));
            let read: Vec<_> = attributes(&request.bytes[16..]).map(|(kind, payload)| (kind, payload.to_vec())).collect();
            prop_assert_eq!(read, payloads);
        }
    }
}
