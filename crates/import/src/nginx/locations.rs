//! `location` blocks, and which of them a path is in.

mod order;

use super::regex;
use super::scope::Scope;
use super::tree::Directive;
use crate::ini::ImportError;
use sooner_http::path_pattern::{self, PathPattern};

/// How a location says which paths it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `=`
    Exact,
    /// A beginning; with `^~` no expression is looked at.
    Prefix {
        /// `^~`
        is_firm: bool,
    },
    /// `~`, and `~*`.
    Expression {
        /// `~*`
        ignores_case: bool,
    },
    /// `@`
    Named,
}

/// One location.
#[derive(Clone, Debug)]
pub struct Location<'a> {
    /// Where it stands; the server itself for what is in no location.
    pub directive: &'a Directive,
    /// How it is found.
    pub kind: Kind,
    /// The path, expression or name.
    pub path: String,
    /// What holds there.
    pub scope: Scope<'a>,
    /// The beginning of its paths, if it is an expression in another location.
    pub within: Option<String>,
    /// The locations that it is in, the outermost first.
    pub enclosing: Vec<&'a Directive>,
}

/// The paths of a location as Sooner has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// With stars.
    pub texts: Vec<String>,
    /// Whether capitals make no difference.
    pub ignores_case: bool,
    /// Whether they are the very same paths, and not more.
    pub is_exact: bool,
}

impl Location<'_> {
    /// Its paths, unless nothing can be said of them.
    pub fn paths(&self) -> Option<Paths> {
        let (texts, ignores_case, is_exact) = match &self.kind {
            Kind::Exact => (vec![regex::escaped(&self.path)], false, true),
            Kind::Prefix { .. } => (
                vec![format!("{}*", regex::escaped(&self.path))],
                false,
                true,
            ),
            Kind::Expression { ignores_case } => {
                let mut paths = match self.scope.own_one("fastcgi_pass") {
                    // Fewer may be run than an unwritten backslash says.
                    Some(_) => regex::paths(&with_dots(&self.path))?,
                    None => regex::paths(&self.path)?,
                };
                if let Some(outer) = self.within.as_deref().map(regex::escaped) {
                    paths.texts = narrowed(&paths.texts, &outer)?;
                }
                (
                    paths.texts,
                    *ignores_case || paths.ignores_case,
                    paths.is_exact,
                )
            }
            Kind::Named => return None,
        };
        let is_pattern = |text: &String| PathPattern::parse(text, ignores_case).is_ok();
        texts.iter().all(is_pattern).then_some(Paths {
            texts,
            ignores_case,
            is_exact,
        })
    }

    /// Whether it is the one of all paths that are in no other.
    pub fn is_rest(&self) -> bool {
        matches!(self.kind, Kind::Prefix { .. }) && self.path == "/"
    }

    /// The expression that `$1` is a group of in its `return`, where no other one comes between.
    pub fn expression(&self) -> Option<&str> {
        let own = Kind::Expression {
            ignores_case: false,
        };
        let is_between = |own: &Directive| matches!(own.name.as_str(), "if" | "rewrite" | "set");
        (self.kind == own && !self.scope.own().iter().any(is_between)).then_some(self.path.as_str())
    }

    /// Whether a path may be in it.
    pub fn fits(&self, path: &str) -> bool {
        let plain = path_pattern::plain(path);
        self.paths().is_some_and(|paths| {
            let mut patterns = paths
                .texts
                .iter()
                .filter_map(|text| PathPattern::parse(text, paths.ignores_case).ok());
            patterns.any(|pattern| pattern.fits(&plain))
        })
    }
}

/// All locations of a server, the named ones apart.
pub fn collect<'a>(
    server: &'a Directive,
    scope: &Scope<'a>,
) -> Result<(Vec<Location<'a>>, Vec<Location<'a>>), ImportError> {
    let mut all = Vec::new();
    inside(scope, None, &[], &mut all)?;
    let (named, mut all): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|own| own.kind == Kind::Named);
    if !all.iter().any(Location::is_rest) {
        all.push(Location {
            directive: server,
            kind: Kind::Prefix { is_firm: false },
            path: "/".into(),
            scope: scope.clone(),
            within: None,
            enclosing: Vec::new(),
        });
    }
    Ok((order::in_order(all), named))
}

