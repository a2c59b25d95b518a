//! `expires`: how long clients may keep what is sent.
//!
//! nginx says it by location, Sooner by a list of rules of which the first that fits counts: by
//! path and by the end of the name. Locations become rules in the order in which nginx looks at
//! them, those that say nothing as well where a later rule would else count.

use super::action::Action;
use super::fastcgi::ENDING;
use super::locations::{Kind, Location};
use super::scope::Scope;
use super::tidy::ends_a_segment;
use super::translate::Builder;
use super::values;
use crate::document::{Document, Group};
use sooner_http::forwarding::routes;
use sooner_http::lifetime::Lifetime;
use sooner_web::files::is_extension;

/// What a place says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Said {
    /// Nothing.
    #[default]
    Nothing,
    /// What a rule can say.
    Rule(After),
    /// What only a header can say: another `Cache-Control` stands beside it.
    Header,
    /// What cannot be said.
    Unknown,
}

/// How long, and whether what is kept never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    text: String,
    is_immutable: bool,
}

/// One table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The beginning of the paths, with whole segments; empty for all.
    path: String,
    /// Ends of names; without any all.
    extensions: Vec<String>,
    /// `None` is off.
    after: Option<After>,
    is_proxied: bool,
}

/// Why a time is left out.
pub const UNKNOWN: &str = "a time like 30d, -1, epoch, max or off can be said";
const PLAIN: &str = "only a path with what is below it, and the end of a name, can be said; Cache-Control goes with every answer of the place";
const PROXIED: &str = "these paths cannot be told from others by path and end of name";

/// What holds in a scope.
pub fn said(scope: &Scope<'_>) -> Said {
    let Some(own) = scope.one("expires").filter(|own| own.first() != "off") else {
        return Said::Nothing;
    };
    let [time] = own.args.as_slice() else {
        return Said::Unknown;
    };
    let text = time.strip_prefix('+').unwrap_or(time);
    let Ok(lifetime) = text.parse::<Lifetime>() else {
        return match values::cache_control(&own.args) {
            Some(_) => Said::Header,
            None => Said::Unknown,
        };
    };
    let beside = scope.all(&["add_header"]);
    let beside: Vec<&str> = (beside.iter())
        .filter(|own| own.first().eq_ignore_ascii_case("cache-control"))
        .filter_map(|own| own.args.get(1).map(String::as_str))
        .filter(|value| !value.is_empty())
        .collect();
    let is_immutable = match beside.as_slice() {
        [] => false,
        [one] if one.eq_ignore_ascii_case("immutable") && lifetime.lets_keep() => true,
        _ => return Said::Header,
    };
    Said::Rule(After {
        text: text.to_owned(),
        is_immutable,
    })
}

/// One location, as rules see it.
struct Entry {
    reach: Vec<(String, Option<String>)>,
    after: Option<After>,
}

impl Builder<'_, '_> {
    /// Finds the rules of the site, and the locations that have a header in place of one.
    pub fn keep(&mut self, acts: &[Action]) {
        let (mut files, mut proxied) = (Vec::new(), Vec::new());
        let all = std::mem::take(&mut self.all);
        for (at, (location, act)) in all.iter().zip(acts).enumerate() {
            let own = said(&location.scope);
            if own == Said::Unknown
                && let Some(directive) = location.scope.one("expires")
            {
                self.actions.leave_out(directive, UNKNOWN);
            }
            let is_internal = location.scope.own_one("internal").is_some();
            let (of_files, of_proxied) = match act {
                Action::Files(files) => {
                    let script = files.script.as_deref();
                    let script = script.and_then(|page| all.iter().find(|own| own.fits(page)));
                    (Some(own), script.map(|script| said(&script.scope)))
                }
                Action::Pass(pass) => (pass.files.as_ref().map(|_| own), Some(pass.said.clone())),
                Action::Run(_) => (None, Some(own)),
                Action::Answer(404, _) if is_internal => (Some(own), None),
                _ => (None, None),
            };
            let is_directory = location.kind == Kind::Exact && location.path.ends_with('/');
            let reach = reach(location, matches!(act, Action::Run(_)));
            for (said, entries, is_of_files) in [
                (of_files, &mut files, true),
                (of_proxied, &mut proxied, false),
            ] {
                let Some(said) = said else { continue };
                let after = match said {
                    Said::Rule(after) => Some(after),
                    _ => None,
                };
                match &reach {
                    Some(reach) => entries.push(Entry {
                        reach: reach.clone(),
                        after,
                    }),
                    None if after.is_none() => {}
                    // There is no file of such a name.
                    None if is_of_files && is_directory => {}
                    None => {
                        if is_of_files {
                            self.plain.push(at);
                        }
                        if let Some(directive) = location.scope.one("expires") {
                            let why = if is_of_files { PLAIN } else { PROXIED };
                            self.actions.leave_out(directive, why);
                        }
                    }
                }
            }
        }
        self.all = all;
        self.site.expires = together(&files, &proxied);
    }
}

