//! `fastcgi_pass`: which scripts a location has run, where they are, and by which servers.

use super::action::{Action, Actions, NOT_CARRIED};
use super::identity;
use super::locations::Location;
use super::regex;
use super::scope::Scope;
use super::tree::Directive;
use super::upstream_headers::Headers;
use super::upstreams::{self, Blocks, Upstream};
use sooner_http::path_pattern::{self, PathPattern};
use std::collections::BTreeMap;

/// Scripts that a location has run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The servers.
    pub upstream: Upstream,
    /// The directory that the scripts are below, by their whole paths.
    pub root: String,
    /// How long a server may take, s.
    pub seconds: Option<f64>,
    /// Whether a path may go on behind the name of a script.
    pub has_info: bool,
    /// Whether only other places lead to them.
    pub is_internal: bool,
    /// Beginnings of the paths that are run, where not all of the location are.
    pub only: Option<Vec<String>>,
}

impl Run {
    /// The paths that are run, of those of the location.
    pub fn narrowed(&self, texts: &[String]) -> Vec<String> {
        let Some(only) = &self.only else {
            return texts.to_vec();
        };
        let all = only.iter().flat_map(|begin| {
            let ends = texts.iter().filter(|text| text.starts_with('*'));
            ends.map(move |end| format!("{begin}{end}"))
        });
        all.collect()
    }

    /// Whether it has this script run, which is one of the location.
    pub fn has(&self, script: &str) -> bool {
        let fits = |begin: &String| {
            let pattern = PathPattern::parse(&format!("{begin}*"), false);
            pattern.is_ok_and(|own| own.fits(&path_pattern::plain(script)))
        };
        self.only.as_ref().is_none_or(|own| own.iter().any(fits))
    }
}

/// The end of a script's name.
pub const ENDING: &str = ".php";

/// What nginx's `fastcgi.conf` says, and what Sooner says as well or better.
const STANDARD: [(&str, &[&str]); 22] = [
    ("SCRIPT_FILENAME", &[]),
    ("QUERY_STRING", &["$query_string", "$args"]),
    ("REQUEST_METHOD", &["$request_method"]),
    ("CONTENT_TYPE", &["$content_type"]),
    ("CONTENT_LENGTH", &["$content_length"]),
    ("SCRIPT_NAME", &["$fastcgi_script_name"]),
    ("REQUEST_URI", &["$request_uri"]),
    (
        "DOCUMENT_URI",
        &["$document_uri", "$uri", "$fastcgi_script_name"],
    ),
    ("DOCUMENT_ROOT", &["$document_root", "$realpath_root"]),
    ("SERVER_PROTOCOL", &["$server_protocol"]),
    ("REQUEST_SCHEME", &["$scheme"]),
    ("HTTPS", &["$https"]),
    ("GATEWAY_INTERFACE", &["CGI/1.1"]),
    ("SERVER_SOFTWARE", &[]),
    ("REMOTE_ADDR", &["$remote_addr"]),
    ("REMOTE_PORT", &["$remote_port"]),
    ("REMOTE_USER", &["$remote_user"]),
    ("SERVER_ADDR", &["$server_addr"]),
    ("SERVER_PORT", &["$server_port"]),
    ("SERVER_NAME", &["$server_name", "$host", "$http_host"]),
    ("REDIRECT_STATUS", &["200"]),
    ("HTTP_HOST", &["$host", "$http_host"]),
];
/// These too, with any value: `PATH_INFO` is what follows the script, and `Proxy` is never passed.
const ANY_VALUE: [&str; 3] = ["PATH_INFO", "PATH_TRANSLATED", "HTTP_PROXY"];

