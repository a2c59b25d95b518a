//! A Host header is let in only when it names loopback, the address that was reached, or a name the
//! operator gave.

use sooner_http::rebinding::is_allowed;

/// Tries one input.
pub fn run(host: &[u8]) {
    let reached = "192.0.2.7:9090".parse().expect("an address");
    if !is_allowed(host, reached, &["metrics.example.org".to_owned()]) {
        return;
    }
    let host = std::str::from_utf8(host)
        .expect("what is allowed is text")
        .to_ascii_lowercase();
    let begins = [
        "localhost",
        "127.",
        "[::1]",
        "192.0.2.7",
        "metrics.example.org",
        "[",
        "::",
    ];
    assert!(begins.iter().any(|begin| host.starts_with(begin)), "{host}");
    assert!(!host.contains(['/', '@', ' ', ',']), "{host}");
}
