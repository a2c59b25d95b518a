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

/// The Prometheus text of a snapshot (exposition format 0.0.4).
pub fn prometheus(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    let device = &snapshot.device;
    let mut family = |name: &str, kind: &str, help: &str, rows: Vec<(String, f64)>| {
        text +=
            &format!("# HELP sooner_attach_{name} {help}\n# TYPE sooner_attach_{name} {kind}\n");
        for (labels, value) in rows {
            text += &format!("sooner_attach_{name}{{device=\"{device}\"{labels}}} {value}\n");
        }
    };
    let one = |value: u64| vec![(String::new(), value as f64)];
    family(
        "responses_total",
        "counter",
        "Responses that began.",
        one(snapshot.responses),
    );
    family(
        "sized_responses_total",
        "counter",
        "Responses whose length was known when they began.",
        one(snapshot.sized_responses),
    );
    family(
        "broken_responses_total",
        "counter",
        "Responses whose connection was reset.",
        one(snapshot.broken_responses),
    );
    family(
        "under_way_responses",
        "gauge",
        "Responses under way.",
        one(snapshot.under_way),
    );
    family(
        "resent_packets_total",
        "counter",
        "Packets sent again.",
        one(snapshot.resent_packets),
    );
    family(
        "syn_acks_total",
        "counter",
        "SYN-ACKs.",
        one(snapshot.syn_acks),
    );
    family(
        "lowered_syn_acks_total",
        "counter",
        "SYN-ACKs that went last in a flood.",
        one(snapshot.lowered_syn_acks),
    );
    family(
        "lost_events_total",
        "counter",
        "Beginnings and ends of responses that were not seen in time.",
        one(snapshot.lost_events),
    );
    let by_band = |value: fn(&BandView) -> u64| {
        let rows = snapshot.bands.iter().enumerate();
        rows.map(|(band, view)| (format!(",band=\"{band}\""), value(view) as f64))
            .collect()
    };
    family(
        "band_sent_bytes_total",
        "counter",
        "Bytes that left in a band.",
        by_band(|view| view.sent_bytes),
    );
    family(
        "band_dropped_packets_total",
        "counter",
        "Packets a band had no room for.",
        by_band(|view| view.dropped_packets),
    );
    family(
        "band_backlog_bytes",
        "gauge",
        "Bytes that wait in a band.",
        by_band(|view| view.backlog_bytes),
    );
    let by_size = |value: fn(&SizeView) -> Option<f64>| {
        let rows = snapshot.sizes.iter();
        rows.filter_map(|view| {
            let up_to = view
                .up_to_bytes
                .map_or("+Inf".into(), |bytes| bytes.to_string());
            Some((format!(",up_to_bytes=\"{up_to}\""), value(view)?))
        })
        .collect()
    };
    family(
        "ended_responses_total",
        "counter",
        "Responses that ended, by size.",
        by_size(|view| Some(view.responses as f64)),
    );
    family(
        "mean_response_seconds",
        "gauge",
        "Their mean response time since the start.",
        by_size(|view| Some(view.mean_response_ms? / 1e3)),
    );
    family(
        "fair_mean_response_seconds",
        "gauge",
        "What FAIR would have given those that can be compared.",
        by_size(|view| Some(view.fair_mean_response_ms? / 1e3)),
    );
    text
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
