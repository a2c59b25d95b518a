//! Servers of which all is known, and what is found of them.

use super::*;
use crate::postgres::tally::{Seen, SeenTransaction};
use proptest::prelude::*;

/// Stages of every transaction of a session, and how long each takes, seconds.
type Stages = Vec<(Part, f64)>;

/// What a session does at a time: the transaction's number, its stage, how old both are.
fn at(stages: &Stages, time_s: f64) -> (u64, Part, f64, f64) {
    let whole: f64 = stages.iter().map(|(_, length)| length).sum();
    let number = (time_s / whole).floor();
    let age_s = time_s - number * whole;
    let mut begin = 0.0;
    for (part, length) in stages {
        if age_s < begin + length {
            return (number as u64, *part, age_s, age_s - begin);
        }
        begin += length;
    }
    (number as u64, stages[stages.len() - 1].0, age_s, 0.0)
}

/// A count without steps.
fn steadily(per_sec: f64) -> Option<Rate> {
    Some(Rate {
        per_sec,
        error: 0.0,
        seconds: f64::INFINITY,
    })
}

/// Seconds of a part until then.
fn until(stages: &Stages, part: Part, time_s: f64) -> f64 {
    let whole: f64 = stages.iter().map(|(_, length)| length).sum();
    let (number, ..) = at(stages, time_s);
    let of_part = |upto: f64| {
        let (mut begin, mut sum) = (0.0, 0.0);
        for (own, length) in stages {
            if *own == part {
                sum += (upto - begin).clamp(0.0, *length);
            }
            begin += length;
        }
        sum
    };
    number as f64 * of_part(whole) + of_part(time_s - number as f64 * whole)
}

/// Two sessions that go through these stages again and again, looked at about every `step_s`; a stage
/// of [`Part::Other`] is the pause behind a transaction.
fn looked_at(all: &[Stages; 2], step_s: f64) -> Tally {
    let mut tally = Tally::new(2, 60.0);
    let (mut last_s, mut now_s, mut phase) = (0.0, 0.0, 0.0);
    while now_s < 60.0 {
        phase = (phase + 0.618) % 1.0;
        now_s += step_s * (0.5 + phase);
        let seen = |(class, stages): (usize, &Stages)| {
            let (number, part, age_s, _) = at(stages, now_s);
            let since = |part| until(stages, part, now_s) - until(stages, part, last_s);
            let shown = if part == Part::ProcessorWait {
                Part::Running
            } else {
                part
            };
            let age_ns = (1e9 * age_s) as u64;
            Seen {
                pid: class as i32,
                class,
                run_s: since(Part::Running),
                wait_s: since(Part::ProcessorWait),
                is_woken: Some(false),
                transaction: (part != Part::Other).then(|| SeenTransaction {
                    began_us: number as i64,
                    part: shown,
                    age_ns,
                    statement_age_ns: age_ns,
                    kind: Some("pay".into()),
                    statement: "select ?".into(),
                }),
            }
        };
        let sessions: Vec<Seen> = all.iter().enumerate().map(seen).collect();
        tally.look(now_s - last_s, &sessions);
        last_s = now_s;
    }
    tally.finish();
    tally
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]
    /// Two classes with a session each; the parts and rates that are found are those they have.
    #[test]
    fn what_is_found_is_what_they_did(
        lengths in prop::array::uniform4(0.001..0.05_f64),
        factor in 0.3..3.0_f64,
        step in 0.007..0.013_f64,
    ) {
        let parts = [Part::Running, Part::ProcessorWait, Part::RowLocks, Part::Wal];
        let first: Stages = parts.into_iter().zip(lengths).collect();
        let second: Stages = first.iter().map(|(part, length)| (*part, length * factor)).collect();
        let all = [first, second];
        let tally = looked_at(&all, step);
        let whole = |stages: &Stages| stages.iter().map(|(_, length)| length).sum::<f64>();
        let per_sec = 1.0 / whole(&all[0]) + 1.0 / whole(&all[1]);
        let names = ["one".to_owned(), "two".to_owned()];
        let found = Breakdown::of(&tally, &names, steadily(per_sec));
        for (stages, (_, rows)) in all.iter().zip(&found.classes) {
            let near = |found: f64, true_ms: f64, of_ms: f64| (found - true_ms).abs() < 0.08 * of_ms;
            let mean_ms = 1e3 * whole(stages);
            let row = &rows.row;
            prop_assert!(near(row.mean_ms.unwrap(), mean_ms, mean_ms), "{row:?}");
            prop_assert!((row.at_a_time - 1.0).abs() < 0.03, "{row:?}");
            for (part, length) in stages {
                prop_assert!(near(row.ms(*part), 1e3 * length, mean_ms), "{part:?} {length} {row:?}");
            }
            let kind = &rows.kinds[0];
            prop_assert_eq!(kind.name.as_str(), "pay");
            prop_assert!(near(kind.mean_ms.unwrap(), mean_ms, mean_ms), "{kind:?}");
        }
    }
}

