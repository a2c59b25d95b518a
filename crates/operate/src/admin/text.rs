//! Numbers for people, as the page without JavaScript shows them.

/// A time, three digits: `0.53 ms`, `148 ms`, `2.31 s`; a dash for none.
pub fn seconds(seconds: Option<f64>) -> String {
    match seconds {
        None => "\u{2013}".into(),
        Some(seconds) if seconds < 1.0 => format!("{} ms", three_digits(seconds * 1e3)),
        Some(seconds) => format!("{} s", three_digits(seconds)),
    }
}

/// A size in powers of ten: `512 B`, `1.25 MB`.
pub fn bytes(bytes: u64) -> String {
    scaled(bytes as f64, &["B", "KB", "MB", "GB", "TB", "PB"])
}

/// A rate in powers of ten: `10 Mbit/s`.
pub fn bits_per_sec(rate: u64) -> String {
    scaled(
        rate as f64,
        &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"],
    )
}

/// Text that may stand in HTML, between tags and in quotes.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(character),
        }
    }
    out
}

fn scaled(mut value: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1e3;
        unit += 1;
    }
    format!("{} {}", three_digits(value), units[unit])
}

fn three_digits(value: f64) -> String {
    let decimals = match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!(seconds(Some(0.000_53)), "0.53 ms");
        assert_eq!(seconds(Some(0.148_4)), "148 ms");
        assert_eq!(seconds(Some(2.314)), "2.31 s");
        assert_eq!(seconds(Some(0.0)), "0 ms");
        assert_eq!(seconds(None), "\u{2013}");
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(999_999), "1 MB");
        assert_eq!(bytes(1_254_000), "1.25 MB");
        assert_eq!(bytes(100_000), "100 KB");
        assert_eq!(bits_per_sec(10_000_000), "10 Mbit/s");
        assert_eq!(bits_per_sec(u64::MAX), "18446744 Tbit/s");
    }

    #[test]
    fn nothing_of_html_is_left() {
        assert_eq!(
            html("<a b='\"&\"'>"),
            "&lt;a b=&#39;&quot;&amp;&quot;&#39;&gt;"
        );
    }
}
