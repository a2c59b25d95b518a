//! Which path answers what, and who may ask.

use super::exposition::Exposition;
use super::history::{History, Totals};
use super::page;
use super::sources::Sources;
use super::status::Status;
use hyper::Request;
use hyper::body::Incoming;
use sooner_kernel::clock::monotonic_ns;
use sooner_operate::ProcessReading;
use sooner_operate::admin::Pages;
use sooner_operate::admin::answer::{self, Answer, is_meant};
use sooner_policy::Time;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::SystemTime;

/// What all connections to the admin address share.
pub struct Desk {
    sources: Sources,
    history: RefCell<History>,
    hosts: Vec<String>,
}

impl Pages for Desk {
    fn answer(&self, request: &Request<Incoming>, reached: SocketAddr) -> Answer {
        self.respond(request, reached)
    }

    fn second_passed(&self) {
        self.take_figures();
        let workers = &self.sources.metrics;
        workers.iter().for_each(|metrics| metrics.second_passed());
        let wire_bytes = (self.sources.uplink)().sent_wire_bytes;
        let totals = Totals::read(workers, wire_bytes);
        self.history.borrow_mut().second_passed(totals);
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

    /// Answers a request that came to the address `reached`.
    pub fn respond<B>(&self, request: &Request<B>, reached: SocketAddr) -> Answer {
        if !is_meant(request, reached, &self.hosts) {
            return answer::not_meant("more of them go into admin.hosts");
        }
        if let Some(refusal) = answer::refused_method(request) {
            return refusal;
        }
        match request.uri().path() {
            "/" => answer::page(&page::page(&self.read())),
            "/status.json" => answer::json(&self.read()),
            "/metrics" => self.metrics(),
            "/healthz" => answer::health(self.sources.process_metrics().is_stopping()),
            _ => answer::not_found("/, /status.json, /metrics and /healthz"),
        }
    }

    fn metrics(&self) -> Answer {
        self.take_figures();
        let metrics = self.sources.sum_metrics();
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
            workers: self.sources.metrics.len(),
            metrics,
        };
        answer::metrics(exposition.encode())
    }

    fn read(&self) -> Status {
        Status::read(&self.sources, &self.history.borrow(), SystemTime::now())
    }

    /// What FAIR has done meanwhile.
    fn take_figures(&self) {
        let metrics = self.sources.process_metrics();
        if let Some(shadow) = metrics.shadow() {
            let now = Time::from_ns(monotonic_ns());
            shadow
                .take_figures(now)
                .iter()
                .for_each(|figure| metrics.compared(figure));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::status::tests::{sources, two_workers};
    use crate::metrics::RequestFacts;
    use crate::metrics::tests::report;
    use http_body_util::BodyExt;
    use hyper::header::{ALLOW, CONTENT_TYPE, HOST};
    use sooner_operate::admin::answer::{HTML, JSON, TEXT};
    use sooner_operate::metrics;

    fn ask(method: &str, target: &str, host: &str) -> Answer {
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

    async fn text(response: Answer) -> String {
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
    fn the_slowest_of_every_worker_grow_old() {
        let desk = Desk::new(two_workers(), vec![]);
        let workers = &desk.sources.metrics;
        let kept = || [0, 1].map(|worker: usize| workers[worker].slowest().len());
        for metrics in workers {
            let facts = RequestFacts::new(&Request::new(()));
            metrics.request_done(&facts, &report(1, 2, 3));
        }
        assert_eq!(kept(), [1, 1]);
        (0..300).for_each(|_| desk.second_passed());
        assert_eq!(kept(), [0, 0]);
    }

    #[test]
    fn a_server_that_ends_is_not_healthy() {
        let desk = Desk::new(sources(), vec![]);
        desk.sources.process_metrics().stops();
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
