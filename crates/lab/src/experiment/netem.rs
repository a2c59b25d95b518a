//! The words that `tc` takes for netem (tc-netem(8)), looked at before anything is set up.
//!
//! Times need a unit here: `tc` reads a bare number as microseconds, which few mean.

/// What stands behind each word: what it needs, then what may follow.
const WORDS: [(&str, &[Kind], &[Kind]); 12] = [
    ("limit", &[Kind::Count], &[]),
    ("delay", &[Kind::Time], &[Kind::Time, Kind::Share]),
    ("distribution", &[Kind::Distribution], &[]),
    ("loss", &[Kind::Share], &[Kind::Share]),
    ("loss state", &[Kind::Share], &[Kind::Share; 4]),
    ("loss gemodel", &[Kind::Share], &[Kind::Share; 3]),
    ("ecn", &[], &[]),
    ("corrupt", &[Kind::Share], &[Kind::Share]),
    ("duplicate", &[Kind::Share], &[Kind::Share]),
    ("reorder", &[Kind::Share], &[Kind::Share]),
    ("gap", &[Kind::Count], &[]),
    ("rate", &[Kind::Rate], &[Kind::Number; 3]),
];
const DISTRIBUTIONS: [&str; 4] = ["uniform", "normal", "pareto", "paretonormal"];
const TIME_UNITS: [&str; 9] = [
    "us", "usec", "usecs", "ms", "msec", "msecs", "s", "sec", "secs",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Count,
    Number,
    Time,
    Share,
    Rate,
    Distribution,
}

impl Kind {
    /// Whether a word is of this kind.
    fn takes(self, word: &str) -> bool {
        let digits = word
            .bytes()
            .take_while(|byte| byte.is_ascii_digit() || *byte == b'.');
        let (number, unit) = word.split_at(digits.count());
        let value: Option<f64> = number.parse().ok().filter(|value: &f64| value.is_finite());
        match self {
            Kind::Count => unit.is_empty() && word.parse::<u32>().is_ok_and(|count| count > 0),
            Kind::Number => word.parse::<i32>().is_ok(),
            Kind::Time => value
                .is_some_and(|value| TIME_UNITS.contains(&unit) || value == 0.0 && unit.is_empty()),
            Kind::Share => unit == "%" && value.is_some_and(|value| value <= 100.0),
            Kind::Rate => value.is_some_and(|value| value > 0.0) && unit.ends_with("bit"),
            Kind::Distribution => DISTRIBUTIONS.contains(&word),
        }
    }

    fn example(self) -> &'static str {
        match self {
            Kind::Count => "a number like 1000",
            Kind::Number => "a number of bytes",
            Kind::Time => "a time with its unit, like 20ms",
            Kind::Share => "a share up to 100 %, like 1%",
            Kind::Rate => "a rate, like 5mbit",
            Kind::Distribution => "uniform, normal, pareto or paretonormal",
        }
    }
}

/// What is wrong with the words, and what would be right.
pub fn check(text: &str) -> Result<(), String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() {
        return Err("it is empty; give words of tc, like \"delay 20ms 5ms loss 1%\"".into());
    }
    let mut seen: Vec<(&str, usize)> = Vec::new();
    let mut rest = &words[..];
    while let [word, behind @ ..] = rest {
        let (name, behind) = named(word, behind);
        let Some((name, needed, may)) = WORDS.iter().find(|(own, ..)| *own == name) else {
            let all: Vec<&str> = WORDS.iter().map(|(name, ..)| *name).collect();
            return Err(format!(
                "`{word}` is not a word of netem; it has {}",
                all.join(", ")
            ));
        };
        for (place, kind) in needed.iter().enumerate() {
            if !behind.get(place).is_some_and(|word| kind.takes(word)) {
                return Err(format!("`{name}` needs {}", kind.example()));
            }
        }
        let (_, optional) = behind.split_at(needed.len());
        let more = optional
            .iter()
            .zip(*may)
            .take_while(|(word, kind)| kind.takes(word));
        let values = needed.len() + more.count();
        let kind = name.split(' ').next().unwrap_or(name);
        if seen.iter().any(|(other, _)| *other == kind) {
            return Err(format!("`{kind}` is there twice"));
        }
        seen.push((kind, values));
        if kind == "loss" && behind[0] == "100%" {
            return Err("`loss 100%` lets nothing through".into());
        }
        rest = &behind[values..];
    }
    let values = |name: &str| {
        seen.iter()
            .find(|(own, _)| *own == name)
            .map(|(_, values)| *values)
    };
    if values("reorder").is_some() && values("delay").is_none() {
        return Err("`reorder` needs a `delay`, which the others wait".into());
    }
    if values("distribution").is_some() && values("delay").is_none_or(|count| count < 2) {
        return Err("`distribution` needs a `delay` with a variation, like delay 20ms 5ms".into());
    }
    Ok(())
}

/// The name of what begins with a word, and the words behind it: `loss random` is `loss`.
fn named<'a>(word: &'a str, behind: &'a [&'a str]) -> (&'a str, &'a [&'a str]) {
    match (word, behind) {
        ("loss", ["random", behind @ ..]) => ("loss", behind),
        ("loss", ["state", behind @ ..]) => ("loss state", behind),
        ("loss", ["gemodel", behind @ ..]) => ("loss gemodel", behind),
        _ => (word, behind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_manual_are_taken() {
        // Those of the examples in tc-netem(8), and some more.
        for text in [
            "delay 100ms",
            "delay 100ms 10ms",
            "delay 100ms 10ms 25%",
            "delay 100ms 20ms distribution normal",
            "loss 0.1%",
            "loss 0.3% 25%",
            "loss random 2%",
            "loss gemodel 1% 10% 70% 0.1%",
            "loss state 1% 10% ecn",
            "duplicate 1%",
            "corrupt 0.1%",
            "delay 10ms reorder 25% 50%",
            "gap 5 delay 10ms reorder 25%",
            "rate 5kbit 20 100 5",
            "limit 2000 delay 20ms 5ms loss 1%",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn other_words_are_refused_with_what_would_be_right() {
        for (text, right) in [
            ("", "like \"delay 20ms"),
            ("20ms", "it has limit, delay"),
            ("delay 20", "a time with its unit"),
            ("delay", "a time with its unit"),
            ("delay 20ms 5", "`5` is not a word"),
            ("delay 20ms delay 30ms", "twice"),
            ("loss 1", "like 1%"),
            ("loss 101%", "up to 100 %"),
            ("loss 100%", "nothing through"),
            ("loss gemodel", "like 1%"),
            ("reorder 5%", "needs a `delay`"),
            ("delay 20ms distribution normal", "with a variation"),
            ("delay 20ms 5ms distribution gauss", "pareto"),
            ("rate 5", "like 5mbit"),
            ("limit 0", "like 1000"),
        ] {
            let problem = check(text).unwrap_err();
            assert!(problem.contains(right), "{text}: {problem}");
        }
    }
}
