//! Where a `return` or `rewrite` leads: a URL of nginx as the `to` of a redirect.
//!
//! Sooner has one `$1`, for the rest of the path behind `from`. nginx has variables for the whole
//! path, and groups of expressions that it also calls `$1`; here the two are told apart.

use super::returns::Place;
use super::values::unbraced;

/// Stands for the rest of the path, in a redirect and in an expression with one group.
pub const REST: &str = "$1";
/// What cannot be part of a redirect.
pub const NO_VARIABLES: &str = "Sooner has no variables but $host and the path";
/// Which groups of expressions can be.
pub const GROUPS: &str =
    "$1 is written only of ^/PATH(.*)$ without another group, as from = \"/PATH*\"";
/// The query of the request, which a redirect keeps anyway.
const QUERIES: [&str; 4] = [
    "$is_args$args",
    "?$args",
    "?$query_string",
    "$is_args$query_string",
];

/// A text, and whether the path of the request follows it.
pub struct Destination {
    text: String,
    has_path: bool,
}

impl Destination {
    /// Reads a URL without groups of an expression.
    pub fn of(url: &str, place: Place<'_>) -> Result<Self, &'static str> {
        let url = without_query(&unbraced(url)).to_owned();
        if has_groups(&url) {
            return Err(GROUPS);
        }
        let url = with_own_host(url, place)?;
        let path = ["$request_uri", "$uri", "$document_uri"];
        let before = path.iter().find_map(|path| url.strip_suffix(path));
        let own = Self {
            text: before
                .map_or(url.as_str(), |own| own.trim_end_matches('/'))
                .to_owned(),
            has_path: before.is_some(),
        };
        match has_variables(&own.text) {
            true => Err(NO_VARIABLES),
            false => Ok(own),
        }
    }

    /// Whether it is a path of the same site.
    pub fn is_path(&self) -> bool {
        self.text.starts_with('/') || (self.has_path && self.text.is_empty())
    }

    /// The text alone; nothing where the path follows it.
    pub fn text(&self) -> Option<&str> {
        (!self.has_path).then_some(&self.text)
    }

    /// The `to` of all paths that a `from` is about.
    pub fn of_paths(&self, from: &str) -> String {
        let text = &self.text;
        match (self.has_path, from.strip_suffix('*')) {
            (false, _) => text.clone(),
            (true, Some(beginning)) => format!("{text}{beginning}{REST}"),
            (true, None) => format!("{text}{from}"),
        }
    }
}

/// A URL in which `$scheme`, `$server_name` and `$http_host` are what they are known to be.
fn with_own_host(mut url: String, place: Place<'_>) -> Result<String, &'static str> {
    if let Some(rest) = url.strip_prefix("$scheme://") {
        let scheme = place
            .scheme
            .ok_or("the scheme of the request is not known here")?;
        url = format!("{scheme}://{rest}");
    }
    for scheme in ["https://", "http://"] {
        let Some(rest) = url.strip_prefix(scheme) else {
            continue;
        };
        if let Some(rest) = behind_variable(rest, "$server_name") {
            let name = place
                .name
                .ok_or("this server has no name for $server_name")?;
            return Ok(format!("{scheme}{name}{rest}"));
        }
        if let Some(rest) = behind_variable(rest, "$http_host") {
            // By a path alone the port stays what it was.
            let is_same = place.scheme == scheme.strip_suffix("://") && rest.starts_with('/');
            return Ok(match is_same {
                true => rest.to_owned(),
                false => format!("{scheme}$host{rest}"),
            });
        }
    }
    Ok(url)
}

/// A URL without the query of the request at its end.
pub fn without_query(url: &str) -> &str {
    let queries = QUERIES.iter();
    queries.fold(url, |url, query| url.strip_suffix(query).unwrap_or(url))
}

/// Whether a URL has groups of an expression, in nginx's spelling.
pub fn has_groups(url: &str) -> bool {
    let mut behind = url.split('$').skip(1);
    behind.any(|own| {
        own.trim_start_matches('{')
            .starts_with(|next: char| next.is_ascii_digit())
    })
}

/// Whether a `to` has variables beside a host and the rest of the path.
pub fn has_variables(to: &str) -> bool {
    let rest = match to.split_once("://") {
        Some((_, rest)) => behind_variable(rest, "$host").unwrap_or(rest),
        None => to,
    };
    rest.replace(REST, "").contains('$')
}

/// What follows a variable, if the text begins with it and not with a longer name.
pub fn behind_variable<'t>(text: &'t str, variable: &str) -> Option<&'t str> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.strip_prefix(variable)
        .filter(|rest| !rest.starts_with(is_of_name))
}
