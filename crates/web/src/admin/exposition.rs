//! `/metrics`: everything as OpenMetrics text. Names follow Prometheus: seconds and bytes, `_total`
//! for what only grows.

mod upstreams;

use super::prediction::PredictionReading;
use super::sources::{ClassLoad, ClassReading, RehearsalReading, UplinkReading, UpstreamReading};
use crate::metrics::{
    BOUNDS_NS, Histogram, Metrics, PROTOCOLS, Refusal, SIZE_CLASSES, STATUS_CLASSES,
};
use sooner_http::negotiation::Coding;
use sooner_operate::ProcessReading;
use sooner_operate::metrics::{Families, Labels, Unit, Value};
use sooner_uplink::limit;
use std::fmt;
use std::sync::Arc;

/// Everything that is told, at one moment.
#[derive(Debug)]
pub struct Exposition {
    /// What all workers have counted.
    pub metrics: Arc<Metrics>,
    /// How many there are.
    pub workers: usize,
    /// The uplink.
    pub uplink: UplinkReading,
    /// The share of the link that was used in the last seconds.
    pub busy_share: Option<f64>,
    /// The servers behind this one.
    pub upstreams: Vec<UpstreamReading>,
    /// The classes before them.
    pub classes: Vec<ClassReading>,
    /// How good expectations of their requests were.
    pub predictions: Vec<PredictionReading>,
    /// How long requests would have waited for upstreams that hold nothing.
    pub rehearsals: Vec<RehearsalReading>,
    /// The process.
    pub process: ProcessReading,
    /// Jobs that FAIR would still be serving, jobs that were not followed, figures that were not
    /// taken.
    pub shadow: (u64, u64, u64),
    /// Lines that the access log has lost.
    pub log_lines_lost: u64,
}

