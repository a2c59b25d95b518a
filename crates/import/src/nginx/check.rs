//! Whether nginx itself would take a configuration: a directive where it may not stand, with too
//! many arguments, with a value that is none, or twice in a block is a mistake in the file, and
//! what comes of it would be a guess.
//!
//! Directives that are not nginx's own pass, and so does what is within `map`, `types` and the like.
//! Not looked at: whether files, users, hosts, variables and zones exist.

mod addresses;
mod rewriting;
mod signatures;
mod values;
mod whole;

use super::tree::Directive;
use crate::ini::ImportError;
use signatures::Signature;
use std::collections::HashMap;

/// Whether nginx has a directive of this name.
pub fn is_known(name: &str) -> bool {
    signatures::of(name).is_some()
}

/// A kind of block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Main,
    Events,
    Http,
    Server,
    Location,
    Upstream,
    IfOfServer,
    IfOfLocation,
    LimitExcept,
}

impl Level {
    const ALL: [Self; 9] = [
        Self::Main,
        Self::Events,
        Self::Http,
        Self::Server,
        Self::Location,
        Self::Upstream,
        Self::IfOfServer,
        Self::IfOfLocation,
        Self::LimitExcept,
    ];

    /// As signatures have it.
    fn letter(self) -> char {
        match self {
            Self::Main => 'M',
            Self::Events => 'E',
            Self::Http => 'H',
            Self::Server => 'S',
            Self::Location => 'L',
            Self::Upstream => 'U',
            Self::IfOfServer => 'I',
            Self::IfOfLocation => 'F',
            Self::LimitExcept => 'X',
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Main => "the top of nginx.conf",
            Self::Events => "events",
            Self::Http => "http",
            Self::Server => "server",
            Self::Location => "location",
            Self::Upstream => "upstream",
            Self::IfOfServer => "if of a server",
            Self::IfOfLocation => "if of a location",
            Self::LimitExcept => "limit_except",
        }
    }

    /// The block that a directive opens here; `None` where its inside is not nginx's own.
    fn below(self, name: &str) -> Option<Self> {
        Some(match (name, self) {
            ("events", _) => Self::Events,
            ("http", _) => Self::Http,
            ("server", Self::Http) => Self::Server,
            ("upstream", _) => Self::Upstream,
            ("location", _) => Self::Location,
            ("if", Self::Server) => Self::IfOfServer,
            ("if", _) => Self::IfOfLocation,
            ("limit_except", _) => Self::LimitExcept,
            _ => return None,
        })
    }
}

/// The first mistake of a whole file or, where it has no `http`, of what is within one.
pub fn check(all: &[Directive]) -> Result<(), ImportError> {
    let is_whole = all.iter().any(|own| own.name == "http");
    let level = if is_whole { Level::Main } else { Level::Http };
    block(all, level, None)?;
    let http = all.iter().find(|own| own.name == "http");
    whole::check(http.map_or(all, Directive::inside), is_whole)
}

/// The first mistake in a block; `location` is the one around it.
fn block(all: &[Directive], level: Level, location: Option<&Directive>) -> Result<(), ImportError> {
    let mut seen: HashMap<&str, &Directive> = HashMap::new();
    for own in all {
        let Some(signature) = signature(own, level) else {
            continue;
        };
        directive(own, signature, level)
            .and_then(|()| rewriting::check_place(own, level.letter(), location))
            .map_err(|what| wrong(own, &what))?;
        // Both say where files are.
        let key = if own.name == "alias" {
            "root"
        } else {
            &own.name
        };
        if signature.is_once
            && let Some(first) = seen.insert(key, own)
        {
            return Err(wrong(own, &twice(own, first)));
        }
        if let Some(inner) = level.below(&own.name) {
            let location = if own.name == "location" {
                Some(own)
            } else {
                location
            };
            block(own.inside(), inner, location)?;
        }
    }
    Ok(())
}

fn signature(own: &Directive, level: Level) -> Option<Signature> {
    let mut signature = *signatures::of(&own.name)?;
    if own.name == "server" && level == Level::Upstream {
        signature.has_block = false;
        signature.counts = (1, usize::MAX);
    }
    Some(signature)
}

fn twice(own: &Directive, first: &Directive) -> String {
    let file = if own.at.file == first.at.file {
        String::new()
    } else {
        format!(" of {}", first.at.file)
    };
    let name = &first.name;
    if own.name == *name {
        let line = first.at.line;
        format!("a second one in this block, after that in line {line}{file}; keep one of them")
    } else {
        format!(
            "beside {name} in line {}{file}; keep one of them",
            first.at.line
        )
    }
}

/// What is wrong with a directive, if it does not just have no end.
fn wrong(own: &Directive, what: &str) -> ImportError {
    let Some((at, line)) = own.runs_into else {
        return own.at.wrong(format!("{}: {what}", own.name));
    };
    let mut before = own.clone();
    before.args.truncate(at);
    before.block = None;
    let next = &own.args[at];
    own.at.wrong(format!(
        "{} has no end before {next} in line {line}; write ; behind it",
        before.text()
    ))
}

fn directive(own: &Directive, signature: Signature, level: Level) -> Result<(), String> {
    if !signature.levels.contains(level.letter()) {
        let names: Vec<&str> = Level::ALL
            .iter()
            .filter(|own| signature.levels.contains(own.letter()))
            .map(|own| own.name())
            .collect();
        let names = values::list(&names);
        return Err(format!(
            "has no place in {}; write it in {names}",
            level.name()
        ));
    }
    match (signature.has_block, &own.block) {
        (true, None) => return Err("has no block; write { ... } behind it".into()),
        (false, Some(_)) => return Err("takes no block; write ; behind it".into()),
        _ => {}
    }
    count(own.args.len(), signature.counts)?;
    signature.kind.check(&own.args)?;
    values::check_words(&own.name, &own.args)?;
    addresses::check(own, level == Level::Upstream)?;
    rewriting::check(own)
}

fn count(found: usize, (least, most): (usize, usize)) -> Result<(), String> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    let words = match (least, most) {
        (0, 0) => "none".to_owned(),
        (least, most) if least == most => least.to_string(),
        (least, usize::MAX) => format!("{least} or more"),
        (least, most) => format!("{least} to {most}"),
    };
    let found = match found {
        0 => "no argument".to_owned(),
        1 => "1 argument".to_owned(),
        more => format!("{more} arguments"),
    };
    Err(format!("has {found}; write {words}"))
}
