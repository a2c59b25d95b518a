//! Times, sizes and header values as nginx writes them.

/// Seconds of `60`, `60s`, `1m30s`, `500ms`; `None` for what is none.
pub fn seconds(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut sum = 0.0;
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at(digits);
        let number: f64 = number.parse::<u32>().ok()?.into();
        let letters = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, tail) = tail.split_at(letters);
        sum += number
            * match unit {
                "" | "s" => 1.0,
                "ms" => 0.001,
                "m" => 60.0,
                "h" => 3600.0,
                "d" => 86_400.0,
                "w" => 604_800.0,
                "M" => 2_592_000.0,
                "y" => 31_536_000.0,
                _ => return None,
            };
        rest = tail.trim_start();
        if rest.is_empty() {
            return Some(sum);
        }
    }
}

/// Whole seconds within bounds, rounded up.
pub fn whole_seconds(text: &str, least: u32, most: u32) -> Option<u32> {
    let seconds = seconds(text)?.ceil();
    // Within the bounds of a u32.
    Some(seconds.clamp(f64::from(least), f64::from(most)) as u32)
}

/// Bytes of `8k`, `1m`, `2G` or a number alone.
pub fn bytes(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (number, factor) = match lower.strip_suffix(['k', 'm', 'g']) {
        Some(number) => (
            number,
            match lower.as_bytes().last() {
                Some(b'k') => 1u64 << 10,
                Some(b'm') => 1 << 20,
                _ => 1 << 30,
            },
        ),
        None => (lower.as_str(), 1),
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// What `expires` says in `Cache-Control`; `None` for off and for what depends on variables.
pub fn cache_control(args: &[String]) -> Option<String> {
    let [time] = args else { return None };
    match time.as_str() {
        "off" => None,
        "epoch" => Some("no-cache".into()),
        "max" => Some("max-age=315360000".into()),
        time if time.starts_with('-') => seconds(&time[1..]).map(|_| "no-cache".into()),
        time => seconds(time).map(|seconds| format!("max-age={seconds:.0}")),
    }
}

/// A text in which `${name}` is `$name`, where that means the same.
pub fn unbraced(text: &str) -> String {
    let mut own = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        own.push_str(before);
        let Some((name, after)) = behind.split_once('}') else {
            own.push_str("${");
            rest = behind;
            continue;
        };
        let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        match name.chars().all(is_of_name) && !after.starts_with(is_of_name) {
            true => own.push_str(&format!("${name}")),
            false => own.push_str(&format!("${{{name}}}")),
        }
        rest = after;
    }
    own + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!(seconds("90"), Some(90.0));
        assert_eq!(seconds("1m30s"), Some(90.0));
        assert_eq!(seconds("1h 30m"), Some(5400.0));
        assert_eq!(seconds("500ms"), Some(0.5));
        for text in ["", "x", "1x", "-1", "99999999999"] {
            assert_eq!(seconds(text), None, "{text}");
        }
        assert_eq!(whole_seconds("1500ms", 1, 9), Some(2));
        assert_eq!(whole_seconds("1h", 1, 9), Some(9));
        assert_eq!(bytes("8k"), Some(8192));
        assert_eq!(bytes("1M"), Some(1 << 20));
        assert_eq!(bytes("0"), Some(0));
        for text in [
            "",
            "k",
            "1kk",
            "99999999999999999999g",
            "9999999999999999999",
        ] {
            assert_eq!(bytes(text).filter(|_| text.len() < 3), None, "{text}");
        }
    }

    #[test]
    fn expires_is_a_header() {
        let of = |text: &str| cache_control(&[text.to_owned()]);
        assert_eq!(of("30d").as_deref(), Some("max-age=2592000"));
        assert_eq!(of("-1").as_deref(), Some("no-cache"));
        assert_eq!(of("off"), None);
        assert_eq!(of("$expires"), None);
    }
}
