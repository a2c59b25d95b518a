//! `[[site.auth]]`: which paths of a site are for the users of which file.

use super::htpasswd::Users;
use super::{Guard, Guards};
use crate::config::Misconfigured;
use crate::response::visible;
use serde::Deserialize;
use sooner_http::basic_auth::challenge;
use sooner_http::forwarding::routes;
use std::collections::HashMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use toml::Spanned;

/// The word in place of a file that leaves paths open.
const OFF: &str = "off";

/// One table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthConfig {
    /// The beginning of the paths; ends where a path's segment ends. Without it all.
    #[serde(default)]
    pub path: Option<Spanned<String>>,
    /// The file that Apache's `htpasswd` makes; `off` leaves the paths open.
    pub file: Spanned<PathBuf>,
    /// What clients show their users.
    #[serde(default)]
    pub realm: Option<Spanned<String>>,
}

impl AuthConfig {
    /// Makes a relative path of the file one below `folder`.
    pub fn relative_to(&mut self, folder: &Path) {
        if self.file.get_ref() != Path::new(OFF) {
            let joined = folder.join(self.file.get_ref());
            *self.file.get_mut() = joined;
        }
    }
}

/// The site that the paths are of.
#[derive(Clone, Copy)]
pub struct Served<'a> {
    /// The directory of its files.
    pub root: Option<&'a Path>,
    /// Whether names that begin with a dot are among them.
    pub dot_files: bool,
}

impl Guards {
    /// What protects a site; reads the files that `configs` name.
    pub fn build(configs: &[AuthConfig], site: Served<'_>) -> Result<Self, Misconfigured> {
        let mut read = HashMap::new();
        Self::filled(configs, |config| {
            guard(config, site, &mut read).map(|guard| Some(Rc::new(guard)))
        })
    }

    /// Whether they could be built, but for what the files hold.
    pub fn check(configs: &[AuthConfig]) -> Result<(), Misconfigured> {
        Self::filled(configs, |config| said(config).map(|_| None)).map(|_| ())
    }

    /// One entry for each table; `protect` makes that of a table with a file.
    fn filled<'a>(
        configs: &'a [AuthConfig],
        mut protect: impl FnMut(&'a AuthConfig) -> Result<Option<Rc<Guard>>, Misconfigured>,
    ) -> Result<Self, Misconfigured> {
        let mut guards = Self::default();
        for config in configs {
            let path = config.path.as_ref().map_or("/", |path| path.get_ref());
            let wrong_path = |message: &dyn Display| match &config.path {
                Some(path) => Misconfigured::at(path, "site.auth.path", message),
                None => Misconfigured::at(&config.file, "site.auth.path", message),
            };
            routes::check_path(path).map_err(|error| wrong_path(&error))?;
            let guard = match config.file.get_ref() == Path::new(OFF) {
                true => open(config)?,
                false => protect(config)?,
            };
            if !guards.0.add(path, guard) {
                let message = format!("`{path}` has a table already; write one for each path");
                return Err(wrong_path(&message));
            }
        }
        Ok(guards)
    }
}

/// Paths that are open.
fn open(config: &AuthConfig) -> Result<Option<Rc<Guard>>, Misconfigured> {
    match &config.realm {
        None => Ok(None),
        Some(realm) => {
            let message = "has no meaning where the paths are open; leave it out";
            Err(Misconfigured::at(realm, "site.auth.realm", message))
        }
    }
}

/// What lets the users of a file pass; each file is read once.
fn guard<'a>(
    config: &'a AuthConfig,
    site: Served<'_>,
    read: &mut HashMap<&'a Path, Arc<Users>>,
) -> Result<Guard, Misconfigured> {
    let file = config.file.get_ref().as_path();
    let wrong = |message: &dyn Display| Misconfigured::at(&config.file, "site.auth.file", message);
    if let Some(root) = site.root.filter(|_| !is_hidden(file, site.dot_files))
        && is_below(file, root)
    {
        let message =
            "lies below the root of the site, where clients can have it: put it elsewhere";
        return Err(wrong(&message));
    }
    let users = match read.get(file) {
        Some(users) => users.clone(),
        None => {
            let users = Arc::new(Users::read(file).map_err(|error| wrong(&error))?);
            read.insert(file, users.clone());
            users
        }
    };
    Ok(Guard {
        users,
        challenge: visible(said(config)?),
    })
}

/// What clients without a password are told.
fn said(config: &AuthConfig) -> Result<String, Misconfigured> {
    let said = match &config.realm {
        None => challenge("Restricted"),
        Some(realm) => challenge(realm.get_ref()),
    };
    said.map_err(|error| match &config.realm {
        Some(realm) => Misconfigured::at(realm, "site.auth.realm", error),
        None => Misconfigured::at(&config.file, "site.auth.file", error),
    })
}

/// Whether a site does not serve a file of this name anyway.
fn is_hidden(file: &Path, dot_files: bool) -> bool {
    let name = file.file_name().unwrap_or_default();
    !dot_files && name.as_encoded_bytes().starts_with(b".")
}

fn is_below(file: &Path, root: &Path) -> bool {
    match (file.canonicalize(), root.canonicalize()) {
        (Ok(file), Ok(root)) => file.starts_with(root),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The key and the message of the mistake in these tables.
    fn mistake(folder: &Path, tables: &str) -> (String, String) {
        #[derive(Deserialize)]
        struct Tables {
            auth: Vec<AuthConfig>,
        }
        let mut tables: Tables = toml::from_str(&format!("auth = [{tables}]")).unwrap();
        let each = tables.auth.iter_mut();
        each.for_each(|config| config.relative_to(folder));
        let site = Served {
            root: Some(&folder.join("root")),
            dot_files: false,
        };
        let error = Guards::build(&tables.auth, site).expect_err("a mistake");
        assert!(error.span.is_some() && error.message.lines().count() == 1);
        (error.key, error.message)
    }

    #[test]
    fn every_mistake_has_its_place() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("root")).unwrap();
        let line = "anna:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n";
        for name in ["users", "root/users", "root/.users"] {
            fs::write(folder.path().join(name), line).unwrap();
        }
        fs::write(folder.path().join("wrong"), format!("{line}bert:b\n")).unwrap();
        for (tables, key, part) in [
            ("{ file = 'none' }", "file", "htpasswd -B -c"),
            ("{ file = 'wrong' }", "file", "wrong:2: `bert`"),
            ("{ file = 'root/users' }", "file", "below the root"),
            ("{ file = 'users', path = 'a' }", "path", "begins with /"),
            (
                "{ file = 'users', realm = \"a\\nb\" }",
                "realm",
                "printable",
            ),
            ("{ file = 'off', realm = 'a' }", "realm", "leave it out"),
            (
                "{ file = 'users', path = '/a' }, { file = 'off', path = '/%61/' }",
                "path",
                "has a table already",
            ),
            (
                "{ file = 'users' }, { file = 'off' }",
                "path",
                "has a table already",
            ),
        ] {
            let (found, message) = mistake(folder.path(), tables);
            assert_eq!(found, format!("site.auth.{key}"), "{tables}");
            assert!(message.contains(part), "{tables}: {message}");
        }
    }
}
