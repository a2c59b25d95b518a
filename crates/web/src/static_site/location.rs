//! Locations: paths of a site that are answered otherwise than the rest of it.
//!
//! A location is a site of its own, made of its site and of what it says itself. It is chosen
//! before redirects, routes and files are looked for.

use super::StaticSite;
use super::build::{self, SharedFiles};
use super::config::{RedirectConfig, StaticConfig};
use super::listing::Listing;
use crate::config::Misconfigured;
use hyper::StatusCode;
use serde::Deserialize;
use sooner_http::path_pattern::{PathPattern, PathPatternError};
use sooner_http::target::{self, DotFiles};
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Spanned;

/// One location of a site. What it does not say is as the site has it, but for redirects.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocationConfig {
    /// The paths: `/a` is that one, `/a/*` all that begin so, `*.php` all that end so.
    pub paths: Spanned<Vec<Spanned<String>>>,
    /// Whether capitals make no difference in `paths`.
    #[serde(default)]
    pub ignore_case: bool,
    /// The status of every answer; nothing is looked for then.
    pub status: Option<Spanned<u16>>,
    /// The text of that answer.
    pub text: Option<Spanned<String>>,
    /// The directory its files are below; no route is taken then.
    pub root: Option<Spanned<PathBuf>>,
    /// The beginning of its paths that is not there below the directory.
    pub strip_prefix: Option<Spanned<String>>,
    /// In place of the site's.
    pub index: Option<Vec<Spanned<String>>>,
    /// In place of the site's.
    pub listing: Option<Listing>,
    /// In place of the site's, which does not hold for another directory.
    pub fallback: Option<Spanned<String>>,
    /// In place of the site's.
    pub headers: Option<BTreeMap<String, Spanned<String>>>,
    /// In place of the site's.
    pub errors: Option<BTreeMap<String, Spanned<String>>>,
    /// Redirects, the first that fits; those of the site do not hold here.
    #[serde(default)]
    pub redirect: Vec<RedirectConfig>,
}

/// What every request for a location gets.
#[derive(Debug, Clone)]
pub struct FixedAnswer {
    /// Its status.
    pub status: StatusCode,
    /// Its text; without one a line that names the status.
    pub text: Option<Box<str>>,
}

impl LocationConfig {
    /// The patterns, and the site behind them.
    pub fn build(
        &self,
        site: &StaticConfig,
        shared: &SharedFiles,
    ) -> Result<(Vec<PathPattern>, StaticSite), Misconfigured> {
        let patterns = self.patterns()?;
        let answer = self.answer()?;
        let mount = self.mount()?;
        let mut built = StaticSite::mounted(&self.as_site(site), shared, &mount)
            .map_err(|mistake| of_location(self, mistake))?;
        built.takes_routes = self.root.is_none() && answer.is_none();
        built.answer = answer;
        Ok((patterns, built))
    }

    /// Whether it could be built, but for what lies in its directory.
    pub fn check(&self, site: &StaticConfig) -> Result<(), Misconfigured> {
        self.patterns()?;
        self.answer()?;
        self.mount()?;
        build::check(&self.as_site(site)).map_err(|mistake| of_location(self, mistake))
    }

    fn patterns(&self) -> Result<Vec<PathPattern>, Misconfigured> {
        if self.paths.get_ref().is_empty() {
            let key = "site.location.paths";
            let message = "an empty list is about no path; name some, as in \"/static/*\", or remove the location";
            return Err(Misconfigured::at(&self.paths, key, message));
        }
        let parse = |path: &Spanned<String>| {
            PathPattern::parse(path.get_ref(), self.ignore_case).map_err(
                |error: PathPatternError| {
                    let message = format!("{:?} {error}", path.get_ref());
                    Misconfigured::at(path, "site.location.paths", message)
                },
            )
        };
        self.paths.get_ref().iter().map(parse).collect()
    }

    fn answer(&self) -> Result<Option<FixedAnswer>, Misconfigured> {
        let key = "site.location.status";
        let Some(status) = &self.status else {
            return match &self.text {
                Some(text) => Err(Misconfigured::at(
                    text,
                    "site.location.text",
                    "goes with a status; add status = 200",
                )),
                None => Ok(None),
            };
        };
        if let Some(root) = &self.root {
            let message = "nothing is looked for where there is a status; remove one of the two";
            return Err(Misconfigured::at(root, "site.location.root", message));
        }
        let is_answer = |number: &u16| matches!(number, 200 | 204 | 400..=599);
        let answer = Some(*status.get_ref()).filter(is_answer);
        let answer = answer.and_then(|number| StatusCode::from_u16(number).ok());
        let message = "is 200, 204 or 400 to 599; for others write [[site.location.redirect]]";
        Ok(Some(FixedAnswer {
            status: answer.ok_or_else(|| Misconfigured::at(status, key, message))?,
            text: self
                .text
                .as_ref()
                .map(|text| text.get_ref().as_str().into()),
        }))
    }

    fn mount(&self) -> Result<Box<[u8]>, Misconfigured> {
        let Some(prefix) = &self.strip_prefix else {
            return Ok(Box::default());
        };
        let key = "site.location.strip_prefix";
        if self.root.is_none() {
            let message = "needs a root: the directory that does not have it";
            return Err(Misconfigured::at(prefix, key, message));
        }
        let parsed = target::parse(prefix.get_ref(), DotFiles::Served);
        let parsed = parsed.map_err(|error| Misconfigured::at(prefix, key, error))?;
        Ok(parsed.path.into())
    }

    fn as_site(&self, site: &StaticConfig) -> StaticConfig {
        let mut own = StaticConfig {
            hosts: Vec::new(),
            redirect: self.redirect.clone(),
            location: Vec::new(),
            ..site.clone()
        };
        if let Some(root) = &self.root {
            own.root = Some(root.clone());
            own.fallback = None;
        }
        if self.fallback.is_some() {
            own.fallback.clone_from(&self.fallback);
        }
        if let Some(index) = &self.index {
            own.index.clone_from(index);
        }
        if let Some(listing) = self.listing {
            own.listing = listing;
        }
        if let Some(headers) = &self.headers {
            own.headers.clone_from(headers);
        }
        if let Some(errors) = &self.errors {
            own.errors.clone_from(errors);
        }
        own
    }
}

/// A mistake with the key as it was written. What the location takes over from its site has been
/// looked at there.
fn of_location(location: &LocationConfig, mut mistake: Misconfigured) -> Misconfigured {
    if let Some(key) = mistake.key.strip_prefix("site.") {
        mistake.key = format!("site.location.{key}");
    }
    if mistake.span.is_none()
        && let Some(path) = location.paths.get_ref().first()
    {
        mistake.span = Some(path.span());
    }
    mistake
}
