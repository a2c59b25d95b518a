//! The transient overloads of Schroeder and Harchol-Balter 2006, Table I, by their names.
//!
//! W1 to W6 alternate: as long below the link's rate as above it. W7 to W10 are intermittent: short
//! spikes in a low load. All begin low, and the mean load of all is below 1.

/// Name, low load, high load, seconds low, seconds high.
type Row = (&'static str, f64, f64, f64, f64);

/// Table I.
const TABLE: [Row; 10] = [
    ("W1", 0.2, 1.2, 25.0, 25.0),
    ("W2", 0.2, 1.2, 10.0, 10.0),
    ("W3", 0.2, 1.6, 50.0, 50.0),
    ("W4", 0.4, 1.4, 25.0, 25.0),
    ("W5", 0.4, 1.4, 10.0, 10.0),
    ("W6", 0.1, 1.7, 40.0, 40.0),
    ("W7", 0.4, 5.0, 63.0, 6.0),
    ("W8", 0.45, 3.0, 63.0, 10.0),
    ("W9", 0.735, 2.0, 20.0, 3.0),
    ("W10", 0.735, 2.0, 13.3, 2.0),
];

/// Low load, high load, seconds low and seconds high of the schedule called `name`, in either case
/// of the letter.
pub fn find(name: &str) -> Option<[f64; 4]> {
    let (_, low, high, low_s, high_s) = TABLE
        .into_iter()
        .find(|(known, ..)| known.eq_ignore_ascii_case(name))?;
    Some([low, high, low_s, high_s])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last column of Table I.
    #[test]
    fn the_mean_loads_are_the_published_ones() {
        let published = [0.7, 0.7, 0.9, 0.9, 0.9, 0.9, 0.8, 0.8, 0.9, 0.9];
        for ((name, low, high, low_s, high_s), mean) in TABLE.into_iter().zip(published) {
            let load = (low * low_s + high * high_s) / (low_s + high_s);
            assert!((load - mean).abs() < 0.001, "{name}: {load}");
        }
    }

    #[test]
    fn names_are_found_in_either_case() {
        assert_eq!(find("w10"), Some([0.735, 2.0, 13.3, 2.0]));
        assert_eq!(find("W11"), None);
        assert_eq!(find(""), None);
    }
}
