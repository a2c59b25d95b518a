//! What a location does.

use super::access::{self, Access};
use super::locations::{Kind, Location};
use super::returns::{Place, Redirect, Return, Rewrite, read_return, read_rewrite};
use super::scope::Scope;
use super::servers::place;
use super::tree::Directive;
use super::upstreams::{self, Blocks, Target};

/// The answer where something of nginx is left out that would have answered.
pub const NOT_CARRIED: u16 = 501;
const FORBIDDEN: u16 = 403;

/// What a location does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Always the same answer.
    Answer(u16, Option<String>),
    /// Leads elsewhere.
    Redirect(Vec<Redirect>),
    /// Sends files.
    Files(Files),
    /// Passes requests on.
    Pass(Box<Pass>),
}

/// Files of a directory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Files {
    /// The directory, if it is known.
    pub root: Option<String>,
    /// What paths begin with that is not there.
    pub strip: Option<String>,
    /// Whether a path may be a directory.
    pub has_directories: bool,
    /// The file for paths that lead to none.
    pub fallback: Option<String>,
}

/// Requests that are passed on.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// Where to.
    pub target: Target,
    /// Whether without the path of the location.
    pub strips: bool,
    /// Files that come first.
    pub files: Option<Files>,
    /// How long the upstream may take, s.
    pub seconds: Option<f64>,
}

/// Reads locations of one site.
pub struct Actions<'s, 'a> {
    /// `upstream` blocks.
    pub blocks: &'s Blocks<'a>,
    /// `location @NAME`.
    pub named: &'s [Location<'a>],
    /// The scheme of the requests, if it is one.
    pub scheme: Option<&'static str>,
    /// `$server_name`.
    pub name: Option<&'s str>,
    /// What is left out, and why.
    pub left_out: Vec<(String, String)>,
}

/// Whatever is served by other programs, and why it is not.
const OTHER_HANDLERS: [(&str, &str); 8] = [
    (
        "fastcgi_pass",
        "there is no FastCGI; requests get 501, and no file is sent as its source",
    ),
    (
        "uwsgi_pass",
        "there is no uwsgi protocol; requests get 501; let uWSGI speak HTTP (http-socket)",
    ),
    ("scgi_pass", "there is no SCGI; requests get 501"),
    ("memcached_pass", "there is no memcached; requests get 501"),
    ("stub_status", "requests get 501; admin.listen has figures"),
    ("dav_methods", "files are only read; requests get 501"),
    ("random_index", "requests get 501"),
    ("empty_gif", "requests get 501"),
];

