//! What `attach status`, `attach top` and `attach cpu --explain` print of a server's workers.

use sooner_attach::cpu::daemon::NO_PROGRAMS;
use sooner_attach::cpu::snapshot::Snapshot;
use sooner_report::columns::aligned;
use sooner_report::number::{NO_VALUE, duration, significant};

/// Less than this is nothing to gain: measurements differ by as much.
const GAIN_MIN: f64 = 0.05;
/// Fewer requests say nothing.
const REQUESTS_MIN: u64 = 100;

/// One line: which server, how, since when.
pub fn status_line(snapshot: &Snapshot) -> String {
    if snapshot.is_waiting {
        return format!(
            "workers of {} (process {}): ended, waits for the server to start again, process {}\n",
            snapshot.program, snapshot.server_pid, snapshot.pid,
        );
    }
    let what = match snapshot.observes {
        true => "only observed",
        false => "ordered",
    };
    format!(
        "workers of {} (process {}): {} {what} {}, for {} s, process {}\n",
        snapshot.program,
        snapshot.server_pid,
        snapshot.workers,
        snapshot.rule,
        snapshot.uptime_s.round(),
        snapshot.pid,
    )
}

/// A page: where workers stand, what requests use, what it costs.
pub fn page(snapshot: &Snapshot) -> String {
    let mut rows = rows(snapshot);
    rows.extend(
        snapshot
            .weights
            .iter()
            .map(|weight| row("weight", weight.clone())),
    );
    for trial in &snapshot.trials {
        rows.push(row("test", trial.to_string()));
    }
    status_line(snapshot) + &aligned(&rows)
}

fn row(name: &str, value: String) -> [String; 2] {
    [name.into(), value]
}

fn rows(snapshot: &Snapshot) -> Vec<[String; 2]> {
    let [top, middle, last] = snapshot.levels;
    let ms = |value: Option<f64>| value.map_or(NO_VALUE.into(), duration);
    let ends = match snapshot.bounds_ms {
        Some(ends) => ends.map(duration).join(", "),
        None => "nowhere: requests use about as much as each other".into(),
    };
    let values = match snapshot.real_time {
        true => format!("real time, {}, {}", snapshot.nice[1], snapshot.nice[2]),
        false => snapshot.nice.map(|nice| nice.to_string()).join(", "),
    };
    let suspended = match snapshot.is_suspended {
        true => "; all stay on top: beginnings of requests are not seen, and too few workers wait",
        false => "",
    };
    vec![
        row(
            "workers by level",
            format!(
                "{top}, {middle}, {last}; {} want a processor{suspended}",
                snapshot.active
            ),
        ),
        row("nice values", values),
        row("levels end at", ends),
        row("requests", snapshot.requests.to_string()),
        row(
            "processor time",
            format!(
                "half used at most {}, 95 of 100 {}",
                ms(snapshot.used_p50_ms),
                ms(snapshot.used_p95_ms)
            ),
        ),
        row("waited for one", waits(snapshot)),
        row(
            "mean time",
            format!(
                "{} with equal shares, {} by what each has used, {} by history, as the last requests came",
                ms(snapshot.equal_ms),
                ms(snapshot.by_levels_ms),
                ms(snapshot.by_history_ms)
            ),
        ),
        row("history", history(snapshot)),
        row(
            "changes",
            format!(
                "{}, {} refused, {} for a worker that had waited too long",
                snapshot.changes, snapshot.refused, snapshot.favours
            ),
        ),
        row(
            "cost",
            format!(
                "{} % of a processor, {} looks",
                significant(100.0 * snapshot.own_share),
                snapshot.looks
            ),
        ),
        row("seen by", seen_by(snapshot)),
    ]
}

