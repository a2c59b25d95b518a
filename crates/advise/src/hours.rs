//! How full the link was by hour of the day: 24 means, and a line of blocks that a terminal shows.

use crate::load::Minutes;
use sooner_report::number::{bits_per_sec, significant};

const HOURS: usize = 24;
const HOUR_S: f64 = 3600.0;
/// Spans longer than this, twenty years, are cut, so that a damaged log costs no time.
const HOURS_MAX: u64 = 20 * 366 * 24;
/// From nearly nothing to full.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// In place of an hour that the log does not reach.
const UNKNOWN: char = '·';

/// Mean bits a second of each hour of the day (UTC) over the log, which begins at `first_s` and
/// lasts `span_s`; none of hours that it does not reach.
pub fn by_hour(minutes: &Minutes, first_s: f64, span_s: f64) -> Vec<Option<f64>> {
    let mut bytes = [0.0; HOURS];
    for (minute, work) in minutes.each() {
        bytes[(minute / 60) as usize % HOURS] += work as f64;
    }
    let seconds = seconds_of_each(first_s, span_s);
    let mean = |hour: usize| (seconds[hour] > 0.0).then(|| bytes[hour] * 8.0 / seconds[hour]);
    (0..HOURS).map(mean).collect()
}

/// How much of the log is in each hour of the day, s.
fn seconds_of_each(first_s: f64, span_s: f64) -> [f64; HOURS] {
    let (mut seconds, end) = ([0.0; HOURS], first_s + span_s);
    let first = (first_s / HOUR_S) as u64;
    for hour in first..first.saturating_add(HOURS_MAX) {
        let (from, to) = (hour as f64 * HOUR_S, (hour + 1) as f64 * HOUR_S);
        if from >= end {
            break;
        }
        seconds[hour as usize % HOURS] += to.min(end) - from.max(first_s);
    }
    seconds
}

/// The hours as a line of blocks: of a link that carries `uplink`, the highest block is a full one,
/// else the fullest hour.
pub fn line(hours: &[Option<f64>], uplink_bits_per_sec: Option<f64>) -> String {
    let known = hours.iter().enumerate();
    let known = known.filter_map(|(hour, rate)| Some((hour, (*rate)?)));
    let Some((fullest, most)) = known.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return String::new();
    };
    if most <= 0.0 {
        return String::new();
    }
    let full = uplink_bits_per_sec.unwrap_or(most);
    let block = |rate: &Option<f64>| match rate {
        Some(rate) => {
            let step = (rate / full * BLOCKS.len() as f64) as usize;
            BLOCKS[step.min(BLOCKS.len() - 1)]
        }
        None => UNKNOWN,
    };
    let blocks: String = hours.iter().map(block).collect();
    let said = match uplink_bits_per_sec {
        Some(uplink) => format!(
            "{} % of {}",
            significant(100.0 * most / uplink),
            bits_per_sec(uplink)
        ),
        None => format!("{} on average", bits_per_sec(most)),
    };
    format!("link by hour, 0 to 23 UTC: {blocks}  fullest from {fullest}:00 with {said}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(work: &[(u64, u64)]) -> Minutes {
        let mut minutes = Minutes::default();
        for (second, bytes) in work {
            minutes.add(second * 1_000_000_000, *bytes);
        }
        minutes
    }

    #[test]
    fn an_hour_is_the_mean_over_all_days() {
        // 3600 bytes in the first hour of two days, and none in the second day's second hour.
        let two_days = minutes(&[(0, 3600), (3600, 7200), (86_400, 3600)]);
        let hours = by_hour(&two_days, 0.0, 2.0 * 86_400.0);
        assert_eq!(hours.len(), 24);
        assert_eq!((hours[0], hours[1]), (Some(8.0), Some(8.0)));
        assert_eq!(hours[2], Some(0.0));
    }

    #[test]
    fn a_short_log_says_nothing_of_other_hours() {
        let hours = by_hour(&minutes(&[(7200 + 1800, 900)]), 7200.0 + 1800.0, 900.0);
        assert_eq!(hours[2], Some(8.0));
        assert!(hours.iter().filter(|hour| hour.is_some()).count() == 1);
        let shown = line(&hours, None);
        assert!(shown.contains("··█·····"), "{shown}");
    }

    #[test]
    fn blocks_are_parts_of_the_uplink() {
        let mut hours = vec![Some(0.0); 24];
        (hours[3], hours[4]) = (Some(49.0), Some(200.0));
        let shown = line(&hours, Some(100.0));
        assert!(shown.contains("▁▁▁▄█▁"), "{shown}");
        assert!(shown.contains("from 4:00 with 200 % of"), "{shown}");
        assert_eq!(line(&[Some(0.0)], None), "");
        assert_eq!(line(&[None], None), "");
    }
}
