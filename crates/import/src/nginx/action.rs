//! What a location does.

use super::access::{self, Access};
use super::conditions::Condition;
use super::expiry::{self, Said};
use super::facts::Facts;
use super::fastcgi::{self, Run};
use super::identity;
use super::locations::{Kind, Location};
use super::passwords::{self, Shut};
use super::path_conditions::{self, About};
use super::returns::{Place, Redirect, Return, Rewrite, read_return, read_rewrite};
use super::scope::Scope;
use super::servers::place;
use super::tree::Directive;
use super::upstreams::{self, Blocks, Target};
use std::path::Path;

/// The answer where something of nginx is left out that would have answered.
pub const NOT_CARRIED: u16 = 501;
const FORBIDDEN: u16 = 403;
const INTERNAL: &str = "clients get 404 as with nginx, but what leads here within nginx does not: \
    X-Accel-Redirect of an upstream passes to the client, with the upstream's own body";

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
    /// Has scripts run.
    Run(Box<Run>),
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
    /// The script for these.
    pub script: Option<String>,
    /// Whether it is about that file or script alone, and about no file of its own path.
    pub is_one: bool,
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
    /// How long clients may keep its answers.
    pub said: Said,
}

/// Reads locations of one site.
pub struct Actions<'s, 'a> {
    /// `upstream` blocks.
    pub blocks: &'s Blocks<'a>,
    /// All locations but the named ones, as they are looked at.
    pub all: Vec<Location<'a>>,
    /// `location @NAME`.
    pub named: &'s [Location<'a>],
    /// The folder of relative names.
    pub prefix: &'s Path,
    /// Locations of which the password cannot be asked for.
    pub shut: Vec<Shut<'a>>,
    /// What is known of the requests.
    pub facts: Facts,
    /// `$server_name`.
    pub name: Option<&'s str>,
    /// What is left out, and why.
    pub left_out: Vec<(String, String)>,
}

