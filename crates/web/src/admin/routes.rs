//! Which path answers what, and who may ask.

use super::exposition::Exposition;
use super::history::{History, Totals};
use super::page;
use super::sources::Sources;
use super::status::Status;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderValue,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use sooner_http::rebinding::is_allowed;
use sooner_kernel::clock::monotonic_ns;
use sooner_operate::ProcessReading;
use sooner_operate::admin::Pages;
use sooner_operate::metrics;
use sooner_policy::Time;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::SystemTime;

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
/// For what is not a page: a browser may do nothing with it but show it.
const SHOW_ONLY: &str = "default-src 'none'; frame-ancestors 'none'";

/// What all connections to the admin address share.
pub struct Desk {
    sources: Sources,
    history: RefCell<History>,
    hosts: Vec<String>,
}

impl Pages for Desk {
    fn answer(&self, request: &Request<Incoming>, reached: SocketAddr) -> Response<Full<Bytes>> {
        self.respond(request, reached)
    }
}

impl Desk {
    /// A desk that clients may also reach under the names `hosts`.
    pub fn new(sources: Sources, hosts: Vec<String>) -> Self {
        let wire_bytes = (sources.uplink)().sent_wire_bytes;
        let history = History::new(Totals::read(&sources.metrics, wire_bytes));
        Self {
            sources,
            history: RefCell::new(history),
            hosts,
        }
    }

    /// Another second has passed.
    pub fn second_passed(&self) {
        self.take_figures();
        self.sources.metrics.second_passed();
        let wire_bytes = (self.sources.uplink)().sent_wire_bytes;
        let totals = Totals::read(&self.sources.metrics, wire_bytes);
        self.history.borrow_mut().second_passed(totals);
    }

    /// Answers a request that came to the address `reached`.
    pub fn respond<B>(&self, request: &Request<B>, reached: SocketAddr) -> Response<Full<Bytes>> {
        if !self.is_meant(request, reached) {
            return answer(
                StatusCode::FORBIDDEN,
                TEXT,
                "this address is for its own host names; more of them go into admin.hosts\n",
            );
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut refusal = answer(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n");
            let allowed = HeaderValue::from_static("GET, HEAD");
            refusal.headers_mut().insert(ALLOW, allowed);
            return refusal;
        }
        match request.uri().path() {
            "/" => self.page(),
            "/status.json" => self.status(),
            "/metrics" => self.metrics(),
            "/healthz" if self.sources.metrics.is_stopping() => {
                answer(StatusCode::SERVICE_UNAVAILABLE, TEXT, "stopping\n")
            }
            "/healthz" => answer(StatusCode::OK, TEXT, "ok\n"),
            _ => answer(
                StatusCode::NOT_FOUND,
                TEXT,
                "there are /, /status.json, /metrics and /healthz\n",
            ),
        }
    }

    fn is_meant<B>(&self, request: &Request<B>, reached: SocketAddr) -> bool {
        let mut hosts = request.headers().get_all(HOST).iter();
        let of_target = request
            .uri()
            .authority()
            .map(|host| host.as_str().as_bytes());
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => of_target.or(Some(host.as_bytes())),
            (None, None) => of_target,
            _ => None,
        };
        host.is_some_and(|host| is_allowed(host, reached, &self.hosts))
    }

    fn page(&self) -> Response<Full<Bytes>> {
        let (page, policy) = page::render(&self.read());
        let mut answer = answer(StatusCode::OK, HTML, page);
        if let Ok(policy) = HeaderValue::try_from(policy) {
            answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
        }
        answer
    }

    fn status(&self) -> Response<Full<Bytes>> {
        match serde_json::to_vec(&self.read()) {
            Ok(status) => answer(StatusCode::OK, JSON, status),
            Err(error) => answer(
                StatusCode::INTERNAL_SERVER_ERROR,
                TEXT,
                format!("{error}\n"),
            ),
        }
    }

