//! A host is a name or an address and nothing else; one that was read is read the same again.

use sooner_http::host::{HostMap, parse};

/// Tries one input.
pub fn run(input: (&[u8], &str)) {
    let (value, pattern) = input;
    let mut hosts = HostMap::default();
    let is_pattern = hosts.insert(pattern, ()).is_ok();
    let Some(host) = parse(value) else {
        return;
    };
    assert!(!host.contains(['/', '@', ' ', '\\']) && !host.ends_with('.'));
    assert_eq!(parse(host.as_bytes()), Some(host));
    if hosts.get(host).is_some() {
        assert!(is_pattern && !host.is_empty());
    }
    if let Ok(None) = hosts.insert(host, ()) {
        assert!(hosts.get(host).is_some());
    }
}
