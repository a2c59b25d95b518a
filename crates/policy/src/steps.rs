//! Sizes in steps of an eighth of an octave: few enough to count by, near enough to order by.

const SUB_BITS: u32 = 3;
/// How many steps there are.
pub(crate) const COUNT: usize = 64 << SUB_BITS;

/// The step of a size: its octave and the three bits below its highest one.
pub(crate) fn step(size: u64) -> usize {
    let size = size.max(1 << SUB_BITS);
    let octave = 63 - size.leading_zeros();
    let sub = (size >> (octave - SUB_BITS)) as usize & ((1 << SUB_BITS) - 1);
    ((octave as usize) << SUB_BITS) + sub
}

/// The largest size in a step.
pub(crate) fn upper_end(index: usize) -> u64 {
    let octave = (index >> SUB_BITS) as u32;
    if octave < SUB_BITS {
        return (1 << SUB_BITS) - 1;
    }
    let sub = (index & ((1 << SUB_BITS) - 1)) as u64;
    let lower = ((1 << SUB_BITS) + sub) << (octave - SUB_BITS);
    lower + ((1 << (octave - SUB_BITS)) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_lies_in_its_step() {
        for size in [
            8,
            9,
            15,
            16,
            17,
            1_000,
            1_448,
            65_535,
            65_536,
            u64::MAX / 2,
            u64::MAX,
        ] {
            let index = step(size);
            assert!(
                upper_end(index) >= size && (index == 24 || upper_end(index - 1) < size),
                "{size}"
            );
        }
    }
}