impl Exposition {
    /// The text.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut to = Families::default();
        self.requests(&mut to);
        self.compression(&mut to);
        self.times(&mut to);
        self.connections(&mut to);
        self.uplink(&mut to);
        self.upstreams(&mut to);
        self.classes(&mut to);
        self.predictions(&mut to);
        self.rehearsals(&mut to);
        self.operation(&mut to);
        self.process(&mut to);
        to.encode()
    }

    fn requests(&self, to: &mut Families) {
        let sites = self.metrics.sites();
        let mut requests = Vec::new();
        for site in &sites {
            for (protocol, counts) in PROTOCOLS.iter().zip(&site.requests) {
                for (status, &count) in STATUS_CLASSES.iter().zip(counts) {
                    if count > 0 {
                        let labels = vec![
                            ("site", site.name.clone()),
                            ("protocol", (*protocol).to_owned()),
                            ("status", (*status).to_owned()),
                        ];
                        requests.push((labels, count));
                    }
                }
            }
        }
        to.counters(
            "sooner_requests",
            "Responses that ended, by class of status",
            None,
            requests,
        );
        let bytes = sites
            .iter()
            .map(|site| (vec![("site", site.name.clone())], site.response_bytes));
        to.counters(
            "sooner_response",
            "Bytes of response bodies sent",
            Some(Unit::Bytes),
            bytes,
        );
        to.counter(
            "sooner_responses_aborted",
            "Responses that were not sent whole",
            self.metrics.aborted.get(),
        );
    }

    fn compression(&self, to: &mut Families) {
        let counts = &self.metrics.compression;
        let readings = counts.read();
        let labels = |coding: Coding| vec![("coding", coding.token().to_owned())];
        to.counters(
            "sooner_compression_in",
            "Bytes of bodies that were compressed, before",
            Some(Unit::Bytes),
            readings.map(|reading| (labels(reading.coding), reading.in_bytes)),
        );
        to.counters(
            "sooner_compression_out",
            "Bytes of the same bodies after",
            Some(Unit::Bytes),
            readings.map(|reading| (labels(reading.coding), reading.out_bytes)),
        );
        to.counter(
            "sooner_compression_left",
            "Responses sent as they are for lack of memory to compress them",
            counts.left(),
        );
    }

    fn times(&self, to: &mut Families) {
        let metrics = &self.metrics;
        histograms(
            to,
            "sooner_response",
            "From the start of a response to its last byte, by size of its body",
            &metrics.responses,
        );
        histograms(
            to,
            "sooner_wait",
            "How long the same responses waited while others went first",
            &metrics.waits,
        );
        histograms(
            to,
            "sooner_compared_response",
            "Response time of the responses that FAIR has done too, by size on the wire",
            &metrics.compared,
        );
        histograms(
            to,
            "sooner_fair_response",
            "What FAIR, an equally shared link, would have given the very same responses",
            &metrics.fair,
        );
        let (jobs, missed, dropped) = self.shadow;
        to.gauge(
            "sooner_fair_jobs",
            "Responses that FAIR would still be sending",
            None,
            jobs as f64,
        );
        to.counter(
            "sooner_fair_missed_jobs",
            "Responses not compared because too many were",
            missed,
        );
        to.counter(
            "sooner_fair_dropped_figures",
            "Comparisons lost because no reader took them",
            dropped,
        );
    }

    fn connections(&self, to: &mut Families) {
        let metrics = &self.metrics;
        let accepted = metrics.connections_opened.get();
        let open = accepted.saturating_sub(metrics.connections_closed.get());
        to.gauge("sooner_connections", "Open connections", None, open as f64);
        to.counter(
            "sooner_connections_accepted",
            "Connections accepted",
            accepted,
        );
        let refused = Refusal::ALL.map(|reason| {
            let labels = vec![("reason", reason.name().to_owned())];
            (labels, metrics.refused(reason))
        });
        to.counters(
            "sooner_connections_refused",
            "Connections not served",
            None,
            refused,
        );
        let results = [
            ("ok", &metrics.handshakes),
            ("failed", &metrics.handshakes_failed),
        ];
        to.counters(
            "sooner_tls_handshakes",
            "TLS handshakes",
            None,
            by_result(results.map(|(name, count)| (name, count.get()))),
        );
    }

    fn uplink(&self, to: &mut Families) {
        let uplink = &self.uplink;
        let is_limit = |rate: &u64| uplink.found.is_none() || limit(*rate).is_some();
        if let Some(rate) = uplink.rate_bits_per_sec.filter(is_limit) {
            to.gauge(
                "sooner_uplink_rate_bytes_per_second",
                "Rate of the link",
                None,
                rate as f64 / 8.0,
            );
        }
        if let Some(found) = &uplink.found {
            if let Some(carries) = found.carries_bits_per_sec {
                to.gauge(
                    "sooner_uplink_carries_bytes_per_second",
                    "What the link is believed to carry",
                    None,
                    carries as f64 / 8.0,
                );
            }
            to.gauge(
                "sooner_uplink_wait_seconds",
                "What all clients wait for beyond this host",
                None,
                found.waits.common_ms / 1e3,
            );
        }
        if let Some(share) = self.busy_share {
            to.gauge(
                "sooner_uplink_busy_ratio",
                "Share of the link used in the last ten seconds",
                None,
                share,
            );
        }
        to.counters(
            "sooner_uplink_sent",
            "Bytes charged to the link, packet headers included",
            Some(Unit::Bytes),
            [(Labels::new(), uplink.sent_wire_bytes)],
        );
        loads(
            to,
            "sooner_uplink_waiting",
            "waiting for their turn",
            &uplink.waiting,
        );
        loads(
            to,
            "sooner_uplink_sending",
            "being sent, or waiting for their own client",
            &uplink.sending,
        );
    }

    fn operation(&self, to: &mut Families) {
        let metrics = &self.metrics;
        to.gauge(
            "sooner_workers",
            "Threads that serve",
            None,
            self.workers as f64,
        );
        to.counter(
            "sooner_log_lines_lost",
            "Access log lines lost",
            self.log_lines_lost,
        );
        let results = [
            ("ok", metrics.reloads.get()),
            ("failed", metrics.reloads_failed.get()),
        ];
        to.counters(
            "sooner_config_loads",
            "Configurations taken, the first included, and refused",
            None,
            by_result(results),
        );
        let configured_at = metrics.configured_at_unix_seconds.get() as f64;
        to.gauge(
            "sooner_config_last_load_timestamp",
            "When the present configuration was taken",
            Some(Unit::Seconds),
            configured_at,
        );
        to.info(
            "sooner_config",
            "The present configuration",
            ("hash", format!("{:016x}", metrics.config_hash.get())),
        );
        to.info(
            "sooner_build",
            "The program",
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
        );
    }

    fn process(&self, to: &mut Families) {
        let process = &self.process;
        let started_at = self.metrics.started_at_unix_seconds;
        to.gauge(
            "process_resident_memory",
            "Memory in RAM",
            Some(Unit::Bytes),
            process.resident_bytes as f64,
        );
        to.gauge(
            "process_open_fds",
            "Open descriptors",
            None,
            process.open_descriptors as f64,
        );
        to.gauge(
            "process_max_fds",
            "Descriptors that may be open",
            None,
            process.descriptors_max as f64,
        );
        to.gauge(
            "process_start_time",
            "When the server began",
            Some(Unit::Seconds),
            started_at,
        );
        to.counters(
            "process_cpu",
            "Processor time of all threads",
            Some(Unit::Seconds),
            [(Labels::new(), process.cpu_seconds)],
        );
    }
}

