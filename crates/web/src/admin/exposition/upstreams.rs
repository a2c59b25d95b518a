//! What is told of upstreams: their servers, the classes before them, and how good expectations
//! were.

use super::Exposition;
use crate::admin::prediction::PredictionReading;
use crate::admin::sources::{ClassReading, RehearsalReading, TargetReading, UpstreamReading};
use sooner_operate::metrics::{Families, Labels, Unit};

/// A figure of a class.
type Figure = fn(&ClassReading) -> u64;

/// What became of requests that ran for longer than they may.
const OVERLONG: [(&str, &str, Figure); 2] = [
    (
        "sooner_upstream_class_overlong_requests",
        "Requests of a class that ran for longer than they may",
        |class| class.overlong_total,
    ),
    (
        "sooner_upstream_class_cancelled_requests",
        "Those of them that were cancelled",
        |class| class.cancelled_total,
    ),
];

/// How long requests of a class took in all, s.
type Time = fn(&ClassReading) -> f64;

/// The times that are summed.
const TIMES: [(&str, &str, Time); 2] = [
    (
        "sooner_upstream_class_response",
        "Their response times together, waiting included",
        |class| class.response_seconds_total,
    ),
    (
        "sooner_upstream_class_inside",
        "Their times inside together",
        |class| class.inside_seconds_total,
    ),
];

impl Exposition {
    pub(super) fn upstreams(&self, to: &mut Families) {
        if self.upstreams.is_empty() {
            return;
        }
        let labels = |server: &UpstreamReading| -> Labels {
            vec![
                ("upstream", server.upstream.clone()),
                ("server", server.server.clone()),
            ]
        };
        let limits = self
            .upstreams
            .iter()
            .filter_map(|server| Some((labels(server), server.requests_inside_max?)));
        let server_limits = self
            .upstreams
            .iter()
            .filter_map(|server| Some((labels(server), server.server_requests_max?)));
        let by_server = |value: fn(&UpstreamReading) -> u64| {
            self.upstreams
                .iter()
                .map(move |server| (labels(server), value(server)))
        };
        to.gauges(
            "sooner_upstream_up",
            "Whether requests are sent to the server",
            None,
            by_server(|server| server.is_up.into()),
        );
        to.gauges(
            "sooner_upstream_inside_requests",
            "Requests inside the server",
            None,
            by_server(|server| server.requests_inside),
        );
        to.gauges("sooner_upstream_waiting_requests", "Requests that wait for a place at the upstream, the same number for each of its servers", None, by_server(|server| server.requests_waiting));
        to.gauges(
            "sooner_upstream_inside_requests_max",
            "Requests that may be inside the upstream's servers together",
            None,
            limits,
        );
        to.gauges(
            "sooner_upstream_server_requests_max",
            "Requests that may be inside the server while it is up",
            None,
            server_limits,
        );
        to.counters(
            "sooner_upstream_requests",
            "Requests sent to the server",
            None,
            by_server(|server| server.requests_total),
        );
        to.counters(
            "sooner_upstream_failures",
            "Requests that failed there",
            None,
            by_server(|server| server.failures_total),
        );
        to.counters(
            "sooner_upstream_retries",
            "Requests that were sent again because the server had not answered them",
            None,
            by_server(|server| server.retries_total),
        );
    }

    pub(super) fn classes(&self, to: &mut Families) {
        if self.classes.is_empty() {
            return;
        }
        let labels = class_labels;
        let targets = self.classes.iter().flat_map(|class| {
            let of = |target: &TargetReading| {
                let mut labels = labels(class);
                labels.push(("target", target.target.clone()));
                (labels, target.clone())
            };
            class.targets.iter().map(of).collect::<Vec<_>>()
        });
        let targets: Vec<(Labels, TargetReading)> = targets.collect();
        to.gauges(
            "sooner_upstream_class_requests",
            "Requests of a class that wait for the upstream or are inside",
            None,
            self.classes
                .iter()
                .map(|class| (labels(class), class.requests)),
        );
        to.gauges(
            "sooner_upstream_class_inside_requests",
            "Those of them that are inside",
            None,
            self.classes
                .iter()
                .map(|class| (labels(class), class.inside_requests)),
        );
        let caps = self.classes.iter();
        to.gauges(
            "sooner_upstream_class_limit_requests",
            "Requests of a class that may be inside, where that is said",
            None,
            caps.filter_map(|class| Some((labels(class), class.limit_requests?))),
        );
        for (name, help, figure) in OVERLONG {
            let all = self.classes.iter();
            to.counters(
                name,
                help,
                None,
                all.map(|class| (labels(class), figure(class))),
            );
        }
        self.class_times(to);
        let wanted = targets.iter();
        to.gauges(
            "sooner_upstream_class_target",
            "Response time that a class is to have",
            Some(Unit::Seconds),
            wanted.map(|(labels, target)| (labels.clone(), target.target_seconds)),
        );
        // Nothing is told of a class before it has done something.
        let achieved = targets.into_iter();
        to.gauges(
            "sooner_upstream_class_achieved",
            "Response time that it had recently",
            Some(Unit::Seconds),
            achieved.filter_map(|(labels, target)| Some((labels, target.achieved_seconds?))),
        );
    }

