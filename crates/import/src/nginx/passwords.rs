//! `auth_basic`: which paths of a site are for the users of a file.
//!
//! A table is about a path and all below it. Where that is more than a location of nginx, the rest
//! is refused; where the tables cannot say a rule, its location is. What asks for a password with
//! nginx asks for the same one here, or answers to no client.

use super::access::{self, Access};
use super::conditions::Condition;
use super::facts::Facts;
use super::folders;
use super::locations::{Kind, Location};
use super::scope::Scope;
use super::tree::Directive;
use crate::document::{Document, Group};
use sooner_http::basic_auth::challenge;
use sooner_http::forwarding::routes;
use sooner_http::path_pattern::PathPattern;
use std::path::Path;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The file of users.
    pub file: String,
    /// What clients show; none where it cannot be said.
    pub realm: Option<String>,
}

/// One table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The path; `/` is the whole site.
    pub path: String,
    /// What is asked for; nothing leaves the paths open.
    pub asked: Option<Asked>,
}

/// What a place wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// No password.
    Open,
    /// It answers the same to all, whether they have one or not.
    Any,
    /// One.
    Asked(Asked),
    /// What cannot be said, and why.
    Not(&'a Directive, &'static str),
}

/// A location that is refused: where it stands, the rule, and why.
pub type Shut<'a> = (&'a Directive, &'a Directive, &'static str);

/// What the tables of a site say, and what they do not.
#[derive(Debug, Default)]
pub struct Plan<'a> {
    /// The tables.
    pub tables: Vec<Table>,
    /// Locations that are refused.
    pub shut: Vec<Shut<'a>>,
    /// Paths that are refused before those of a location.
    pub ahead: Vec<(usize, Vec<String>)>,
    /// Paths that are refused behind those of a location.
    pub behind: Vec<(usize, Vec<String>)>,
    /// Locations of which only whole segments are meant; what else begins so is refused.
    pub whole: Vec<usize>,
    /// What is otherwise than with nginx.
    pub remarks: Vec<(&'a Directive, &'static str)>,
}

const NO_FILE: &str = "no auth_basic_user_file says who; all are refused with 403";
const VARIABLE: &str = "Sooner has no variables; all are refused with 403";
const ANY: &str =
    "a password or an address, whichever is right, cannot be said; all are refused with 403";
const SERVED: &str =
    "its file lies below a root, where clients can have it; all are refused with 403, move it";
const BY_EXPRESSION: &str = "a password is for a path and what is below it, not for an expression; all are refused with 403";
const NO_PATH: &str = "a password is for a path of ASCII; all are refused with 403";
const TWICE: &str = "another location has this path with another file; all are refused with 403";
const ROOT: &str = "a password for / is for all of the site; / alone is refused with 403";
const MORE: &str =
    "Sooner asks for a password at more paths: those of its table cannot be left out";
const SEGMENTS: &str =
    "a password is for whole segments of a path; other paths that begin so are refused with 403";
const BELOW: &str = "a table is about what is below its path as well; that is refused with 403";
const AHEAD: &str = "where the table of another path counts, these paths are refused with 403";
const INDEX: &str = "it stands for its directory too, which is refused with 403";
const REALM: &str = "a realm is printable ASCII; clients show Restricted";

/// What a scope asks for, whatever else its rules say.
pub fn asked<'a>(scope: &Scope<'a>, prefix: &Path) -> Wanted<'a> {
    let Some(rule) = scope.one("auth_basic").filter(|own| own.first() != "off") else {
        return Wanted::Open;
    };
    let is_any = scope.one("satisfy").is_some_and(|own| own.first() == "any");
    if is_any && !scope.all(&["allow", "deny"]).is_empty() {
        return Wanted::Not(rule, ANY);
    }
    let file = scope.one("auth_basic_user_file").map(Directive::first);
    let Some(file) = file.filter(|file| !file.is_empty()) else {
        return Wanted::Not(rule, NO_FILE);
    };
    if file.contains('$') || rule.first().contains('$') {
        return Wanted::Not(rule, VARIABLE);
    }
    let realm = rule.first();
    Wanted::Asked(Asked {
        file: prefix.join(file).display().to_string(),
        realm: challenge(realm).is_ok().then(|| realm.to_owned()),
    })
}

