//! Which directory a location sends files of.

use super::action::{Actions, Files};
use super::locations::{Kind, Location};
use super::tree::Directive;

impl<'a> Actions<'_, 'a> {
    /// The directory of a location; the error is what cannot be said of it.
    pub fn directory(
        &mut self,
        location: &Location<'a>,
    ) -> Result<Files, (&'a Directive, &'static str)> {
        let scope = &location.scope;
        let own = scope.all(&["root", "alias"]);
        let Some(named) = own.last().copied() else {
            return Ok(Files {
                has_directories: true,
                ..Files::default()
            });
        };
        let text = scope.expanded(named.first());
        if named.name == "alias" {
            if !scope.own().iter().any(|own| std::ptr::eq(own, named)) {
                return Err((named, "an alias holds for its own location"));
            }
            let files = aliased(location, &text).map_err(|why| (named, why))?;
            if location.path.contains(".+") {
                let why = "what (.+) does not match, the directory itself, is sent as well";
                self.leave_out(named, why);
            }
            return Ok(files);
        }
        if text.contains('$') {
            return Err((named, "Sooner has no variables; name the directory"));
        }
        if !text.starts_with('/') {
            self.leave_out(
                named,
                "it is below the --prefix that nginx was built with; write the whole path",
            );
            return Ok(Files {
                has_directories: true,
                ..Files::default()
            });
        }
        Ok(Files {
            root: Some(text),
            has_directories: true,
            ..Files::default()
        })
    }
}

/// The directories of all locations.
pub fn all(locations: &[Location<'_>]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for location in locations {
        let own = location.scope.all(&["root", "alias"]);
        let text = own.last().map(|own| location.scope.expanded(own.first()));
        all.extend(text.filter(|text| text.starts_with('/') && !all.contains(text)));
    }
    all
}

/// What `alias` says.
fn aliased(location: &Location<'_>, alias: &str) -> Result<Files, &'static str> {
    let path = location.path.as_str();
    let files = |root: &str, strip: &str| Files {
        root: Some(root.to_owned()),
        strip: Some(strip.to_owned()),
        has_directories: true,
        ..Files::default()
    };
    if !alias.starts_with('/') {
        return Err("it is below the --prefix that nginx was built with; write the whole path");
    }
    let last = |path: &str| path.rsplit_once('/').map(|(_, name)| name.to_owned());
    let is_file = last(path) == last(alias) && last(path).is_some_and(|name| name.contains('.'));
    match location.kind {
        Kind::Prefix { .. } if !alias.contains('$') && !is_file => Ok(files(alias, path)),
        Kind::Exact | Kind::Prefix { .. } if !alias.contains('$') => {
            let (folder, name) = alias.rsplit_once('/').unwrap_or(("", alias));
            let (strip, own) = path.rsplit_once('/').unwrap_or(("", path));
            if name != own || name.is_empty() {
                return Err("a file is sent under its own name");
            }
            let folder = if folder.is_empty() { "/" } else { folder };
            Ok(files(folder, if strip.is_empty() { "/" } else { strip }))
        }
        Kind::Expression { .. } => {
            let prefix = path.strip_prefix('^');
            let prefix = prefix.and_then(|rest| {
                let tails = ["(.*)$", "(.+)$", "(.*)", "(.+)"];
                tails.iter().find_map(|tail| rest.strip_suffix(tail))
            });
            let is_plain =
                |own: &&str| !own.contains(['(', '[', '\\', '.', '*', '+', '?', '$', '|']);
            match (prefix.filter(is_plain), alias.strip_suffix("$1")) {
                (Some(prefix), Some(folder)) if prefix.ends_with('/') && !folder.contains('$') => {
                    Ok(files(folder, prefix))
                }
                _ => Err("Sooner has no variables; name the directory"),
            }
        }
        _ => Err("Sooner has no variables; name the directory"),
    }
}