impl<'a> Actions<'_, 'a> {
    /// What a location with `fastcgi_pass` does.
    pub fn run(&mut self, pass: &'a Directive, location: &Location<'a>) -> Action {
        match read(pass, location, self.blocks) {
            Ok(_) if told_who(&location.scope).is_some() => {
                let own = told_who(&location.scope).unwrap_or(pass);
                self.leave_out(own, identity::REFUSED);
                Action::Answer(403, None)
            }
            Ok((mut run, left_out)) => {
                for (directive, why) in left_out {
                    self.leave_out(&directive, why);
                }
                run.upstream.headers = self.parameters(&location.scope);
                self.tried_scripts(&location.scope);
                Action::Run(Box::new(run))
            }
            Err(why) => {
                self.leave_out(pass, &format!("{why}; requests get 501"));
                Action::Answer(NOT_CARRIED, None)
            }
        }
    }

    /// The headers that parameters stand for; says which others scripts are not told.
    fn parameters(&mut self, scope: &Scope<'a>) -> BTreeMap<String, String> {
        let mut headers = Headers::default();
        let passed = scope.one("fastcgi_pass_request_headers");
        if let Some(own) = passed.filter(|own| own.first() == "off") {
            self.leave_out(own, "the client's own headers are passed on");
        }
        for own in scope.all(&["fastcgi_param"]) {
            let name = own.first();
            let value = own.args.get(1).map_or("", String::as_str);
            let is_standard = STANDARD.iter().any(|(known, values)| {
                *known == name && (values.is_empty() || values.contains(&value))
            });
            let is_empty = value.is_empty() && !name.starts_with("HTTP_");
            if is_standard || ANY_VALUE.contains(&name) || is_empty {
                continue;
            }
            let why = match name {
                "HTTP_HOST" => "the client's own Host is passed on",
                name if name.starts_with("HTTP_") => {
                    self.put_header(scope, own, &header_name(name), &mut headers);
                    continue;
                }
                "HTTPS" => {
                    "scripts are told HTTPS for requests that came over TLS, and X-Forwarded-Proto"
                }
                "PHP_VALUE" | "PHP_ADMIN_VALUE" => {
                    "settings of PHP belong into its pool: php_value[...], php_admin_value[...]"
                }
                _ => "scripts are told what fastcgi_params has; env[...] of the pool sets others",
            };
            self.leave_out(own, why);
        }
        headers.values
    }

    fn tried_scripts(&mut self, scope: &Scope<'a>) {
        let Some(tried) = scope.own_one("try_files") else {
            return;
        };
        let is_known =
            |own: &String| matches!(own.as_str(), "$uri" | "$fastcgi_script_name" | "=404");
        if !tried.args.iter().all(is_known) {
            self.leave_out(tried, "a script that does not exist gets 404");
        }
    }
}

/// The header that a parameter stands for: `X-Forwarded-Proto` for `HTTP_X_FORWARDED_PROTO`.
fn header_name(parameter: &str) -> String {
    let words = parameter.split('_').skip(1).map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let rest = letters.map(|letter| letter.to_ascii_lowercase());
        first.into_iter().chain(rest).collect::<String>()
    });
    words.collect::<Vec<_>>().join("-")
}

/// A parameter that stands for a header of the client and says who the client is.
fn told_who<'a>(scope: &Scope<'a>) -> Option<&'a Directive> {
    identity::header(scope, &["fastcgi_param"], "HTTP_")
}

