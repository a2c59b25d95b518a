//! A snapshot for people.

use crate::snapshot::{BandView, SizeView, Snapshot};

const KILO: f64 = 1e3;

/// One line: where, since when, and how much.
pub fn status_line(snapshot: &Snapshot) -> String {
    let ports: Vec<String> = snapshot.ports.iter().map(ToString::to_string).collect();
    format!(
        "{}: port {}, {} Mbit/s, {} responses in {} s, process {}\n",
        snapshot.device,
        ports.join(", "),
        snapshot.rate_bits_per_sec as f64 / 1e6,
        snapshot.responses,
        snapshot.uptime_s.round(),
        snapshot.pid,
    )
}

/// A page: bands, then sizes.
pub fn page(snapshot: &Snapshot) -> String {
    let mut page = status_line(snapshot);
    page += &format!(
        "{} under way, {} of {} of known length, {} broken, {} packets sent again\n\n",
        snapshot.under_way,
        snapshot.sized_responses,
        snapshot.responses,
        snapshot.broken_responses,
        snapshot.resent_packets
    );
    let band = |(index, view): (usize, &BandView)| {
        [
            index.to_string(),
            bytes(view.up_to_bytes),
            view.flows.to_string(),
            size(view.backlog_bytes),
            size(view.sent_bytes),
            view.dropped_packets.to_string(),
        ]
    };
    let bands = snapshot.bands.iter().enumerate().map(band);
    page += &aligned(
        ["band", "up to", "flows", "waiting", "sent", "dropped"],
        bands,
    );
    page.push('\n');
    let sizes = snapshot.sizes.iter().map(|view: &SizeView| {
        [
            bytes(view.up_to_bytes),
            view.responses.to_string(),
            time(view.mean_response_ms),
            time(view.compared_mean_response_ms),
            time(view.fair_mean_response_ms),
            gain(view),
        ]
    });
    let heads = [
        "size",
        "responses",
        "mean",
        "compared",
        "FAIR",
        "FAIR / ours",
    ];
    page += &aligned(heads, sizes);
    page
}

fn gain(view: &SizeView) -> String {
    let ratio = view
        .fair_mean_response_ms
        .zip(view.compared_mean_response_ms);
    ratio.map_or("-".into(), |(fair, ours)| {
        format!("{:.2}", fair / ours.max(1e-6))
    })
}

fn bytes(up_to: Option<u64>) -> String {
    up_to.map_or("more".into(), size)
}

fn size(bytes: u64) -> String {
    let value = bytes as f64;
    match value {
        value if value < KILO => format!("{bytes} B"),
        value if value < KILO * KILO => format!("{:.1} kB", value / KILO),
        value if value < KILO * KILO * KILO => format!("{:.1} MB", value / KILO / KILO),
        value => format!("{:.1} GB", value / KILO / KILO / KILO),
    }
}

fn time(ms: Option<f64>) -> String {
    match ms {
        None => "-".into(),
        Some(ms) if ms < KILO => format!("{ms:.1} ms"),
        Some(ms) => format!("{:.1} s", ms / KILO),
    }
}

/// Columns as wide as their widest entry, numbers to the right.
fn aligned<const N: usize>(heads: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut lines = vec![heads.map(String::from)];
    lines.extend(rows);
    let widths: [usize; N] = std::array::from_fn(|column| {
        lines
            .iter()
            .map(|line| line[column].len())
            .max()
            .unwrap_or(0)
    });
    let line = |line: &[String; N]| {
        let cells = line
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:>width$}"));
        cells.collect::<Vec<_>>().join("  ") + "\n"
    };
    lines.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_aligned_and_says_the_gain() {
        let snapshot = Snapshot {
            device: "eth0".into(),
            ports: vec![80, 443],
            rate_bits_per_sec: 10_000_000,
            bands: vec![
                BandView::default(),
                BandView {
                    up_to_bytes: Some(2047),
                    ..BandView::default()
                },
            ],
            sizes: vec![SizeView {
                up_to_bytes: Some(1000),
                responses: 3,
                mean_response_ms: Some(1.25),
                compared_mean_response_ms: Some(2.0),
                fair_mean_response_ms: Some(5000.0),
            }],
            ..Snapshot::default()
        };
        let page = page(&snapshot);
        assert!(page.starts_with("eth0: port 80, 443, 10 Mbit/s,"), "{page}");
        assert!(page.contains("2500.00"), "{page}");
        assert!(page.contains("5.0 s"), "{page}");
        let widths: Vec<usize> = page.lines().skip(3).take(3).map(str::len).collect();
        assert!(widths.windows(2).all(|pair| pair[0] == pair[1]), "{page}");
    }
}
