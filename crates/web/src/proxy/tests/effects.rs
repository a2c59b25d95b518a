//! Keys of which a configuration itself takes the effect away are mistakes; those that take effect
//! seldom are none.

use super::queueing::spawn;
use super::support::*;
use crate::proxy::{Failure, Standing};
use std::time::Duration;
use tokio::net::TcpListener;

/// What is wrong with an upstream and a route that say this, after other tables.
fn mistake(tables: &str, (server, upstream): (&str, &str), route: &str) -> Option<String> {
    let config = format!(
        "{tables}\n[[upstream]]\nname='app'\nservers=['{server}']\n{upstream}\n\
         [[route]]\npath='/'\nupstream='app'\n{route}\n"
    );
    let error = build(&config, None).err()?;
    let place = error.span.clone().expect("it has a place");
    Some(format!(
        "{} {}: {}",
        error.key, &config[place], error.message
    ))
}

#[test]
fn a_time_of_tunnels_needs_a_protocol_to_switch_to() {
    let http = ("http://127.0.0.1:1", "");
    let scripts = ("fastcgi://127.0.0.1:1", "fastcgi={root='/'}");
    for (upstream, route, expected) in [
        (
            http,
            "upgrade=[]\ntunnel_seconds=5",
            "has no effect where upgrade is empty",
        ),
        (scripts, "tunnel_seconds=5", "has no effect over FastCGI"),
    ] {
        let said = mistake("", upstream, route).expect("a mistake");
        let begin = format!("route.tunnel_seconds 5: {expected}");
        assert!(said.starts_with(&begin), "{said}");
    }
    for route in [
        "upgrade=[]",
        "tunnel_seconds=5",
        "upgrade=['x']\ntunnel_seconds=5",
    ] {
        assert_eq!(mistake("", http, route), None, "{route}");
    }
}

#[test]
fn a_server_over_fastcgi_has_no_name_of_its_own() {
    let scripts = |host| {
        let keys = format!("fastcgi={{root='/'}}\nhost='{host}'");
        mistake("", ("fastcgi://127.0.0.1:1", keys.as_str()), "")
    };
    let said = scripts("upstream").expect("a mistake");
    let begin = "upstream.host 'upstream': has no meaning over FastCGI";
    assert!(said.starts_with(begin), "{said}");
    for host in ["$host", "example.org"] {
        assert_eq!(scripts(host), None, "{host}");
    }
    let http = ("http://127.0.0.1:1", "host='upstream'");
    assert_eq!(mistake("", http, ""), None);
}

#[test]
fn fields_of_bodies_need_bodies_to_be_looked_at() {
    let blind = "[proxy]\nlook_bytes=0\n";
    let class = "[[class]]\nname='a'\nbody={model='x'}\n";
    for (class, keys, expected) in [
        (class, "", "class.body model"),
        (
            "",
            "kind=['path', 'body:model']",
            "upstream.kind 'body:model'",
        ),
        ("", "amount='body:n'", "upstream.amount 'body:n'"),
        ("", "share_by='body:user'", "upstream.share_by 'body:user'"),
    ] {
        let upstream = ("http://127.0.0.1:1", keys);
        let said = mistake(&format!("{blind}{class}"), upstream, "").expect("a mistake");
        assert!(
            said.starts_with(&format!("{expected}: has no effect")),
            "{said}"
        );
        let looking = blind.replace('0', "1");
        assert_eq!(mistake(&format!("{looking}{class}"), upstream, ""), None);
    }
    // Event streams are also known by their head.
    for keys in [
        "tell_wait=['stream']",
        "kind=['query:body:x']",
        "amount='length'",
    ] {
        assert_eq!(mistake(blind, ("http://127.0.0.1:1", keys), ""), None);
    }
}

/// What is said of waiting takes effect without a limit, while a server that was out is tried: here
/// one that had not answered what another one answered, which is gone by now.
#[test]
fn without_a_limit_requests_wait_for_a_server_on_probation() {
    run(async {
        let (url, seen) = scripted(|number, _| match number {
            0 => Reply::Close,
            _ => Reply::SendThenWait(Vec::new(), b"HTTP/1.1 204 No\r\n\r\n".to_vec()),
        })
        .await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let other = format!("http://{}", listener.local_addr().unwrap());
        let answer = b"HTTP/1.1 204 No\r\nconnection: close\r\n\r\n";
        let (_, accepting) = scripted_on(listener, |_, _| Reply::Last(answer.to_vec()));
        let proxy = to(&[&url, &other], "fails = 1\nqueue_seconds = 0.3");
        assert_eq!(ask(&proxy, get("/")).await.status, 204);
        accepting.abort();
        let _ = accepting.await;
        assert_eq!(ask(&proxy, get("/")).await.status, 502);
        until(|| proxy.states()[0].standing == Standing::OnProbation).await;
        let tried = spawn(&proxy, "/tried");
        until(|| seen.count() == 2).await;
        let report = ask(&proxy, get("/waits")).await.report;
        let late = Failure::QueuedTooLong(Duration::from_millis(300));
        assert_eq!((report.failure, seen.count()), (Some(late), 2));
        seen.let_go.set(2);
        assert_eq!(tried.await.unwrap().status, 204);
    });
}
