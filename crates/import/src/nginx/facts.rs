//! What is known of the requests of a site, and which conditions that decides.

use super::conditions::Condition;

/// Stands for all hosts that no site names.
pub const UNKNOWN: &str = "unknown-host.invalid";

/// What all requests of a site have alike.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The scheme, if it is one.
    pub scheme: Option<&'static str>,
    /// The hosts.
    pub hosts: Vec<String>,
    /// Whether hosts that no site names get here.
    pub is_default: bool,
}

impl Facts {
    /// Whether a condition holds for all of them, or for none; `None` where that is not known.
    pub fn holds(&self, condition: &Condition) -> Option<bool> {
        if let Some(is_clear_text) = condition.by_scheme() {
            return Some((self.scheme? == "http") == is_clear_text);
        }
        let unknown = self.is_default.then_some(UNKNOWN);
        let hosts = self.hosts.iter().map(String::as_str).chain(unknown);
        let mut all = hosts.map(|host| condition.host(host));
        let first = all.next()??;
        all.all(|own| own == Some(first)).then_some(first)
    }
}
