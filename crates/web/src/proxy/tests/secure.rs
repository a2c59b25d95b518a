//! Upstreams that speak TLS.

use super::queueing::{canned, spawn, waiting};
use super::reloading::{a_moment, config, reloaded};
use super::support::*;
use crate::proxy::Failure;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use std::rc::Rc;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::spawn_local;
use tokio_rustls::TlsAcceptor;

/// A server with a certificate of its own for `localhost`; its port, the certificate as a file, and
/// the folder that holds it.
async fn secure(alpn: &[&str]) -> (u16, String, TempDir, ScriptedRequests) {
    secure_as(alpn, || ok("one")).await
}

/// The same; over HTTP/1.1 it says this.
async fn secure_as(
    alpn: &[&str],
    reply: fn() -> Reply,
) -> (u16, String, TempDir, ScriptedRequests) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, made.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = ScriptedRequests::default();
    let watching = seen.clone();
    spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, seen) = (acceptor.clone(), watching.clone());
            spawn_local(async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                    serve_http2(stream).await;
                } else {
                    play(stream, seen, Rc::new(move |_, _: &str| reply())).await;
                }
            });
        }
    });
    (port, ca.display().to_string(), folder, seen)
}

async fn serve_http2(stream: tokio_rustls::server::TlsStream<tokio::net::TcpStream>) {
    let service = hyper::service::service_fn(
        |request: hyper::Request<hyper::body::Incoming>| async move {
            let text = format!("two {}", request.uri());
            Ok::<_, std::convert::Infallible>(hyper::Response::new(http_body_util::Full::<
                bytes::Bytes,
            >::from(text)))
        },
    );
    let _ = hyper::server::conn::http2::Builder::new(hyper_util::rt::TokioExecutor::new())
        .serve_connection(hyper_util::rt::TokioIo::new(stream), service)
        .await;
}

#[test]
fn what_both_sides_like_best_is_spoken() {
    run(async {
        let (port, ca, _folder, _) = secure(&["h2", "http/1.1"]).await;
        let url = format!("https://localhost:{port}");
        let proxy = to(&[&url], &format!("ca = '{ca}'"));
        assert_eq!(
            ask(&proxy, get("/a")).await.text(),
            "two https://example.org/a"
        );
        let (port, ca, _folder, seen) = secure(&["http/1.1"]).await;
        let url = format!("https://localhost:{port}");
        let proxy = to(&[&url], &format!("ca = '{ca}'\nhost = 'upstream'"));
        assert_eq!(ask(&proxy, get("/a")).await.text(), "one");
        assert_eq!(
            seen.lines(0),
            ["GET /a HTTP/1.1".into(), format!("host: localhost:{port}")]
        );
    });
}

#[test]
fn a_certificate_that_leads_nowhere_is_refused() {
    run(async {
        let (port, _, _folder, _) = secure(&[]).await;
        let (_, other_ca, _other_folder, _) = secure(&[]).await;
        let url = format!("https://localhost:{port}");
        let whole = ask(&to(&[&url], &format!("ca = '{other_ca}'")), get("/")).await;
        assert_eq!(whole.status, 502);
        assert!(matches!(
            whole.report.failure,
            Some(Failure::Unreachable(_))
        ));
        assert!(
            !whole.text().contains("ertificate"),
            "the client hears no details"
        );
    });
}

/// A server that is trusted by other certificates is another one here, and the same there.
#[test]
fn a_server_that_is_reached_in_another_way_gets_no_more_at_once() {
    run(async {
        let held = || Reply::SendThenWait(Vec::new(), canned());
        let (port, ca, _folder, seen) = secure_as(&[], held).await;
        let (_, other_ca, _other_folder, _) = secure(&[]).await;
        let url = format!("https://localhost:{port}");
        let says = config(&[&url], &format!("limit = 2\nca = '{ca}'"));
        let before = proxy(&says);
        let mut asked = vec![spawn(&before, "/1"), spawn(&before, "/2")];
        until(|| seen.count() == 2).await;
        let both = [&ca, &other_ca].map(|ca| std::fs::read_to_string(ca).unwrap());
        std::fs::write(&ca, both.concat()).unwrap();
        let after = reloaded(&before, &says);
        asked.push(spawn(&after, "/3"));
        until(|| waiting(&after) == 1).await;
        a_moment().await;
        assert_eq!((seen.count(), after.states()[0].limit), (2, 2));
        // Back again: what the one has that comes back, and the other.
        std::fs::write(&ca, &both[0]).unwrap();
        let back = reloaded(&after, &says);
        assert_eq!((back.states()[0].inside, waiting(&back)), (2, 1));
        seen.let_go.set(100);
        for one in asked {
            assert_eq!(one.await.unwrap().status, 200);
        }
        assert_eq!(back.states()[0].requests, 3);
    });
}
