//! From what happened to what is reported: samples, and the ideals for the very same arrivals.

use crate::ideal;
use crate::patience::End;
use crate::play::{Played, Record};
use crate::probe::Costs;
use sooner_stats::{FIRST_ERRORS, Outcome, RequestError, Sample};
use sooner_workload::{Rate, wire::WireModel};

/// One sample a request, in order of time, warm-up included. Requests count from the moment they
/// were first sent, and whole, for the measurement and for both ideals.
pub fn samples(played: &Played, costs: &Costs, rate: Rate) -> Vec<Sample> {
    let mut samples: Vec<Sample> = played
        .records
        .iter()
        .map(|record| sample(record, costs, played.start_ns))
        .collect();
    let works: Vec<ideal::Work> = samples
        .iter()
        .map(|sample| ideal::Work {
            arrival_ns: sample.arrival_ns,
            work_bytes: sample.work_bytes,
        })
        .collect();
    for (sample, ideal) in samples
        .iter_mut()
        .zip(ideal::responses(&works, rate.bits_per_sec()))
    {
        sample.ideal_srpt_ns = ideal.srpt_ns;
        sample.ideal_las_ns = ideal.las_ns;
        sample.ideal_ps_ns = ideal.ps_ns;
    }
    samples
}

fn sample(record: &Record, costs: &Costs, start_ns: u64) -> Sample {
    let served = record.served();
    let since_sent = |time_ns: u64| time_ns - record.sent_ns;
    Sample {
        arrival_ns: record.sent_ns - start_ns,
        size_bytes: record.arrival.size_bytes,
        work_bytes: work_bytes(record, costs.wire, costs.head_bytes),
        response_ns: served.map(|served| since_sent(served.answer.last_byte_ns)),
        first_byte_ns: served.map(|served| since_sent(served.answer.first_byte_ns)),
        longest_silence_ns: served.map(|served| served.answer.longest_silence_ns),
        send_lag_ns: record.sent_ns - record.intended_ns,
        outcome: match record.end {
            Some(End::Served(_)) => Outcome::Ok,
            Some(End::Failed(failure)) => Outcome::Error(failure.kind()),
            Some(End::GivenUp) => Outcome::GivenUp,
            None => Outcome::Incomplete,
        },
        client: record.arrival.client,
        aborts: record.aborts,
        ideal_srpt_ns: 0,
        ideal_las_ns: 0,
        ideal_ps_ns: 0,
    }
}

/// The work is what the response really was; where none came, what it would have been. The
/// connection is the one that was taken or opened for it, at the first attempt: those of reloads
/// are the price of waiting, and no part of what was asked.
fn work_bytes(record: &Record, wire: WireModel, head_bytes: u64) -> u64 {
    let served = record.served();
    let at_once = served.filter(|_| record.aborts == 0);
    let new_connection = at_once.map_or(record.new_connection, |served| served.new_connection);
    let head_bytes = served
        .and_then(|served| served.answer.head_bytes)
        .map_or(head_bytes, u64::from);
    wire.work_bytes(record.arrival.size_bytes, head_bytes, new_connection)
}

/// What failed first, in the order of sending.
pub fn first_errors<'run>(
    records: impl Iterator<Item = &'run Record>,
    start_ns: u64,
) -> Vec<RequestError> {
    records
        .filter_map(|record| {
            let failure = record.failure()?;
            let failed_ns = record.failed_ns.unwrap_or(record.sent_ns);
            Some(RequestError {
                sent_s: (record.sent_ns - start_ns) as f64 / 1e9,
                after_ms: failed_ns.saturating_sub(record.sent_ns) as f64 / 1e6,
                size_bytes: record.arrival.size_bytes,
                what: failure.to_string(),
            })
        })
        .take(FIRST_ERRORS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Answer, Served};
    use crate::failure::Failure;
    use sooner_workload::Arrival;

    const START_NS: u64 = 1_000;

    fn record(aborts: u32, end: Option<End>) -> Record {
        Record {
            arrival: Arrival {
                at_ns: 90,
                think_ns: None,
                client: 2,
                object: 0,
                new_connection: true,
                size_bytes: 1000,
                work_bytes: 0,
            },
            intended_ns: START_NS + 90,
            sent_ns: START_NS + 100,
            new_connection: false,
            aborts,
            end,
            failed_ns: None,
        }
    }

    fn served() -> End {
        End::Served(Served {
            answer: Answer {
                status: 200,
                first_byte_ns: START_NS + 700,
                last_byte_ns: START_NS + 800,
                longest_silence_ns: 50,
                head_bytes: Some(300),
                body_bytes: 1000,
                keep_alive: true,
            },
            new_connection: true,
        })
    }

    fn sample_of(aborts: u32, end: Option<End>) -> Sample {
        let costs = Costs {
            head_bytes: 200,
            wire: WireModel::default(),
        };
        sample(&record(aborts, end), &costs, START_NS)
    }

    #[test]
    fn response_time_counts_from_the_first_attempt_to_the_end_of_the_last() {
        let reloaded = sample_of(2, Some(served()));
        assert_eq!(
            (reloaded.arrival_ns, reloaded.response_ns),
            (100, Some(700))
        );
        assert_eq!(
            (reloaded.first_byte_ns, reloaded.send_lag_ns),
            (Some(600), 10)
        );
        assert_eq!((reloaded.client, reloaded.aborts), (2, 2));
        // On the connection that was there first, not the one of the reload.
        assert_eq!(reloaded.work_bytes, 1300 + 66);
        assert_eq!(sample_of(0, Some(served())).work_bytes, 1300 + 66 + 4 * 66);
    }

    #[test]
    fn what_was_given_up_is_neither_an_error_nor_under_way() {
        let given_up = sample_of(4, Some(End::GivenUp));
        assert_eq!(
            (given_up.outcome, given_up.response_ns),
            (Outcome::GivenUp, None)
        );
        assert_eq!(given_up.work_bytes, 1200 + 66);
        assert_eq!(sample_of(1, None).outcome, Outcome::Incomplete);
        let failed = sample_of(1, Some(End::Failed(Failure::Reset)));
        assert!(matches!(failed.outcome, Outcome::Error(_)));
    }
}
