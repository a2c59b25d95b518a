//! What a command leaves behind, kept longer than its text.

use super::SessionChange;
use std::borrow::Cow;

fn owned(text: &[u8]) -> Cow<'static, [u8]> {
    Cow::Owned(text.to_vec())
}

impl SessionChange<'_> {
    /// Bytes of its names and values.
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::Parameter { name, value, .. } => {
                name.len() + value.as_ref().map_or(0, |value| value.len())
            }
            Self::Reset(name) | Self::SetLocal(Some(name)) | Self::Executes(name) => name.len(),
            Self::Prepared(name, change) => name.len() + change.text_bytes(),
            _ => 0,
        }
    }

    /// The same, to be kept without its text.
    pub fn into_owned(self) -> SessionChange<'static> {
        match self {
            Self::Parameter {
                name,
                value,
                may_be_local,
            } => SessionChange::Parameter {
                name: owned(&name),
                value: value.as_deref().map(owned),
                may_be_local,
            },
            Self::Reset(name) => SessionChange::Reset(owned(&name)),
            Self::BoundName {
                number,
                may_be_local,
            } => SessionChange::BoundName {
                number,
                may_be_local,
            },
            Self::ComputedName => SessionChange::ComputedName,
            Self::Tie(tie) => SessionChange::Tie(tie),
            Self::Untie(tie) => SessionChange::Untie(tie),
            Self::Library => SessionChange::Library,
            Self::ResetAll => SessionChange::ResetAll,
            Self::SetLocal(name) => SessionChange::SetLocal(name.as_deref().map(owned)),
            Self::DeallocateAll => SessionChange::DeallocateAll,
            Self::DiscardAll => SessionChange::DiscardAll,
            Self::Executes(name) => SessionChange::Executes(owned(&name)),
            Self::Prepared(name, change) => {
                SessionChange::Prepared(owned(&name), Box::new(change.into_owned()))
            }
        }
    }
}
