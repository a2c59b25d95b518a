//! Text as a distribution; what is read must have a mean, quantiles that rise, and be written in
//! the form that is read.

use sooner_workload::{Distribution, Sizes};

/// Tries one input.
pub fn run(text: &str) {
    // A trace is a file: not opened here.
    if let Ok(Sizes::Law(distribution)) = text.parse::<Sizes>() {
        assert!(distribution.mean() >= 0.0);
        let quantiles = [0.0, 0.1, 0.5, 0.9, 0.999_999].map(|u| distribution.quantile(u));
        assert!(
            quantiles.is_sorted() && quantiles[0] >= 0.0,
            "{text}: {quantiles:?}"
        );
        assert_eq!(
            distribution.to_string().parse::<Distribution>(),
            Ok(distribution)
        );
    }
}
