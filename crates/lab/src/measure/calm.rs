//! Measurements in which a hypervisor takes processor time away are made again: it takes as much as
//! half a core for seconds, then nothing for a minute, and never looks at what was measured.

use anyhow::Result;
use std::fs;

/// Of either processor, what may be missing.
const SHARE_MAX: f64 = 0.02;

/// The first measurement in which no processor was taken away; after so many tries the one in which
/// the least was taken.
pub fn undisturbed<T>(tries: u32, mut measure: impl FnMut() -> Result<T>) -> Result<T> {
    first_calm(tries, || {
        let before = processors(&stat());
        let measured = measure()?;
        Ok((measured, share(&before, &processors(&stat()))))
    })
}

/// The same of measurements that come with the share that was stolen.
fn first_calm<T>(tries: u32, mut measure: impl FnMut() -> Result<(T, f64)>) -> Result<T> {
    let (mut best, mut least) = measure()?;
    for _ in 1..tries {
        if least <= SHARE_MAX {
            break;
        }
        let (other, stolen) = measure()?;
        if stolen < least {
            (best, least) = (other, stolen);
        }
    }
    Ok(best)
}

fn stat() -> String {
    fs::read_to_string("/proc/stat").unwrap_or_default()
}

/// Ticks of each processor: stolen, and all.
fn processors(stat: &str) -> Vec<(f64, f64)> {
    let lines = stat.lines();
    // The first line is the sum of them.
    let lines = lines.filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "));
    lines
        .map(|line| {
            let ticks = line.split(' ').skip(1).take(8);
            let ticks: Vec<f64> = ticks.filter_map(|ticks| ticks.parse().ok()).collect();
            // user, nice, system, idle, iowait, irq, softirq, steal (proc(5)); guests' time is in
            // the first two.
            (ticks.last().copied().unwrap_or(0.0), ticks.iter().sum())
        })
        .collect()
}

/// What was taken from the processor that lost most.
fn share(before: &[(f64, f64)], after: &[(f64, f64)]) -> f64 {
    let pairs = before.iter().zip(after);
    pairs
        .map(|(before, after)| (after.0 - before.0) / (after.1 - before.1).max(1.0))
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_the_processor_that_lost_most() {
        let before = "cpu  2 0 0 0 0 0 0 0 0 0\ncpu0 1 0 0 0 0 0 0 0 0 0\ncpu1 1 0 0 0 0 0 0 0 0 0\nintr 5\n";
        let after = "cpu  9 0 0 0 0 0 0 9 0 0\ncpu0 91 0 0 0 0 0 0 10 0 0\ncpu1 61 0 0 0 0 0 0 40 0 0\nintr 5\n";
        let share = share(&processors(before), &processors(after));
        assert!((share - 0.4).abs() < 1e-9, "{share}");
    }

    #[test]
    fn the_first_calm_measurement_counts_or_the_calmest() {
        let measured = |shares: &[f64]| {
            let mut shares = shares.iter().copied().zip(0..);
            first_calm(3, || {
                let (share, number) = shares.next().expect("no more tries than these");
                Ok((number, share))
            })
            .unwrap()
        };
        assert_eq!(measured(&[0.01]), 0);
        assert_eq!(measured(&[0.3, 0.02]), 1);
        assert_eq!(measured(&[0.3, 0.1, 0.2]), 1);
    }
}
