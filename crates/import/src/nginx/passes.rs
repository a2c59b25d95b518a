//! Locations with requests that go to an upstream: their routes, and places where another location
//! would come before these.

use super::action::{Action, NOT_CARRIED, Pass};
use super::compression;
use super::locations::{Kind, Location, Paths};
use super::returns::Redirect;
use super::site::{Body, Place, Route, refusing};
use super::tidy::{ends_a_segment, may_meet};
use super::translate::Builder;
use sooner_http::forwarding::routes;

const SEGMENTS: &str = "a route is about paths that begin with whole segments; these get 501";
const OTHER_FILES: &str = "files before an upstream are below the root of the site; these requests go to the upstream alone";
const ONE_TIME: &str =
    "these paths have the time of the route that they take, which is another one";

impl Pass {
    /// Whether requests get to the same servers, with the same paths and behind the same files.
    fn leads_like(&self, other: &Self) -> bool {
        let is_same_target = self.target.upstream == other.target.upstream;
        is_same_target && self.strips == other.strips && self.files == other.files
    }
}

impl<'a> Builder<'_, 'a> {
    /// A route for a path.
    pub fn route(&mut self, path: &str, pass: &Pass, has_files: bool, compress: Option<bool>) {
        self.site.routes.push(Route {
            path: path.to_owned(),
            upstream: pass.target.upstream.clone(),
            strips: pass.strips && path != "/",
            files_first: has_files,
            seconds: pass.seconds,
            compress,
        });
    }

    /// Routes for a location, and a place where another would come before them.
    pub fn passed(&mut self, at: usize, paths: &Paths, pass: &Pass, acts: &[Action]) {
        let location = self.all[at].clone();
        let is_exact = |text: &String| !text.contains('*');
        let beginnings: Option<Vec<String>> = paths
            .texts
            .iter()
            .map(|text| match text.strip_suffix('*') {
                Some(begin) if !begin.contains('*') && ends_a_segment(begin) => {
                    Some(begin.to_owned())
                }
                None if is_exact(text) => Some(text.clone()),
                _ => None,
            })
            .collect();
        let fitting = beginnings.filter(|all| {
            !paths.ignores_case && all.iter().all(|path| routes::check_path(path).is_ok())
        });
        let is_whole_host = |all: &Vec<String>| all.iter().any(|path| path == "/");
        if let Some(beginnings) = fitting.filter(|all| !is_whole_host(all)) {
            let is_on = compression::is_on(&location.scope);
            let compress = (is_on != self.compress[1]).then_some(is_on);
            let has_files = self.has_files_of_site(&location, pass);
            for path in &beginnings {
                self.route(path, pass, has_files, compress);
            }
            self.below_exact(&location, &beginnings, acts);
            self.lead_to_slash(&location, pass);
        } else if let Some(taken) = self.is_led_alike(at, paths, pass, acts) {
            if let Some(own) = location.scope.one("proxy_read_timeout")
                && taken.seconds != pass.seconds
            {
                self.actions.leave_out(own, ONE_TIME);
            }
            self.compressed(&location);
        } else {
            self.actions.leave_out(location.directive, SEGMENTS);
            let place = refusing(paths.texts.clone(), paths.ignores_case, NOT_CARRIED);
            self.site.places.push(place);
            return;
        }
        let body = Body {
            headers: self.headers(&location.scope),
            errors: self.errors_of_place(&location.scope),
            redirects: Vec::new(),
            ..self.site.body.clone().without_files()
        };
        self.site.places.push(Place {
            paths: paths.texts.clone(),
            ignores_case: paths.ignores_case,
            body,
        });
    }

    /// What the rest of the site does, if these paths need no route of their own: all routes that
    /// they may take lead where the location does.
    fn is_led_alike<'s>(
        &self,
        at: usize,
        paths: &Paths,
        pass: &Pass,
        acts: &'s [Action],
    ) -> Option<&'s Pass> {
        let rest = self.all.iter().position(Location::is_rest)?;
        let Action::Pass(taken) = &acts[rest] else {
            return None;
        };
        // What comes before has a place of its own.
        let later = self.all.iter().zip(acts).skip(at + 1);
        let mut led = later.filter_map(|(own, act)| match act {
            Action::Pass(other) if own.kind != Kind::Exact => Some((beginnings(own), other)),
            _ => None,
        });
        let is_other =
            led.any(|(begin, other)| may_meet(&paths.texts, &begin) && !other.leads_like(pass));
        let mut scripts = self.known.domains.iter();
        let may_run = scripts.any(|own| may_meet(&paths.texts, &[format!("{}*", own.path)]));
        (taken.leads_like(pass) && !is_other && !may_run).then_some(&**taken)
    }

    /// Whether files come before the upstream: those of the site, and no others. Says where they do
    /// not.
    fn has_files_of_site(&mut self, location: &Location<'a>, pass: &Pass) -> bool {
        let Some(files) = &pass.files else {
            return false;
        };
        let is_of_site = files.root == self.site.body.root && files.strip == self.site.body.strip;
        if !is_of_site {
            let scope = &location.scope;
            let tried = scope.own_one("try_files").or_else(|| scope.own_one("if"));
            self.actions
                .leave_out(tried.unwrap_or(location.directive), OTHER_FILES);
        }
        is_of_site
    }

    /// nginx leads from `/a` to the location `/a/` that passes requests on.
    fn lead_to_slash(&mut self, location: &Location<'a>, pass: &Pass) {
        let Some(bare) = location
            .path
            .strip_suffix('/')
            .filter(|bare| !bare.is_empty())
        else {
            return;
        };
        let is_prefix = matches!(location.kind, Kind::Prefix { .. });
        let is_taken = self
            .all
            .iter()
            .any(|own| own.path == bare && own.kind != Kind::Named);
        if !is_prefix || is_taken || pass.files.is_some() {
            return;
        }
        if let Ok(redirect) = Redirect::new(bare, &location.path, 301) {
            let body = Body {
                redirects: vec![redirect],
                headers: self.headers(&location.scope),
                ..self.site.body.clone().without_files()
            };
            self.site.places.push(Place {
                paths: vec![bare.to_owned()],
                ignores_case: false,
                body,
            });
        }
    }

    /// A route is also about what is below its path; what `=` does not mean stays where it was.
    fn below_exact(&mut self, location: &Location<'a>, beginnings: &[String], acts: &[Action]) {
        if location.kind != Kind::Exact {
            return;
        }
        for path in beginnings {
            let below = format!("{path}/");
            let other = self.all.iter().position(|own| own.fits(&below));
            match other.map(|at| (&acts[at], self.all[at].clone())) {
                Some((Action::Pass(pass), other)) if !pass.strips => {
                    let has_files = self.has_files_of_site(&other, pass);
                    self.route(&below, pass, has_files, None);
                }
                Some((Action::Files(files), _)) => {
                    let body = self.files_body(&location.scope.clone(), files, acts);
                    self.site.places.push(Place {
                        paths: vec![format!("{below}*")],
                        ignores_case: false,
                        body: body.with_own_root(),
                    });
                }
                _ => {}
            }
        }
    }
}

/// The paths of a location that may have routes.
fn beginnings(location: &Location<'_>) -> Vec<String> {
    let mut texts = location.paths().map(|own| own.texts).unwrap_or_default();
    texts.retain(|text| !text.trim_end_matches('*').contains('*'));
    texts
}