    /// How many requests of each class were answered, and how long they took.
    fn class_times(&self, to: &mut Families) {
        let all = self.classes.iter();
        to.counters(
            "sooner_upstream_class_done_requests",
            "Requests of a class that were answered",
            None,
            all.map(|class| (class_labels(class), class.done_total)),
        );
        for (name, help, figure) in TIMES {
            let all = self.classes.iter();
            to.counters(
                name,
                help,
                Some(Unit::Seconds),
                all.map(|class| (class_labels(class), figure(class))),
            );
        }
    }

    pub(super) fn predictions(&self, to: &mut Families) {
        if self.predictions.is_empty() {
            return;
        }
        let mut ranked: Vec<(Labels, f64)> = Vec::new();
        let mut taken: Vec<(Labels, f64)> = Vec::new();
        let mut waits: Vec<(Labels, f64)> = Vec::new();
        let (mut means, mut p99s) = (Vec::new(), Vec::new());
        for one in &self.predictions {
            let labels = |name: &'static str, value: &str| -> Labels {
                vec![("upstream", one.upstream.clone()), (name, value.to_owned())]
            };
            let all = one.ranked_rightly.map(|share| (labels("by", "all"), share));
            let kind = one.ranked_rightly_by_kind;
            let kind = kind.map(|share| (labels("by", "kind"), share));
            ranked.extend(all.into_iter().chain(kind));
            taken.extend(taken_ratios(one).map(|(tenth, ratio)| (labels("tenth", &tenth), ratio)));
            if let Some(mean) = &one.mean_waits {
                waits.extend([
                    (labels("order", "fifo"), mean.fifo_seconds),
                    (labels("order", "expected"), mean.expected_seconds),
                    (labels("order", "perfect"), mean.perfect_seconds),
                ]);
            }
        }
        for one in &self.predictions {
            for order in &one.orders {
                let labels = || -> Labels {
                    let name = order.order.clone();
                    vec![("upstream", one.upstream.clone()), ("order", name)]
                };
                means.push((labels(), order.mean_seconds));
                p99s.push((labels(), order.p99_seconds));
            }
        }
        to.gauges(
            "sooner_upstream_prediction_ranked_ratio",
            "Of pairs of the last requests, the share of which the longer was expected to be longer, and what that would be by kind alone",
            None,
            ranked,
        );
        to.gauges(
            "sooner_upstream_prediction_taken_ratio",
            "Mean time inside of the mean that was expected, from the tenth with the shortest expectations to that with the longest",
            None,
            taken,
        );
        to.gauges(
            "sooner_upstream_prediction_wait",
            "Mean wait of the last requests in an imagined queue",
            Some(Unit::Seconds),
            waits,
        );
        to.gauges(
            "sooner_upstream_order_mean",
            "Mean time, waiting included, that the last requests would have taken in this order",
            Some(Unit::Seconds),
            means,
        );
        to.gauges(
            "sooner_upstream_order_p99",
            "99 of 100 of them would have taken no longer",
            Some(Unit::Seconds),
            p99s,
        );
    }

    /// Nothing where all upstreams hold what they are to hold.
    pub(super) fn rehearsals(&self, to: &mut Families) {
        if self.rehearsals.is_empty() {
            return;
        }
        let labels = |reading: &RehearsalReading| -> Labels {
            vec![
                ("upstream", reading.upstream.clone()),
                ("class", reading.class.clone()),
            ]
        };
        let all = || self.rehearsals.iter();
        to.counters(
            "sooner_upstream_rehearsed_requests",
            "Requests that would have gone in, where nothing is held",
            None,
            all().map(|one| (labels(one), one.requests_total)),
        );
        to.counters(
            "sooner_upstream_would_wait_requests",
            "Those of them that would have waited",
            None,
            all().map(|one| (labels(one), one.would_wait_total)),
        );
        to.counters(
            "sooner_upstream_would_wait",
            "How long these would have waited",
            Some(Unit::Seconds),
            all().map(|one| (labels(one), one.would_wait_seconds_total)),
        );
    }
}

fn class_labels(class: &ClassReading) -> Labels {
    vec![
        ("upstream", class.upstream.clone()),
        ("class", class.class.clone()),
    ]
}

/// What came of what was expected, tenth by tenth.
fn taken_ratios(reading: &PredictionReading) -> impl Iterator<Item = (String, f64)> {
    let tenths = (1..).zip(&reading.calibration);
    let told = tenths.filter(|(_, tenth)| tenth.mean_expected_seconds > 0.0);
    told.map(|(number, tenth)| {
        let ratio = tenth.mean_inside_seconds / tenth.mean_expected_seconds;
        (number.to_string(), ratio)
    })
}
