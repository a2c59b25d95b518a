//! Who the client is, when a proxy in front says so.

use super::certificates::{Authority, Files};
use super::support::{Client, PATIENCE, Server, Setup, ask, connect, over};
use sooner_web::proxy_protocol::{ProxyProtocolConfig, Senders};
use std::io::{Read, Write};
use std::time::Duration;

const V1: &[u8] = b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n";
const V2: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\xc6\x33\x64\x02\xdc\x04\x01\xbb";
const V2_LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

fn proxies(text: &str) -> Senders {
    let config: ProxyProtocolConfig = toml::from_str(text).unwrap();
    Senders::new(&config).unwrap()
}

fn clear_text(from: &str, handshake_timeout: Duration) -> Server {
    Server::start(Setup {
        tables: None,
        proxies: proxies(&format!("from = [\"{from}\"]")),
        handshake_timeout,
        rate_bits_per_sec: None,
    })
}

#[test]
fn in_one_piece_and_in_many() {
    let server = clear_text("127.0.0.0/8", PATIENCE);
    for header in [V1, V2] {
        let mut client = connect(server.address);
        client.write_all(header).unwrap();
        assert_eq!(ask(&mut client).unwrap(), "192.0.2.1:56324");
        let mut slow = connect(server.address);
        slow.set_nodelay(true).unwrap();
        for byte in header {
            slow.write_all(std::slice::from_ref(byte)).unwrap();
            std::thread::yield_now();
        }
        assert_eq!(ask(&mut slow).unwrap(), "192.0.2.1:56324");
    }
    for header in [V2_LOCAL, b"PROXY UNKNOWN\r\n"] {
        let mut client = connect(server.address);
        client.write_all(header).unwrap();
        let own = client.local_addr().unwrap().to_string();
        assert_eq!(ask(&mut client).unwrap(), own);
    }
}

#[test]
fn before_tls() {
    let authority = Authority::new("Test authority");
    let files = Files::new();
    files.write_pair("x", &authority.issue(&["localhost"]));
    let server = Server::start(Setup {
        tables: Some(files.tables(&[("x", "")]).tables),
        proxies: proxies("from = [\"127.0.0.1\"]"),
        handshake_timeout: PATIENCE,
        rate_bits_per_sec: None,
    });
    let config = Client::default().config(&authority);
    let mut stream = connect(server.address);
    stream.write_all(V2).unwrap();
    let mut client = over(stream, &config, "localhost");
    let described = ask(&mut client).unwrap();
    assert_eq!(described, "localhost TLSv1.3 Http1 - 192.0.2.1:56324");
}

#[test]
fn only_from_those_who_may_and_then_always() {
    let elsewhere = clear_text("10.0.0.0/8", PATIENCE);
    let mut client = connect(elsewhere.address);
    let own = client.local_addr().unwrap().to_string();
    client.write_all(V1).unwrap();
    assert_eq!(ask(&mut client).unwrap(), own, "what it sends is its own");

    let here = clear_text("127.0.0.1", Duration::from_millis(300));
    for (sent, complaint) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "and sent something else"),
        (&b"PROXY TCP4 x\r\n"[..], "a broken PROXY protocol header"),
        (
            &b"PROXY TCP4 192.0.2.1 "[..],
            "no PROXY protocol header within",
        ),
        (&b""[..], "no PROXY protocol header within"),
    ] {
        let mut client = connect(here.address);
        client.write_all(sent).unwrap();
        let _ = client.read(&mut [0; 1]);
        let said = here.complaint();
        assert!(said.contains(complaint), "{said}");
    }
    let mut gone = connect(here.address);
    gone.write_all(b"PROXY").unwrap();
    drop(gone);
    assert!(here.complaint().contains("ended within"));
}

#[test]
fn a_network_that_is_none_is_pointed_at() {
    let text = "from = [\"10.0.0.0/8\", \"10.0.0.1/8\"]";
    let config: ProxyProtocolConfig = toml::from_str(text).unwrap();
    let mistake = Senders::new(&config).unwrap_err();
    assert_eq!(&text[mistake.span.clone().unwrap()], "\"10.0.0.1/8\"");
    assert!(mistake.message.ends_with("the network is 10.0.0.0/8"));
}
