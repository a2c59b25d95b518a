//! Which worker of a server the processor goes to first, where each works on one request.
//!
//! A worker that waits for a request stands on the top level, so that the next request starts first
//! without a decision. With the processor time it has used since then it falls to the levels below:
//! least attained service, in three steps with bounds learned from the requests themselves.
//! One that has waited for a processor too long goes before all for a moment.
//!
//! Where requests of the same method and path have used the like before, their history says on which
//! level the next one begins, and what it is worth by what it has used ([`History`]).
//!
//! Readings of workers come in as values, with the time; levels and the time of the next look go
//! out. [`RunWait`] is Suranauwarat and Taniguchi's rule (2001), there to be measured.

mod begins;
mod bounds;
mod history;
mod law;
mod order;
mod profile;
mod reading;
mod run_wait;
mod shadow;
mod worker;

pub use bounds::{Bounds, LEVEL_COUNT};
pub use history::{History, HistoryFigures, KINDS_MAX, RequestKind, Start};
pub use order::{Next, Order, Rule, Settings};
pub use reading::{Doing, Ended, Reading};
pub use run_wait::{MOST_CHANGES_KEPT, PERIOD_NS, RunWait};
pub use shadow::{Finished, Means, Shadow};
