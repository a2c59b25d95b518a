//! From the configuration of a site to the site; whatever cannot work is said here, with its place.

use super::config::{RedirectConfig, Scheme, StaticConfig};
use super::listing::{BUDGET_BYTES, Budget, Lister, Listing};
use super::representation::Delivery;
use super::{Disk, ErrorPage, StaticSite};
use crate::auth::{Guards, Served};
use crate::config::Misconfigured;
use crate::files::{CacheLimits, Expires, ExtraHeaderError, ExtraHeaders, FileCache, Folder};
use crate::files::{ResourceMaker, RootPath};
use hyper::StatusCode;
use sooner_http::negotiation::Coding;
use sooner_http::redirect::{Redirect, RedirectError};
use sooner_http::target::{self, DotFiles};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::RandomState;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use toml::Spanned;

/// What the sites of a server share.
#[derive(Debug, Clone)]
pub struct SharedFiles {
    cache: Rc<RefCell<FileCache>>,
    /// Those that are open: sites and locations with the same one look at it together.
    roots: Rc<RefCell<Vec<RootPath>>>,
    listings: Budget,
    chunk_bytes: usize,
}

impl SharedFiles {
    /// Nothing yet, within `limits`; a body from disk is read `chunk_bytes` at a time.
    pub fn new(limits: CacheLimits, chunk_bytes: usize) -> Self {
        Self {
            cache: Rc::new(RefCell::new(FileCache::new(limits))),
            roots: Rc::default(),
            listings: Budget::new(BUDGET_BYTES),
            chunk_bytes,
        }
    }
}

impl StaticSite {
    /// A site by itself. The cache holds files within `limits`; a body from disk is read
    /// `chunk_bytes` at a time.
    pub fn new(
        config: &StaticConfig,
        limits: CacheLimits,
        chunk_bytes: usize,
    ) -> Result<Self, Misconfigured> {
        Self::sharing(config, &SharedFiles::new(limits, chunk_bytes))
    }

    /// A site beside others.
    pub fn sharing(config: &StaticConfig, shared: &SharedFiles) -> Result<Self, Misconfigured> {
        Self::mounted(config, shared, b"")
    }

    /// A site beside others of which the paths begin with `mount`, a path as [`target::parse`]
    /// gives it, that is not there on the disk.
    pub fn mounted(
        config: &StaticConfig,
        shared: &SharedFiles,
        mount: &[u8],
    ) -> Result<Self, Misconfigured> {
        let extra = extra_headers(&config.headers)?;
        let redirects = redirects(&config.redirect, config.scheme)?;
        let expires = Expires::build(&config.expires)?.mounted(mount);
        let root = config.root.as_ref();
        let served = Served {
            root: root.map(|root| root.get_ref().as_path()),
            dot_files: config.dot_files,
        };
        let guards = Guards::build(&config.auth, served)?;
        let error_pages = error_pages(&config.errors)?;
        let fallback = config
            .fallback
            .as_ref()
            .map(|path| path_of(path, "site.fallback"))
            .transpose()?;
        let (index, codings) = (index(&config.index)?, codings(&config.precompressed)?);
        let disk = match &config.root {
            Some(path) => {
                let root = open_root(path, config, shared)?;
                let folder = Folder {
                    index,
                    root: root.clone(),
                    maker: ResourceMaker {
                        codings,
                        extra: extra.clone(),
                        expires: expires.clone(),
                        memory_file_bytes_max: shared.cache.borrow().limits().memory_file_bytes_max,
                    },
                };
                Some(disk(config, shared, folder, root, fallback))
            }
            None => {
                needs_no_root(config)?;
                None
            }
        };
        Ok(Self {
            redirects,
            extra,
            expires,
            guards,
            error_pages,
            disk,
            mount: mount.into(),
            answer: None,
            takes_routes: true,
            delivery: Delivery {
                chunk_bytes: shared.chunk_bytes,
                boundaries: RandomState::new(),
            },
            hidden: None,
            looks_up_again: !config.location.is_empty() || !config.auth.is_empty(),
        })
    }
}

