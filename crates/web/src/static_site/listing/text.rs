//! How names, sizes and dates are written in listings.

use crate::access_log::rfc3339;
use std::time::Duration;

/// Appends text with everything escaped that means something in HTML, inside and outside of
/// attributes.
pub fn push_html(html: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            _ => html.push(character),
        }
    }
}

/// `512 B`, `1.5 KiB`, `20.0 GiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut tenths = u128::from(bytes) * 10 / 1024;
    let mut unit = 0;
    while tenths >= 10_240 {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// `2026-11-21 20:41`, UTC.
pub fn minute(since_1970: Duration) -> String {
    let text = second(since_1970);
    format!("{} {}", &text[..10], &text[11..16])
}

/// `2026-11-21T20:41:07Z`.
pub fn second(since_1970: Duration) -> String {
    let text = rfc3339(since_1970);
    let mut second = String::from_utf8_lossy(&text[..19]).into_owned();
    second.push('Z');
    second
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_to_read() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 1, "1023.9 KiB"),
            (1 << 20, "1.0 MiB"),
            (6 << 30, "6.0 GiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn dates_to_read() {
        let date = Duration::from_secs(1_795_293_667);
        assert_eq!(second(date), "2026-11-21T20:41:07Z");
        assert_eq!(minute(date), "2026-11-21 20:41");
    }

    proptest! {
        #[test]
        fn nothing_that_is_escaped_is_markup(text: String) {
            let mut html = String::new();
            push_html(&mut html, &text);
            prop_assert!(!html.contains(['<', '>', '"', '\'']));
        }
    }
}
