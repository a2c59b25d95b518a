//! Clients that other people wrote, where they are installed.

use super::certificates::{Authority, Files, Tables};
use super::support::Server;
use sooner_testbed::skip;
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// The output of a client that is fed `input`; `None`, after saying so, where it is not installed.
fn run(test: &str, command: &mut Command, input: &[u8]) -> Option<Output> {
    let spawned = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        let program = command.get_program().to_string_lossy();
        // Written past the test harness, which would keep it to itself.
        skip(test, &format!("{program} is not installed"));
        return None;
    };
    // What it prints says more than a pipe that is broken.
    let _ = child.stdin.take().unwrap().write_all(input);
    Some(child.wait_with_output().unwrap())
}

struct Site {
    files: Files,
    server: Server,
}

fn site(lines: &str) -> Site {
    let authority = Authority::new("Test authority");
    let files = Files::new();
    files.write_pair("x", &authority.issue(&["localhost"]));
    files.write_pair("www", &authority.issue(&["*.example.org"]));
    files.write_pair("client", &authority.issue(&["alice"]));
    files.write("ca.pem", &authority.pem());
    let Tables { tables, .. } = files.tables(&[("x", lines), ("www", "")]);
    let server = Server::tls(&tables);
    Site { files, server }
}

#[test]
fn curl() {
    let site = site("client_ca = \"FOLDER/ca.pem\"\nclient_required = false");
    let port = site.server.address.port();
    for (name, more, described) in [
        (
            "localhost",
            &["--tlsv1.3"][..],
            "localhost TLSv1.3 Http1 - here",
        ),
        (
            "localhost",
            &["--tlsv1.2", "--tls-max", "1.2"][..],
            "localhost TLSv1.2 Http1 - here",
        ),
        (
            "a.example.org",
            &[][..],
            "a.example.org TLSv1.3 Http1 - here",
        ),
        ("a.example.org", &["CERT"][..], "CN=alice here"),
    ] {
        let mut command = Command::new("curl");
        command.args(["-sS", "--http1.1", "--noproxy", "*", "--max-time", "20"]);
        command.arg("--cacert").arg(site.files.path("ca.pem"));
        command.args(["--resolve", &format!("{name}:{port}:127.0.0.1")]);
        if more == ["CERT"] {
            command.arg("--cert").arg(site.files.path("client.pem"));
            command.arg("--key").arg(site.files.path("client.key"));
        } else {
            command.args(more);
        }
        command.arg(format!("https://{name}:{port}/"));
        let Some(output) = run("curl", &mut command, b"") else {
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(text.ends_with(described), "{text} {complaints}");
    }
}

#[test]
fn openssl() {
    let site = site("");
    let address = site.server.address.to_string();
    for (more, described) in [
        (&["-tls1_3"][..], "localhost TLSv1.3 Http1 - here"),
        (&["-tls1_2"][..], "localhost TLSv1.2 Http1 - here"),
        (
            &["-alpn", "h2,http/1.1"][..],
            "localhost TLSv1.3 Http2 - here",
        ),
    ] {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-connect", &address, "-servername", "localhost"]);
        command.args(["-verify_return_error", "-verify_hostname", "localhost"]);
        command.arg("-CAfile").arg(site.files.path("ca.pem"));
        command.args(["-ign_eof", "-quiet"]).args(more);
        let request = b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n";
        let Some(output) = run("openssl", &mut command, request) else {
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(text.ends_with(described), "{text} {complaints}");
    }
}
