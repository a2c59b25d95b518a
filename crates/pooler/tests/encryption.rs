//! TLS on both sides, with certificates made on the spot: psql, a real PostgreSQL, the gate between
//! them.

use sooner_tls::{Authorities, Trust};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use crate::support::{Database, Gate, said};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;

/// An authority with a server's certificate for 127.0.0.1 and one of the user ann, as files.
fn make_certificates(folder: &Path) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own = KeyPair::generate().unwrap();
    let authority = CertifiedIssuer::self_signed(authority, own).unwrap();
    fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
    for (name, file) in [("127.0.0.1", "server"), ("ann", "ann"), ("bob", "bob")] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &authority).unwrap();
        fs::write(folder.join(format!("{file}.pem")), certificate.pem()).unwrap();
        let path = folder.join(format!("{file}.key"));
        fs::write(&path, key.serialize_pem()).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }
}

fn folder_with_certificates() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    make_certificates(folder.path());
    folder
}

const TLS: &str = "[[tls]]\ncertificate = \"server.pem\"\nkey = \"server.key\"\n";

/// psql as a user who reads the client's files, by this connection string.
fn psql(database: &Database, gate: &Gate, parameters: &str, sql: &str) -> Output {
    let mut psql = database.program("psql");
    let string = format!(
        "host=127.0.0.1 port={} dbname=postgres {parameters}",
        gate.port()
    );
    let mut command = psql.args(["-X", "-A", "-t", "-c", sql]).arg(string);
    command = command.env("PGCONNECT_TIMEOUT", "20");
    command.output().unwrap()
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn clients_encrypt_when_they_like_and_when_they_must() {
    let Some(database) = Database::start("clients_encrypt_when_they_like") else {
        return;
    };
    let folder = folder_with_certificates();
    let authority = folder.path().join("ca.pem").display().to_string();
    let rules = "[[rule]]\ntransport = \"tls\"\nauth = \"trust\"\n[[rule]]\nuser = [\"bob\"]\nauth = \"trust\"\n";
    let server = format!("postgresql:///?host={}", database.folder().display());
    let gate = Gate::at(&server, &format!("{TLS}{rules}"), folder);
    let big = "SELECT length(repeat('x', 5000000)), md5(repeat('y', 3000000))";
    let expected = database.ask(big);
    let full = format!("user=postgres sslmode=verify-full sslrootcert={authority}");
    assert_eq!(out(&psql(&database, &gate, &full, big)), expected);
    let rows = "SELECT count(*), max(length(s)) FROM (SELECT repeat('z', 100000) s FROM generate_series(1, 100)) t";
    assert_eq!(out(&psql(&database, &gate, &full, rows)), "100|100000");
    let clear = psql(
        &database,
        &gate,
        "user=postgres sslmode=disable",
        "SELECT 1",
    );
    assert!(
        said(&clear).contains("no rule lets user \"postgres\""),
        "{}",
        said(&clear)
    );
    database.ask("CREATE ROLE bob LOGIN");
    let bob = "user=bob sslmode=disable";
    assert_eq!(out(&psql(&database, &gate, bob, "SELECT 2")), "2");
    assert_eq!(
        out(&psql(
            &database,
            &gate,
            "user=bob sslmode=require",
            "SELECT 3"
        )),
        "3"
    );
}

#[test]
fn a_certificate_opens_for_its_own_name_only() {
    let Some(database) = Database::start("a_certificate_opens_for_its_own_name") else {
        return;
    };
    database.ask("CREATE ROLE ann LOGIN");
    database.ask("CREATE ROLE bob LOGIN");
    let folder = folder_with_certificates();
    let own = |name: &str| {
        // libpq reads a key only if no other user may.
        database.give(&folder.path().join(format!("{name}.key")));
        let file = |ending: &str| {
            folder
                .path()
                .join(format!("{name}.{ending}"))
                .display()
                .to_string()
        };
        format!("sslcert={} sslkey={}", file("pem"), file("key"))
    };
    let (ann, bob) = (own("ann"), own("bob"));
    let tls = format!("{TLS}client_ca = \"ca.pem\"\nclient_required = false\n");
    let config = format!("{tls}[[rule]]\nauth = \"certificate\"\n");
    let server = format!("postgresql:///?host={}", database.folder().display());
    let gate = Gate::at(&server, &config, folder);
    let ask = |parameters: &str| psql(&database, &gate, parameters, "SELECT current_user");
    assert_eq!(out(&ask(&format!("user=ann sslmode=require {ann}"))), "ann");
    // In PostgreSQL's words.
    let others = "certificate authentication failed for user \"ann\"";
    let none = "connection requires a valid client certificate";
    for (wrong, words) in [
        (format!("user=ann sslmode=require {bob}"), others),
        ("user=ann sslmode=require".into(), none),
        ("user=ann sslmode=disable".into(), none),
    ] {
        let said = said(&ask(&wrong));
        let words = format!("FATAL:  {words}");
        assert!(
            said.lines().any(|line| line.ends_with(&words)),
            "{wrong}: {said}"
        );
    }
    assert_eq!(sqlstate_of_refusal(&gate, "ann"), "28000");
}

/// The code with which a client in clear text is sent away.
fn sqlstate_of_refusal(gate: &Gate, user: &str) -> String {
    let mut client = TcpStream::connect(("127.0.0.1", gate.port())).unwrap();
    client.write_all(&startup(user, "postgres")).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    let fields = answer[5..].split(|byte| *byte == 0);
    let code = fields.filter_map(|field| field.strip_prefix(b"C")).next();
    String::from_utf8_lossy(code.unwrap_or_default()).into_owned()
}

#[test]
fn servers_are_spoken_to_as_their_address_says() {
    let Some(database) = Database::start("servers_are_spoken_to") else {
        return;
    };
    let folder = folder_with_certificates();
    database.stop("fast");
    let port = database.restart_with_tls(folder.path());
    let question = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let ask = |parameters: &str| {
        let files = folder_with_certificates();
        fs::copy(folder.path().join("ca.pem"), files.path().join("ca.pem")).unwrap();
        let server = format!("postgresql://127.0.0.1:{port}?{parameters}");
        let gate = Gate::at(&server, "[limits]\npatience_seconds = 1\n", files);
        psql(&database, &gate, "user=postgres", question)
    };
    assert_eq!(out(&ask("sslmode=disable")), "f");
    assert_eq!(out(&ask("")), "t");
    assert_eq!(out(&ask("sslmode=require")), "t");
    assert_eq!(out(&ask("sslmode=verify-full&sslrootcert=ca.pem")), "t");
    // Another authority of the same kind.
    let files = folder_with_certificates();
    let server = format!("postgresql://127.0.0.1:{port}?sslmode=verify-ca&sslrootcert=ca.pem");
    let gate = Gate::at(&server, "[limits]\npatience_seconds = 1\n", files);
    let wrong = psql(&database, &gate, "user=postgres", question);
    assert!(
        said(&wrong).contains("invalid peer certificate"),
        "{}",
        said(&wrong)
    );
}

/// As in PgBouncer.
#[test]
fn a_server_connection_is_shown_with_its_cipher_and_both_its_ends() {
    let Some(database) = Database::start("a_server_connection_is_shown_with_its_cipher") else {
        return;
    };
    let folder = folder_with_certificates();
    database.stop("fast");
    let port = database.restart_with_tls(folder.path());
    for (mode, cipher) in [("disable", ""), ("require", "TLSv1_3/TLS13_")] {
        let server = format!("postgresql://127.0.0.1:{port}?sslmode={mode}");
        let admins = "admins = [\"postgres\"]\n";
        let gate = Gate::at(&server, admins, folder_with_certificates());
        out(&psql(&database, &gate, "user=postgres", "SELECT 1"));
        for table in ["SHOW SERVERS", "SHOW SOCKETS"] {
            let shown = gate.admin(&database, table);
            let line = shown.lines().find(|line| line.starts_with("S|"));
            let fields: Vec<&str> = line
                .unwrap_or_else(|| panic!("{shown}"))
                .split('|')
                .collect();
            let (peer, local, tls) = (&fields[4..6], &fields[6..8], fields[16]);
            assert_eq!(peer, ["127.0.0.1", &port.to_string()], "{mode}: {shown}");
            assert_eq!(local[0], "127.0.0.1", "{mode}: {shown}");
            assert!(local[1].parse::<u16>().is_ok(), "{mode}: {shown}");
            let is_right = tls.starts_with(cipher) && tls.is_empty() == cipher.is_empty();
            assert!(is_right, "{mode}: {tls:?}");
        }
    }
}

#[test]
fn what_came_in_clear_text_before_a_handshake_counts_for_nothing() {
    let Some(database) = Database::start("what_came_in_clear_text") else {
        return;
    };
    let server = format!("postgresql:///?host={}", database.folder().display());
    let gate = Gate::at(&server, TLS, folder_with_certificates());
    let mut client = TcpStream::connect(("127.0.0.1", gate.port())).unwrap();
    let startup = b"\0\0\0\x17\0\x03\0\0user\0postgres\0\0";
    let request = b"\0\0\0\x08\x04\xd2\x16\x2f";
    client.write_all(&[&request[..], startup].concat()).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert!(answer.is_empty() || answer[0] == b'E', "{answer:?}");
    // TLS without asking needs its protocol's name.
    let mut direct = TcpStream::connect(("127.0.0.1", gate.port())).unwrap();
    direct
        .write_all(&[0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0])
        .unwrap();
    let mut alert = Vec::new();
    let _ = direct.read_to_end(&mut alert);
    assert!(alert.is_empty() || alert[0] == 0x15, "{alert:?}");
}

#[test]
fn tls_may_begin_at_once_for_who_says_postgresql() {
    let Some(database) = Database::start("tls_may_begin_at_once") else {
        return;
    };
    let folder = folder_with_certificates();
    let authorities = Authorities::read(&folder.path().join("ca.pem")).unwrap();
    let server = format!("postgresql:///?host={}", database.folder().display());
    let gate = Gate::at(&server, TLS, folder);
    for (protocol, is_let_in) in [(Some(&b"postgresql"[..]), true), (None, false)] {
        let protocols: Vec<&[u8]> = protocol.into_iter().collect();
        let config = sooner_tls::client(Trust::Name(authorities.clone()), None, &protocols);
        let config = config.unwrap();
        let name = "127.0.0.1".try_into().unwrap();
        let session = rustls::ClientConnection::new(config.into(), name).unwrap();
        let tcp = TcpStream::connect(("127.0.0.1", gate.port())).unwrap();
        let mut stream = rustls::StreamOwned::new(session, tcp);
        let startup = b"\0\0\0\x17\0\x03\0\0user\0postgres\0\0";
        let sent = stream.write_all(startup).and_then(|()| stream.flush());
        let mut first = [0];
        let read = sent.and_then(|()| stream.read_exact(&mut first));
        assert_eq!(read.is_ok() && first == *b"R", is_let_in, "{protocol:?}");
    }
}

#[test]
fn silence_inside_a_handshake_keeps_nobody_out() {
    let Some(database) = Database::start("silence_inside_a_handshake") else {
        return;
    };
    let server = format!("postgresql:///?host={}", database.folder().display());
    let limits = "[limits]\ntransactions = 4\nclients = 4\n";
    let config = format!("{limits}{TLS}[[rule]]\nauth = \"trust\"\n");
    let gate = Gate::at(&server, &config, folder_with_certificates());
    let hello = b"\x16\x03\x01\x02\0\x01";
    for is_direct in [true, false] {
        let mut silent = Vec::new();
        for _ in 0..60 {
            let mut stream = TcpStream::connect(("127.0.0.1", gate.port())).unwrap();
            let mut answer = [0];
            if !is_direct {
                let _ = stream.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f");
                let _ = stream.read(&mut answer);
            }
            let _ = stream.write_all(hello);
            silent.push(stream);
        }
        let answer = psql(
            &database,
            &gate,
            "user=postgres sslmode=require",
            "SELECT 'in'",
        );
        assert_eq!(out(&answer), "in");
    }
}

/// An encrypted connection that begins at once, as libpq's with sslnegotiation=direct.
fn encrypted(
    gate: &Gate,
    authorities: &Authorities,
) -> rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    let trust = Trust::Name(authorities.clone());
    let config = sooner_tls::client(trust, None, &[b"postgresql"]).unwrap();
    let name = "127.0.0.1".try_into().unwrap();
    let session = rustls::ClientConnection::new(config.into(), name).unwrap();
    let tcp = TcpStream::connect(("127.0.0.1", gate.port())).unwrap();
    tcp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    rustls::StreamOwned::new(session, tcp)
}

