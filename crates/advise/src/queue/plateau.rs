//! Rates that rise to a plateau and may fall behind it, fitted to counted events.
//!
//! The plateau is found first, because what a limit gives hangs on it: of all ranges of neighbours
//! the one that is surely the fastest. A range by itself may look fast by chance; the more events
//! it has, the less is taken off. Before it rates only rise, behind it they only fall.

/// Of a rate on the plateau: what has so much of it and comes before belongs to it.
const NEAR: f64 = 0.95;

/// So many events in so long a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted {
    /// Events, at least 1.
    pub events: f64,
    /// In any unit, above 0.
    pub time: f64,
}

impl Counted {
    fn rate(self) -> f64 {
        self.events / self.time
    }

    fn surely(self, errors: f64) -> f64 {
        self.rate() * (1.0 - errors / self.events.sqrt())
    }

    fn and(self, other: Self) -> Self {
        Self {
            events: self.events + other.events,
            time: self.time + other.time,
        }
    }
}

/// The fitted rates, and that of the plateau; of a rate of n events `errors` / √n is chance.
pub fn fit(counted: &[Counted], errors: f64) -> (Vec<f64>, f64) {
    let Some((first, last)) = plateau(counted, errors) else {
        return (Vec::new(), 0.0);
    };
    let most = pooled(&counted[first..=last]).rate();
    let mut behind: Vec<Counted> = counted[last + 1..].to_vec();
    behind.reverse();
    let mut fitted = rising(&counted[..first]);
    fitted.extend(std::iter::repeat_n(most, last + 1 - first));
    fitted.extend(rising(&behind).into_iter().rev());
    fitted.iter_mut().for_each(|rate| *rate = rate.min(most));
    (fitted, most)
}

fn pooled(counted: &[Counted]) -> Counted {
    let none = Counted {
        events: 0.0,
        time: 0.0,
    };
    counted.iter().fold(none, |sum, one| sum.and(*one))
}

/// First and last of the range that is surely the fastest, with its neighbours that are hardly
/// slower before it, and not surely slower behind it.
fn plateau(counted: &[Counted], errors: f64) -> Option<(usize, usize)> {
    let n = counted.len();
    let ranges = (0..n).flat_map(|first| (first..n).map(move |last| (first, last)));
    let surely = |range: &(usize, usize)| pooled(&counted[range.0..=range.1]).surely(errors);
    let (mut first, mut last) =
        ranges.max_by(|one, other| surely(one).total_cmp(&surely(other)))?;
    let most = pooled(&counted[first..=last]).rate();
    while last + 1 < n {
        let behind = counted[last + 1];
        if behind.rate() < most * (1.0 - errors / behind.events.sqrt()) {
            break;
        }
        last += 1;
    }
    while first > 0 && counted[first - 1].rate() >= NEAR * most {
        first -= 1;
    }
    Some((first, last))
}

/// Neighbours that fall are pooled until none does.
fn rising(counted: &[Counted]) -> Vec<f64> {
    let mut pools: Vec<(Counted, usize)> = Vec::new();
    for one in counted {
        let mut pool = (*one, 1);
        while let Some(before) = pools.pop_if(|before| before.0.rate() > pool.0.rate()) {
            pool = (before.0.and(pool.0), before.1 + pool.1);
        }
        pools.push(pool);
    }
    let all = pools.into_iter();
    all.flat_map(|(pool, n)| std::iter::repeat_n(pool.rate(), n))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(rates: &[f64], events: f64) -> Vec<f64> {
        let counted = rates.iter().map(|rate| Counted {
            events,
            time: events / rate,
        });
        fit(&counted.collect::<Vec<_>>(), 3.6).0
    }

    fn rounded(rates: Vec<f64>) -> Vec<f64> {
        rates
            .into_iter()
            .map(|rate| (rate * 100.0).round() / 100.0)
            .collect()
    }

    #[test]
    fn what_differs_by_chance_is_one_plateau() {
        let rates = rounded(of(&[1.0, 2.0, 3.0, 2.9, 3.1, 3.3, 2.9], 400.0));
        assert_eq!(rates, [1.0, 2.0, 3.03, 3.03, 3.03, 3.03, 3.03]);
        // Ten times as many, and the last one is surely slower.
        let slower = rounded(of(&[3.0, 3.0, 1.5], 400.0));
        assert_eq!(slower, [3.0, 3.0, 1.5]);
        // With so many events it is no chance.
        let surely = rounded(of(&[3.0, 3.3, 2.9], 1e6));
        assert_eq!(surely, [3.0, 3.3, 2.9]);
        assert_eq!(
            rounded(of(&[2.0, 1.0, 3.0, 1.0, 2.0], 1e6)),
            [1.33, 1.33, 3.0, 1.33, 1.33]
        );
        assert!(of(&[], 1.0).is_empty());
    }

    proptest! {
        #[test]
        fn one_peak(rates in proptest::collection::vec(0.1..10.0, 1..20), events in 1.0..1e4) {
            let fitted = of(&rates, events);
            prop_assert_eq!(fitted.len(), rates.len());
            let falls = fitted.windows(2).position(|two| two[1] < two[0]).unwrap_or(fitted.len() - 1);
            prop_assert!(fitted[falls..].is_sorted_by(|a, b| a >= b), "{fitted:?}");
        }
    }
}
