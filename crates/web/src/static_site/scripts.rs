//! Scripts of a site where scripts are run elsewhere: never sent as files, whatever led to them.

use super::asked::{Asked, Led};
use super::{Disk, Listing, StaticSite};
use crate::clock::Moment;
use crate::files::{FileError, Lookup, media_type};
use crate::proxy::{ScriptRoutes, is_script, path_in_request};
use hyper::Request;
use sooner_http::target;

/// What a configuration names of a site that is not sent.
#[derive(Debug, Default)]
pub struct HiddenScripts {
    /// The names of files that stand for their directory, all of them, if a script is among them.
    index: Box<[Box<[u8]>]>,
    /// The script for paths that lead to nothing.
    fallback: Option<Box<[u8]>>,
}

impl StaticSite {
    /// From now on it shows no script as a file.
    pub fn hide_scripts(&mut self) {
        let mut hidden = HiddenScripts::default();
        self.error_pages.retain(|page| !is_script(&page.path));
        if let Some(disk) = &mut self.disk {
            let mut cache = disk.cache.borrow_mut();
            let all = cache.keep_index(disk.folder, |name| !is_script(name));
            if all.iter().any(|name| is_script(name)) {
                hidden.index = all.into();
            }
            drop(cache);
            hidden.fallback = disk.fallback.take_if(|fallback| is_script(fallback));
        }
        self.hidden = Some(hidden);
    }

    /// Whether it does not show `path` because that is a script.
    pub(super) fn hides(&self, path: &[u8]) -> bool {
        self.hidden.is_some() && is_script(path)
    }

    /// Whether scripts in the directory `path`, as it stands in a request, are not to be had.
    pub(super) fn lists_no_scripts(&self, path: &str, scripts: ScriptRoutes<'_>) -> bool {
        self.hidden.is_some() && !(self.takes_routes && scripts.are_below(path))
    }

    /// The script that stands for the directory `path` below the root: one that is run, and before
    /// which no file stands for it.
    pub(super) fn script_for(
        &self,
        path: &[u8],
        disk: &Disk,
        asked: Asked<'_>,
        now: Moment,
    ) -> Option<Led> {
        let hidden = self.hidden.as_ref()?;
        if hidden.index.is_empty() {
            return None;
        }
        let root = disk.lister.root.root(now.instant).ok()?;
        for name in &hidden.index {
            let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
            let index = [path, slash, name].concat();
            if !root.has_file(&index) {
                continue;
            }
            if !is_script(name) {
                return None;
            }
            let led = self.led_to(&index, false);
            if self.takes_routes && asked.scripts.find(&led.path).is_some() {
                return Some(led);
            }
        }
        None
    }

    /// The script that a request leads to with a method that files do not have.
    pub(super) fn script_of<B>(
        &self,
        request: &Request<B>,
        asked: Asked<'_>,
        disk: &Disk,
        now: Moment,
    ) -> Option<Led> {
        let hidden = self.hidden.as_ref().filter(|_| asked.led.is_none())?;
        if hidden.index.is_empty() && hidden.fallback.is_none() {
            return None;
        }
        let target = target::parse(asked.path(request), disk.dot_files).ok()?;
        let path = self.below_mount(&target.path)?;
        if self.hides(&target.path) {
            return None;
        }
        if target.is_directory
            && let Some(led) = self.script_for(path, disk, asked, now)
        {
            return Some(led);
        }
        let is_missing = match disk.find(path, target.is_directory, now) {
            Ok(Lookup::Directory(_)) => target.is_directory && disk.lister.listing == Listing::Off,
            found => matches!(found, Err(FileError::NotFound)),
        };
        self.last_script(asked)
            .filter(|_| is_missing && !media_type::is_of_file(&target.path))
    }

    /// The script for paths that lead to nothing, if it is run.
    pub(super) fn last_script(&self, asked: Asked<'_>) -> Option<Led> {
        let script = self.hidden.as_ref()?.fallback.as_ref()?;
        let led = self.led_to(script, true);
        asked.scripts.find(&led.path).is_some().then_some(led)
    }

    /// A path below the root, as clients would ask for it.
    pub(super) fn led_to(&self, path: &[u8], is_last_resort: bool) -> Led {
        let path = match &*self.mount {
            b"" => path_in_request(path),
            mount => path_in_request(&[mount, b"/", path].concat()),
        };
        Led {
            path,
            is_last_resort,
        }
    }
}
