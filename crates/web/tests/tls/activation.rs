//! Sockets that a service manager passes.

use super::certificates::{Authority, Files};
use sooner_operate::PassedListeners;
use sooner_web::config::Config;
use sooner_web::{Means, Server};
use std::net::TcpListener;

fn passed_for_tls() -> PassedListeners {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    PassedListeners {
        tls: vec![listener],
        ..PassedListeners::default()
    }
}

#[tokio::test]
async fn a_passed_socket_for_tls_is_an_address_for_tls() {
    let files = Files::new();
    let pair = Authority::new("Test authority").issue(&["localhost"]);
    files.write_pair("x", &pair);
    let site = format!("root = \"{}\"\n", files.path("").display());
    let text = site.clone() + &files.tables(&[("x", "")]).text;
    let config = Config::parse(&text).unwrap();
    let means = Means {
        chunk_bytes: 64 << 10,
        record_bytes: 16 << 10,
        descriptors: 4096,
        workers: config.worker_count(),
    };
    let server = |passed| {
        let server = Server::from_config(&config, means).unwrap();
        server.with_passed(passed).start().unwrap()
    };
    let listening = server(passed_for_tls());
    assert_eq!(listening.warnings(), []);
    let control = listening.control();
    assert!(control.has_passed_listeners());
    assert_eq!(control.remarks(&config), []);
    let without = Config::parse(&site).unwrap();
    let warnings = control.reload(&without, 1).await.unwrap();
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].message.contains("the old certificates stay"),
        "{warnings:?}"
    );
    // A socket for clear text alone is none.
    let listening = server(PassedListeners {
        clear: passed_for_tls().tls,
        ..PassedListeners::default()
    });
    let [warning] = listening.warnings() else {
        panic!("{:?}", listening.warnings());
    };
    assert!(
        warning.message.starts_with("no address speaks TLS; add"),
        "{warning:?}"
    );
}
