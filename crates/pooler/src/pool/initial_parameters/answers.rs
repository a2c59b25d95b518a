//! What servers report to clients that ask for settings of which only a server knows what it
//! reports: kept for the next client that asks for the same.

use crate::pool::Owner;
use sooner_admission::SecondChance;
use sooner_postgres::parameters::{Parameters, RequestedParameters};
use std::sync::Arc;

/// Clients choose what they ask for. So there are no more answers than this,
pub const ANSWERS_MAX: usize = 512;
/// and none has more bytes, its question included.
const ANSWER_BYTES_MAX: usize = 4096;

/// By owner and question.
pub struct Answers(SecondChance<Answer, Arc<[u8]>>);

#[derive(Clone)]
struct Answer {
    /// Of the initial parameters under which it was given.
    version: u64,
    reported: Parameters,
}

impl Default for Answers {
    fn default() -> Self {
        Self(SecondChance::of_keys(ANSWERS_MAX))
    }
}

impl Answers {
    /// What a client of this owner that asks for this is told, if that is known since the initial
    /// parameters are of this version.
    pub fn get(
        &mut self,
        owner: &Owner,
        requested: &RequestedParameters,
        version: u64,
    ) -> Option<Parameters> {
        let answer = self.0.get(&key(owner, requested)[..])?;
        (answer.version == version).then(|| requested.reported_like(&answer.reported))
    }

    /// A client of this owner that asks for this is told that; what is too long is not kept.
    pub fn keep(
        &mut self,
        owner: &Owner,
        requested: &RequestedParameters,
        version: u64,
        reported: &Parameters,
    ) {
        let key = key(owner, requested);
        let texts = reported
            .iter()
            .map(|(name, value)| name.len() + value.len());
        if key.len() + texts.sum::<usize>() > ANSWER_BYTES_MAX {
            return;
        }
        let answer = Answer {
            version,
            reported: reported.clone(),
        };
        let (kept, _) = self.0.entry(&key[..], || answer.clone());
        *kept = answer;
    }
}

/// No name has a zero.
fn key(owner: &Owner, requested: &RequestedParameters) -> Vec<u8> {
    let names = [&*owner.user, &*owner.database, owner.database_there()];
    let mut key = names.join("\0").into_bytes();
    key.push(0);
    key.extend(requested.question());
    key
}
