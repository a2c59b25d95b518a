//! What is known of a job before it runs.

use sooner_policy::{ClientId, Payer};

/// A job as its likes are found: all that is said of it may tell how long it takes. What is not
/// known is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// What it does: jobs of one kind have the same.
    pub kind: String,
    /// How much of it: the bytes of a body, the words that may be answered. Jobs of one kind count
    /// the same thing.
    pub amount: Option<u64>,
    /// For whom.
    pub client: Option<ClientId>,
    /// What the client has in common with those near it, such as the beginning of its address.
    pub neighbourhood: Option<ClientId>,
    /// Who is charged for what it takes, where those share who wait.
    pub payer: Option<Payer>,
    /// The number of its class where classes have no names; `None`: the one that it has.
    pub plain_class: Option<u8>,
}

impl From<String> for Subject {
    fn from(kind: String) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }
}

impl From<&str> for Subject {
    fn from(kind: &str) -> Self {
        kind.to_owned().into()
    }
}
