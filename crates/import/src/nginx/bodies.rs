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

impl<'a> Builder<'_, 'a> {
    /// What holds in a place that does this.
    pub fn body(&mut self, scope: &Scope<'a>, act: &Action, acts: &[Action]) -> Body {
        match act {
            Action::Files(files) => self.files_body(scope, files, acts),
            Action::Pass(pass) => match &pass.files {
                Some(files) => self.files_body(scope, files, acts),
                None => Body {
                    headers: self.headers(scope),
                    errors: self.errors(scope, None),
                    index: vec!["index.html".into()],
                    ..Body::default()
                },
            },
            Action::Run(_) => Body {
                headers: self.headers(scope),
                errors: self.site.body.errors.clone(),
                index: self.site.body.index.clone(),
                ..Body::default()
            },
            Action::Answer(status, text) => Body {
                answer: Some((*status, text.clone())),
                headers: self.headers_of(scope, *status < 400),
                errors: self.site.body.errors.clone(),
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
            is_listed: listed && files.root.is_some(),
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

    /// Pages of errors, as far as they are below `root`.
    fn errors(&mut self, scope: &Scope<'a>, root: Option<&str>) -> BTreeMap<u16, String> {
        let mut errors = BTreeMap::new();
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
                _ => {
                    let why = "a page is a file below the root, with the status of the error";
                    self.actions.leave_out(own, why);
                }
            }
        }
        errors
    }

    /// The directory of a page.
    fn folder_of(&self, page: &str) -> Option<String> {
        let location = self.all.iter().find(|own| own.fits(page))?;
        let own = location.scope.all(&["root", "alias"]);
        let own = own.last().filter(|own| own.name == "root")?;
        Some(location.scope.expanded(own.first())).filter(|root| root.starts_with('/'))
    }

    /// Where all requests are passed on, pages of errors still have a directory.
    pub fn page_folder(&mut self, acts: &[Action]) {
        let rest = self
            .all
            .iter()
            .position(Location::is_rest)
            .unwrap_or_default();
        if self.site.body.root.is_some() || !matches!(acts[rest], Action::Pass(_)) {
            return;
        }
        let pages: BTreeSet<String> = self.site.body.errors.values().cloned().collect();
        let folders: BTreeSet<String> = pages
            .iter()
            .filter_map(|page| self.folder_of(page))
            .collect();
        if let (1, Some(folder)) = (folders.len(), folders.first()) {
            self.site.body.root = Some(folder.clone());
        } else {
            self.site.body.errors.clear();
        }
    }
}
