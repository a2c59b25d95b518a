//! An attachment between two lives of its server: it has changed nothing, and still answers.

use std::convert::Infallible;

use super::snapshot::Snapshot;
use crate::control::Control;

/// What answers while the server is waited for.
#[derive(Debug)]
pub struct Waiting {
    control: Control,
    snapshot: Snapshot,
}

impl Waiting {
    /// After a life of the server, of which these are the last figures.
    pub fn after(control: Control, last: Snapshot) -> Waiting {
        let snapshot = Snapshot {
            is_waiting: true,
            workers: 0,
            levels: Default::default(),
            active: 0,
            is_suspended: false,
            weights: Vec::new(),
            ..last
        };
        Waiting { control, snapshot }
    }

    /// Answers each request, without an end; with no server to wait for there is nothing to answer.
    pub async fn answer(waiting: Option<&Waiting>) -> Infallible {
        let Some(Waiting { control, snapshot }) = waiting else {
            return std::future::pending().await;
        };
        loop {
            control.answer(|| Ok(snapshot)).await;
        }
    }
}