#[test]
fn what_never_ends_is_seen_all_the_same() {
    let mut tally = Tally::new(1, 1.0);
    let seen = Seen {
        pid: 7,
        class: 0,
        run_s: 0.0,
        wait_s: 0.0,
        is_woken: Some(false),
        transaction: Some(SeenTransaction {
            began_us: 1,
            part: Part::RowLocks,
            age_ns: 60_000_000_000,
            statement_age_ns: 60_000_000_000,
            kind: None,
            statement: "update t".into(),
        }),
    };
    (0..100).for_each(|_| tally.look(0.01, std::slice::from_ref(&seen)));
    tally.finish();
    let found = Breakdown::of(&tally, &["all".to_owned()], None);
    // Ages say that next to none begin.
    assert!(found.all.mean_ms.is_none_or(|mean_ms| mean_ms > 10_000.0));
    assert_eq!(found.all.parts.len(), 1);
    let part = found.all.parts[0];
    assert!(
        (part.at_a_time - 1.0).abs() < 1e-9 && part.share == 1.0,
        "{part:?}"
    );
}

/// One session that runs transactions of 10 ms without a pause, looked at for so long of 60 s.
fn steady(seconds: f64) -> Tally {
    let mut tally = Tally::new(1, 60.0);
    let (mut now_s, mut phase) = (0.0, 0.0);
    while now_s < seconds {
        phase = (phase + 0.618) % 1.0;
        let since_s = 0.01 * (0.5 + phase);
        now_s += since_s;
        let age_ns = (1e9 * (now_s % 0.01)) as u64;
        let seen = Seen {
            pid: 7,
            class: 0,
            run_s: since_s,
            wait_s: 0.0,
            is_woken: None,
            transaction: Some(SeenTransaction {
                began_us: (now_s / 0.01) as i64,
                part: Part::Running,
                age_ns,
                statement_age_ns: age_ns,
                kind: None,
                statement: "select ?".into(),
            }),
        };
        tally.look(since_s, &[seen]);
    }
    tally.finish();
    tally
}

fn found(tally: &Tally, per_sec: f64) -> Breakdown {
    Breakdown::of(tally, &["all".to_owned()], steadily(per_sec))
}

#[test]
fn what_no_client_did_is_not_counted() {
    let tally = steady(60.0);
    for (per_sec, count_of) in [
        (100.0, CountOf::Server),
        (300.0, CountOf::Ages),
        (10.0, CountOf::Ages),
    ] {
        let found = found(&tally, per_sec);
        assert_eq!(found.count_of, count_of, "{per_sec}");
        let mean_ms = found.all.mean_ms.unwrap();
        assert!((mean_ms - 10.0).abs() < 1.0, "{per_sec}: {mean_ms}");
    }
    // With so few looks the server is believed.
    let few = found(&steady(2.0), 300.0);
    assert_eq!(few.count_of, CountOf::Server);
}

#[test]
fn a_count_is_not_too_low_where_ages_may_be_too_high() {
    // Half of the 95 per cent interval of the ages is half of the rate at 200 looks, and a
    // tenth at 6000.
    for (seconds, count_of) in [(2.0, CountOf::Server), (60.0, CountOf::Ages)] {
        let found = found(&steady(seconds), 70.0);
        assert_eq!(found.count_of, count_of, "{seconds}");
    }
}

#[test]
fn an_early_end_leaves_only_slices_that_were_looked_at() {
    // All slices are alike, and a mean is as sure as they are.
    let error_ms = |seconds| found(&steady(seconds), 100.0).all.error_ms;
    assert!(error_ms(60.0).unwrap() < 0.1, "{:?}", error_ms(60.0));
    assert!(error_ms(30.0).unwrap() < 0.1, "{:?}", error_ms(30.0));
    assert_eq!(error_ms(10.0), None, "four slices are too few");
    // What ages count has an error of its own.
    let by_age = found(&steady(60.0), 300.0).all.error_ms.unwrap();
    assert!(by_age > 0.1 && by_age < 2.0, "{by_age}");
}

/// Two sessions, each with a transaction of 2 ms (half on a processor, half in line) every 8 ms,
/// or a longer one that waits for a lock; looked at about every 10 ms.
fn short() -> Tally {
    let stages: [Stages; 2] = [
        vec![
            (Part::Running, 0.001),
            (Part::ProcessorWait, 0.001),
            (Part::Other, 0.006),
        ],
        vec![
            (Part::Running, 0.001),
            (Part::RowLocks, 0.004),
            (Part::Other, 0.012),
        ],
    ];
    looked_at(&stages, 0.01)
}

#[test]
fn rows_by_number_agree_with_the_whole_where_transactions_are_short() {
    let tally = short();
    let names = ["one".to_owned(), "two".to_owned()];
    let found = Breakdown::of(&tally, &names, None);
    assert_eq!(found.by_active.len(), 2);
    let whole = |part: Part| {
        let own = found.all.parts.iter().find(|own| own.part == part);
        own.map_or(0.0, |own| own.share)
    };
    assert!(
        whole(Part::Running) > 0.2 && whole(Part::Other) < 0.05,
        "{:?}",
        found.all
    );
    // Weighted by how long how many were in a transaction: one, or two.
    let weight = |row: &ActiveRow| row.time_share * f64::from(row.to);
    let weights: f64 = found.by_active.iter().map(weight).sum();
    for part in Part::ALL {
        let of_row = |row: &ActiveRow| {
            let mut shares = row.shares.iter();
            let own = shares.find(|(own, _)| *own == part);
            weight(row) * own.map_or(0.0, |(_, share)| *share)
        };
        let mean = found.by_active.iter().map(of_row).sum::<f64>() / weights;
        let rows = &found.by_active;
        assert!(
            (mean - whole(part)).abs() < 0.02,
            "{part:?} {mean} {}: {rows:?}",
            whole(part)
        );
    }
}
