//! Families of metrics in the encoder's terms: name, help, unit and kind once, then a sample for each set of labels.

use super::sources::ClassLoad;
use crate::metrics::{BOUNDS_NS, Histogram, SIZE_CLASSES};
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use std::fmt;

/// Names and values.
pub type Labels = Vec<(&'static str, String)>;

/// Writes families of metrics, each with one call.
pub struct Families<'a>(DescriptorEncoder<'a>);

impl<'a> Families<'a> {
    /// Writes to `encoder`.
    pub fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self(encoder)
    }

    /// A counter without labels.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.counters(name, help, None, [(Labels::new(), value)])
    }

    /// A counter by labels.
    pub fn counters(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        samples: impl IntoIterator<Item = (Labels, u64)>,
    ) -> fmt::Result {
        let mut family =
            self.0
                .encode_descriptor(name, help, unit.as_ref(), MetricType::Counter)?;
        for (labels, value) in samples {
            if labels.is_empty() {
                family.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
            } else {
                family
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, _, u64>(&value, None)?;
            }
        }
        Ok(())
    }

    /// A counter of seconds, without labels.
    pub fn counter_of_seconds(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let mut family =
            self.0
                .encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Counter)?;
        family.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    /// A gauge without labels.
    pub fn gauge(&mut self, name: &str, help: &str, unit: Option<Unit>, value: f64) -> fmt::Result {
        let mut family = self
            .0
            .encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        family.encode_gauge(&value)
    }

    /// A gauge by labels.
    pub fn gauges(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        samples: impl IntoIterator<Item = (Labels, u64)>,
    ) -> fmt::Result {
        let mut family = self
            .0
            .encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        for (labels, value) in samples {
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// Jobs and bytes by size class.
    pub fn loads(&mut self, name: &str, what: &str, loads: &[ClassLoad]) -> fmt::Result {
        let jobs = by_size(loads.iter().map(|load| load.jobs));
        let help = format!("Responses {what}, by size");
        self.gauges(&format!("{name}_jobs"), &help, None, jobs)?;
        let bytes = by_size(loads.iter().map(|load| load.bytes));
        let help = format!("What remains to be sent of the responses {what}");
        self.gauges(name, &help, Some(Unit::Bytes), bytes)
    }

    /// A histogram of seconds by size class.
    pub fn histograms(&mut self, name: &str, help: &str, histograms: &[Histogram]) -> fmt::Result {
        let mut family =
            self.0
                .encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        let bounds = BOUNDS_NS.iter().map(|&bound| bound as f64 / 1e9);
        let bounds: Vec<f64> = bounds.chain([f64::INFINITY]).collect();
        for (labels, histogram) in by_size(histograms) {
            let buckets: Vec<(f64, u64)> =
                bounds.iter().copied().zip(histogram.buckets()).collect();
            let count = buckets.iter().map(|(_, count)| count).sum();
            let sum = histogram.sum_ns() as f64 / 1e9;
            family
                .encode_family(&labels)?
                .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }

    /// A fact in one label.
    pub fn info(&mut self, name: &str, help: &str, label: (&'static str, String)) -> fmt::Result {
        let mut family = self
            .0
            .encode_descriptor(name, help, None, MetricType::Info)?;
        family.encode_info(&[label])
    }
}

fn by_size<T>(values: impl IntoIterator<Item = T>) -> impl Iterator<Item = (Labels, T)> {
    let classes = SIZE_CLASSES.iter().zip(values);
    classes.map(|(class, value)| (vec![("size_class", class.name.to_owned())], value))
}

/// How often it went well and how often not.
pub fn by_result(results: [(&'static str, u64); 2]) -> [(Labels, u64); 2] {
    results.map(|(result, count)| (vec![("result", result.to_owned())], count))
}
