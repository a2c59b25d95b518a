//! What the demo derives from its options, and how its report describes them.

use super::DemoOptions;
use crate::machine;
use sooner_report::Context;
use sooner_report::number::{count, duration, round_rate};
use std::time::{Duration, SystemTime};

/// A full packet on Ethernet.
const PACKET_BYTES: u64 = 1514;

/// The first tenth of a run, in whole seconds, is not counted: the link starts empty.
pub fn warm_up(duration: Duration) -> Duration {
    Duration::from_secs((duration.as_secs_f64() / 10.0).floor() as u64)
}

/// How long the generator waits for the last responses: a third of the run, at least 12 s. It ends
/// earlier when all are there.
pub fn drain(duration: Duration) -> Duration {
    (duration / 3).max(Duration::from_secs(12))
}

/// The set-up as the report tells it.
pub fn context(options: &DemoOptions) -> Context {
    let rate = round_rate(options.uplink.bits_per_sec() as f64);
    let (name, trace, seed) = (&options.trace.name, &options.trace, options.seed);
    let load = load_words(options);
    let (seconds, left_out) = (
        options.duration.as_secs(),
        warm_up(options.duration).as_secs(),
    );
    Context {
        summary: format!("Trace {name} over {rate}, {load}, seed {seed}"),
        command: command(options),
        version: env!("CARGO_PKG_VERSION").into(),
        commit: machine::commit(),
        measured_at: httpdate::fmt_http_date(SystemTime::now()),
        machine: machine::description(),
        uplink: uplink_words(options),
        trace: format!(
            "{name}: {} requests to {} objects; sizes are the objects' full sizes, {} rows without bytes are left out",
            count(trace.requests.len() as u64),
            count(trace.objects.len() as u64),
            count(trace.dropped_zero_rows as u64)
        ),
        schedule: format!(
            "{load}, Poisson arrivals for {seconds} s, the first {left_out} s not counted"
        ),
    }
}

/// The link, and in what it differs from a wire: loopback hands over a packet at once, a wire when
/// its last bit has arrived.
fn uplink_words(options: &DemoOptions) -> String {
    let rate = round_rate(options.uplink.bits_per_sec() as f64);
    let packet_ms = options.uplink.transmission_ns(PACKET_BYTES) as f64 / 1e6;
    let packet = duration(packet_ms);
    format!(
        "{rate}, limited and ordered in user space, on loopback, where the last packet of a \
         response arrives up to its own transmission time ({packet}) earlier than over a wire"
    )
}

/// The command that repeats the measurement.
fn command(options: &DemoOptions) -> String {
    let (uplink, seconds) = (options.uplink, options.duration.as_secs());
    let (schedule, trace, seed) = (&options.schedule, &options.trace_name, options.seed);
    let load = if schedule.phases().len() == 1 {
        "--rho"
    } else {
        "--schedule"
    };
    let policies = match options.policies.join(",") {
        default if default == "fair,srpt" => String::new(),
        other => format!(" --policies {other}"),
    };
    format!(
        "sooner demo --uplink {uplink} --for {seconds} {load} {schedule} --trace {trace} --seed {seed}{policies}"
    )
}

/// `load 0.9`, or `load 0.2 for 10 s and 1.2 for 10 s in turn`.
fn load_words(options: &DemoOptions) -> String {
    let phases = options.schedule.phases();
    if let [phase] = phases {
        return format!("load {}", phase.load);
    }
    let words: Vec<String> = phases
        .iter()
        .map(|phase| format!("{} for {} s", phase.load, phase.duration_s))
        .collect();
    format!("load {} in turn", words.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_workload::{Rate, Trace};

    fn options(schedule: &str) -> DemoOptions {
        DemoOptions {
            program: "sooner".into(),
            trace_name: "epa".into(),
            trace: Trace::embedded("epa").expect("a built-in trace"),
            uplink: Rate::from_bits_per_sec(10_000_000).expect("a rate"),
            policies: vec!["fair".into(), "srpt".into()],
            schedule: schedule.parse().expect("a schedule"),
            duration: Duration::from_secs(35),
            seed: 1,
        }
    }

    #[test]
    fn the_command_repeats_the_measurement() {
        let constant = context(&options("0.9")).command;
        assert_eq!(
            constant,
            "sooner demo --uplink 10mbit --for 35 --rho 0.9 --trace epa --seed 1"
        );
        let alternating = context(&options("0.2,1.2,10,10")).command;
        assert!(
            alternating.contains("--schedule 0.2,1.2,10,10"),
            "{alternating}"
        );
    }

    #[test]
    fn what_loopback_leaves_out_is_said() {
        let uplink = context(&options("0.9")).uplink;
        assert!(uplink.contains("transmission time (1.21 ms)"), "{uplink}");
    }

    #[test]
    fn the_load_is_told_phase_by_phase() {
        assert_eq!(load_words(&options("0.9")), "load 0.9");
        assert_eq!(
            load_words(&options("0.2,1.2,10,10")),
            "load 0.2 for 10 s and 1.2 for 10 s in turn"
        );
    }

    #[test]
    fn warm_up_is_whole_seconds_so_that_no_second_is_cut() {
        let warm_up_s = |seconds| warm_up(Duration::from_secs(seconds)).as_secs_f64();
        assert_eq!([5, 10, 35, 120].map(warm_up_s), [0.0, 1.0, 3.0, 12.0]);
    }
}
