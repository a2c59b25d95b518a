//! From one `server` to one site.

use super::action::{Action, Actions, NOT_CARRIED, Pass};
use super::locations::{self, Kind, Location, Paths};
use super::returns::{Place as At, Redirect, Return, Rewrite, read_rewrite};
use super::scope::Scope;
use super::servers::{self, Plan};
use super::site::{Body, Place, Route, Site};
use super::tree::Directive;
use super::upstreams::Blocks;
use crate::ini::ImportError;
use sooner_http::forwarding::routes;
use std::collections::BTreeSet;

/// What the whole file says, and what is found out on the way.
pub struct Common<'a> {
    /// `upstream` blocks.
    pub blocks: Blocks<'a>,
    /// Names of directives that need no word.
    pub moot: BTreeSet<String>,
}

/// One site on its way.
pub struct Builder<'s, 'a> {
    /// The site.
    pub site: Site,
    /// Its locations, as they are looked at.
    pub all: Vec<Location<'a>>,
    /// What reads them.
    pub actions: Actions<'s, 'a>,
    server: Scope<'a>,
}

/// Makes a site of a plan.
pub fn site<'a>(plan: &Plan<'_, 'a>, common: &mut Common<'a>) -> Result<Site, ImportError> {
    let server = plan.server;
    let (all, named) = locations::collect(server.directive, &server.scope)?;
    let mut builder = Builder {
        site: Site {
            origin: format!("server ({})", servers::place(server.directive)),
            hosts: plan.hosts.clone(),
            scheme: plan.scheme,
            is_default: plan.is_default.contains(&true),
            ..Site::default()
        },
        all,
        actions: Actions {
            blocks: &common.blocks,
            named: &named,
            scheme: plan.scheme,
            name: plan.hosts.first().map(String::as_str),
            left_out: server.left_out.clone(),
        },
        server: server.scope.clone(),
    };
    match &plan.always {
        Some(always) => builder.always(always),
        None => builder.whole(),
    }
    if plan.always.is_none() {
        builder.remarks(server.directive.inside(), &mut common.moot);
    }
    let mut site = builder.site;
    site.left_out = builder.actions.left_out;
    Ok(site)
}

