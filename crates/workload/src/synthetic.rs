//! Traces made from a law of sizes, `sizes:LAW`: what clients would request of a server of files of
//! such sizes.
//!
//! For questions about sizes, such as how much a gain depends on their tail. The files are the
//! law's quantiles in the middles of even steps, so they follow it as closely as so many files can,
//! and the same law is the same files everywhere. Each request asks for any of them alike; requests
//! come as a Poisson process.

use crate::rng::Rng;
use crate::sizes::Distribution;
use crate::trace::{Object, Trace, TraceRequest};

const FILES: u32 = 2000;
const REQUESTS: usize = 40_000;
/// Together the files may take so much of a disk, bytes.
const ALL_BYTES_MAX: u64 = 4_000_000_000;
/// Names the random stream of the requests.
const PURPOSE: u64 = 0x7369_0001;
const SEED: u64 = 1;

/// The trace called `name`, with requests that have sizes of `law` in bytes; a mistake in words
/// where files of such sizes cannot be served.
pub fn trace(name: &str, law: &Distribution) -> Result<Trace, String> {
    let size_bytes = |file: u32| {
        law.quantile((f64::from(file) + 0.5) / f64::from(FILES))
            .round()
    };
    let all_bytes: f64 = (0..FILES).map(size_bytes).sum();
    if size_bytes(0) < 1.0 {
        return Err("the smallest file is smaller than a byte; sizes are in bytes".into());
    }
    if all_bytes > ALL_BYTES_MAX as f64 {
        return Err(format!("{FILES} files of these sizes take more than 4 GB"));
    }
    let objects = (0..FILES)
        .map(|id| Object {
            id,
            size_bytes: size_bytes(id) as u64,
            ext: "bin".into(),
        })
        .collect();
    let mut rng = Rng::new(SEED, PURPOSE);
    let mut time_s = 0.0;
    let requests = (0..REQUESTS).map(|_| {
        time_s += rng.exponential();
        TraceRequest {
            time_s,
            object: rng.below(FILES.into()) as u32,
            client: 0,
        }
    });
    Ok(Trace {
        name: name.into(),
        requests: requests.collect(),
        objects,
        dropped_zero_rows: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(law: &str) -> Result<Trace, String> {
        trace("t", &law.parse().unwrap())
    }

    #[test]
    fn requests_have_the_sizes_of_the_law() {
        let trace = of("exp:mean=12000").unwrap();
        let sizes = trace.requests.iter();
        let sizes: Vec<f64> = sizes
            .map(|request| trace.object_of(request).size_bytes as f64)
            .collect();
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        let above =
            sizes.iter().filter(|size| **size > 36_000.0).count() as f64 / sizes.len() as f64;
        assert!((mean / 12_000.0 - 1.0).abs() < 0.02, "{mean}");
        assert!((above / (-3.0f64).exp() - 1.0).abs() < 0.1, "{above}");
        assert!(trace.requests.is_sorted_by(|a, b| a.time_s <= b.time_s));
        let same = of("det:mean=5000").unwrap();
        assert!(same.objects.iter().all(|object| object.size_bytes == 5000));
    }

    #[test]
    fn sizes_that_cannot_be_served_are_refused() {
        assert!(
            of("exp:mean=1")
                .unwrap_err()
                .contains("smaller than a byte")
        );
        assert!(of("det:mean=1e9").unwrap_err().contains("4 GB"));
    }
}
