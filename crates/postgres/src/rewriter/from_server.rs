//! The server's side of a turn: what was believed when something was passed on becomes known, or is
//! taken back.

use super::commits::Effects;
use super::expected::{Described, Expected};
use super::{RewriteError, Rewriter};
use crate::parameters;
use crate::pipeline::{AnswerTo, Answered, OutOfStep, Sent};
use crate::session::{PossibleChanges, Ties, Unnamed};
use crate::statements::Description;
use crate::wire::{BackendMessage, Part, Piece, TransactionStatus, columns, is_fatal};
use bytes::BytesMut;

impl Rewriter<'_> {
    /// Takes a piece from the server; what goes to the client is written to `out`.
    pub fn from_server(
        &mut self,
        piece: &Piece<'_>,
        out: &mut BytesMut,
    ) -> Result<(), RewriteError> {
        self.check();
        if piece.part == Part::First {
            self.is_flushed = matches!(piece.tag, b'Z' | b'E' | b'N' | b'G' | b'W');
            let message =
                BackendMessage::read(piece.tag, piece.body()).map_err(RewriteError::Server)?;
            if piece.tag == b'E' {
                self.has_said_goodbye = is_fatal(piece.body());
            }
            // Before what failed is taken back, and with it the names.
            let words = self.in_clients_words(piece);
            let answered_before = self.pipeline.answered_count();
            let is_own_row = piece.tag == b'D' && self.pipeline.runs_own();
            self.skips = !self.is_shown(message, piece)? || is_own_row;
            self.note_flushed(answered_before);
            if let Some(words) = words.filter(|_| !self.skips) {
                out.extend_from_slice(&words);
                self.skips = true;
            }
        }
        if !self.skips {
            out.extend_from_slice(piece.bytes);
        }
        Ok(())
    }

    /// Whether the client is to see a message, of which this is the first piece.
    fn is_shown(
        &mut self,
        message: BackendMessage<'_>,
        piece: &Piece<'_>,
    ) -> Result<bool, RewriteError> {
        match message {
            BackendMessage::Ready(status) => return self.end_cycle(status),
            BackendMessage::ParseComplete => {
                self.pipeline.answered(Answered::Parsed)?;
                match self.take_answered() {
                    Some(Expected::Parsed { is_shown, .. }) => return Ok(is_shown),
                    _ => return Err(OutOfStep.into()),
                }
            }
            BackendMessage::CloseComplete => {
                if self.pipeline.answered(Answered::Closed)? == AnswerTo::Probe {
                    return Ok(false);
                }
                match self.take_answered() {
                    Some(Expected::Closed { .. }) => {}
                    Some(Expected::ClosedHidden(_)) => return Ok(false),
                    _ => return Err(OutOfStep.into()),
                }
            }
            BackendMessage::BindComplete => {
                return Ok(self.pipeline.answered(Answered::Bound)? != AnswerTo::Gate);
            }
            BackendMessage::Parameters(_) | BackendMessage::Columns(_) | BackendMessage::NoRows => {
                return self.read_description(message, piece.is_last);
            }
            BackendMessage::Executed => drop(self.pipeline.answered(Answered::Executed)?),
            BackendMessage::Error(code) => {
                self.has_conflicted |= code.is_some_and(|code| code.starts_with(b"40"));
                self.server.is_tainted |= self.is_about_known(code, piece);
                self.fail()?;
            }
            BackendMessage::CopyIn | BackendMessage::CopyBoth => {
                self.pipeline.answered(Answered::CopyIn)?;
            }
            BackendMessage::ParameterStatus(setting) => {
                let (name, value) = (setting.name.to_vec(), setting.value.to_vec());
                // It may be as new sessions have it, and not as the client's first packet does.
                if self.client.changes.has_reset {
                    self.mark_changed(&name.to_ascii_lowercase(), true);
                }
                // From PostgreSQL 18 on.
                if name == b"search_path" {
                    self.client.note_path(parameters::is_temporary_path(&value));
                }
                self.server.reported.insert(name.clone(), value.clone());
                self.client.reported.insert(name, value);
            }
            BackendMessage::CommandComplete(tag) => {
                if self.pipeline.answered(Answered::Executed)? == AnswerTo::Gate {
                    return Ok(false);
                }
                self.complete(tag);
            }
            _ => {}
        }
        Ok(true)
    }

    /// The end of a cycle; whether the client is to see it.
    fn end_cycle(&mut self, status: TransactionStatus) -> Result<bool, RewriteError> {
        if self.pipeline.answered(Answered::Ready(status))? == AnswerTo::Probe {
            return Ok(false);
        }
        // What is not answered by then was skipped.
        self.undo_to_cycle();
        self.cycles += 1;
        let cycles = self.cycles;
        while self
            .hurried
            .pop_front_if(|hurried| *hurried < cycles)
            .is_some()
        {}
        self.expected
            .pop_front_if(|expected| *expected == Expected::Cycle);
        if self.pipeline.is_answered() {
            self.effects = Effects::none(!self.pipeline.is_idle());
            self.forgets = false;
            self.is_context_open = false;
        }
        if self.pipeline.is_over() {
            self.settle_class();
        }
        Ok(true)
    }

    /// What was said of the client's transactions holds from the next one on.
    fn settle_class(&mut self) {
        if let Some(word) = self.says_class.take() {
            self.client.session_class = word;
        }
    }

    /// A part of a description; whether the client is to see it.
    fn read_description(
        &mut self,
        message: BackendMessage<'_>,
        is_whole: bool,
    ) -> Result<bool, RewriteError> {
        if let BackendMessage::Parameters(parameters) = message {
            let Some(Expected::Described(described)) = self.take_answered() else {
                return Err(OutOfStep.into());
            };
            let is_shown = described.is_shown;
            let parameters = is_whole.then(|| parameters.to_vec());
            self.describing = Some((described, parameters));
            return Ok(is_shown);
        }
        self.pipeline.answered(Answered::Described)?;
        // Without parameters before them they are those of a query or a portal.
        let Some((described, parameters)) = self.describing.take() else {
            return Ok(true);
        };
        let columns = match message {
            BackendMessage::Columns(body) => columns(body).map(Some),
            _ => Ok(None),
        };
        let columns = columns.ok().filter(|_| is_whole);
        let both = columns.zip(parameters);
        let description =
            both.map(|(columns, parameters)| Description::new(&parameters, columns.as_deref()));
        Ok(self.described(described, description))
    }

    /// The server has described a statement; whether the client is to see it.
    fn described(&mut self, described: Described, description: Option<Description>) -> bool {
        let Some(statement) = described.statement else {
            return described.is_shown;
        };
        if described.is_check {
            self.awaited = None;
            if statement.description().is_some() && statement.description() != description.as_ref()
            {
                self.server.statements.forget(statement.number());
                self.changed = Some(statement.number());
                return false;
            }
        }
        if let Some(description) = description {
            statement.note_description(description);
            self.server.statements.described(&statement);
        }
        described.is_shown
    }

    /// Something failed: the server skips to the end of the cycle, so requests until then are not
    /// answered and not done.
    fn fail(&mut self) -> Result<(), RewriteError> {
        let next = self.left_count();
        if self.pipeline.is_next(Sent::Parse)
            && let Some(Expected::Parsed {
                before,
                is_before_there,
                ..
            }) = self.expected.get_mut(next)
        {
            // A Parse that was read has taken the other's place before it failed.
            (*before, *is_before_there) = (None, false);
        }
        self.wants_probe = self.pipeline.answered(Answered::Error)? == AnswerTo::Doubt;
        self.client.changes.has_failed = true;
        self.client.changes.note_undone();
        self.says_class = None;
        self.undo_to_cycle();
        self.describing = None;
        if self.pipeline.skips() {
            self.undescribed = None;
        }
        Ok(())
    }

    /// Takes back what was believed of the messages of the first cycle that are not answered.
    fn undo_to_cycle(&mut self) {
        let (client, server) = (&mut *self.client, &mut *self.server);
        let mut expected = self.expected.iter();
        let end = expected.position(|expected| *expected == Expected::Cycle);
        let end = end.unwrap_or(self.expected.len());
        let has_later_unnamed = self
            .expected
            .range(end..)
            .any(|expected| expected.is_about(b""));
        let undone: Vec<Expected> = self.expected.drain(..end).collect();
        // The last first: what was prepared and closed again was never there.
        for expected in undone.into_iter().rev() {
            match expected {
                Expected::Parsed {
                    number,
                    name,
                    before,
                    is_before_there,
                    is_shown,
                } => {
                    if number.is_some_and(|number| self.awaited == Some(number)) {
                        self.awaited = None;
                    }
                    number.and_then(|number| server.statements.forget(number));
                    match name.as_deref() {
                        // One that a later cycle brings stays, and takes the place of the one
                        // before.
                        Some(b"") if has_later_unnamed => {
                            let mut later = self.expected.iter_mut();
                            let later = later.find(|expected| expected.is_about(b""));
                            later
                                .into_iter()
                                .for_each(|later| later.comes_after(&before));
                        }
                        Some(b"") => {
                            client.statements.close(b"");
                            let there = before.clone().filter(|_| is_before_there);
                            server.unnamed = there.map_or(Unnamed::Absent, Unnamed::Known);
                            before.map(|before| client.statements.prepare(b"", before));
                        }
                        Some(name) => drop(client.statements.close(name)),
                        None if has_later_unnamed || is_shown => {}
                        // What was passed on is no work of a Parse of the gate's own.
                        None if matches!(server.unnamed, Unnamed::PassedOn(_)) => {}
                        None => server.unnamed = Unnamed::Absent,
                    }
                }
                Expected::Described(described) => {
                    let number = described.statement.map(|statement| statement.number());
                    if described.is_check && number == self.awaited {
                        self.awaited = None;
                    }
                }
                Expected::ClosedHidden(closed) => {
                    let known = closed.into_iter();
                    known.for_each(|closed| server.statements.still_knows(closed));
                }
                Expected::Closed { had, known } => {
                    let known = known.into_iter();
                    known.for_each(|closed| server.statements.still_knows(closed));
                    let had = had.filter(|(name, _)| !(name.is_empty() && has_later_unnamed));
                    // That its name is taken again is no failure of the client's.
                    had.map(|(name, statement)| client.statements.prepare(&name, statement));
                }
                Expected::Deallocated(name, statement) => {
                    let _ = client.statements.prepare(&name, statement);
                }
                Expected::StandsFor(..) | Expected::Cycle => {}
            }
        }
    }

    fn complete(&mut self, tag: &[u8]) {
        if tag == b"DEALLOCATE" {
            let left = self.expected.range(..self.left_count());
            let is_gone = |expected: &Expected| matches!(expected, Expected::Deallocated(..));
            let gone = left.into_iter().position(is_gone);
            gone.and_then(|gone| self.expected.remove(gone));
        }
        if tag == b"ROLLBACK" {
            self.client.changes.note_undone();
            self.says_class = None;
        }
        let discards = tag == b"DISCARD ALL";
        if !discards && tag != b"DEALLOCATE ALL" {
            return;
        }
        // Behind it there may be statements already, or what ties the client: only alone it means
        // what it says.
        let is_behind = |expected: &Expected| *expected != Expected::Cycle && !expected.is_left();
        if self.pipeline.unanswered_cycles() > 1 || self.expected.iter().any(is_behind) {
            self.server.is_tainted = true;
            return;
        }
        self.expected.retain(|expected| !expected.is_left());
        self.server.statements.forget_all();
        self.client.statements.close_named();
        if discards {
            self.client.pinned_by = None;
            self.client.ties = Ties::default();
            self.client.prepared_here.clear();
            self.client.changes = PossibleChanges::default();
            self.client.has_discarded = true;
            self.server.unreported.clear();
        }
    }
}