fn inside<'a>(
    scope: &Scope<'a>,
    outer: Option<&str>,
    enclosing: &[&'a Directive],
    all: &mut Vec<Location<'a>>,
) -> Result<(), ImportError> {
    for directive in scope.own().iter().filter(|own| own.name == "location") {
        let (kind, path) = read(directive)?;
        let own = scope.within(directive.inside());
        // `/` is found before all that are in it, so these stand beside it.
        let outer_of_these = matches!(kind, Kind::Prefix { .. }).then_some(path.as_str());
        // What is in an expression counts as if it were beside it.
        let enclosing_these = match kind {
            Kind::Prefix { .. } => [enclosing, &[directive]].concat(),
            _ => enclosing.to_vec(),
        };
        inside(&own, outer_of_these.or(outer), &enclosing_these, all)?;
        let is_twice = all
            .iter()
            .any(|other| other.path == path && same_kind(&other.kind, &kind));
        if is_twice {
            return Err(directive
                .at
                .wrong(format!("a second location {path}; remove one of them")));
        }
        all.push(Location {
            directive,
            kind,
            path,
            scope: own,
            within: outer.map(str::to_owned),
            enclosing: enclosing.to_vec(),
        });
    }
    Ok(())
}

/// An expression in which `.php` is meant as it is written.
fn with_dots(expression: &str) -> String {
    let mut own = String::with_capacity(expression.len());
    for (at, letter) in expression.char_indices() {
        let is_bare = expression[at..].starts_with(".php") && !own.ends_with('\\');
        if is_bare {
            own.push('\\');
        }
        own.push(letter);
    }
    own
}

/// The paths of an expression that begin so.
fn narrowed(texts: &[String], outer: &str) -> Option<Vec<String>> {
    let within = texts.iter().filter_map(|text| {
        if text.starts_with(outer) {
            return Some(text.clone());
        }
        // What the star is for covers the beginning.
        let (head, rest) = text.split_once('*')?;
        outer.starts_with(head).then(|| format!("{outer}*{rest}"))
    });
    let within: Vec<String> = within.collect();
    (!within.is_empty()).then_some(within)
}

/// nginx takes expressions twice, and the first counts.
fn same_kind(one: &Kind, other: &Kind) -> bool {
    matches!(
        (one, other),
        (Kind::Exact, Kind::Exact)
            | (Kind::Prefix { .. }, Kind::Prefix { .. })
            | (Kind::Named, Kind::Named)
    )
}

fn read(directive: &Directive) -> Result<(Kind, String), ImportError> {
    let wrong = || {
        directive
            .at
            .wrong("location names one path; write location [=|^~|~|~*] PATH {")
    };
    let (sign, path) = match directive.args.as_slice() {
        [path] => {
            let signs = ["=", "^~", "~*", "~"];
            let sign = signs.iter().find(|sign| path.starts_with(*sign));
            (
                sign.copied().unwrap_or(""),
                &path[sign.map_or(0, |sign| sign.len())..],
            )
        }
        [sign, path] => (sign.as_str(), path.as_str()),
        _ => return Err(wrong()),
    };
    let kind = match sign {
        "" if path.starts_with('@') => Kind::Named,
        "" => Kind::Prefix { is_firm: false },
        "=" => Kind::Exact,
        "^~" => Kind::Prefix { is_firm: true },
        "~" => Kind::Expression {
            ignores_case: false,
        },
        "~*" => Kind::Expression { ignores_case: true },
        _ => return Err(wrong()),
    };
    if path.is_empty() {
        return Err(wrong());
    }
    // nginx takes a path without a slash, which then fits none.
    Ok((kind, path.to_owned()))
}
