//! Conditions on the path with an answer of 4xx: the paths are refused, as those of a location by
//! an expression are.

mod request_uri;

use super::conditions::Condition;
use super::locations::Paths;
use super::regex;
use super::returns::{Place as At, Return, read_return};
use super::site::{Body, Place};
use super::translate::Builder;
use super::tree::Directive;
use sooner_http::path_pattern::{self, PathPattern};
use std::collections::BTreeSet;

const MORE: &str = "these paths cannot be told from others like them, which are refused as well";
const ALL: &str = "which paths it is about cannot be said; all of the site are refused with 403";
const OTHERS: &str = "paths are compared decoded and without their queries, which leaves out";
/// The longest list of parts in a comment, letters.
const PARTS_MAX: usize = 80;

/// What a condition on the path is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// These paths.
    Of(Paths),
    /// No path can be named.
    Unsaid,
}

/// The `return` of an `if` that refuses.
pub fn refusal(own: &Directive) -> Option<&Directive> {
    let is_refusal = |inner: &&Directive| {
        let status = inner.first().parse::<u16>().unwrap_or_default();
        inner.name == "return" && status >= 400
    };
    let is_if = own.name == "if";
    own.inside().iter().find(is_refusal).filter(|_| is_if)
}

/// What the condition of an `if` says of paths; `None` where it is not about them, or refuses none.
pub fn about(own: &Directive) -> Option<About> {
    Some(read(own)?.0)
}

/// The paths that an `if` is about, whatever it does, where it is about these and nothing else.
pub fn exact(own: &Directive) -> Option<Paths> {
    let subject = Condition::of(own).subject;
    match said(own)? {
        (About::Of(paths), _) if paths.is_exact => {
            matches!(subject.as_str(), "$uri" | "$document_uri").then_some(paths)
        }
        _ => None,
    }
}

/// The same as `about`, and the parts of the condition that are about no path.
fn read(own: &Directive) -> Option<(About, Vec<String>)> {
    refusal(own)?;
    said(own)
}

fn said(own: &Directive) -> Option<(About, Vec<String>)> {
    let condition = Condition::of(own);
    let value = condition.value.trim_matches('"');
    let (is_equal, ignores_case) = match condition.operator.as_str() {
        "=" => (true, false),
        "~" => (false, false),
        "~*" => (false, true),
        _ => return None,
    };
    let is_of_target = condition.subject == "$request_uri";
    let said = match condition.subject.as_str() {
        "$request_filename" if is_equal || value.contains('^') => None,
        "$uri" | "$document_uri" | "$request_uri" if is_equal => Some(regex::Paths {
            texts: vec![regex::escaped(value)],
            is_exact: true,
            ignores_case: false,
        }),
        "$request_uri" => request_uri::targets(value),
        "$uri" | "$document_uri" | "$request_filename" => regex::paths(value),
        _ => return None,
    };
    let parts = match said {
        Some(said) if is_of_target => Some(request_uri::parts(said)),
        said => said.map(|said| (said, Vec::new())),
    };
    let is_said = |(said, _): &(regex::Paths, _)| said.texts.iter().all(|text| is_pattern(text));
    let Some((said, others)) = parts.filter(is_said) else {
        return Some((About::Unsaid, Vec::new()));
    };
    let paths = Paths {
        texts: said.texts,
        ignores_case: said.ignores_case || ignores_case,
        is_exact: said.is_exact,
    };
    (!paths.texts.is_empty()).then_some((About::Of(paths), others))
}

/// The paths of a location that a condition is about; `None` where they cannot be said.
pub fn within(location: &Paths, own: &Paths) -> Option<Paths> {
    let ignores_case = location.ignores_case || own.ignores_case;
    let mut texts: Vec<String> = Vec::new();
    for text in &own.texts {
        for outer in &location.texts {
            for text in common(outer, text, ignores_case)? {
                if !texts.contains(&text) {
                    texts.push(text);
                }
            }
        }
    }
    texts.iter().all(|text| is_pattern(text)).then_some(Paths {
        texts,
        ignores_case,
        is_exact: own.is_exact,
    })
}

/// Whether these are all paths of a location.
pub fn is_whole(location: &Paths, own: &Paths) -> bool {
    location.texts.iter().all(|text| own.texts.contains(text))
}

fn is_pattern(text: &str) -> bool {
    PathPattern::parse(text, false).is_ok()
}

/// The paths that are among both.
fn common(outer: &str, text: &str, ignores_case: bool) -> Option<Vec<String>> {
    let pieces: Vec<&str> = outer.split('*').collect();
    match pieces.as_slice() {
        [path] => {
            let pattern = PathPattern::parse(text, ignores_case).ok()?;
            let fits = pattern.fits(&path_pattern::plain(path));
            Some(Vec::from_iter(fits.then(|| (*path).to_owned())))
        }
        [begin, end] => {
            let reversed = |text: &str| text.chars().rev().collect::<String>();
            let mut all = Vec::new();
            for rest in behind(text, begin, ignores_case) {
                for middle in behind(&reversed(&rest), &reversed(end), ignores_case) {
                    all.push(format!("{begin}{}{end}", reversed(&middle)));
                }
            }
            Some(all)
        }
        _ => None,
    }
}

