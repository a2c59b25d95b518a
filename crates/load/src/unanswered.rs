//! Requests without an answer, and whether they may be sent again.
//!
//! A client that sends a request again while the server may have acted on it does its work twice.
//! So only a request of an idempotent method goes out again on a guess (RFC 9110, section 9.2.2),
//! and once; any other one only where it is certain that the server did not act on it (RFC 9113,
//! section 8.7). Each that goes out again is counted.

use crate::failure::Failure;

/// Whether a request may be sent again on another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// It has not been sent yet.
    Unsent,
    /// The server says that it did not act on it.
    Unread,
    /// The server may have acted on it: only if its method is idempotent.
    IfIdempotent,
    /// The same would happen again.
    Never,
}

/// A request without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// Why.
    pub failure: Failure,
    /// What may be done.
    pub again: Again,
}

impl From<Failure> for Unanswered {
    /// As far as the failure alone says.
    fn from(failure: Failure) -> Unanswered {
        let again = match failure {
            Failure::ClosedBeforeResponse => Again::IfIdempotent,
            _ => Again::Never,
        };
        Unanswered { failure, again }
    }
}

impl Unanswered {
    /// The same of a request that may be sent again as `again` says.
    pub fn with(self, again: Again) -> Unanswered {
        Unanswered { again, ..self }
    }

    /// Whether a request whose method is idempotent, or not, may go out again.
    pub fn may_go_again(self, is_idempotent: bool) -> bool {
        match self.again {
            Again::Unsent | Again::Unread => true,
            Again::IfIdempotent => is_idempotent,
            Again::Never => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_nothing_goes_out_again_on_a_guess() {
        let closed = Unanswered::from(Failure::ClosedBeforeResponse);
        assert!(closed.may_go_again(true) && !closed.may_go_again(false));
        for again in [Again::Unsent, Again::Unread] {
            assert!(closed.with(again).may_go_again(false));
        }
        for failure in [Failure::Reset, Failure::Late, Failure::Refused] {
            assert!(!Unanswered::from(failure).may_go_again(true));
        }
    }
}