type Read = (Run, Vec<(Directive, &'static str)>);

fn read(pass: &Directive, location: &Location<'_>, blocks: &Blocks<'_>) -> Result<Read, String> {
    let scope = &location.scope;
    let place = scope.expanded(pass.first());
    if place.contains('$') {
        return Err("Sooner has no variables; name the servers".into());
    }
    let mut left_out = Vec::new();
    let mut upstream = upstreams::of_scripts(&place, blocks, &mut left_out)?;
    upstream.connect_seconds = upstreams::seconds(scope, "fastcgi_connect_timeout");
    let params = scope.all(&["fastcgi_param"]);
    let host = params.iter().rfind(|own| own.first() == "HTTP_HOST");
    let is_bare = host.is_some_and(|own| own.args.get(1).is_some_and(|value| value == "$host"));
    upstream.host = is_bare.then(|| upstreams::REQUESTED.to_owned());
    let run = Run {
        upstream,
        root: root(location)?,
        seconds: upstreams::seconds(scope, "fastcgi_read_timeout"),
        has_info: has_info(scope),
        is_internal: false,
        only: scope.own().iter().find_map(only),
    };
    Ok((run, left_out))
}

/// `try_files $uri =404` refuses a path that goes on behind the name of a script.
fn has_info(scope: &Scope<'_>) -> bool {
    let tried = scope.own_one("try_files");
    !tried.is_some_and(|own| own.first() == "$uri" && own.args.len() == 2)
}

/// The directory below which scripts are found by their whole paths.
fn root(location: &Location<'_>) -> Result<String, String> {
    let scope = &location.scope;
    let params = scope.all(&["fastcgi_param"]);
    let named = params
        .iter()
        .rfind(|own| own.first() == "SCRIPT_FILENAME")
        .map(|own| scope.expanded(own.args.get(1).map_or("", String::as_str)));
    let named = named.map(|text| text.replace("$realpath_root", "$document_root"));
    let text = named
        .as_deref()
        .unwrap_or("$document_root$fastcgi_script_name");
    let by_name = [
        "$document_root$fastcgi_script_name",
        "$document_root/$fastcgi_script_name",
    ];
    if by_name.contains(&text) {
        return document_root(location, false);
    }
    if text == "$request_filename" {
        return document_root(location, true);
    }
    if let Some(folder) = text.strip_suffix("$fastcgi_script_name")
        && folder.starts_with('/')
        && !folder.contains('$')
    {
        return Ok(without_slash(folder));
    }
    // One script by its name, where it is the only one of the location.
    let own = location
        .paths()
        .map(|paths| paths.texts)
        .unwrap_or_default();
    let is_own = |script: &str| {
        is_php(script)
            && !own.is_empty()
            && own
                .iter()
                .all(|text| text == script || *text == format!("{script}/*"))
    };
    if let Some(script) = text.strip_prefix("$document_root")
        && is_own(script)
    {
        return document_root(location, false);
    }
    Err("SCRIPT_FILENAME is not the path of the request below a root".into())
}

fn document_root(location: &Location<'_>, is_alias_right: bool) -> Result<String, String> {
    let scope = &location.scope;
    let all = scope.all(&["root", "alias"]);
    let named = all.last().ok_or("no root says where scripts are")?;
    let text = scope.expanded(named.first());
    if text.contains('$') {
        return Err("Sooner has no variables; name the root of the scripts".into());
    }
    if !text.starts_with('/') {
        return Err("its root is below the --prefix that nginx was built with".into());
    }
    if named.name == "root" {
        return Ok(without_slash(&text));
    }
    let outer = location.within.as_deref().unwrap_or(&location.path);
    let root = without_slash(&text);
    match root.strip_suffix(outer.trim_end_matches('/')) {
        Some(root) if is_alias_right && outer.starts_with('/') => Ok(without_slash(root)),
        _ => {
            Err("scripts are found by the whole path below a root; write root and not alias".into())
        }
    }
}

/// A directory without the slash at its end.
pub fn without_slash(folder: &str) -> String {
    let bare = folder.trim_end_matches('/');
    if bare.is_empty() { "/" } else { bare }.to_owned()
}

/// The script that `rewrite` leads all paths to, and what stands behind its name.
pub fn front(directives: &[Directive]) -> Option<(&str, &str)> {
    let all = [
        "^", ".", ".*", "(.*)", "^.*$", "^(.*)$", "^/(.*)$", "^(.+)$", "^/(.+)$", "^/", "^/.*$",
    ];
    let own = directives.iter().find(|own| own.name == "rewrite")?;
    let to = own.args.get(1)?;
    let is_all = all.contains(&own.first());
    let leads_away = matches!(
        own.args.get(2).map(String::as_str),
        Some("redirect" | "permanent")
    );
    (is_all && !leads_away)
        .then(|| split(to))
        .filter(|(page, _)| is_php(page))
}

/// The beginnings of the only paths that are run, where all others are rewritten to one script.
pub fn only(rewrite: &Directive) -> Option<Vec<String>> {
    let [expression, to, flag @ ..] = rewrite.args.as_slice() else {
        return None;
    };
    let is_front = rewrite.name == "rewrite"
        && is_php(split(to).0)
        && flag
            .iter()
            .all(|flag| matches!(flag.as_str(), "last" | "break"));
    let inside = expression.strip_prefix("^/(?!")?.strip_suffix(')')?;
    let paths = regex::paths(&format!("^/(?:{inside})")).filter(|_| is_front)?;
    let begins = paths.texts.iter().map(|text| {
        let begin = text.strip_suffix('*')?;
        (begin.starts_with('/') && !paths.ignores_case).then(|| begin.to_owned())
    });
    begins.collect()
}

/// Whether Sooner has a file of this name run.
pub fn is_php(path: &str) -> bool {
    path.to_ascii_lowercase().ends_with(ENDING)
}

/// The path of a page, and what stands behind it.
pub fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(['?', '$']).unwrap_or(text.len()))
}

/// Whether a condition is about files that are not there, and leads to a script.
pub fn is_front(own: &Directive) -> bool {
    let condition = own.args.join(" ");
    let condition = condition.replace("( ", "(").replace(" )", ")");
    own.name == "if"
        && matches!(
            condition.as_str(),
            "(!-f $request_filename)" | "(!-e $request_filename)"
        )
        && front(own.inside()).is_some()
}