impl<'a> Actions<'_, 'a> {
    /// Says that something is left out.
    pub fn leave_out(&mut self, directive: &Directive, why: &str) {
        let entry = (directive.text(), format!("{why} ({})", place(directive)));
        if !self.left_out.contains(&entry) {
            self.left_out.push(entry);
        }
    }

    /// What this location does.
    pub fn of(&mut self, location: &Location<'a>) -> Action {
        let scope = &location.scope;
        let paths = location
            .paths()
            .map(|paths| paths.texts)
            .unwrap_or_default();
        let mut strip = None;
        let mut is_rewritten = false;
        for own in scope.own() {
            let at = Place {
                scheme: self.scheme,
                name: self.name,
                paths: &paths,
            };
            match own.name.as_str() {
                "return" => return self.returned(own, at),
                "rewrite" => match read_rewrite(own, at) {
                    Ok(Rewrite::Strip(prefix)) if prefix == location.path => strip = Some(own),
                    Ok(Rewrite::Redirect(redirects)) if is_about_all(&redirects, location) => {
                        return Action::Redirect(redirects);
                    }
                    // The site has these, before its locations.
                    Ok(Rewrite::Redirect(_)) if location.is_rest() => {}
                    Ok(_) => {
                        is_rewritten = true;
                        self.leave_out(own, "a location does one thing; write it outside");
                    }
                    Err(why) => {
                        // Some paths of many are seen by the upstream as they came.
                        is_rewritten |= !location.is_rest();
                        self.leave_out(own, &why);
                    }
                },
                _ => {}
            }
        }
        let pass = scope.own().iter().find(|own| is_pass(own));
        if let Some(answer) = self.shut(scope, pass.is_none()) {
            return answer;
        }
        if let Some(pass) = pass {
            if is_rewritten {
                self.leave_out(pass, "its paths are rewritten; requests get 501");
                return Action::Answer(NOT_CARRIED, None);
            }
            return self.pass(pass, location, strip.is_some());
        }
        for (name, why) in OTHER_HANDLERS {
            if let Some(own) = scope.own_one(name) {
                self.leave_out(own, why);
                return Action::Answer(NOT_CARRIED, None);
            }
        }
        if let Some(own) = scope.own().iter().find(|own| own.name.contains("_by_lua")) {
            self.leave_out(own, "there are no scripts; requests get 501");
            return Action::Answer(NOT_CARRIED, None);
        }
        self.files(location)
    }

    fn returned(&mut self, own: &Directive, at: Place<'_>) -> Action {
        match read_return(own, at) {
            Ok(Return::Redirect(redirects)) => Action::Redirect(redirects),
            Ok(Return::Fixed(status, text)) => Action::Answer(status, text),
            Ok(Return::Close) => {
                self.leave_out(
                    own,
                    "no connection is closed without an answer; requests get 403",
                );
                Action::Answer(FORBIDDEN, None)
            }
            Err(why) => {
                self.leave_out(own, &format!("{why}; requests get 501"));
                Action::Answer(NOT_CARRIED, None)
            }
        }
    }

    /// The answer to all, where not all may come.
    fn shut(&mut self, scope: &Scope<'a>, is_of_files: bool) -> Option<Action> {
        let access = match access::of(scope, is_of_files) {
            Access::Open => access::shut_by_condition(scope)?,
            access => access,
        };
        match access {
            Access::Open => None,
            Access::Refused(status) => Some(Action::Answer(status, None)),
            Access::Shut(rule, why) => {
                self.leave_out(rule, why);
                Some(Action::Answer(FORBIDDEN, None))
            }
        }
    }

    fn pass(&mut self, pass: &Directive, location: &Location<'a>, is_stripped: bool) -> Action {
        let scope = &location.scope;
        let target = match upstreams::target(pass, scope, self.blocks) {
            Ok(target) => target,
            Err(why) => {
                self.leave_out(pass, &format!("{why}; requests get 501"));
                return Action::Answer(NOT_CARRIED, None);
            }
        };
        let is_prefix = matches!(location.kind, Kind::Prefix { .. });
        let strips = match target.uri.as_deref() {
            None => is_stripped,
            Some(uri) if uri == location.path && location.kind != Kind::Named => false,
            Some("/") if is_prefix => true,
            Some(_) => {
                let why = "a path is taken away (strip_prefix) and not replaced by another; requests get 501";
                self.leave_out(pass, why);
                return Action::Answer(NOT_CARRIED, None);
            }
        };
        for (directive, why) in &target.left_out {
            self.leave_out(directive, why);
        }
        self.headers_to_upstream(scope);
        let rewritten = scope.one("proxy_redirect");
        if let Some(own) = rewritten.filter(|own| !matches!(own.first(), "off" | "default")) {
            self.leave_out(own, "Location of upstreams passes as it is");
        }
        let is_tls = target
            .upstream
            .servers
            .iter()
            .any(|own| own.starts_with("https"));
        let mut target = target;
        if is_tls {
            let ca = scope.one("proxy_ssl_trusted_certificate");
            target.upstream.ca = ca.map(|own| own.first().to_owned());
            if scope
                .one("proxy_ssl_verify")
                .is_none_or(|own| own.first() != "on")
            {
                let why =
                    "the certificates of servers are always verified; upstream.ca names others";
                self.leave_out(pass, why);
            }
        }
        Action::Pass(Box::new(Pass {
            target,
            strips,
            files: None,
            seconds: upstreams::seconds(scope, "proxy_read_timeout"),
        }))
    }

    /// What Sooner sets itself needs no word.
    fn headers_to_upstream(&mut self, scope: &Scope<'a>) {
        for own in scope.all(&["proxy_set_header", "grpc_set_header"]) {
            let name = own.first().to_ascii_lowercase();
            let value = own.args.get(1).map_or("", String::as_str);
            let why = match name.as_str() {
                "host" | "upgrade" | "connection" | "x-forwarded-for" | "x-forwarded-proto"
                | "x-forwarded-host" | "x-real-ip" | "forwarded" | "te" => continue,
                "x-forwarded-port" | "x-forwarded-ssl" | "x-scheme" | "x-forwarded-scheme"
                | "x-url-scheme" => "X-Forwarded-Proto and X-Forwarded-Host say it",
                "accept-encoding" if value.is_empty() => "what the client accepts is passed on",
                _ => "no other header is set for upstreams",
            };
            self.leave_out(own, why);
        }
    }

    fn files(&mut self, location: &Location<'a>) -> Action {
        let scope = &location.scope;
        let mut files = match self.directory(location) {
            Ok(files) => files,
            Err((directive, why)) => {
                self.leave_out(directive, &format!("{why}; requests get 501"));
                return Action::Answer(NOT_CARRIED, None);
            }
        };
        let unless_there = scope.own().iter().find(|own| {
            own.name == "if"
                && matches!(
                    own.args.join(" ").as_str(),
                    "(!-f $request_filename)" | "(!-e $request_filename)"
                )
                && own.inside().iter().any(is_pass)
        });
        if let Some(own) = unless_there
            && let Some(pass) = own.inside().iter().find(|own| is_pass(own))
        {
            return self.files_first(pass, location, files);
        }
        let Some(tried) = scope.own_one("try_files") else {
            return Action::Files(files);
        };
        let Some((last, others)) = tried.args.split_last() else {
            return Action::Files(files);
        };
        let has_other = others.iter().any(|own| !is_tried_anyway(own));
        if has_other {
            self.leave_out(
                tried,
                "of what is tried only $uri, $uri/ and the last are carried over",
            );
        }
        files.has_directories = others.iter().any(|own| own.starts_with("$uri/"));
        let second = others.last().filter(|own| own.starts_with('/'));
        match (last.as_str(), second) {
            ("=404", Some(page)) if !page.contains('$') => self.fall_back(tried, &mut files, page),
            ("=404", _) => {}
            (name, _) if name.starts_with('@') => return self.named(tried, location, name, files),
            (page, _) if page.starts_with('/') => {
                let page = page.split(['?', '$']).next().unwrap_or_default();
                self.fall_back(tried, &mut files, page);
            }
            _ => self.leave_out(tried, "what is not there gets 404"),
        }
        Action::Files(files)
    }

    fn fall_back(&mut self, tried: &Directive, files: &mut Files, page: &str) {
        let strip = files
            .strip
            .as_deref()
            .map(|strip| strip.trim_end_matches('/'));
        let below = strip.map_or(Some(page), |strip| page.strip_prefix(strip));
        let is_script = is_script(page);
        match below.filter(|page| page.starts_with('/') && !page.ends_with('/') && !is_script) {
            Some(page) if files.root.is_some() => files.fallback = Some(page.to_owned()),
            _ if is_script => {
                self.leave_out(tried, "there is no FastCGI; what is not there gets 404");
            }
            _ => self.leave_out(
                tried,
                "fallback is a file below the root; what is not there gets 404",
            ),
        }
    }

    fn named(
        &mut self,
        tried: &Directive,
        location: &Location<'a>,
        name: &str,
        files: Files,
    ) -> Action {
        let Some(named) = self.named.iter().find(|own| own.path == name) else {
            self.leave_out(
                tried,
                "there is no such location; what is not there gets 404",
            );
            return Action::Files(files);
        };
        let named = named.clone();
        let pass = named.scope.own().iter().find(|own| is_pass(own));
        match (pass, self.shut(&named.scope, false)) {
            (Some(pass), None) => {
                let at = Location {
                    scope: named.scope.clone(),
                    ..location.clone()
                };
                self.files_first(pass, &at, files)
            }
            _ => {
                self.leave_out(tried, "only a location that passes requests on can be the last; what is not there gets 404");
                Action::Files(files)
            }
        }
    }

    fn files_first(&mut self, pass: &Directive, location: &Location<'a>, files: Files) -> Action {
        match self.pass(pass, location, false) {
            Action::Pass(mut pass) if files.root.is_some() => {
                pass.files = Some(files);
                Action::Pass(pass)
            }
            action => action,
        }
    }

    /// The directory of a location; the error is what cannot be said of it.
    fn directory(
        &mut self,
        location: &Location<'a>,
    ) -> Result<Files, (&'a Directive, &'static str)> {
        let scope = &location.scope;
        let own = scope.all(&["root", "alias"]);
        let Some(named) = own.last().copied() else {
            return Ok(Files {
                has_directories: true,
                ..Files::default()
            });
        };
        let text = scope.expanded(named.first());
        if named.name == "alias" {
            if !scope.own().iter().any(|own| std::ptr::eq(own, named)) {
                return Err((named, "an alias holds for its own location"));
            }
            return aliased(location, &text).map_err(|why| (named, why));
        }
        if text.contains('$') {
            return Err((named, "there are no variables; name the directory"));
        }
        if !text.starts_with('/') {
            self.leave_out(
                named,
                "it is below the --prefix that nginx was built with; write the whole path",
            );
            return Ok(Files {
                has_directories: true,
                ..Files::default()
            });
        }
        Ok(Files {
            root: Some(text),
            has_directories: true,
            ..Files::default()
        })
    }
}

