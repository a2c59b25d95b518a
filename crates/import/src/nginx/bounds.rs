//! `[limits]`: nginx has bounds by server and location, Sooner one of each kind. The largest that
//! holds anywhere counts, nginx's own where nothing is said, so that nothing is cut off that nginx
//! would have let through.

use super::access;
use super::locations;
use super::scope::Scope;
use super::servers::Server;
use super::values;
use crate::document::{Document, Group};

/// What nginx has without a word, bytes.
const BODY_BYTES: u64 = 1 << 20;
/// Names, keys and what nginx has without a word, s.
const TIMES: [(&str, &str, u64); 3] = [
    ("client_header_timeout", "head_seconds", 60),
    ("keepalive_timeout", "idle_seconds", 75),
    ("send_timeout", "stall_seconds", 60),
];
/// The longest time, s.
const SECONDS_MAX: u32 = 31_536_000;

/// Writes the table.
pub fn write(document: &mut Document, servers: &[Server<'_>]) {
    let scopes = scopes(servers);
    document.table(Group::Limits, "[limits]");
    document.value(Group::Limits, "body_bytes", body_bytes(&scopes));
    for (name, key, default) in TIMES {
        let read = |text: &str| values::whole_seconds(text, 1, SECONDS_MAX).map(u64::from);
        let said = scopes.iter().map(|own| said(own, name, read));
        let said: Vec<Option<u64>> = said.collect();
        if said.iter().any(Option::is_some) {
            let all = said.into_iter().map(|own| own.unwrap_or(default));
            document.value(Group::Limits, key, all.max().unwrap_or(default));
        }
    }
}

/// What holds in the locations of all sites.
fn scopes<'a>(servers: &[Server<'a>]) -> Vec<Scope<'a>> {
    let reached = servers.iter().filter(|own| !own.is_unreachable());
    let all = reached.filter_map(|own| locations::collect(own.directive, &own.scope).ok());
    let all = all.flat_map(|(all, named)| all.into_iter().chain(named));
    all.map(|own| own.scope).collect()
}

fn said(scope: &Scope<'_>, name: &str, read: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    read(scope.one(name)?.first())
}

fn body_bytes(scopes: &[Scope<'_>]) -> u64 {
    // 0 is no bound.
    let read =
        |text: &str| values::bytes(text).map(|own| if own == 0 { i64::MAX as u64 } else { own });
    let all = scopes.iter().filter_map(|own| {
        let takes_bodies = || !access::is_of_files(own);
        said(own, "client_max_body_size", read).or_else(|| takes_bodies().then_some(BODY_BYTES))
    });
    all.max().unwrap_or(BODY_BYTES)
}
