//! Statements prepared by the protocol: what the client calls them, and what they are called on the
//! server connection.

use super::expected::{Described, Expected};
use super::{NO_STATEMENT, Rewriter, is_ours};
use crate::parameters;
use crate::session::Unnamed;
use crate::sql::{self, Tie};
use crate::statements::{Refused, ServerStatement, Statement};
use crate::wire::{
    FrontendMessage, Piece, STATEMENT_BYTES_MAX, Target, write_close_statement,
    write_describe_statement, write_parse, write_renamed_parse,
};
use bytes::BytesMut;
use std::borrow::Cow;
use std::sync::Arc;

/// A statement that stands in for one where the name is taken.
pub(super) const STAND_IN: &str = "sooner_~";
/// No text and no parameters, as they stand in a Parse.
const EMPTY: [u8; 3] = [0, 0, 0];

impl Rewriter<'_> {
    /// A client's Parse.
    pub(super) fn parse(
        &mut self,
        piece: &Piece<'_>,
        name: &[u8],
        rest: &[u8],
        out: &mut BytesMut,
    ) {
        let text_end = rest.iter().position(|byte| *byte == 0);
        let text = &rest[..text_end.unwrap_or(rest.len())];
        self.count(|named| named.by_clients += u64::from(!name.is_empty()));
        let text = self.read(text);
        let is_new = self.client.statements.named(name).is_err();
        let has_sql_names = self.client.ties.contains(Tie::PreparedBySql);
        let is_raw = has_sql_names && is_new && !name.is_empty() && !is_ours(name);
        // However much of a longer one is there.
        let is_long = !piece.is_last || piece.body().len() > STATEMENT_BYTES_MAX;
        if is_raw || is_long {
            return self.pass_on_parse(piece, name, &text, out);
        }
        let statement = self.statement(name, rest, text);
        if !self.client.statements.has_room(name, &statement) {
            return self.pass_on_parse(piece, name, statement.read(), out);
        }
        let names_statements = statement.effects().names_statements;
        let before = self.client.statements.named(b"").ok().cloned();
        match self.client.statements.prepare(name, statement.clone()) {
            Ok(()) if name.is_empty() => {
                self.push_unnamed(before);
                self.server.unnamed = Unnamed::Known(statement);
                write_parse(out, b"", rest);
            }
            Ok(()) => {
                self.make_room(&statement, statement.number(), out);
                self.push_parsed(Some(statement.number()), Some(name), true);
                write_parse(out, &statement.server_name(), rest);
                // What one that names others returns depends on what they are then.
                self.undescribed = Some(statement).filter(|_| !names_statements);
            }
            Err(Refused::Exists | Refused::Unknown) => {
                // The server says that it is taken, unless it finds something worse.
                let stand_in = self.stand_in(0, out);
                self.expected
                    .push_back(Expected::StandsFor(0, name.to_vec()));
                self.push_parsed(None, None, true);
                write_parse(out, stand_in.as_bytes(), rest);
            }
        }
    }

    /// The statement that a client's Parse makes: `rest` stands behind its name, and begins with
    /// what is read as `text`.
    fn statement(&mut self, name: &[u8], rest: &[u8], text: Cow<'_, [u8]>) -> Arc<Statement> {
        let effects = Self::effects_when_executed(&text);
        // What it means here it may not mean elsewhere.
        let is_own = effects.names_statements
            || self.client.is_apart()
            || self.has_local_settings
            || self.is_context_open;
        let statement = if name.is_empty() || is_own {
            self.all.borrow_mut().own(rest)
        } else {
            let settings = parameters::parse_context(self.server);
            self.all.borrow_mut().share(&settings, rest)
        };
        statement.note_effects(effects);
        self.note_context(&statement);
        if let Cow::Owned(text) = text {
            statement.note_read(text);
        }
        statement
    }

    /// A statement that is too long to be kept, one of too many, or one of a client that has names
    /// in the server itself: it is this connection's. With a name it ties its client for as long as
    /// the server has it, without one until it is bound.
    fn pass_on_parse(&mut self, piece: &Piece<'_>, name: &[u8], text: &[u8], out: &mut BytesMut) {
        self.note_prepared_here(name, &sql::session_changes(text));
        if name.is_empty() {
            let before = self.client.statements.named(b"").ok().cloned();
            self.push_unnamed(before);
            let number = self.all.borrow_mut().next_number();
            self.client.statements.pass_on_unnamed(number);
            self.server.unnamed = Unnamed::PassedOn(number);
            out.extend_from_slice(piece.bytes);
            return;
        }
        self.note_read(text);
        if !self.client.ties.contains(Tie::PreparedBySql) {
            self.note_tie(Tie::PreparedUnkept);
        }
        self.push_parsed(None, None, true);
        if is_ours(name) {
            write_renamed_parse(out, piece.bytes, name, &escaped(name));
        } else {
            out.extend_from_slice(piece.bytes);
        }
    }

    /// What the client has prepared is described, so that it can be used on other connections: by
    /// the client itself where it does so at once.
    pub(super) fn describe_what_was_prepared(
        &mut self,
        next: Option<&FrontendMessage<'_>>,
        out: &mut BytesMut,
    ) {
        let Some(statement) = self.undescribed.take() else {
            return;
        };
        let is_it = |name: &[u8]| self.client.statements.named(name) == Ok(&statement);
        let is_described =
            matches!(next, Some(FrontendMessage::Describe(Target::Statement, name)) if is_it(name));
        if !is_described {
            self.describe(statement, false, out);
        }
    }

    fn describe(&mut self, statement: Arc<Statement>, is_check: bool, out: &mut BytesMut) {
        let is_unnamed = is_check && self.client.statements.named(b"") == Ok(&statement);
        if is_unnamed {
            write_describe_statement(out, b"")
        } else {
            write_describe_statement(out, &statement.server_name())
        }
        self.push(Expected::Described(Described {
            statement: Some(statement),
            is_shown: false,
            is_check,
        }));
    }

    /// The name on the server connection of what the client calls `name`; `None` where the server's
    /// answer to what was written decides. What the client does not have it does not reach.
    pub(super) fn ready(&mut self, name: &[u8], out: &mut BytesMut) -> Option<Vec<u8>> {
        let statement = match self.client.statements.named(name) {
            Ok(statement) => statement.clone(),
            Err(_) => return Some(self.unknown(name, out)),
        };
        if name.is_empty() {
            self.ready_unnamed(statement, out)
        } else {
            self.ready_statement(&statement, out)
        }
    }

    fn unknown(&mut self, name: &[u8], out: &mut BytesMut) -> Vec<u8> {
        if is_ours(name) {
            return escaped(name);
        }
        if name.is_empty() && !self.has_passed_on() {
            self.client.statements.close(b"");
            write_close_statement(out, b"");
            self.push(Expected::ClosedHidden(None));
            self.server.unnamed = Unnamed::Absent;
        }
        name.to_vec()
    }

    /// As [`Self::ready`], of a statement with a name.
    pub(super) fn ready_statement(
        &mut self,
        statement: &Arc<Statement>,
        out: &mut BytesMut,
    ) -> Option<Vec<u8>> {
        if self.awaited == Some(statement.number()) {
            return None;
        }
        if self
            .changed
            .take_if(|number| *number == statement.number())
            .is_some()
        {
            write_close_statement(out, &statement.server_name());
            self.push(Expected::ClosedHidden(None));
            self.says_changed = true;
            return Some(statement.server_name());
        }
        if let Some(known) = self.server.statements.find(statement) {
            let known = known.number();
            self.server.statements.touch(known);
            return Some(crate::statements::server_name(known));
        }
        let now = self.all.borrow().made();
        self.make_room(statement, now, out);
        let switch = self.context_switch(statement);
        if let Some(switch) = &switch {
            self.run_own(&switch.there, &switch.names, out);
        }
        self.push_parsed(Some(statement.number()), None, false);
        write_parse(out, &statement.server_name(), &statement.parse_rest());
        // By the same settings as the first time: names of columns are in an encoding.
        self.await_description(statement.clone(), out);
        if let Some(switch) = &switch {
            self.run_own(&switch.back, &switch.names, out);
        }
        self.hurry(out);
        None
    }

    fn ready_unnamed(&mut self, statement: Arc<Statement>, out: &mut BytesMut) -> Option<Vec<u8>> {
        let is_there = self.has_unnamed(Some(&statement));
        if self.awaited == Some(statement.number()) {
            return None;
        }
        if self
            .changed
            .take_if(|number| *number == statement.number())
            .is_some()
        {
            write_close_statement(out, b"");
            self.push(Expected::ClosedHidden(None));
            self.server.unnamed = Unnamed::Absent;
            self.says_changed = true;
            return Some(Vec::new());
        }
        if is_there {
            return Some(Vec::new());
        }
        let switch = self.context_switch(&statement);
        if let Some(switch) = &switch {
            self.run_own(&switch.there, &switch.names, out);
        }
        self.push_parsed(None, None, false);
        write_parse(out, b"", &statement.parse_rest());
        self.server.unnamed = Unnamed::Known(statement.clone());
        let is_described = statement.description().is_some();
        if is_described {
            self.await_description(statement, out);
        }
        if let Some(switch) = &switch {
            self.run_own(&switch.back, &switch.names, out);
        }
        if !is_described {
            return Some(Vec::new());
        }
        self.hurry(out);
        None
    }

    /// Whether the server connection knows this statement without a name.
    fn has_unnamed(&self, statement: Option<&Arc<Statement>>) -> bool {
        match &self.server.unnamed {
            Unnamed::Known(there) => statement == Some(there),
            _ => false,
        }
    }

    /// Whether the server connection has the client's statement without a name that is not kept.
    fn has_passed_on(&self) -> bool {
        match &self.server.unnamed {
            Unnamed::PassedOn(there) => self.client.statements.passed_on() == Some(*there),
            Unnamed::Absent | Unnamed::Known(_) => false,
        }
    }

    fn await_description(&mut self, statement: Arc<Statement>, out: &mut BytesMut) {
        self.awaited = Some(statement.number());
        self.describe(statement, true, out);
    }

    /// Notes that a statement is prepared, and closes what has to go for it.
    fn make_room(&mut self, statement: &Arc<Statement>, parsed_at: u64, out: &mut BytesMut) {
        self.count(|named| named.at_servers += 1);
        let settings = parameters::parse_context(self.server);
        let closed = self.server.statements.insert(ServerStatement {
            statement: statement.clone(),
            parsed_at,
            is_shared: !self.is_context_open && statement.text().is_shared_under(&settings),
        });
        for known in closed {
            write_close_statement(out, &known.statement.server_name());
            self.push(Expected::ClosedHidden(Some(known)));
        }
    }

    /// What is described in place of a statement without rows that cannot be prepared here, because
    /// the transaction has failed: PostgreSQL describes it all the same where it is prepared.
    pub(super) fn stand_in_to_describe(
        &mut self,
        name: &[u8],
        out: &mut BytesMut,
    ) -> Option<Vec<u8>> {
        if self.pipeline.has_failed() != Some(true) {
            return None;
        }
        let statement = self.absent_without_rows(name)?.clone();
        let types = match statement.description() {
            Some(description) => [b"\0", description.parameters()].concat(),
            None => statement.types().to_vec(),
        };
        Some(self.stand_in_of(0, &types, out).into_bytes())
    }

    /// The client's statement of this name, if the server connection lacks it, it returns no rows
    /// and it cannot be prepared in a transaction that has failed.
    pub(super) fn absent_without_rows(&self, name: &[u8]) -> Option<&Arc<Statement>> {
        let statement = self.client.statements.named(name).ok()?;
        let names_statements = statement.effects().names_statements;
        let has_rows = match statement.description() {
            Some(description) => description.has_columns(),
            None => !names_statements || self.executes_own(statement),
        };
        let is_here = match name {
            b"" => self.has_unnamed(Some(statement)),
            _ => self.server.statements.find(statement).is_some(),
        };
        let mut words = statement.first_words().iter();
        // PREPARE that names a statement ends none.
        let can_be_prepared = !names_statements && words.any(|word| sql::ends_transaction(word));
        (!has_rows && !is_here && !can_be_prepared).then_some(statement)
    }

    /// Prepares an empty statement, which is never refused; its name.
    pub(super) fn stand_in(&mut self, index: usize, out: &mut BytesMut) -> String {
        self.stand_in_of(index, &EMPTY, out)
    }

    /// As [`Self::stand_in`], with this behind its name in the Parse.
    pub(super) fn stand_in_of(&mut self, index: usize, rest: &[u8], out: &mut BytesMut) -> String {
        let name = format!("{STAND_IN}{index}");
        write_close_statement(out, name.as_bytes());
        self.push(Expected::ClosedHidden(None));
        self.push_parsed(None, None, false);
        write_parse(out, name.as_bytes(), rest);
        name
    }

    /// A Parse of the client's without a name, before which it had this one.
    fn push_unnamed(&mut self, before: Option<Arc<Statement>>) {
        self.push(Expected::Parsed {
            number: None,
            name: Some(Vec::new()),
            is_before_there: self.has_unnamed(before.as_ref()),
            before,
            is_shown: true,
        });
    }

    pub(super) fn push_parsed(&mut self, number: Option<u64>, name: Option<&[u8]>, is_shown: bool) {
        self.push(Expected::Parsed {
            number,
            name: name.map(<[u8]>::to_vec),
            before: None,
            is_before_there: false,
            is_shown,
        });
    }

    /// A client's Close.
    pub(super) fn close(
        &mut self,
        piece: &Piece<'_>,
        target: Target,
        name: &[u8],
        out: &mut BytesMut,
    ) {
        let had = match target {
            Target::Statement => self.client.statements.close(name),
            Target::Portal => None,
        };
        let is_statement = target == Target::Statement;
        let mut known = None;
        match &had {
            Some(statement) if !name.is_empty() => {
                known = self.server.statements.forget_own(statement.number());
                match &known {
                    Some(_) => write_close_statement(out, &statement.server_name()),
                    // Other clients may need it.
                    None => write_close_statement(out, NO_STATEMENT),
                }
            }
            None if is_statement && is_ours(name) => write_close_statement(out, &escaped(name)),
            _ => out.extend_from_slice(piece.bytes),
        }
        if is_statement && name.is_empty() {
            self.server.unnamed = Unnamed::Absent;
        } else if is_statement && had.is_none() {
            self.note_deallocated();
        }
        let had = had.map(|statement| (name.to_vec(), statement));
        self.push(Expected::Closed { had, known });
    }
}

/// A client's name that looks like one of ours, as the server knows it: no statement of ours has
/// it.
pub(super) fn escaped(name: &[u8]) -> Vec<u8> {
    let (ours, rest) = name.split_at(super::OURS.len());
    [ours, b"!", rest].concat()
}
