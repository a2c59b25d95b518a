//! The normal distribution and the integral of a power: what the other distributions are made of.

use std::f64::consts::SQRT_2;

/// Φ(z), the normal distribution function.
pub(crate) fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / SQRT_2)
}

/// Φ⁻¹(u) for u in (0, 1): Acklam's rational approximation (2003), made exact to double precision
/// by one step of Halley's.
pub(crate) fn normal_quantile(u: f64) -> f64 {
    // By symmetry only the lower half, where nothing is lost to 1 - u.
    if u > 0.5 {
        return -normal_quantile(1.0 - u);
    }
    let z = acklam(u);
    let error = normal_cdf(z) - u;
    let step = error * (2.0 * std::f64::consts::PI).sqrt() * (z * z / 2.0).exp();
    z - step / (1.0 + z * step / 2.0)
}

fn acklam(u: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    let horner = |terms: &[f64], x: f64| terms.iter().fold(0.0, |sum, term| sum * x + term);
    if u < 0.024_25 {
        let q = (-2.0 * u.ln()).sqrt();
        horner(&C, q) / horner(&D, q)
    } else {
        let q = u - 0.5;
        horner(&A, q * q) * q / horner(&B, q * q)
    }
}

/// ∫ x^(power - 1) dx from `low` to `high`.
pub(crate) fn power_integral(power: f64, low: f64, high: f64) -> f64 {
    if power.abs() < 1e-9 {
        (high / low).ln()
    } else {
        (high.powf(power) - low.powf(power)) / power
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_has_its_known_points() {
        for (z, u) in [
            (0.0, 0.5),
            (1.959_963_984_540_054, 0.975),
            (-2.326_347_874_040_841, 0.01),
            (-4.753_424_308_822_899, 1e-6),
        ] {
            assert!((normal_cdf(z) - u).abs() < 1e-14, "{z}");
            assert!((normal_quantile(u) - z).abs() < 1e-9, "{u}");
        }
    }

    #[test]
    fn cdf_and_quantile_are_inverse_far_into_the_tail() {
        for exponent in 1..300 {
            let u = 10f64.powi(-exponent);
            let back = normal_cdf(normal_quantile(u));
            assert!((back / u - 1.0).abs() < 1e-9, "{u} {back}");
        }
    }

    #[test]
    fn powers_integrate() {
        assert!((power_integral(2.0, 1.0, 3.0) - 4.0).abs() < 1e-12);
        assert!((power_integral(0.0, 1.0, std::f64::consts::E) - 1.0).abs() < 1e-12);
    }
}
