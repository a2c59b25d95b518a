//! Scripts of a site: routes to the servers that run them, and what keeps every other script from
//! being run.
//!
//! nginx runs what its locations say, Sooner every script below a root that no place refuses. So
//! the places of scripts let requests through to the route, and behind them all scripts are
//! refused.

use super::action::{Action, Files, NOT_CARRIED};
use super::fastcgi::{ENDING, Run, without_slash};
use super::locations::{Kind, Location, Paths};
use super::script_paths::{
    ends_with, guards, is_of_scripts, longer, own_folder, plain_guards, same_path,
};
use super::site::{Body, Place, Route, refusing};
use super::tidy::{ends_a_segment, may_meet};
use super::translate::Builder;
use super::tree::Directive;
use super::upstreams::{Scripts, Upstream};
use sooner_http::forwarding::routes;

/// In place of the script of a directory, where none may have its own: no file has this name.
pub const NO_INDEX: &str = "off";
const ELSEWHERE: &str = "a site has one root and one pool for scripts, which end in .php, but for those below a path of their own; requests get 501";
const NOT_RUN: &str = "no location runs this script; files that do not exist get 404";
const OTHER_ROOT: &str =
    "the script is below another root than the files; files that do not exist get 404";
const HEADERS: &str =
    "files with a script as their last resort have the headers of the script, and no others";
const SHUT: &str = "not all may have the script; files that do not exist get 404";

/// A route to scripts.
#[derive(Clone, Debug)]
pub struct Domain {
    /// The beginning of its paths.
    pub path: String,
    /// What runs them.
    pub run: Run,
    /// The script that stands for its directory.
    pub index: String,
    /// The script for what is no file.
    pub fallback: Option<String>,
}

/// What is known of the scripts of a site.
#[derive(Debug, Default)]
pub struct Known {
    /// The routes.
    pub domains: Vec<Domain>,
    /// The root of the files of the site, which those who take its route have too.
    pub root: Option<String>,
}

