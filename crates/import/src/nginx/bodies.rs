//! What holds in a place beside what it does: index, headers, pages of errors.

use super::action::{Action, Files, is_script};
use super::expiry::{self, Said};
use super::locations::Location;
use super::scope::Scope;
use super::site::Body;
use super::translate::Builder;
use super::values;
use sooner_web::files::ExtraHeaders;
use std::collections::{BTreeMap, BTreeSet};

const UNAVAILABLE: &str = "The page for 502 is one for 503 too: \
    so Sooner answers while a server that failed is left alone.";
/// Statuses that no file gives.
const OF_SERVERS: std::ops::RangeInclusive<u16> = 500..=504;
const NO_FOLDER: &str = "a page is a file below the root of its site, and this one has none";

impl<'a> Builder<'_, 'a> {
    /// What holds in a place that does this.
    pub fn body(&mut self, scope: &Scope<'a>, act: &Action, acts: &[Action]) -> Body {
        match act {
            Action::Files(files) => self.files_body(scope, files, acts),
            Action::Pass(pass) => match &pass.files {
                Some(files) => self.files_body(scope, files, acts),
                None => Body {
                    headers: self.headers(scope),
                    errors: self.errors_of_place(scope),
                    index: vec!["index.html".into()],
                    ..Body::default()
                },
            },
            Action::Run(_) => Body {
                headers: self.headers(scope),
                errors: self.errors_of_place(scope),
                index: self.site.body.index.clone(),
                ..Body::default()
            },
            Action::Answer(status, text) => Body {
                answer: Some((*status, text.clone())),
                headers: self.headers_of(scope, *status < 400),
                errors: self.errors_of_answer(scope, *status),
                index: vec!["index.html".into()],
                ..Body::default()
            },
            Action::Redirect(redirects) => Body {
                redirects: redirects.clone(),
                headers: self.headers_of(scope, true),
                index: self.site.body.index.clone(),
                errors: self.site.body.errors.clone(),
                ..Body::default()
            },
        }
    }

    /// The same of files.
    pub fn files_body(&mut self, scope: &Scope<'a>, files: &Files, acts: &[Action]) -> Body {
        let listed = scope
            .one("autoindex")
            .is_some_and(|own| own.first() == "on");
        Body {
            // Without a directory there is nothing.
            answer: files.root.is_none().then_some((404, None)),
            root: files.root.clone(),
            strip: files.strip.clone(),
            index: if files.has_directories {
                self.index(scope, acts)
            } else {
                Vec::new()
            },
            // Where only files are looked for, a directory is none.
            is_listed: listed && files.has_directories && files.root.is_some(),
            fallback: files.fallback.clone(),
            headers: self.headers(scope),
            errors: self.errors(scope, files.root.as_deref()),
            redirects: Vec::new(),
        }
    }

    /// The names of `index`; never one of a program that nginx would have run.
    fn index(&mut self, scope: &Scope<'a>, acts: &[Action]) -> Vec<String> {
        let Some(own) = scope.one("index") else {
            return vec!["index.html".into()];
        };
        let mut names = Vec::new();
        for name in &own.args {
            let at = self
                .all
                .iter()
                .position(|own| own.fits(&format!("/{name}")));
            let is_file =
                at.is_none_or(|at| matches!(acts[at], Action::Files(_) | Action::Pass(_)));
            if self.runs_index(name) {
                continue;
            }
            if is_script(name) || !is_file {
                let why = format!("{name} is for another program to run, and is not sent");
                self.actions.leave_out(own, &why);
            } else if name.contains(['/', '$', '\\']) {
                self.actions
                    .leave_out(own, "an index is the name of a file in the directory");
            } else {
                names.push(name.clone());
            }
        }
        names
    }

    /// Headers of every answer.
    pub fn headers(&mut self, scope: &Scope<'a>) -> BTreeMap<String, String> {
        self.headers_of(scope, self.is_plain)
    }

    /// The same; `is_plain` says that no rule says how long these answers may be kept.
    pub fn headers_of(&mut self, scope: &Scope<'a>, is_plain: bool) -> BTreeMap<String, String> {
        let mut headers: BTreeMap<String, String> = BTreeMap::new();
        let said = expiry::said(scope);
        let has_rule = matches!(said, Said::Rule(_)) && !is_plain;
        let expires = scope
            .one("expires")
            .filter(|_| !has_rule && said != Said::Nothing);
        if let Some(own) = expires {
            match values::cache_control(&own.args) {
                Some(value) => {
                    headers.insert("Cache-Control".into(), value);
                }
                None => self.actions.leave_out(own, expiry::UNKNOWN),
            }
        }
        for own in scope.all(&["add_header"]) {
            let name = own.first();
            let value = own.args.get(1).map_or("", String::as_str);
            // Beside a rule it says what the rule says as well.
            let is_said = has_rule && name.eq_ignore_ascii_case("cache-control");
            if value.is_empty()
                && matches!(name.to_ascii_lowercase().as_str(), "last-modified" | "etag")
            {
                let why = "a file is always sent with ETag and Last-Modified";
                self.actions.leave_out(own, why);
            }
            if value.is_empty() || is_said {
                continue;
            }
            if value.contains('$') {
                self.actions.leave_out(own, "Sooner has no variables");
                continue;
            }
            if let Err(error) = ExtraHeaders::default().push(name, value) {
                self.actions.leave_out(own, &error.to_string());
                continue;
            }
            let before = headers
                .keys()
                .find(|own| own.eq_ignore_ascii_case(name))
                .cloned();
            match before {
                Some(before) if before.eq_ignore_ascii_case("cache-control") => {
                    let joined = format!("{}, {value}", headers[&before]);
                    headers.insert(before, joined);
                }
                Some(_) => self.actions.leave_out(own, "a header is written once"),
                None => {
                    headers.insert(name.to_owned(), value.to_owned());
                }
            }
        }
        headers
    }

    /// Pages of errors where there is no directory of its own: they are below the one of the site.
    pub fn errors_of_place(&mut self, scope: &Scope<'a>) -> BTreeMap<u16, String> {
        if let Some(root) = self.site.body.root.clone() {
            return self.errors(scope, Some(&root));
        }
        for own in scope.all(&["error_page"]) {
            let place = self.place_of(scope);
            self.actions.leave_out(own, &format!("{place}{NO_FOLDER}"));
        }
        BTreeMap::new()
    }

    /// The same where all get one status.
    fn errors_of_answer(&mut self, scope: &Scope<'a>, status: u16) -> BTreeMap<u16, String> {
        let text = status.to_string();
        let pages = scope.all(&["error_page"]);
        if pages.iter().any(|own| own.args.contains(&text)) {
            return self.errors_of_place(scope);
        }
        self.site.body.errors.clone()
    }

    /// Pages of errors, as far as they are below `root`.
    fn errors(&mut self, scope: &Scope<'a>, root: Option<&str>) -> BTreeMap<u16, String> {
        let mut errors = BTreeMap::new();
        let others = ["proxy_pass", "grpc_pass", "fastcgi_pass", "return"];
        let is_of_files = !others.iter().any(|name| scope.own_one(name).is_some());
        for own in scope.all(&["error_page"]) {
            let Some((page, statuses)) = own.args.split_last() else {
                continue;
            };
            let statuses: Option<Vec<u16>> = statuses
                .iter()
                .map(|status| status.parse().ok().filter(|it| (400..=599).contains(it)))
                .collect();
            let folder = self.folder_of(page);
            let root = root.or(folder.as_deref());
            match statuses {
                Some(statuses)
                    if page.starts_with('/')
                        && !page.contains(['$', '?'])
                        && !page.ends_with('/')
                        && !is_script(page)
                        && root.is_some()
                        && folder.as_deref() == root =>
                {
                    for status in statuses {
                        errors.insert(status, page.clone());
                    }
                }
                Some(statuses)
                    if is_of_files && statuses.iter().all(|own| OF_SERVERS.contains(own)) => {}
                _ => {
                    let place = self.place_of(scope);
                    let why = "a page is a file below the root, with the status of the error";
                    self.actions.leave_out(own, &format!("{place}{why}"));
                }
            }
        }
        errors
    }

    /// Names the location of a scope, where it is one that a directive of its server is not carried
    /// over for.
    fn place_of(&self, scope: &Scope<'a>) -> String {
        let is_it = |own: &&Location<'a>| std::ptr::eq(own.directive.inside(), scope.own());
        match self.all.iter().find(is_it).filter(|_| scope.is_location()) {
            Some(own) => format!("in location {}, ", own.path),
            None => String::new(),
        }
    }

    /// The directory of a page.
    fn folder_of(&self, page: &str) -> Option<String> {
        let location = self.all.iter().find(|own| own.fits(page))?;
        let own = location.scope.all(&["root", "alias"]);
        let own = own.last().filter(|own| own.name == "root")?;
        Some(location.scope.expanded(own.first())).filter(|root| root.starts_with('/'))
    }

    /// nginx tries a server that failed again and again, and says 502 where Sooner says 503.
    pub fn pages_of_unavailable(&mut self) {
        if self.site.routes.is_empty() {
            return;
        }
        let places = self.site.places.iter_mut().map(|own| &mut own.body);
        let mut is_said = false;
        for body in places.chain([&mut self.site.body]) {
            if let Some(page) = body.errors.get(&502).cloned() {
                is_said |= !body.errors.contains_key(&503);
                body.errors.entry(503).or_insert(page);
            }
        }
        self.site.notes.extend(is_said.then_some(UNAVAILABLE));
    }

    /// Where no files are sent, pages of errors still have a directory.
    pub fn page_folder(&mut self, rest: usize, acts: &[Action]) -> Option<String> {
        let leads_on = |act: &Action| matches!(act, Action::Pass(_) | Action::Run(_));
        let has_no_files = match &acts[rest] {
            Action::Pass(pass) => pass.files.is_none(),
            // Without a route of its own a path would be one of a file.
            Action::Answer(400.., _) => !acts.iter().any(leads_on),
            _ => false,
        };
        let mut folders: BTreeSet<String> = BTreeSet::new();
        for (at, act) in acts.iter().enumerate().filter(|_| has_no_files) {
            if leads_on(act) || matches!(act, Action::Answer(400.., _)) {
                let scope = self.all[at].scope.clone();
                let pages = self.errors(&scope, None);
                folders.extend(pages.values().filter_map(|page| self.folder_of(page)));
            }
        }
        folders.pop_first().filter(|_| folders.is_empty())
    }
}
