//! The table `[[site]]` of the configuration.

use super::listing::Listing;
use super::location::LocationConfig;
use crate::auth::AuthConfig;
use crate::files::{ExpiresConfig, Symlinks};
use serde::Deserialize;
use sooner_http::negotiation::Coding;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Spanned;

/// One site: what it serves from the disk, and how.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StaticConfig {
    /// The names that clients request it by: `example.org`, `*.example.org` for all names below it.
    /// The first site answers to all others too.
    pub hosts: Vec<Spanned<String>>,
    /// Which requests it answers, those in clear text or those over TLS; without it both.
    pub scheme: Option<Scheme>,
    /// The directory all its files are below; without it there are none, only redirects and routes.
    pub root: Option<Spanned<PathBuf>>,
    /// The files that stand for their directory; the first that exists does.
    pub index: Vec<Spanned<String>>,
    /// What a directory without such a file shows.
    pub listing: Listing,
    /// The file for paths that lead to none: the page of an application that reads the path itself.
    pub fallback: Option<Spanned<String>>,
    /// Whether names that begin with a dot are served.
    pub dot_files: bool,
    /// Which symbolic links are followed.
    pub symlinks: Symlinks,
    /// Which compressed files beside a file are sent instead of it, the best liked first.
    pub precompressed: Vec<Spanned<Coding>>,
    /// Whether responses are compressed on their way; default: what `compress` says for all.
    pub compress: Option<bool>,
    /// Headers of every answer.
    pub headers: BTreeMap<String, Spanned<String>>,
    /// Pages for errors: from the status to the path of a file.
    pub errors: BTreeMap<String, Spanned<String>>,
    /// Redirects, the first that fits.
    pub redirect: Vec<RedirectConfig>,
    /// Which paths are for the users of which file.
    pub auth: Vec<AuthConfig>,
    /// How long clients may keep which answers, the first that fits.
    pub expires: Vec<ExpiresConfig>,
    /// Paths that are answered otherwise, the first that fits.
    pub location: Vec<LocationConfig>,
}

/// How a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// In clear text.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Http, Self::Https];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// One redirect.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedirectConfig {
    /// A path, or with a star at the end all that begin with it.
    pub from: Spanned<String>,
    /// A path or a URL; `$1` is what the star stood for, `$host` the host of the request.
    pub to: Spanned<String>,
    /// 301, 302, 307 or 308.
    #[serde(default = "for_now")]
    pub status: Spanned<u16>,
}

/// A browser keeps a 301 for as long as it likes; a mistake in a 302 can be corrected.
fn for_now() -> Spanned<u16> {
    Spanned::new(0..0, 302)
}

impl Default for StaticConfig {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            scheme: None,
            root: None,
            index: vec![Spanned::new(0..0, "index.html".to_owned())],
            listing: Listing::default(),
            fallback: None,
            dot_files: false,
            symlinks: Symlinks::default(),
            precompressed: Vec::new(),
            compress: None,
            headers: BTreeMap::new(),
            errors: BTreeMap::new(),
            redirect: Vec::new(),
            auth: Vec::new(),
            expires: Vec::new(),
            location: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_manual_shows() {
        let config: StaticConfig = toml::from_str(
            r#"
            hosts = ["example.org", "*.example.org"]
            root = "/srv/www"
            index = ["index.html", "index.htm"]
            listing = "auto"
            fallback = "/index.html"
            dot_files = true
            symlinks = "none"
            precompressed = ["zstd", "br", "gzip"]
            compress = true
            headers = { X-Frame-Options = "DENY" }
            errors = { 404 = "/404.html" }
            scheme = "https"
            [[redirect]]
            from = "/old/*"
            to = "/new/$1"
            status = 301
            [[redirect]]
            from = "/a"
            to = "/b"
            [[expires]]
            path = "/assets"
            extensions = ["css", "js"]
            types = ["image/*"]
            after = "1y"
            immutable = true
            proxied = true
            [[expires]]
            after = "off"
            [[auth]]
            path = "/staff"
            file = "users"
            realm = "Staff"
            [[auth]]
            file = "off"
            [[location]]
            paths = ["/static/*", "*.css"]
            ignore_case = true
            root = "/srv/static"
            strip_prefix = "/static/"
            index = []
            listing = "html"
            fallback = "/a.html"
            headers = { Cache-Control = "max-age=60" }
            errors = { 404 = "/404.html" }
            [[location.redirect]]
            from = "/static/a"
            to = "/b"
            [[location]]
            paths = ["/health"]
            status = 200
            text = "ok"
            "#,
        )
        .unwrap();
        assert_eq!(config.listing, Listing::Auto);
        assert_eq!(config.symlinks, Symlinks::None);
        assert_eq!(*config.precompressed[2].get_ref(), Coding::Gzip);
        assert_eq!(config.compress, Some(true));
        assert_eq!(config.errors["404"].get_ref(), "/404.html");
        assert_eq!(*config.redirect[1].status.get_ref(), 302);
        assert!(config.expires[0].proxied && !config.expires[1].proxied);
        assert!(config.auth[0].realm.is_some() && config.auth[1].path.is_none());
        assert_eq!(config.scheme, Some(Scheme::Https));
        assert_eq!(config.location[0].redirect.len(), 1);
        let nothing: StaticConfig = toml::from_str("").unwrap();
        assert_eq!(nothing.index[0].get_ref(), "index.html");
        assert!(!nothing.dot_files && nothing.precompressed.is_empty());
        for wrong in [
            "listing = \"yes\"",
            "precompressed = [\"deflate\"]",
            "symlinks = true",
            "roots = \"/\"",
        ] {
            assert!(toml::from_str::<StaticConfig>(wrong).is_err(), "{wrong}");
        }
    }
}
