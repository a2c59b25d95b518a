//! Headers by which an upstream is told who a client is: without them the client could write them
//! itself.

use super::scope::Scope;
use super::tree::Directive;

/// Why a place is refused.
pub const REFUSED: &str =
    "Sooner sets no such header, and the client's own would say who it is; all get 403";
/// What becomes of headers that say something else.
pub const CLIENTS_OWN: &str =
    "Sooner has no such variable; the client's own header of this name is passed on";
/// Variables made of others by variables.
const DEPTH_MAX: usize = 8;

/// A header of these directives, of those that begin so, that says who the client is; Sooner sets
/// none.
pub fn header<'a>(scope: &Scope<'a>, names: &[&str], begin: &str) -> Option<&'a Directive> {
    let all = scope.all(names).into_iter();
    let mut all = all.filter(|own| own.first().starts_with(begin) && !is_own(own.first()));
    all.find(|own| says_who(scope, own.args.get(1), 0))
}

/// Whether Sooner itself sets a header of this name, whatever the client wrote.
pub fn is_own(name: &str) -> bool {
    matches!(
        name.to_ascii_lowercase().as_str(),
        "host"
            | "upgrade"
            | "connection"
            | "x-forwarded-for"
            | "x-forwarded-proto"
            | "x-forwarded-host"
            | "x-real-ip"
            | "forwarded"
            | "te"
    )
}

/// Whether a header of this name is dropped unless a proxy in front sends it.
pub fn is_of_proxies(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("x-forwarded-")
        || matches!(name.as_str(), "true-client-ip" | "x-client-subject")
}

/// Whether a text has a variable of what a client has proved.
fn says_who(scope: &Scope<'_>, text: Option<&String>, depth: usize) -> bool {
    let text = text.map_or("", String::as_str);
    text.split('$').skip(1).any(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let end = rest.find(|letter| !is_of_name(letter));
        let name = &rest[..end.unwrap_or(rest.len())];
        let beginnings = [
            "ssl_client_",
            "auth_",
            "jwt_",
            "oidc_",
            "ldap_",
            "pam_",
            "saml_",
        ];
        name == "remote_user"
            || beginnings.iter().any(|own| name.starts_with(own))
            || (depth < DEPTH_MAX && is_made_of(scope, &format!("${name}"), depth + 1))
    })
}

/// Whether a variable of the configuration is made of such a one.
fn is_made_of(scope: &Scope<'_>, variable: &str, depth: usize) -> bool {
    scope.everywhere().any(|own| match own.name.as_str() {
        "set" => own.first() == variable && says_who(scope, own.args.get(1), depth),
        "auth_request_set" => own.first() == variable,
        "map" => {
            let is_value = |own: &Directive| says_who(scope, own.args.first(), depth);
            own.args.get(1).is_some_and(|name| name == variable)
                && (says_who(scope, own.args.first(), depth) || own.inside().iter().any(is_value))
        }
        _ => false,
    })
}
