//! Servers that are asked regularly how they are, and what requests find out beside that.

use super::support::*;
use crate::proxy::Standing;
use std::cell::Cell;
use std::rc::Rc;
use tokio::net::TcpListener;

fn is_check(request: &str) -> bool {
    request.starts_with("GET /health ")
}

/// It answers health checks, and nothing else.
#[test]
fn a_server_that_only_answers_checks_goes_out_and_stays_out() {
    run(async {
        let checks = Rc::new(Cell::new(0));
        let counts = checks.clone();
        let (sick, _) = scripted(move |_, request| {
            if is_check(request) {
                counts.set(counts.get() + 1);
                return ok("");
            }
            Reply::Close
        })
        .await;
        let (well, _) = scripted(|_, _| ok("well")).await;
        let keys = "fails = 3\nhealth = { path = '/health', seconds = 0.02 }";
        let proxy = to(&[&sick, &well], keys);
        let some_checks = async || {
            let seen = checks.get();
            until(|| checks.get() > seen + 2).await;
        };
        for failed in 1..=3 {
            while proxy.states()[0].failures < failed {
                assert_eq!(ask(&proxy, get("/")).await.text(), "well");
            }
            some_checks().await;
        }
        assert_ne!(proxy.states()[0].standing, Standing::Up);
        // Where it is tried again and fails it is out for longer, and nothing shortens that.
        until(|| proxy.states()[0].standing == Standing::OnProbation).await;
        while proxy.states()[0].failures < 4 {
            assert_eq!(ask(&proxy, get("/")).await.text(), "well");
        }
        some_checks().await;
        assert_ne!(proxy.states()[0].standing, Standing::Up);
    });
}

/// When requests would try it again is no news where only checks take it back.
#[test]
fn clients_are_told_to_come_back_when_a_check_may_have_passed() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let no = b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n";
        let (seen, accepting) = scripted_on(listener, |_, _| {
            Reply::SendThenWait(Vec::new(), no.to_vec())
        });
        let keys = "fails = 1\nretries = 0\nhealth = { path = '/health', seconds = 17, fails = 1 }";
        let proxy = to(&[&url], keys);
        until(|| seen.count() == 1).await;
        accepting.abort();
        let _ = accepting.await;
        assert_eq!(ask(&proxy, get("/")).await.status, 502);
        assert_eq!(ask(&proxy, get("/")).await.headers["retry-after"], "1");
        seen.let_go.set(1);
        until(|| seen.open.get() == 0).await;
        let whole = ask(&proxy, get("/")).await;
        assert_eq!(whole.status, 503);
        assert_eq!(whole.headers["retry-after"], "17");
        let why = whole.report.error().unwrap();
        assert!(why.contains("the first is tried again in 17 s"), "{why}");
    });
}
