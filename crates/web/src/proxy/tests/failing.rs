//! Upstreams that refuse, break off, say nothing, or come back.

use super::support::*;
use crate::proxy::{Failure, Standing};
use crate::request_body::RequestBody;
use hyper::Request;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn with_method(method: &str) -> Request<RequestBody> {
    let mut request = get("/");
    *request.method_mut() = method.parse().unwrap();
    request
}

#[test]
fn who_cannot_be_reached_is_a_bad_gateway() {
    run(async {
        let url = unused_address().await;
        let whole = ask(&to(&[&url], ""), get("/")).await;
        assert_eq!(whole.status, 502);
        assert_eq!(
            whole.report.error().unwrap(),
            format!("{url}: cannot connect: Connection refused (os error 111)"),
            "the same twice is said once"
        );
        assert_eq!(
            whole.text(),
            "502 Bad Gateway: the server behind this one cannot be reached\n"
        );
        assert!(matches!(
            whole.report.failure,
            Some(Failure::Unreachable(_))
        ));
        assert_eq!(whole.report.tries, 2);
    });
}

#[test]
fn another_server_is_asked_whatever_the_method_when_nothing_was_sent() {
    run(async {
        let (url, seen) = scripted(|_, _| ok("here")).await;
        let proxy = to(&[&unused_address().await, &url], "");
        for method in ["GET", "POST"] {
            let whole = ask(&proxy, with_method(method)).await;
            assert_eq!(whole.text(), "here");
            let told = whole.report.error();
            assert_eq!(told.is_some(), whole.report.tries == 2, "{told:?}");
        }
        assert_eq!(proxy.states()[0].retries, 2);
        assert_eq!(seen.count(), 2);
        let tried: Vec<u64> = proxy.states().iter().map(|state| state.requests).collect();
        assert_eq!(tried, [2, 2], "each request was tried once with either");
    });
}

#[test]
fn what_may_have_been_done_is_not_done_twice() {
    run(async {
        let (url, seen) = scripted(|_, _| Reply::Close).await;
        let proxy = to(&[&url], "retries = 3\nfails = 100");
        let whole = ask(&proxy, with_method("POST")).await;
        assert_eq!(
            (whole.status, whole.report.tries, seen.count()),
            (502, 1, 1)
        );
        assert!(matches!(whole.report.failure, Some(Failure::Closed(_))));
        let whole = ask(&proxy, with_method("DELETE")).await;
        assert_eq!(
            (whole.status, whole.report.tries, seen.count()),
            (502, 4, 5)
        );
    });
}

/// nginx asks another server too, as long as it has no whole head.
#[test]
fn a_head_that_breaks_off_is_no_response_and_one_that_is_whole_is() {
    run(async {
        for (beginning, tries) in [
            ("HTTP/1.1 200 OK\r\ncontent-le", 2),
            ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", 1),
            ("no response at all\r\n\r\n", 1),
        ] {
            let (url, seen) = scripted(|_, _| Reply::Last(beginning.into())).await;
            let proxy = to(&[&url], "retries = 1\nfails = 100");
            for (method, tries) in [("GET", tries), ("POST", 1)] {
                let before = seen.count();
                let whole = ask(&proxy, with_method(method)).await;
                let expected = (u32::try_from(tries).unwrap(), tries);
                let found = (whole.report.tries, seen.count() - before);
                assert_eq!(found, expected, "{method} {beginning:?}");
            }
        }
    });
}

#[test]
fn a_connection_that_was_closed_while_nobody_used_it_is_no_failure() {
    run(async {
        // Every second request finds its connection closed.
        let (url, seen) = scripted(|number, _| match number % 2 {
            0 => ok("x"),
            _ => Reply::Close,
        })
        .await;
        let proxy = to(&[&url], "retries = 0");
        assert_eq!(ask(&proxy, get("/")).await.status, 200);
        until(|| seen.open.get() == 1).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        let whole = ask(&proxy, get("/")).await;
        assert_eq!((whole.status, whole.report.tries), (200, 1));
        assert_eq!(seen.connections.get(), 2);
        assert_eq!(proxy.states()[0].failures, 0);
    });
}

