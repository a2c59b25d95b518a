//! How long clients may keep which files: rules by path, by the end of the name and by media type,
//! and the headers `Expires` and `Cache-Control` of an answer that a rule fits.

use crate::config::Misconfigured;
use crate::response::visible;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, EXPIRES, HeaderValue, SET_COOKIE};
use hyper::{HeaderMap, Method, Request, StatusCode};
use serde::Deserialize;
use sooner_http::forwarding::routes;
use sooner_http::lifetime::{Lifetime, NotALifetime};
use sooner_http::target::{self, DotFiles};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, SystemTime};
use toml::Spanned;

/// One rule: which answers, and how long they may be kept.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpiresConfig {
    /// How long: `30d`, `1h30m`, `0`, `-1`, `max`, `epoch`, `off`.
    pub after: Spanned<String>,
    /// The beginning of the paths; ends where a path's segment ends.
    #[serde(default)]
    pub path: Option<Spanned<String>>,
    /// Ends of names, without the dot.
    #[serde(default)]
    pub extensions: Vec<Spanned<String>>,
    /// Media types: `text/css`, `image/*`.
    #[serde(default)]
    pub types: Vec<Spanned<String>>,
    /// Whether what is kept never changes, so that no reload of a page asks for it again.
    #[serde(default)]
    pub immutable: Option<Spanned<bool>>,
    /// Whether answers of upstreams that say nothing about it get it too.
    #[serde(default)]
    pub proxied: bool,
}

/// The rules of a site, the first that fits counts.
#[derive(Debug, Clone, Default)]
pub struct Expires {
    rules: Rc<[Rc<Rule>]>,
    /// What paths of files begin with where clients ask for them, and not on the disk.
    mount: Rc<[u8]>,
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Percent-decoded, without slashes at the ends.
    path: Box<[u8]>,
    extensions: Box<[Box<str>]>,
    types: Box<[Box<str>]>,
    proxied: bool,
    lifetime: Lifetime,
    immutable: bool,
    /// What it says in one second.
    said: RefCell<Option<(u64, HeaderValue, HeaderValue)>>,
}

/// A request that an upstream answers, as far as rules look at it.
#[derive(Debug)]
pub struct Proxied {
    rules: Expires,
    path: Vec<u8>,
}

impl Expires {
    /// The rules of a configuration.
    pub fn build(configs: &[ExpiresConfig]) -> Result<Self, Misconfigured> {
        let mut rules: Vec<Rc<Rule>> = Vec::new();
        for config in configs {
            let rule = rule(config)?;
            if rules.iter().any(|before| before.covers(&rule)) {
                let message = "is never reached: a rule before it is about all of these; put the narrower one first";
                return Err(Misconfigured::at(
                    &config.after,
                    "site.expires.after",
                    message,
                ));
            }
            rules.push(Rc::new(rule));
        }
        Ok(Self {
            rules: rules.into(),
            mount: Rc::default(),
        })
    }

    /// The same rules for files of which the paths begin with `mount` where clients ask for them.
    pub fn mounted(self, mount: &[u8]) -> Self {
        Self {
            mount: mount.into(),
            ..self
        }
    }

    /// The rule of a file: its path below the root, and its `Content-Type`.
    pub fn of_file(&self, path: &[u8], media_type: Option<&HeaderValue>) -> Option<Rc<Rule>> {
        if self.mount.is_empty() {
            return self.find(path, media_type, |_| true);
        }
        let asked = [&*self.mount, b"/", path].concat();
        self.find(&asked, media_type, |_| true)
    }

    /// What is needed of a request for the rules that are about upstreams; `None` without any.
    pub fn of_request<B>(&self, request: &Request<B>) -> Option<Proxied> {
        let may_be_kept = matches!(*request.method(), Method::GET | Method::HEAD);
        if !may_be_kept || !self.rules.iter().any(|rule| rule.proxied) {
            return None;
        }
        let target = target::parse(request.uri().path(), DotFiles::Served).ok()?;
        Some(Proxied {
            rules: self.clone(),
            path: target.path.into_owned(),
        })
    }

    fn find(
        &self,
        path: &[u8],
        media_type: Option<&HeaderValue>,
        is_asked: impl Fn(&Rule) -> bool,
    ) -> Option<Rc<Rule>> {
        let fits = |rule: &&Rc<Rule>| is_asked(rule) && rule.fits(path, media_type);
        self.rules.iter().find(fits).cloned()
    }
}

impl Proxied {
    /// The rule of an upstream's answer that is a success, sets no cookie and does not say itself
    /// how long it may be kept.
    pub fn rule(&self, status: StatusCode, headers: &HeaderMap) -> Option<Rc<Rule>> {
        let own = [CACHE_CONTROL, EXPIRES, SET_COOKIE];
        if !is_kept(status) || own.iter().any(|name| headers.contains_key(name)) {
            return None;
        }
        let media_type = headers.get(CONTENT_TYPE);
        self.rules.find(&self.path, media_type, |rule| rule.proxied)
    }
}

/// Whether an answer with this status may say how long it is kept. nginx says it of
/// redirects too; here a redirect is asked for again, so that a mistake in it can be corrected.
fn is_kept(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::OK
            | StatusCode::NO_CONTENT
            | StatusCode::PARTIAL_CONTENT
            | StatusCode::NOT_MODIFIED
    )
}

impl Rule {
    fn fits(&self, path: &[u8], media_type: Option<&HeaderValue>) -> bool {
        self.fits_path(path) && self.fits_kind(path, media_type)
    }