/// Finds the tables of a site.
pub fn plan<'a>(all: &[Location<'a>], prefix: &Path, facts: &Facts) -> Plan<'a> {
    let roots = folders::all(all);
    let wanted = |own| wanted(own, prefix, &roots, facts);
    let wants: Vec<Wanted<'a>> = all.iter().map(wanted).collect();
    let mut planner = Planner {
        all,
        plan: Plan::default(),
    };
    if !(wants.iter()).any(|own| matches!(own, Wanted::Asked(_) | Wanted::Not(..))) {
        return planner.plan;
    }
    let mut order: Vec<usize> = (0..all.len()).collect();
    let is_exact = |at: &usize| all[*at].kind == Kind::Exact;
    order.sort_by_key(|at| (is_exact(at), all[*at].path.len()));
    for at in order {
        match (&all[at].kind, &wants[at]) {
            (_, Wanted::Any) => {}
            (_, Wanted::Not(rule, why)) => planner.shut(at, rule, why),
            (Kind::Prefix { .. }, want) => planner.prefix(at, want),
            (Kind::Exact, want) => planner.exact(at, want),
            _ => {}
        }
    }
    // These are within the tables of the others.
    for (at, want) in wants.iter().enumerate() {
        if matches!(all[at].kind, Kind::Expression { .. }) {
            planner.expression(at, want);
        }
    }
    planner.plan
}

/// What a location wants of the clients that get something there.
fn wanted<'a>(
    location: &Location<'a>,
    prefix: &Path,
    roots: &[String],
    facts: &Facts,
) -> Wanted<'a> {
    let scope = &location.scope;
    // It comes before all rules.
    let is_certain =
        |own: &&Directive| own.name == "if" && facts.holds(&Condition::of(own)) == Some(true);
    let returned = scope.own().iter().find_map(|own| match own.name.as_str() {
        "return" => Some(own),
        _ if is_certain(&own) => own.inside().iter().find(|own| own.name == "return"),
        _ => None,
    });
    if let Some(own) = returned {
        return match own.first() {
            "200" | "204" => Wanted::Open,
            _ => Wanted::Any,
        };
    }
    if access::of(scope, access::is_of_files(scope)) != Access::Open {
        return Wanted::Any;
    }
    let wanted = asked(scope, prefix);
    let is_served = |own: &Asked| {
        let file = Path::new(&own.file);
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with('.') && roots.iter().any(|root| file.starts_with(root))
    };
    match (&wanted, scope.one("auth_basic")) {
        (Wanted::Asked(own), Some(rule)) if is_served(own) => Wanted::Not(rule, SERVED),
        _ => wanted,
    }
}

struct Planner<'s, 'a> {
    all: &'s [Location<'a>],
    plan: Plan<'a>,
}