/// Jobs and bytes by size class.
fn loads(to: &mut Families, name: &str, what: &str, loads: &[ClassLoad]) {
    let jobs = by_size(loads.iter().map(|load| load.jobs));
    let help = format!("Responses {what}, by size");
    to.gauges(&format!("{name}_jobs"), &help, None, jobs);
    let bytes = by_size(loads.iter().map(|load| load.bytes));
    let help = format!("What remains to be sent of the responses {what}");
    to.gauges(name, &help, Some(Unit::Bytes), bytes);
}

/// A histogram of seconds by size class.
fn histograms(to: &mut Families, name: &str, help: &str, histograms: &[Histogram]) {
    let bounds = BOUNDS_NS.iter().map(|&bound| bound as f64 / 1e9);
    let bounds: Vec<f64> = bounds.chain([f64::INFINITY]).collect();
    let value = |histogram: &Histogram| {
        let buckets: Vec<(f64, u64)> = bounds.iter().copied().zip(histogram.buckets()).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        Value::Histogram(histogram.sum_ns() as f64 / 1e9, count, buckets)
    };
    to.histograms(name, help, by_size(histograms.iter().map(value)));
}

fn by_size<T>(values: impl IntoIterator<Item = T>) -> impl Iterator<Item = (Labels, T)> {
    let classes = SIZE_CLASSES.iter().zip(values);
    classes.map(|(class, value)| (vec![("size_class", class.name.to_owned())], value))
}

