//! A site as it will be written: what holds for it, and its locations.

use super::expiry::{self, Rule};
use super::passwords::{self, Table};
use super::returns::Redirect;
use super::upstreams::Upstream;
use crate::document::{Document, Group, quoted};
use std::collections::BTreeMap;

const GROUP: Group = Group::Site;

/// What a site and a location of it have alike.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body {
    /// The status and text of every answer.
    pub answer: Option<(u16, Option<String>)>,
    /// The directory.
    pub root: Option<String>,
    /// What paths begin with that is not there in the directory.
    pub strip: Option<String>,
    /// Files that stand for their directory.
    pub index: Vec<String>,
    /// Whether directories are listed.
    pub is_listed: bool,
    /// The file for paths that lead to none.
    pub fallback: Option<String>,
    /// Headers of every answer.
    pub headers: BTreeMap<String, String>,
    /// Pages for errors.
    pub errors: BTreeMap<u16, String>,
    /// Redirects.
    pub redirects: Vec<Redirect>,
}

/// A location.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Its paths.
    pub paths: Vec<String>,
    /// Whether capitals make no difference in them.
    pub ignores_case: bool,
    /// What holds there. Without answer and root it is as the site, and routes come first.
    pub body: Body,
}

/// Requests that go to an upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// The beginning of their paths.
    pub path: String,
    /// Where to.
    pub upstream: Upstream,
    /// Whether the upstream gets the path without the route's.
    pub strips: bool,
    /// Whether files of the site come first.
    pub files_first: bool,
    /// How long the upstream may take, s.
    pub seconds: Option<f64>,
    /// Whether its answers are compressed, where that is not as the site has it.
    pub compress: Option<bool>,
}

/// A site.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// Where it comes from.
    pub origin: String,
    /// Names.
    pub hosts: Vec<String>,
    /// The requests that it is for.
    pub scheme: Option<&'static str>,
    /// What holds for it.
    pub body: Body,
    /// Compressed files beside files.
    pub precompressed: Vec<&'static str>,
    /// Whether no symbolic links are followed.
    pub has_no_links: bool,
    /// Whether answers are compressed, where that is not as all sites have it.
    pub compress: Option<bool>,
    /// Who needs a password.
    pub auth: Vec<Table>,
    /// How long clients may keep answers.
    pub expires: Vec<Rule>,
    /// Locations, the first that fits.
    pub places: Vec<Place>,
    /// Routes.
    pub routes: Vec<Route>,
    /// What is said of it beside that.
    pub notes: Vec<&'static str>,
    /// What is not carried over, and why.
    pub left_out: Vec<(String, String)>,
    /// Whether hosts that no site names get it.
    pub is_default: bool,
}

impl Body {
    /// The same without files of its own.
    pub fn without_files(self) -> Self {
        Self {
            root: None,
            strip: None,
            fallback: None,
            answer: None,
            ..self
        }
    }

    /// The same; without a directory there is nothing.
    pub fn with_own_root(self) -> Self {
        match self.root {
            Some(_) => self,
            None => Self {
                answer: Some((404, None)),
                ..self
            },
        }
    }
}

/// A place that answers the same to all.
pub fn refusing(paths: Vec<String>, ignores_case: bool, status: u16) -> Place {
    Place {
        paths,
        ignores_case,
        body: Body {
            answer: Some((status, None)),
            ..Body::default()
        },
    }
}

impl Site {
    /// Writes it.
    pub fn write(&self, document: &mut Document) {
        document.gap(GROUP);
        document.comment(GROUP, &self.origin);
        for (setting, why) in &self.left_out {
            document.leave_out(GROUP, setting, why);
        }
        for note in &self.notes {
            document.comment(GROUP, note);
        }
        document.table(GROUP, "[[site]]");
        if !self.hosts.is_empty() {
            document.list(GROUP, "hosts", &self.hosts);
        }
        if let Some(scheme) = self.scheme {
            document.text(GROUP, "scheme", scheme);
        }
        let plain = Body {
            index: vec!["index.html".into()],
            ..Body::default()
        };
        write_body(document, &self.body, &plain);
        if !self.precompressed.is_empty() {
            let codings: Vec<String> = self.precompressed.iter().map(|own| (*own).into()).collect();
            document.list(GROUP, "precompressed", &codings);
        }
        if self.has_no_links {
            document.text(GROUP, "symlinks", "none");
        }
        if let Some(is_on) = self.compress {
            document.value(GROUP, "compress", is_on);
        }
        write_redirects(document, "site.redirect", &self.body.redirects);
        passwords::write(&self.auth, document);
        expiry::write(&self.expires, document);
        for place in &self.places {
            document.gap(GROUP);
            document.table(GROUP, "[[site.location]]");
            document.list(GROUP, "paths", &place.paths);
            if place.ignores_case {
                document.value(GROUP, "ignore_case", true);
            }
            let mut inherited = self.body.clone();
            inherited.root = None;
            if place.body.root.is_some() {
                inherited.fallback = None;
            }
            write_body(document, &place.body, &inherited);
            write_redirects(document, "site.location.redirect", &place.body.redirects);
        }
    }
}

fn write_body(document: &mut Document, body: &Body, inherited: &Body) {
    if let Some((status, text)) = &body.answer {
        document.value(GROUP, "status", status);
        if let Some(text) = text {
            document.text(GROUP, "text", text);
        }
    }
    if let Some(root) = &body.root {
        document.text(GROUP, "root", root);
    }
    if let Some(strip) = &body.strip {
        document.text(GROUP, "strip_prefix", strip);
    }
    let has_files = body.answer.is_none();
    if has_files && body.index != inherited.index {
        document.list(GROUP, "index", &body.index);
    }
    if has_files && body.is_listed != inherited.is_listed {
        document.text(
            GROUP,
            "listing",
            if body.is_listed { "html" } else { "off" },
        );
    }
    if let Some(fallback) = body
        .fallback
        .as_ref()
        .filter(|_| body.fallback != inherited.fallback)
    {
        document.text(GROUP, "fallback", fallback);
    }
    if body.headers != inherited.headers {
        let pairs = body.headers.iter();
        let pairs: Vec<String> = pairs
            .map(|(name, value)| format!("{} = {}", key(name), quoted(value)))
            .collect();
        document.value(GROUP, "headers", table(&pairs));
    }
    if body.errors != inherited.errors {
        let pairs = body.errors.iter();
        let pairs: Vec<String> = pairs
            .map(|(status, path)| format!("{status} = {}", quoted(path)))
            .collect();
        document.value(GROUP, "errors", table(&pairs));
    }
}

/// A name as TOML has it, without quotes where it needs none.
pub fn key(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !name.is_empty() && name.bytes().all(is_bare) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

/// A table in one line.
pub fn table(pairs: &[String]) -> String {
    if pairs.is_empty() {
        return "{}".into();
    }
    format!("{{ {} }}", pairs.join(", "))
}

fn write_redirects(document: &mut Document, table: &str, redirects: &[Redirect]) {
    for redirect in redirects {
        document.gap(GROUP);
        document.table(GROUP, &format!("[[{table}]]"));
        document.text(GROUP, "from", &redirect.from);
        document.text(GROUP, "to", &redirect.to);
        document.value(GROUP, "status", redirect.status);
    }
}
