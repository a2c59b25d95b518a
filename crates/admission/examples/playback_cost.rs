//! What it costs to play the last jobs under each order: a turn, and all turns.
//!
//!     cargo run --release -p sooner-admission --example playback_cost

#![expect(
    clippy::disallowed_methods,
    reason = "what is measured is the time it takes"
)]

use sooner_admission::{Outcome, Player, Recorded, Time};
use std::time::{Duration, Instant};

const JOBS: u64 = 4096;
const MS: u64 = 1_000_000;

/// Numbers in a fixed, scattered order (splitmix64).
fn scattered(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Jobs of 1 ms to 4 s, each doubling as often as the next, 683 ms in the mean and so many ms after
/// one another, in two places.
fn recorded(gap_ms: u64) -> Recorded {
    let job = |job: u64| {
        let least_ns = MS << (scattered(job) % 12);
        let service_ns = least_ns + scattered(job + JOBS) % least_ns;
        Outcome {
            came_ns: (job * gap_ms * MS) as i64,
            expected_ns: service_ns / 2 + scattered(job + 2 * JOBS) % service_ns,
            kind_ns: 1,
            service_ns,
        }
    };
    Recorded {
        jobs: (0..JOBS).map(job).collect(),
        places: 2,
    }
}

fn main() {
    for (load, gap_ms) in [("0.5", 512), ("0.9", 285), ("2", 128), ("all at once", 0)] {
        let mut player = Player::default();
        let mut turns: Vec<Duration> = Vec::new();
        loop {
            let begin = Instant::now();
            let has_ended = player.play(JOBS, || recorded(gap_ms), Time::ZERO);
            turns.push(begin.elapsed());
            if has_ended {
                break;
            }
        }
        turns.sort_unstable();
        let all: Duration = turns.iter().sum();
        println!(
            "load {load}: {} turns, {all:?} in all, median {:?}, longest {:?}",
            turns.len(),
            turns[turns.len() / 2],
            turns[turns.len() - 1],
        );
        for one in player.played().iter().flat_map(|played| &played.figures) {
            let ms = |ns: u64| ns / MS;
            println!(
                "  {:<9} mean {} ms, p99 {} ms",
                one.name(),
                ms(one.mean_ns),
                ms(one.p99_ns)
            );
        }
    }
}
