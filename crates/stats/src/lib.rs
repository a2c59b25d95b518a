//! What happened: response time and slowdown by size.
//!
//! A driver (load generator or simulator) keeps one [`Sample`] a request and hands them to
//! [`Run::new`] together with what it knows of the run. The result is the one form in which Sooner
//! reports measurements; docs/json.md names every field with its unit. All figures are exact order
//! statistics of the kept samples: no histogram rounds them, a million samples need about 100 MB.

pub mod by_client;
pub mod by_size;
pub mod ccdf;
pub mod group;
pub mod interarrivals;
pub mod order;
pub mod per_second;
pub mod report;
pub mod run;
pub mod sample;
pub mod summary;

pub use by_client::{ClientGroup, by_client};
pub use by_size::SizeBucket;
pub use ccdf::CcdfPoint;
pub use group::Group;
pub use interarrivals::{GapLaw, Interarrivals};
pub use per_second::Second;
pub use report::{Report, TimeUnit};
pub use run::{FIRST_ERRORS, RequestError, Run, RunFacts, Verdict};
pub use sample::{ErrorKind, Outcome, Sample};

/// Nanoseconds as milliseconds, the unit of every reported time.
fn ms(ns: f64) -> f64 {
    ns / 1e6
}
