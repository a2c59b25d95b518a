//! Pages for paths that lead to no file: nginx sends them with the headers of their own location.

use super::regex;
use super::site::{Body, Place};
use super::translate::Builder;
use sooner_http::path_pattern::{self, PathPattern};

impl Builder<'_, '_> {
    /// Gives each such page a place without a root, as only these stand in for it.
    pub fn last_pages(&mut self) {
        let bodies = self.site.places.iter().map(|own| &own.body);
        let pages: Vec<String> = [&self.site.body]
            .into_iter()
            .chain(bodies)
            .filter(|own| own.root == self.site.body.root && own.strip.is_none())
            .filter_map(|own| own.fallback.clone())
            .collect();
        for page in pages {
            self.last_page(&page);
        }
    }

    fn last_page(&mut self, page: &str) {
        let plain = path_pattern::plain(page);
        let fits = |own: &Place| {
            let mut patterns = own
                .paths
                .iter()
                .filter_map(|text| PathPattern::parse(text, own.ignores_case).ok());
            patterns.any(|pattern| pattern.fits(&plain))
        };
        let Some(at) = self.site.places.iter().position(fits) else {
            return;
        };
        let own = &self.site.places[at];
        let is_same = own.body.answer.is_none()
            && own.body.root.is_some()
            && own.body.root == self.site.body.root
            && own.body.strip.is_none()
            && own.body.redirects.is_empty()
            // It stands in for itself.
            && own.body.fallback.as_deref() != Some(page);
        let is_passed = self.site.routes.iter().any(|own| {
            let rest = page.strip_prefix(own.path.as_str());
            rest.is_some_and(|rest| own.path.ends_with('/') || rest.starts_with(['/']))
        });
        if !is_same || is_passed {
            return;
        }
        let paths = vec![regex::escaped(page)];
        let body = Body {
            root: None,
            fallback: self.site.body.fallback.clone(),
            index: self.site.body.index.clone(),
            is_listed: self.site.body.is_listed,
            ..own.body.clone()
        };
        if own.paths == paths {
            self.site.places[at].body = body;
        } else {
            let place = Place {
                paths,
                ignores_case: false,
                body,
            };
            self.site.places.insert(at, place);
        }
    }
}