/// Whether every path of a location is redirected.
fn is_about_all(redirects: &[Redirect], location: &Location<'_>) -> bool {
    let whole = format!("{}*", location.path);
    redirects
        .iter()
        .any(|own| own.from == "/*" || own.from == whole)
}

/// What `alias` says.
fn aliased(location: &Location<'_>, alias: &str) -> Result<Files, &'static str> {
    let path = location.path.as_str();
    let files = |root: &str, strip: &str| Files {
        root: Some(root.to_owned()),
        strip: Some(strip.to_owned()),
        has_directories: true,
        fallback: None,
    };
    if !alias.starts_with('/') {
        return Err("it is below the --prefix that nginx was built with; write the whole path");
    }
    let last = |path: &str| path.rsplit_once('/').map(|(_, name)| name.to_owned());
    let is_file = last(path) == last(alias) && last(path).is_some_and(|name| name.contains('.'));
    match location.kind {
        Kind::Prefix { .. } if !alias.contains('$') && !is_file => Ok(files(alias, path)),
        Kind::Exact | Kind::Prefix { .. } if !alias.contains('$') => {
            let (folder, name) = alias.rsplit_once('/').unwrap_or(("", alias));
            let (strip, own) = path.rsplit_once('/').unwrap_or(("", path));
            if name != own || name.is_empty() {
                return Err("a file is sent under its own name");
            }
            let folder = if folder.is_empty() { "/" } else { folder };
            Ok(files(folder, if strip.is_empty() { "/" } else { strip }))
        }
        Kind::Expression { .. } => {
            let prefix = path.strip_prefix('^');
            let prefix = prefix.and_then(|rest| {
                let tails = ["(.*)$", "(.+)$", "(.*)", "(.+)"];
                tails.iter().find_map(|tail| rest.strip_suffix(tail))
            });
            let is_plain =
                |own: &&str| !own.contains(['(', '[', '\\', '.', '*', '+', '?', '$', '|']);
            match (prefix.filter(is_plain), alias.strip_suffix("$1")) {
                (Some(prefix), Some(folder)) if prefix.ends_with('/') && !folder.contains('$') => {
                    Ok(files(folder, prefix))
                }
                _ => Err("there are no variables; name the directory"),
            }
        }
        _ => Err("there are no variables; name the directory"),
    }
}

/// Whether this passes requests on.
pub fn is_pass(own: &Directive) -> bool {
    matches!(own.name.as_str(), "proxy_pass" | "grpc_pass")
}

fn is_tried_anyway(own: &str) -> bool {
    matches!(own, "$uri" | "$uri/" | "$uri/index.html") || own.starts_with('/')
}

/// Whether a file of this name is for another program to run, and never to be sent.
pub fn is_script(path: &str) -> bool {
    let ends = [
        ".php", ".phtml", ".phar", ".cgi", ".fcgi", ".pl", ".py", ".rb", ".asp", ".aspx", ".jsp",
    ];
    let path = path.to_ascii_lowercase();
    ends.iter().any(|end| path.ends_with(end))
}
