//! A snapshot as OpenMetrics text, which Prometheus reads. Names follow Prometheus: seconds and
//! bytes, `_total` for what only grows.

use super::snapshot::{BandView, SizeView, Snapshot, UplinkView};
use sooner_operate::metrics::{Families, Labels, Unit};
use std::fmt;

/// The text, of any number of devices.
pub fn encode(all: &[Snapshot]) -> Result<String, fmt::Error> {
    let mut to = Families::default();
    for (name, help, value) in COUNTS {
        let rows = all.iter().map(|one| of_device(one, value(one)));
        to.counters(&named(name), help, None, rows);
    }
    let under_way = all.iter().map(|one| of_device(one, one.under_way));
    to.gauges(
        &named("under_way_responses"),
        "Responses under way",
        None,
        under_way,
    );
    let rates = all
        .iter()
        .filter_map(|one| Some(of_device(one, one.rate_bits_per_sec? / 8)));
    let help = "What may leave in a second; missing where nothing is limited";
    to.gauges(&named("uplink_rate"), help, Some(Unit::Bytes), rates);
    let found: Vec<_> = all
        .iter()
        .filter_map(|one| Some((one, one.uplink.as_ref()?)))
        .collect();
    if !found.is_empty() {
        of_uplinks(&mut to, &found);
    }
    for (name, help, unit, is_gauge, value) in BANDS {
        let rows = all.iter().flat_map(|one| of_bands(one, value));
        if is_gauge {
            to.gauges(&named(name), help, unit, rows);
        } else {
            to.counters(&named(name), help, unit, rows);
        }
    }
    for (name, help, unit, value) in SIZES {
        let rows = all.iter().flat_map(|one| of_sizes(one, value));
        to.counters(&named(name), help, unit, rows);
    }
    to.encode()
}

/// Of uplinks with a rate that is found.
fn of_uplinks(to: &mut Families, found: &[(&Snapshot, &UplinkView)]) {
    let carries = found
        .iter()
        .filter_map(|(one, uplink)| Some(of_device(one, uplink.carries_bits_per_sec? / 8)));
    let help = "What the link is believed to carry in a second";
    to.gauges(&named("uplink_carries"), help, Some(Unit::Bytes), carries);
    let waits = found.iter().map(|(one, uplink)| {
        let (labels, _) = of_device(one, 0);
        (labels, uplink.waits_ms / 1e3)
    });
    let help = "What all clients wait for beyond this host";
    to.gauges(&named("uplink_wait"), help, Some(Unit::Seconds), waits);
    let decided = found
        .iter()
        .map(|(one, uplink)| of_device(one, uplink.decided));
    let help = "Changes of the rate";
    to.counters(&named("uplink_decisions"), help, None, decided);
}

fn named(name: &str) -> String {
    format!("sooner_attach_{name}")
}

/// A family by device: name, help, and where its values are.
type OfDevices = (&'static str, &'static str, fn(&Snapshot) -> u64);

const COUNTS: [OfDevices; 11] = [
    ("responses", "Responses that began", |one| one.responses),
    (
        "sized_responses",
        "Responses of a length known when they began",
        |one| one.sized_responses,
    ),
    (
        "responses_sized_by_tls",
        "Responses of a length read before encryption",
        |one| one.sized_by_tls,
    ),
    (
        "responses_ordered_by_socket",
        "Responses without a known length for which it counted what stood in their socket",
        |one| one.ordered_by_socket,
    ),
    (
        "wrong_lengths",
        "Responses that did not have the length that was known of them",
        |one| one.wrong_lengths,
    ),
    (
        "tls_writes",
        "Calls by which servers handed plain text to their TLS libraries",
        |one| one.tls_writes,
    ),
    (
        "broken_responses",
        "Responses ended by a reset of their connection",
        |one| one.broken_responses,
    ),
    ("resent_packets", "Packets sent again", |one| {
        one.resent_packets
    }),
    ("syn_acks", "SYN-ACKs", |one| one.syn_acks),
    (
        "lowered_syn_acks",
        "SYN-ACKs that went last in a flood",
        |one| one.lowered_syn_acks,
    ),
    (
        "lost_events",
        "Beginnings and ends of responses that were not seen in time",
        |one| one.lost_events,
    ),
];

/// A family by band: name, help, unit, whether it is a gauge, and where its values are.
type OfBands = (
    &'static str,
    &'static str,
    Option<Unit>,
    bool,
    fn(&BandView) -> u64,
);

const BANDS: [OfBands; 3] = [
    (
        "band_sent",
        "Bytes that left in a band",
        Some(Unit::Bytes),
        false,
        |band| band.sent_bytes,
    ),
    (
        "band_dropped_packets",
        "Packets that a band had no room for",
        None,
        false,
        |band| band.dropped_packets,
    ),
    (
        "band_backlog",
        "Bytes that wait in a band",
        Some(Unit::Bytes),
        true,
        |band| band.backlog_bytes,
    ),
];