#[test]
fn who_says_nothing_is_given_up_and_hears_of_it() {
    run(async {
        let (url, seen) = scripted(|_, _| Reply::Hang).await;
        let whole = ask(&to(&[&url], "response_seconds = 0.05"), get("/")).await;
        assert_eq!(whole.status, 504);
        let limit = Duration::from_millis(50);
        assert_eq!(whole.report.failure, Some(Failure::ResponseTimeout(limit)));
        assert_eq!(whole.report.tries, 1);
        until(|| seen.open.get() == 0).await;
    });
}

#[test]
fn connecting_may_take_its_time_and_no_more() {
    run(async {
        // A listener that never speaks TLS.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let whole = ask(&to(&[&url], "connect_seconds = 0.05"), get("/")).await;
        let limit = Duration::from_millis(50);
        assert_eq!(whole.report.failure, Some(Failure::ConnectTimeout(limit)));
        assert_eq!(whole.status, 504);
    });
}

#[test]
fn a_pause_within_a_response_ends_it() {
    run(async {
        let (url, _) = scripted(|_, _| {
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbeg".to_vec();
            Reply::SendThenWait(head, Vec::new())
        })
        .await;
        let proxy = to(&[&url], "idle_seconds = 0.05");
        let whole = ask(&proxy, get("/")).await;
        assert_eq!(whole.status, 200);
        assert!(whole.body.unwrap_err().to_string().contains("paused"));
        assert_eq!(proxy.states()[0].failures, 1);
        assert_eq!(proxy.states()[0].inside, 0);
    });
}

#[test]
fn a_pause_in_a_stream_of_events_is_no_failure() {
    run(async {
        let (url, _) = scripted(|_, _| endless()).await;
        let proxy = to(&[&url], "idle_seconds = 0.05\nfails = 1");
        let whole = ask(&proxy, get("/")).await;
        assert!(whole.body.unwrap_err().to_string().contains("paused"));
        let state = &proxy.states()[0];
        assert_eq!((state.failures, state.inside), (0, 0));
        assert_eq!(state.standing, Standing::Up);
    });
}

/// An upstream that begins an answer of a known length when it has the head, and reads.
async fn hasty() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::task::spawn_local(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::task::spawn_local(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let start = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbeg";
                stream.write_all(start).await.unwrap();
                let _ = stream.read_to_end(&mut Vec::new()).await;
            });
        }
    });
    url
}

#[test]
fn a_client_that_breaks_its_request_breaks_no_server() {
    run(async {
        let proxy = to(&[&hasty().await], "fails = 1");
        let (address, _) = front(&proxy).await;
        let head = "POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n3\r\nbeg\r\n";
        let mut stream = client(address, head).await;
        let answer = read_message(&mut stream);
        let begun = tokio::time::timeout(Duration::from_millis(100), answer).await;
        assert!(begun.is_err(), "the answer has no end yet");
        // The client stays and reads; what it sends is no chunk.
        stream.write_all(b"no chunk\r\n").await.unwrap();
        rest(stream).await;
        until(|| proxy.states()[0].inside == 0).await;
        assert_eq!(proxy.states()[0].failures, 0);
        assert_eq!(proxy.states()[0].standing, Standing::Up);
    });
}

#[test]
fn a_client_that_does_not_go_on_makes_no_server_slow() {
    run(async {
        let proxy = to(&[&hasty().await], "fails = 1\nidle_seconds = 0.05");
        let (address, _) = front(&proxy).await;
        let head = "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\nbeg";
        rest(client(address, head).await).await;
        until(|| proxy.states()[0].inside == 0).await;
        assert_eq!(proxy.states()[0].failures, 0);
    });
}

#[test]
fn a_response_that_breaks_off_is_not_taken_for_whole() {
    run(async {
        for broken in [
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbeg",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nbeg\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nbegin",
        ] {
            let (url, _) = scripted(|_, _| Reply::Last(broken.as_bytes().to_vec())).await;
            let whole = ask(&to(&[&url], ""), get("/")).await;
            assert_eq!(whole.status, 200, "{broken}");
            assert!(whole.body.is_err(), "{broken}");
        }
    });
}

