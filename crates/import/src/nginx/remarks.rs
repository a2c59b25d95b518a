//! Comments about what no other part has looked at.

use super::action::is_pass;
use super::conditions::Condition;
use super::fastcgi;
use super::known::{self, Class};
use super::translate::Builder;
use super::tree::Directive;
use std::collections::BTreeSet;

impl<'a> Builder<'_, 'a> {
    /// Comments about what no other part has looked at.
    pub fn remarks(&mut self, level: &'a [Directive], moot: &mut BTreeSet<String>) {
        for own in level {
            match known::class(&own.name) {
                Class::Carried => {}
                Class::Moot => {
                    moot.insert(own.name.clone());
                }
                Class::LeftOut(why) => self.actions.leave_out(own, why),
            }
            match own.name.as_str() {
                "location" => self.remarks(own.inside(), moot),
                "if" => self.condition(own),
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

    fn condition(&mut self, own: &'a Directive) {
        let condition = Condition::of(own);
        let has_return = own.inside().iter().any(|inner| inner.name == "return");
        let is_done = has_return && (condition.host("x").is_some() || condition.is_clear_text());
        let is_files = condition.subject.starts_with("!-") && own.inside().iter().any(is_pass);
        if !is_done && !is_files && !fastcgi::is_front(own) {
            self.actions.leave_out(own, "Sooner has no conditions");
        }
    }
}