/// Whether a site of `config` could be, but for what lies in its directories.
pub fn check(config: &StaticConfig) -> Result<(), Misconfigured> {
    extra_headers(&config.headers)?;
    redirects(&config.redirect, config.scheme)?;
    Expires::build(&config.expires)?;
    Guards::check(&config.auth)?;
    error_pages(&config.errors)?;
    if let Some(fallback) = &config.fallback {
        path_of(fallback, "site.fallback")?;
    }
    index(&config.index)?;
    codings(&config.precompressed)?;
    match config.root {
        Some(_) => Ok(()),
        None => needs_no_root(config),
    }
}

fn disk(
    config: &StaticConfig,
    shared: &SharedFiles,
    folder: Folder,
    root: RootPath,
    fallback: Option<Box<[u8]>>,
) -> Disk {
    let dot_files = if config.dot_files {
        DotFiles::Served
    } else {
        DotFiles::Refused
    };
    let lister = Lister {
        listing: config.listing,
        root,
        dot_files,
        extra: folder.maker.extra.clone(),
        budget: shared.listings.clone(),
    };
    Disk {
        cache: shared.cache.clone(),
        folder: shared.cache.borrow_mut().add(folder),
        dot_files,
        lister,
        fallback,
    }
}

fn open_root(
    path: &Spanned<PathBuf>,
    config: &StaticConfig,
    shared: &SharedFiles,
) -> Result<RootPath, Misconfigured> {
    let mut roots = shared.roots.borrow_mut();
    let is_same = |root: &&RootPath| root.is_for(path.get_ref(), config.symlinks);
    if let Some(root) = roots.iter().find(is_same) {
        return Ok(root.clone());
    }
    let valid_for = shared.cache.borrow().limits().valid_for;
    let opened = RootPath::open(path.get_ref(), config.symlinks, valid_for).map_err(|error| {
        let name = path.get_ref().display();
        let message = match error.kind() {
            io::ErrorKind::NotFound => {
                format!("no directory {name}: name an existing one to serve")
            }
            io::ErrorKind::NotADirectory => {
                format!("{name} is not a directory: name the directory that holds the file")
            }
            _ => format!("cannot open the directory {name}: {error}"),
        };
        Misconfigured::at(path, "site.root", message)
    })?;
    roots.push(opened.clone());
    Ok(opened)
}

/// What is about files has no meaning without a root; left in, it would be silently ignored.
fn needs_no_root(config: &StaticConfig) -> Result<(), Misconfigured> {
    let message = "needs a root: the directory its file is below";
    if let Some(fallback) = &config.fallback {
        return Err(Misconfigured::at(fallback, "site.fallback", message));
    }
    if let Some(page) = config.errors.values().next() {
        return Err(Misconfigured::at(page, "site.errors", message));
    }
    if config.listing != Listing::Off {
        return Err(Misconfigured::without_place("site.listing", message));
    }
    Ok(())
}

fn index(names: &[Spanned<String>]) -> Result<Vec<Box<[u8]>>, Misconfigured> {
    names
        .iter()
        .map(|name| {
            let is_name = !matches!(name.get_ref().as_str(), "" | "." | "..")
                && !name.get_ref().contains(['/', '\\', '\0']);
            let message = "an index is the name of a file in the directory, without a slash";
            is_name
                .then(|| name.get_ref().as_bytes().into())
                .ok_or_else(|| Misconfigured::at(name, "site.index", message))
        })
        .collect()
}

fn codings(wanted: &[Spanned<Coding>]) -> Result<Vec<Coding>, Misconfigured> {
    let mut codings = Vec::new();
    for coding in wanted {
        if codings.contains(coding.get_ref()) {
            let message = format!("{} is named twice", coding.get_ref().token());
            return Err(Misconfigured::at(coding, "site.precompressed", message));
        }
        codings.push(*coding.get_ref());
    }
    Ok(codings)
}

