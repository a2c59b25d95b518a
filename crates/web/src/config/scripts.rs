//! Scripts that a site names as files, where scripts are run and never sent; pure.

use super::{Config, Misconfigured};
use crate::proxy::is_script;
use crate::static_site::{LocationConfig, StaticConfig};
use sooner_http::forwarding::routes::{HostPattern, Routes};
use sooner_http::path_pattern::{self, PathPattern};
use std::collections::BTreeMap;
use toml::Spanned;

impl Config {
    /// All scripts of sites that would be neither run nor sent, whatever is on the disk.
    pub(super) fn misplaced_scripts(&self) -> Vec<Misconfigured> {
        let upstreams = self.upstream.iter();
        let runs: Vec<&String> = upstreams
            .filter(|upstream| upstream.fastcgi.is_some())
            .map(|upstream| upstream.name.get_ref())
            .collect();
        if runs.is_empty() {
            return Vec::new();
        }
        let mut routes = Routes::default();
        for route in &self.route {
            if runs.contains(&route.upstream.get_ref()) {
                // Two of one path lead to scripts as one does.
                _ = routes.add(HostPattern::Any, route.path.get_ref(), ());
            }
        }
        let sites = self.site.iter();
        sites.flat_map(|site| of_site(site, &routes)).collect()
    }
}

fn of_site(site: &StaticConfig, routes: &Routes<()>) -> Vec<Misconfigured> {
    let mut mistakes = of_pages("site.errors", &site.errors);
    let fallback = site.fallback.as_ref();
    if let Some(fallback) = fallback.filter(|it| !is_run(it.get_ref(), routes)) {
        mistakes.push(not_run("site.fallback", fallback));
    }
    for location in &site.location {
        let errors = location.errors.iter();
        mistakes.extend(errors.flat_map(|errors| of_pages("site.location.errors", errors)));
        if let Some(fallback) = &location.fallback
            && !is_run_of(location, fallback.get_ref(), site, routes)
        {
            mistakes.push(not_run("site.location.fallback", fallback));
        }
    }
    mistakes
}

/// An error has a page, which is sent with its status: a script would have its own.
fn of_pages(key: &str, pages: &BTreeMap<String, Spanned<String>>) -> Vec<Misconfigured> {
    let scripts = pages.iter().filter(|(_, page)| is_named(page.get_ref()));
    let mistake = |(status, page): (&String, &Spanned<String>)| {
        let message =
            "is a script, and the page of an error is a file; name one, as in \"/404.html\"";
        Misconfigured::at(page, &format!("{key}.{status}"), message)
    };
    scripts.map(mistake).collect()
}

fn not_run(key: &str, fallback: &Spanned<String>) -> Misconfigured {
    let message = "is a script, and no route takes this path to an upstream that runs scripts; add such a [[route]], or name a file";
    Misconfigured::at(fallback, key, message)
}

/// Whether a path is that of a script, as it stands in a request.
fn is_named(path: &str) -> bool {
    is_script(&path_pattern::plain(path))
}

/// Whether a fallback is no script, or may be run.
fn is_run(fallback: &str, routes: &Routes<()>) -> bool {
    !is_named(fallback) || routes.find(None, fallback).is_some()
}

/// The same for a location: where it has a directory of its own it takes no routes, and its script
/// is that of another location, if of any.
fn is_run_of(
    location: &LocationConfig,
    fallback: &str,
    site: &StaticConfig,
    routes: &Routes<()>,
) -> bool {
    let prefix = location
        .strip_prefix
        .as_ref()
        .map_or("", |own| own.get_ref());
    let asked = format!("{}{fallback}", prefix.trim_end_matches('/'));
    let path = path_pattern::plain(&asked);
    let fits = |other: &&LocationConfig| {
        let takes_routes = other.root.is_none() && other.status.is_none();
        let texts = other.paths.get_ref().iter().map(|path| path.get_ref());
        let mut patterns =
            texts.filter_map(|text| PathPattern::parse(text, other.ignore_case).ok());
        takes_routes && patterns.any(|pattern| pattern.fits(&path))
    };
    let takes_routes = location.root.is_none() || site.location.iter().any(|other| fits(&other));
    !is_named(fallback) || (takes_routes && is_run(&asked, routes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHP: &str = "
        [[upstream]]
        name = 'php'
        servers = ['fastcgi://127.0.0.1:9000']
        fastcgi = { root = '/' }
        [[upstream]]
        name = 'app'
        servers = ['http://127.0.0.1:9001']
    ";

    #[test]
    fn a_script_that_is_never_run_is_a_mistake() {
        for (site, path, upstream, key) in [
            ("fallback = '/index.php'", "/", "php", None),
            ("fallback = '/a/index.php'", "/a", "php", None),
            ("fallback = '/index.html'", "/app", "php", None),
            ("index = ['index.php', 'index.html']", "/app", "php", None),
            ("fallback = '/index.php'", "/", "app", Some("site.fallback")),
            (
                "fallback = '/index.PHP'",
                "/app",
                "php",
                Some("site.fallback"),
            ),
            (
                "fallback = '/index.ph%70'",
                "/app",
                "php",
                Some("site.fallback"),
            ),
            (
                "errors = { 404 = '/404.php' }",
                "/",
                "php",
                Some("site.errors.404"),
            ),
            (
                "location = [{ paths = ['/a/*'], errors = { 404 = '/404.php' } }]",
                "/",
                "php",
                Some("site.location.errors.404"),
            ),
            (
                "location = [{ paths = ['/a/*'], fallback = '/a.php' }]",
                "/",
                "php",
                None,
            ),
            (
                "location = [{ paths = ['/a/*'], root = '/a', fallback = '/a.php' }]",
                "/",
                "php",
                Some("site.location.fallback"),
            ),
            (
                "location = [{ paths = ['/a.php'] }, { paths = ['/a/*'], root = '/a', fallback = '/a.php' }]",
                "/",
                "php",
                None,
            ),
        ] {
            let text = format!(
                "[[site]]\nroot = '/srv'\n{site}\n{PHP}[[route]]\npath = '{path}'\nupstream = '{upstream}'\n"
            );
            let config = Config::parse(&text).unwrap();
            let mistakes = config.misplaced_scripts();
            let found = mistakes.first().map(|mistake| mistake.key.as_str());
            assert_eq!(
                (found, mistakes.len()),
                (key, usize::from(key.is_some())),
                "{text}"
            );
            assert_eq!(config.check().is_err(), key.is_some());
            assert!(mistakes.iter().all(|mistake| mistake.span.is_some()));
        }
        // Without a server that runs it a script is a file as any other.
        let text = "[[site]]\nroot = '/srv'\nfallback = '/a.php'\n";
        assert!(Config::parse(text).unwrap().misplaced_scripts().is_empty());
    }
}
