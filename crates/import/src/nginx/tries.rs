//! Files, and what answers where there is none.

use super::action::{Action, Actions, Files, NOT_CARRIED, is_pass, is_script};
use super::fastcgi;
use super::locations::{Kind, Location};
use super::returns::{Place as At, Rewrite, read_rewrite};
use super::tree::Directive;
use super::values::unbraced;

/// What is the path of a request itself, or of its directory.
const OF_PATH: [&str; 3] = ["$uri", "$uri/", "$uri/index.html"];
const OTHERS: &str = "of what is tried only $uri, $uri/ and the last are carried over";
const ONLY_LAST: &str = "without $uri only the last of what is tried is carried over";
const NO_FILES: &str = "without $uri no file is sent under its own path, and one page for all \
    paths cannot be said; requests get 501";
const NO_SCRIPT: &str = "without $uri no file is sent under its own path, and a script for all \
    paths cannot be said; requests get 501; write $uri first if these files may be sent";
const IN_ITS_PLACE: &str = "a file of that name would be sent instead";
const REWRITTEN: &str = "its paths are rewritten; requests get 501";
const OF_DIRECTORY: &str = "$uri/index.html is carried over as $uri/: the files of index, and for a \
    path that ends with a slash";

impl<'a> Actions<'_, 'a> {
    /// What a location of files does.
    pub fn files(&mut self, location: &Location<'a>) -> Action {
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
        if let Some(own) = scope.own().iter().find(|own| fastcgi::is_front(own)) {
            self.front(own, own.inside(), &mut files);
            return Action::Files(files);
        }
        let Some(tried) = scope.own_one("try_files") else {
            return Action::Files(files);
        };
        let Some((last, others)) = tried.args.split_last() else {
            return Action::Files(files);
        };
        if !others.iter().any(|own| own == "$uri") {
            return self.without_files(tried, location, files);
        }
        let page = page_of(last, others);
        let is_known = |own: &String| is_nothing(own) || OF_PATH.contains(&own.as_str());
        if !without_page(last, others).iter().all(is_known) {
            self.leave_out(tried, OTHERS);
        }
        if others.iter().any(|own| own == "$uri/index.html") {
            self.leave_out(tried, OF_DIRECTORY);
        }
        files.has_directories = others.iter().any(|own| own.starts_with("$uri/"));
        match (last.as_str(), page) {
            (_, Some(page)) => self.fall_back(tried, location, &mut files, page),
            ("=404", None) => {}
            (name, None) if name.starts_with('@') => {
                return self.named(tried, location, name, files);
            }
            _ => self.leave_out(tried, "files that do not exist get 404"),
        }
        Action::Files(files)
    }

    /// What a location does of which no path is looked for as a file.
    fn without_files(
        &mut self,
        tried: &Directive,
        location: &Location<'a>,
        files: Files,
    ) -> Action {
        let Some((last, others)) = tried.args.split_last() else {
            return Action::Files(files);
        };
        let are_known = without_page(last, others).iter().all(|own| is_nothing(own));
        let named = self.named_location(last);
        let passed = named
            .as_ref()
            .and_then(|named| self.passed_by_name(location, named));
        if let Some((pass, at)) = passed {
            if !are_known {
                self.leave_out(tried, ONLY_LAST);
            }
            return self.pass(pass, &at, false);
        }
        if named.is_some_and(|named| self.is_pass_rewritten(&named)) {
            return Action::Answer(NOT_CARRIED, None);
        }
        if let Some(page) = page_alone(tried, location) {
            if !are_known {
                self.leave_out(tried, ONLY_LAST);
            }
            return self.one_page(tried, location, files, page);
        }
        let is_script = fastcgi::is_php(fastcgi::split(last).0);
        self.leave_out(tried, if is_script { NO_SCRIPT } else { NO_FILES });
        Action::Answer(NOT_CARRIED, None)
    }

    /// What a location of one path does that has one page or script.
    fn one_page(
        &mut self,
        tried: &Directive,
        location: &Location<'a>,
        mut files: Files,
        page: &str,
    ) -> Action {
        files.has_directories = false;
        files.is_one = true;
        self.fall_back(tried, location, &mut files, page);
        if files.fallback.is_none() && files.script.is_none() {
            return Action::Answer(404, None);
        }
        // What ends with a slash is no file.
        if !location.path.ends_with('/') {
            self.leave_out(tried, IN_ITS_PLACE);
        }
        Action::Files(files)
    }

    fn fall_back(
        &mut self,
        tried: &Directive,
        location: &Location<'a>,
        files: &mut Files,
        page: &str,
    ) {
        let (page, behind) = fastcgi::split(page);
        if fastcgi::is_php(page) {
            return self.script(tried, files, page, behind);
        }
        let strip = files
            .strip
            .as_deref()
            .map(|strip| strip.trim_end_matches('/'));
        let below = strip.map_or(Some(page), |strip| page.strip_prefix(strip));
        let is_file =
            |page: &&str| page.starts_with('/') && !page.ends_with('/') && !is_script(page);
        match below.filter(is_file) {
            Some(_) if !self.may_lead(&location.scope, page) => {
                let why = "not all may have the last one; files that do not exist get 404";
                self.leave_out(tried, why);
            }
            Some(below) if files.root.is_some() => files.fallback = Some(below.to_owned()),
            _ => self.leave_out(
                tried,
                "fallback is a file below the root; files that do not exist get 404",
            ),
        }
    }

    /// A script for what is no file; whether it can be run is found out when all places are known.
    fn script(&mut self, tried: &Directive, files: &mut Files, page: &str, behind: &str) {
        let is_query = matches!(
            behind
                .trim_start_matches("$is_args")
                .trim_start_matches('?'),
            "" | "$args" | "$query_string"
        );
        if !is_query {
            let why = "fastcgi.fallback gets the query of the request, the path in REQUEST_URI, and no PATH_INFO";
            self.leave_out(tried, why);
        }
        files.script = Some(page.to_owned());
    }

    /// `rewrite` to a script.
    fn front(&mut self, tried: &Directive, inside: &[Directive], files: &mut Files) -> bool {
        let Some((page, behind)) = fastcgi::front(inside) else {
            return false;
        };
        self.script(tried, files, page, behind);
        true
    }

    fn named(
        &mut self,
        tried: &Directive,
        location: &Location<'a>,
        name: &str,
        mut files: Files,
    ) -> Action {
        let Some(named) = self.named_location(name) else {
            self.leave_out(
                tried,
                "there is no such location; files that do not exist get 404",
            );
            return Action::Files(files);
        };
        if self.front(tried, named.scope.own(), &mut files) {
            return Action::Files(files);
        }
        match self.passed_by_name(location, &named) {
            Some((pass, at)) => self.files_first(pass, &at, files),
            None if self.is_pass_rewritten(&named) => Action::Answer(NOT_CARRIED, None),
            None => {
                self.leave_out(tried, "only a location that passes requests on can be the last; files that do not exist get 404");
                Action::Files(files)
            }
        }
    }

    fn named_location(&self, name: &str) -> Option<Location<'a>> {
        self.named.iter().find(|own| own.path == name).cloned()
    }

    /// How a named location passes requests of another one on, if it does, and as they came.
    fn passed_by_name(
        &mut self,
        location: &Location<'a>,
        named: &Location<'a>,
    ) -> Option<(&'a Directive, Location<'a>)> {
        let pass = named.scope.own().iter().find(|own| is_pass(own))?;
        let is_open = self.asks_for_no_more(&location.scope, &named.scope);
        if self.shut(&named.scope, false).is_some() || !is_open || self.rewrites(named) {
            return None;
        }
        let at = Location {
            scope: named.scope.clone(),
            ..location.clone()
        };
        Some((pass, at))
    }

    /// Whether a named location passes requests on by another path than they came with.
    fn is_pass_rewritten(&mut self, named: &Location<'a>) -> bool {
        named.scope.own().iter().any(is_pass) && self.rewrites(named)
    }

    /// Whether a named location rewrites paths; says so, and that redirects are left out.
    fn rewrites(&mut self, named: &Location<'a>) -> bool {
        let at = At {
            scheme: self.facts.scheme,
            name: self.name,
            paths: &[],
            expression: None,
        };
        let mut is_rewritten = false;
        for own in named.scope.own().iter().filter(|own| own.name == "rewrite") {
            match read_rewrite(own, at) {
                Ok(Rewrite::Redirect(_)) => {
                    self.leave_out(own, "a location does one thing; write it outside");
                }
                _ if changes_nothing(own) => {}
                _ => {
                    self.leave_out(own, REWRITTEN);
                    is_rewritten = true;
                }
            }
        }
        is_rewritten
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
}