/// The rules of files and those of upstreams as one list.
fn together(files: &[Entry], proxied: &[Entry]) -> Vec<Rule> {
    let has_files = !files.is_empty();
    let mut all = rules(files, false);
    let of_upstreams = rules(proxied, true);
    let is_same = |(one, other): (&Rule, &Rule)| {
        let mut other = other.clone();
        other.is_proxied = false;
        *one == other
    };
    if all.len() == of_upstreams.len() && all.iter().zip(&of_upstreams).all(is_same) {
        return of_upstreams;
    }
    let is_closed = |own: &Rule| own.path.is_empty() && own.extensions.is_empty();
    if has_files && !of_upstreams.is_empty() && !all.iter().any(is_closed) {
        all.push(Rule {
            path: String::new(),
            extensions: Vec::new(),
            after: None,
            is_proxied: false,
        });
    }
    all.extend(of_upstreams);
    all
}

/// Rules for locations in their order, without those that change nothing.
fn rules(entries: &[Entry], is_proxied: bool) -> Vec<Rule> {
    let mut all: Vec<Rule> = Vec::new();
    for entry in entries {
        let mut own: Vec<Rule> = Vec::new();
        for (path, extension) in &entry.reach {
            let like = own
                .iter_mut()
                .find(|own| own.path == *path && own.extensions.is_empty() == extension.is_none());
            match like {
                Some(own) => own.extensions.extend(extension.clone()),
                None => own.push(Rule {
                    path: path.clone(),
                    extensions: extension.iter().cloned().collect(),
                    after: entry.after.clone(),
                    is_proxied,
                }),
            }
        }
        for rule in own {
            if !all.iter().any(|before| before.covers(&rule)) {
                all.push(rule);
            }
        }
    }
    let mut at = all.len();
    while at > 0 {
        at -= 1;
        if is_moot(&all[at], &all[at + 1..]) {
            all.remove(at);
        }
    }
    all
}

/// Whether what a rule is about gets the same from those behind it.
fn is_moot(rule: &Rule, behind: &[Rule]) -> bool {
    for other in behind.iter().filter(|other| other.may_meet(rule)) {
        if other.after != rule.after {
            return false;
        }
        if other.covers(rule) {
            return true;
        }
    }
    rule.after.is_none()
}

impl Rule {
    fn covers(&self, other: &Self) -> bool {
        let is_part = |own: &String| self.extensions.contains(own);
        let has_kinds = self.extensions.is_empty()
            || (!other.extensions.is_empty() && other.extensions.iter().all(is_part));
        is_below(&other.path, &self.path) && has_kinds
    }

    fn may_meet(&self, other: &Self) -> bool {
        let is_near = is_below(&other.path, &self.path) || is_below(&self.path, &other.path);
        let is_like = |own: &String| other.extensions.contains(own);
        let has_kinds = self.extensions.is_empty()
            || other.extensions.is_empty()
            || self.extensions.iter().any(is_like);
        is_near && has_kinds
    }
}