impl<'a> Builder<'_, 'a> {
    fn everything(&mut self, status: u16, text: Option<String>) {
        self.site.places.push(Place {
            paths: vec!["/*".into()],
            ignores_case: false,
            body: Body {
                answer: Some((status, text)),
                headers: self.site.body.headers.clone(),
                ..Body::default()
            },
        });
    }

    fn always(&mut self, always: &Result<Return, (Directive, String)>) {
        self.site.body.index = vec!["index.html".into()];
        match always {
            Ok(Return::Redirect(redirects)) => {
                self.site.body.redirects.clone_from(redirects);
                let scope = self.server.clone();
                self.site.body.headers = self.headers(&scope);
            }
            Ok(Return::Fixed(status, text)) => self.everything(*status, text.clone()),
            Ok(Return::Close) => {
                let returned = self.server.own_one("return").cloned();
                if let Some(returned) = returned {
                    let why = "no connection is closed without an answer; requests get 403";
                    self.actions.leave_out(&returned, why);
                }
                self.everything(403, None);
            }
            Err((directive, why)) => {
                self.actions
                    .leave_out(directive, &format!("{why}; requests get 501"));
                self.everything(NOT_CARRIED, None);
            }
        }
    }

    fn whole(&mut self) {
        let locations = std::mem::take(&mut self.all);
        let acts: Vec<Action> = locations.iter().map(|own| self.actions.of(own)).collect();
        self.all = locations;
        let rest = self
            .all
            .iter()
            .position(Location::is_rest)
            .unwrap_or_default();
        let scope = self.all[rest].scope.clone();
        self.site.body = Body {
            answer: None,
            redirects: Vec::new(),
            ..self.body(&scope, &acts[rest], &acts)
        };
        self.page_folder(&acts);
        self.site.precompressed = precompressed(&self.server);
        self.redirects_of_server();
        for (at, act) in acts.iter().enumerate() {
            if at != rest {
                self.place(at, act, &acts);
            }
        }
        self.rest(&acts[rest]);
        self.tidy();
    }

    /// The location of all paths that are in no other becomes the site itself.
    fn rest(&mut self, act: &Action) {
        match act {
            Action::Files(_) => {}
            Action::Answer(status, text) => self.everything(*status, text.clone()),
            Action::Redirect(redirects) => self.site.body.redirects.extend(redirects.clone()),
            Action::Pass(pass) => self.route("/", pass),
        }
    }

    fn route(&mut self, path: &str, pass: &Pass) {
        self.site.routes.push(Route {
            path: path.to_owned(),
            upstream: pass.target.upstream.clone(),
            strips: pass.strips && path != "/",
            files_first: pass.files.is_some(),
            seconds: pass.seconds,
        });
    }

    /// What a location is beside the rest of its site.
    fn place(&mut self, at: usize, act: &Action, acts: &[Action]) {
        let location = self.all[at].clone();
        let narrows = matches!(act, Action::Answer(400.., _));
        let Some(paths) = location.paths() else {
            let why = if narrows || matches!(act, Action::Pass(_)) {
                self.site
                    .places
                    .insert(0, refusing(vec!["/*".into()], false, 403));
                "which paths it is about cannot be said; all of the site are refused with 403"
            } else {
                "which paths it is about cannot be said"
            };
            self.actions.leave_out(location.directive, why);
            return;
        };
        if !paths.is_exact && !narrows {
            if matches!(act, Action::Pass(_)) {
                let why = "which paths it is about cannot be said; these and others get 501";
                self.actions.leave_out(location.directive, why);
                self.site
                    .places
                    .push(refusing(paths.texts, paths.ignores_case, NOT_CARRIED));
            } else {
                let why = "which paths it is about cannot be said; write them with stars";
                self.actions.leave_out(location.directive, why);
            }
            return;
        }
        if location.path.contains("(?!well-known") {
            // What the expression leaves out.
            self.site.places.push(Place {
                paths: vec!["/.well-known/*".into()],
                ignores_case: false,
                body: self.site.body.clone().without_files(),
            });
        } else if !paths.is_exact {
            let why = "these paths cannot be told from others like them, which are refused as well";
            self.actions.leave_out(location.directive, why);
        }
        if let Action::Pass(pass) = act {
            self.passed(&location, &paths, pass, acts);
            return;
        }
        let body = self.body(&location.scope, act, acts);
        self.site.places.push(Place {
            paths: paths.texts,
            ignores_case: paths.ignores_case,
            body,
        });
    }

    /// Routes for a location, and a place where another would come before them.
    fn passed(&mut self, location: &Location<'a>, paths: &Paths, pass: &Pass, acts: &[Action]) {
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
        let Some(beginnings) = fitting.filter(|all| !is_whole_host(all)) else {
            let why = "a route is about paths that begin with whole segments; these get 501";
            self.actions.leave_out(location.directive, why);
            self.site.places.push(refusing(
                paths.texts.clone(),
                paths.ignores_case,
                NOT_CARRIED,
            ));
            return;
        };
        for path in &beginnings {
            self.route(path, pass);
        }
        self.below_exact(location, &beginnings, acts);
        self.lead_to_slash(location, pass);
        let body = Body {
            headers: self.headers(&location.scope),
            redirects: Vec::new(),
            ..self.site.body.clone().without_files()
        };
        self.site.places.push(Place {
            paths: paths.texts.clone(),
            ignores_case: false,
            body,
        });
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
            match other.map(|at| (&acts[at], self.all[at].path.clone())) {
                Some((Action::Pass(pass), _)) if !pass.strips => {
                    let pass = pass.clone();
                    self.route(&below, &pass);
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

    /// `rewrite` of the server, which comes before all locations, and of `location /`.
    fn redirects_of_server(&mut self) {
        let of_server = self.server.own();
        let rest = self.all.iter().find(|own| own.is_rest());
        let of_rest = rest
            .map(|own| own.scope.own())
            .filter(|own| !std::ptr::eq(*own, of_server));
        let rest = of_rest.unwrap_or_default();
        for (own, is_server) in (of_server.iter().map(|own| (own, true)))
            .chain(rest.iter().map(|own| (own, false)))
            .filter(|(own, _)| own.name == "rewrite")
        {
            let at = At {
                scheme: self.actions.scheme,
                name: self.actions.name,
                paths: &[],
            };
            match read_rewrite(own, at) {
                Ok(Rewrite::Redirect(redirects)) => {
                    for redirect in redirects {
                        if is_server && redirect.from != "/*" {
                            self.site.places.push(Place {
                                paths: vec![redirect.from.clone()],
                                ignores_case: false,
                                body: Body {
                                    redirects: vec![redirect],
                                    ..self.site.body.clone()
                                }
                                .without_files(),
                            });
                        } else if !is_server {
                            self.site.body.redirects.push(redirect);
                        } else {
                            self.site.places.clear();
                            self.site.places.push(Place {
                                paths: vec!["/*".into()],
                                ignores_case: false,
                                body: Body {
                                    redirects: vec![redirect],
                                    ..self.site.body.clone()
                                }
                                .without_files(),
                            });
                        }
                    }
                }
                Ok(Rewrite::Strip(_)) => {
                    self.actions
                        .leave_out(own, "paths are not rewritten within Sooner");
                }
                Err(why) => self.actions.leave_out(own, &why),
            }
        }
    }

    /// Leaves out what says nothing: a place that is as its site, with nothing behind it that would
    /// have come before.
    fn tidy(&mut self) {
        let redirects: Vec<Redirect> = std::mem::take(&mut self.site.body.redirects);
        let mut kept: Vec<Redirect> = Vec::new();
        for redirect in redirects {
            let is_covered = kept.iter().any(|own| {
                let prefix = own.from.strip_suffix('*');
                own.from == redirect.from
                    || prefix.is_some_and(|prefix| redirect.from.starts_with(prefix))
            });
            if !is_covered {
                kept.push(redirect);
            }
        }
        self.site.body.redirects = kept;
        let has_redirects = !self.site.body.redirects.is_empty();
        let has_routes = !self.site.routes.is_empty();
        let mut at = self.site.places.len();
        while at > 0 {
            at -= 1;
            let place = &self.site.places[at];
            let later = &self.site.places[at + 1..];
            let has_later = later
                .iter()
                .any(|other| may_meet(&place.paths, &other.paths));
            let body = &place.body;
            let is_plain_pass =
                body.root.is_none() && body.answer.is_none() && body.redirects.is_empty();
            let is_as_site = if is_plain_pass {
                body.headers == self.site.body.headers
            } else {
                !has_routes && *body == self.site.body
            };
            if is_as_site && !has_later && !has_redirects {
                self.site.places.remove(at);
            }
        }
    }
}

impl Body {
    /// The same without files of its own.
    fn without_files(self) -> Self {
        Self {
            root: None,
            strip: None,
            fallback: None,
            answer: None,
            ..self
        }
    }

    /// The same; without a directory there is nothing.
    fn with_own_root(self) -> Self {
        match self.root {
            Some(_) => self,
            None => Self {
                answer: Some((404, None)),
                ..self
            },
        }
    }
}

fn refusing(paths: Vec<String>, ignores_case: bool, status: u16) -> Place {
    Place {
        paths,
        ignores_case,
        body: Body {
            answer: Some((status, None)),
            ..Body::default()
        },
    }
}

/// Whether a path may be in both.
fn may_meet(paths: &[String], others: &[String]) -> bool {
    let is_apart = |one: &String, other: &String| {
        let beginning = |text: &str| text.split('*').next().unwrap_or_default().to_owned();
        let (one, other) = (beginning(one), beginning(other));
        !one.starts_with(&other) && !other.starts_with(&one)
    };
    let mut pairs = paths
        .iter()
        .flat_map(|one| others.iter().map(move |other| (one, other)));
    pairs.any(|(one, other)| !is_apart(one, other))
}

/// Whether a path may end here: `/api` and `/api/`, and not `/img-`.
fn ends_a_segment(path: &str) -> bool {
    path.ends_with(|last: char| last == '/' || last.is_ascii_alphanumeric())
}

fn precompressed(scope: &Scope<'_>) -> Vec<&'static str> {
    fn is_on(level: &[Directive], name: &str) -> bool {
        level.iter().any(|own| {
            let is_own = own.name == name && matches!(own.first(), "on" | "always");
            is_own || (own.name == "location" && is_on(own.inside(), name))
        })
    }
    let is_said = |name: &str| {
        let outer = scope.one(name).filter(|own| own.first() != "off");
        outer.is_some() || is_on(scope.own(), name)
    };
    let codings = [("brotli_static", "br"), ("gzip_static", "gzip")];
    codings
        .into_iter()
        .filter(|(name, _)| is_said(name))
        .map(|(_, coding)| coding)
        .collect()
}
