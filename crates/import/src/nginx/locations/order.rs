//! In which order nginx looks at the locations of a server, for a program that takes the first that
//! fits.
//!
//! nginx finds the longest prefix of a level, goes into it, and does the same there. Where nothing
//! inside has fitted it tries the expressions of that location, and then those of the levels
//! outside, unless the prefix through which it came in has `^~`.

use super::{Directive, Kind, Location};
use std::ptr;

/// As they are looked at: the first that fits is the one.
///
/// Most expressions fit before most prefixes, and stand once before all of these. A prefix below
/// which not all of them count stands before them, behind those that do, each for its paths alone.
pub(super) fn in_order(all: Vec<Location<'_>>) -> Vec<Location<'_>> {
    let all = of_kind(&all, |own| is_reached(own, &all));
    let early = Early::among(&all);
    let mut ordered: Vec<Location<'_>> = of_kind(&all, |own| own.kind == Kind::Exact);
    for prefix in by_length(of_kind(&all, |own| early.has(own))) {
        ordered.extend(expressions_of(&prefix, &all));
        ordered.push(prefix);
    }
    let mut expressions = of_kind(&all, |own| is_expression(own) && !early.encloses(own));
    // Stable: of one level the first counts.
    expressions.sort_by_key(|own| usize::MAX - own.enclosing.len());
    ordered.extend(expressions);
    let others = of_kind(&all, |own| is_prefix(own) && !early.has(own));
    ordered.extend(by_length(others));
    ordered.extend(of_kind(&all, |own| own.kind == Kind::Named));
    ordered
}

/// Prefixes that stand before the expressions.
struct Early<'a, 'b>(Vec<&'b Location<'a>>);

impl<'a, 'b> Early<'a, 'b> {
    fn among(all: &'b [Location<'a>]) -> Self {
        let prefixes = || all.iter().filter(|own| is_prefix(own));
        let differs = |prefix: &&Location<'_>| {
            let others = all.iter().filter(|own| is_expression(own));
            let mut others = others.filter(|own| {
                let outer = own.within.as_deref().unwrap_or("/");
                prefix.path.starts_with(outer)
            });
            others.any(|own| !counts(own, prefix))
        };
        let first: Vec<&Location<'_>> = prefixes().filter(differs).collect();
        let is_below = |own: &&Location<'_>| {
            let mut above = first.iter();
            above.any(|other| own.path.starts_with(&other.path))
        };
        Self(prefixes().filter(is_below).collect())
    }

    fn has(&self, own: &Location<'_>) -> bool {
        let mut all = self.0.iter();
        all.any(|early| ptr::eq(early.directive, own.directive) && early.path == own.path)
    }

    /// Whether an expression is in one of them: it counts there alone.
    fn encloses(&self, own: &Location<'_>) -> bool {
        let Some(outer) = own.enclosing.last() else {
            return false;
        };
        self.0.iter().any(|early| ptr::eq(early.directive, *outer))
    }
}

/// Whether any path leads into the location that it is in: where a longer prefix stands beside one,
/// the paths of that do not.
fn is_reached(own: &Location<'_>, all: &[Location<'_>]) -> bool {
    let prefix_of = |directive: &Directive| {
        let mut prefixes = all.iter().filter(|other| is_prefix(other));
        prefixes.find(|other| ptr::eq(other.directive, directive))
    };
    let outer: Vec<&Location<'_>> = own
        .enclosing
        .iter()
        .filter_map(|outer| prefix_of(outer))
        .collect();
    let path = match (&own.kind, outer.last()) {
        (Kind::Expression { .. }, Some(last)) => &last.path,
        _ => &own.path,
    };
    let is_shut = |outer: &&Location<'_>| {
        let mut beside = all.iter().filter(|other| {
            is_prefix(other)
                && other.enclosing.len() == outer.enclosing.len()
                && is_same_way(&other.enclosing, &outer.enclosing)
        });
        beside.any(|other| other.path.len() > outer.path.len() && path.starts_with(&other.path))
    };
    !outer.iter().any(is_shut)
}

/// Whether one leads through the locations of the other.
fn is_same_way(one: &[&Directive], other: &[&Directive]) -> bool {
    one.iter()
        .zip(other)
        .all(|(one, other)| ptr::eq(*one, *other))
}

/// Whether an expression is looked at for paths of which `prefix` is the longest one.
fn counts(expression: &Location<'_>, prefix: &Location<'_>) -> bool {
    let way_in = [prefix.enclosing.as_slice(), &[prefix.directive]].concat();
    let outside = &expression.enclosing;
    let is_passed = outside.len() <= way_in.len() && is_same_way(outside, &way_in);
    let goes_on = way_in.get(outside.len());
    // The server itself stands for the rest, where no location does.
    is_passed && goes_on.is_none_or(|next| next.name != "location" || !is_firm(next))
}

/// The expressions that are looked at for the paths of a prefix, before it, each for these alone.
fn expressions_of<'a>(prefix: &Location<'a>, all: &[Location<'a>]) -> Vec<Location<'a>> {
    let mut expressions = of_kind(all, |own| is_expression(own) && counts(own, prefix));
    expressions.sort_by_key(|own| usize::MAX - own.enclosing.len());
    let narrowed = expressions.into_iter().filter_map(|own| {
        let is_known = own.paths().is_some();
        let narrow = Location {
            within: Some(prefix.path.clone()),
            ..own
        };
        // Of one that fits none of these paths nothing is left.
        (!is_known || narrow.paths().is_some()).then_some(narrow)
    });
    narrowed.collect()
}

fn of_kind<'a>(all: &[Location<'a>], is_one: impl Fn(&Location<'a>) -> bool) -> Vec<Location<'a>> {
    all.iter().filter(|own| is_one(own)).cloned().collect()
}

/// The longest first.
fn by_length(mut prefixes: Vec<Location<'_>>) -> Vec<Location<'_>> {
    prefixes.sort_by_key(|own| usize::MAX - own.path.len());
    prefixes
}

fn is_prefix(own: &Location<'_>) -> bool {
    matches!(own.kind, Kind::Prefix { .. })
}

fn is_expression(own: &Location<'_>) -> bool {
    matches!(own.kind, Kind::Expression { .. })
}

fn is_firm(location: &Directive) -> bool {
    super::read(location).is_ok_and(|(kind, _)| kind == Kind::Prefix { is_firm: true })
}
