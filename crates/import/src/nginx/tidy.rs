//! What is left out of a site because it says nothing, and questions about paths with stars.

use super::globals::deep;
use super::returns::Redirect;
use super::scope::Scope;
use super::translate::Builder;
use super::tree::Directive;

impl Builder<'_, '_> {
    /// Whether links are followed is said of a site: as soon as one place follows none.
    pub fn links(&mut self) {
        let server = self.server.clone();
        let is_on = |own: &Directive| own.first() != "off";
        let outer = server.one("disable_symlinks");
        let mut said: Vec<Directive> = Vec::new();
        let mut inner = Vec::new();
        for location in server.own().iter().filter(|own| own.name == "location") {
            deep(location.inside(), "disable_symlinks", &mut |own| {
                inner.push(own)
            });
        }
        let is_all = outer.is_some_and(is_on);
        self.site.has_no_links = is_all || inner.iter().any(|own| is_on(own));
        // What is not the same everywhere, or depends on the owner.
        said.extend(
            inner
                .iter()
                .filter(|own| is_on(own) != is_all)
                .map(|own| (*own).clone()),
        );
        let by_owner = outer.into_iter().chain(inner);
        said.extend(
            by_owner
                .filter(|own| own.first() == "if_not_owner")
                .cloned(),
        );
        for own in said {
            let why = "of a site all links are refused, or those that lead out of the root";
            self.actions.leave_out(&own, why);
        }
    }

    /// Leaves out what says nothing: a place that is as its site, with nothing behind it that would
    /// have come before.
    pub fn tidy(&mut self) {
        let redirects: Vec<Redirect> = std::mem::take(&mut self.site.body.redirects);
        let mut kept: Vec<Redirect> = Vec::new();
        for redirect in redirects {
            let is_covered = kept.iter().any(|own| {
                let prefix = own.from.strip_suffix('*');
                own.from == redirect.from
                    || prefix.is_some_and(|prefix| redirect.from.starts_with(prefix))
            });
            if !is_covered {
                kept.push(redirect);
            }
        }
        self.site.body.redirects = kept;
        let has_redirects = !self.site.body.redirects.is_empty();
        let has_routes = !self.site.routes.is_empty();
        let mut at = self.site.places.len();
        while at > 0 {
            at -= 1;
            let place = &self.site.places[at];
            let later = &self.site.places[at + 1..];
            let has_later = later
                .iter()
                .any(|other| may_meet(&place.paths, &other.paths));
            let body = &place.body;
            let is_plain_pass =
                body.root.is_none() && body.answer.is_none() && body.redirects.is_empty();
            let is_as_site = if is_plain_pass {
                body.headers == self.site.body.headers && body.errors == self.site.body.errors
            } else {
                !has_routes && *body == self.site.body
            };
            if is_as_site && !has_later && !has_redirects {
                self.site.places.remove(at);
            }
        }
    }
}

/// Whether a path may be in both.
pub fn may_meet(paths: &[String], others: &[String]) -> bool {
    let is_apart = |one: &String, other: &String| {
        let beginning = |text: &str| text.split('*').next().unwrap_or_default().to_owned();
        let (one, other) = (beginning(one), beginning(other));
        !one.starts_with(&other) && !other.starts_with(&one)
    };
    let mut pairs = paths
        .iter()
        .flat_map(|one| others.iter().map(move |other| (one, other)));
    pairs.any(|(one, other)| !is_apart(one, other))
}

/// Whether a path may end here: `/api` and `/api/`, and not `/img-`.
pub fn ends_a_segment(path: &str) -> bool {
    path.ends_with(|last: char| last == '/' || last.is_ascii_alphanumeric())
}

/// The compressed files that are sent in place of others.
pub fn precompressed(scope: &Scope<'_>) -> Vec<&'static str> {
    fn is_on(level: &[Directive], name: &str) -> bool {
        level.iter().any(|own| {
            let is_own = own.name == name && matches!(own.first(), "on" | "always");
            is_own || (own.name == "location" && is_on(own.inside(), name))
        })
    }
    let is_said = |name: &str| {
        let outer = scope.one(name).filter(|own| own.first() != "off");
        outer.is_some() || is_on(scope.own(), name)
    };
    let codings = [("brotli_static", "br"), ("gzip_static", "gzip")];
    codings
        .into_iter()
        .filter(|(name, _)| is_said(name))
        .map(|(_, coding)| coding)
        .collect()
}
