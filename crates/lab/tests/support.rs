//! An experiment with kept runs that look like measured ones: heavy-tailed sizes and Poisson
//! arrivals on one link, shared or shortest first, each server adding a little of its own.

use serde_json::{Value, json};
use sooner_lab::experiment::{Case, Experiment};
use sooner_lab::run::store::{Line, Store, as_json};
use sooner_stats::{ErrorKind, Outcome, Run, RunFacts, Sample, Verdict};
use std::fs;
use std::path::Path;

const RATE_BITS_PER_SEC: u64 = 10_000_000;

/// One request: arrival and work in ns, body in bytes.
struct Job {
    at_ns: f64,
    work_ns: f64,
    size_bytes: u64,
}

/// How a server answers.
#[derive(Clone, Copy)]
pub struct Server {
    /// Its name as a peer.
    pub name: &'static str,
    /// Whether the shortest goes first; else all share.
    pub shortest_first: bool,
    /// Its response times over the ideal ones.
    pub factor: f64,
    /// Every so many requests one is given up; 0: none.
    pub given_up_every: usize,
}

/// Writes the experiment `text` into `folder`/`name` and opens it.
pub fn experiment(folder: &Path, name: &str, text: &str) -> Experiment {
    let folder = folder.join(name);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("experiment.toml"), text).expect("written");
    Experiment::open(&folder).expect("a good experiment")
}

/// The run of `server` with the arrivals of `seed` at this load.
pub fn run(server: Server, seed: u64, load: f64, seconds: u64) -> Run {
    let jobs = arrivals(load, seconds, seed);
    let (ps, srpt) = (simulate(&jobs, false), simulate(&jobs, true));
    let base: Sample = serde_json::from_value(json!({
        "arrival_ns": 0, "size_bytes": 0, "work_bytes": 0, "response_ns": null, "first_byte_ns": null,
        "send_lag_ns": 80_000, "outcome": "ok", "ideal_srpt_ns": 0, "ideal_ps_ns": 0
    }))
    .expect("a sample");
    let samples = jobs.iter().enumerate().map(|(i, job)| {
        let ideal = if server.shortest_first {
            srpt[i]
        } else {
            ps[i]
        };
        let outcome = match i + 1 {
            n if server.given_up_every > 0 && n % server.given_up_every == 0 => Outcome::Incomplete,
            n if n % 1009 == 0 => Outcome::Error(ErrorKind::Reset),
            _ => Outcome::Ok,
        };
        let response_ns = (ideal * server.factor) as u64 + 600_000;
        Sample {
            arrival_ns: job.at_ns as u64,
            size_bytes: job.size_bytes,
            work_bytes: (job.work_ns * RATE_BITS_PER_SEC as f64 / 8e9) as u64,
            response_ns: (outcome == Outcome::Ok).then_some(response_ns),
            first_byte_ns: Some(response_ns / 2),
            outcome,
            ideal_srpt_ns: srpt[i] as u64,
            ideal_las_ns: ps[i] as u64,
            ideal_ps_ns: ps[i] as u64,
            ..base
        }
    });
    let facts = RunFacts {
        policy: "any".into(),
        verdict: Verdict::Valid,
        verdict_reason: "the generator kept up".into(),
        seed,
        offered_load: load,
        rate_bits_per_sec: RATE_BITS_PER_SEC,
        measured_ns: seconds * 1_000_000_000,
        syn_drops: Some(3),
        syn_retransmissions: None,
    };
    Run::new(facts, samples.collect())
}

/// Keeps `run` of `peer` in `store`, with counters beside it.
pub fn keep(store: &mut Store, case: &Case, peer: &str, run: &Run) {
    let mut json = serde_json::to_value(run).expect("a run is JSON");
    json["largest_1_percent"]["given_up"] = json!(2);
    json["all"]["aborts"] = json!(0);
    json["by_client"] = json!([{"address": "10.77.1.2", "all": run.all}, {"address": "10.77.2.2", "all": run.smallest_half}]);
    keep_json(store, case, peer, run.seed, json, &connections(run));
}

/// Keeps what a generator printed as the run of `peer`.
pub fn keep_json(
    store: &mut Store,
    case: &Case,
    peer: &str,
    seed: u64,
    run: Value,
    rows: &[Value],
) {
    let line = Line {
        case: case.name.clone(),
        seed,
        peer: peer.into(),
        attempt: 1,
        ended_at: "2026-11-22T06:00:00Z".into(),
        commit: Some("0123abc".into()),
        machine: "Some CPU, 2 CPUs, Linux 6.8".into(),
        stolen_cpu_seconds: 0.25,
        cpu_pressure_seconds: 1.5,
        setup: as_json(&case.setup),
        config: format!("# {peer}\nworker_processes 1;\n<tag>"),
        remarks: vec!["no qdisc <netem>: an emulator of ours".into()],
        run,
        counters: json!({"max_open_connections": 345, "cpu_s": 3.25, "tcp": {"listen_overflows": 12}, "none": null}),
        paths: None,
        place: 0,
    };
    store.add(line, rows).expect("kept");
}

/// A row of counters a second; the number of connections follows the response times.
fn connections(run: &Run) -> Vec<Value> {
    let rows = run.per_second.iter().map(|second| {
        let open = second.mean_response_ms.unwrap_or(0.0) / 1e3 * second.n as f64;
        json!({"time_s": second.second as f64 + 0.01, "connections": {"open": open.round(), "established": 1}})
    });
    rows.collect()
}

/// Bounded Pareto sizes, exponential gaps scaled so that the load is exact.
fn arrivals(load: f64, seconds: u64, seed: u64) -> Vec<Job> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut uniform = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let (horizon, mut jobs, mut work, mut at) = (seconds as f64 * 1e9, Vec::new(), 0.0, 0.0);
    while work < load * horizon {
        let size = (700.0 * (1.0 - uniform() * 0.9998).powf(-1.0 / 1.15)).min(2e6);
        let work_ns = (size + 600.0) * 8e9 / RATE_BITS_PER_SEC as f64;
        at -= (1.0 - uniform()).ln();
        work += work_ns;
        jobs.push(Job {
            at_ns: at,
            work_ns,
            size_bytes: size as u64,
        });
    }
    jobs.iter_mut().for_each(|job| job.at_ns *= horizon / at);
    jobs
}

/// Response times in ns on one link, shared equally or by the shortest first.
fn simulate(jobs: &[Job], shortest_first: bool) -> Vec<f64> {
    let mut response = vec![0.0; jobs.len()];
    let mut waiting: Vec<(usize, f64)> = Vec::new();
    let (mut now, mut next) = (0.0, 0);
    while next < jobs.len() || !waiting.is_empty() {
        let least = waiting.iter().map(|w| w.1).fold(f64::INFINITY, f64::min);
        let sharing = if shortest_first { 1 } else { waiting.len() } as f64;
        let arrival = jobs.get(next).map_or(f64::INFINITY, |job| job.at_ns);
        let until = arrival.min(now + least * sharing);
        let mut left_over = until - now;
        for (_, left) in &mut waiting {
            if !shortest_first || *left == least {
                let each = if shortest_first {
                    left_over
                } else {
                    left_over / sharing
                };
                *left -= each;
                left_over -= if shortest_first { left_over } else { 0.0 };
            }
        }
        now = until;
        waiting.retain(|&(job, left)| {
            if left < 1e-3 {
                response[job] = now - jobs[job].at_ns;
            }
            left >= 1e-3
        });
        if arrival <= now {
            waiting.push((next, jobs[next].work_ns));
            next += 1;
        }
    }
    response
}