    fn fits_path(&self, path: &[u8]) -> bool {
        path.strip_prefix(&*self.path)
            .is_some_and(|rest| self.path.is_empty() || rest.is_empty() || rest.starts_with(b"/"))
    }

    fn fits_kind(&self, path: &[u8], media_type: Option<&HeaderValue>) -> bool {
        if self.extensions.is_empty() && self.types.is_empty() {
            return true;
        }
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        let dot = name.iter().rposition(|&byte| byte == b'.');
        let extension = dot.filter(|&dot| dot > 0).map(|dot| &name[dot + 1..]);
        let has_extension = extension.is_some_and(|extension| {
            let mut extensions = self.extensions.iter();
            extensions.any(|wanted| wanted.as_bytes().eq_ignore_ascii_case(extension))
        });
        has_extension || media_type.is_some_and(|media_type| self.fits_type(media_type))
    }

    fn fits_type(&self, media_type: &HeaderValue) -> bool {
        let media_type = media_type.to_str().unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        self.types
            .iter()
            .any(|wanted| match wanted.strip_suffix('*') {
                Some(kind) => media_type
                    .get(..kind.len())
                    .is_some_and(|start| start.eq_ignore_ascii_case(kind)),
                None => media_type.eq_ignore_ascii_case(wanted),
            })
    }

    /// Whether `later` fits nothing that this one does not fit.
    fn covers(&self, later: &Self) -> bool {
        let any_kind = self.extensions.is_empty() && self.types.is_empty();
        let is_part = |of: &[Box<str>], part: &[Box<str>]| part.iter().all(|it| of.contains(it));
        let has_kinds = !(later.extensions.is_empty() && later.types.is_empty())
            && is_part(&self.extensions, &later.extensions)
            && is_part(&self.types, &later.types);
        self.fits_path(&later.path) && (any_kind || has_kinds) && (self.proxied || !later.proxied)
    }

    /// Puts the headers into an answer; they replace what is there.
    pub fn add_to(&self, headers: &mut HeaderMap, now: SystemTime) {
        let second = now.duration_since(SystemTime::UNIX_EPOCH);
        let second = second.unwrap_or(Duration::ZERO).as_secs();
        let mut said = self.said.borrow_mut();
        if said
            .as_ref()
            .is_none_or(|(when, ..)| *when != second && self.lifetime.is_relative())
        {
            *said = self.lifetime.fields(self.immutable, now).map(|fields| {
                let values = (visible(fields.expires), visible(fields.cache_control));
                (second, values.0, values.1)
            });
        }
        if let Some((_, expires, cache_control)) = &*said {
            headers.insert(EXPIRES, expires.clone());
            headers.insert(CACHE_CONTROL, cache_control.clone());
        }
    }
}

fn rule(config: &ExpiresConfig) -> Result<Rule, Misconfigured> {
    let lifetime: Lifetime = config
        .after
        .get_ref()
        .parse()
        .map_err(|error: NotALifetime| {
            Misconfigured::at(&config.after, "site.expires.after", error)
        })?;
    let immutable = config.immutable.as_ref();
    if let Some(immutable) = immutable.filter(|it| *it.get_ref() && !lifetime.lets_keep()) {
        let message = "is for answers that clients keep: write after = \"1y\" or the like beside it, or leave it out";
        return Err(Misconfigured::at(
            immutable,
            "site.expires.immutable",
            message,
        ));
    }
    Ok(Rule {
        path: path(config.path.as_ref())?,
        extensions: extensions(&config.extensions)?,
        types: types(&config.types)?,
        proxied: config.proxied,
        lifetime,
        immutable: immutable.is_some_and(|it| *it.get_ref()),
        said: RefCell::new(None),
    })
}

fn path(path: Option<&Spanned<String>>) -> Result<Box<[u8]>, Misconfigured> {
    let Some(path) = path else {
        return Ok(Box::default());
    };
    let wrong = |message: String| Misconfigured::at(path, "site.expires.path", message);
    routes::check_path(path.get_ref()).map_err(|error| wrong(error.to_string()))?;
    let target = target::parse(path.get_ref(), DotFiles::Served);
    let target = target.map_err(|error| wrong(error.to_string()))?;
    Ok(target.path.into())
}

/// Whether a file name may end in this behind its last dot, as `expires.extensions` wants.
pub fn is_extension(text: &str) -> bool {
    !text.is_empty() && !text.contains(['.', '/', '*', '\0'])
}

fn extensions(names: &[Spanned<String>]) -> Result<Box<[Box<str>]>, Misconfigured> {
    let extension = |name: &Spanned<String>| {
        let message = "an extension is what follows the last dot of a name, as in \"css\"";
        is_extension(name.get_ref())
            .then(|| name.get_ref().to_ascii_lowercase().into())
            .ok_or_else(|| Misconfigured::at(name, "site.expires.extensions", message))
    };
    names.iter().map(extension).collect()
}

fn types(names: &[Spanned<String>]) -> Result<Box<[Box<str>]>, Misconfigured> {
    let media_type = |name: &Spanned<String>| {
        let is_token = |text: &str| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
            !text.is_empty() && text.bytes().all(is_part)
        };
        let parts = name.get_ref().split_once('/');
        let is_one =
            parts.is_some_and(|(kind, sub)| is_token(kind) && (sub == "*" || is_token(sub)));
        let message = "a media type is like \"text/css\", or \"image/*\" for all of a kind";
        is_one
            .then(|| name.get_ref().to_ascii_lowercase().into())
            .ok_or_else(|| Misconfigured::at(name, "site.expires.types", message))
    };
    names.iter().map(media_type).collect()
}
