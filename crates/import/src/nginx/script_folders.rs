//! Directories, and the scripts that stand for them.

use super::action::{Action, Files};
use super::fastcgi::without_slash;
use super::locations::Kind;
use super::script_paths::{directories, same_path};
use super::scripts::{Domain, NO_INDEX};
use super::site::{Place, refusing};
use super::translate::Builder;

const ORDER: &str = "a script that stands for its directory goes before a file that does";
/// A directory that no configuration names.
const ANY: &str = "some-folder-or-other";

impl Builder<'_, '_> {
    /// The script that stands for its directory.
    pub fn index_of_domain(&mut self, at: usize, rest: usize, acts: &[Action]) -> String {
        let path = self.known.domains[at].path.clone();
        let has_fallback = self.known.domains[at].fallback.is_some();
        let like = self.all.iter().position(|own| same_path(&own.path, &path));
        let from = like.unwrap_or(rest);
        let scope = self.all[from].scope.clone();
        let has_directories = match &acts[from] {
            Action::Files(files) => files.has_directories,
            _ => true,
        };
        let Some(own) = scope.one("index").filter(|_| has_directories) else {
            return NO_INDEX.into();
        };
        let folder = path.trim_end_matches('/');
        let is_run = |name: &&String, folder: &str| {
            let script = format!("{folder}/{name}");
            let run = self.handler(&script, acts);
            !name.contains(['/', '$']) && run.is_some_and(|(_, run)| run.only.is_none())
        };
        let everywhere = own
            .args
            .iter()
            .position(|name| is_run(&name, &format!("{folder}/{ANY}")));
        if let Some(place) = everywhere {
            if place > 0 {
                self.actions.leave_out(own, ORDER);
            }
            return own.args[place].clone();
        }
        let only_here = own.args.iter().find(|name| is_run(name, folder)).cloned();
        match (only_here, &self.known.root) {
            // The directories below it are files.
            (Some(name), Some(_)) if !has_fallback => {
                self.closed.push(format!("{folder}/*/"));
                name
            }
            _ => NO_INDEX.into(),
        }
    }

    /// Whether this name is that of the script that stands for its directory.
    pub fn runs_index(&self, name: &str) -> bool {
        let is_it = |own: &Domain| {
            own.index == name
                || own
                    .fallback
                    .as_ref()
                    .is_some_and(|it| it.ends_with(&format!("/{name}")))
        };
        self.known.domains.iter().any(is_it)
    }

    /// A directory is answered by the script that stands for it, and so is refused where that is.
    pub fn guard_directories(&mut self, at: usize, acts: &[Action]) {
        let is_run = |act: &Action| matches!(act, Action::Run(_));
        let has_run_behind = acts.iter().skip(at + 1).any(is_run);
        let Some(paths) = self.all[at]
            .paths()
            .filter(|_| has_run_behind && !is_run(&acts[at]))
        else {
            return;
        };
        let mut refused: Vec<String> = Vec::new();
        for domain in self
            .known
            .domains
            .iter()
            .filter(|own| own.index != NO_INDEX)
        {
            for text in &paths.texts {
                for own in directories(text, &domain.index, paths.ignores_case) {
                    if !paths.texts.contains(&own) && !refused.contains(&own) {
                        refused.push(own);
                    }
                }
            }
        }
        if !refused.is_empty() {
            let status = match acts[at] {
                Action::Answer(status @ 400.., _) => status,
                _ => 404,
            };
            let place = refusing(refused, paths.ignores_case, status);
            self.site.places.push(place);
        }
    }

    /// Lets directories of a location through to the route, where a script may stand for them.
    pub fn directories(&mut self, at: usize, files: &Files, acts: &[Action]) {
        let location = self.all[at].clone();
        let is_prefix = matches!(location.kind, Kind::Prefix { .. });
        let is_one = location.kind == Kind::Exact && location.path.ends_with('/');
        let folder = location.path.trim_end_matches('/');
        let names = location.scope.one("index").map(|own| own.args.iter());
        let mut scripts = names.into_iter().flatten().map(|name| match is_prefix {
            true => format!("{folder}/{ANY}/{name}"),
            false => format!("{folder}/{name}"),
        });
        let is_run = |own: &String| {
            let run = self.handler(own, acts);
            !own.contains('$') && run.is_some_and(|(_, run)| run.only.is_none() || is_one)
        };
        let script = scripts.find(is_run);
        let may_be = files.strip.is_none() && files.has_directories && (is_prefix || is_one);
        let (Some(own), Some(script)) = (self.domain_of(folder).filter(|_| may_be), script) else {
            return;
        };
        let mut paths = vec![format!("{folder}/")];
        let root = files.root.as_deref().map(without_slash);
        // What is no script is a file of the site.
        let is_of_site = own.path == "/" && root == self.known.root;
        if is_of_site && is_prefix {
            paths.push(format!("{folder}/*/"));
        } else if !is_of_site && (own.path == "/" || root.as_ref() != Some(&own.run.root)) {
            return;
        }
        if is_prefix {
            self.guard_scripts(&format!("{folder}/*"));
        }
        let body = self
            .files_body(&location.scope, files, acts)
            .without_files();
        let body = self.with_headers_of(&script, body, &location, acts);
        self.site.places.push(Place {
            paths,
            ignores_case: false,
            body,
        });
    }

    /// The same of the rest of a site, where its files have other headers than its scripts.
    pub fn directories_of_rest(&mut self, rest: usize, acts: &[Action]) {
        let Action::Files(files) = &acts[rest] else {
            return;
        };
        let main = self.domain_of("").filter(|own| own.index != NO_INDEX);
        let Some(main) = main.filter(|_| files.script.is_none()) else {
            return;
        };
        let run = self.handler(&format!("/{ANY}/{}", main.index), acts);
        let Some(scope) = run.map(|(at, _)| self.all[at].scope.clone()) else {
            return;
        };
        if self.headers_of(&scope, false) != self.site.body.headers {
            self.directories(rest, files, acts);
        }
    }

    /// The scripts that the route of a path runs.
    fn domain_of(&self, path: &str) -> Option<Domain> {
        let path = format!("{path}/");
        let fits =
            |own: &&Domain| path.starts_with(&format!("{}/", own.path.trim_end_matches('/')));
        let fitting = self.known.domains.iter().filter(fits);
        fitting.max_by_key(|own| own.path.len()).cloned()
    }
}
