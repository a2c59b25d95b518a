//! Which certificate is for which name: exact names first, then those with a star for the first
//! label (RFC 6125, 6.4.3).

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::sync::Arc;

/// Values by host name.
#[derive(Debug)]
pub struct Names<T> {
    exact: HashMap<String, T>,
    /// By what comes after the `*.`.
    wildcard: HashMap<String, T>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self {
            exact: HashMap::new(),
            wildcard: HashMap::new(),
        }
    }
}

impl<T> Names<T> {
    /// Gives `name`, in lower case, a value; returns the one it had.
    pub fn insert(&mut self, name: &str, value: T) -> Option<T> {
        match name.strip_prefix("*.") {
            Some(parent) => self.wildcard.insert(parent.to_owned(), value),
            None => self.exact.insert(name.to_owned(), value),
        }
    }

    /// The value for the host `name`, in any case; a star stands for exactly one label.
    pub fn find(&self, name: &str) -> Option<&T> {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let parent = || name.split_once('.').map(|(_, parent)| parent);
        self.exact
            .get(&name)
            .or_else(|| self.wildcard.get(parent()?))
    }
}

/// Chooses the certificate by the name in the client's hello (SNI).
#[derive(Debug)]
pub struct ByName {
    /// Certificates by name.
    pub names: Names<Arc<CertifiedKey>>,
    /// For clients that ask for no name, or for an unknown one: they learn at once whom they talk
    /// to.
    pub default: Arc<CertifiedKey>,
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let named = hello
            .server_name()
            .and_then(|name| self.names.find(name))
            .unwrap_or(&self.default);
        Some(named.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Names<u32> {
        let mut names = Names::default();
        assert_eq!(names.insert("example.org", 1), None);
        assert_eq!(names.insert("*.example.org", 2), None);
        assert_eq!(names.insert("www.example.org", 3), None);
        names
    }

    #[test]
    fn an_exact_name_goes_before_a_star() {
        let names = example();
        for (name, value) in [
            ("example.org", Some(&1)),
            ("EXAMPLE.org.", Some(&1)),
            ("www.example.org", Some(&3)),
            ("api.example.org", Some(&2)),
            ("API.Example.Org", Some(&2)),
            ("a.b.example.org", None),
            ("org", None),
            ("", None),
            ("*.example.org", Some(&2)),
        ] {
            assert_eq!(names.find(name), value, "{name}");
        }
    }

    #[test]
    fn a_name_has_one_value() {
        let mut names = example();
        assert_eq!(names.insert("*.example.org", 4), Some(2));
        assert_eq!(names.insert("example.org", 5), Some(1));
    }
}
