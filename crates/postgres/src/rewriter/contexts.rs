//! What a text means where the gate prepares it once more: as it was when its client prepared it,
//! whatever the client has set since.
//!
//! PostgreSQL reads constants when a text is prepared, by the settings of that moment. So where the
//! client has other ones now, the gate sets the first ones before its Parse and the others behind
//! it, in the same batch and for the transaction only, which leaves what the session has set.

use super::Rewriter;
use super::expected::Expected;
use crate::parameters::{ContextSwitch, ParseContext, depends_on_context};
use crate::pipeline::Sent;
use crate::statements::Statement;
use crate::wire::{write_close_portal, write_run};
use bytes::BytesMut;
use std::sync::Arc;

/// The number of the stand-in that runs commands of the gate's own; a text of 8 KB has fewer names.
const OWN: usize = 9998;
/// Behind the text of a Parse: it declares no types.
const NO_TYPES: &[u8] = b"\0\0\0";
/// First words of what reads its constants when it is prepared, and not when it runs; none before a
/// parenthesis.
const ANALYSED: [&[u8]; 10] = [
    b"", b"select", b"insert", b"update", b"delete", b"merge", b"with", b"values", b"explain",
    b"declare",
];

impl Rewriter<'_> {
    /// Notes under which settings the client prepares a statement. Behind a change in the same
    /// batch they are not known.
    pub(super) fn note_context(&mut self, statement: &Statement) {
        if self.is_context_open || !depends_on_context(statement.sql()) {
            return;
        }
        let reported = &self.server.reported;
        let known = self.client.context.take();
        let context = known.filter(|context| context.is_of(reported));
        let context = context.unwrap_or_else(|| Arc::new(ParseContext::of(reported)));
        statement.note_context(context.clone());
        self.client.context = Some(context);
    }

    /// What gives the server connection the settings under which a statement was prepared, and
    /// takes them back, where it has others now.
    pub(super) fn context_switch(&self, statement: &Statement) -> Option<ContextSwitch> {
        let context = statement.context()?;
        let is_known = !self.is_context_open && self.pipeline.has_failed() != Some(true);
        // From PostgreSQL 18 on a query behind an Execute is a part of its batch, and does not
        // commit.
        if self.is_in_query || !is_known || context.is_of(&self.server.reported) {
            return None;
        }
        let is_analysed = |word: &Vec<u8>| {
            let mut known = ANALYSED.iter();
            known.any(|known| word.eq_ignore_ascii_case(known))
        };
        // Commands of other kinds may have to be the first of a transaction, or the only one.
        let are_analysed = statement.first_words().iter().all(is_analysed);
        let switch = context.switch_from(&self.server.reported);
        switch.filter(|_| are_analysed)
    }

    /// Has the server run a command of the gate's own, within the batch.
    pub(super) fn run_own(&mut self, sql: &str, names: &[Vec<u8>], out: &mut BytesMut) {
        let rest = [sql.as_bytes(), NO_TYPES].concat();
        let name = self.stand_in_of(OWN, &rest, out);
        self.close_portal(&name, out);
        write_run(out, name.as_bytes());
        self.pipeline.sent(Sent::OwnBind, 0);
        self.pipeline.sent(Sent::OwnExecute, 0);
        self.close_portal(&name, out);
        // What the session has reset is not what the transaction has.
        for name in names {
            self.client.changes.note_local(name);
        }
    }

    fn close_portal(&mut self, name: &str, out: &mut BytesMut) {
        write_close_portal(out, name.as_bytes());
        self.push(Expected::ClosedHidden(None));
    }
}
