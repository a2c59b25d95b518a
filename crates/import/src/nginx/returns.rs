//! `return` and `rewrite`.

use super::tree::Directive;
use super::values::unbraced;
use sooner_http::redirect;

/// The one status of nginx's own: the connection is closed without an answer.
const CLOSE: u16 = 444;

const LOOP: &str = "it leads to itself";
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
    let to = destination(url, place)?;
    if !to.starts_with('/') {
        let whole = Redirect::new("/*", &to, status)?;
        if !whole.is_loop(place.scheme) {
            return Ok(vec![whole]);
        }
    }
    // To a path of the same site: from just these paths, so that it is no loop.
    let from_these = |paths: &[String]| -> Result<Vec<Redirect>, String> {
        let all = paths.iter().map(|from| {
            let own = from_path(from, &to, status)?;
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

fn from_path(from: &str, to: &str, status: u16) -> Result<Redirect, String> {
    match (to.strip_suffix("/$1"), from.strip_suffix('*')) {
        (Some(base), Some(prefix)) => Redirect::new(from, &format!("{base}{prefix}$1"), status),
        (Some(base), None) => Redirect::new(from, &format!("{base}{from}"), status),
        (None, _) => Redirect::new(from, to, status),
    }
}

/// A URL of nginx as a `to` of Sooner, for a `from` that is `/*`.
fn destination(url: &str, place: Place<'_>) -> Result<String, String> {
    let mut url = unbraced(url);
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
            url = format!("{scheme}{name}{rest}");
        } else if let Some(rest) = behind_variable(rest, "$http_host") {
            // By a path alone the port stays what it was.
            let is_same = place.scheme == scheme.strip_suffix("://") && rest.starts_with('/');
            url = match is_same {
                true => rest.to_owned(),
                false => format!("{scheme}$host{rest}"),
            };
        }
    }
    // The query is kept anyway.
    for query in [
        "$is_args$args",
        "?$args",
        "?$query_string",
        "$is_args$query_string",
    ] {
        if let Some(rest) = url.strip_suffix(query) {
            url = rest.to_owned();
        }
    }
    for whole in ["$request_uri", "$uri", "$document_uri"] {
        if let Some(rest) = url.strip_suffix(whole) {
            url = format!("{}/$1", rest.trim_end_matches('/'));
            break;
        }
    }
    let variables = match url.split_once("://") {
        Some((_, rest)) => behind_variable(rest, "$host").unwrap_or(rest),
        None => &url,
    };
    if variables.replacen("/$1", "", 1).contains('$') {
        return Err("Sooner has no variables but $host and the path".into());
    }
    Ok(url)
}

/// What follows a variable, if the text begins with it and not with a longer name.
pub fn behind_variable<'t>(text: &'t str, variable: &str) -> Option<&'t str> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.strip_prefix(variable)
        .filter(|rest| !rest.starts_with(is_of_name))
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
    let (prefix, tail) = literal_beginning(expression)
        .ok_or("only ^/PATH$ and ^/PATH(.*)$ can be written, as from = \"/PATH\" or \"/PATH*\"")?;
    let (froms, has_rest) = match tail {
        "$" => (vec![prefix.clone()], false),
        "/?$" => (vec![prefix.clone(), format!("{prefix}/")], false),
        "(.*)$" | "(.*)" | "(.+)$" | "(.+)" => (vec![format!("{prefix}*")], true),
        "" | ".*" | ".*$" => (vec![format!("{prefix}*")], false),
        _ => return Err("only ^/PATH$ and ^/PATH(.*)$ can be written, as from and to".into()),
    };
    let status = match flag {
        "permanent" => 301,
        "redirect" => 302,
        _ if to.starts_with("http") || to.starts_with("$scheme") => 302,
        "break" | "last" if has_rest && to == "/$1" && prefix.ends_with('/') => {
            return Ok(Rewrite::Strip(prefix));
        }
        _ => {
            return Err(
                "paths are not rewritten within Sooner; write root, fallback or strip_prefix"
                    .into(),
            );
        }
    };
    let to = to.strip_suffix('?').unwrap_or(to);
    let has_whole = to.contains("$request_uri") || to.contains("$uri");
    let to = if has_rest && !has_whole {
        // What stands for the rest begins with a slash where nothing is before it.
        let (before, behind) = to.split_once("$1").unwrap_or((to, ""));
        let slash = if prefix.is_empty() && to.contains("$1") {
            "/"
        } else {
            ""
        };
        let rest = if to.contains("$1") { "$1" } else { "" };
        let before = destination(before, place)?;
        format!("{before}{slash}{rest}{behind}")
    } else {
        destination(to, place)?
    };
    let froms = if has_whole {
        vec!["/*".to_owned()]
    } else {
        froms
    };
    let redirects = froms.iter().map(|from| {
        let from = if from.starts_with('/') {
            from.clone()
        } else {
            format!("/{from}")
        };
        Redirect::new(&from, &to, status)
    });
    let redirects = redirects.collect::<Result<Vec<_>, _>>()?;
    without_loops(redirects, place).map(Rewrite::Redirect)
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
mod tests {
    use super::*;

