//! Keys that would have no effect, because others take it away: each is a mistake.

use super::classes::{ClassTable, Classes};
use super::config::{ProxyTable, RouteTable, UpstreamTable};
use crate::config::Misconfigured;
use toml::Spanned;

/// That requests may wait where it is said how.
pub(super) fn check_waiting(table: &UpstreamTable, classes: &Classes) -> Result<(), Misconfigured> {
    let name = table.name.get_ref();
    if table.limit.is_some() || classes.have_cap_at(name) {
        return Ok(());
    }
    let words = "has no effect without a limit, because no request waits; write limit = \"auto\" or a number as well, or leave this out";
    let observe = table.observe.as_ref().filter(|observe| *observe.get_ref());
    // What runs for too long is not cancelled then.
    let observe = observe.filter(|_| !classes.have_longest_at(name));
    match (&table.waiting_max, observe) {
        (Some(most), _) => Err(Misconfigured::at(most, "upstream.waiting_max", words)),
        (None, Some(observe)) => Err(Misconfigured::at(observe, "upstream.observe", words)),
        (None, None) => Ok(()),
    }
}

/// That a server over FastCGI is not to get its own name: scripts build links of what they get, and
/// no client could follow them.
pub(super) fn check_host(table: &UpstreamTable) -> Result<(), Misconfigured> {
    let host = table.host.as_ref().filter(|_| table.fastcgi.is_some());
    match host.filter(|host| host.get_ref() == "upstream") {
        Some(host) => {
            let words = "has no meaning over FastCGI, where a server has no name of its own; leave it out for the client's host, or write a name";
            Err(Misconfigured::at(host, "upstream.host", words))
        }
        None => Ok(()),
    }
}

/// That a protocol may be switched to where it is said how long it may be silent.
pub(super) fn check_tunnels(table: &RouteTable, runs_scripts: bool) -> Result<(), Misconfigured> {
    let words = match runs_scripts {
        true => "has no effect over FastCGI, which cannot switch protocols; leave it out",
        false if table.upgrade.is_empty() => {
            "has no effect where upgrade is empty; write upgrade = [\"websocket\"], or leave this out"
        }
        false => return Ok(()),
    };
    let seconds = table.tunnel_seconds.as_ref();
    seconds.map_or(Ok(()), |seconds| {
        Err(Misconfigured::at(seconds, "route.tunnel_seconds", words))
    })
}

/// That bodies are looked at where a class names a field of them.
pub(super) fn check_classes(
    classes: &[ClassTable],
    proxy: &ProxyTable,
) -> Result<(), Misconfigured> {
    let mut fields = classes.iter().flat_map(|class| class.body.iter().flatten());
    match fields.next() {
        Some((field, _)) if proxy.look_bytes == 0 => Err(unseen(field, "class.body")),
        _ => Ok(()),
    }
}

/// The same where an upstream does.
pub(super) fn check_fields(table: &UpstreamTable, proxy: &ProxyTable) -> Result<(), Misconfigured> {
    if proxy.look_bytes > 0 {
        return Ok(());
    }
    let kind = table.kind.iter().flatten();
    let kind = kind.map(|part| (part, "upstream.kind"));
    let amount = table.amount.iter().map(|it| (it, "upstream.amount"));
    let share_by = table.share_by.iter().map(|it| (it, "upstream.share_by"));
    let mut all = kind.chain(amount).chain(share_by);
    match all.find(|(text, _)| text.get_ref().starts_with("body:")) {
        Some((text, key)) => Err(unseen(text, key)),
        None => Ok(()),
    }
}

fn unseen(text: &Spanned<String>, key: &str) -> Misconfigured {
    let words = "has no effect where proxy.look_bytes is 0, because no body is looked at; leave it out, or leave look_bytes out";
    Misconfigured::at(text, key, words)
}