fn is_below(path: &str, beginning: &str) -> bool {
    path.strip_prefix(beginning)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The paths of a location as rules have them; `None` where that would be others.
fn reach(location: &Location<'_>, runs_scripts: bool) -> Option<Vec<(String, Option<String>)>> {
    let paths = location.paths().filter(|paths| paths.is_exact)?;
    let is_exact = location.kind == Kind::Exact;
    let mut all = Vec::new();
    for text in &paths.texts {
        // What follows the name of a script is not told from it.
        let text = match text.strip_suffix("/*") {
            Some(script) if runs_scripts && script.ends_with(ENDING) => script,
            _ => text.as_str(),
        };
        let (path, extension) = match text.split_once('*') {
            None if is_exact && text.ends_with('/') => return None,
            None => (text, None),
            Some((path, "")) if path.is_empty() || ends_a_segment(path) => (path, None),
            Some((path, end)) if path.is_empty() || path.ends_with('/') => {
                (path, Some(extension(end)?))
            }
            Some(_) => return None,
        };
        let path = path.trim_end_matches('/');
        if !path.is_empty() && routes::check_path(path).is_err() {
            return None;
        }
        let one = (path.to_owned(), extension.map(str::to_ascii_lowercase));
        if !all.contains(&one) {
            all.push(one);
        }
    }
    Some(all)
}

/// What `.css` is the end of.
fn extension(end: &str) -> Option<&str> {
    let name = end.strip_prefix('.')?;
    (is_extension(name) && !name.contains('%')).then_some(name)
}

/// Writes the tables.
pub fn write(rules: &[Rule], document: &mut Document) {
    let group = Group::Site;
    for rule in rules {
        document.gap(group);
        document.table(group, "[[site.expires]]");
        if !rule.path.is_empty() {
            document.text(group, "path", &rule.path);
        }
        if !rule.extensions.is_empty() {
            document.list(group, "extensions", &rule.extensions);
        }
        let after = rule.after.as_ref();
        document.text(group, "after", after.map_or("off", |own| &own.text));
        if after.is_some_and(|own| own.is_immutable) {
            document.value(group, "immutable", true);
        }
        if rule.is_proxied {
            document.value(group, "proxied", true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(reach: &[(&str, &str)], after: &str) -> Entry {
        let reach = reach.iter().map(|(path, end)| {
            let end = (!end.is_empty()).then(|| (*end).to_owned());
            ((*path).to_owned(), end)
        });
        Entry {
            reach: reach.collect(),
            after: (after != "off").then(|| After {
                text: after.into(),
                is_immutable: false,
            }),
        }
    }

    fn shown(entries: &[Entry]) -> String {
        let shown = rules(entries, false).into_iter().map(|own| {
            let after = own.after.map_or("off".to_owned(), |own| own.text);
            format!("{}[{}]={after}", own.path, own.extensions.join("+"))
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_rule_that_changes_nothing_is_left_out() {
        let rest = entry(&[("", "")], "off");
        let kept = entry(&[("", "css"), ("", "js")], "30d");
        assert_eq!(shown(&[kept, rest]), "[css+js]=30d");
        // What says nothing is said where a later one would count.
        for (first, expected) in [
            (("/a", "", "off"), "/a[]=off []=1h"),
            (("/a", "", "1h"), "[]=1h"),
            (("/a", "css", "1d"), "/a[css]=1d []=1h"),
        ] {
            let first = entry(&[(first.0, first.1)], first.2);
            assert_eq!(shown(&[first, entry(&[("", "")], "1h")]), expected);
        }
        // Between the two another one counts.
        let all = [
            entry(&[("/a/b", "")], "1h"),
            entry(&[("/a", "")], "1d"),
            entry(&[("", "")], "1h"),
        ];
        assert_eq!(shown(&all), "/a/b[]=1h /a[]=1d []=1h");
        // The second can never be reached.
        let all = [entry(&[("", "css")], "1h"), entry(&[("/a", "css")], "1d")];
        assert_eq!(shown(&all), "[css]=1h");
    }

    #[test]
    fn upstreams_have_rules_of_their_own() {
        let one = [entry(&[("", "")], "1h")];
        let same = together(&one, &one);
        assert!(same.len() == 1 && same[0].is_proxied);
        let off = [entry(&[("", "")], "off")];
        let apart = together(&off, &one);
        assert!(apart[0].after.is_none() && apart[1].is_proxied && apart.len() == 2);
        assert!(together(&[], &one).len() == 1);
    }
}
