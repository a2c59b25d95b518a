//! Scales: from a value to a position in the picture, and the ticks that make it readable.
//!
//! Linear ticks fall on 1, 2 or 5 times a power of ten. Logarithmic ones are labelled at the powers
//! of ten, or at 1-2-5 where the domain spans less than two decades; the other digits give
//! unlabelled grid lines.

/// Maps a domain of values to a range of positions, linearly or by logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    kind: Kind,
    domain: (f64, f64),
    range: (f64, f64),
}

/// How values are spread over the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Equal differences take equal space.
    Linear,
    /// Equal ratios take equal space; values are positive.
    Log,
}

/// One grid line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tick {
    /// Where it stands in the domain.
    pub value: f64,
    /// Whether it carries a label.
    pub labelled: bool,
}

impl Scale {
    /// A scale with a domain that covers `values`, rounded outward to round numbers; a domain of
    /// one point is widened. Values that the kind cannot show (not finite; for `Log` also <= 0) are
    /// left out.
    pub fn covering(kind: Kind, values: impl Iterator<Item = f64>, range: (f64, f64)) -> Scale {
        let shown = values.filter(|v| v.is_finite() && (kind == Kind::Linear || *v > 0.0));
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(v), high.max(v))
        });
        let domain = match kind {
            _ if low > high => (1.0, 10.0),
            Kind::Linear => linear_domain(low, high),
            Kind::Log => log_domain(low, high),
        };
        Scale {
            kind,
            domain,
            range,
        }
    }

    /// A scale with exactly this domain. `domain.0 < domain.1`, both positive for `Log`.
    pub fn exact(kind: Kind, domain: (f64, f64), range: (f64, f64)) -> Scale {
        assert!(
            domain.0 < domain.1,
            "the domain of a scale must not be empty"
        );
        assert!(
            kind == Kind::Linear || domain.0 > 0.0,
            "a log scale starts above zero"
        );
        Scale {
            kind,
            domain,
            range,
        }
    }

    /// The position of `value`; what lies outside the domain is put on its border.
    pub fn position(&self, value: f64) -> f64 {
        let (low, high) = self.domain;
        let value = value.clamp(low, high);
        let fraction = match self.kind {
            Kind::Linear => (value - low) / (high - low),
            Kind::Log => (value / low).ln() / (high / low).ln(),
        };
        self.range.0 + fraction * (self.range.1 - self.range.0)
    }

    /// Where the least value of the domain stands.
    pub fn start(&self) -> f64 {
        self.range.0
    }

    /// The length that one unit takes from `value` on.
    pub fn unit_at(&self, value: f64) -> f64 {
        (self.position(value + 0.5) - self.position(value - 0.5)).abs()
    }

    /// Whether the scale can show `value` at all.
    pub fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.kind == Kind::Linear || value > 0.0)
    }

    /// Grid lines in rising order, all within the domain; about `wanted` of them labelled (linear).
    pub fn ticks(&self, wanted: usize) -> Vec<Tick> {
        match self.kind {
            Kind::Linear => linear_ticks(self.domain, wanted),
            Kind::Log => log_ticks(self.domain),
        }
    }
}

fn linear_domain(low: f64, high: f64) -> (f64, f64) {
    let low = low.min(0.0);
    let high = if high > low { high } else { low + 1.0 };
    let step = round_step((high - low) / 5.0);
    (
        (low / step).floor() * step,
        (high / step - 1e-9).ceil() * step,
    )
}

fn log_domain(low: f64, high: f64) -> (f64, f64) {
    let (low, high) = (round_digit(low, f64::floor), round_digit(high, f64::ceil));
    if high / low < 10.0 {
        (low, low * 10.0)
    } else {
        (low, high)
    }
}

/// The neighbour of `value` of the form digit x power of ten, in the direction of `towards`.
fn round_digit(value: f64, towards: fn(f64) -> f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    // a millionth of slack, so that 2.0000000004 counts as 2
    let slack = if towards(0.5) == 0.0 { 1e-6 } else { -1e-6 };
    towards(value / decade + slack).max(1.0) * decade
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `raw`.
fn round_step(raw: f64) -> f64 {
    let decade = 10f64.powf(raw.log10().floor());
    let digit = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|d| d * decade >= raw * (1.0 - 1e-9));
    digit.unwrap_or(10.0) * decade
}

