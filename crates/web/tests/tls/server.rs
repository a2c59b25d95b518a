//! What a TLS server does: names, versions, protocols, clients' certificates, reload.

use super::certificates::{Authority, Files};
use super::support::{
    Client, PATIENCE, RECORD_BYTES, Server, Setup, ask, ask_for, connect, connect_tls, over,
};
use rustls::HandshakeKind;
use rustls::version::{TLS12, TLS13};
use sooner_web::proxy_protocol::Senders;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The authority, and files of the pair `x` for `localhost` and 127.0.0.1.
fn simple() -> (Authority, Files) {
    let authority = Authority::new("Test authority");
    let files = Files::new();
    files.write_pair("x", &authority.issue(&["localhost", "127.0.0.1"]));
    (authority, files)
}

#[test]
fn the_name_chooses_the_certificate() {
    let authority = Authority::new("Test authority");
    let files = Files::new();
    let pairs = [
        ("first", authority.issue(&["first.example", "127.0.0.1"])),
        (
            "second",
            authority.issue(&["second.example", "*.second.example"]),
        ),
        ("third", authority.issue(&["www.second.example"])),
    ];
    for (name, pair) in &pairs {
        files.write_pair(name, pair);
    }
    let tables = files.tables(&[("first", ""), ("second", ""), ("third", "")]);
    let server = Server::tls(&tables.tables);
    let config = Client::default().config(&authority);
    for (name, index) in [
        ("first.example", 0),
        ("127.0.0.1", 0),
        ("second.example", 1),
        ("Api.Second.example", 1),
        ("www.second.example", 2),
    ] {
        let mut client = connect_tls(server.address, &config, name);
        let described = ask(&mut client).unwrap();
        let shown = if name == "127.0.0.1" { "-" } else { name };
        assert!(
            described.to_lowercase().starts_with(&shown.to_lowercase()),
            "{described}"
        );
        let certificates = client.conn.peer_certificates().unwrap();
        assert_eq!(certificates[0], pairs[index].1.certificate, "{name}");
    }
    let mut stranger = connect_tls(server.address, &config, "other.example");
    let error = ask(&mut stranger).unwrap_err().to_string();
    assert!(error.contains("not valid for name"), "{error}");
    assert!(server.complaint().starts_with("TLS handshake: "));
}

/// A socket that keeps what was read from it.
struct RecordingSocket {
    socket: TcpStream,
    bytes: Vec<u8>,
}

impl Read for RecordingSocket {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.socket.read(buf)?;
        self.bytes.extend_from_slice(&buf[..count]);
        Ok(count)
    }
}