    fn metrics(&self) -> Response<Full<Bytes>> {
        self.take_figures();
        let metrics = self.sources.metrics.clone();
        let uplink = (self.sources.uplink)();
        let rate = uplink.rate_bits_per_sec;
        let shadow = metrics.shadow().map_or((0, 0, 0), |shadow| {
            (
                shadow.present() as u64,
                shadow.missed(),
                shadow.dropped_figures(),
            )
        });
        let exposition = Exposition {
            uplink,
            busy_share: rate.and_then(|rate| self.history.borrow().busy_share(rate)),
            upstreams: self.sources.upstream_readings(),
            classes: self.sources.class_readings(),
            predictions: self.sources.prediction_readings(),
            rehearsals: self.sources.rehearsal_readings(),
            process: ProcessReading::now(),
            shadow,
            log_lines_lost: self.sources.log.lost_lines(),
            metrics,
        };
        match exposition.encode() {
            Ok(text) => answer(StatusCode::OK, metrics::CONTENT_TYPE, text),
            Err(error) => answer(
                StatusCode::INTERNAL_SERVER_ERROR,
                TEXT,
                format!("{error}\n"),
            ),
        }
    }

    fn read(&self) -> Status {
        Status::read(&self.sources, &self.history.borrow(), SystemTime::now())
    }

    /// What FAIR has done meanwhile.
    fn take_figures(&self) {
        let metrics = &self.sources.metrics;
        if let Some(shadow) = metrics.shadow() {
            let now = Time::from_ns(monotonic_ns());
            shadow
                .take_figures(now)
                .iter()
                .for_each(|figure| metrics.compared(figure));
        }
    }
}

fn answer(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
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
    use crate::admin::status::tests::sources;
    use http_body_util::BodyExt;

    fn ask(method: &str, target: &str, host: &str) -> Response<Full<Bytes>> {
        let desk = Desk::new(sources(), vec![]);
        desk.second_passed();
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header(HOST, host);
        desk.respond(
            &request.body(()).unwrap(),
            "127.0.0.1:9090".parse().unwrap(),
        )
    }

    async fn text(response: Response<Full<Bytes>>) -> String {
        let body = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn every_path_answers_in_its_own_form() {
        for (target, content_type, part) in [
            ("/", HTML, "id=\"headline\""),
            ("/?x", HTML, "<noscript>"),
            ("/status.json", JSON, "\"schema\":1"),
            ("/metrics", metrics::CONTENT_TYPE, "# EOF"),
            ("/healthz", TEXT, "ok\n"),
        ] {
            let response = ask("GET", target, "localhost:9090");
            assert_eq!(response.status(), 200);
            assert_eq!(response.headers()[CONTENT_TYPE], content_type);
            assert!(text(response).await.contains(part), "{target}");
        }
        assert_eq!(ask("GET", "/status", "localhost").status(), 404);
    }

    #[test]
    fn strangers_and_other_methods_are_refused() {
        assert_eq!(ask("GET", "/", "evil.example").status(), 403);
        assert_eq!(
            ask("GET", "http://evil.example/", "localhost").status(),
            403
        );
        let response = ask("POST", "/", "localhost");
        assert_eq!(
            (response.status().as_u16(), &response.headers()[ALLOW]),
            (405, &"GET, HEAD".parse().unwrap())
        );
        let desk = Desk::new(sources(), vec![]);
        let reached = "127.0.0.1:9090".parse().unwrap();
        assert_eq!(desk.respond(&Request::new(()), reached).status(), 403);
        let twice = Request::builder()
            .header(HOST, "localhost")
            .header(HOST, "localhost");
        assert_eq!(
            desk.respond(&twice.body(()).unwrap(), reached).status(),
            403
        );
    }

    #[test]
    fn a_server_that_ends_is_not_healthy() {
        let desk = Desk::new(sources(), vec![]);
        desk.sources.metrics.stops();
        let request = Request::builder()
            .uri("/healthz")
            .header(HOST, "[::1]:9090");
        let response = desk.respond(
            &request.body(()).unwrap(),
            "127.0.0.1:9090".parse().unwrap(),
        );
        assert_eq!(response.status(), 503);
    }
}
