//! Comments about what no other part has looked at.

use super::action::is_pass;
use super::conditions::Condition;
use super::fastcgi;
use super::known::{self, Class};
use super::path_conditions;
use super::translate::Builder;
use super::tree::Directive;
use std::collections::BTreeSet;

impl<'a> Builder<'_, 'a> {
    /// Comments about what no other part has looked at.
    pub fn remarks(&mut self, level: &'a [Directive], moot: &mut BTreeSet<String>) {
        for own in level {
            match known::class_of(own) {
                Class::Carried => {}
                Class::Moot => {
                    moot.insert(own.name.clone());
                }
                Class::LeftOut(why) => self.actions.leave_out(own, why),
            }
            match own.name.as_str() {
                "location" => self.remarks(own.inside(), moot),
                "if" => self.condition(own),
                "default_type" | "types" => self.types(own, level),
                "error_page" if own.args.last().is_some_and(|page| page.starts_with('@')) => {
                    let why = "a page is a file below the root, with the status of the error";
                    self.actions.leave_out(own, why);
                }
                "set" if own.args.iter().skip(1).any(|value| value.contains('$')) => {
                    self.actions.leave_out(own, "Sooner has no variables");
                }
                _ => {}
            }
        }
    }

    /// Types of files that are not those of their names.
    fn types(&mut self, own: &'a Directive, level: &[Directive]) {
        let is_said = level.iter().any(|own| own.name == "return");
        let is_usual = match own.name.as_str() {
            "types" => own.at.file.ends_with("mime.types"),
            _ => own.first() == "application/octet-stream" || is_said,
        };
        if !is_usual {
            let why = "files are sent with the types of their names, whatever they are: browsers open pages among them";
            self.actions.leave_out(own, why);
        }
    }

    fn condition(&mut self, own: &'a Directive) {
        let condition = Condition::of(own);
        let has_return = own.inside().iter().any(|inner| inner.name == "return");
        let is_done = match self.actions.facts.holds(&condition) {
            Some(holds) => has_return || !holds,
            None => path_conditions::about(own).is_some(),
        };
        let is_files = condition.subject.starts_with("!-") && own.inside().iter().any(is_pass);
        if !is_done && !is_files && !fastcgi::is_front(own) {
            self.actions.leave_out(own, "Sooner has no conditions");
        }
    }
}