/// A family by size: name, help, unit, and where its values are.
type OfSizes = (
    &'static str,
    &'static str,
    Option<Unit>,
    fn(&SizeView) -> f64,
);

const SIZES: [OfSizes; 5] = [
    ("ended_responses", "Responses that ended", None, |size| {
        size.responses as f64
    }),
    ("response", "What they took", Some(Unit::Seconds), |size| {
        seconds(size.mean_response_ms, size.responses)
    }),
    (
        "compared_responses",
        "Those of them that FAIR has done too",
        None,
        |size| size.compared_responses as f64,
    ),
    (
        "compared_response",
        "What these took",
        Some(Unit::Seconds),
        |size| seconds(size.compared_mean_response_ms, size.compared_responses),
    ),
    (
        "fair_response",
        "What FAIR would have made of these",
        Some(Unit::Seconds),
        |size| seconds(size.fair_mean_response_ms, size.compared_responses),
    ),
];

/// The sum behind a mean.
fn seconds(mean_ms: Option<f64>, count: u64) -> f64 {
    mean_ms.unwrap_or(0.0) / 1e3 * count as f64
}

/// Labels and the value.
type Row = (Labels, f64);

fn of_device(all: &Snapshot, value: u64) -> Row {
    (vec![("device", all.device.clone())], value as f64)
}

fn of_bands(all: &Snapshot, value: fn(&BandView) -> u64) -> Vec<Row> {
    let row = |(band, view): (usize, &BandView)| {
        let (mut labels, value) = of_device(all, value(view));
        labels.push(("band", band.to_string()));
        (labels, value)
    };
    all.bands.iter().enumerate().map(row).collect()
}

fn of_sizes(all: &Snapshot, value: fn(&SizeView) -> f64) -> Vec<Row> {
    let row = |view: &SizeView| {
        let (mut labels, _) = of_device(all, 0);
        let up_to = view.up_to_bytes;
        labels.push((
            "up_to_bytes",
            up_to.map_or("+Inf".into(), |bytes| bytes.to_string()),
        ));
        (labels, value(view))
    };
    all.sizes.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_what_was_counted_and_the_sums_behind_the_means() {
        let snapshot = Snapshot {
            device: "eth\"0".into(),
            responses: 7,
            bands: vec![BandView::default(); 2],
            sizes: vec![SizeView {
                responses: 4,
                mean_response_ms: Some(2.5),
                ..SizeView::default()
            }],
            ..Snapshot::default()
        };
        let text = encode(&[snapshot]).unwrap();
        for line in [
            "sooner_attach_responses_total{device=\"eth\\\"0\"} 7.0\n",
            "sooner_attach_response_seconds_total{device=\"eth\\\"0\",up_to_bytes=\"+Inf\"} 0.01\n",
            "sooner_attach_band_backlog_bytes{device=\"eth\\\"0\",band=\"1\"} 0.0\n",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
    }

    #[test]
    fn several_devices_are_told_apart_by_their_labels() {
        let of = |device: &str, rate_bits_per_sec, responses| Snapshot {
            device: device.into(),
            rate_bits_per_sec,
            responses,
            ..Snapshot::default()
        };
        let text = encode(&[of("eth0", Some(8_000), 7), of("eth1", None, 9)]).unwrap();
        for line in [
            "sooner_attach_responses_total{device=\"eth0\"} 7.0\n",
            "sooner_attach_responses_total{device=\"eth1\"} 9.0\n",
            "sooner_attach_uplink_rate_bytes{device=\"eth0\"} 1000.0\n",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        assert!(!text.contains("uplink_rate_bytes{device=\"eth1\"}"));
        let described = text.matches("# TYPE sooner_attach_responses ").count();
        assert_eq!(described, 1, "{text}");
    }

    #[test]
    fn dashboard_and_alerts_ask_for_what_is_told() {
        let snapshot = Snapshot {
            rate_bits_per_sec: Some(8_000_000),
            uplink: Some(UplinkView::default()),
            ..Snapshot::default()
        };
        let told = sooner_testbed::exposition::told(&encode(&[snapshot]).unwrap());
        for text in [
            include_str!("../../../../packaging/grafana/attach.json"),
            include_str!("../../../../packaging/prometheus/attach.yml"),
        ] {
            let asked = sooner_testbed::exposition::asked(text);
            let missing: Vec<_> = asked.difference(&told).collect();
            assert!(
                asked.len() > 1 && missing.is_empty(),
                "not told: {missing:?}"
            );
        }
    }
}
