//! The forecast as a page of text, and the advice in it.

use crate::forecast::{Forecast, Outcome, Scenario};
use crate::hours;
use crate::queue;
use crate::survey::{LinkFigures, Survey};
use sooner_report::columns::aligned;
use sooner_report::number::{bits_per_sec, bytes, count, duration, round_rate, significant};

/// This part of the requests may be late without a word: long downloads are.
const LATE_SHARE: f64 = 0.001;
/// Below this load of the busiest hour requests hardly wait for each other.
const LOAD_LOW: f64 = 0.3;
/// A mean that is not this many times shorter would not be felt.
const GAIN_LOW: f64 = 1.2;
/// Downloads at less than this part of the uplink are limited by the clients.
const CLIENT_SHARE: f64 = 0.1;
/// The load to look at when asking whether growth would pay.
const BUSY: f64 = 0.85;
/// Fewer are too few for a forecast that is more than a hint.
const REQUESTS_FEW: u64 = 1000;
/// Ways of reading lines that are named, the most frequent ones.
const FORMATS_SHOWN: usize = 3;
/// Orders that are shown unless all are wanted.
const ORDERS_SHOWN: [&str; 2] = ["fair", "srpt"];

fn of<'a>(scenario: &'a Scenario, policy: &str) -> Option<&'a Outcome> {
    scenario
        .outcomes
        .iter()
        .find(|outcome| outcome.policy == policy)
}

/// FAIR's mean over SRPT's.
fn gain(scenario: &Scenario) -> f64 {
    match (of(scenario, "fair"), of(scenario, "srpt")) {
        (Some(fair), Some(srpt)) if srpt.mean_response_ms > 0.0 => {
            fair.mean_response_ms / srpt.mean_response_ms
        }
        _ => 1.0,
    }
}

/// The verdict and what follows from it, one sentence each; the command to try comes last where
/// there is one.
pub fn advice(forecast: &Forecast) -> Vec<String> {
    let survey = &forecast.survey;
    let (Some(link), Some(now)) = (&survey.link, forecast.scenarios.first()) else {
        return survey.disbelieved.clone();
    };
    let gain_now = gain(now);
    let busy = forecast
        .scenarios
        .iter()
        .find(|scenario| scenario.busiest_hour_load > BUSY);
    let gain_busy = busy.map_or(1.0, gain);
    let mut said = vec![verdict(now, link)];
    said.extend(busy.and_then(|scenario| with_growth(scenario, forecast)));
    said.extend(
        busy.or(Some(now))
            .and_then(|scenario| who_pays(scenario, forecast)),
    );
    if link.busiest_hour_load >= 1.0 {
        said.push(format!(
            "The busiest hour asks for {} times what the uplink carries, if the log and --uplink are right: the order then decides which clients are answered at all.",
            significant(link.busiest_hour_load)
        ));
    }
    said.extend(downloads(link));
    said.extend(survey.disbelieved.iter().cloned());
    if survey.sizeless_requests > 0 {
        said.push(format!(
            "{} requests have no size in the log: the uplink carried more than this forecast assumes.",
            count(survey.sizeless_requests)
        ));
    }
    if survey.requests < REQUESTS_FEW {
        said.push(format!(
            "The log has only {} requests: a longer one gives a more certain forecast.",
            count(survey.requests)
        ));
    }
    if gain_now >= GAIN_LOW || gain_busy >= GAIN_LOW {
        // As flags take it: 100mbit.
        let rate = round_rate(link.uplink_bits_per_sec as f64)
            .replace(' ', "")
            .replace("/s", "")
            .to_lowercase();
        said.push(format!(
            "To try it: sudo sooner attach web --dev DEVICE --uplink {rate} beside the running server, or sooner serve DIRECTORY --uplink {rate}."
        ));
    }
    said
}

/// What scheduling would do for this traffic as it is.
fn verdict(now: &Scenario, link: &LinkFigures) -> String {
    let gain = gain(now);
    if link.busiest_hour_load < LOAD_LOW && gain < GAIN_LOW {
        return format!(
            "Scheduling would not help now: even the busiest hour fills the uplink to {} %, and requests hardly ever wait for each other.",
            significant(100.0 * link.busiest_hour_load)
        );
    }
    let mean = |policy| of(now, policy).map_or(f64::NAN, |outcome| outcome.mean_response_ms);
    format!(
        "Scheduling would help{} now: shortest remaining first (srpt) would make the mean response {} times shorter, {} instead of {}.",
        if gain < GAIN_LOW { " little" } else { "" },
        significant(gain),
        duration(mean("srpt")),
        duration(mean("fair"))
    )
}

/// What limits large responses, where it is not the uplink.
fn downloads(link: &LinkFigures) -> Option<String> {
    let speed = link.download_bits_per_sec?;
    let uplink = link.uplink_bits_per_sec as f64;
    if speed < CLIENT_SHARE * uplink && link.busiest_hour_load < BUSY {
        return Some(format!(
            "Half of the large responses were taken at less than {}, far below the uplink: the clients' own links or the server limit them, and order on the uplink cannot change that.",
            bits_per_sec(speed)
        ));
    }
    (speed > uplink).then(|| {
        format!(
            "Half of the large responses were taken at more than {}, which the uplink cannot carry: either they ended in the server's send buffers, or --uplink is less than the link that carried them.",
            bits_per_sec(speed)
        )
    })
}

