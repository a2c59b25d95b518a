//! `return` and `rewrite`.

use super::destination::{self, Destination, GROUPS, NO_VARIABLES, REST};
use super::tree::Directive;
use super::values::unbraced;
use sooner_http::redirect;

/// The one status of nginx's own: the connection is closed without an answer.
const CLOSE: u16 = 444;

const LOOP: &str = "it leads to itself";
const ONLY: &str = "only ^/PATH$ and ^/PATH(.*)$ can be written, as from = \"/PATH\" or \"/PATH*\"";

/// A redirect as Sooner has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// A path, or with a star at its end all that begin so.
    pub from: String,
    /// Where to.
    pub to: String,
    /// 301, 302, 307 or 308.
    pub status: u16,
}

impl Redirect {
    /// Checked as Sooner will check it.
    pub fn new(from: &str, to: &str, status: u16) -> Result<Self, String> {
        // A client would get it as text.
        if destination::has_variables(to) {
            return Err(NO_VARIABLES.into());
        }
        redirect::Redirect::parse(from, to, status)
            .map_err(|error| format!("cannot be a redirect to {to}: {error}"))?;
        Ok(Self {
            from: from.to_owned(),
            to: to.to_owned(),
            status,
        })
    }

    /// Whether it leads a request of this scheme to itself.
    fn is_loop(&self, scheme: Option<&str>) -> bool {
        let parsed = redirect::Redirect::parse(&self.from, &self.to, self.status);
        let Some(own) = parsed.ok().filter(redirect::Redirect::repeats_at_own_host) else {
            return false;
        };
        let to = own
            .scheme_at_own_host()
            .map(|to| to.trim_end_matches("://"));
        scheme.is_none() || scheme == to
    }

    /// Whether it leads from clear text to the same host over TLS.
    pub fn leads_to_https(&self) -> bool {
        self.to.starts_with("https://$host")
    }
}

/// What `return` does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Return {
    /// Elsewhere.
    Redirect(Vec<Redirect>),
    /// This status, with this text.
    Fixed(u16, Option<String>),
    /// Closes the connection.
    Close,
}

/// What is known where a `return` stands.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The scheme of the requests, if it is one.
    pub scheme: Option<&'a str>,
    /// `$server_name`.
    pub name: Option<&'a str>,
    /// The paths that it is about.
    pub paths: &'a [String],
    /// The expression that `$1` is a group of, if no other one is looked at on the way.
    pub expression: Option<&'a str>,
}

/// Reads a `return`; the error says why it cannot be said.
pub fn read_return(directive: &Directive, place: Place<'_>) -> Result<Return, String> {
    let (status, what) = match directive.args.as_slice() {
        [one] if one.starts_with("http") || one.starts_with('$') => (302, Some(one)),
        [status] => (number(status)?, None),
        [status, what] => (number(status)?, Some(what)),
        _ => return Err("write return STATUS [TEXT|URL]".into()),
    };
    match (status, what) {
        (CLOSE, _) => Ok(Return::Close),
        (301 | 302 | 303 | 307 | 308, Some(url)) => {
            // The nearest there is: it too has browsers ask by GET.
            let status = if status == 303 { 302 } else { status };
            without_loops(redirects(url, status, place)?, place).map(Return::Redirect)
        }
        (200 | 204 | 400..=599, Some(text)) if text.contains('$') => Err(format!(
            "Sooner has no variables; status {status} and its text are left out"
        )),
        (200 | 204 | 400..=599, text) => Ok(Return::Fixed(
            status,
            text.filter(|text| !text.is_empty()).cloned(),
        )),
        _ => Err("a location answers with 200, 204 or 400 to 599".into()),
    }
}

fn number(text: &str) -> Result<u16, String> {
    let status = text
        .parse()
        .ok()
        .filter(|status| (100..=599).contains(status));
    status.ok_or_else(|| format!("{text:?} is not a status"))
}

fn redirects(url: &str, status: u16, place: Place<'_>) -> Result<Vec<Redirect>, String> {
    if destination::has_groups(url) {
        let matched = Matched::of(place.expression.ok_or(GROUPS)?).map_err(|_| GROUPS)?;
        return matched.redirects(url, status, place);
    }
    let to = Destination::of(url, place)?;
    if !to.is_path() {
        let whole = Redirect::new("/*", &to.of_paths("/*"), status)?;
        if !whole.is_loop(place.scheme) {
            return Ok(vec![whole]);
        }
    }
    // To a path of the same site: from just these paths, so that it is no loop.
    let from_these = |paths: &[String]| -> Result<Vec<Redirect>, String> {
        let all = paths.iter().map(|from| {
            let own = Redirect::new(from, &to.of_paths(from), status)?;
            let is_loop = own.is_loop(place.scheme);
            (!is_loop).then_some(own).ok_or_else(|| LOOP.to_owned())
        });
        all.collect()
    };
    from_these(place.paths).or_else(|why| {
        // By whole segments it may be none.
        let by_segments = place.paths.iter().map(|from| {
            let prefix = from.strip_suffix('*')?;
            (!prefix.ends_with('/')).then(|| [prefix.to_owned(), format!("{prefix}/*")])
        });
        let by_segments: Option<Vec<[String; 2]>> = by_segments.collect();
        from_these(&by_segments.ok_or(why)?.concat())
    })
}

