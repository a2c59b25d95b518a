//! The live page of a web server: what the order is worth, who waits, what was slow.

use super::sources::TargetReading;
use super::status::{SizeStatus, SlowStatus, Status};
use crate::metrics::SIZE_CLASSES;
use sooner_operate::admin::page::{Page, table};
use sooner_operate::admin::text::{bits_per_sec, bytes, html, seconds};

/// The page as it is at the moment.
pub fn page(status: &Status) -> Page<'static> {
    Page {
        title: "Sooner",
        live: include_str!("page.html"),
        style: include_str!("page.css"),
        script: include_str!("page.js"),
        plain: plain(status),
    }
}

/// What the comparison says, in one line.
fn headline(status: &Status) -> String {
    let policy = html(&status.uplink.policy.to_uppercase());
    match (status.uplink.rate_bits_per_sec, &status.uplink.found) {
        (None, None) => return "Responses are not ordered".into(),
        (None, Some(_)) => return format!("{policy}: no limit of the uplink was found yet"),
        (Some(_), _) => {}
    }
    match status.comparison.times_sooner {
        None => format!("{policy}: too few responses in the last minute to compare"),
        Some(times) if times >= 1.05 => {
            format!("{policy} answers {times:.1} times sooner than FAIR")
        }
        Some(times) if times >= 0.95 => format!("{policy} answers as soon as FAIR"),
        Some(times) => format!("{policy} answers {:.1} times later than FAIR", 1.0 / times),
    }
}

fn plain(status: &Status) -> String {
    let uplink = &status.uplink;
    let rate = uplink
        .rate_bits_per_sec
        .map_or("no limit".into(), bits_per_sec);
    let rate = uplink.found.as_ref().map_or(rate, |found| {
        found
            .carries_bits_per_sec
            .map_or("no limit found".into(), |carries| {
                format!("{} found", bits_per_sec(carries))
            })
    });
    let busy = uplink
        .busy_share
        .map_or("\u{2013}".into(), |share| format!("{:.0} %", share * 100.0));
    let figures = table(
        "Now",
        &["", ""],
        &[
            vec!["Uplink".into(), rate],
            vec!["Of it used".into(), busy],
            vec!["Responses waiting".into(), uplink.waiting.jobs.to_string()],
            vec![
                "Responses being sent".into(),
                uplink.sending.jobs.to_string(),
            ],
            vec!["Connections".into(), status.connections.open.to_string()],
            vec![
                "Log lines lost".into(),
                status.log_lines_lost_total.to_string(),
            ],
        ],
    );
    let sizes: Vec<_> = status.sizes.iter().enumerate().map(size_row).collect();
    let sizes = table(
        "By size, last minute",
        &[
            "Size",
            "Responses",
            "Response time",
            "Compared",
            "Of those",
            "FAIR",
            "Waiting now",
            "Sending now",
        ],
        &sizes,
    );
    let slowest: Vec<_> = status.slowest.iter().map(slow_row).collect();
    let slowest = table(
        "Slowest of the last five minutes",
        &[
            "Target",
            "Status",
            "Size",
            "Waited for others",
            "Being sent",
        ],
        &slowest,
    );
    let headline = headline(status);
    format!(
        "<h1>{headline}</h1>\n{figures}{sizes}{}{}{}{slowest}",
        upstreams(status),
        classes(status) + &rehearsals(status),
        predictions(status)
    )
}

fn upstreams(status: &Status) -> String {
    if status.upstreams.is_empty() {
        return String::new();
    }
    let rows: Vec<_> = (status.upstreams.iter())
        .map(|server| {
            vec![
                html(&server.upstream),
                html(&server.server),
                server.state.into(),
                server.requests_inside.to_string(),
                server.requests_waiting.to_string(),
                server.failures_total.to_string(),
            ]
        })
        .collect();
    let columns = [
        "Upstream", "Server", "State", "Inside", "Waiting", "Failures",
    ];
    table("Upstreams", &columns, &rows)
}

