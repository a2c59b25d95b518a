//! Calls in which both sides speak in turns: the client is silent while the upstream has its say.

use super::support::*;
use crate::limits::{MeteredBody, ReceiveMeter};
use crate::request_body::{BodyError, RequestBody};
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use tokio::time::{Sleep, sleep};

/// How long a client may be silent.
const PATIENCE_NS: u64 = 1_000_000_000;
/// How long this one is.
const SILENCE: Duration = Duration::from_millis(1800);

/// Says one word after the other, with a silence between them.
struct Words {
    left: VecDeque<&'static str>,
    silence: Option<Pin<Box<Sleep>>>,
}

impl Body for Words {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(silence) = &mut self.silence {
            ready!(silence.as_mut().poll(cx));
        }
        let word = self.left.pop_front();
        self.silence = (!self.left.is_empty()).then(|| Box::pin(sleep(SILENCE)));
        Poll::Ready(word.map(|word| Ok(Frame::data(word.into()))))
    }
}

/// A request with these words, from a client that may be silent for so long.
fn saying(words: &[&'static str]) -> Request<RequestBody> {
    let words = Words {
        left: words.iter().copied().collect(),
        silence: None,
    };
    let body = RequestBody::Tested(Box::pin(words));
    let meter = ReceiveMeter::with_patience(1_000_000_000, PATIENCE_NS);
    let metered = MeteredBody::new(body, u64::MAX, meter);
    let mut request = get("/call").map(|_| RequestBody::Metered(Box::new(metered)));
    *request.method_mut() = Method::POST;
    request
}

/// Answers at once, with what it hears as it comes.
async fn echo(request: Request<Incoming>) -> Result<Response<Incoming>, Infallible> {
    Ok(Response::new(request.into_body()))
}

/// A server that does so.
async fn echoing(scheme: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("{scheme}://{}", listener.local_addr().unwrap());
    spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            spawn_local(serve(scheme, stream));
        }
    });
    url
}

async fn serve(scheme: &str, stream: TcpStream) {
    let io = TokioIo::new(stream);
    let served = match scheme {
        "h2c" => {
            let builder = http2::Builder::new(TokioExecutor::new());
            builder.serve_connection(io, service_fn(echo)).await
        }
        _ => {
            let builder = http1::Builder::new();
            builder.serve_connection(io, service_fn(echo)).await
        }
    };
    drop(served);
}

#[test]
fn a_client_may_be_silent_after_the_response_has_begun() {
    for scheme in ["h2c", "http"] {
        run(async {
            let proxy = to(&[&echoing(scheme).await], "retries = 0");
            let whole = ask(&proxy, saying(&["one ", "two"])).await;
            assert_eq!((whole.status, whole.text()), (200, "one two"), "{scheme}");
        });
    }
}

/// Where the body was looked at before, too.
#[test]
fn so_may_one_whose_body_chose_its_class() {
    run(async {
        let url = echoing("h2c").await;
        let proxy = proxy(&format!(
            "[proxy]\nlook_bytes = 5\n\
             [[upstream]]\nname='app'\nservers=['{url}']\nlimit=9\n\
             [[route]]\npath='/'\nupstream='app'\n\
             [[class]]\nname='small'\npriority=1\nbody={{model='small*'}}\n"
        ));
        let whole = ask(&proxy, saying(&["{\"model\":", "\"small\"}"])).await;
        assert_eq!((whole.status, whole.text()), (200, "{\"model\":\"small\"}"));
    });
}

#[test]
fn before_it_has_begun_a_client_that_is_silent_for_too_long_is_told_so() {
    run(async {
        let (url, _) = scripted(|_, _| ok("")).await;
        let proxy = to(&[&url], "retries = 0");
        assert_eq!(ask(&proxy, saying(&["one ", "two"])).await.status, 408);
        assert_eq!(proxy.states()[0].failures, 0);
    });
}
