//! Names of metrics: those that a dashboard or an alert rule asks for, and those that a program
//! tells.

use std::collections::BTreeSet;

/// The names of Sooner's metrics in the text of a dashboard or of rules, without the endings that
/// a histogram's parts have.
pub fn asked(text: &str) -> BTreeSet<String> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| word.starts_with("sooner_"))
        .map(|word| {
            let part = ["_bucket", "_sum", "_count"];
            let whole = part.iter().find_map(|end| word.strip_suffix(end));
            whole.unwrap_or(word).to_owned()
        })
        .collect()
}

/// The names in an OpenMetrics text, those that have no value at the moment included.
pub fn told(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .map(|(name, kind)| match kind {
            "counter" => format!("{name}_total"),
            "info" => format!("{name}_info"),
            _ => name.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_have_the_names_that_a_query_uses() {
        let text = "# TYPE sooner_a counter\nsooner_a_total 1\n# TYPE sooner_b histogram\n\
                    # TYPE sooner_c gauge\n# TYPE sooner_build info\n";
        let query = r#"{"expr": "rate(sooner_a_total{x=\"y\"}[5m]) / sooner_b_sum + sooner_c"}"#;
        assert_eq!(
            told(text).into_iter().collect::<Vec<_>>(),
            [
                "sooner_a_total",
                "sooner_b",
                "sooner_build_info",
                "sooner_c"
            ]
        );
        assert!(asked(query).is_subset(&told(text)));
        assert!(!asked("sooner_a").is_subset(&told(text)));
    }
}