fn linear_ticks((low, high): (f64, f64), wanted: usize) -> Vec<Tick> {
    let step = round_step((high - low) / wanted.max(1) as f64);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last)
        .map(|i| Tick {
            value: (i as f64 * step).clamp(low, high),
            labelled: true,
        })
        .collect()
}

fn log_ticks((low, high): (f64, f64)) -> Vec<Tick> {
    let labels_125 = (high / low).log10() < 2.0;
    let mut ticks = Vec::new();
    for exponent in low.log10().floor() as i32..=high.log10().ceil() as i32 {
        for digit in 1..=9 {
            let value = f64::from(digit) * 10f64.powi(exponent);
            if value >= low * (1.0 - 1e-9) && value <= high * (1.0 + 1e-9) {
                let labelled = digit == 1 || (labels_125 && (digit == 2 || digit == 5));
                ticks.push(Tick { value, labelled });
            }
        }
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_the_domain_are_ends_of_the_range() {
        for kind in [Kind::Linear, Kind::Log] {
            let scale = Scale::exact(kind, (0.5, 800.0), (300.0, 20.0));
            assert!((scale.position(0.5) - 300.0).abs() < 1e-9);
            assert!((scale.position(800.0) - 20.0).abs() < 1e-9);
            assert_eq!(scale.position(-7.0), 300.0, "outside is put on the border");
        }
    }

    #[test]
    fn equal_ratios_take_equal_space_on_a_log_scale() {
        let scale = Scale::exact(Kind::Log, (1.0, 1000.0), (0.0, 300.0));
        for (value, position) in [(1.0, 0.0), (10.0, 100.0), (100.0, 200.0)] {
            assert!((scale.position(value) - position).abs() < 1e-9);
        }
    }

    #[test]
    fn a_covering_scale_covers_and_positions_rise_with_values() {
        let samples = [[0.031, 0.7], [3.0, 12_345.0], [5.0, 5.0], [1e-6, 9e6]];
        for values in samples {
            for kind in [Kind::Linear, Kind::Log] {
                let scale = Scale::covering(kind, values.into_iter(), (0.0, 100.0));
                let (low, high) = scale.domain;
                assert!(
                    low <= values[0] && values[1] <= high,
                    "{kind:?} {values:?} {low} {high}"
                );
                assert!(scale.position(values[0]) <= scale.position(values[1]));
            }
        }
    }

    #[test]
    fn ticks_rise_and_lie_within_the_domain() {
        let domains = [
            (0.0, 1.0),
            (0.0, 137.0),
            (0.02, 90.0),
            (1.0, 10.0),
            (3.0, 3e6),
        ];
        for (low, high) in domains {
            for kind in [Kind::Linear, Kind::Log] {
                if kind == Kind::Log && low == 0.0 {
                    continue;
                }
                let ticks = Scale::exact(kind, (low, high), (0.0, 1.0)).ticks(5);
                assert!(ticks.windows(2).all(|pair| pair[0].value < pair[1].value));
                assert!(
                    ticks
                        .iter()
                        .all(|t| t.value >= low * 0.999 && t.value <= high * 1.001)
                );
                let labelled = ticks.iter().filter(|t| t.labelled).count();
                assert!(
                    (2..=11).contains(&labelled),
                    "{kind:?} {low}..{high}: {labelled}"
                );
            }
        }
    }

    #[test]
    fn nothing_to_show_still_gives_a_scale() {
        let scale = Scale::covering(Kind::Log, [0.0, -1.0, f64::NAN].into_iter(), (0.0, 1.0));
        assert_eq!(scale.domain, (1.0, 10.0));
        assert!(!scale.shows(0.0) && !scale.shows(f64::NAN) && scale.shows(2.0));
    }
}
