//! Contents of the objects: pseudo-random bytes that follow from the object's number alone, so that
//! a client can verify them.

/// Fills `buffer` with the bytes of object `id` from `offset` on; any part can be made without the
/// rest.
pub fn fill(id: u32, offset: u64, buffer: &mut [u8]) {
    let skip = (offset % 8) as usize;
    let (first, rest) = buffer.split_at_mut(buffer.len().min((8 - skip) % 8));
    first.copy_from_slice(&word(id, offset / 8)[skip..][..first.len()]);
    for (index, chunk) in (offset.div_ceil(8)..).zip(rest.chunks_mut(8)) {
        chunk.copy_from_slice(&word(id, index)[..chunk.len()]);
    }
}

/// Whether `bytes` are those of object `id` from `offset` on.
pub fn matches(id: u32, offset: u64, bytes: &[u8]) -> bool {
    let mut expected = [0; 4096];
    (offset..)
        .step_by(expected.len())
        .zip(bytes.chunks(expected.len()))
        .all(|(offset, chunk)| {
            fill(id, offset, &mut expected[..chunk.len()]);
            expected[..chunk.len()] == *chunk
        })
}

/// The `index`-th eight bytes of object `id`: SplitMix64 (Steele, Lea, Flood 2014) on a counter.
fn word(id: u32, index: u64) -> [u8; 8] {
    let mut z = (u64::from(id) << 40)
        .wrapping_add(index)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_are_fixed_for_ever() {
        let mut bytes = [0; 10];
        fill(0, 0, &mut bytes);
        // The first output of SplitMix64 seeded with 0, then the beginning of the second, as its
        // authors publish them.
        assert_eq!(bytes[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
        assert_eq!(bytes[8..], 0x6e78_9e6a_a1b9_65f4_u64.to_le_bytes()[..2]);
    }

    proptest! {
        #[test]
        fn a_part_is_the_same_as_in_the_whole(id in any::<u32>(), offset in 0..9000usize, len in 0..9000usize) {
            let mut whole = vec![0; offset + len];
            fill(id, 0, &mut whole);
            let mut part = vec![0; len];
            fill(id, offset as u64, &mut part);
            prop_assert_eq!(&part, &whole[offset..]);
            prop_assert!(matches(id, offset as u64, &part));
        }

        #[test]
        fn a_wrong_byte_is_noticed(id in any::<u32>(), len in 1..9000usize, at in any::<prop::sample::Index>()) {
            let mut bytes = vec![0; len];
            fill(id, 0, &mut bytes);
            bytes[at.index(len)] ^= 1;
            prop_assert!(!matches(id, 0, &bytes));
        }
    }

    #[test]
    fn objects_differ() {
        let mut bytes = [0; 8];
        fill(1, 0, &mut bytes);
        assert!(!matches(2, 0, &bytes));
    }
}
