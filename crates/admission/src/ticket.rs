//! What the owner of a job keeps of it.

use crate::predict::Prediction;
use crate::subject::Subject;
use sooner_policy::JobId;
use std::sync::Arc;

/// A job that has arrived and not left: its owner keeps it and hands it back.
#[derive(Debug)]
pub struct Ticket {
    pub(crate) job: JobId,
    pub(crate) class: u8,
    pub(crate) subject: Arc<Subject>,
    pub(crate) prediction: Option<Prediction>,
    pub(crate) came_ns: i64,
    pub(crate) waited_ns: u64,
}

impl Ticket {
    /// The number of the job.
    pub fn job(&self) -> JobId {
        self.job
    }

    /// What was known of it when it came.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// How long it was expected to take when it came; `None` while nothing was known.
    pub fn prediction(&self) -> Option<Prediction> {
        self.prediction
    }

    /// How long it had waited elsewhere when it came, ns.
    pub fn waited_ns(&self) -> u64 {
        self.waited_ns
    }
}
