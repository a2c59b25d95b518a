//! How good the expectations of upstreams were, by which shorter requests go first, and what they
//! were good for.

use super::sources::seconds;
use crate::proxy::PredictionState;
use serde::Serialize;
use sooner_admission::{OrderFigures, Shadows};

/// The expectations of the last requests of an upstream.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PredictionReading {
    /// The upstream's name.
    pub upstream: String,
    /// The requests that it is about.
    pub requests: u64,
    /// The share of pairs of which the longer was expected to be longer, 0.5 by chance; `null`
    /// where all took the same time.
    pub ranked_rightly: Option<f64>,
    /// The same by the mean of each kind alone.
    pub ranked_rightly_by_kind: Option<f64>,
    /// From the tenth of which the least was expected to that of which the most was.
    pub calibration: Vec<CalibrationReading>,
    /// Mean waits of the same requests in an imagined queue; `null` where there is no limit.
    pub mean_waits: Option<WaitsReading>,
    /// The order of requests of one class, or client, now; `null` where targets or weights say it.
    pub order: Option<String>,
    /// How many requests `orders` is about.
    pub played_requests: u64,
    /// What each order would have given them; empty before that was played, and without a limit.
    pub orders: Vec<OrderReading>,
}

/// What the last requests would have taken under an order, waiting included, with as many places as
/// there were and no classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OrderReading {
    /// Its name; `perfect` is the shortest first with perfect knowledge.
    pub order: String,
    /// In the mean.
    pub mean_seconds: f64,
    /// 99 of 100.
    pub p99_seconds: f64,
}

impl From<OrderFigures> for OrderReading {
    fn from(figures: OrderFigures) -> Self {
        Self {
            order: figures.name().to_owned(),
            mean_seconds: seconds(figures.mean_ns),
            p99_seconds: seconds(figures.p99_ns),
        }
    }
}

/// A tenth of the requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CalibrationReading {
    /// The mean expectation.
    pub mean_expected_seconds: f64,
    /// The mean time inside.
    pub mean_inside_seconds: f64,
}

/// Mean waits in an imagined queue with as many places as are there now, and no classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WaitsReading {
    /// First come, first served.
    pub fifo_seconds: f64,
    /// The shortest first, by the expectations.
    pub expected_seconds: f64,
    /// The same with perfect knowledge.
    pub perfect_seconds: f64,
}

impl From<Shadows> for WaitsReading {
    fn from(shadows: Shadows) -> Self {
        Self {
            fifo_seconds: seconds(shadows.fcfs_ns),
            expected_seconds: seconds(shadows.predicted_ns),
            perfect_seconds: seconds(shadows.perfect_ns),
        }
    }
}

impl From<PredictionState> for PredictionReading {
    fn from(PredictionState { upstream, quality }: PredictionState) -> Self {
        let calibration = quality.calibration.into_iter();
        let calibration = calibration.map(|(expected_ns, inside_ns)| CalibrationReading {
            mean_expected_seconds: seconds(expected_ns),
            mean_inside_seconds: seconds(inside_ns),
        });
        let played = quality.played.unwrap_or_default();
        Self {
            upstream: upstream.as_ref().into(),
            requests: quality.jobs as u64,
            ranked_rightly: quality.ranked_rightly,
            ranked_rightly_by_kind: quality.ranked_rightly_by_kind,
            calibration: calibration.collect(),
            mean_waits: quality.shadows.map(WaitsReading::from),
            order: quality.order.map(|order| order.name().to_owned()),
            played_requests: played.jobs as u64,
            orders: played.figures.into_iter().map(OrderReading::from).collect(),
        }
    }
}
