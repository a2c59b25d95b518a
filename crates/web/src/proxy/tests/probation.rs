//! A server that was out and is tried again.

use super::queueing::spawn;
use super::support::*;
use crate::proxy::Standing;
use crate::request_body::RequestBody;
use hyper::Request;
use tokio::net::TcpListener;

fn post(path: &str) -> Request<RequestBody> {
    let mut request = get(path);
    *request.method_mut() = hyper::Method::POST;
    request
}

/// However many are inside from before: where nothing is held they may be more than the limit.
#[test]
fn a_server_that_is_only_observed_is_tried_again() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, accepting) = scripted_on(listener, |_, _| endless());
        let url = format!("http://{address}");
        let keys = "limit = 1\nobserve = true\nfails = 1\nretries = 0\nqueue_seconds = 2";
        let proxy = to(&[&url], keys);
        let long = ["/1", "/2", "/3"].map(|path| spawn(&proxy, path));
        until(|| seen.count() == 3).await;
        accepting.abort();
        let _ = accepting.await;
        assert_eq!(ask(&proxy, get("/")).await.status, 502);
        assert_eq!(proxy.states()[0].standing, Standing::Down);
        scripted_on(TcpListener::bind(address).await.unwrap(), |_, _| ok("back"));
        until(|| proxy.states()[0].standing == Standing::OnProbation).await;
        assert_eq!(ask(&proxy, get("/")).await.text(), "back");
        assert_eq!(proxy.states()[0].standing, Standing::Up);
        long.into_iter().for_each(|one| one.abort());
    });
}

/// It has the fewest inside, so that it would get all that comes.
#[test]
fn a_server_that_fails_again_goes_out_again_on_a_path_that_it_failed_before() {
    run(async {
        let (sick, seen) = scripted(|_, _| Reply::Close).await;
        let (well, _) = scripted(|_, _| ok("well")).await;
        let proxy = to(&[&sick, &well], "fails = 1");
        let standing = || proxy.states()[0].standing;
        for out in 1..3 {
            while standing() != Standing::Down {
                ask(&proxy, post("/form")).await;
                assert!(seen.count() <= out, "it is out no more");
            }
            until(|| standing() == Standing::OnProbation).await;
        }
    });
}

/// It was only not there: a client that takes its time with a body is no reason to keep others out.
#[test]
fn a_server_that_can_be_reached_again_is_back_whatever_its_first_request_takes() {
    run(async {
        let url = unused_address().await;
        let proxy = to(&[&url], "fails = 1\nretries = 0\nqueue_seconds = 5");
        assert_eq!(ask(&proxy, get("/")).await.status, 502);
        let listener = TcpListener::bind(&url["http://".len()..]).await.unwrap();
        let (seen, _) = scripted_on(listener, |_, _| ok("back"));
        until(|| proxy.states()[0].standing == Standing::OnProbation).await;
        let (address, _) = front(&proxy).await;
        let head = "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\nbeg";
        let trickle = client(address, head).await;
        until(|| seen.connections.get() == 1).await;
        assert_eq!(ask(&proxy, get("/")).await.text(), "back");
        until(|| proxy.states()[0].inside == 1).await;
        assert_eq!(seen.count(), 1);
        drop(trickle);
    });
}

/// Where others are, they have what comes; where none is, one that is slow must not keep all out.
#[test]
fn a_server_that_is_tried_by_a_request_that_takes_long_gets_others_if_none_else_is_up() {
    run(async {
        let (sick, tried) = scripted(|number, _| match number {
            0 => Reply::Close,
            1 => Reply::Hang,
            _ => ok("here"),
        })
        .await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let other = format!("http://{}", listener.local_addr().unwrap());
        let well = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\nwell";
        let (_, accepting) = scripted_on(listener, |_, _| Reply::Last(well.to_vec()));
        let proxy = to(&[&sick, &other], "fails = 1\nqueue_seconds = 10");
        assert_eq!(ask(&proxy, get("/")).await.text(), "well");
        assert_eq!(proxy.states()[0].standing, Standing::Down);
        accepting.abort();
        let _ = accepting.await;
        assert_eq!(ask(&proxy, get("/")).await.status, 502);
        until(|| proxy.states()[0].standing == Standing::OnProbation).await;
        let slow = spawn(&proxy, "/");
        until(|| tried.count() == 2).await;
        assert_eq!(ask(&proxy, get("/")).await.text(), "here");
        assert!(!slow.is_finished());
        slow.abort();
    });
}
