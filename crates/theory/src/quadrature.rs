//! Integrals by Gauss and Legendre's eight points.

/// Points in [-1, 1] and their weights; both are symmetric.
const POINTS: [(f64, f64); 4] = [
    (0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_5),
    (0.960_289_856_497_536_2, 0.101_228_536_290_376_3),
];

/// The points of an integral from `low` to `high`, ascending, with their weights.
pub fn points(low: f64, high: f64) -> [(f64, f64); 8] {
    let (middle, half) = (low.midpoint(high), (high - low) / 2.0);
    std::array::from_fn(|index| {
        let (sign, of) = if index < 4 {
            (-1.0, 3 - index)
        } else {
            (1.0, index - 4)
        };
        let (point, weight) = POINTS[of];
        (middle + sign * half * point, half * weight)
    })
}

/// ∫ f from `low` to `high`; where these are far apart, evenly on a logarithmic scale.
pub fn integral(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    if low > 0.0 && high > 1.5 * low {
        let of_logarithm = |(s, weight): (f64, f64)| weight * s.exp() * f(s.exp());
        return points(low.ln(), high.ln()).map(of_logarithm).iter().sum();
    }
    let sum = points(low, high).map(|(t, weight)| weight * f(t));
    sum.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_are_exact() {
        let found = integral(1.0, 1.4, |t| t.powi(15));
        assert!((found * 16.0 / (1.4_f64.powi(16) - 1.0) - 1.0).abs() < 1e-13);
    }

    #[test]
    fn far_apart_ends_are_no_harm() {
        let found = integral(1.0, 100.0, |t| 1.0 / t);
        assert!((found / 100.0_f64.ln() - 1.0).abs() < 1e-13, "{found}");
    }
}