fn classes(status: &Status) -> String {
    if status.upstream_classes.is_empty() {
        return String::new();
    }
    let target = |target: &TargetReading| {
        let achieved = seconds(target.achieved_seconds);
        let wanted = seconds(Some(target.target_seconds));
        format!("{} {achieved} of {wanted}", target.target)
    };
    let rows = status.upstream_classes.iter().map(|class| {
        let targets: Vec<String> = class.targets.iter().map(target).collect();
        vec![
            html(&class.upstream),
            html(if class.class.is_empty() {
                "all others"
            } else {
                &class.class
            }),
            class.requests.to_string(),
            match class.limit_requests {
                Some(limit) => format!("{} of {limit}", class.inside_requests),
                None => class.inside_requests.to_string(),
            },
            seconds(class.mean_response_seconds),
            seconds(class.mean_inside_seconds),
            targets.join(", "),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let columns = [
        "Upstream",
        "Class",
        "There now",
        "Inside now",
        "Response time",
        "Inside",
        "Targets",
    ];
    table("Classes before upstreams", &columns, &rows)
}

fn predictions(status: &Status) -> String {
    if status.upstream_predictions.is_empty() {
        return String::new();
    }
    let percent = |share: Option<f64>| {
        let text = |share: f64| format!("{:.0} %", 100.0 * share);
        share.map_or_else(|| "-".to_owned(), text)
    };
    let rows = status.upstream_predictions.iter().map(|one| {
        let waits = one.mean_waits.as_ref();
        vec![
            html(&one.upstream),
            percent(one.ranked_rightly),
            percent(one.ranked_rightly_by_kind),
            seconds(waits.map(|waits| waits.fifo_seconds)),
            seconds(waits.map(|waits| waits.expected_seconds)),
            seconds(waits.map(|waits| waits.perfect_seconds)),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let columns = [
        "Upstream",
        "Pairs ranked rightly",
        "By kind alone",
        "Wait, first come first",
        "Shortest expected first",
        "With perfect knowledge",
    ];
    table("Expectations before upstreams", &columns, &rows) + &orders(status)
}

/// What each order would have given, and which is in force.
fn orders(status: &Status) -> String {
    let rows = status.upstream_predictions.iter().flat_map(|one| {
        one.orders.iter().map(|order| {
            let is_taken = one.order.as_ref() == Some(&order.order);
            vec![
                html(&one.upstream),
                html(&order.order),
                if is_taken { "in force" } else { "" }.to_owned(),
                one.played_requests.to_string(),
                seconds(Some(order.mean_seconds)),
                seconds(Some(order.p99_seconds)),
            ]
        })
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let columns = ["Upstream", "Order", "", "Requests", "Mean", "p99"];
    table("What each order would have given", &columns, &rows)
}

fn rehearsals(status: &Status) -> String {
    if status.upstream_rehearsals.is_empty() {
        return String::new();
    }
    let rows = status.upstream_rehearsals.iter().map(|would| {
        vec![
            html(&would.upstream),
            html(&would.class),
            would.requests_total.to_string(),
            would.would_wait_total.to_string(),
            seconds(would.mean_would_wait_seconds),
            seconds(Some(would.would_wait_seconds_max)),
            would.would_wait_now.to_string(),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let columns = [
        "Upstream",
        "Class",
        "Gone in",
        "Would have waited",
        "Mean of all",
        "Longest",
        "Would wait now",
    ];
    table("If upstreams held what they only observe", &columns, &rows)
}

fn size_row((index, size): (usize, &SizeStatus)) -> Vec<String> {
    vec![
        size_label(index),
        size.responses.to_string(),
        seconds(size.mean_response_seconds),
        size.compared.to_string(),
        seconds(size.mean_compared_response_seconds),
        seconds(size.mean_fair_response_seconds),
        size.waiting.jobs.to_string(),
        size.sending.jobs.to_string(),
    ]
}

fn slow_row(slow: &SlowStatus) -> Vec<String> {
    vec![
        html(&slow.target),
        slow.status.to_string(),
        bytes(slow.size_bytes),
        seconds(Some(slow.wait_seconds)),
        seconds(Some(slow.service_seconds)),
    ]
}

fn size_label(index: usize) -> String {
    let below = index
        .checked_sub(1)
        .and_then(|below| SIZE_CLASSES[below].up_to_bytes);
    match (SIZE_CLASSES[index].up_to_bytes, below) {
        (Some(up_to), _) => format!("up to {}", bytes(up_to)),
        (None, Some(below)) => format!("over {}", bytes(below)),
        (None, None) => "all".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::status::FoundStatus;
    use crate::admin::status::tests::{history, sources};
    use std::time::UNIX_EPOCH;

    fn nothing_found() -> FoundStatus {
        FoundStatus {
            state: "open".into(),
            carries_bits_per_sec: None,
            waits_ms: 0.0,
            decided: 0,
            why: None,
        }
    }

    fn status(target: &str) -> Status {
        let sources = sources();
        let history = history(&sources, target);
        Status::read(&sources, &history, UNIX_EPOCH)
    }

    #[test]
    fn the_plain_page_says_the_same() {
        let (page, _) = page(&status("/a?b")).render();
        for text in [
            "SRPT answers 4.0 times sooner than FAIR",
            "<td>8 ms</td>",
            "/a?b",
            "http://127.0.0.1:3000",
            "over 10 MB",
        ] {
            assert!(page.contains(text), "{text}");
        }
    }

    #[test]
    fn what_a_stranger_asked_for_is_text() {
        let mut status = status("/");
        status.slowest[0].target = "/<script>alert(1)</script>".into();
        let (page, _) = page(&status).render();
        assert!(!page.contains("<script>alert"));
    }

    #[test]
    fn the_headline_says_how_it_is() {
        let mut status = status("/");
        for (times, text) in [
            (Some(1.0), "as soon as"),
            (Some(0.5), "2.0 times later"),
            (None, "too few"),
        ] {
            status.comparison.times_sooner = times;
            assert!(headline(&status).contains(text));
        }
        status.uplink.rate_bits_per_sec = None;
        assert!(headline(&status).contains("not ordered"));
        status.uplink.found = Some(nothing_found());
        assert!(headline(&status).contains("no limit of the uplink was found yet"));
        assert!(plain(&status).contains("<td>no limit found</td>"));
    }
}