/// What says what workers do.
fn seen_by(snapshot: &Snapshot) -> String {
    match &snapshot.lacks {
        None if snapshot.counts_sleeps => {
            "BPF programs, which see none of its requests begin: a sleep of 10 ms ends one".into()
        }
        None => "BPF programs".into(),
        Some(lacks) if lacks == NO_PROGRAMS => format!("/proc ({lacks})"),
        Some(lacks) => format!("/proc; BPF programs need {lacks}"),
    }
}

/// How many requests have a history, and how good it is.
fn history(snapshot: &Snapshot) -> String {
    let rightly = match snapshot.ranked_rightly_share {
        Some(share) => format!(
            "; of two, the longer is known in {:.0} % of pairs",
            100.0 * share
        ),
        None => String::new(),
    };
    let left_out = match snapshot.is_history_left_out {
        true => "; left out, because requests are sooner without",
        false => "",
    };
    format!(
        "{} requests by it, {} by what they have used; {} paths{rightly}{left_out}",
        snapshot.requests_by_history, snapshot.requests_by_used, snapshot.kinds
    )
}

/// How long a request waits for a processor, and for whom.
fn waits(snapshot: &Snapshot) -> String {
    let Some(waited_s) = snapshot.waited_s else {
        return NO_VALUE.into();
    };
    let each = match snapshot.requests {
        0 => NO_VALUE.into(),
        requests => duration(1000.0 * waited_s / requests as f64),
    };
    match snapshot.behind_others_share {
        Some(share) => format!(
            "{each} a request, {:.0} % of it for others than workers",
            100.0 * share
        ),
        None => format!("{each} a request"),
    }
}

/// What the weight and the order would give.
pub fn explanation(snapshot: &Snapshot) -> String {
    let mut text = format!(
        "{} workers of {} (process {}), watched for {} s\n",
        snapshot.workers,
        snapshot.program,
        snapshot.server_pid,
        snapshot.uptime_s.round()
    );
    text += &aligned(&rows(snapshot));
    text += "\n";
    if snapshot.requests < REQUESTS_MIN {
        return text
            + &format!(
                "{} requests are too few; watch for longer, or under load\n",
                snapshot.requests
            );
    }
    for line in [weight_line(snapshot), order_line(snapshot)] {
        text += &line;
    }
    text
}

/// What the server's weight alone would give.
fn weight_line(snapshot: &Snapshot) -> String {
    let (Some(waited_s), Some(share)) = (snapshot.waited_s, snapshot.behind_others_share) else {
        return "weight: what workers wait for others is not known without BPF programs\n".into();
    };
    let behind_ms = 1000.0 * waited_s * share / snapshot.requests as f64;
    let all_ms = snapshot.equal_ms.unwrap_or(0.0) + behind_ms;
    if behind_ms < GAIN_MIN * all_ms {
        return format!(
            "weight: nothing to gain; a request waits {} for other services\n",
            duration(behind_ms)
        );
    }
    let weights = match snapshot.weights.is_empty() {
        true => "nothing weighs it as a whole here".to_owned(),
        false => snapshot.weights.join(", "),
    };
    format!(
        "weight: a request waits {} for other services; {weights} would take most of that away, without anything that runs\n",
        duration(behind_ms)
    )
}

/// What the order would give.
fn order_line(snapshot: &Snapshot) -> String {
    let (Some(equal_ms), Some(by_used_ms)) = (snapshot.equal_ms, snapshot.by_levels_ms) else {
        return String::new();
    };
    let by_history_ms = snapshot.by_history_ms.unwrap_or(by_used_ms);
    let ordered_ms = match snapshot.is_history_left_out {
        true => by_used_ms,
        false => by_history_ms,
    };
    let gain = 1.0 - ordered_ms / equal_ms;
    let times = format!("{} instead of {}", duration(ordered_ms), duration(equal_ms));
    match gain < GAIN_MIN {
        true => format!("order: nothing to gain; {times} in the mean\n"),
        false => format!(
            "order: {times} in the mean, {:.0} % less if the server had the processors alone\n",
            100.0 * gain
        ),
    }
}
