//! Metrics as OpenMetrics text, which Prometheus reads. Names follow Prometheus: seconds and bytes,
//! `_total` for what only grows.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;

pub use prometheus_client::registry::Unit;

/// The content type of what [`Families::encode`] gives.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Names and values.
pub type Labels = Vec<(&'static str, String)>;

/// What one set of labels has.
#[derive(Clone, Debug)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// Any number.
    Number(f64),
    /// Sum, count, and how many are in each bucket, of which the upper bound stands before it.
    Histogram(f64, u64, Vec<(f64, u64)>),
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

/// Families of metrics at one moment, each added by one call: name, help and unit once, then a
/// sample for each set of labels.
#[derive(Debug, Default)]
pub struct Families(Vec<Family>);

#[derive(Debug)]
struct Family {
    name: String,
    help: String,
    unit: Option<Unit>,
    kind: MetricType,
    samples: Vec<(Labels, Value)>,
}

impl Families {
    /// The text.
    pub fn encode(self) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut out = String::with_capacity(64 << 10);
        text::encode(&mut out, &registry)?;
        Ok(out)
    }

    /// A counter without labels.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.counters(name, help, None, [(Labels::new(), value)]);
    }

    /// A counter by labels.
    pub fn counters(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        samples: impl IntoIterator<Item = (Labels, impl Into<Value>)>,
    ) {
        self.add(name, help, unit, MetricType::Counter, samples);
    }

    /// A gauge without labels.
    pub fn gauge(&mut self, name: &str, help: &str, unit: Option<Unit>, value: f64) {
        self.gauges(name, help, unit, [(Labels::new(), value)]);
    }

    /// A gauge by labels.
    pub fn gauges(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        samples: impl IntoIterator<Item = (Labels, impl Into<Value>)>,
    ) {
        self.add(name, help, unit, MetricType::Gauge, samples);
    }

    /// A histogram of seconds by labels.
    pub fn histograms(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, impl Into<Value>)>,
    ) {
        let unit = Some(Unit::Seconds);
        self.add(name, help, unit, MetricType::Histogram, samples);
    }

    /// A fact in one label.
    pub fn info(&mut self, name: &str, help: &str, label: (&'static str, String)) {
        let samples = [(vec![label], 1_u64)];
        self.add(name, help, None, MetricType::Info, samples);
    }

    fn add(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        kind: MetricType,
        samples: impl IntoIterator<Item = (Labels, impl Into<Value>)>,
    ) {
        self.0.push(Family {
            name: name.to_owned(),
            help: help.to_owned(),
            unit,
            kind,
            samples: samples
                .into_iter()
                .map(|(labels, value)| (labels, value.into()))
                .collect(),
        });
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.0 {
            let (name, help) = (&family.name, &family.help);
            let unit = family.unit.as_ref();
            let mut to = encoder.encode_descriptor(name, help, unit, family.kind)?;
            for (labels, value) in &family.samples {
                if let MetricType::Info = family.kind {
                    to.encode_info(labels)?;
                } else if labels.is_empty() {
                    write(&mut to, family.kind, value)?;
                } else {
                    write(&mut to.encode_family(labels)?, family.kind, value)?;
                }
            }
        }
        Ok(())
    }
}

fn write(to: &mut MetricEncoder<'_>, kind: MetricType, value: &Value) -> fmt::Result {
    match (value, kind) {
        (Value::Histogram(sum, count, buckets), _) => {
            to.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)
        }
        (Value::Count(count), MetricType::Gauge) => to.encode_gauge(count),
        (Value::Number(number), MetricType::Gauge) => to.encode_gauge(number),
        (Value::Count(count), _) => to.encode_counter::<NoLabelSet, _, u64>(count, None),
        (Value::Number(number), _) => to.encode_counter::<NoLabelSet, _, u64>(number, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_and_others_are_written_as_they_are() {
        let mut families = Families::default();
        families.counter("a", "A", 7);
        let labels = vec![("device", "eth\"0".to_owned())];
        families.gauges("b", "B", Some(Unit::Bytes), [(labels, 3_u64)]);
        families.gauge("c", "C", None, 0.5);
        let buckets = vec![(0.5, 1), (f64::INFINITY, 1)];
        let histogram = Value::Histogram(2.0, 2, buckets);
        families.histograms("d", "D", [(vec![("size", "1".into())], histogram)]);
        families.info("e", "E", ("version", "1".to_owned()));
        families.gauges("f", "F", None, [(); 0].map(|()| (Labels::new(), 0.0)));
        let text = families.encode().unwrap();
        for line in [
            "a_total 7\n",
            "b_bytes{device=\"eth\\\"0\"} 3\n",
            "c 0.5\n",
            "d_seconds_bucket{le=\"+Inf\",size=\"1\"} 2\n",
            "e_info{version=\"1\"} 1\n",
            "# TYPE f gauge\n",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
    }
}