fn startup(user: &str, database: &str) -> Vec<u8> {
    let body = format!("\0\x03\0\0user\0{user}\0database\0{database}\0\0");
    [&(4 + body.len() as i32).to_be_bytes()[..], body.as_bytes()].concat()
}

/// libpq from 17 on calls a cancel request failed where TLS does not end (close_notify).
#[test]
fn an_encrypted_connection_ends_as_tls_ends() {
    let Some(database) = Database::start("an_encrypted_connection_ends_as_tls") else {
        return;
    };
    let folder = folder_with_certificates();
    let authorities = Authorities::read(&folder.path().join("ca.pem")).unwrap();
    let server = format!("postgresql:///?host={}", database.folder().display());
    let user = "[[user]]\nname = \"ann\"\npassword = \"secret\"\n";
    let rules = "[[rule]]\nuser = [\"ann\"]\nauth = \"scram\"\n[[rule]]\nauth = \"trust\"\n";
    let limits = "[limits]\ntransactions = 4\nlogin_seconds = 2\n";
    let config = format!("admins = [\"postgres\"]\n{TLS}{user}{rules}{limits}");
    let gate = Gate::at(&server, &config, folder);
    let (ann, postgres) = (startup("ann", "postgres"), startup("postgres", "postgres"));
    let goodbye = b"X\0\0\0\x04";
    let cancel = b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x07\0\0\0\x08";
    let cases: [(&str, &[u8], &[u8]); 9] = [
        ("a cancel request", cancel, b""),
        ("an unknown protocol", b"\0\0\0\x08\0\x02\0\0", b""),
        ("no database", &startup("postgres", &"x".repeat(99)), b""),
        ("X for a proof", &ann, goodbye),
        ("no SASL", &ann, b"p\0\0\0\x08nono"),
        ("no proof in time", &ann, b""),
        ("Terminate", &postgres, goodbye),
        (
            "Terminate at the console",
            &startup("postgres", "sooner"),
            goodbye,
        ),
        ("an unknown message", &postgres, b"?\0\0\0\x04"),
    ];
    let mut cut = Vec::new();
    for (what, first, then) in cases {
        let mut stream = encrypted(&gate, &authorities);
        stream.write_all(first).unwrap();
        if !then.is_empty() {
            let mut heard = [0];
            stream.read_exact(&mut heard).unwrap();
            stream.write_all(then).unwrap();
        }
        if stream.read_to_end(&mut Vec::new()).is_err() {
            cut.push(what);
        }
    }
    assert!(cut.is_empty(), "{cut:?}");
    let mut idle = encrypted(&gate, &authorities);
    idle.write_all(&postgres).unwrap();
    idle.read_exact(&mut [0]).unwrap();
    gate.admin(&database, "SHUTDOWN");
    let ended = idle.read_to_end(&mut Vec::new());
    assert!(ended.is_ok(), "SHUTDOWN: {ended:?}");
}