#[test]
fn a_server_that_cannot_be_reached_goes_out_and_comes_back() {
    run(async {
        let url = unused_address().await;
        let proxy = to(&[&url], "fails = 2\nretries = 0");
        for _ in 0..2 {
            assert_eq!(ask(&proxy, get("/")).await.status, 502);
        }
        assert_eq!(proxy.states()[0].standing, Standing::Down);
        let whole = ask(&proxy, get("/")).await;
        assert_eq!(whole.status, 503);
        assert_eq!(whole.headers["retry-after"], "1");
        let why = whole.report.error().unwrap();
        assert!(
            why.starts_with("no server is up") && why.contains(&url),
            "{why}"
        );
        let listener = TcpListener::bind(&url["http://".len()..]).await.unwrap();
        scripted_on(listener, |_, _| ok("back"));
        until(|| proxy.states()[0].standing == Standing::OnProbation).await;
        assert_eq!(ask(&proxy, get("/")).await.text(), "back");
        assert_eq!(proxy.states()[0].standing, Standing::Up);
    });
}

#[test]
fn no_path_takes_the_only_server_from_others() {
    run(async {
        let (url, _) = scripted(|_, request| {
            let path = request.split(' ').nth(1).unwrap();
            match path.split('/').nth(1).unwrap() {
                "close" => Reply::Close,
                "hang" => Reply::Hang,
                "nonsense" => Reply::Last(b"nonsense\r\n\r\n".to_vec()),
                "two-lengths" => text(
                    "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
                ),
                "broken" => Reply::Last(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbeg".to_vec()),
                _ => ok("good"),
            }
        })
        .await;
        let proxy = to(&[&url], "fails = 1\nresponse_seconds = 0.3");
        for path in ["/close", "/hang", "/nonsense", "/two-lengths", "/broken"] {
            for number in 0..3 {
                ask(&proxy, get(&format!("{path}/{number}"))).await;
                assert_eq!(ask(&proxy, get("/good")).await.text(), "good", "{path}");
            }
        }
        assert_eq!(proxy.states()[0].standing, Standing::Up);
        assert!(proxy.states()[0].failures >= 15);
    });
}

#[test]
fn a_request_that_no_server_answers_speaks_against_none() {
    run(async {
        let script = |_, request: &str| {
            if request.starts_with("GET /bad") {
                Reply::Close
            } else {
                ok("good")
            }
        };
        let (one, _) = scripted(script).await;
        let (two, _) = scripted(script).await;
        let proxy = to(&[&one, &two], "fails = 2");
        for number in 0..10 {
            assert_eq!(ask(&proxy, get(&format!("/bad{number}"))).await.status, 502);
        }
        let standings: Vec<_> = proxy.states().iter().map(|state| state.standing).collect();
        assert_eq!(standings, [Standing::Up, Standing::Up]);
    });
}

#[test]
fn a_server_that_answers_nothing_goes_out_beside_one_that_does() {
    run(async {
        for reply in [|| Reply::Close, || Reply::Hang] {
            let (sick, _) = scripted(move |_, _| reply()).await;
            let (well, _) = scripted(|_, _| ok("well")).await;
            let proxy = to(&[&sick, &well], "fails = 2\nresponse_seconds = 0.05");
            let same = |_| "/".to_owned();
            let others = |number| format!("/{number}");
            let is_told_by_retries = matches!(reply(), Reply::Close);
            let path: &dyn Fn(usize) -> String = if is_told_by_retries { &same } else { &others };
            for number in 0..4 {
                ask(&proxy, get(&path(number))).await;
            }
            assert_eq!(proxy.states()[0].standing, Standing::Down);
            assert_eq!(proxy.states()[1].standing, Standing::Up);
        }
    });
}

#[test]
fn a_server_is_tried_again_while_a_long_response_is_inside() {
    run(async {
        for limit in ["", "limit = 2"] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (_, accepting) = scripted_on(listener, |_, _| endless());
            let url = format!("http://{address}");
            let proxy = to(&[&url], &format!("fails = 1\nretries = 0\n{limit}"));
            let long = forward(&proxy, get("/")).await;
            accepting.abort();
            let _ = accepting.await;
            assert_eq!(ask(&proxy, get("/")).await.status, 502);
            assert_eq!(proxy.states()[0].standing, Standing::Down);
            scripted_on(TcpListener::bind(address).await.unwrap(), |_, _| ok("back"));
            until(|| proxy.states()[0].standing == Standing::OnProbation).await;
            assert_eq!(ask(&proxy, get("/")).await.text(), "back");
            assert_eq!(proxy.states()[0].standing, Standing::Up);
            until(|| proxy.states()[0].inside == 1).await;
            drop(long);
            until(|| proxy.states()[0].inside == 0).await;
        }
    });
}

