//! The rank of a job among those of its class, or of its client: the lowest goes first.
//!
//! The queue serves in the imagination, where a job that has had some of its service has not begun.
//! So nothing here goes on to its end, and what a rank goes by is known when the job comes.

use super::Within;
use super::tuning::SharedTuning;
use sooner_policy::order::{Boost, Fcfs, Nudge, Pljf, Srpt};
use sooner_policy::{Job, Order};

/// Ranks count from here, so that a job may count as if it had come before the origin.
const ORIGIN: u64 = 1 << 62;

/// An order that is a rank.
#[derive(Clone)]
pub(crate) enum WithinRank {
    Expected,
    Fcfs,
    Longest,
    Boost(SharedTuning),
    Nudge(SharedTuning),
}

impl WithinRank {
    /// The rank of this order; `None` where it is a ratio that changes with time.
    pub(crate) fn of(within: Within, tuning: &SharedTuning) -> Option<Self> {
        Some(match within {
            Within::Expected => Self::Expected,
            Within::Fcfs | Within::Auto => Self::Fcfs,
            Within::Longest => Self::Longest,
            Within::Boost => Self::Boost(tuning.clone()),
            Within::Nudge => Self::Nudge(tuning.clone()),
            Within::Hrrn => return None,
        })
    }
}

impl Order for WithinRank {
    fn rank(&self, job: &Job) -> u64 {
        match self {
            Self::Expected => Srpt.rank(job),
            Self::Fcfs => Fcfs.rank(job),
            Self::Longest => Pljf.rank(job),
            Self::Boost(_) | Self::Nudge(_) => job.tag,
        }
    }

    fn arrived(&mut self, job: &mut Job) {
        // While nothing is known a job counts as short, which is how one finds out.
        let size = job.size.unwrap_or(1);
        match self {
            Self::Expected | Self::Fcfs | Self::Longest => {}
            Self::Boost(tuning) => {
                let tuning = tuning.get();
                // With several places a job keeps the backend as a whole from less than its time.
                let part = (size / tuning.places.max(1)).max(1);
                let earlier_ns = Boost::new(tuning.boost_scale_ns).earlier_ns(part);
                let came = ORIGIN.saturating_add(job.arrived_at.as_ns());
                job.tag = came.saturating_sub(earlier_ns);
            }
            Self::Nudge(tuning) => {
                let tuning = tuning.get();
                let nudge = Nudge::new(tuning.small_max_ns, tuning.nudge_places);
                job.tag = nudge.rank(&Job {
                    size: Some(size),
                    attained: 0,
                    ..*job
                });
            }
        }
    }
}
