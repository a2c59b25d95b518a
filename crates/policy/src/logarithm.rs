//! Logarithms in whole numbers, so that a rank is the same on any machine.

/// Bits behind the point.
pub(crate) const FRACTION_BITS: u32 = 40;
/// ln 2, with 64 bits behind the point.
const LN_2: u128 = 12_786_308_645_202_655_660;
/// Below 1/64 a series is exact to the last bit.
const SMALL_BITS: u32 = 6;

/// ln(n) with [`FRACTION_BITS`] bits behind the point, n at least 1; off by less than 2^-38.
pub(crate) fn ln(n: u64) -> u64 {
    let n = n.max(1);
    let octave = 63 - n.leading_zeros();
    // In [1, 2), with 63 bits behind the point.
    let mut mantissa = u128::from(n) << (63 - octave);
    let mut log_2 = u64::from(octave);
    for _ in 0..FRACTION_BITS {
        mantissa = (mantissa * mantissa) >> 63;
        log_2 <<= 1;
        if mantissa >= 1 << 64 {
            mantissa >>= 1;
            log_2 |= 1;
        }
    }
    let ln = (u128::from(log_2) * LN_2) >> 64;
    u64::try_from(ln).unwrap_or(u64::MAX)
}

/// e^-x, both with 62 bits behind the point.
fn exp_of_minus(x: u128) -> u128 {
    let ln_2 = LN_2 >> 2;
    let (halvings, rest) = (x / ln_2, x % ln_2);
    let one = 1_u128 << 62;
    // 1 - r (1 - r/2 (1 - r/3 ...)).
    let nested = (1..=20).rev().fold(one, |inner, n| {
        let step = ((rest * inner) >> 62) / n;
        one - step
    });
    u32::try_from(halvings).map_or(0, |halvings| nested.checked_shr(halvings).unwrap_or(0))
}

/// ln(1 / (1 - e^-x)) of x = `size` / `scale`, with [`FRACTION_BITS`] bits behind the point; both
/// at least 1. It falls with the size, from ln(scale) at a size of 1 to 0.
pub(crate) fn boost(size: u64, scale: u64) -> u64 {
    let (size, scale) = (size.max(1), scale.max(1));
    if size < scale >> SMALL_BITS {
        // -ln x + x/2 - x^2/24 + x^4/2880.
        let x = (u128::from(size) << 62) / u128::from(scale);
        let square = (x * x) >> 62;
        let series = x / 2 + ((square * square) >> 62) / 2880 - square / 24;
        let series = u64::try_from(series >> (62 - FRACTION_BITS)).unwrap_or(0);
        return (ln(scale) - ln(size)).saturating_add(series);
    }
    // Beyond 64 the boost is below the last bit.
    let whole = size / scale;
    if whole >= 64 {
        return 0;
    }
    let part = (u128::from(size % scale) << 62) / u128::from(scale);
    let x = (u128::from(whole) << 62) + part;
    let rest = (1_u128 << 62) - exp_of_minus(x);
    let rest = u64::try_from(rest).unwrap_or(u64::MAX);
    (ln(1 << 62)).saturating_sub(ln(rest))
}

#[cfg(test)]
#[expect(
    clippy::float_arithmetic,
    reason = "what is exact is compared with floats"
)]
mod tests {
    use super::*;

    const ONE: f64 = (1_u64 << FRACTION_BITS) as f64;

    #[test]
    fn logarithms_are_those_of_floats() {
        for n in [
            1,
            2,
            3,
            10,
            1_000,
            123_456_789,
            1 << 40,
            u64::MAX / 3,
            u64::MAX,
        ] {
            let off = ln(n) as f64 / ONE - (n as f64).ln();
            assert!(off.abs() < 1e-11, "{n}: {off}");
        }
    }

    #[test]
    fn boosts_are_those_of_floats() {
        let scale = 1_000_000_000_u64;
        for size in [
            1,
            7,
            1_000,
            15_624_999,
            15_625_000,
            15_625_001,
            40_000_000,
            scale / 2,
        ] {
            check(size, scale);
        }
        for times in [1, 2, 3, 10, 20] {
            check(times * scale + 17, scale);
        }
        assert_eq!(boost(u64::MAX, 1), 0);
        assert_eq!(boost(64 * scale, scale), 0);
    }

    fn check(size: u64, scale: u64) {
        let x = size as f64 / scale as f64;
        let exact = -(-(-x).exp_m1()).ln();
        let off = boost(size, scale) as f64 / ONE - exact;
        assert!(off.abs() < 2e-11, "{size} of {scale}: {off}, {exact}");
    }

    #[test]
    fn boosts_fall_with_the_size() {
        for scale in [1, 10, 4_096, 1_000_003, u64::from(u32::MAX), 1 << 50] {
            let mut size = 1_u64;
            let mut before = boost(1, scale);
            while size < scale.saturating_mul(100).min(1 << 60) {
                size += 1 + size / 50;
                let now = boost(size, scale);
                assert!(now <= before, "{size} of {scale}: {now} after {before}");
                before = now;
            }
        }
    }
}
