//! The client's side of a turn: each message is passed on, changed, left out, or has to be shown
//! again, and what the server will do with it is believed until it answers.

use super::expected::{Described, Expected};
use super::{Forwarded, RewriteError, Rewriter};
use crate::pipeline::{Sent, Verdict};
use crate::wire::{
    FrontendMessage, HEADER_BYTES, Malformed, Part, Piece, Target, write_bind,
    write_describe_statement, write_sync,
};
use bytes::BytesMut;

impl Rewriter<'_> {
    /// Takes a piece from the client; what goes to the server is written to `out`.
    pub fn from_client(
        &mut self,
        piece: &Piece<'_>,
        out: &mut BytesMut,
    ) -> Result<Forwarded, RewriteError> {
        self.check();
        if piece.part == Part::First {
            if self.holds_query && self.pipeline.skips() && ends_cycle(piece.tag) {
                self.give_up_query(out);
                return Ok(Forwarded::Yes);
            }
            self.holds_query &= !ends_cycle(piece.tag);
            match self.pipeline.verdict(piece.tag) {
                _ if piece.tag == b'X' => self.drops = true,
                Verdict::Drop => self.drops = true,
                Verdict::Pass | Verdict::Probe | Verdict::Wait { .. } => self.drops = false,
            }
        }
        self.is_left |= piece.tag == b'X';
        if self.drops {
            return Ok(Forwarded::Yes);
        }
        if piece.part == Part::More {
            out.extend_from_slice(piece.bytes);
            return Ok(Forwarded::Yes);
        }
        match FrontendMessage::read(piece.tag, piece.body(), piece.is_last) {
            Ok(message) => self.take(message, piece, out),
            Err(_) => {
                self.pass_malformed(piece, out);
                Ok(Forwarded::Yes)
            }
        }
    }

    fn take(
        &mut self,
        message: FrontendMessage<'_>,
        piece: &Piece<'_>,
        out: &mut BytesMut,
    ) -> Result<Forwarded, RewriteError> {
        self.describe_what_was_prepared(Some(&message), out);
        let has_text = match &message {
            FrontendMessage::Describe(target, _) => *target == Target::Statement,
            FrontendMessage::Parse { .. } | FrontendMessage::Bind { .. } => true,
            message => matches!(message, FrontendMessage::Query(_)),
        };
        if has_text {
            self.begin_text();
        }
        match message {
            FrontendMessage::Parse { name, rest } => self.parse(piece, name, rest, out),
            FrontendMessage::Bind {
                portal,
                statement,
                names_bytes,
            } => {
                let own = self.client.statements.named(statement).ok().cloned();
                let ready = match &own {
                    Some(own) if own.effects().names_statements => {
                        self.ready_by_sql(statement, own, true, out)
                    }
                    _ => self.ready(statement, out).map(|known| (known, None)),
                };
                let Some((known, by_sql)) = ready else {
                    return Ok(Forwarded::NotYet);
                };
                let bind = &piece.body()[names_bytes..];
                self.note_executed(statement, own.as_ref(), by_sql.as_deref(), bind);
                self.note_commits(own.as_ref());
                self.count(|named| named.bound += u64::from(!statement.is_empty()));
                write_bind(out, piece.bytes, portal, &known, names_bytes);
                self.pipeline.sent(Sent::Bind, 0);
            }
            FrontendMessage::Describe(Target::Statement, name) => {
                let own = self.client.statements.named(name).ok().cloned();
                let (own, naming) = match own {
                    Some(own) if own.effects().names_statements => (None, Some(own)),
                    own => (own, None),
                };
                let stand_in = self.stand_in_to_describe(name, out);
                let known = stand_in.or_else(|| match naming {
                    Some(naming) => Some(self.ready_by_sql(name, &naming, false, out)?.0),
                    None => self.ready(name, out),
                });
                let Some(known) = known else {
                    return Ok(Forwarded::NotYet);
                };
                write_describe_statement(out, &known);
                self.push(Expected::Described(Described {
                    statement: own,
                    is_shown: true,
                    is_check: false,
                }));
            }
            FrontendMessage::Close(target, name) => self.close(piece, target, name, out),
            FrontendMessage::Query(sql) => {
                self.is_in_query = true;
                let forwarded = self.query(piece, sql, out);
                self.is_in_query = false;
                return Ok(forwarded);
            }
            FrontendMessage::Password(_) => {
                let words = "a password that the server did not ask for";
                return Err(RewriteError::Client(Malformed(words)));
            }
            other => self.note(&other, piece, out),
        }
        Ok(Forwarded::Yes)
    }

    /// What a query needs could not be prepared, which its client was told: the server skips to a
    /// Sync.
    fn give_up_query(&mut self, out: &mut BytesMut) {
        self.holds_query = false;
        self.push_cycle(Sent::Sync);
        write_sync(out);
    }

    /// What is no message as PostgreSQL understands it: it will say so.
    fn pass_malformed(&mut self, piece: &Piece<'_>, out: &mut BytesMut) {
        out.extend_from_slice(piece.bytes);
        match piece.tag {
            b'P' => self.push_parsed(None, None, true),
            b'C' => self.push(Expected::Closed {
                had: None,
                known: None,
            }),
            b'Q' => {
                self.push_cycle(Sent::Query);
                self.pipeline.may_copy();
            }
            _ => {
                self.pipeline.sent(Sent::Describe, 0);
            }
        }
    }

    /// What is passed on as it is.
    fn note(&mut self, message: &FrontendMessage<'_>, piece: &Piece<'_>, out: &mut BytesMut) {
        out.extend_from_slice(piece.bytes);
        match message {
            FrontendMessage::FunctionCall => {
                // A number does not say what the function leaves behind.
                self.client.pinned_by.get_or_insert("a function call");
                self.effects.add_query(b"call", true);
                self.push_cycle(Sent::FunctionCall);
            }
            FrontendMessage::Sync => self.push_cycle(Sent::Sync),
            // One with a body is refused like any other message of the extended protocol.
            FrontendMessage::Flush if piece.bytes.len() > HEADER_BYTES || !piece.is_last => {
                self.pipeline.sent(Sent::Describe, 0);
            }
            FrontendMessage::Flush => {
                self.pipeline.flushed();
                self.flushed_count = self.pipeline.sent_count();
                self.is_flushed = true;
            }
            FrontendMessage::CopyDone | FrontendMessage::CopyFail => self.pipeline.copy_ended(),
            FrontendMessage::CopyData => {}
            FrontendMessage::Execute => {
                self.pipeline.sent(Sent::Execute, 0);
                if self.may_bind_copy {
                    self.pipeline.may_copy();
                }
            }
            _ => {
                self.pipeline.sent(Sent::Describe, 0);
            }
        }
    }
}

/// Whether a message of this tag is answered by ReadyForQuery without a Sync.
pub(super) fn ends_cycle(tag: u8) -> bool {
    matches!(tag, b'Q' | b'F')
}