impl<'a> Builder<'_, 'a> {
    /// Finds the routes of scripts, and takes back what they cannot be.
    pub fn scripts(&mut self, acts: &mut [Action]) {
        let rest = self.all.iter().position(Location::is_rest);
        let rest = rest.unwrap_or_default();
        self.known.root = match &acts[rest] {
            Action::Files(files) if files.strip.is_none() => {
                files.root.as_deref().map(without_slash)
            }
            _ => None,
        };
        self.runs(rest, acts);
        for at in 0..acts.len() {
            let Action::Files(files) = &acts[at] else {
                continue;
            };
            if let Some(script) = files.script.clone()
                && let Err(why) = self.front(at, rest, &script, acts)
            {
                let own = &self.all[at];
                let scope = &own.scope;
                let tried = scope.own_one("try_files");
                let tried = tried
                    .or_else(|| scope.own_one("if"))
                    .unwrap_or(own.directive);
                self.actions.leave_out(tried, why);
                match &mut acts[at] {
                    Action::Files(files) if !files.is_one => files.script = None,
                    act => *act = Action::Answer(404, None),
                }
            }
        }
        for at in 0..self.known.domains.len() {
            self.known.domains[at].index = self.index_of_domain(at, rest, acts);
        }
    }

    /// Routes for locations that run scripts.
    fn runs(&mut self, rest: usize, acts: &mut [Action]) {
        let is_rest_passed = matches!(acts[rest], Action::Pass(_));
        let main = match &acts[rest] {
            Action::Files(files) => files
                .script
                .as_deref()
                .and_then(|own| self.handler(own, acts)),
            _ => None,
        };
        let fits_files =
            |run: &Run, known: &Option<String>| known.as_ref().is_none_or(|root| *root == run.root);
        let main = main.map(|(_, run)| run.clone()).or_else(|| {
            let runs = acts.iter().filter_map(|act| match act {
                Action::Run(run) if !run.is_internal => Some(run),
                _ => None,
            });
            let mut runs = runs.filter(|run| fits_files(run, &self.known.root));
            runs.next().map(|run| (**run).clone())
        });
        let main = main.filter(|run| !is_rest_passed && fits_files(run, &self.known.root));
        for at in 0..acts.len() {
            let Action::Run(run) = &acts[at] else {
                continue;
            };
            let run = (**run).clone();
            let is_main = main.as_ref().is_some_and(|own| own.is_same_pool(&run));
            let texts = self.all[at].paths().filter(|paths| paths.is_exact);
            let domain = match texts {
                None => None,
                Some(paths) if !paths.texts.iter().any(|text| is_of_scripts(text)) => None,
                Some(_) if is_main => Some("/".to_owned()),
                Some(paths) => {
                    own_folder(&paths.texts).filter(|_| !self.is_run_before(at, &paths.texts, acts))
                }
            };
            let is_taken = |own: &Domain| {
                domain
                    .as_ref()
                    .is_some_and(|path| same_path(&own.path, path))
                    && !own.run.is_same_pool(&run)
            };
            match domain.clone() {
                Some(path) if !self.known.domains.iter().any(is_taken) => {
                    self.add(path, &run, None)
                }
                _ => {
                    self.actions.leave_out(pass_of(&self.all[at]), ELSEWHERE);
                    acts[at] = Action::Answer(NOT_CARRIED, None);
                }
            }
        }
    }

    fn add(&mut self, path: String, run: &Run, fallback: Option<String>) {
        let like = self
            .known
            .domains
            .iter_mut()
            .find(|own| same_path(&own.path, &path));
        match like {
            Some(own) => {
                if fallback.is_some() {
                    own.fallback = fallback;
                }
                own.run.seconds = longer(own.run.seconds, run.seconds);
            }
            None => self.known.domains.push(Domain {
                path,
                run: run.clone(),
                index: NO_INDEX.into(),
                fallback,
            }),
        }
    }

    /// Whether nginx has these scripts run by a location before this one.
    fn is_run_before(&self, at: usize, texts: &[String], acts: &[Action]) -> bool {
        let before = self.all.iter().zip(acts).take(at);
        let mut runs = before.filter(|(_, act)| matches!(act, Action::Run(_)));
        runs.any(|(own, _)| own.paths().is_some_and(|own| may_meet(&own.texts, texts)))
    }

    /// The location that has a script run.
    pub fn handler<'s>(&self, script: &str, acts: &'s [Action]) -> Option<(usize, &'s Run)> {
        let at = self.all.iter().position(|own| own.fits(script))?;
        match acts.get(at)? {
            Action::Run(run) if run.has(script) => Some((at, run)),
            _ => None,
        }
    }

    /// Has what is no file run by a script; the error is why not.
    fn front(
        &mut self,
        at: usize,
        rest: usize,
        script: &str,
        acts: &[Action],
    ) -> Result<(), &'static str> {
        if routes::check_path(script).is_err() || script.contains('%') {
            return Err(NOT_RUN);
        }
        let (_, run) = self.handler(script, acts).ok_or(NOT_RUN)?;
        let run = run.clone();
        let Action::Files(files) = &acts[at] else {
            return Err(NOT_RUN);
        };
        let root = files.root.as_deref().map(without_slash);
        let is_one_root =
            files.strip.is_none() && root.as_ref() == Some(&run.root) && self.known.root == root;
        if !is_one_root {
            return Err(OTHER_ROOT);
        }
        let location = self.all[at].clone();
        if !self.actions.may_lead(&location.scope, script) {
            return Err(SHUT);
        }
        let own = |path: &str| {
            let mut domains = self.known.domains.iter();
            domains.find(|own| same_path(&own.path, path)).cloned()
        };
        if at == rest {
            let main = own("/").filter(|own| own.run.is_same_pool(&run));
            main.ok_or(NOT_RUN)?;
            self.add("/".into(), &run, Some(script.to_owned()));
            return Ok(());
        }
        // Those of the rest come later in the order, and are known from what it does.
        let of_rest = match &acts[rest] {
            Action::Files(files) => files.script.as_deref(),
            _ => None,
        };
        let is_like_rest =
            of_rest == Some(script) && own("/").is_some_and(|own| own.run.is_same_pool(&run));
        if is_like_rest && plain_guards(&location).is_some() {
            return Ok(());
        }
        let path = location.path.as_str();
        let is_domain = matches!(location.kind, Kind::Prefix { .. })
            && ends_a_segment(path)
            && routes::check_path(path).is_ok();
        let is_free = own(path).is_none_or(|own| own.run.is_same_pool(&run));
        if !is_domain || !is_free || plain_guards(&location).is_none() {
            return Err(NOT_RUN);
        }
        self.add(path.to_owned(), &run, Some(script.to_owned()));
        Ok(())
    }

    /// The place of a location that runs scripts.
    pub fn run_place(&mut self, at: usize, paths: &Paths, run: &Run, acts: &[Action]) {
        let location = self.all[at].clone();
        let mut runnable: Vec<String> = Vec::new();
        let (mut loose, mut others) = (Vec::new(), Vec::new());
        for text in &run.narrowed(&paths.texts) {
            let is_of = |end: &str| ends_with(text, end, paths.ignores_case);
            if is_of(ENDING) {
                runnable.push(text.clone());
            } else if is_of(".php/*") {
                if run.has_info {
                    runnable.push(text.clone());
                }
            } else if is_of(".php*") {
                let script = text.trim_end_matches('*');
                runnable.push(script.to_owned());
                if run.has_info {
                    runnable.push(format!("{script}/*"));
                }
                loose.push(text.clone());
            } else {
                others.push(text.clone());
            }
        }
        if run.is_internal {
            let place = refusing(paths.texts.clone(), paths.ignores_case, 404);
            return self.site.places.push(place);
        }
        self.scripts_below_passed(at, &runnable, acts);
        // Sooner runs the first script of a path; nginx has a name with two looked for whole.
        let has_split = location.scope.one("fastcgi_split_path_info").is_some();
        let goes_on = runnable.iter().any(|text| text.ends_with("/*"));
        if !run.has_info || !(has_split || goes_on) {
            let twice = runnable.iter().filter(|text| text.contains('*'));
            let twice: Vec<String> = twice.map(|text| format!("{text}/*{ENDING}")).collect();
            if !twice.is_empty() {
                self.site.places.push(refusing(twice, true, 404));
            }
        }
        let body = self.body(&location.scope, &Action::Run(Box::new(run.clone())), acts);
        if !runnable.is_empty() {
            self.site.places.push(Place {
                paths: runnable,
                ignores_case: paths.ignores_case,
                body,
            });
        }
        if !loose.is_empty() {
            let place = refusing(loose, paths.ignores_case, 404);
            self.site.places.push(place);
        }
        if !others.is_empty() {
            let why = "scripts end in .php; requests for others get 501";
            self.actions.leave_out(pass_of(&location), why);
            let place = refusing(others, paths.ignores_case, NOT_CARRIED);
            self.site.places.push(place);
        }
    }

    /// nginx looks at expressions before paths that are passed on; Sooner's route to an upstream
    /// has the longer path.
    fn scripts_below_passed(&mut self, at: usize, texts: &[String], acts: &[Action]) {
        let mut refused: Vec<String> = Vec::new();
        for (other, act) in self.all.iter().zip(acts).skip(at + 1) {
            let is_passed = matches!(act, Action::Pass(_));
            let is_prefix = matches!(other.kind, Kind::Prefix { .. });
            let begin = vec![format!("{}*", other.path)];
            if is_passed && is_prefix && !other.is_rest() && may_meet(texts, &begin) {
                refused.extend(guards(&begin[0]).unwrap_or_default());
            }
        }
        if !refused.is_empty() {
            let why = "Sooner runs no scripts below a path that goes to an upstream; these requests get 501";
            self.actions.leave_out(pass_of(&self.all[at]), why);
            self.site.places.push(refusing(refused, true, NOT_CARRIED));
        }
    }

    /// The place of files with a script as their last resort: routes are taken there.
    pub fn front_place(&mut self, at: usize, paths: &Paths, files: &Files, acts: &[Action]) {
        let location = self.all[at].clone();
        if let Some(guards) = plain_guards(&location).filter(|own| !own.is_empty()) {
            self.site.places.push(refusing(guards, true, 404));
        }
        let body = self
            .files_body(&location.scope, files, acts)
            .without_files();
        let script = files.script.clone().unwrap_or_default();
        let body = self.with_headers_of(&script, body, &location, acts);
        self.site.places.push(Place {
            paths: paths.texts.clone(),
            ignores_case: paths.ignores_case,
            body,
        });
    }

    /// What a script answers has the headers of the place that runs it.
    pub fn with_headers_of(
        &mut self,
        script: &str,
        body: Body,
        location: &Location<'a>,
        acts: &[Action],
    ) -> Body {
        let Some((at, _)) = self.handler(script, acts) else {
            return body;
        };
        let scope = self.all[at].scope.clone();
        let headers = self.headers_of(&scope, false);
        if headers != body.headers {
            let own = location.scope.one("add_header");
            let own = own.or_else(|| scope.one("add_header"));
            self.actions
                .leave_out(own.unwrap_or(location.directive), HEADERS);
        }
        Body { headers, ..body }
    }

    /// Refuses all scripts that no place before has let through, and writes the routes.
    pub fn close_scripts(&mut self, rest_answers: bool) {
        let domains = std::mem::take(&mut self.known.domains);
        if domains.is_empty() {
            return;
        }
        if !rest_answers {
            let has_all = domains.iter().any(|own| own.path == "/");
            let outer = domains.iter().filter(|own| !has_all || own.path == "/");
            let paths = outer.map(|own| format!("{}*", own.path));
            let all: Vec<String> = paths.filter_map(|path| guards(&path)).flatten().collect();
            self.site.places.push(refusing(all, true, 404));
            for text in std::mem::take(&mut self.closed) {
                self.site.places.push(Place {
                    paths: vec![text],
                    ignores_case: false,
                    body: Body {
                        redirects: Vec::new(),
                        ..self.site.body.clone()
                    },
                });
            }
        }
        for own in domains {
            self.site.routes.push(Route {
                path: own.path,
                upstream: Upstream {
                    scripts: Some(Scripts {
                        root: own.run.root,
                        index: own.index,
                        fallback: own.fallback,
                    }),
                    ..own.run.upstream
                },
                strips: false,
                files_first: false,
                seconds: own.run.seconds,
                compress: None,
            });
        }
    }

    /// A place that lets requests through to a route, with the scripts among them refused.
    pub fn guard_scripts(&mut self, text: &str) {
        if !self.known.domains.is_empty()
            && let Some(guards) = guards(text)
        {
            self.site.places.push(refusing(guards, true, 404));
        }
    }
}

impl Run {
    fn is_same_pool(&self, other: &Self) -> bool {
        self.root == other.root && self.upstream == other.upstream
    }
}

/// The directive that has scripts run, for remarks.
fn pass_of<'a>(location: &Location<'a>) -> &'a Directive {
    let own = location.scope.own_one("fastcgi_pass");
    own.unwrap_or(location.directive)
}
