//! The conditions of `if`.

use super::returns::literal_beginning;
use super::tree::Directive;

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
        let value = self.value.to_ascii_lowercase();
        match self.operator.as_str() {
            "=" => Some(value == host),
            "!=" => Some(value != host),
            "~" | "~*" => {
                let (text, tail) = literal_beginning(&value)?;
                match tail {
                    "$" => Some(host == text),
                    "" | ".*" | ".*$" | "(.*)" | "(.*)$" | "(.+)$" => Some(host.starts_with(&text)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether it holds for all requests in clear text and for no others.
    pub fn is_clear_text(&self) -> bool {
        let value = self.value.trim_matches('"');
        match (self.subject.as_str(), self.operator.as_str()) {
            ("$scheme", "=") => value == "http",
            ("$scheme", "!=") => value == "https",
            ("$https", "=") => value.is_empty(),
            ("$https", "!=") => value == "on",
            ("$server_port", "=") => value == "80",
            _ => false,
        }
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
        let is_of_target = matches!(
            subject,
            "$args"
                | "$query_string"
                | "$request_uri"
                | "$uri"
                | "$document_uri"
                | "$request_filename"
        );
        let tests_files = subject.starts_with('-') || subject.starts_with("!-");
        is_free || tests_files || (is_of_target && !self.operator.starts_with('!'))
    }
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
        assert!(of("if ($scheme = http)").is_clear_text());
        assert!(of("if ($scheme != \"https\")").is_clear_text());
        assert!(of("if ($http_user_agent ~* bot)").guards_nothing());
        assert!(of("if (!-f $request_filename)").guards_nothing());
        assert!(!of("if ($http_x_key != secret)").guards_nothing());
        assert!(!of("if ($args !~ token)").guards_nothing());
        assert!(!of("if ($remote_addr != 1.2.3.4)").guards_nothing());
    }
}
