//! The conditions of `if`.

use super::regex;
use super::returns::literal_beginning;
use super::tree::Directive;
use sooner_http::path_pattern::PathPattern;

/// The condition of an `if`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// A variable with its `$`, or a test of files like `!-f`.
    pub subject: String,
    /// `=`, `!=`, `~`, ... or nothing.
    pub operator: String,
    /// What it is compared with.
    pub value: String,
}

impl Condition {
    /// Reads one; without sense it is one of which nothing is known.
    pub fn of(directive: &Directive) -> Self {
        let text = directive.args.join(" ");
        let text = text.trim();
        let text = text.strip_prefix('(').unwrap_or(text);
        let text = text.strip_suffix(')').unwrap_or(text).trim();
        let (subject, rest) = text.split_once(' ').unwrap_or((text, ""));
        let rest = rest.trim();
        let (operator, value) = if subject.starts_with('$') {
            rest.split_once(' ').unwrap_or((rest, ""))
        } else {
            ("", rest)
        };
        Self {
            subject: subject.to_owned(),
            operator: operator.to_owned(),
            value: value.trim().to_owned(),
        }
    }

    /// Whether it is about the host alone, and this one fulfills it.
    pub fn host(&self, host: &str) -> Option<bool> {
        if !matches!(self.subject.as_str(), "$host" | "$http_host") {
            return None;
        }
        let value = self.value.trim_matches('"').to_ascii_lowercase();
        if self.subject == "$http_host" && value.contains(':') {
            // Sites are told apart without the port.
            return None;
        }
        let (operator, is_right) = match self.operator.strip_prefix('!') {
            Some(operator) => (operator, false),
            None => (self.operator.as_str(), true),
        };
        let fits = match operator {
            "=" => match host.strip_prefix('*') {
                Some(end) if value.ends_with(end) => None,
                _ => Some(value == host),
            },
            "~" | "~*" => fits(&value, host),
            _ => None,
        };
        fits.map(|fits| fits == is_right)
    }

    /// Whether it holds for all requests in clear text and for no others, or the other way round.
    pub fn by_scheme(&self) -> Option<bool> {
        let value = self.value.trim_matches('"');
        let is_equal = match self.operator.as_str() {
            "=" => true,
            "!=" => false,
            "" if self.subject == "$https" => return Some(false),
            _ => return None,
        };
        let is_clear_text = match (self.subject.as_str(), value) {
            ("$scheme", "http") | ("$server_port", "80") => true,
            ("$https" | "$ssl_protocol" | "$ssl_cipher", "") => true,
            ("$scheme", "https") | ("$https", "on") | ("$server_port", "443") => false,
            _ => return None,
        };
        Some(is_equal == is_clear_text)
    }

    /// Whether it holds where a value is another, or none.
    fn is_negative(&self) -> bool {
        let is_empty = self.operator == "=" && self.value.trim_matches('"').is_empty();
        self.operator.starts_with('!') || is_empty
    }

    /// Whether those who are led elsewhere by it have chosen that themselves.
    pub fn is_chosen(&self) -> bool {
        let subject = self.subject.as_str();
        let is_free = matches!(
            subject,
            "$http_accept"
                | "$http_accept_language"
                | "$http_accept_encoding"
                | "$http_upgrade"
                | "$http_cf_visitor"
        );
        let is_value = subject == "$http_cookie"
            || ["$arg_", "$cookie_"]
                .iter()
                .any(|begin| subject.starts_with(begin));
        let is_proxys = subject.starts_with("$http_x_forwarded_");
        self.guards_nothing() || is_free || is_proxys || (is_value && !self.is_negative())
    }

    /// Whether it is about what a request asks for.
    pub fn is_of_target(&self) -> bool {
        matches!(
            self.subject.as_str(),
            "$args"
                | "$query_string"
                | "$request_uri"
                | "$uri"
                | "$document_uri"
                | "$request_filename"
        )
    }

