//! One server of rate 1 (a unit of service a nanosecond) that plays jobs against a scheduler.

use sooner_policy::{Arrival, ClientId, JobId, Path, Payer, Scheduler, Time};

/// A job to play: when it arrives, how large it is, its class.
#[derive(Clone, Copy, Debug)]
pub struct Play {
    pub at: u64,
    pub size: u64,
    pub class: u8,
    /// What its client notices.
    pub trickle: u64,
    pub client: Option<ClientId>,
    /// What is known of its network; told when it arrives.
    pub path: Path,
}

pub fn play(at: u64, size: u64) -> Play {
    Play {
        at,
        size,
        class: 0,
        trickle: 1,
        client: None,
        path: Path::default(),
    }
}

/// A job's class changes while it is present, or more is known of its network; `job` is its place
/// among the jobs played.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub at: u64,
    pub job: usize,
    pub class: u8,
    pub path: Option<Path>,
}

/// What happened.
#[derive(Debug, Default)]
pub struct Played {
    /// Completion time of each job.
    pub done_at: Vec<u64>,
    /// Runs of service in order: `A10 B5` is ten units for the first job, then five for the second.
    pub decisions: String,
    /// Time the server stood idle although a job was present.
    pub idle_with_work: u64,
    /// The longest time in which a job's client noticed nothing, up to its end.
    pub silence_max: u64,
}

/// Serves `jobs` (sorted by arrival) to the end; `sizes_known` decides whether the scheduler is
/// told the sizes.
pub fn run(jobs: &[Play], scheduler: Box<dyn Scheduler + Send>, sizes_known: bool) -> Played {
    run_changing(jobs, &[], scheduler, sizes_known)
}

/// The same while classes change as `changes` (sorted by time) say.
pub fn run_changing(
    jobs: &[Play],
    changes: &[Change],
    mut scheduler: Box<dyn Scheduler + Send>,
    sizes_known: bool,
) -> Played {
    let mut changes = changes.iter().peekable();
    let mut played = Played {
        done_at: vec![0; jobs.len()],
        ..Played::default()
    };
    let mut left: Vec<u64> = jobs.iter().map(|job| job.size).collect();
    // When each client last noticed something, and what came since: the first comes in the middle
    // of what it can notice.
    let begun = |job: &Play| (job.at, job.trickle / 2);
    let mut heard: Vec<(u64, u64)> = jobs.iter().map(begun).collect();
    let (mut now, mut arrived, mut done) = (0, 0, 0);
    let mut last = None;
    while done < jobs.len() {
        while arrived < jobs.len() && jobs[arrived].at <= now {
            announce(arrived, jobs[arrived], sizes_known, now, scheduler.as_mut());
            arrived += 1;
        }
        while let Some(change) = changes.next_if(|change| change.at <= now) {
            let (id, now) = (JobId(change.job as u64), Time::from_ns(now));
            scheduler.reclassify(id, change.class, now);
            if let Some(path) = change.path {
                scheduler.observe(id, path, now);
            }
        }
        let until_arrival = jobs.get(arrived).map_or(u64::MAX, |job| job.at - now);
        let until_change = changes.peek().map_or(u64::MAX, |change| change.at - now);
        let Some(grant) = scheduler.next(Time::from_ns(now)) else {
            played.idle_with_work += if arrived > done { until_arrival } else { 0 };
            now += until_arrival;
            continue;
        };
        let job = grant.job.0 as usize;
        let until_wake = scheduler
            .wake_at()
            .map_or(u64::MAX, |wake| wake.since(Time::from_ns(now)))
            .max(1);
        let amount = grant
            .max_amount
            .min(left[job])
            .min(until_arrival)
            .min(until_change)
            .min(until_wake);
        let silence = hear(&mut heard[job], jobs[job].trickle, amount, left[job], now);
        played.silence_max = played.silence_max.max(silence);
        now += amount;
        left[job] -= amount;
        scheduler.progress(grant.job, amount, Time::from_ns(now));
        note(&mut played.decisions, &mut last, job, amount);
        if left[job] == 0 {
            scheduler.depart(grant.job, Time::from_ns(now));
            played.done_at[job] = now;
            done += 1;
        }
    }
    if let Some((job, amount)) = last {
        push(&mut played.decisions, job, amount);
    }
    played
}

/// A job comes in.
fn announce(
    index: usize,
    job: Play,
    size_known: bool,
    now: u64,
    scheduler: &mut (dyn Scheduler + Send),
) {
    let (id, now) = (JobId(index as u64), Time::from_ns(now));
    let arrival = Arrival {
        id,
        class: job.class,
        size: size_known.then_some(job.size),
        trickle: job.trickle,
        client: job.client,
        payer: job.client.map(|client| Payer {
            client,
            network: None,
        }),
    };
    scheduler.arrive(arrival, now);
    scheduler.observe(id, job.path, now);
}

/// A client that last noticed something at the first of `heard`, and got the second of it since,
/// gets `amount` of `left` from `now` on; the silence that ends, or lasts so far.
fn hear(heard: &mut (u64, u64), trickle: u64, amount: u64, left: u64, now: u64) -> u64 {
    let (heard_at, unheard) = heard;
    let missing = trickle - *unheard;
    let silence = now + missing.min(amount).min(left) - *heard_at;
    *unheard += amount;
    if amount >= missing {
        *unheard %= trickle;
        *heard_at = now + amount - *unheard;
    }
    silence
}

fn note(decisions: &mut String, last: &mut Option<(usize, u64)>, job: usize, amount: u64) {
    match last {
        Some((same, total)) if *same == job => *total += amount,
        _ => {
            if let Some((job, amount)) = last.replace((job, amount)) {
                push(decisions, job, amount);
            }
        }
    }
}

fn push(decisions: &mut String, job: usize, amount: u64) {
    if !decisions.is_empty() {
        decisions.push(' ');
    }
    decisions.push((b'A' + (job % 26) as u8) as char);
    decisions.push_str(&amount.to_string());
}
