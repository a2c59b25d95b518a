//! How the time of a language model's answer grows with its tokens: least squares, in one pass.

use serde::Serialize;

/// Fewest requests that coefficients are told from.
const REQUESTS_MIN: u64 = 20;
/// What is left of a variance that the other tokens explain, below which the two are one.
const DISTINCT_MIN: f64 = 1e-6;

/// Means and products of deviations of (prompt, completion, time), updated one by one so that large
/// numbers do not cancel.
#[derive(Clone, Debug, Default)]
pub struct Regression {
    n: u64,
    means: [f64; 3],
    products: [[f64; 3]; 3],
}

/// time = base + by prompt x its tokens + by completion x its tokens.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TokenFigures {
    /// Requests with tokens and a time.
    pub requests: u64,
    /// Tokens of a prompt in the mean.
    pub mean_prompt_tokens: f64,
    /// Tokens of an answer in the mean.
    pub mean_completion_tokens: f64,
    /// Without any token, ms; `null`, as the next three, where too few requests differ.
    pub base_ms: Option<f64>,
    /// For each token of the prompt, ms.
    pub prompt_token_ms: Option<f64>,
    /// For each token of the answer, ms.
    pub completion_token_ms: Option<f64>,
    /// Share of the variance of times that this explains.
    pub r2: Option<f64>,
}

impl Regression {
    /// An answer that took `time_ms`.
    pub fn add(&mut self, prompt: u64, completion: u64, time_ms: f64) {
        let values = [prompt as f64, completion as f64, time_ms];
        self.n += 1;
        let n = self.n as f64;
        let off: [f64; 3] = std::array::from_fn(|i| values[i] - self.means[i]);
        for (row, product_row) in self.products.iter_mut().enumerate() {
            for (column, product) in product_row.iter_mut().enumerate() {
                *product += off[row] * off[column] * (n - 1.0) / n;
            }
        }
        for (mean, off) in self.means.iter_mut().zip(off) {
            *mean += off / n;
        }
    }

    /// The figures; none without requests.
    pub fn figures(&self) -> Option<TokenFigures> {
        if self.n == 0 {
            return None;
        }
        let [mean_prompt, mean_completion, mean_ms] = self.means;
        let slopes = self.slopes().filter(|_| self.n >= REQUESTS_MIN);
        let base =
            |(prompt, completion)| mean_ms - prompt * mean_prompt - completion * mean_completion;
        let explained =
            |(prompt, completion)| prompt * self.products[0][2] + completion * self.products[1][2];
        let all = self.products[2][2];
        Some(TokenFigures {
            requests: self.n,
            mean_prompt_tokens: mean_prompt,
            mean_completion_tokens: mean_completion,
            base_ms: slopes.map(base),
            prompt_token_ms: slopes.map(|slopes| slopes.0),
            completion_token_ms: slopes.map(|slopes| slopes.1),
            r2: slopes
                .filter(|_| all > 0.0)
                .map(|slopes| (explained(slopes) / all).clamp(0.0, 1.0)),
        })
    }

    /// By prompt and by completion, of which one may not vary; none where they vary as one.
    fn slopes(&self) -> Option<(f64, f64)> {
        let [[pp, pc, pt], [_, cc, ct], _] = self.products;
        let determinant = pp * cc - pc * pc;
        match (pp > 0.0, cc > 0.0) {
            (true, true) if determinant > DISTINCT_MIN * pp * cc => Some((
                (cc * pt - pc * ct) / determinant,
                (pp * ct - pc * pt) / determinant,
            )),
            (true, false) => Some((pt / pp, 0.0)),
            (false, true) => Some((0.0, ct / cc)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn exact_coefficients_are_found(
            base in 0.0..1e4, by_prompt in 0.0..5.0, by_completion in 0.0..100.0,
            tokens in proptest::collection::vec((0..100_000_u64, 0..4000_u64), 30..60)
        ) {
            let mut regression = Regression::default();
            for (prompt, completion) in &tokens {
                let time = base + by_prompt * *prompt as f64 + by_completion * *completion as f64;
                regression.add(*prompt, *completion, time);
            }
            let found = regression.figures().expect("requests");
            for (found, expected) in [
                (found.base_ms, base),
                (found.prompt_token_ms, by_prompt),
                (found.completion_token_ms, by_completion),
            ] {
                let found: f64 = found.expect("a coefficient");
                let expected: f64 = expected;
                prop_assert!((found - expected).abs() < 1e-4 * expected.max(1.0), "{found}, {expected}");
            }
        }
    }

    #[test]
    fn tokens_that_do_not_vary_are_no_reason() {
        let mut regression = Regression::default();
        for request in 0..30 {
            regression.add(100, request, 5.0 + 2.0 * request as f64);
        }
        let found = regression.figures().expect("requests");
        assert_eq!(found.prompt_token_ms, Some(0.0));
        assert!((found.completion_token_ms.expect("one") - 2.0).abs() < 1e-9);
        assert!(found.r2.expect("one") > 0.999_999);
        let mut same = Regression::default();
        for request in 0..30 {
            same.add(request, request, request as f64);
        }
        assert_eq!(same.figures().expect("requests").r2, None);
    }
}