/// Whatever is served by other programs, and why it is not.
const OTHER_HANDLERS: [(&str, &str); 9] = [
    ("js_content", "Sooner has no scripting; requests get 501"),
    ("perl", "Sooner has no scripting; requests get 501"),
    (
        "uwsgi_pass",
        "Sooner does not speak uwsgi; requests get 501; let uWSGI speak HTTP (http-socket)",
    ),
    ("scgi_pass", "Sooner has no SCGI; requests get 501"),
    (
        "memcached_pass",
        "Sooner does not speak memcached; requests get 501",
    ),
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

    /// Whether something is said of a directive.
    pub fn is_left_out(&self, directive: &Directive) -> bool {
        let (text, end) = (directive.text(), format!("({})", place(directive)));
        let mut said = self.left_out.iter();
        said.any(|(own, why)| *own == text && why.ends_with(&end))
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
                scheme: self.facts.scheme,
                name: self.name,
                paths: &paths,
                expression: location.expression(),
            };
            match own.name.as_str() {
                "return" => return self.returned_here(own, at, scope),
                "if" => {
                    if let Some(answer) = self.condition(own, at, location) {
                        return answer;
                    }
                }
                // Of its scripts not all are run.
                "rewrite"
                    if scope.own_one("fastcgi_pass").is_some() && fastcgi::only(own).is_some() => {}
                "rewrite" => match read_rewrite(own, at) {
                    Ok(Rewrite::Strip(prefix)) if prefix == location.path => strip = Some(own),
                    Ok(Rewrite::Redirect(redirects)) if is_about_all(&redirects, location) => {
                        self.remarks_on_redirect(own);
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
        self.after_rewrites(location, is_rewritten, strip.is_some())
    }

    /// The same, when it is known what becomes of its paths.
    fn after_rewrites(
        &mut self,
        location: &Location<'a>,
        is_rewritten: bool,
        is_stripped: bool,
    ) -> Action {
        let scope = &location.scope;
        let pass = scope.own().iter().find(|own| is_pass(own));
        let run = scope.own_one("fastcgi_pass");
        if let Some(answer) = self.locked(location) {
            return answer;
        }
        if let Some(answer) = self.shut(scope, access::is_of_files(scope)) {
            let is_internal = scope.own_one("internal").is_some()
                && access::within(scope, false) == Access::Open
                && !is_rewritten;
            return match run
                .filter(|_| is_internal)
                .map(|run| self.run(run, location))
            {
                Some(Action::Run(run)) => Action::Run(Box::new(Run {
                    is_internal: true,
                    ..*run
                })),
                _ => answer,
            };
        }
        if let Some(pass) = pass {
            if is_rewritten {
                self.leave_out(pass, "its paths are rewritten; requests get 501");
                return Action::Answer(NOT_CARRIED, None);
            }
            return self.pass(pass, location, is_stripped);
        }
        if let Some(run) = run {
            if is_rewritten || is_stripped {
                self.leave_out(run, "its paths are rewritten; requests get 501");
                return Action::Answer(NOT_CARRIED, None);
            }
            return self.run(run, location);
        }
        for (name, why) in OTHER_HANDLERS {
            if let Some(own) = scope.own_one(name) {
                self.leave_out(own, why);
                return Action::Answer(NOT_CARRIED, None);
            }
        }
        if let Some(own) = scope.own().iter().find(|own| own.name.contains("_by_lua")) {
            self.leave_out(own, "Sooner has no scripting; requests get 501");
            return Action::Answer(NOT_CARRIED, None);
        }
        let is_handler = |own: &&Directive| own.name.ends_with("_pass");
        if let Some(own) = scope.own().iter().find(is_handler) {
            self.leave_out(own, "Sooner does not speak this; requests get 501");
            return Action::Answer(NOT_CARRIED, None);
        }
        self.files(location)
    }

    /// What a location does where a condition of its own holds for all, or may keep clients out.
    fn condition(
        &mut self,
        own: &'a Directive,
        at: Place<'_>,
        location: &Location<'a>,
    ) -> Option<Action> {
        let scope = &location.scope;
        match self.facts.holds(&Condition::of(own)) {
            Some(false) => return None,
            Some(true) => {
                if let Some(returned) = own.inside().iter().find(|own| own.name == "return") {
                    return Some(self.returned_here(returned, at, scope));
                }
            }
            None => {}
        }
        if access::keeps_out(own, scope, &self.facts) {
            self.leave_out(own, access::BY_CONDITION);
            return Some(Action::Answer(FORBIDDEN, None));
        }
        let paths = location.paths();
        let refused = match path_conditions::about(own)? {
            About::Of(refused) => paths
                .as_ref()
                .and_then(|own| path_conditions::within(own, &refused)),
            About::Unsaid => None,
        };
        match (refused, paths) {
            (Some(refused), Some(paths)) if path_conditions::is_whole(&paths, &refused) => {
                path_conditions::refusal(own).map(|own| self.returned(own, at))
            }
            (Some(_), _) => None,
            (None, _) => {
                let why = "which paths it is about cannot be said; all are refused with 403";
                self.leave_out(own, why);
                Some(Action::Answer(FORBIDDEN, None))
            }
        }
    }

    /// What `return` does where it stands; conditions of the server come before it.
    fn returned_here(&mut self, own: &Directive, at: Place<'_>, scope: &Scope<'a>) -> Action {
        let action = self.returned(own, at);
        let Action::Answer(status, text) = &action else {
            return action;
        };
        let is_given = *status < 400;
        if text.is_some() {
            self.typed(scope);
        }
        if is_given
            && let Some(Access::Shut(rule, why)) =
                access::shut_by_condition(&scope.outside(), &self.facts)
        {
            self.leave_out(rule, why);
            return Action::Answer(FORBIDDEN, None);
        }
        action
    }

    /// Says of which type a fixed text is not.
    pub fn typed(&mut self, scope: &Scope<'a>) {
        let own = scope.one("default_type");
        let is_same =
            |own: &&Directive| matches!(own.first(), "text/plain" | "application/octet-stream");
        if let Some(own) = own.filter(|own| !is_same(own)) {
            self.leave_out(own, "a text is sent as text/plain");
        }
    }

    fn returned(&mut self, own: &Directive, at: Place<'_>) -> Action {
        match read_return(own, at) {
            Ok(Return::Redirect(redirects)) => {
                self.remarks_on_redirect(own);
                Action::Redirect(redirects)
            }
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

    /// The answer to all, where a password cannot be asked for.
    fn locked(&mut self, location: &Location<'a>) -> Option<Action> {
        let mut shut = self.shut.iter();
        let (_, rule, why) = shut.find(|(own, _, _)| std::ptr::eq(*own, location.directive))?;
        let (rule, why) = (*rule, *why);
        self.leave_out(rule, why);
        Some(Action::Answer(FORBIDDEN, None))
    }

    /// Whether a place may lead to a file or script, as far as rules are concerned.
    pub fn may_lead(&self, scope: &Scope<'a>, page: &str) -> bool {
        let Some(to) = self.all.iter().find(|own| own.fits(page)) else {
            return true;
        };
        access::within(&to.scope, true) == Access::Open
            && access::shut_by_condition(&to.scope, &self.facts).is_none()
            && self.asks_for_no_more(scope, &to.scope)
    }

    /// Whether a scope asks for no password but the one of another.
    pub fn asks_for_no_more(&self, scope: &Scope<'a>, to: &Scope<'a>) -> bool {
        let wanted = passwords::asked(to, self.prefix);
        wanted == passwords::Wanted::Open || wanted == passwords::asked(scope, self.prefix)
    }

    /// The answer to all, where not all may come.
    pub fn shut(&mut self, scope: &Scope<'a>, is_of_files: bool) -> Option<Action> {
        let access = match access::of(scope, is_of_files) {
            Access::Open => access::shut_by_condition(scope, &self.facts)?,
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

    /// Says of places that only an upstream may lead to that it does not.
    pub fn internal(&mut self, locations: &[Location<'a>], acts: &[Action]) {
        let leads_on = |act: &Action| matches!(act, Action::Pass(_) | Action::Run(_));
        if !acts.iter().any(leads_on) {
            return;
        }
        let names = ["error_page", "try_files", "auth_request", "mirror"];
        let is_page = |location: &Location<'a>| {
            let mut all = locations.iter().flat_map(|own| own.scope.everywhere());
            all.any(|own| {
                let page = own
                    .args
                    .last()
                    .filter(|_| names.contains(&own.name.as_str()));
                page.is_some_and(|page| location.fits(page))
            })
        };
        for (location, act) in locations.iter().zip(acts) {
            let own = location.scope.own_one("internal");
            if let Some(own) = own.filter(|_| !leads_on(act) && !is_page(location)) {
                self.leave_out(own, INTERNAL);
            }
        }
    }

    /// What a location that passes requests on does.
    pub fn pass(&mut self, pass: &Directive, location: &Location<'a>, is_stripped: bool) -> Action {
        let scope = &location.scope;
        let names = ["proxy_set_header", "grpc_set_header"];
        if let Some(own) = identity::header(scope, &names, "") {
            self.leave_out(own, identity::REFUSED);
            return Action::Answer(FORBIDDEN, None);
        }
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
        let headers = self.headers_to_upstream(scope);
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
        target.upstream.headers = headers;
        if is_tls {
            let ca = scope.one("proxy_ssl_trusted_certificate");
            target.upstream.ca = ca.map(|own| self.prefix.join(own.first()).display().to_string());
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
            said: expiry::said(scope),
        }))
    }
}

/// Whether every path of a location is redirected.
fn is_about_all(redirects: &[Redirect], location: &Location<'_>) -> bool {
    let whole = format!("{}*", location.path);
    redirects
        .iter()
        .any(|own| own.from == "/*" || own.from == whole)
}

/// Whether this passes requests on.
pub fn is_pass(own: &Directive) -> bool {
    matches!(own.name.as_str(), "proxy_pass" | "grpc_pass")
}

/// Whether a file of this name is for another program to run, and never to be sent.
pub fn is_script(path: &str) -> bool {
    let ends = [
        ".php", ".phtml", ".phar", ".cgi", ".fcgi", ".pl", ".py", ".rb", ".asp", ".aspx", ".jsp",
    ];
    let path = path.to_ascii_lowercase();
    ends.iter().any(|end| path.ends_with(end))
}
