//! Who may come: what narrows that is never widened.

use super::conditions::Condition;
use super::facts::Facts;
use super::path_conditions::refusal;
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
const BY_PROGRAM: &str =
    "Sooner has no scripting; all are refused with 403, as this may keep clients out";
const BY_METHOD: &str = "Sooner has no rule by method; all are refused with 403";
/// Why a condition refuses all.
pub const BY_CONDITION: &str =
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
    if let Some((rule, why)) = by_module(scope) {
        return Access::Shut(rule, why);
    }
    let limited = scope.own_one("limit_except");
    let guards = |own: &&Directive| {
        let mut inside = own.inside().iter();
        inside.any(|rule| rule.name == "deny" || rule.name.starts_with("auth_"))
    };
    let guarding = limited.filter(guards);
    if let Some(rule) = guarding.filter(|rule| !is_of_files || !leaves_get(rule)) {
        return Access::Shut(rule, BY_METHOD);
    }
    Access::Open
}

/// Whether a `limit_except` is not about GET, nor then about HEAD.
fn leaves_get(rule: &Directive) -> bool {
    rule.args
        .iter()
        .any(|method| method.eq_ignore_ascii_case("GET"))
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

/// A rule of a module that asks others who may come, or that is a program.
fn by_module<'a>(scope: &Scope<'a>) -> Option<(&'a Directive, &'static str)> {
    let is_program = |name: &str| {
        let programs = ["access_by_lua", "rewrite_by_lua", "server_rewrite_by_lua"];
        name == "js_access" || programs.iter().any(|begin| name.starts_with(begin))
    };
    if let Some(rule) = scope.everywhere().find(|own| is_program(&own.name)) {
        return Some((rule, BY_PROGRAM));
    }
    let is_said = |own: &&Directive| {
        let holding = scope.one(&own.name);
        is_of_module(&own.name) && holding.is_some_and(|own| !is_off(own.first()))
    };
    let rule = scope.everywhere().find(is_said)?;
    let why = match rule.name.as_str() {
        "auth_request" => BY_REQUEST,
        _ => BY_TOKEN,
    };
    Some((scope.one(&rule.name)?, why))
}

fn is_off(value: &str) -> bool {
    matches!(value, "off" | "none" | "")
}

/// Whether a directive of this name has a module of access asked, and is not one of its settings.
fn is_of_module(name: &str) -> bool {
    let known = [
        "basic", "cas", "delay", "digest", "gss", "http", "jwt", "krb5", "ldap", "oidc", "openidc",
        "pam", "radius", "request", "spnego",
    ];
    match name.strip_prefix("auth_") {
        None | Some("basic" | "delay" | "http") => false,
        Some(rest) => match rest.split_once('_') {
            // Its first word is the module, which says itself where it is asked.
            Some((module, _)) => !known.contains(&module),
            None => true,
        },
    }
}

/// A condition that may keep clients out of here and cannot be said.
pub fn shut_by_condition<'a>(scope: &Scope<'a>, facts: &Facts) -> Option<Access<'a>> {
    let rule = scope
        .everywhere()
        .find(|own| keeps_out(own, scope, facts))?;
    Some(Access::Shut(rule, BY_CONDITION))
}

/// Whether an `if` may keep clients out of a place, and cannot be said.
pub fn keeps_out(own: &Directive, scope: &Scope<'_>, facts: &Facts) -> bool {
    if own.name != "if" {
        return false;
    }
    let condition = Condition::of(own);
    if facts.holds(&condition) == Some(false) {
        return false;
    }
    let refuses = refusal(own).is_some() || own.inside().iter().any(|inner| inner.name == "deny");
    if refuses {
        // By its own host a location may be another's.
        let is_own = scope.own().iter().any(|other| std::ptr::eq(other, own));
        let is_own = is_own && scope.is_location();
        let is_by_host = is_own && matches!(condition.subject.as_str(), "$host" | "$http_host");
        return is_by_host || condition.by_scheme().is_some() || !condition.guards_nothing();
    }
    let mut inside = own.inside().iter();
    !condition.is_chosen() && inside.any(|inner| leads_away(inner, &condition, scope))
}

/// Whether those for whom a condition holds get something else, which others do not.
fn leads_away(inner: &Directive, condition: &Condition, scope: &Scope<'_>) -> bool {
    let is_other = match inner.name.as_str() {
        "return" | "rewrite" | "root" | "alias" => true,
        name => name.ends_with("_pass"),
    };
    let holds = |text: &str| inner.args.iter().any(|arg| arg.contains(text));
    // What the variable says is where to.
    let is_map = condition.subject.len() > 1 && holds(&condition.subject);
    let is_same_path =
        condition.is_of_target() && ["$request_uri", "$uri", "$1"].iter().any(|own| holds(own));
    let is_chosen = is_chosen_by_map(condition, scope) || is_chosen_by_set(condition, scope);
    is_other && !is_map && !is_same_path && !is_chosen
}

/// Whether a variable is made of what a client has chosen.
fn is_chosen_by_map(condition: &Condition, scope: &Scope<'_>) -> bool {
    let is_it = |own: &&Directive| {
        own.name == "map"
            && own
                .args
                .get(1)
                .is_some_and(|name| *name == condition.subject)
    };
    scope.everywhere().find(is_it).is_some_and(|own| {
        let source = Condition {
            subject: own.first().to_owned(),
            operator: "!=".into(),
            value: String::new(),
        };
        source.is_chosen()
    })
}

/// Whether a variable is set by conditions on what a client has chosen, and by no others.
fn is_chosen_by_set(condition: &Condition, scope: &Scope<'_>) -> bool {
    let subject = condition.subject.as_str();
    let is_set = |own: &Directive| own.name == "set" && own.first() == subject;
    let is_free = |own: &Directive| {
        let value = own.args.get(1).map_or("", String::as_str);
        let value = value.replace(subject, "");
        let braced = format!("${{{}}}", subject.trim_start_matches('$'));
        !value.replace(&braced, "").contains('$')
    };
    let (mut has_condition, mut is_chosen) = (false, true);
    for own in scope.everywhere() {
        let inside = own.inside().iter().filter(|inner| is_set(inner));
        for set in inside.filter(|_| own.name == "if") {
            has_condition = true;
            is_chosen &= Condition::of(own).is_chosen() && is_free(set);
        }
        is_chosen &= !is_set(own) || is_free(own);
    }
    has_condition && is_chosen
}