/// What more traffic would make of it; nothing where it is as busy already.
fn with_growth(scenario: &Scenario, forecast: &Forecast) -> Option<String> {
    let (growth, gain) = (scenario.growth, gain(scenario));
    if growth <= 1.0 {
        return None;
    }
    if gain < GAIN_LOW {
        let sizes = forecast.survey.sizes.as_ref();
        return Some(format!(
            "Scheduling would help little with {} times the traffic either: sizes vary little (C² {}), and sharing is then nearly as good.",
            significant(growth),
            sizes.map_or("unknown".into(), |sizes| significant(sizes.c2))
        ));
    }
    Some(format!(
        "With {} times the traffic, when the busiest hour fills {} % of the uplink, srpt would make the mean response {} times shorter.",
        significant(growth),
        significant(100.0 * scenario.busiest_hour_load),
        significant(gain)
    ))
}

fn who_pays(scenario: &Scenario, forecast: &Forecast) -> Option<String> {
    let srpt = of(scenario, "srpt")?;
    let load = significant(100.0 * scenario.busiest_hour_load);
    if srpt.share_that_waits_longer == 0.0 {
        return Some(format!(
            "No request would wait noticeably longer, the largest 1 % included, with the busiest hour at {load} %."
        ));
    }
    let border = forecast
        .survey
        .sizes
        .as_ref()
        .map_or(String::new(), |sizes| match srpt.share_that_waits_longer {
            few if few <= 0.011 => format!(", those above {}", bytes(sizes.p99_bytes as f64)),
            _ => String::new(),
        });
    Some(format!(
        "{} % of the requests{border} would wait longer under srpt, up to {} times, with the busiest hour at {load} %; fsp makes none later than fair does.",
        significant(100.0 * srpt.share_that_waits_longer),
        significant(srpt.longest_over_fair)
    ))
}

/// The page of text: the verdict, what was read and assumed, what the traffic is like, and what the
/// orders give; of those `all`, or the ones that matter most. Then the queue before the servers.
pub fn text(forecast: &Forecast, all: bool) -> String {
    let survey = &forecast.survey;
    let uplink = survey.link.as_ref();
    let uplink = uplink.map(|link| link.uplink_bits_per_sec as f64);
    let mut page = hours::line(&survey.bits_per_sec_by_hour, uplink);
    for sentence in advice(forecast) {
        page += &format!("- {sentence}\n");
    }
    if !page.is_empty() {
        page.push('\n');
    }
    page += &read(survey);
    if let Some(link) = &survey.link {
        page += &load(link);
    }
    page += &sizes(survey);
    page += &users(survey);
    if survey.link.is_some() {
        let cutoffs = survey.band_cutoffs_bytes.iter();
        let cutoffs: Vec<String> = cutoffs.map(|cutoff| bytes(*cutoff as f64)).collect();
        page += &format!("bands: {}\n\n", cutoffs.join(", "));
        page += &table(forecast, all);
    }
    if let Some(queue) = &forecast.queue {
        page.push('\n');
        page += &queue::text(queue, all);
    }
    if !all {
        page += "--all shows the other orders, loads, levels and kinds too\n";
    }
    page
}

fn load(link: &LinkFigures) -> String {
    format!(
        "load of {}: {} in the mean, {} in the busiest hour, {} in the busiest minute; above 0.5 in {} % of the minutes\n",
        round_rate(link.uplink_bits_per_sec as f64),
        significant(link.mean_load),
        significant(link.busiest_hour_load),
        significant(link.busiest_minute_load),
        significant(100.0 * link.minutes_above_half)
    )
}

/// What was read, what was assumed, and what was not understood.
fn read(survey: &Survey) -> String {
    let mut page = format!(
        "read: {} requests in {}; {} lines were not understood\n",
        count(survey.requests),
        span(survey.span_s),
        count(survey.other_lines)
    );
    if let Some(line) = &survey.first_other_line {
        page += &format!("the first of those: {line}\n");
    }
    for file in &survey.broken_files {
        page += &format!("{file}\n");
    }
    for file in &survey.repeated_files {
        page += &format!("{file} was given twice and read once\n");
    }
    let late = survey.users.late_requests;
    if late as f64 > LATE_SHARE * survey.requests as f64 {
        page += &format!(
            "{} requests are out of order by time, and may falsify the figures of users; sort the log by time\n",
            count(late)
        );
    }
    if survey.backward_lines > 0 {
        page += &format!(
            "{} lines are more than an hour before the line above them{}\n",
            count(survey.backward_lines),
            match survey
                .link
                .as_ref()
                .map_or(0, |link| link.left_out_requests)
            {
                0 => "",
                _ => ": the hours that are simulated may not be the busiest; sort the log by time",
            }
        );
    }
    page + &assumed(survey)
}

