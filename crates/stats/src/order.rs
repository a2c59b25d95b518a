//! Means and exact order statistics.

/// Arithmetic mean; none of nothing.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values
        .into_iter()
        .fold((0u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}

/// Squared coefficient of variation, population variance / mean²; none of nothing or where the mean is 0.
pub fn squared_variation(values: &[u64]) -> Option<f64> {
    let mean_value = mean(values.iter().map(|&value| value as f64))?;
    let variance = mean(
        values
            .iter()
            .map(|&value| (value as f64 - mean_value).powi(2)),
    )?;
    (mean_value > 0.0).then(|| variance / (mean_value * mean_value))
}

/// Percentile by nearest rank: the smallest value that at least `per_mille`/1000 of all values do not exceed.
///
/// `sorted` is in ascending order; the answer is always one of the values, never interpolated.
pub fn percentile(sorted: &[u64], per_mille: u32) -> Option<u64> {
    let rank = (sorted.len() as u128 * u128::from(per_mille)).div_ceil(1000) as usize;
    sorted.get(rank.max(1) - 1).copied()
}
