//! Answers, as far as they are compared.

use super::requests::Case;

/// An answer, as far as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    pub status: u16,
    pub location: String,
    /// The headers that shapes set.
    pub headers: Vec<String>,
    /// What `Expires` says of the time of the answer.
    pub expires: String,
    /// Of status 200, and pages of errors that are files: the others are each server's own.
    pub body: String,
}

impl Got {
    /// `port` is what stands in `Location` because no usual one was free.
    pub fn of(bytes: &[u8], case: &Case, port: u16) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
        let get = |wanted: &str| {
            let found = fields
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map_or("", |(_, value)| *value)
        };
        let status = status.and_then(|status| status.parse().ok()).unwrap_or(0);
        let location = get("location").replace(&format!(":{port}"), "");
        let location = match location.strip_prefix('/') {
            Some(path) => format!("{}://{}/{path}", case.scheme(), case.host),
            None => location,
        };
        let is_answer = (200..400).contains(&status);
        let headers = [
            "x-content-type-options",
            "x-frame-options",
            "strict-transport-security",
            "x-kind",
            "content-encoding",
        ];
        let is_page = status == 200 && get("content-encoding").is_empty()
            || status >= 400 && matches!(body.trim(), "lost" | "broken");
        Self {
            status,
            location,
            headers: (headers.iter().filter(|_| is_answer))
                .map(|name| format!("{name}={}", get(name)))
                .chain([format!(
                    "cache-control={}",
                    joined(&fields, "cache-control", is_answer)
                )])
                .collect(),
            expires: rounded(&lasting(get("expires"), get("date"))),
            body: if is_page {
                match get("transfer-encoding") {
                    "chunked" => whole(body),
                    _ => body.to_owned(),
                }
            } else {
                String::new()
            },
        }
    }
}

/// nginx writes a field twice where Sooner joins the values.
fn joined(fields: &[(&str, &str)], wanted: &str, is_answer: bool) -> String {
    let values = fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
    let values: Vec<&str> = values
        .filter(|_| is_answer)
        .map(|(_, value)| *value)
        .collect();
    values.join(", ")
}

/// The text of chunks.
fn whole(mut rest: &str) -> String {
    let mut text = String::new();
    while let Some((length, behind)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        text.push_str(&behind[..length]);
        rest = behind[length..].trim_start_matches("\r\n");
    }
    text
}

/// The time from one date to the other, s; a date far away as it is.
fn lasting(expires: &str, date: &str) -> String {
    if expires.is_empty() || expires.contains("1970") || expires.contains("2037") {
        return expires.to_owned();
    }
    let seconds = |date: &str| {
        let words: Vec<&str> = date.split([' ', ':']).collect();
        let [_, day, month, year, hours, minutes, seconds, _] = words.as_slice() else {
            panic!("{date}");
        };
        let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
        let month = months.find(month).unwrap() as i64 / 3 + 1;
        let number = |text: &str| text.parse::<i64>().unwrap();
        // Days of the civil calendar, with March as the first month.
        let year = number(year) - i64::from(month <= 2);
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + number(day) - 1;
        let days = year * 365 + year / 4 - year / 100 + year / 400 + of_year;
        ((days * 24 + number(hours)) * 60 + number(minutes)) * 60 + number(seconds)
    };
    (seconds(expires) - seconds(date)).to_string()
}

/// The clock may go on between the two dates of one answer.
fn rounded(seconds: &str) -> String {
    match seconds.parse::<i64>() {
        Ok(seconds) => ((seconds + 2).div_euclid(5) * 5).to_string(),
        Err(_) => seconds.to_owned(),
    }
}

#[test]
fn dates_are_told_apart_by_seconds() {
    let date = "Wed, 28 Feb 2024 23:59:59 GMT";
    assert_eq!(lasting("Fri, 01 Mar 2024 00:00:01 GMT", date), "86402");
    assert_eq!(lasting("Wed, 28 Feb 2024 23:59:58 GMT", date), "-1");
    assert_eq!(lasting("", date), "");
    assert_eq!([rounded("3599"), rounded("3601")], ["3600", "3600"]);
}
