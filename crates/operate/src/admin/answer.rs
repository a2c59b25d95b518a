//! What all answers of an admin address have in common: who may ask, by which methods, and the
//! headers under which a browser takes what comes.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderValue,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use sooner_http::rebinding::is_allowed;
use std::fmt;
use std::net::SocketAddr;

use super::page::Page;
use crate::metrics;

/// The content type of a page.
pub const HTML: &str = "text/html; charset=utf-8";
/// Of data.
pub const JSON: &str = "application/json";
/// Of words.
pub const TEXT: &str = "text/plain; charset=utf-8";
/// For what is not a page: a browser may do nothing with it but show it.
const SHOW_ONLY: &str = "default-src 'none'; frame-ancestors 'none'";

/// An answer, all of it there.
pub type Answer = Response<Full<Bytes>>;

/// Whether a request that came to the address `reached` means it: a page of another site with a
/// name that was made to point here does not. `hosts` are names that are allowed besides.
pub fn is_meant<B>(request: &Request<B>, reached: SocketAddr, hosts: &[String]) -> bool {
    let mut named = request.headers().get_all(HOST).iter();
    let of_target = request
        .uri()
        .authority()
        .map(|host| host.as_str().as_bytes());
    let host = match (named.next(), named.next()) {
        (Some(host), None) => of_target.or(Some(host.as_bytes())),
        (None, None) => of_target,
        _ => None,
    };
    host.is_some_and(|host| is_allowed(host, reached, hosts))
}

/// The answer to one that does not mean it; `remedy` says what would.
pub fn not_meant(remedy: &str) -> Answer {
    let words = format!("this address is for its own host names; {remedy}\n");
    answer(StatusCode::FORBIDDEN, TEXT, words)
}

/// The refusal of a method that does not only read.
pub fn refused_method<B>(request: &Request<B>) -> Option<Answer> {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    let mut refusal = answer(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n");
    let allowed = HeaderValue::from_static("GET, HEAD");
    refusal.headers_mut().insert(ALLOW, allowed);
    Some(refusal)
}

/// What `/healthz` says.
pub fn health(is_stopping: bool) -> Answer {
    if is_stopping {
        answer(StatusCode::SERVICE_UNAVAILABLE, TEXT, "stopping\n")
    } else {
        answer(StatusCode::OK, TEXT, "ok\n")
    }
}

/// That there is nothing at a path; `paths` are those at which there is.
pub fn not_found(paths: &str) -> Answer {
    let words = format!("there are {paths}\n");
    answer(StatusCode::NOT_FOUND, TEXT, words)
}

/// A page, under the policy that lets only its own style and script run.
pub fn page(page: &Page<'_>) -> Answer {
    let (text, policy) = page.render();
    let mut answer = answer(StatusCode::OK, HTML, text);
    if let Ok(policy) = HeaderValue::try_from(policy) {
        answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    answer
}

/// Data.
pub fn json(data: &impl Serialize) -> Answer {
    match serde_json::to_vec(data) {
        Ok(text) => answer(StatusCode::OK, JSON, text),
        Err(error) => failed(&error),
    }
}

/// Metrics.
pub fn metrics(text: Result<String, fmt::Error>) -> Answer {
    match text {
        Ok(text) => answer(StatusCode::OK, metrics::CONTENT_TYPE, text),
        Err(error) => failed(&error),
    }
}

fn failed(error: &dyn fmt::Display) -> Answer {
    let words = format!("{error}\n");
    answer(StatusCode::INTERNAL_SERVER_ERROR, TEXT, words)
}

/// Any answer.
pub fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    for (name, value) in [
        (CONTENT_TYPE, content_type),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, SHOW_ONLY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ok(target: &str, hosts: &[&str]) -> bool {
        let mut request = Request::get(target);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        let reached = "127.0.0.1:9090".parse().unwrap();
        let names = ["metrics.example.org".to_owned()];
        is_meant(&request.body(()).unwrap(), reached, &names)
    }

    #[test]
    fn one_host_that_is_ours_is_meant() {
        assert!(is_ok("/", &["localhost:9090"]));
        assert!(is_ok("/", &["metrics.example.org"]));
        assert!(is_ok("http://127.0.0.1/", &["evil.example"]));
        assert!(!is_ok("/", &["evil.example"]));
        assert!(!is_ok("http://evil.example/", &["localhost"]));
        assert!(!is_ok("/", &["localhost", "localhost"]));
        assert!(!is_ok("/", &[]));
    }

    #[test]
    fn every_answer_has_the_headers_that_keep_others_away() {
        for answer in [
            health(true),
            not_found("/"),
            json(&1),
            metrics(Ok(String::new())),
        ] {
            let headers = answer.headers();
            assert_eq!(headers[CONTENT_SECURITY_POLICY], SHOW_ONLY);
            assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
            assert_eq!(headers[CACHE_CONTROL], "no-store");
        }
    }

    #[test]
    fn only_what_reads_is_taken() {
        let ask = |method: &str| Request::builder().method(method).body(()).unwrap();
        assert!(refused_method(&ask("GET")).is_none() && refused_method(&ask("HEAD")).is_none());
        let refusal = refused_method(&ask("POST")).unwrap();
        assert_eq!(refusal.status(), 405);
        assert_eq!(refusal.headers()[ALLOW], "GET, HEAD");
    }
}