/// The page for what is no file.
fn page_of<'t>(last: &'t str, others: &'t [String]) -> Option<&'t str> {
    match last {
        "=404" => {
            let page = others.last().filter(|own| !own.contains('$'));
            page.map(String::as_str).filter(|own| own.starts_with('/'))
        }
        page => Some(page).filter(|own| own.starts_with('/')),
    }
}

/// The same where no file of the own path is tried: of a location with one path that is that of a
/// directory, or has no ending. A file by such a name is hardly one that is not to be sent.
fn page_alone<'t>(tried: &'t Directive, location: &Location<'_>) -> Option<&'t str> {
    let (last, others) = tried.args.split_last()?;
    let page = page_of(last, others).filter(|_| location.kind == Kind::Exact)?;
    let name = location.path.rsplit('/').next().unwrap_or_default();
    // nginx sends a script before =404 as it is, and has the last one run.
    let may_run = last == page && !name.is_empty();
    let may_be = may_run || !page.contains(".php");
    (may_be && !name.contains('.')).then_some(page)
}

/// Whether a `rewrite` leaves every path as it is, and goes on in its location.
fn changes_nothing(own: &Directive) -> bool {
    let [expression, to, flag] = own.args.as_slice() else {
        return false;
    };
    let same = [
        ("^(.*)$", "$1"),
        ("(.*)", "$1"),
        ("^(/.*)$", "$1"),
        ("^/(.*)$", "/$1"),
    ];
    flag == "break" && same.contains(&(expression.as_str(), unbraced(to).as_str()))
}

/// What is tried before that page.
fn without_page<'t>(last: &str, others: &'t [String]) -> &'t [String] {
    let is_among = last == "=404" && page_of(last, others).is_some();
    &others[..others.len() - usize::from(is_among)]
}

/// Whether no file has this name: nginx wants two names where one is meant.
fn is_nothing(own: &str) -> bool {
    matches!(own, "" | "/dev/null" | "/nonexistent")
}
