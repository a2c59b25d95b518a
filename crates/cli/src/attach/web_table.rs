//! What `attach status` and `attach top` print of a snapshot.

use sooner_attach::web::snapshot::{BandView, ObservedView, SizeView, Snapshot, UplinkView};
use sooner_report::columns::aligned;
use sooner_report::number::{NO_VALUE, bytes, duration, round_rate, significant};

/// Decisions on a page.
const DECISIONS_SHOWN: usize = 5;

/// One line: where, since when, and how much.
pub fn status_line(snapshot: &Snapshot) -> String {
    let ports: Vec<String> = snapshot.ports.iter().map(ToString::to_string).collect();
    format!(
        "{}: port {}, {}, {} responses in {} s, process {}\n",
        snapshot.device,
        ports.join(", "),
        limit(snapshot.rate_bits_per_sec),
        snapshot.responses,
        snapshot.uptime_s.round(),
        snapshot.pid,
    )
}

/// What may leave.
fn limit(rate_bits_per_sec: Option<u64>) -> String {
    rate_bits_per_sec.map_or("not limited".into(), |rate| round_rate(rate as f64))
}

/// A page: bands, then sizes.
pub fn page(snapshot: &Snapshot) -> String {
    let mut page = status_line(snapshot);
    page += &format!(
        "{} under way, {} of {} of known length ({} under TLS, {} wrong), {} broken, {} packets sent again\n\n",
        snapshot.under_way,
        snapshot.sized_responses,
        snapshot.responses,
        snapshot.sized_by_tls,
        snapshot.wrong_lengths,
        snapshot.broken_responses,
        snapshot.resent_packets
    );
    page += &snapshot.uplink.as_ref().map_or(String::new(), of_uplink);
    page += &snapshot
        .observed
        .as_ref()
        .map_or(String::new(), of_observed);
    let heads = ["band", "up to", "flows", "waiting", "sent", "dropped"];
    let mut rows = vec![heads.map(String::from)];
    rows.extend(snapshot.bands.iter().enumerate().map(of_band));
    page += &aligned(&rows);
    page.push('\n');
    let heads = [
        "size",
        "responses",
        "mean",
        "compared",
        "FAIR",
        "FAIR / ours",
    ];
    let mut rows = vec![heads.map(String::from)];
    rows.extend(snapshot.sizes.iter().map(of_size));
    page + &aligned(&rows)
}

/// What is believed of an uplink with a rate that is found, and the last reasons.
fn of_uplink(view: &UplinkView) -> String {
    let carries = view
        .carries_bits_per_sec
        .map_or("not known".into(), |rate| round_rate(rate as f64));
    let observes = if view.observes {
        ", nothing is changed"
    } else {
        ""
    };
    let mut text = format!(
        "uplink {}: carries {carries}, {} arrive, clients wait {} beyond this host ({} heard, {} light){observes}\n",
        view.state,
        round_rate(view.delivered_bits_per_sec as f64),
        duration(view.waits_ms),
        view.clients,
        view.light_clients,
    );
    for decision in view.decisions.iter().rev().take(DECISIONS_SHOWN) {
        text += &format!(
            "  {:.1} s ago: {}, {}: {}\n",
            decision.ago_s,
            decision.state,
            limit(decision.rate_bits_per_sec),
            decision.why,
        );
    }
    text.push('\n');
    text
}

/// What ordering would give.
fn of_observed(view: &ObservedView) -> String {
    let queue = view.queue.as_deref().unwrap_or("no queueing discipline");
    let ms = |value: Option<f64>| value.map_or(NO_VALUE.into(), duration);
    format!(
        "only observed; the device has {queue}\nthe last {} responses took {} in the mean; on this link shared equally {}, shortest first {}\n\n",
        view.responses,
        ms(view.mean_response_ms),
        ms(view.equal_mean_response_ms),
        ms(view.shortest_mean_response_ms),
    )
}

fn of_band((band, view): (usize, &BandView)) -> [String; 6] {
    [
        band.to_string(),
        up_to(view.up_to_bytes),
        view.flows.to_string(),
        bytes(view.backlog_bytes as f64),
        bytes(view.sent_bytes as f64),
        view.dropped_packets.to_string(),
    ]
}

fn of_size(view: &SizeView) -> [String; 6] {
    let time = |ms: Option<f64>| ms.map_or(NO_VALUE.into(), duration);
    let (fair, ours) = (view.fair_mean_response_ms, view.compared_mean_response_ms);
    let gain = fair.zip(ours).map(|(fair, ours)| fair / ours);
    [
        up_to(view.up_to_bytes),
        view.responses.to_string(),
        time(view.mean_response_ms),
        time(ours),
        time(fair),
        gain.map_or(NO_VALUE.into(), significant),
    ]
}

fn up_to(most_bytes: Option<u64>) -> String {
    most_bytes.map_or("more".into(), |most| bytes(most as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_bands_and_sizes_and_says_the_gain() {
        let snapshot = Snapshot {
            device: "eth0".into(),
            ports: vec![80, 443],
            rate_bits_per_sec: Some(10_000_000),
            bands: vec![BandView {
                up_to_bytes: Some(2047),
                ..BandView::default()
            }],
            sizes: vec![
                SizeView {
                    up_to_bytes: Some(1000),
                    responses: 3,
                    mean_response_ms: Some(1.25),
                    compared_responses: 2,
                    compared_mean_response_ms: Some(2.0),
                    fair_mean_response_ms: Some(5000.0),
                },
                SizeView::default(),
            ],
            ..Snapshot::default()
        };
        let page = page(&snapshot);
        assert!(page.starts_with("eth0: port 80, 443, 10 Mbit/s,"), "{page}");
        for words in ["2.05 KB", "1.25 ms  2.00 ms   5.00 s  2500", "more"] {
            assert!(page.contains(words), "{words} is not in {page}");
        }
    }
}
