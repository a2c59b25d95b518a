//! Kernel parameters of one namespace.

use std::fs;
use std::io;
use std::path::Path;

use sooner_kernel::netns::inside;

use super::error::HostsError;
use super::spec::HostsSpec;

/// A kernel parameter below /proc/sys and its value.
pub type Parameter = (&'static str, String);

/// Sets parameters of a namespace; none of them reaches another one.
pub fn set(namespace: &str, parameters: &[Parameter]) -> Result<(), HostsError> {
    let written = |source| HostsError::system(format!("parameters of {namespace}"), source);
    inside(namespace, || parameters.iter().try_for_each(write)).map_err(written)
}

/// What a parameter of a namespace is now.
pub fn get(namespace: &str, name: &str) -> io::Result<String> {
    let text = inside(namespace, || fs::read_to_string(path(name)))?;
    Ok(text.trim().into())
}

/// What every host gets: no IPv6, because its own packets would take part of a slow link.
pub fn of_every_host() -> Vec<Parameter> {
    let is_there = path("net/ipv6/conf/all/disable_ipv6").exists();
    let names = [
        "net/ipv6/conf/all/disable_ipv6",
        "net/ipv6/conf/default/disable_ipv6",
    ];
    let off = names.into_iter().filter(|_| is_there);
    off.map(|name| (name, "1".into())).collect()
}

/// What the spec requests of the server's host.
pub fn of_server(spec: &HostsSpec) -> Vec<Parameter> {
    let cookies = spec.syn_cookies.map(u8::from);
    // least, at first, most: TCP lets a buffer grow from the second to the third
    let buffer = |bytes: u32| format!("4096 {} {bytes}", bytes.min(16384));
    [
        (
            "net/ipv4/tcp_syncookies",
            cookies.map(|value| value.to_string()),
        ),
        (
            "net/ipv4/tcp_max_syn_backlog",
            spec.syn_backlog.map(|value| value.to_string()),
        ),
        ("net/ipv4/tcp_wmem", spec.send_buffer_bytes.map(buffer)),
        (
            "net/core/somaxconn",
            spec.somaxconn.map(|value| value.to_string()),
        ),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}

/// What the clients' host gets: the ports of one host stand for those of many users, so all of them
/// may be used, and again soon.
pub fn of_clients() -> Vec<Parameter> {
    vec![
        ("net/ipv4/ip_local_port_range", "1024 65535".into()),
        ("net/ipv4/tcp_tw_reuse", "1".into()),
    ]
}

/// What makes a host a router.
pub fn of_router() -> Vec<Parameter> {
    vec![("net/ipv4/ip_forward", "1".into())]
}

/// Sets a parameter of the calling thread's namespace.
pub fn write((name, value): &Parameter) -> io::Result<()> {
    let in_place = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("{} = {value}: {error}", name.replace('/', ".")),
        )
    };
    fs::write(path(name), value).map_err(in_place)
}

fn path(name: &str) -> std::path::PathBuf {
    Path::new("/proc/sys").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for_is_set_on_the_server() {
        let mut spec = HostsSpec::new("t", 10_000_000);
        assert!(of_server(&spec).is_empty());
        spec.syn_cookies = Some(false);
        spec.somaxconn = Some(512);
        spec.send_buffer_bytes = Some(65536);
        assert_eq!(
            of_server(&spec),
            [
                ("net/ipv4/tcp_syncookies", "0".into()),
                ("net/ipv4/tcp_wmem", "4096 16384 65536".into()),
                ("net/core/somaxconn", "512".into())
            ]
        );
    }
}
