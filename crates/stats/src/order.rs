//! Means and exact order statistics.

/// Arithmetic mean; none of nothing.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values
        .into_iter()
        .fold((0u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}

/// Squared coefficient of variation, population variance / mean²; none of nothing or where the mean
/// is 0.
pub fn squared_variation(values: &[u64]) -> Option<f64> {
    let mean_value = mean(values.iter().map(|&value| value as f64))?;
    let variance = mean(
        values
            .iter()
            .map(|&value| (value as f64 - mean_value).powi(2)),
    )?;
    (mean_value > 0.0).then(|| variance / (mean_value * mean_value))
}

/// Percentile by nearest rank: the smallest value that at least `per_mille`/1000 of all values do
/// not exceed.
///
/// `sorted` is in ascending order; the answer is always one of the values, never interpolated.
pub fn percentile(sorted: &[u64], per_mille: u32) -> Option<u64> {
    let rank = (sorted.len() as u128 * u128::from(per_mille)).div_ceil(1000) as usize;
    sorted.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_are_values_by_nearest_rank() {
        let sorted: Vec<u64> = (1..=200).collect();
        let at = |per_mille| percentile(&sorted, per_mille).expect("not empty");
        assert_eq!(
            (at(500), at(950), at(990), at(999), at(1000)),
            (100, 190, 198, 200, 200)
        );
        assert_eq!((at(0), at(1), at(5), at(6)), (1, 1, 1, 2));
        assert_eq!(percentile(&[7], 500), Some(7));
        assert_eq!(percentile(&[3, 9], 500), Some(3));
        assert_eq!(percentile(&[], 500), None);
    }

    #[test]
    fn variation_of_known_values() {
        assert_eq!(squared_variation(&[5, 5, 5]), Some(0.0));
        // Mean 5, variance (16 + 16) / 2.
        assert_eq!(squared_variation(&[1, 9]), Some(16.0 / 25.0));
        assert_eq!(squared_variation(&[0, 0]), None);
        assert_eq!(squared_variation(&[]), None);
    }

    #[test]
    fn the_mean_of_nothing_is_none() {
        assert_eq!(mean([]), None);
        assert_eq!(mean([1.0, 2.0, 6.0]), Some(3.0));
    }

    proptest! {
        #[test]
        fn percentiles_rise_and_the_mean_lies_between_the_ends(mut values in prop::collection::vec(0..1u64 << 50, 1..300)) {
            values.sort_unstable();
            let percentiles: Vec<u64> = (0..=1000).filter_map(|per_mille| percentile(&values, per_mille)).collect();
            prop_assert!(percentiles.is_sorted());
            prop_assert_eq!((percentiles[0], percentiles[1000]), (values[0], values[values.len() - 1]));
            let mean = mean(values.iter().map(|&value| value as f64)).expect("not empty");
            prop_assert!((percentiles[0] as f64..=percentiles[1000] as f64).contains(&mean));
        }

        #[test]
        fn so_many_values_lie_at_or_below_a_percentile(mut values in prop::collection::vec(0..50u64, 1..300), per_mille in 1..=1000u32) {
            values.sort_unstable();
            let at = percentile(&values, per_mille).expect("not empty");
            let share = |count: usize| count as f64 / values.len() as f64;
            prop_assert!(share(values.iter().filter(|&&value| value <= at).count()) >= f64::from(per_mille) / 1000.0);
            prop_assert!(share(values.iter().filter(|&&value| value < at).count()) < f64::from(per_mille) / 1000.0);
        }
    }
}
