//! Where a redirect of Sooner's is not quite that of nginx.

use super::action::Actions;
use super::destination::behind_variable;
use super::returns::{self, Place, Redirect, Return};
use super::scope::Scope;
use super::tree::Directive;
use super::values::unbraced;

const SEE_OTHER: &str =
    "a redirect is 301, 302, 307 or 308; by 302 browsers ask with GET as by 303";
const PORT: &str = "it leads to the host without the port that the client may have named";
const NO_REST: &str =
    "what (.+) does not match, the path that ends before it, is redirected as well";

impl<'a> Actions<'_, 'a> {
    /// Says where a `return` or `rewrite` leads elsewhere, or leads more.
    pub fn remarks_on_redirect(&mut self, own: &Directive) {
        for why in of(own, self.facts.scheme) {
            self.leave_out(own, why);
        }
    }

    /// The same of those of a server that are this.
    pub fn remarks_on_redirects(&mut self, server: &Scope<'a>, redirects: &[Redirect]) {
        let all = server.own().iter().flat_map(|own| match own.name.as_str() {
            "if" => own.inside(),
            _ => std::slice::from_ref(own),
        });
        let place = Place {
            scheme: self.facts.scheme,
            name: self.name,
            paths: &["/*".to_owned()],
            expression: None,
        };
        let is_it = |own: &&Directive| {
            let read = returns::read_return(own, place);
            own.name == "return" && read.is_ok_and(|own| own == Return::Redirect(redirects.into()))
        };
        if let Some(own) = all.into_iter().find(is_it) {
            self.remarks_on_redirect(own);
        }
    }
}

fn of(own: &Directive, scheme: Option<&str>) -> Vec<&'static str> {
    let mut all = Vec::new();
    if own.name == "return" && own.first() == "303" {
        all.push(SEE_OTHER);
    }
    let is_rewrite = own.name == "rewrite";
    let url = if is_rewrite {
        own.args.get(1)
    } else {
        own.args.last()
    };
    let url = unbraced(url.map_or("", String::as_str));
    let (to_scheme, rest) = url.split_once("://").unwrap_or(("", &url));
    let is_own_scheme = to_scheme == "$scheme" || scheme == Some(to_scheme);
    let behind = behind_variable(rest, "$http_host");
    if behind.is_some_and(|rest| !is_own_scheme || !rest.starts_with('/')) {
        all.push(PORT);
    }
    let expression = own.first().trim_end_matches('$');
    if is_rewrite && (expression.ends_with(".+") || expression.ends_with(".+)")) {
        all.push(NO_REST);
    }
    all
}
