//! What bounds a class: how many of its jobs may be inside.

use crate::{Misconfigured, Spanned};
use std::num::NonZeroUsize;

/// What one class says.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClassBounds<'a> {
    /// The most of its jobs inside at a time.
    pub inside_max: Option<&'a Spanned<NonZeroUsize>>,
}

impl ClassBounds<'_> {
    /// That its cap, which the file calls `key`, may be reached where `limit` jobs may be inside:
    /// that of `limit_key`.
    pub fn check_cap(&self, key: &str, limit: usize, limit_key: &str) -> Result<(), Misconfigured> {
        match self.inside_max {
            Some(cap) if cap.get_ref().get() > limit => {
                let words = format!(
                    "there are never more than {limit} inside ({limit_key}); write at most that, or leave it out"
                );
                Err(Misconfigured::at(cap, key, words))
            }
            _ => Ok(()),
        }
    }
}
