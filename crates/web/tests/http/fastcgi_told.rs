//! What scripts are told of the wait for their place: the gate's word, as servers over HTTP get it.

use super::fastcgi::{Php, ask};
use super::support::Site;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::thread::sleep;
use std::time::Duration;

/// What is held until a file is there, in place of a request that takes long.
const HELD: &str = "<?php for ($i = 0; $i < 3000 && !file_exists(__DIR__ . '/let_go'); $i++) \
                    { usleep(10000); clearstatcache(); } header('Content-Length: 4'); echo 'held';";
/// A stream of events that PHP compresses for clients that take that.
const STREAM: &str = "<?php header('Content-Type: text/event-stream'); \
                      ob_start('ob_gzhandler'); echo \"data: 1\\n\\n\";";
/// The same for all clients.
const COMPRESSED: &str = "<?php header('Content-Type: text/event-stream'); \
                          header('Content-Encoding: gzip'); echo gzencode(\"data: 1\\n\\n\");";
/// The first comment is due after 5 s.
const FIRST_COMMENT: Duration = Duration::from_secs(5);

fn site(php: &Php, told: &str) -> Site {
    site_with(php, &format!("limit = 1\ntell_wait = ['{told}']"))
}

fn site_with(php: &Php, keys: &str) -> Site {
    let config = format!(
        "[[site]]\nroot = {root:?}\n[[class]]\nname = 'gold'\n[[upstream]]\nname = 'php'\n\
         servers = ['fastcgi+unix:{}']\n{keys}\n\
         fastcgi = {{ root = {root:?} }}\n[[route]]\npath = '/'\nupstream = 'php'\n",
        php.socket().display(),
        root = php.root(),
    );
    Site::run(&config, 1 << 16, |_| sooner_uplink::Uplink::unlimited())
}

#[test]
fn a_script_is_told_of_its_wait_and_nothing_that_a_client_made_up() {
    let test = "a_script_is_told_of_its_wait_and_nothing_that_a_client_made_up";
    let Some(php) = Php::start(test) else { return };
    let site = site(&php, "server");
    let made_up = "x-queue-ms: 77\r\nx-queue-ahead: 88\r\nx-queue-class: evil\r\n\
                   x_queue_class: evil\r\nx-request-start: t=5\r\nx-mine: 1\r\n";
    for _ in 0..2 {
        let answer = ask(site.address, "GET", "/server.php", made_up, b"");
        let told: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(&answer.body).unwrap();
        let queue = ["HTTP_X_QUEUE_CLASS", "HTTP_X_QUEUE_AHEAD", "HTTP_X_MINE"];
        assert_eq!(
            queue.map(|name| told[name].as_str().unwrap()),
            ["gold", "0", "1"]
        );
        let queue_ms: f64 = told["HTTP_X_QUEUE_MS"].as_str().unwrap().parse().unwrap();
        assert_ne!(queue_ms, 77.0);
        let start = told["HTTP_X_REQUEST_START"].as_str().unwrap();
        assert!(start.starts_with("t=") && start.len() > 12, "{start}");
    }
}

#[test]
fn a_script_is_told_the_headers_of_its_upstream() {
    let test = "a_script_is_told_the_headers_of_its_upstream";
    let Some(php) = Php::start(test) else { return };
    let keys = "headers = { X-Key = 'a $http_x_id', X-Forwarded-Proto = 'https', X-Gone = '' }";
    let site = site_with(&php, keys);
    let sent = "x-key: forged\r\nx-forwarded-proto: gopher\r\nx-gone: 1\r\nx-id: 7\r\n";
    let answer = ask(site.address, "GET", "/server.php", sent, b"");
    let told: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(told["HTTP_X_KEY"], "a 7");
    assert_eq!(told["HTTP_X_FORWARDED_PROTO"], "https");
    assert_eq!(told.get("HTTP_X_GONE"), None);
}

/// What follows the comments of a request for `target` that waits until the first one is there.
fn after_comments(php: &Php, site: &Site, target: &str) -> String {
    let let_go = php.root().join("let_go");
    let mut holding = site.connect();
    holding.send("GET /held.php HTTP/1.1\r\nhost: x\r\n\r\n");
    sleep(Duration::from_millis(200));
    let mut waiting = site.connect();
    waiting.send(&format!(
        "GET {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         accept: text/event-stream\r\naccept-encoding: gzip\r\n\r\n"
    ));
    sleep(FIRST_COMMENT + Duration::from_millis(500));
    fs::write(&let_go, "").unwrap();
    let mut all = Vec::new();
    waiting.stream().read_to_end(&mut all).unwrap();
    assert_eq!(holding.response("GET").text(), "held");
    fs::remove_file(&let_go).unwrap();
    let all = String::from_utf8_lossy(&all).into_owned();
    let comment = ": waiting for 5 s; others waiting: 0\n\n";
    assert!(all.contains(comment), "{all}");
    all
}

#[test]
fn a_script_that_compresses_sends_a_plain_stream_behind_comments() {
    let test = "a_script_that_compresses_sends_a_plain_stream_behind_comments";
    let Some(php) = Php::start(test) else { return };
    for (name, script) in [
        ("held.php", HELD),
        ("stream.php", STREAM),
        ("compressed.php", COMPRESSED),
    ] {
        fs::write(php.root().join(name), script).unwrap();
    }
    let site = site(&php, "stream");
    let gzip = "accept-encoding: gzip\r\naccept: text/event-stream\r\n";
    let packed = ask(site.address, "GET", "/stream.php", gzip, b"");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let plain = after_comments(&php, &site, "/stream.php");
    assert!(plain.contains("\ndata: 1\n\n"), "{plain}");
    assert!(!plain.contains("event: error"), "{plain}");
    let event = after_comments(&php, &site, "/compressed.php");
    let why = "the server behind this one answered with a compressed event stream";
    assert!(
        event.contains("event: error") && event.contains(why),
        "{event}"
    );
}
