//! Which paths of a host are those of scripts that are run: for sites, of which an index or a last
//! resort may be one.

use super::scripts::{Found, Script};
use crate::proxy::{Proxy, Route};
use std::rc::Rc;

/// The routes that requests to one host may take.
#[derive(Clone, Copy, Default)]
pub struct ScriptRoutes<'a> {
    routes: Option<(&'a Proxy, Option<&'a str>)>,
}

impl<'a> ScriptRoutes<'a> {
    /// Those of `proxy` for `host`, a name without a port.
    pub fn new(proxy: &'a Proxy, host: Option<&'a str>) -> Self {
        Self {
            routes: Some((proxy, host)),
        }
    }

    /// The script that `path` names, and the route that has it run; `path` as it would stand in a
    /// request.
    pub fn find(self, path: &str) -> Option<(Rc<Route>, Script)> {
        let (proxy, host) = self.routes?;
        let route = proxy.route(host, path)?;
        match route.script(path)? {
            Found::Script(script) if script.is_at(path) => Some((route.clone(), script)),
            _ => None,
        }
    }

    /// Whether scripts below the directory `path` are run.
    pub fn are_below(self, path: &str) -> bool {
        let route = self
            .routes
            .and_then(|(proxy, host)| proxy.route(host, path));
        route.is_some_and(|route| route.runs_scripts())
    }
}