    /// Whether it only tells requests apart by what each client writes as it likes, so that it
    /// guards nothing.
    pub fn guards_nothing(&self) -> bool {
        let subject = self.subject.as_str();
        let is_free = matches!(
            subject,
            "$http_user_agent"
                | "$http_referer"
                | "$invalid_referer"
                | "$request_method"
                | "$host"
                | "$http_host"
                | "$scheme"
                | "$https"
                | "$server_port"
                | "$http_x_forwarded_proto"
        );
        let is_of_target = self.is_of_target();
        let tests_files = subject.starts_with('-') || subject.starts_with("!-");
        is_free || tests_files || (is_of_target && !self.operator.starts_with('!'))
    }
}

/// Whether a host fits an expression, as far as that can be said.
fn fits(expression: &str, host: &str) -> Option<bool> {
    if host.starts_with('*') {
        return None;
    }
    if let Some((text, tail)) = literal_beginning(expression) {
        match tail {
            "$" => return Some(host == text),
            "" | ".*" | ".*$" | "(.*)" | "(.*)$" => return Some(host.starts_with(&text)),
            ".+" | ".+$" | "(.+)" | "(.+)$" => {
                let rest = host.strip_prefix(&text);
                return Some(rest.is_some_and(|rest| !rest.is_empty()));
            }
            _ => {}
        }
    }
    let (begin, rest) = match expression.strip_prefix('^') {
        Some(rest) => ("^/", rest),
        None => ("", expression),
    };
    if rest.contains('^') {
        return None;
    }
    // Paths begin with a slash; a bare dot is meant as it is written.
    let paths = regex::paths(&format!("{begin}{}", with_dots(rest)))?;
    let host = format!("/{host}");
    let mut patterns = paths
        .texts
        .iter()
        .filter_map(|text| PathPattern::parse(text, true).ok());
    match patterns.any(|pattern| pattern.fits(host.as_bytes())) {
        false => Some(false),
        true => paths.is_exact.then_some(true),
    }
}

/// An expression of a host in which dots are dots, but for `.*` and the like.
fn with_dots(expression: &str) -> String {
    let mut own = String::with_capacity(expression.len());
    let mut letters = expression.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                own.push(letter);
                own.extend(letters.next());
            }
            '.' if !matches!(letters.peek(), Some('*' | '+' | '?' | '{')) => own.push_str("\\."),
            letter => own.push(letter),
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_about_hosts_schemes_or_clients() {
        let of = |text: &str| Condition::of(&Directive::of_words(text));
        assert_eq!(of("if ($host = a.org)").host("a.org"), Some(true));
        assert_eq!(of("if ($host != a.org)").host("a.org"), Some(false));
        assert_eq!(of("if ( $host ~* ^www\\. )").host("www.a.org"), Some(true));
        assert_eq!(of("if ($remote_addr = 1.2.3.4)").host("a.org"), None);
        assert_eq!(
            of("if ($host !~ ^(www\\.)?a.org$)").host("www.a.org"),
            Some(false)
        );
        assert_eq!(
            of("if ($host !~ ^(www\\.)?a.org$)").host("b.org"),
            Some(true)
        );
        assert_eq!(of("if ($host = x.a.org)").host("*.a.org"), None);
        assert_eq!(of("if ($host = b.org)").host("*.a.org"), Some(false));
        assert_eq!(of("if ($server_port != 443)").by_scheme(), Some(true));
        assert_eq!(of("if ($https)").by_scheme(), Some(false));
        assert_eq!(of("if ($scheme = http)").by_scheme(), Some(true));
        assert_eq!(of("if ($scheme != \"https\")").by_scheme(), Some(true));
        assert!(of("if ($http_user_agent ~* bot)").guards_nothing());
        assert!(of("if (!-f $request_filename)").guards_nothing());
        assert!(!of("if ($http_x_key != secret)").guards_nothing());
        assert!(!of("if ($args !~ token)").guards_nothing());
        assert!(!of("if ($remote_addr != 1.2.3.4)").guards_nothing());
    }
}
