//! Errors in the client's words: the server knows statements by names of ours.

use super::expected::Expected;
use super::prepared::STAND_IN;
use super::{OURS, Rewriter, STATEMENT_ERRORS};
use crate::pipeline::Sent;
use crate::statements::Statement;
use crate::wire::{
    ErrorReport, HEADER_BYTES, Piece, code_of_error, write_error, write_parameter_types,
};
use bytes::BytesMut;

/// A statement was cancelled.
pub const CANCELLED: &[u8] = b"57014";

/// What PostgreSQL says of a statement that has other columns than when it was prepared.
const CHANGED_PLAN: ErrorReport<'_> = ErrorReport {
    severity: "ERROR",
    sqlstate: "0A000",
    message: "cached plan must not change result type",
    hint: None,
    // By which drivers know that preparing it once more helps.
    source: Some(("plancache.c", "RevalidateCachedQuery")),
};

/// What a client is told that had to make room: drivers and frameworks try such a transaction once
/// more.
pub const PREEMPTED: ErrorReport<'_> = ErrorReport {
    severity: "ERROR",
    sqlstate: "40001",
    message: "could not serialize access: a transaction that matters more waited for the locks of this one",
    hint: Some("The transaction might succeed if retried."),
    source: None,
};

impl Rewriter<'_> {
    /// An error as the client is to see it; `None`: as it is.
    pub(super) fn in_clients_words(&mut self, piece: &Piece<'_>) -> Option<BytesMut> {
        if piece.tag != b'E' {
            return None;
        }
        let is_preempted = self.is_preempted;
        if is_preempted && code_of_error(piece.bytes) == CANCELLED {
            self.has_conflicted = true;
            self.is_preempted = false;
            let mut out = BytesMut::new();
            write_error(&mut out, &PREEMPTED);
            return Some(out);
        }
        if std::mem::take(&mut self.says_changed) {
            let mut out = BytesMut::new();
            // PostgreSQL tells the parameters before it looks at the columns.
            if let Some(description) = self.described_next().and_then(Statement::description) {
                write_parameter_types(&mut out, description.parameters());
            }
            write_error(&mut out, &CHANGED_PLAN);
            return Some(out);
        }
        if !piece.is_last {
            return None;
        }
        let renamed = self.renamed(piece.body());
        let body = renamed.as_deref().unwrap_or(piece.body());
        let body = self.with_clients_position(body).or(renamed)?;
        let length = i32::try_from(body.len() + 4).ok()?;
        let mut out = BytesMut::with_capacity(HEADER_BYTES + body.len());
        out.extend_from_slice(b"E");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&body);
        Some(out)
    }

    /// The statement that the client's next answer describes, if it describes one.
    fn described_next(&self) -> Option<&Statement> {
        let next = self.expected.get(self.left_count())?;
        match next {
            Expected::Described(described) if self.pipeline.is_next(Sent::Describe) => described
                .statement
                .as_deref()
                .filter(|_| described.is_shown),
            _ => None,
        }
    }

    /// Whether an error shows that the server connection's statements are not those that are
    /// believed to be there: it is about one of these, or cannot be read. What the client names in
    /// vain is its own mistake.
    pub(super) fn is_about_known(&self, code: Option<&[u8]>, piece: &Piece<'_>) -> bool {
        let Some(code) = code else {
            return true;
        };
        STATEMENT_ERRORS.contains(&code) && (!piece.is_last || self.names_known(piece.body()))
    }

    /// Whether a text has the name of a statement that is believed to be there.
    fn names_known(&self, text: &[u8]) -> bool {
        let ours = text.windows(OURS.len()).enumerate();
        let mut ours = ours.filter(|(_, bytes)| *bytes == OURS);
        ours.any(|(at, _)| {
            let behind = &text[at + OURS.len()..];
            let digits = behind.iter().take_while(|byte| byte.is_ascii_digit());
            let known = number(&behind[..digits.count()]);
            known.is_some_and(|number| self.known_by(number).is_some())
        })
    }

    /// A text with the client's names instead of ours; `None` where there are none.
    fn renamed(&self, body: &[u8]) -> Option<Vec<u8>> {
        let (mut renamed, mut rest) = (Vec::new(), body);
        while let Some(at) = rest.windows(OURS.len()).position(|bytes| bytes == OURS) {
            let (before, name) = rest.split_at(at);
            renamed.extend_from_slice(before);
            let (client_name, ours_bytes) = self.client_name(name);
            renamed.extend_from_slice(&client_name);
            rest = &name[ours_bytes..];
        }
        let is_changed = rest.len() < body.len();
        renamed.extend_from_slice(rest);
        is_changed.then_some(renamed)
    }

    /// What the client calls the statement named at the beginning of `text`, and how long that name
    /// is.
    fn client_name(&self, text: &[u8]) -> (Vec<u8>, usize) {
        let behind = &text[OURS.len()..];
        let is_digit = |byte: &&u8| byte.is_ascii_digit();
        if behind.first() == Some(&b'!') {
            return (OURS.to_vec(), OURS.len() + 1);
        }
        if text.starts_with(STAND_IN.as_bytes()) {
            let digits = text[STAND_IN.len()..].iter().take_while(is_digit).count();
            let end = STAND_IN.len() + digits;
            return (self.stood_for(&text[STAND_IN.len()..end]), end);
        }
        let digits = behind.iter().take_while(is_digit).count();
        let known = number(&behind[..digits]).and_then(|number| self.known_by(number));
        let name = known.and_then(|known| self.name_of(known));
        let name = name.map(<[u8]>::to_vec);
        let ours_bytes = OURS.len() + digits;
        (
            name.unwrap_or_else(|| text[..ours_bytes].to_vec()),
            ours_bytes,
        )
    }

    /// The client's statement in the place of which this stand-in is: of those that are ready the
    /// last.
    fn stood_for(&self, digits: &[u8]) -> Vec<u8> {
        let index = number(digits).unwrap_or_default();
        let name = |expected: &Expected| match expected {
            Expected::StandsFor(own, name) if *own as u64 == index => Some(name.clone()),
            _ => None,
        };
        let ready = self
            .expected
            .range(..self.left_count())
            .rev()
            .find_map(name);
        let found = ready.or_else(|| self.expected.iter().find_map(name));
        found.unwrap_or_default()
    }

    /// The statement of this number, also where it is closed behind what fails.
    fn known_by(&self, number: u64) -> Option<&Statement> {
        let closed = || {
            self.expected.iter().find_map(|expected| match expected {
                Expected::ClosedHidden(Some(known))
                | Expected::Closed {
                    known: Some(known), ..
                } => Some(&known.statement).filter(|known| known.number() == number),
                _ => None,
            })
        };
        let known = self.server.statements.numbered(number).or_else(closed);
        known.map(|known| &**known)
    }

    /// What the client calls a statement, or has called it before it closed it behind what fails.
    fn name_of(&self, known: &Statement) -> Option<&[u8]> {
        let had = self.expected.iter().filter_map(|expected| match expected {
            Expected::Closed {
                had: Some((name, had)),
                ..
            }
            | Expected::Deallocated(name, had) => Some((name.as_slice(), had)),
            _ => None,
        });
        let mut had = had.filter(|(_, had)| ***had == *known || had.is_equal(known));
        let name = self.client.statements.name_of(known);
        name.or_else(|| had.next().map(|(name, _)| name))
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    str::from_utf8(digits).ok()?.parse().ok()
}
