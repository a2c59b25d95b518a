//! An attachment at one instant, as values: what `attach top` and `attach status` show, and what programs read (docs/attach.md).

use serde::{Deserialize, Serialize};

/// An attachment at one instant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The process that holds it.
    pub pid: u32,
    /// The device.
    pub device: String,
    /// Rate of the link.
    pub rate_bits_per_sec: u64,
    /// The servers' ports.
    pub ports: Vec<u16>,
    /// Since when, s.
    pub uptime_s: f64,
    /// How the programs hang on the device: `tcx` or `clsact`.
    pub via: String,
    /// Whether lengths in heads are read.
    pub reads_heads: bool,
    /// Highest first.
    pub bands: Vec<BandView>,
    /// Smallest first.
    pub sizes: Vec<SizeView>,
    /// Responses that began.
    pub responses: u64,
    /// Those of them whose length was known.
    pub sized_responses: u64,
    /// Responses under way.
    pub under_way: u64,
    /// Responses whose connection was reset.
    pub broken_responses: u64,
    /// Packets sent again.
    pub resent_packets: u64,
    /// SYN-ACKs, and those of them that went last in a flood.
    pub syn_acks: u64,
    /// SYN-ACKs that went last.
    pub lowered_syn_acks: u64,
    /// Beginnings and ends that were not seen in time.
    pub lost_events: u64,
}

/// One band.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BandView {
    /// The most that a response in it still lacks, or has had where its length is not known, bytes; none: the last band.
    pub up_to_bytes: Option<u64>,
    /// Flows whose last packet was of it, closed ones that are remembered among them.
    pub flows: u64,
    /// Packets that left in it.
    pub sent_packets: u64,
    /// Bytes that left in it.
    pub sent_bytes: u64,
    /// Packets there was no room for.
    pub dropped_packets: u64,
    /// Bytes that wait.
    pub backlog_bytes: u64,
}

/// Responses of one size class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeView {
    /// The largest of the class, bytes; none: the last class.
    pub up_to_bytes: Option<u64>,
    /// Responses that ended.
    pub responses: u64,
    /// Their mean response time, ms.
    pub mean_response_ms: Option<f64>,
    /// Of those that FAIR has done too: their mean, ms.
    pub compared_mean_response_ms: Option<f64>,
    /// Of the same ones: the mean that FAIR would have given, ms.
    pub fair_mean_response_ms: Option<f64>,
}

/// A mean in ms of a sum in ns.
pub(crate) fn mean_ms(sum_ns: u128, count: u64) -> Option<f64> {
    (count > 0).then(|| sum_ns as f64 / count as f64 / 1e6)
}

/// A family of metrics: name, type, what it is, and its rows by labels.
type Family = (&'static str, &'static str, &'static str, Rows);
/// Labels behind the device's, and the value.
type Rows = Vec<(String, f64)>;

/// The Prometheus text of a snapshot (exposition format 0.0.4).
pub fn prometheus(snapshot: &Snapshot) -> String {
    let device = &snapshot.device;
    let families = [
        of_device(snapshot),
        of_bands(&snapshot.bands),
        of_sizes(&snapshot.sizes),
    ];
    let mut text = String::new();
    for (name, kind, help, rows) in families.into_iter().flatten() {
        let name = format!("sooner_attach_{name}");
        text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (labels, value) in rows {
            text += &format!("{name}{{device=\"{device}\"{labels}}} {value}\n");
        }
    }
    text
}

fn of_device(all: &Snapshot) -> Vec<Family> {
    let table = [
        ("responses_total", "Responses that began.", all.responses),
        (
            "sized_responses_total",
            "Responses whose length was known when they began.",
            all.sized_responses,
        ),
        (
            "broken_responses_total",
            "Responses whose connection was reset.",
            all.broken_responses,
        ),
        (
            "resent_packets_total",
            "Packets sent again.",
            all.resent_packets,
        ),
        ("syn_acks_total", "SYN-ACKs.", all.syn_acks),
        (
            "lowered_syn_acks_total",
            "SYN-ACKs that went last in a flood.",
            all.lowered_syn_acks,
        ),
        (
            "lost_events_total",
            "Beginnings and ends of responses that were not seen in time.",
            all.lost_events,
        ),
    ];
    let row = |value: u64| vec![(String::new(), value as f64)];
    let counters = table.map(|(name, help, value)| (name, "counter", help, row(value)));
    let under_way = row(all.under_way);
    let gauge = (
        "under_way_responses",
        "gauge",
        "Responses under way.",
        under_way,
    );
    counters.into_iter().chain([gauge]).collect()
}

fn of_bands(bands: &[BandView]) -> Vec<Family> {
    let rows = |value: fn(&BandView) -> u64| -> Rows {
        let bands = bands.iter().enumerate();
        let row = |(band, view)| (format!(",band=\"{band}\""), value(view) as f64);
        bands.map(row).collect()
    };
    vec![
        (
            "band_sent_bytes_total",
            "counter",
            "Bytes that left in a band.",
            rows(|view| view.sent_bytes),
        ),
        (
            "band_dropped_packets_total",
            "counter",
            "Packets a band had no room for.",
            rows(|view| view.dropped_packets),
        ),
        (
            "band_backlog_bytes",
            "gauge",
            "Bytes that wait in a band.",
            rows(|view| view.backlog_bytes),
        ),
    ]
}

fn of_sizes(sizes: &[SizeView]) -> Vec<Family> {
    let rows = |value: fn(&SizeView) -> Option<f64>| -> Rows {
        let row = |view: &SizeView| {
            let up_to = view.up_to_bytes;
            let up_to = up_to.map_or("+Inf".into(), |bytes| bytes.to_string());
            Some((format!(",up_to_bytes=\"{up_to}\""), value(view)?))
        };
        sizes.iter().filter_map(row).collect()
    };
    vec![
        (
            "ended_responses_total",
            "counter",
            "Responses that ended, by size.",
            rows(|view| Some(view.responses as f64)),
        ),
        (
            "mean_response_seconds",
            "gauge",
            "Their mean response time since the start.",
            rows(|view| Some(view.mean_response_ms? / 1e3)),
        ),
        (
            "fair_mean_response_seconds",
            "gauge",
            "What FAIR would have given those that can be compared.",
            rows(|view| Some(view.fair_mean_response_ms? / 1e3)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_text_is_a_comment_or_a_value() {
        let snapshot = Snapshot {
            device: "eth0".into(),
            responses: 7,
            bands: vec![BandView::default(); 2],
            sizes: vec![SizeView {
                mean_response_ms: Some(2.5),
                ..SizeView::default()
            }],
            ..Snapshot::default()
        };
        let text = prometheus(&snapshot);
        assert!(text.contains("sooner_attach_responses_total{device=\"eth0\"} 7\n"));
        assert!(
            text.contains("mean_response_seconds{device=\"eth0\",up_to_bytes=\"+Inf\"} 0.0025\n")
        );
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (_, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