    fn shown(redirects: &[Redirect]) -> String {
        let shown = redirects.iter();
        let shown = shown.map(|own| format!("{} > {} {}", own.from, own.to, own.status));
        shown.collect::<Vec<_>>().join(", ")
    }

    fn returned(text: &str, paths: &[&str]) -> String {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let place = Place {
            scheme: Some("http"),
            name: Some("a.org"),
            paths: &paths,
        };
        match read_return(&Directive::of_words(text), place) {
            Ok(Return::Redirect(redirects)) => shown(&redirects),
            Ok(other) => format!("{other:?}"),
            Err(why) => format!("not: {why}"),
        }
    }

    #[test]
    fn returns_are_redirects_or_answers() {
        for (text, paths, expected) in [
            (
                "return 301 https://$host$request_uri",
                &["/*"][..],
                "/* > https://$host/$1 301",
            ),
            (
                "return 301 https://b.org$request_uri",
                &["/x*"],
                "/* > https://b.org/$1 301",
            ),
            (
                "return 308 $scheme://www.b.org$uri$is_args$args",
                &["/*"],
                "/* > http://www.b.org/$1 308",
            ),
            (
                "return https://$server_name/",
                &["/*"],
                "/* > https://a.org/ 302",
            ),
            ("return 303 /b", &["/a"], "/a > /b 302"),
            (
                "return 301 $scheme://$host/new",
                &["/old*"],
                "/old* > http://$host/new 301",
            ),
            (
                "return 301 http://$host/older",
                &["/old*"],
                "/old > http://$host/older 301, /old/* > http://$host/older 301",
            ),
            (
                "return 302 http://$host/two?a=b",
                &["/one"],
                "/one > http://$host/two?a=b 302",
            ),
            (
                "return 301 /new$request_uri",
                &["/old/*"],
                "/old/* > /new/old/$1 301",
            ),
            (
                "return 301 /a.php$request_uri",
                &["/a*"],
                "/a > /a.php/a 301, /a/* > /a.php/a/$1 301",
            ),
            ("return 404", &["/*"], "Fixed(404, None)"),
            ("return 200 ok", &["/*"], "Fixed(200, Some(\"ok\"))"),
            ("return 444", &["/*"], "Close"),
        ] {
            assert_eq!(returned(text, paths), expected, "{text}");
        }
        for (text, paths) in [
            ("return 301 $scheme://$host/a", &["/a*"][..]),
            ("return 301 $scheme://$host/a", &["/*"]),
            ("return 301 http://$host$request_uri", &["/a*"]),
        ] {
            assert_eq!(returned(text, paths), "not: it leads to itself", "{text}");
        }
        for text in [
            "return 301 https://$x/",
            "return 999",
            "return 200 $host",
            "return 100",
        ] {
            assert!(returned(text, &["/*"]).starts_with("not: "), "{text}");
        }
    }

    #[test]
    fn the_simple_rewrites_are_redirects() {
        let place = Place {
            scheme: Some("http"),
            name: None,
            paths: &[],
        };
        for (text, expected) in [
            (
                "rewrite ^/old/(.*)$ /new/$1 permanent",
                "/old/* > /new/$1 301",
            ),
            ("rewrite ^/a$ /b redirect", "/a > /b 302"),
            ("rewrite ^/a/?$ /b redirect", "/a > /b 302, /a/ > /b 302"),
            (
                "rewrite ^(.*)$ https://b.org$1 permanent",
                "/* > https://b.org/$1 301",
            ),
            (
                "rewrite ^ https://$host$request_uri? permanent",
                "/* > https://$host/$1 301",
            ),
            (
                "rewrite ^/feed\\.xml$ https://b.org/rss",
                "/feed.xml > https://b.org/rss 302",
            ),
        ] {
            match read_rewrite(&Directive::of_words(text), place) {
                Ok(Rewrite::Redirect(redirects)) => {
                    assert_eq!(shown(&redirects), expected, "{text}")
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        let strip = read_rewrite(&Directive::of_words("rewrite ^/api/(.*)$ /$1 break"), place);
        assert_eq!(strip, Ok(Rewrite::Strip("/api/".into())));
        for text in [
            "rewrite ^/a/(.*)/b /c/$1 permanent",
            "rewrite ^ /index.php last",
        ] {
            assert!(
                read_rewrite(&Directive::of_words(text), place).is_err(),
                "{text}"
            );
        }
    }
}
