//! h2load: many requests at once, in every way.

use super::client::{command, is_missing, run};
use super::site::Site;
use super::way::Way;

const REQUESTS: usize = 200;
const CONNECTIONS: usize = 4;

#[test]
fn h2load_misses_nothing() {
    if is_missing(
        "h2load_misses_nothing",
        &["h2load", "--version"],
        "nghttp2-client",
    ) {
        return;
    }
    for &way in Way::ALL {
        for (path, file, code) in [("/text.txt", Some("text.txt"), 2), ("/missing", None, 4)] {
            check(way, path, file, code);
        }
    }
}

/// Every answer for `path` must have a status of this class, and the bytes of `file`.
fn check(way: Way, path: &str, file: Option<&str>, status_class: usize) {
    let site = Site::start();
    let mut h2load = command("h2load");
    h2load
        .arg(format!("--requests={REQUESTS}"))
        .arg(format!("--clients={CONNECTIONS}"))
        .arg("--connection-inactivity-timeout=60s");
    match way {
        Way::Clear1 | Way::Tls1 => h2load.arg("--h1"),
        Way::Clear2 | Way::Tls2 => h2load.arg("--max-concurrent-streams=10"),
    };
    let output = run(h2load.arg(site.url(way, path)));
    let printed = String::from_utf8_lossy(&output.stdout);
    let succeeded = if file.is_some() { REQUESTS } else { 0 };
    let mut classes = [0; 4];
    classes[status_class - 2] = REQUESTS;
    let [ok, moved, refused, broken] = classes;
    for words in [
        format!("{REQUESTS} done, {succeeded} succeeded, "),
        " 0 errored, 0 timeout".to_owned(),
        format!("{ok} 2xx, {moved} 3xx, {refused} 4xx, {broken} 5xx"),
    ] {
        assert!(
            printed.contains(&words),
            "{way:?}: {words} is not in {printed}"
        );
    }
    if let Some(file) = file {
        let bytes = REQUESTS * site.content(file).len();
        assert!(
            printed.contains(&format!("({bytes}) data")),
            "{way:?}: {bytes} bytes: {printed}"
        );
    }
    let visits = site.stop();
    visits.check(way);
    assert_eq!(
        (visits.count(), visits.connections()),
        (REQUESTS, CONNECTIONS),
        "{way:?}"
    );
}
