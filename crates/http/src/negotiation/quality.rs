//! Elements of `Accept` and `Accept-Encoding`: a name and how much it is wanted (RFC 9110, 12.4.2).

/// How much something is wanted, in thousandths; 0 is not at all.
pub type Weight = u16;

/// The most something can be wanted.
pub const MOST: Weight = 1000;

/// The names of a list and their weights; elements with an unreadable weight are left out. Total;
/// O(length).
pub fn elements<'a>(
    values: impl Iterator<Item = &'a [u8]>,
) -> impl Iterator<Item = (&'a [u8], Weight)> {
    values
        .flat_map(|value| value.split(|&byte| byte == b','))
        .filter_map(element)
}

fn element(element: &[u8]) -> Option<(&[u8], Weight)> {
    let mut parts = element
        .split(|&byte| byte == b';')
        .map(|part| part.trim_ascii());
    let name = parts.next().filter(|name| !name.is_empty())?;
    let weight = parts.find_map(|parameter| match parameter {
        [b'q' | b'Q', b'=', weight @ ..] => Some(weight),
        _ => None,
    });
    match weight {
        Some(weight) => Some((name, read_weight(weight)?)),
        None => Some((name, MOST)),
    }
}

/// `0` or `1`, and up to three decimals; at most 1.
fn read_weight(text: &[u8]) -> Option<Weight> {
    let (&whole, rest) = text.split_first()?;
    let decimals = match rest {
        [] => rest,
        [b'.', decimals @ ..] if decimals.len() <= 3 => decimals,
        _ => return None,
    };
    if !matches!(whole, b'0' | b'1') || !decimals.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let thousandths = (0..3).fold(Weight::from(whole - b'0'), |sum, index| {
        let digit = decimals.get(index).map_or(0, |digit| digit - b'0');
        sum * 10 + Weight::from(digit)
    });
    (thousandths <= MOST).then_some(thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read_to_the_thousandth() {
        for (text, weight) in [
            ("0", Some(0)),
            ("1", Some(1000)),
            ("0.", Some(0)),
            ("0.5", Some(500)),
            ("0.123", Some(123)),
            ("1.000", Some(1000)),
            ("1.001", None),
            ("0.1234", None),
            ("2", None),
            ("-1", None),
            ("", None),
            (".5", None),
            ("0,5", None),
            ("0.x", None),
        ] {
            assert_eq!(read_weight(text.as_bytes()), weight, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let values = [
            &b"a, b;q=0.5 ,, c;level=1;Q=0"[..],
            b"d;q=high, ;q=1",
            b"e ; q=1",
        ];
        let read: Vec<_> = elements(values.into_iter()).collect();
        let expected: [(&[u8], Weight); 4] = [(b"a", 1000), (b"b", 500), (b"c", 0), (b"e", 1000)];
        assert_eq!(read, expected);
    }
}