fn without_loops(redirects: Vec<Redirect>, place: Place<'_>) -> Result<Vec<Redirect>, String> {
    if redirects.iter().any(|own| own.is_loop(place.scheme)) {
        return Err(LOOP.into());
    }
    Ok(redirects)
}

/// What `rewrite` does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// Elsewhere.
    Redirect(Vec<Redirect>),
    /// Takes this away from the beginning of the path, and goes on.
    Strip(String),
}

/// Reads a `rewrite`; the error says why it cannot be said.
pub fn read_rewrite(directive: &Directive, place: Place<'_>) -> Result<Rewrite, String> {
    let (expression, to, flag) = match directive.args.as_slice() {
        [expression, to] => (expression, to, ""),
        [expression, to, flag] => (expression, to, flag.as_str()),
        _ => return Err("write rewrite EXPRESSION PATH [FLAG]".into()),
    };
    let matched = Matched::of(expression)?;
    let status = match flag {
        "permanent" => 301,
        "redirect" => 302,
        _ if to.starts_with("http") || to.starts_with("$scheme") => 302,
        "break" | "last"
            if matched.has_group && to == "/$1" && matched.beginning.ends_with('/') =>
        {
            return Ok(Rewrite::Strip(matched.beginning));
        }
        _ => {
            return Err(
                "paths are not rewritten within Sooner; write root, fallback or strip_prefix"
                    .into(),
            );
        }
    };
    let to = to.strip_suffix('?').unwrap_or(to);
    let redirects = matched.redirects(to, status, place)?;
    without_loops(redirects, place).map(Rewrite::Redirect)
}

/// The paths of an expression that begins with a text.
struct Matched {
    /// The text.
    beginning: String,
    /// The paths, as redirects have them.
    froms: Vec<String>,
    /// Whether its only group is what follows the text.
    has_group: bool,
}

impl Matched {
    fn of(expression: &str) -> Result<Self, &'static str> {
        let (beginning, tail) = literal_beginning(expression).ok_or(ONLY)?;
        if !beginning.is_empty() && !beginning.starts_with('/') {
            return Err("no path begins so");
        }
        let (froms, has_group) = match tail {
            "$" => (vec![beginning.clone()], false),
            "/?$" => (vec![beginning.clone(), format!("{beginning}/")], false),
            "(.*)$" | "(.*)" | "(.+)$" | "(.+)" => (vec![format!("{beginning}*")], true),
            "" | ".*" | ".*$" => (vec![format!("{beginning}*")], false),
            _ => return Err(ONLY),
        };
        let rooted = froms.into_iter().map(|from| match from.starts_with('/') {
            true => from,
            false => format!("/{from}"),
        });
        Ok(Self {
            froms: rooted.collect(),
            beginning,
            has_group,
        })
    }

    /// Redirects from its paths to a URL that may have its group.
    fn redirects(&self, url: &str, status: u16, place: Place<'_>) -> Result<Vec<Redirect>, String> {
        let url = unbraced(url);
        let url = destination::without_query(&url);
        let to: Box<dyn Fn(&str) -> String> = match url.split_once(REST) {
            Some((before, behind)) if self.has_group => {
                let before = Destination::of(before, place)?;
                let before = before.text().ok_or(NO_VARIABLES)?;
                let mut to = format!("{before}{REST}{behind}");
                // What stands for the rest begins with a slash where nothing is before it.
                if self.beginning.is_empty() {
                    to = to.replace(REST, &format!("/{REST}"));
                }
                Box::new(move |_| to.clone())
            }
            _ => {
                let to = Destination::of(url, place)?;
                Box::new(move |from| to.of_paths(from))
            }
        };
        let redirects = self.froms.iter();
        let redirects = redirects.map(|from| Redirect::new(from, &to(from), status));
        redirects.collect()
    }
}

/// The text that an expression begins with, and what of the expression follows it.
pub fn literal_beginning(expression: &str) -> Option<(String, &str)> {
    if matches!(expression, ".*" | "(.*)" | ".") {
        return Some((
            String::new(),
            if expression == "(.*)" { "(.*)" } else { "" },
        ));
    }
    let rest = expression.strip_prefix('^')?;
    let mut text = String::new();
    let mut letters = rest.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some((_, next)) if !next.is_ascii_alphanumeric() => text.push(next),
                _ => return None,
            },
            '/' if rest[at..] == *"/?$" => return Some((text, &rest[at..])),
            letter if ".*+?()[]{}|^$".contains(letter) => return Some((text, &rest[at..])),
            letter => text.push(letter),
        }
    }
    Some((text, ""))
}

#[cfg(test)]
mod tests;
