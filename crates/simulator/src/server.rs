//! Servers: what is done with the jobs that are present. Each does one unit of work in one unit of
//! time, or, where it is several, that much in all.

use sooner_policy::{Job, JobId, Path, Time};

mod attained;
mod attained_by_several;
mod hybrid;
mod limited;
mod ranked;
mod scheduled;
mod sharing;

pub use attained::Attained;
pub use attained_by_several::AttainedBySeveral;
pub use hybrid::Hybrid;
pub use limited::Limited;
pub use ranked::Ranked;
pub use scheduled::Scheduled;
pub use sharing::Sharing;

/// The least whole number that is not less, and not 0; `f64::ceil` is a call where the processor's
/// instruction may not be used.
fn whole_above(time: f64) -> u64 {
    let whole = time as u64;
    (whole + u64::from((whole as f64) < time)).max(1)
}

/// A job as a server sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Its name; the least that no job present has.
    pub slot: u32,
    /// What it really takes, in units of work; at least 1.
    pub size: u64,
    /// What it is thought to take.
    pub expected: u64,
    /// Its class; 0 goes first, where classes are told apart.
    pub class: u8,
}

impl Incoming {
    /// What an order is told of it: the `sequence`-th to come, at `now`, thought to take `size`.
    fn job(&self, sequence: u64, size: u64, now: u64) -> Job {
        Job {
            id: JobId(sequence),
            size: Some(size),
            attained: 0,
            path: Path::default(),
            arrived_at: Time::from_ns(now),
            sequence,
            tag: 0,
        }
    }
}

/// Jobs that are served; between two calls nothing happens but the passing of the time that
/// [`advance`](Self::advance) says.
pub trait Server {
    /// A job comes in.
    fn arrive(&mut self, job: Incoming, now: u64);

    /// The longest time that may pass before something happens here by itself; none while idle.
    fn until_event(&mut self) -> Option<u64>;

    /// So much time passes, up to `now`: no more than [`until_event`](Self::until_event) says.
    /// Calls `done` with the slot of every job that is finished.
    fn advance(&mut self, time: u64, now: u64, done: &mut impl FnMut(u32));
}