fn extra_headers(
    headers: &BTreeMap<String, Spanned<String>>,
) -> Result<ExtraHeaders, Misconfigured> {
    let mut extra = ExtraHeaders::default();
    for (name, value) in headers {
        extra
            .push(name, value.get_ref())
            .map_err(|error: ExtraHeaderError| {
                Misconfigured::at(value, &format!("site.headers.{name}"), error)
            })?;
    }
    Ok(extra)
}

fn error_pages(pages: &BTreeMap<String, Spanned<String>>) -> Result<Vec<ErrorPage>, Misconfigured> {
    pages
        .iter()
        .map(|(status, path)| {
            let key = format!("site.errors.{status}");
            let status = status.parse::<u16>().ok();
            let status = status.filter(|status| (400..=599).contains(status));
            let status = status.and_then(|status| StatusCode::from_u16(status).ok());
            let message = "pages are for the statuses from 400 to 599";
            let status = status.ok_or_else(|| Misconfigured::at(path, &key, message))?;
            Ok(ErrorPage {
                status,
                path: path_of(path, &key)?,
            })
        })
        .collect()
}

/// A path below the root, as a request would name it; one that requests may not name is the owner's
/// to choose.
fn path_of(path: &Spanned<String>, key: &str) -> Result<Box<[u8]>, Misconfigured> {
    let message = match target::parse(path.get_ref(), DotFiles::Served) {
        Ok(target) if target.is_directory => {
            "names a directory: name a file, as in /index.html".to_owned()
        }
        Ok(target) => return Ok(target.path.into()),
        Err(error) => format!("{error}: a path below the root, as in /index.html"),
    };
    Err(Misconfigured::at(path, key, message))
}

fn redirects(
    configs: &[RedirectConfig],
    scheme: Option<Scheme>,
) -> Result<Vec<Redirect>, Misconfigured> {
    let mut redirects: Vec<Redirect> = Vec::new();
    for config in configs {
        let RedirectConfig { from, to, status } = config;
        let redirect = Redirect::parse(from.get_ref(), to.get_ref(), *status.get_ref())
            .map_err(|error| at_its_part(config, &error))?;
        leads_elsewhere(config, &redirect, scheme)?;
        if let Some(index) = redirects.iter().position(|other| other.covers(&redirect)) {
            let other = configs[index].from.get_ref();
            let message = format!(
                "is never reached: the redirect from {other:?} comes first and matches it too; put the narrower one first"
            );
            return Err(Misconfigured::at(from, "site.redirect.from", message));
        }
        redirects.push(redirect);
    }
    Ok(redirects)
}

/// From one scheme to the other at the same host is no loop only for requests of the one.
fn leads_elsewhere(
    config: &RedirectConfig,
    redirect: &Redirect,
    scheme: Option<Scheme>,
) -> Result<(), Misconfigured> {
    let other = match redirect.scheme_at_own_host() {
        Some("https://") => Scheme::Http,
        _ => Scheme::Https,
    };
    if !redirect.repeats_at_own_host() || scheme == Some(other) {
        return Ok(());
    }
    let message = format!(
        "is redirected by this very rule again; the site needs scheme = \"{}\", so that the rule is for these requests alone",
        other.as_str()
    );
    Err(Misconfigured::at(&config.to, "site.redirect.to", message))
}

fn at_its_part(config: &RedirectConfig, error: &RedirectError) -> Misconfigured {
    match error {
        RedirectError::FromNotAPath | RedirectError::StarWithin => {
            Misconfigured::at(&config.from, "site.redirect.from", error)
        }
        RedirectError::Status => Misconfigured::at(&config.status, "site.redirect.status", error),
        _ => Misconfigured::at(&config.to, "site.redirect.to", error),
    }
}
