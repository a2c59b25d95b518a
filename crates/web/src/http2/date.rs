//! The Date field, written once a second.

use hyper::header::HeaderValue;
use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

thread_local! {
    static WRITTEN: RefCell<Option<(u64, HeaderValue)>> = const { RefCell::new(None) };
}

/// The present time as HTTP writes it (RFC 9110, 5.6.7).
pub fn date_now() -> HeaderValue {
    let now = SystemTime::now();
    let since_1970 = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    WRITTEN.with_borrow_mut(|written| match written {
        Some((second, date)) if *second == since_1970.as_secs() => date.clone(),
        stale => {
            let date = HeaderValue::from_str(&httpdate::fmt_http_date(now))
                .unwrap_or(HeaderValue::from_static(""));
            *stale = Some((since_1970.as_secs(), date.clone()));
            date
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_a_date() {
        let date = date_now();
        let read = httpdate::parse_http_date(date.to_str().unwrap()).unwrap();
        let age = SystemTime::now().duration_since(read).unwrap();
        assert!(age.as_secs() < 60);
    }
}
