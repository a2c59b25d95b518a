//! The rank functions, one a file.

use crate::Job;

mod boost;
mod by_age;
mod fair;
mod fcf;
mod fcfs;
mod fsp;
mod las;
mod ljf;
mod nudge;
mod psbs;
mod psjf;
mod sjf;
mod srpt;
mod swift;

pub use boost::Boost;
pub use by_age::{ByAge, Index};
pub use fair::Fair;
pub use fcf::Fcf;
pub use fcfs::Fcfs;
pub use fsp::Fsp;
pub use las::Las;
pub use ljf::{Ljf, Pljf};
pub use nudge::Nudge;
pub use psbs::Psbs;
pub use psjf::Psjf;
pub use sjf::Sjf;
pub use srpt::Srpt;
pub use swift::{Swift, SwiftLevels};

/// What of a job its place among a few kernel bands is cut from, so that they follow a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandMeasure {
    /// The bytes left.
    Remaining,
    /// All its bytes.
    Size,
    /// The bytes it has had.
    Attained,
    /// The time that its own connection takes for what is left ([`Fcf::expected_ns`]).
    ExpectedTime,
    /// One of a few levels ([`SwiftLevels`]).
    Level,
    /// The rank cannot be cut: all share one band.
    Nothing,
}

/// Takes an order as the type that it is.
pub trait OrderUser {
    /// What it makes of it.
    type Output;

    /// Makes it.
    fn with<O: Order + Clone + Send + 'static>(self, order: O) -> Self::Output;
}

/// Gives a job its rank; the lowest is served first.
///
/// A rank may change only for the job that a hook is called with: the queue re-sorts that job and
/// no other.
pub trait Order {
    /// How kernel bands follow the rank.
    const BANDS: BandMeasure = BandMeasure::Nothing;

    /// The rank of a job now.
    fn rank(&self, job: &Job) -> u64;

    /// A job comes in; the order may set its tag.
    fn arrived(&mut self, _job: &mut Job) {}

    /// A job is about to be credited with `amount` of service.
    fn progressed(&mut self, _job: &mut Job, _amount: u64) {}

    /// A blocked job can take service again.
    fn unblocked(&mut self, _job: &mut Job) {}

    /// A job's size has grown by `additional`.
    fn enlarged(&mut self, _job: &mut Job, _additional: u64) {}

    /// A job's path is known better.
    fn observed(&mut self, _job: &mut Job) {}

    /// A job has left.
    fn departed(&mut self, _job: &Job) {}

    /// A job goes to another queue, not done.
    fn moved_out(&mut self, job: &Job) {
        self.departed(job);
    }

    /// A job comes from another queue, with what it has had there; the order may set its tag.
    fn moved_in(&mut self, job: &mut Job) {
        self.arrived(job);
    }

    /// The most service a job may have before the order wants to be asked again.
    fn max_amount(&self, _job: &Job) -> u64 {
        u64::MAX
    }
}