/// What may follow a beginning in the paths of a text with stars.
fn behind(text: &str, begin: &str, ignores_case: bool) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let is_same =
        |one: char, other: char| one == other || (ignores_case && one.eq_ignore_ascii_case(&other));
    let mut places = BTreeSet::from([0]);
    for letter in begin.chars() {
        let mut next = BTreeSet::new();
        for place in places {
            let mut at = place;
            while letters.get(at) == Some(&'*') {
                next.insert(at);
                at += 1;
            }
            if letters.get(at).is_some_and(|own| is_same(*own, letter)) {
                next.insert(at + 1);
            }
        }
        places = next;
    }
    places
        .iter()
        .map(|at| letters[*at..].iter().collect())
        .collect()
}

impl<'a> Builder<'_, 'a> {
    /// Refuses the paths of the conditions of a location, before the location itself.
    pub fn refuse_paths(&mut self, at: usize) {
        let location = self.all[at].clone();
        // Those of the server come before all.
        if std::ptr::eq(location.scope.own(), self.server.own()) {
            return;
        }
        let Some(paths) = location.paths() else {
            return;
        };
        for own in location.scope.own() {
            if let Some((About::Of(refused), others)) = read(own)
                && let Some(refused) = within(&paths, &refused)
            {
                if !is_whole(&paths, &refused) {
                    self.leave_out_parts(own, &others);
                }
                if !refused.texts.is_empty() {
                    let place = self.refused(own, &refused);
                    self.site.places.push(place);
                }
            }
        }
    }

    /// The same of the server, before all locations.
    pub fn refuse_paths_of_server(&mut self) {
        let server = self.server.own();
        let mut places = Vec::new();
        for own in server {
            match read(own) {
                None => {}
                Some((About::Of(refused), others)) => {
                    self.leave_out_parts(own, &others);
                    places.push(self.refused(own, &refused));
                }
                Some((About::Unsaid, _)) => {
                    self.actions.leave_out(own, ALL);
                    places.push(super::site::refusing(vec!["/*".into()], false, 403));
                }
            }
        }
        self.site.places.splice(0..0, places);
    }

    /// Says which parts of a condition are about no path.
    fn leave_out_parts(&mut self, own: &'a Directive, parts: &[String]) {
        if parts.is_empty() {
            return;
        }
        let parts = parts.join(", ");
        let why = match parts.char_indices().nth(PARTS_MAX) {
            Some((end, _)) => format!("{OTHERS} {}...", &parts[..end]),
            None => format!("{OTHERS} {parts}"),
        };
        self.actions.leave_out(own, &why);
    }

    /// The place of an `if` that refuses paths, where these can be said.
    pub fn refused_by(&mut self, own: &'a Directive) -> Option<Place> {
        let (About::Of(refused), others) = read(own)? else {
            return None;
        };
        self.leave_out_parts(own, &others);
        Some(self.refused(own, &refused))
    }

    fn refused(&mut self, own: &'a Directive, paths: &Paths) -> Place {
        if !paths.is_exact {
            self.actions.leave_out(own, MORE);
        }
        let at = At {
            scheme: self.actions.facts.scheme,
            name: self.actions.name,
            paths: &paths.texts,
            expression: None,
        };
        let answer = match refusal(own).map(|own| read_return(own, at)) {
            Some(Ok(Return::Fixed(status, text))) => (status, text),
            _ => (403, None),
        };
        Place {
            paths: paths.texts.clone(),
            ignores_case: paths.ignores_case,
            body: Body {
                answer: Some(answer),
                ..Body::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_of_both_are_those_that_fit_both() {
        for (outer, text, expected) in [
            ("/a/*", "*.bak", "/a/*.bak"),
            ("/a*", "/abc*", "/abc*"),
            ("/abc*", "/a*", "/abc*"),
            ("/b*", "/a*", ""),
            ("/pri*", "*/private*", "/pri*/private* /private*"),
            ("/private*", "*/private*", "/private*/private* /private*"),
            ("*.php", "*/up/*", "*/up/*.php"),
            ("*.php", "*.php", "*.php"),
            ("/a/*.php", "*/b/*", "/a/*/b/*.php /a/b/*.php"),
            ("/one", "*/on*", "/one"),
            ("/one", "*/two*", ""),
        ] {
            let own = common(outer, text, false).unwrap().join(" ");
            assert_eq!(own, expected, "{outer} {text}");
        }
        assert_eq!(common("/A*", "/ab*", true), Some(vec!["/Ab*".to_owned()]));
        assert_eq!(common("*a*", "/ab*", true), None);
    }
}
