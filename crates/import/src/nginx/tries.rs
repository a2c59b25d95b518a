//! Files, and what answers where there is none.

use super::action::{Action, Actions, Files, NOT_CARRIED, is_pass, is_script};
use super::fastcgi;
use super::locations::Location;
use super::tree::Directive;

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
        let has_other = others.iter().any(|own| !is_tried_anyway(own));
        if has_other {
            self.leave_out(
                tried,
                "of what is tried only $uri, $uri/ and the last are carried over",
            );
        }
        if others.iter().any(|own| own == "$uri/index.html") {
            self.leave_out(tried, OF_DIRECTORY);
        }
        files.has_directories = others.iter().any(|own| own.starts_with("$uri/"));
        let second = others.last().filter(|own| own.starts_with('/'));
        match (last.as_str(), second) {
            ("=404", Some(page)) if !page.contains('$') => {
                self.fall_back(tried, location, &mut files, page);
            }
            ("=404", _) => {}
            (name, _) if name.starts_with('@') => return self.named(tried, location, name, files),
            (page, _) if page.starts_with('/') => {
                self.fall_back(tried, location, &mut files, page);
            }
            _ => self.leave_out(tried, "files that do not exist get 404"),
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
        files: Files,
    ) -> Action {
        let Some(named) = self.named.iter().find(|own| own.path == name) else {
            self.leave_out(
                tried,
                "there is no such location; files that do not exist get 404",
            );
            return Action::Files(files);
        };
        let named = named.clone();
        let mut files = files;
        if self.front(tried, named.scope.own(), &mut files) {
            return Action::Files(files);
        }
        let pass = named.scope.own().iter().find(|own| is_pass(own));
        let is_open = self.asks_for_no_more(&location.scope, &named.scope);
        match (pass, self.shut(&named.scope, false)) {
            (Some(pass), None) if is_open => {
                let at = Location {
                    scope: named.scope.clone(),
                    ..location.clone()
                };
                self.files_first(pass, &at, files)
            }
            _ => {
                self.leave_out(tried, "only a location that passes requests on can be the last; files that do not exist get 404");
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
}

fn is_tried_anyway(own: &str) -> bool {
    matches!(own, "$uri" | "$uri/" | "$uri/index.html") || own.starts_with('/')
}
