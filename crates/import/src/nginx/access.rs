//! Who may come: what narrows that is never widened.

use super::conditions::Condition;
use super::scope::Scope;
use super::tree::Directive;

/// What Sooner does about the rules of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access<'a> {
    /// All may come.
    Open,
    /// The answer to all, which is what the rules say.
    Refused(u16),
    /// The answer to all, because the rule cannot be said, and why.
    Shut(&'a Directive, &'static str),
}

const BY_ADDRESS: &str =
    "Sooner has no rule by address here; all are refused with 403, let a firewall do it";
const BY_TOKEN: &str = "Sooner knows no such passwords; all are refused with 403";
const BY_REQUEST: &str = "Sooner asks no other server who may come; all are refused with 403";
const BY_METHOD: &str = "Sooner has no rule by method; all are refused with 403";
const BY_CONDITION: &str =
    "Sooner has no variables; all are refused with 403, as this may keep clients out";

/// The access to a place, but for passwords. `is_of_files` says that only GET and HEAD get anything
/// there.
pub fn of<'a>(scope: &Scope<'a>, is_of_files: bool) -> Access<'a> {
    match scope.own_one("internal") {
        Some(_) => Access::Refused(404),
        None => within(scope, is_of_files),
    }
}

/// The same for requests that are led there from another place.
pub fn within<'a>(scope: &Scope<'a>, is_of_files: bool) -> Access<'a> {
    let rules = scope.all(&["allow", "deny"]);
    let first_for_all = rules.iter().position(|rule| rule.first() == "all");
    let counting = &rules[..first_for_all.map_or(rules.len(), |at| at + 1)];
    let denying = counting.iter().copied().find(|rule| rule.name == "deny");
    let is_any = scope.one("satisfy").is_some_and(|own| own.first() == "any");
    if let Some(rule) = denying {
        if counting.len() == 1 && rule.first() == "all" && !is_any {
            return Access::Refused(403);
        }
        return Access::Shut(rule, BY_ADDRESS);
    }
    for (name, why) in [("auth_request", BY_REQUEST), ("auth_jwt", BY_TOKEN)] {
        if let Some(rule) = scope.one(name).filter(|own| own.first() != "off") {
            return Access::Shut(rule, why);
        }
    }
    let limited = scope.own_one("limit_except");
    let guards = |own: &&Directive| {
        let rules = ["deny", "auth_basic", "auth_request", "auth_jwt"];
        let mut inside = own.inside().iter();
        inside.any(|rule| rules.contains(&rule.name.as_str()))
    };
    if let Some(rule) = limited.filter(guards).filter(|_| !is_of_files) {
        return Access::Shut(rule, BY_METHOD);
    }
    Access::Open
}

/// Whether only GET and HEAD get anything from a place.
pub fn is_of_files(scope: &Scope<'_>) -> bool {
    let leads_on = |own: &Directive| match own.name.as_str() {
        "proxy_pass" | "grpc_pass" | "fastcgi_pass" | "if" => true,
        "try_files" => {
            let last = own.args.last().map_or("", String::as_str);
            last.starts_with('@') || last.contains(".php")
        }
        _ => false,
    };
    !scope.own().iter().any(leads_on)
}

/// A condition that may keep clients out of here and cannot be said.
pub fn shut_by_condition<'a>(scope: &Scope<'a>) -> Option<Access<'a>> {
    let guards = |own: &&Directive| {
        let refuses = own.inside().iter().any(|inner| {
            let status = inner.first().parse::<u16>().unwrap_or_default();
            (inner.name == "return" && status >= 400) || inner.name == "deny"
        });
        own.name == "if" && refuses && !Condition::of(own).guards_nothing()
    };
    let rule = scope.everywhere().find(guards)?;
    Some(Access::Shut(rule, BY_CONDITION))
}