impl Write for RecordingSocket {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.socket.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// The lengths of the TLS records in `bytes`, without their headers.
fn record_lengths(mut bytes: &[u8]) -> Vec<u64> {
    let mut lengths = Vec::new();
    while let [_, _, _, high, low, rest @ ..] = bytes {
        let length = u16::from_be_bytes([*high, *low]);
        lengths.push(length.into());
        bytes = &rest[usize::from(length).min(rest.len())..];
    }
    lengths
}

#[test]
fn records_are_as_long_as_they_may_be_and_no_longer() {
    let (authority, files) = simple();
    let server = Server::tls(&files.tables(&[("x", "")]).tables);
    for reloaded in [false, true] {
        if reloaded {
            server.reload(&files.tables(&[("x", "")]).tables).unwrap();
        }
        let socket = RecordingSocket {
            socket: connect(server.address),
            bytes: Vec::new(),
        };
        let config = Client::default().config(&authority);
        let mut client = over(socket, &config, "localhost");
        let text = ask_for("/long", &mut client).unwrap();
        assert!(text.len() as u64 > 2 * RECORD_BYTES);
        // TLS 1.3 adds a type and a tag.
        let lengths = record_lengths(&client.sock.bytes);
        let longest = lengths.into_iter().max();
        assert_eq!(longest, Some(RECORD_BYTES + 17), "reloaded: {reloaded}");
    }
}

#[test]
fn records_are_long_on_a_slow_link_too() {
    let (authority, files) = simple();
    let server = Server::start(Setup {
        tables: Some(files.tables(&[("x", "")]).tables),
        proxies: Senders::default(),
        handshake_timeout: PATIENCE,
        rate_bits_per_sec: Some(10_000_000),
    });
    let socket = RecordingSocket {
        socket: connect(server.address),
        bytes: Vec::new(),
    };
    let config = Client::default().config(&authority);
    let mut client = over(socket, &config, "localhost");
    let text = ask_for("/longest", &mut client).unwrap();
    let count = record_lengths(&client.sock.bytes).len() as u64;
    // Besides a handshake's, and a head's.
    let most = text.len() as u64 / RECORD_BYTES + 12;
    assert!(count <= most, "{count} records of at most {most}");
}

#[test]
fn versions_and_protocols_are_agreed() {
    let (authority, files) = simple();
    let server = Server::tls(&files.tables(&[("x", "")]).tables);
    for (client, described) in [
        (Client::default(), "localhost TLSv1.3 Http1 - here"),
        (
            Client {
                versions: Some(&[&TLS12]),
                ..Client::default()
            },
            "localhost TLSv1.2 Http1 - here",
        ),
        (
            Client {
                alpn: &["http/1.1", "h2"],
                ..Client::default()
            },
            "localhost TLSv1.3 Http2 - here",
        ),
        (
            Client {
                alpn: &["http/1.1"],
                versions: Some(&[&TLS12]),
                ..Client::default()
            },
            "localhost TLSv1.2 Http1 - here",
        ),
    ] {
        let config = client.config(&authority);
        let mut client = connect_tls(server.address, &config, "localhost");
        assert_eq!(ask(&mut client).unwrap(), described);
    }
}

#[test]
fn a_version_can_be_left_out() {
    let (authority, files) = simple();
    let only = |version: &str| {
        let lines = format!("versions = [\"{version}\"]");
        Server::tls(&files.tables(&[("x", &lines)]).tables)
    };
    let [old, new] = [&TLS12, &TLS13].map(|version| {
        Client {
            versions: Some(&[version]),
            ..Client::default()
        }
        .config(&authority)
    });
    for (spoken, refused, server) in [(&new, &old, only("1.3")), (&old, &new, only("1.2"))] {
        let mut good = connect_tls(server.address, spoken, "localhost");
        assert!(ask(&mut good).is_ok());
        let mut bad = connect_tls(server.address, refused, "localhost");
        assert!(ask(&mut bad).is_err());
        assert!(server.complaint().starts_with("TLS handshake: "));
    }
}

#[test]
fn sessions_are_resumed_until_the_reload() {
    let (authority, files) = simple();
    let tables = files.tables(&[("x", "")]).tables;
    let server = Server::tls(&tables);
    for version in [&TLS12, &TLS13] {
        let config = Client {
            versions: Some(&[version]),
            ..Client::default()
        }
        .config(&authority);
        let kind = || {
            let mut client = connect_tls(server.address, &config, "localhost");
            ask(&mut client).unwrap();
            client.conn.handshake_kind().unwrap()
        };
        assert_eq!(kind(), HandshakeKind::Full);
        assert_eq!(kind(), HandshakeKind::Resumed);
        server.reload(&tables).unwrap();
        assert_ne!(kind(), HandshakeKind::Resumed);
    }
}

#[test]
fn a_reload_drops_nobody() {
    let (authority, files) = simple();
    let tables = files.tables(&[("x", "")]).tables;
    let server = Server::tls(&tables);
    let config = Client::default().config(&authority);
    let mut before = connect_tls(server.address, &config, "localhost");
    ask(&mut before).unwrap();
    // A handshake that is half done.
    let mut between = connect(server.address);
    between.write_all(&[22, 3, 1]).unwrap();

    let renewed = authority.issue(&["localhost"]);
    files.write_pair("x", &renewed);
    server.reload(&tables).unwrap();
    let mut after = connect_tls(server.address, &config, "localhost");
    ask(&mut after).unwrap();
    ask(&mut before).unwrap();
    let shown =
        |client: &super::support::TlsClient| client.conn.peer_certificates().unwrap()[0].clone();
    assert_eq!(shown(&after), renewed.certificate);
    assert_ne!(shown(&before), renewed.certificate);

    files.write("x.key", &authority.issue(&["localhost"]).key_pem);
    let mistake = server.reload(&tables).unwrap_err();
    assert!(mistake.starts_with("tls.key: the key in "), "{mistake}");
    let mut later = connect_tls(server.address, &config, "localhost");
    ask(&mut later).unwrap();
    assert_eq!(shown(&later), renewed.certificate);
}

#[test]
fn an_expired_certificate_stops_no_other_name() {
    let authority = Authority::new("Test authority");
    let files = Files::new();
    let expired = authority.issue_between(&["a.example"], 2001, 2002);
    files.write_pair("a", &expired);
    files.write_pair("b", &authority.issue(&["b.example"]));
    let tables = files.tables(&[("a", ""), ("b", "")]).tables;
    let server = Server::tls(&tables);
    let config = Client::default().config(&authority);
    ask(&mut connect_tls(server.address, &config, "b.example")).unwrap();

    let renewed = authority.issue(&["b.example"]);
    files.write_pair("b", &renewed);
    server.reload(&tables).unwrap();
    let mut client = connect_tls(server.address, &config, "b.example");
    ask(&mut client).unwrap();
    let shown = client.conn.peer_certificates().unwrap();
    assert_eq!(shown[0], renewed.certificate);
    let error = ask(&mut connect_tls(server.address, &config, "a.example")).unwrap_err();
    let refusal = error.to_string().to_lowercase();
    assert!(refusal.contains("expired"), "{refusal}");
}

#[test]
fn clients_show_certificates_of_the_authority_asked_for() {
    let (authority, files) = simple();
    let clients = Authority::new("Client authority");
    files.write("ca.pem", &clients.pem());
    let tables = files.tables(&[("x", "client_ca = \"FOLDER/ca.pem\"")]);
    let server = Server::tls(&tables.tables);
    let (known, unknown) = (clients.issue(&["alice"]), authority.issue(&["mallory"]));
    for version in [&TLS12, &TLS13] {
        let ask_as = |pair| {
            let config = Client {
                pair,
                versions: Some(&[version]),
                ..Client::default()
            }
            .config(&authority);
            let mut client = connect_tls(server.address, &config, "localhost");
            // The second time the session is resumed, and must still have its client's certificate.
            ask(&mut client)?;
            ask(&mut connect_tls(server.address, &config, "localhost"))
        };
        let described = ask_as(Some(&known)).unwrap();
        assert!(described.contains("CN=alice"), "{described}");
        for pair in [None, Some(&unknown)] {
            assert!(ask_as(pair).is_err());
            assert!(server.complaint().starts_with("TLS handshake: "));
        }
    }
}

#[test]
fn a_certificate_of_the_client_can_be_optional() {
    let (authority, files) = simple();
    let clients = Authority::new("Client authority");
    files.write("ca.pem", &clients.pem());
    let lines = "client_ca = \"FOLDER/ca.pem\"\nclient_required = false";
    let server = Server::tls(&files.tables(&[("x", lines)]).tables);
    let known = clients.issue(&["alice"]);
    for (pair, subject) in [(None, "Http1 - here"), (Some(&known), "CN=alice here")] {
        let client = Client {
            pair,
            ..Client::default()
        };
        let config = client.config(&authority);
        let mut client = connect_tls(server.address, &config, "localhost");
        let described = ask(&mut client).unwrap();
        assert!(described.ends_with(subject), "{described}");
    }
}

#[test]
fn a_request_in_clear_text_is_told_so() {
    let (_, files) = simple();
    let server = Server::tls(&files.tables(&[("x", "")]).tables);
    let mut client = connect(server.address);
    // More than is read before the answer.
    let request = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(20_000));
    client.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 400 Bad Request\r\n"),
        "{answer}"
    );
    assert!(answer.ends_with("use https://\n"), "{answer}");
    drop(client);
    assert!(server.complaint().contains("in clear text"));
}