/// The one line that says what the forecast stands on.
fn assumed(survey: &Survey) -> String {
    let formats = survey.formats.iter().take(FORMATS_SHOWN);
    let formats: Vec<String> = formats
        .map(|format| format!("{} lines as {}", count(format.lines), format.reading))
        .collect();
    let more = match survey.formats.len().saturating_sub(FORMATS_SHOWN) {
        0 => String::new(),
        more => format!(", and {more} more ways"),
    };
    let link = survey
        .link
        .as_ref()
        .map_or(String::new(), |link| assumed_of(link, survey.span_s));
    format!("assumed: {}{more}{link}\n", formats.join("; "))
}

/// Likewise of the uplink.
fn assumed_of(link: &LinkFigures, span_s: f64) -> String {
    let hour = if span_s < 3600.0 {
        format!(
            "the whole log, {}, stands for the busiest hour",
            span(span_s)
        )
    } else {
        format!(
            "the busiest hour begins {}",
            utc(link.busiest_hour_begins_s)
        )
    };
    let simulated = match link.left_out_requests {
        0 => format!(
            "all {} requests are simulated",
            count(link.simulated_requests)
        ),
        _ => format!(
            "{} requests are simulated, those of the busiest periods of {}",
            count(link.simulated_requests),
            span(link.simulated_period_s as f64)
        ),
    };
    format!("; {hour}; {simulated}")
}

fn span(seconds: f64) -> String {
    let (value, unit) = match seconds {
        few if few < 120.0 => (few, "s"),
        some if some < 7200.0 => (some / 60.0, "min"),
        more if more < 172_800.0 => (more / 3600.0, "hours"),
        many => (many / 86_400.0, "days"),
    };
    let digits = significant(value);
    let digits = if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        &digits
    };
    format!("{digits} {unit}")
}

/// `2026-11-26 10:12 UTC`.
fn utc(seconds: u64) -> String {
    let at = i64::try_from(seconds).ok();
    let at = at.and_then(|at| time::OffsetDateTime::from_unix_timestamp(at).ok());
    at.map_or(String::new(), |at| {
        format!(
            "{:04}-{:02}-{:02} {:02}:{:02} UTC",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute()
        )
    })
}

fn users(survey: &Survey) -> String {
    let users = &survey.users;
    if survey.clientless_requests == survey.requests {
        return "users: unknown, the log does not name clients\n".into();
    }
    let unnamed = match survey.clientless_requests {
        0 => String::new(),
        some => format!("; {} requests name no client", count(some)),
    };
    format!(
        "users: {} visits, {} requests and {} clicks each, {} users at a time: like a system that is {}{unnamed}\n",
        count(users.visits),
        significant(users.requests_per_visit),
        significant(users.clicks_per_visit),
        significant(users.users_at_a_time),
        users.model
    )
}

fn sizes(survey: &Survey) -> String {
    let Some(sizes) = &survey.sizes else {
        return match survey.sizeless_requests {
            0 => "sizes: none, every response is empty\n".into(),
            _ => "sizes: unknown, the log does not have them\n".into(),
        };
    };
    let tail = match (sizes.tail_index, sizes.tail_index_error) {
        (Some(index), Some(error)) => format!(
            "; tail index {} ± {}",
            significant(index),
            significant(error)
        ),
        _ => String::new(),
    };
    format!(
        "sizes: mean {}, median {}, 99 % up to {}, largest {}; C² {}; {} % of the bytes in the largest 1 %{tail}\n",
        bytes(sizes.mean_bytes),
        bytes(sizes.median_bytes as f64),
        bytes(sizes.p99_bytes as f64),
        bytes(sizes.max_bytes as f64),
        significant(sizes.c2),
        significant(100.0 * sizes.top_1_percent_share)
    )
}

fn table(forecast: &Forecast, all: bool) -> String {
    let head = [
        "traffic",
        "busiest hour",
        "order",
        "mean",
        "99 %",
        "slowdown",
        "smaller half",
        "largest 1 %",
        "wait longer",
    ];
    let mut rows = vec![head.map(String::from)];
    let busy = forecast
        .scenarios
        .iter()
        .position(|scenario| scenario.busiest_hour_load > BUSY);
    for (place, scenario) in forecast.scenarios.iter().enumerate() {
        let is_shown = all || place == 0 || Some(place) == busy;
        for outcome in scenario.outcomes.iter().filter(|_| is_shown) {
            if !all && !ORDERS_SHOWN.contains(&outcome.policy.as_str()) {
                continue;
            }
            rows.push([
                format!("{}x", significant(scenario.growth)),
                significant(scenario.busiest_hour_load),
                outcome.policy.clone(),
                duration(outcome.mean_response_ms),
                duration(outcome.p99_response_ms),
                significant(outcome.mean_slowdown),
                duration(outcome.smallest_half_mean_ms),
                duration(outcome.largest_1_percent_mean_ms),
                match outcome.share_that_waits_longer {
                    0.0 => "-".into(),
                    share => format!(
                        "{} %, up to {}x",
                        significant(100.0 * share),
                        significant(outcome.longest_over_fair)
                    ),
                },
            ]);
        }
    }
    aligned(&rows)
}
