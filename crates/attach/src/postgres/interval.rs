//! How sure a sum over some time is, from how much the slices of that time differ.

/// Slices that a sum needs to have an interval.
const SLICES_MIN: usize = 5;

/// Half of the 95 per cent interval of what slices add up to in `time_s`, by those that were looked
/// at; none where these are too few.
pub fn sum_error(slices: &[f64], slices_s: &[f64], time_s: f64) -> Option<f64> {
    let seen = slices.iter().zip(slices_s);
    let seen: Vec<f64> = seen
        .filter(|(_, length_s)| **length_s > 0.0)
        .map(|(own, length_s)| own / length_s)
        .collect();
    if seen.len() < SLICES_MIN {
        return None;
    }
    let count = seen.len() as f64;
    let mean = seen.iter().sum::<f64>() / count;
    let squares: f64 = seen.iter().map(|one| (one - mean).powi(2)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    Some(student(seen.len()) * deviation / count.sqrt() * time_s)
}

/// Half of a 95 per cent interval of a mean of so many, in standard errors: the first terms of the
/// expansion in their number (Abramowitz and Stegun 26.7.5), the last one rounded up.
fn student(count: usize) -> f64 {
    let freedom = (count - 1) as f64;
    1.96 + 2.37 / freedom + 3.5 / freedom.powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_few_is_wider() {
        for (count, expected) in [(5, 2.776), (10, 2.262), (20, 2.093)] {
            assert!((student(count) - expected).abs() < 0.01, "{count}");
        }
    }

    #[test]
    fn a_sum_is_as_sure_as_its_slices_are_alike() {
        let of = |slices: &[f64], slices_s: &[f64]| sum_error(slices, slices_s, 10.0);
        assert_eq!(of(&[2.0; 5], &[1.0; 5]), Some(0.0));
        // Their deviation is 1: 10 * 2.776 / 5.0.sqrt().
        let error = of(&[1.0, 3.0, 1.0, 3.0, 2.0], &[1.0; 5]).unwrap();
        assert!((error - 12.41).abs() < 0.05, "{error}");
        // A slice that was not looked at says nothing.
        assert_eq!(of(&[2.0; 5], &[1.0, 1.0, 1.0, 1.0, 0.0]), None);
    }
}