impl<'a> Planner<'_, 'a> {
    fn rule(&self, at: usize) -> &'a Directive {
        let location = &self.all[at];
        let rule = location.scope.one("auth_basic");
        rule.unwrap_or(location.directive)
    }

    fn shut(&mut self, at: usize, rule: &'a Directive, why: &'static str) {
        self.plan.shut.push((self.all[at].directive, rule, why));
    }

    fn remark(&mut self, at: usize, why: &'static str) {
        let remark = (self.rule(at), why);
        if !self.plan.remarks.contains(&remark) {
            self.plan.remarks.push(remark);
        }
    }

    /// What the tables so far ask for at a path.
    fn guard(&self, path: &[&str]) -> Option<&Asked> {
        let fits = |own: &&Table| path.starts_with(&segments(&own.path));
        let fitting = self.plan.tables.iter().filter(fits);
        let longest = fitting.max_by_key(|own| segments(&own.path).len());
        longest?.asked.as_ref()
    }

    fn has_table(&self, path: &[&str]) -> bool {
        let mut tables = self.plan.tables.iter();
        tables.any(|own| segments(&own.path) == path)
    }

    fn add(&mut self, at: usize, asked: Option<&Asked>) {
        if asked.is_some_and(|own| own.realm.is_none()) {
            self.remark(at, REALM);
        }
        self.plan.tables.push(Table {
            path: self.all[at].path.clone(),
            asked: asked.cloned(),
        });
    }

    fn prefix(&mut self, at: usize, want: &Wanted<'a>) {
        let all = self.all;
        let path = all[at].path.as_str();
        let own = segments(path);
        let before = self.guard(&own).cloned();
        // What begins so and has another segment there.
        let beside = self.guard(&own[..own.len().saturating_sub(1)]).cloned();
        let is_whole = path.ends_with('/');
        match want {
            Wanted::Open if before.is_none() => {}
            Wanted::Open if !can_be_said(path) || self.has_table(&own) => self.remark(at, MORE),
            Wanted::Open => {
                self.add(at, None);
                if is_whole {
                    let bare = path.trim_end_matches('/').to_owned();
                    self.plan.behind.push((at, vec![bare]));
                } else {
                    self.remark(at, MORE);
                }
            }
            Wanted::Asked(asked) => {
                if before.as_ref() != Some(asked) {
                    if !can_be_said(path) {
                        return self.shut(at, self.rule(at), NO_PATH);
                    }
                    if self.has_table(&own) {
                        return self.shut(at, self.rule(at), TWICE);
                    }
                    self.add(at, Some(asked));
                }
                if !is_whole && beside.as_ref() != Some(asked) {
                    self.plan.whole.push(at);
                    self.remark(at, SEGMENTS);
                }
            }
            _ => {}
        }
    }

    fn exact(&mut self, at: usize, want: &Wanted<'a>) {
        let all = self.all;
        let path = all[at].path.as_str();
        let own = segments(path);
        let before = self.guard(&own).cloned();
        let bare = path.trim_end_matches('/');
        let mut below = vec![format!("{bare}/*")];
        if bare != path {
            below.insert(0, bare.to_owned());
        }
        match want {
            Wanted::Open if before.is_none() => {}
            Wanted::Open if own.is_empty() || !can_be_said(path) || self.has_table(&own) => {
                self.remark(at, MORE);
            }
            Wanted::Open => {
                self.add(at, None);
                self.plan.behind.push((at, below));
                self.remark(at, BELOW);
            }
            Wanted::Asked(asked) if before.as_ref() != Some(asked) => {
                let why = match (own.is_empty(), can_be_said(path), self.has_table(&own)) {
                    (true, _, _) => Some(ROOT),
                    (_, false, _) => Some(NO_PATH),
                    (_, _, true) => Some(TWICE),
                    _ => None,
                };
                if let Some(why) = why {
                    return self.shut(at, self.rule(at), why);
                }
                self.add(at, Some(asked));
                if before.is_some() {
                    self.plan.behind.push((at, below));
                    self.remark(at, BELOW);
                }
                let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
                if self.is_index(name) {
                    self.plan.behind.push((at, vec![format!("{folder}/")]));
                    self.remark(at, INDEX);
                }
            }
            _ => {}
        }
    }

    /// Whether a file of this name stands for its directory somewhere.
    fn is_index(&self, name: &str) -> bool {
        let mut said = self.all.iter().map(|own| own.scope.one("index"));
        matches!(name, "index.html" | "index.php")
            || said.any(|own| own.is_some_and(|own| own.args.iter().any(|arg| arg == name)))
    }

    fn expression(&mut self, at: usize, want: &Wanted<'a>) {
        let texts = self.all[at].paths().map(|paths| paths.texts);
        let texts = texts.unwrap_or_else(|| vec!["*".to_owned()]);
        let ignores_case = self.all[at].paths().is_some_and(|paths| paths.ignores_case);
        let mut bases: Vec<Option<&Asked>> = Vec::new();
        // Tables within the paths that ask for something else.
        let mut others: Vec<(&str, &Table)> = Vec::new();
        for text in &texts {
            let begin = text.split('*').next().unwrap_or_default();
            let folder = match begin.len() == text.len() {
                true => begin,
                false => begin.rsplit_once('/').map_or("", |(folder, _)| folder),
            };
            let folder = segments(folder);
            bases.push(self.guard(&folder));
            let lower = begin.to_ascii_lowercase();
            for table in &self.plan.tables {
                let path = table.path.to_ascii_lowercase();
                let is_within = path.starts_with(&lower) || lower.starts_with(&path);
                if is_within && segments(&table.path).len() > folder.len() {
                    others.push((text, table));
                }
            }
        }
        match want {
            Wanted::Open => {
                let has_other = others.iter().any(|(_, own)| own.asked.is_some());
                if has_other || bases.iter().any(Option::is_some) {
                    self.remark(at, MORE);
                }
            }
            Wanted::Asked(asked) => {
                let is_other = |own: &&(&str, &Table)| own.1.asked.as_ref() != Some(asked);
                let refused = others.iter().filter(is_other);
                let refused = refused.map(|(text, own)| common(text, &own.path, ignores_case));
                let refused: Option<Vec<Vec<String>>> = refused.collect();
                match refused.filter(|_| bases.iter().all(|own| *own == Some(asked))) {
                    None => self.shut(at, self.rule(at), BY_EXPRESSION),
                    Some(refused) if refused.concat().is_empty() => {}
                    Some(refused) => {
                        self.plan.ahead.push((at, refused.concat()));
                        self.remark(at, AHEAD);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The paths of an expression that a table is about; `None` where they cannot be said.
fn common(text: &str, table: &str, ignores_case: bool) -> Option<Vec<String>> {
    let bare = table.trim_end_matches('/');
    let Some((begin, end)) = text.split_once('*') else {
        let is_below = text
            .strip_prefix(bare)
            .is_some_and(|rest| rest.starts_with('/'));
        let is_one = text == bare || is_below;
        return (!ignores_case).then(|| Vec::from_iter(is_one.then(|| text.to_owned())));
    };
    let is_within = bare
        .to_ascii_lowercase()
        .starts_with(&begin.to_ascii_lowercase());
    if end.contains('*') || !is_within {
        return None;
    }
    let mut all = vec![format!("{bare}/*{end}")];
    let pattern = PathPattern::parse(text, ignores_case).ok()?;
    if pattern.fits(bare.as_bytes()) {
        all.push(bare.to_owned());
    }
    Some(all)
}

fn can_be_said(path: &str) -> bool {
    routes::check_path(path).is_ok() && !path.contains('%')
}

fn segments(path: &str) -> Vec<&str> {
    path.split('/').filter(|own| !own.is_empty()).collect()
}

/// Writes the tables.
pub fn write(tables: &[Table], document: &mut Document) {
    let group = Group::Site;
    for table in tables {
        document.gap(group);
        document.table(group, "[[site.auth]]");
        if table.path != "/" {
            document.text(group, "path", &table.path);
        }
        match &table.asked {
            None => document.text(group, "file", "off"),
            Some(asked) => {
                document.text(group, "file", &asked.file);
                if let Some(realm) = &asked.realm {
                    document.text(group, "realm", realm);
                }
            }
        }
    }
    if tables.iter().any(|own| own.asked.is_some()) {
        let words = "Passwords in plain text and of the old crypt are refused at the start: set them again with htpasswd -B.";
        document.comment(group, words);
    }
}