#[test]
fn handshakes_end_in_time() {
    let (authority, files) = simple();
    let server = Server::start(Setup {
        tables: Some(files.tables(&[("x", "")]).tables),
        proxies: Senders::default(),
        handshake_timeout: Duration::from_millis(300),
        rate_bits_per_sec: None,
    });
    for start in [&b""[..], &[22, 3, 1, 2, 0][..]] {
        let mut client = connect(server.address);
        client.write_all(start).unwrap();
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
        assert!(server.complaint().contains("did not finish"));
    }
    let mut gone = connect(server.address);
    gone.write_all(&[22, 3, 1]).unwrap();
    drop(gone);
    assert_eq!(
        server.complaint(),
        "the client left during the TLS handshake"
    );
    // The time is that of the handshake, not of the connection.
    let config = Client::default().config(&authority);
    let mut client = connect_tls(server.address, &config, "localhost");
    ask(&mut client).unwrap();
    std::thread::sleep(Duration::from_millis(400));
    ask(&mut client).unwrap();
    assert!(PATIENCE > Duration::from_millis(400));
}

#[test]
fn noise_is_answered_with_an_alert() {
    let (_, files) = simple();
    let server = Server::tls(&files.tables(&[("x", "")]).tables);
    let mut client = connect(server.address);
    client.write_all(&[0x80; 100]).unwrap();
    let mut alert = Vec::new();
    // A reset may come after it.
    let _ = client.read_to_end(&mut alert);
    assert_eq!(alert.first(), Some(&21));
    assert!(server.complaint().starts_with("TLS handshake: "));
}