#[test]
fn a_job_that_is_left_in_a_server_that_is_out_takes_no_place_of_another() {
    run(async {
        let is_sick = Rc::new(Cell::new(false));
        let looks = is_sick.clone();
        let (sick, _) = scripted(move |_, request| {
            let is_question = request.starts_with("GET /health ");
            match (is_question, looks.get()) {
                (false, _) => endless(),
                (true, false) => ok(""),
                (true, true) => text("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n"),
            }
        })
        .await;
        let (well, _) = scripted(|_, _| ok("well")).await;
        let keys = "limit = 1\nhealth = { path = '/health', seconds = 0.2, fails = 1 }";
        let proxy = to(&[&sick, &well], keys);
        let long = forward(&proxy, get("/")).await;
        assert_eq!(proxy.states()[0].inside, 1);
        is_sick.set(true);
        until(|| proxy.states()[0].standing == Standing::Down).await;
        for _ in 0..3 {
            assert_eq!(ask(&proxy, get("/")).await.text(), "well");
        }
        assert_eq!((proxy.states()[0].inside, proxy.states()[0].limit), (1, 2));
        drop(long);
        until(|| proxy.states()[0].inside == 0).await;
        assert_eq!(proxy.states()[0].limit, 1);
        assert_eq!(ask(&proxy, get("/")).await.text(), "well");
    });
}

#[test]
fn those_who_wait_are_told_when_the_last_server_goes_out() {
    run(async {
        // A listener that never speaks TLS.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let keys = "limit = 1\nfails = 1\nconnect_seconds = 0.1\nretries = 0";
        let proxy = to(&[&url], keys);
        let asked: Vec<_> = (0..5)
            .map(|_| {
                let proxy = proxy.clone();
                tokio::task::spawn_local(async move { ask(&proxy, get("/")).await.status })
            })
            .collect();
        let mut statuses = Vec::new();
        for one in asked {
            statuses.push(one.await.unwrap());
        }
        assert_eq!(statuses, [504, 503, 503, 503, 503]);
        assert_eq!(proxy.states()[0].waiting, 0);
    });
}

#[test]
fn regular_questions_find_out_before_a_client_does() {
    run(async {
        let (sick, _) = scripted(|_, request| {
            if request.starts_with("GET /health ") {
                text("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")
            } else {
                ok("sick")
            }
        })
        .await;
        let (well, asked) = scripted(|_, _| ok("well")).await;
        let proxy = to(
            &[&sick, &well],
            "health = { path = '/health', seconds = 0.2, fails = 1 }",
        );
        until(|| proxy.states()[0].standing == Standing::Down).await;
        for _ in 0..4 {
            assert_eq!(ask(&proxy, get("/")).await.text(), "well");
        }
        assert_eq!(proxy.states()[1].standing, Standing::Up);
        let probe_request = asked.lines(0);
        assert_eq!(probe_request[0], "GET /health HTTP/1.1");
        assert!(probe_request.contains(&"connection: close".to_owned()));
    });
}

#[test]
fn an_upload_that_the_client_breaks_off_is_not_the_servers_fault() {
    run(async {
        let (url, seen) = scripted(|_, _| ok("")).await;
        let proxy = to(&[&url], "fails = 1");
        let (address, _) = front(&proxy).await;
        let stream = client(
            address,
            "PUT / HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\nbeg",
        )
        .await;
        until(|| seen.connections.get() == 1).await;
        drop(stream);
        until(|| seen.open.get() == 0).await;
        until(|| proxy.states()[0].inside == 0).await;
        assert_eq!(proxy.states()[0].failures, 0);
        assert_eq!(proxy.states()[0].standing, Standing::Up);
    });
}

#[test]
fn a_client_that_sends_slowly_is_not_taken_for_a_slow_upstream() {
    run(async {
        let (url, _) = scripted(|_, _| ok("got it")).await;
        let (address, _) = front(&to(&[&url], "response_seconds = 0.05")).await;
        let head = "PUT / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 5\r\n\r\n";
        let mut stream = client(address, head).await;
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(30)).await;
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"x")
                .await
                .unwrap();
        }
        assert!(rest(stream).await.ends_with("got it"));
    });
}
