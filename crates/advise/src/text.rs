//! The forecast as a page of text, and the advice in it.

use crate::forecast::{Forecast, Outcome, Scenario};
use crate::survey::Survey;
use sooner_report::columns::aligned;
use sooner_report::number::{bits_per_sec, bytes, count, duration, round_rate, significant};

/// Below this load of the busiest hour nobody waits for anybody.
const LOAD_LOW: f64 = 0.3;
/// A mean that is not this many times shorter would not be felt.
const GAIN_LOW: f64 = 1.2;
/// Downloads at less than this part of the uplink are limited by the clients.
const CLIENT_SHARE: f64 = 0.1;
/// Of that log, the load to look at when asking whether growth would pay.
const BUSY: f64 = 0.85;

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

/// What to do, one sentence each; the command to try comes last where there is one.
pub fn advice(forecast: &Forecast) -> Vec<String> {
    let survey = &forecast.survey;
    let mut said = Vec::new();
    let Some(now) = forecast.scenarios.first() else {
        return said;
    };
    let gain_now = gain(now);
    let busy = forecast
        .scenarios
        .iter()
        .find(|scenario| scenario.busiest_hour_load > BUSY);
    let gain_busy = busy.map_or(1.0, gain);
    if survey.busiest_hour_load >= 1.0 {
        said.push(format!(
            "The busiest hour asks for {} times what the uplink carries, if the log and --uplink are right: then order decides who is answered at all.",
            significant(survey.busiest_hour_load)
        ));
    }
    if let Some(speed) = survey.download_bits_per_sec
        && speed < CLIENT_SHARE * survey.uplink_bits_per_sec as f64
        && survey.busiest_hour_load < BUSY
    {
        said.push(format!(
            "Half of the large responses were taken at less than {}, far below the uplink: their own links or the server limit them, and order on the uplink cannot change that.",
            bits_per_sec(speed)
        ));
    }
    if survey.busiest_hour_load < LOAD_LOW && gain_now < GAIN_LOW {
        said.push(format!(
            "Scheduling would not help now: even the busiest hour fills the uplink to {} %, and hardly anybody waits for anybody.",
            significant(100.0 * survey.busiest_hour_load)
        ));
    } else if gain_now < GAIN_LOW {
        said.push(format!(
            "Scheduling would help little now: the mean would be {} times shorter.",
            significant(gain_now)
        ));
    } else {
        said.push(format!(
            "Shortest remaining first would make the mean response {} times shorter now.",
            significant(gain_now)
        ));
    }
    said.extend(busy.and_then(|scenario| with_growth(scenario, forecast)));
    said.extend(
        busy.or(Some(now))
            .and_then(|scenario| who_pays(scenario, forecast)),
    );
    if gain_now >= GAIN_LOW || gain_busy >= GAIN_LOW {
        // As flags take it: 100mbit.
        let rate = round_rate(survey.uplink_bits_per_sec as f64)
            .replace(' ', "")
            .replace("/s", "")
            .to_lowercase();
        said.push(format!(
            "To try it: sudo sooner attach web --dev DEVICE --uplink {rate} before the server that runs, or sooner serve DIRECTORY --uplink {rate}."
        ));
    }
    said
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
            "Nor would it with {} times the traffic: sizes vary little (C² {}), and then sharing is nearly as good.",
            significant(growth),
            sizes.map_or("unknown".into(), |sizes| significant(sizes.c2))
        ));
    }
    Some(format!(
        "With {} times the traffic, when the busiest hour fills {} % of the uplink, it would be {} times shorter.",
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
            "Nobody would wait noticeably longer, the largest 1 % included, with the busiest hour at {load} %."
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
        "{} % of the requests{border} would wait longer, up to {} times, with the busiest hour at {load} %; fsp makes none later than FAIR does.",
        significant(100.0 * srpt.share_that_waits_longer),
        significant(srpt.longest_over_fair)
    ))
}

/// The page of text.
pub fn text(forecast: &Forecast) -> String {
    let survey = &forecast.survey;
    let mut page = read(survey);
    page += &format!(
        "load of {}: {} in the mean, {} in the busiest hour, {} in the busiest minute; above 0.5 in {} % of the minutes\n",
        round_rate(survey.uplink_bits_per_sec as f64),
        significant(survey.mean_load),
        significant(survey.busiest_hour_load),
        significant(survey.busiest_minute_load),
        significant(100.0 * survey.minutes_above_half)
    );
    page += &sizes(survey);
    let users = &survey.users;
    page += &format!(
        "users: {} visits, {} requests and {} clicks each, {} users at a time: like a system that is {}\n",
        count(users.visits),
        significant(users.requests_per_visit),
        significant(users.clicks_per_visit),
        significant(users.users_at_a_time),
        users.model
    );
    let cutoffs = survey.band_cutoffs_bytes.iter();
    let cutoffs: Vec<String> = cutoffs.map(|cutoff| bytes(*cutoff as f64)).collect();
    page += &format!("bands: {}\n\n", cutoffs.join(", "));
    page += &table(forecast);
    page.push('\n');
    for sentence in advice(forecast) {
        page += &format!("- {sentence}\n");
    }
    page
}

/// What was read, and what was not.
fn read(survey: &Survey) -> String {
    let mut page = format!(
        "{} requests in {} days; {} lines are none\n",
        count(survey.requests),
        significant(survey.span_s / 86_400.0),
        count(survey.other_lines)
    );
    if let Some(line) = &survey.first_other_line {
        page += &format!("the first of those: {line}\n");
    }
    for file in &survey.broken_files {
        page += &format!("{file}\n");
    }
    if survey.backward_lines > 0 {
        page += &format!(
            "{} lines are more than an hour before the line above them\n",
            count(survey.backward_lines)
        );
    }
    if survey.left_out_requests > 0 {
        page += &format!(
            "simulated are the {} requests of the busiest hours\n",
            count(survey.simulated_requests)
        );
    }
    page
}

fn sizes(survey: &Survey) -> String {
    let Some(sizes) = &survey.sizes else {
        return "sizes: none, every response is empty\n".into();
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

fn table(forecast: &Forecast) -> String {
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
    for scenario in &forecast.scenarios {
        for outcome in &scenario.outcomes {
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
