//! The live page of an attachment: what the order is worth, what leaves, what waits.

use sooner_operate::admin::page::{Page, table};
use sooner_operate::admin::text::{bits_per_sec, bytes, html, seconds};

use super::status::Status;
use crate::web::snapshot::{BandView, SizeView, Snapshot};

/// The page as it is at the moment.
pub fn page(status: &Status<'_>) -> Page<'static> {
    Page {
        title: "Sooner attach web",
        live: include_str!("page.html"),
        style: include_str!("page.css"),
        script: include_str!("page.js"),
        plain: plain(status),
    }
}

fn plain(status: &Status<'_>) -> String {
    let snapshot = status.snapshot;
    format!(
        "<h1>{}</h1>\n{}{}{}{}",
        html(&status.headline),
        now(status),
        sizes(snapshot),
        bands(snapshot),
        decisions(snapshot),
    )
}

fn now(status: &Status<'_>) -> String {
    let snapshot = status.snapshot;
    let sent = status.per_second.sent_bytes.last().copied();
    let waiting: u64 = snapshot.bands.iter().map(|band| band.backlog_bytes).sum();
    let rows = [
        ("Device", html(&snapshot.device)),
        ("Link", limit(snapshot.rate_bits_per_sec)),
        ("Leaves now", bits_per_sec(8 * sent.unwrap_or(0))),
        ("Waiting", bytes(waiting)),
        ("Responses under way", snapshot.under_way.to_string()),
        ("Responses so far", snapshot.responses.to_string()),
        ("Of known length", snapshot.sized_responses.to_string()),
        ("Up", format!("{:.0} s", snapshot.uptime_s)),
        ("Version", status.version.into()),
    ];
    let rows = rows.map(|(name, value)| vec![name.to_owned(), value]);
    table("Now", &["", ""], &rows)
}

fn sizes(snapshot: &Snapshot) -> String {
    let time = |ms: Option<f64>| seconds(ms.map(|ms| ms / 1e3));
    let row = |size: &SizeView| {
        vec![
            up_to(size.up_to_bytes),
            size.responses.to_string(),
            time(size.mean_response_ms),
            size.compared_responses.to_string(),
            time(size.compared_mean_response_ms),
            time(size.fair_mean_response_ms),
        ]
    };
    let rows: Vec<_> = snapshot.sizes.iter().map(row).collect();
    let columns = [
        "Size",
        "Responses",
        "Response time",
        "Compared",
        "Of those",
        "Shared equally",
    ];
    table("By size, since the start", &columns, &rows)
}

fn bands(snapshot: &Snapshot) -> String {
    let row = |(number, band): (usize, &BandView)| {
        vec![
            number.to_string(),
            up_to(band.up_to_bytes),
            band.flows.to_string(),
            bytes(band.backlog_bytes),
            bytes(band.sent_bytes),
            band.dropped_packets.to_string(),
        ]
    };
    let rows: Vec<_> = snapshot.bands.iter().enumerate().map(row).collect();
    let columns = [
        "Band",
        "Up to",
        "Connections",
        "Waiting",
        "Sent",
        "Dropped packets",
    ];
    table("Bands", &columns, &rows)
}

fn decisions(snapshot: &Snapshot) -> String {
    let Some(uplink) = &snapshot.uplink else {
        return String::new();
    };
    let last = uplink.decisions.iter().rev().take(5);
    let rows: Vec<_> = last
        .map(|one| {
            vec![
                seconds(Some(one.ago_s)),
                html(&one.state),
                limit(one.rate_bits_per_sec),
                html(&one.why),
            ]
        })
        .collect();
    let columns = ["Ago", "State", "Rate", "Why"];
    table("How the rate was found", &columns, &rows)
}

fn limit(rate: Option<u64>) -> String {
    rate.map_or("not limited".into(), bits_per_sec)
}

fn up_to(most: Option<u64>) -> String {
    most.map_or("more".into(), bytes)
}
