//! `fastcgi = {...}` of an upstream: where its scripts are.

use super::scripts::{Found, Script, Scripts};
use crate::config::Misconfigured;
use crate::files::{CacheLimits, RootPath, Symlinks};
use serde::Deserialize;
use sooner_http::target::{self, DotFiles};
use std::path::{Path, PathBuf};
use std::time::Instant;
use toml::Spanned;

/// The table as it was written.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FastCgiTable {
    /// The directory that the scripts are below, the same for this server and for that one.
    pub root: Spanned<PathBuf>,
    /// The script that stands for its directory.
    #[serde(default)]
    pub index: Option<Spanned<String>>,
    /// The script for paths that lead to no file: an application that reads the path itself.
    #[serde(default)]
    pub fallback: Option<Spanned<String>>,
}

/// Where the scripts of an upstream are.
#[derive(Debug)]
pub struct FastCgi {
    /// Their root, as scripts are told of it.
    pub root: PathBuf,
    scripts: Scripts,
}

impl FastCgi {
    /// What the configuration says.
    pub fn build(table: &FastCgiTable) -> Result<Self, Misconfigured> {
        let path = table.root.get_ref();
        // As sites do.
        let valid_for = CacheLimits::default().valid_for;
        let root = RootPath::open(path, Symlinks::Inside, valid_for).map_err(|error| {
            let message = format!("cannot open the directory {}: {error}", path.display());
            Misconfigured::at(&table.root, "upstream.fastcgi.root", message)
        })?;
        let root_path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let index = table.index.as_ref();
        if let Some(index) = index
            && (index.get_ref().is_empty() || index.get_ref().contains(['/', '\0']))
        {
            let message = "an index is the name of a script in the directory, as in \"index.php\"";
            return Err(Misconfigured::at(index, "upstream.fastcgi.index", message));
        }
        let index = index.map_or("index.php", |index| index.get_ref());
        let fallback = table.fallback.as_ref().map(|fallback| {
            let wrong = "a path below the root, as in \"/index.php\"";
            match target::parse(fallback.get_ref(), DotFiles::Served) {
                Ok(target) if !target.is_directory => Ok(target.path.into()),
                _ => Err(Misconfigured::at(
                    fallback,
                    "upstream.fastcgi.fallback",
                    wrong,
                )),
            }
        });
        Ok(Self {
            root: without_slash(&root_path),
            scripts: Scripts {
                root,
                index: index.as_bytes().into(),
                fallback: fallback.transpose()?,
            },
        })
    }

    /// What a path leads to, as it stands in a request.
    pub fn find(&self, path: &str) -> Found {
        self.scripts.find(path, Instant::now())
    }

    /// Whether `script` is the fallback, and no part of the path is for it.
    pub fn is_fallback(&self, script: &Script) -> bool {
        let fallback = self.scripts.fallback.as_deref();
        script.info.is_empty() && fallback == script.name.get(1..)
    }
}

/// Without a slash at its end, which would be there twice before a script's name.
fn without_slash(path: &Path) -> PathBuf {
    path.components().collect()
}