/// How often it went well and how often not.
fn by_result(results: [(&'static str, u64); 2]) -> [(Labels, u64); 2] {
    results.map(|(result, count)| (vec![("result", result.to_owned())], count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::Sources;
    use crate::admin::status::tests::{history, sources, two_workers};
    use std::collections::{BTreeMap, BTreeSet};

    fn text() -> String {
        text_of(&sources())
    }

    fn text_of(sources: &Sources) -> String {
        let history = history(sources, "/");
        let exposition = Exposition {
            metrics: sources.sum_metrics(),
            workers: sources.metrics.len(),
            uplink: (sources.uplink)(),
            busy_share: history.busy_share(10_000_000),
            upstreams: sources.upstream_readings(),
            classes: sources.class_readings(),
            predictions: sources.prediction_readings(),
            rehearsals: sources.rehearsal_readings(),
            process: ProcessReading::now(),
            shadow: (1, 2, 3),
            log_lines_lost: 4,
        };
        exposition.encode().unwrap()
    }

    #[test]
    fn figures_are_under_their_names() {
        let text = text();
        for line in [
            "sooner_requests_total{site=\"other\",protocol=\"HTTP/1.1\",status=\"2xx\"} 20",
            "sooner_response_bytes_total{site=\"other\"} 100000",
            "sooner_response_seconds_count{size_class=\"10K\"} 20",
            "sooner_response_seconds_bucket{le=\"0.0025\",size_class=\"10K\"} 20",
            "sooner_response_seconds_bucket{le=\"+Inf\",size_class=\"10K\"} 20",
            "sooner_fair_response_seconds_sum{size_class=\"10K\"} 0.16",
            "sooner_fair_missed_jobs_total 2",
            "sooner_connections 1.0",
            "sooner_connections_refused_total{reason=\"memory\"} 1",
            "sooner_tls_handshakes_total{result=\"failed\"} 1",
            "sooner_uplink_rate_bytes_per_second 1250000.0",
            "sooner_uplink_busy_ratio 0.5",
            "sooner_uplink_waiting_jobs{size_class=\"1K\"} 2",
            "sooner_uplink_waiting_bytes{size_class=\"1K\"} 30",
            "sooner_upstream_waiting_requests{upstream=\"app\",server=\"http://127.0.0.1:3000\"} 4",
            "sooner_upstream_retries_total{upstream=\"app\",server=\"http://127.0.0.1:3000\"} 2",
            "sooner_upstream_class_achieved_seconds{upstream=\"app\",class=\"checkout\",target=\"p95\"} 0.04",
            "sooner_upstream_prediction_ranked_ratio{upstream=\"app\",by=\"all\"} 0.875",
            "sooner_upstream_prediction_ranked_ratio{upstream=\"app\",by=\"kind\"} 0.625",
            "sooner_upstream_prediction_taken_ratio{upstream=\"app\",tenth=\"2\"} 0.5",
            "sooner_upstream_prediction_wait_seconds{upstream=\"app\",order=\"perfect\"} 0.001",
            "sooner_upstream_order_mean_seconds{upstream=\"app\",order=\"boost\"} 0.02",
            "sooner_upstream_order_p99_seconds{upstream=\"app\",order=\"perfect\"} 0.125",
            "sooner_config_loads_total{result=\"ok\"} 1",
            "sooner_config_info{hash=\"0000000000000abc\"} 1",
            "sooner_workers 1.0",
            "sooner_log_lines_lost_total 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn workers_are_told_as_one() {
        let text = text_of(&two_workers());
        for line in [
            "sooner_workers 2.0",
            "sooner_requests_total{site=\"other\",protocol=\"HTTP/1.1\",status=\"2xx\"} 20",
            "sooner_connections 3.0",
            "sooner_connections_accepted_total 3",
            "sooner_config_loads_total{result=\"ok\"} 1",
            "sooner_config_info{hash=\"0000000000000abc\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    /// What OpenMetrics demands of any exposition: families described once and not interleaved,
    /// samples under their family's name, cumulative buckets, counters that end in `_total`.
    #[test]
    fn the_text_is_well_formed() {
        let text = text();
        let (mut seen, mut kind) = (BTreeSet::new(), String::new());
        let (mut family, mut last_bucket) = (String::new(), BTreeMap::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, of) = rest.split_once(' ').unwrap();
                assert!(seen.insert(name.to_owned()), "{name} is described twice");
                (family, kind) = (name.to_owned(), of.to_owned());
            } else if !line.starts_with('#') {
                let (name, value) = line.rsplit_once(' ').unwrap();
                let value: f64 = value.parse().unwrap();
                let bare = name.split('{').next().unwrap();
                let suffix = bare
                    .strip_prefix(family.as_str())
                    .unwrap_or_else(|| panic!("{line} is not of {family}"));
                let suffixes: &[&str] = match kind.as_str() {
                    "counter" => &["_total"],
                    "histogram" => &["_bucket", "_count", "_sum"],
                    "info" => &["_info"],
                    _ => &[""],
                };
                assert!(suffixes.contains(&suffix), "{line}");
                if suffix == "_bucket" {
                    let class = name.split("size_class").nth(1).unwrap().to_owned();
                    let before = last_bucket
                        .insert((family.clone(), class), value)
                        .unwrap_or(0.0);
                    assert!(before <= value, "{line}");
                }
            }
        }
        assert!(seen.len() > 25);
    }
}
