//! From one `server` to one site.

use super::access::{self, Access};
use super::action::{Action, Actions, NOT_CARRIED};
use super::compression;
use super::facts::Facts;
use super::locations::{self, Location};
use super::passwords;
use super::returns::{Redirect, Return};
use super::scope::Scope;
use super::scripts::Known;
use super::servers::{self, Plan};
use super::site::{Body, Place, Site, refusing};
use super::tidy::precompressed;
use super::tree::Directive;
use super::upstreams::Blocks;
use crate::ini::ImportError;
use std::collections::BTreeSet;
use std::path::PathBuf;

const BY_CASE: &str = "redirects tell capitals apart; these paths in another spelling get 501";

/// What the whole file says, and what is found out on the way.
pub struct Common<'a> {
    /// `upstream` blocks.
    pub blocks: Blocks<'a>,
    /// Names of directives that need no word.
    pub moot: BTreeSet<String>,
    /// The folder of relative names.
    pub prefix: PathBuf,
    /// Whether answers are compressed unless a server says otherwise.
    pub compress: bool,
}

/// One site on its way.
pub struct Builder<'s, 'a> {
    /// The site.
    pub site: Site,
    /// Its locations, as they are looked at.
    pub all: Vec<Location<'a>>,
    /// What reads them.
    pub actions: Actions<'s, 'a>,
    /// Locations of which no rule says how long answers may be kept, but a header.
    pub plain: Vec<usize>,
    /// Whether that is so of the one that is looked at.
    pub is_plain: bool,
    /// What is known of scripts.
    pub known: Known,
    /// Paths that are files although a route has them.
    pub closed: Vec<String>,
    /// What holds in the server.
    pub server: Scope<'a>,
    /// Whether answers of all sites are compressed, and of this one.
    pub compress: [bool; 2],
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
        actions: Actions {
            blocks: &common.blocks,
            all: all.clone(),
            named: &named,
            prefix: &common.prefix,
            shut: Vec::new(),
            facts: Facts {
                scheme: plan.scheme,
                hosts: plan.hosts.clone(),
                is_default: plan.is_default.contains(&true),
            },
            name: server.name.as_deref(),
            left_out: server.left_out.clone(),
        },
        all,
        plain: Vec::new(),
        is_plain: plan.always.is_some(),
        known: Known::default(),
        closed: Vec::new(),
        server: server.scope.clone(),
        compress: [common.compress; 2],
    };
    let over_tls = server
        .shut_over_tls()
        .filter(|_| plan.scheme != Some("http"));
    match (&over_tls, &plan.always) {
        (Some((rule, why)), _) => builder.shut(rule, why),
        (None, Some(always)) => {
            builder.always(always);
            builder.before_return(plan.before);
        }
        (None, None) => {
            builder.whole();
            builder.remarks(server.directive.inside(), &mut common.moot);
        }
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
                errors: self.site.body.errors.clone(),
                ..Body::default()
            },
        });
    }

    /// Refuses everything.
    fn shut(&mut self, rule: &Directive, why: &str) {
        self.site.body.index = vec!["index.html".into()];
        self.actions.leave_out(rule, why);
        self.everything(403, None);
    }

    fn always(&mut self, always: &Result<Return, (&Directive, String)>) {
        self.site.body.index = vec!["index.html".into()];
        match always {
            Ok(Return::Redirect(redirects)) => {
                self.site.body.redirects.clone_from(redirects);
                let scope = self.server.clone();
                self.actions.remarks_on_redirects(&scope, redirects);
                self.site.body.headers = self.headers(&scope);
                if let Some(Access::Shut(rule, _)) =
                    access::shut_by_condition(&scope, &self.actions.facts)
                {
                    let why = "Sooner has no variables; all are led elsewhere";
                    self.actions.leave_out(rule, why);
                }
            }
            Ok(Return::Fixed(status, text)) => {
                let scope = self.server.clone();
                if let Some(Access::Shut(rule, why)) =
                    access::shut_by_condition(&scope, &self.actions.facts).filter(|_| *status < 400)
                {
                    return self.shut(rule, why);
                }
                if text.is_some() {
                    self.actions.typed(&scope);
                }
                self.everything(*status, text.clone());
            }
            Ok(Return::Close) => {
                if let Some(returned) = returned(&self.server, "444") {
                    let why = "no connection is closed without an answer; requests get 403";
                    self.actions.leave_out(returned, why);
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
        let plan = passwords::plan(&locations, self.actions.prefix, &self.actions.facts);
        self.actions.shut.clone_from(&plan.shut);
        let mut acts: Vec<Action> = locations.iter().map(|own| self.actions.of(own)).collect();
        self.actions.internal(&locations, &acts);
        self.all = locations;
        self.scripts(&mut acts);
        self.keep(&acts);
        let rest = self
            .all
            .iter()
            .position(Location::is_rest)
            .unwrap_or_default();
        let scope = self.all[rest].scope.clone();
        self.is_plain = self.plain.contains(&rest);
        self.compress[1] = compression::is_on(&scope);
        let [of_all, own] = self.compress;
        self.site.compress = (of_all != own).then_some(own);
        let folder = self.page_folder(rest, &acts);
        self.site.body.root.clone_from(&folder);
        self.site.body = Body {
            answer: None,
            redirects: Vec::new(),
            ..self.body(&scope, &acts[rest], &acts)
        };
        if let Action::Files(own) = &acts[rest]
            && let Some(script) = &own.script
        {
            let body = std::mem::take(&mut self.site.body);
            let location = self.all[rest].clone();
            self.site.body = self.with_headers_of(script, body, &location, &acts);
        }
        if self.site.body.root.is_none() {
            self.site.body.root = folder;
        }
        self.site.precompressed = precompressed(&self.server);
        self.redirects_of_server();
        for (at, act) in acts.iter().enumerate() {
            if at != rest {
                self.is_plain = self.plain.contains(&at);
                self.refuse_paths(at);
                let before = self.site.places.len();
                self.place(at, act, &acts);
                self.guard_directories(at, &acts);
                self.keep_within(at, before, &plan);
            }
        }
        self.is_plain = self.plain.contains(&rest);
        let rest_answers = matches!(acts[rest], Action::Answer(..) | Action::Redirect(_));
        self.directories_of_rest(rest, &acts);
        self.close_scripts(rest_answers);
        self.refuse_paths(rest);
        self.rest(&acts[rest]);
        self.refuse_paths_of_server();
        self.last_pages();
        self.links();
        self.tidy();
        self.pages_of_unavailable();
        self.site.auth = plan.tables;
        for (rule, why) in plan.remarks {
            self.actions.leave_out(rule, why);
        }
    }

    /// Refuses what is not to be within the password of a location, or would be without one.
    fn keep_within(&mut self, at: usize, before: usize, plan: &passwords::Plan<'a>) {
        if plan.whole.contains(&at) {
            let path = self.all[at].path.clone();
            let begin = vec![format!("{path}*")];
            for place in &mut self.site.places[before..] {
                if place.paths == begin {
                    place.paths = vec![path.clone(), format!("{path}/*")];
                }
            }
            self.site.places.push(refusing(begin, false, 403));
        }
        for (_, paths) in plan.ahead.iter().filter(|(own, _)| *own == at) {
            let place = refusing(paths.clone(), true, 403);
            self.site.places.insert(before, place);
        }
        for (_, paths) in plan.behind.iter().filter(|(own, _)| *own == at) {
            self.site.places.push(refusing(paths.clone(), false, 403));
        }
    }

    /// The location of all paths that are in no other becomes the site itself.
    fn rest(&mut self, act: &Action) {
        match act {
            Action::Files(_) => {}
            Action::Answer(status, text) => self.everything(*status, text.clone()),
            Action::Redirect(redirects) => self.site.body.redirects.extend(redirects.clone()),
            Action::Pass(pass) => {
                let has_files = pass.files.is_some();
                self.route("/", pass, has_files, None);
            }
            // It has a path that ends like a script.
            Action::Run(_) => {}
        }
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
            self.guard_scripts("/.well-known/*");
            self.site.places.push(Place {
                paths: vec!["/.well-known/*".into()],
                ignores_case: false,
                body: self.site.body.clone().without_files(),
            });
        } else if !paths.is_exact {
            let why = "these paths cannot be told from others like them, which are refused as well";
            self.actions.leave_out(location.directive, why);
        }
        match act {
            Action::Pass(pass) => return self.passed(at, &paths, pass, acts),
            Action::Run(run) => return self.run_place(at, &paths, run, acts),
            Action::Files(files) => {
                self.compressed(&location);
                if files.script.is_some() {
                    return self.front_place(at, &paths, files, acts);
                }
                self.directories(at, files, acts);
            }
            _ => {}
        }
        let body = self.body(&location.scope, act, acts);
        let is_of_all = |own: &Redirect| own.from == "/*";
        let is_by_case = paths.ignores_case && !body.redirects.iter().all(is_of_all);
        self.site.places.push(Place {
            paths: paths.texts.clone(),
            ignores_case: paths.ignores_case && !is_by_case,
            body,
        });
        if is_by_case {
            self.actions.leave_out(location.directive, BY_CASE);
            let place = refusing(paths.texts, true, NOT_CARRIED);
            self.site.places.push(place);
        }
    }

    /// Whether a place without a route of its own is compressed is said of its site.
    pub fn compressed(&mut self, location: &Location<'a>) {
        let own = compression::own(&location.scope);
        if let Some(own) = own.filter(|_| compression::is_on(&location.scope) != self.compress[1]) {
            let why = "a site or a route is compressed, and not a location";
            self.actions.leave_out(own, why);
        }
    }
}

/// The `return` of a server with this status.
fn returned<'a>(server: &Scope<'a>, status: &str) -> Option<&'a Directive> {
    let is_it = |own: &&Directive| own.name == "return" && own.first() == status;
    server.own().iter().find_map(|own| match own.name.as_str() {
        "if" => own.inside().iter().find(is_it),
        _ => Some(own).filter(is_it),
    })
}
