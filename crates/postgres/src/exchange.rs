//! A client's turn on a server connection, as messages: what of each side goes to the other, and what is put in or left out.
//!
//! Statements prepared by name are the only thing that is changed on the way. On the server connection they have names of ours, because clients
//! choose the same names for different statements. Where a statement is used that the connection does not know it is prepared first, and the
//! answer to that left out. Where a client prepares what the connection knows, a statement that nobody has is closed instead, which a server answers as
//! soon and in its place in the order (and does not answer when something before it failed), and the answer becomes "prepared". Every
//! mistake, like a statement that does not exist, is left to the server to say.

mod asks;
mod copy;
mod effects;
mod from_server;
mod pending;
mod seen;
mod state;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;

use crate::measured::Named;
use crate::said::{Said, said};
use crate::settings;
use crate::statements::{Refused, Statement, Statements};
use crate::turn::{Admission, OutOfStep, Sent, Turn};
use crate::wire::{
    FrontendMessage, HEADER_BYTES, Malformed, Part, Piece, Target, write_bind,
    write_close_statement, write_describe_statement, write_parse,
};

use effects::Effects;

pub use asks::{Asks, ENTRY_BYTES, KEPT_BYTES_MAX, Ties};
pub use state::{ClientState, Login, ServerState, Settings, Unnamed};

/// Closed where something has to be answered and nothing is to be done: numbers begin at 1.
const NOBODYS: &[u8] = b"sooner_0";
/// ParseComplete.
const PARSE_COMPLETE: &[u8] = b"1\0\0\0\x04";

/// What is to become of an answer that says no more than "done".
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// The end of a cycle stands here.
    Cycle,
    /// To Parse: the statement is known from then on.
    Parsed {
        number: Option<u64>,
        /// What the client calls it: not its own if it fails.
        name: Option<Vec<u8>>,
        is_shown: bool,
    },
    /// To Close, which the client has sent; what it had under that name.
    Closed(Option<(Vec<u8>, Arc<Statement>)>),
    /// To Close in the place of Parse.
    ClosedAsParsed { name: Vec<u8> },
    /// To Close of this statement, or of nobody's, which was put in.
    ClosedUnseen(Option<Arc<Statement>>),
}

/// What is kept of a message besides the names in it.
const FATE_BYTES: usize = 64;

impl Fate {
    /// What is kept until it is known.
    fn kept_bytes(&self) -> usize {
        let name = match self {
            Self::Parsed { name, .. } => name.as_deref().unwrap_or_default(),
            Self::ClosedAsParsed { name } | Self::Closed(Some((name, _))) => name,
            _ => b"",
        };
        FATE_BYTES + name.len()
    }
}

/// Why a turn cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    /// The client has sent what is no message.
    #[error("a message is malformed: {0}")]
    Client(Malformed),
    /// The server has.
    #[error("the server's message is malformed: {0}")]
    Server(Malformed),
    /// The server has answered what nobody asked.
    #[error(transparent)]
    OutOfStep(#[from] OutOfStep),
}

/// Whether a name may be one of those that statements have on server connections: no client has one of these.
fn is_ours(name: &[u8]) -> bool {
    name.starts_with(b"sooner_")
}

/// There is no such statement, or one of this name already: what is believed here is wrong, unless the client is.
const STATEMENT_ERRORS: [&[u8]; 2] = [b"26000", b"42P05"];

/// A prepared statement would have other columns than before (among other things).
const CHANGED_PLAN: &[u8] = b"0A000";

/// A turn.
pub struct Exchange<'a> {
    client: &'a mut ClientState,
    server: &'a mut ServerState,
    all: &'a RefCell<Statements>,
    turn: Turn,
    fates: VecDeque<Fate>,
    /// Answered.
    cycles: u64,
    /// Whether the client said that it leaves.
    is_left: bool,
    /// Whether the rest of a message of the client is left out.
    drops: bool,
    /// Whether the rest of a message of the server is left out.
    skips: bool,
    /// Whether a probe is to be sent.
    has_doubt: bool,
    /// What the client's commands since the server was last ready may do.
    effects: Effects,
    /// Whether a portal of this turn may be a COPY.
    may_bind_copy: bool,
    /// Whether the server's last error was that it ends the session (57P01 and its like).
    has_said_goodbye: bool,
    /// Whether something failed because it was in the way of others (SQLSTATE class 40).
    has_conflicted: bool,
    /// Whether SET LOCAL was said.
    has_local_settings: bool,
    /// Whether a command that is not answered may make the server forget every statement.
    forgets: bool,
    /// A word for its transactions that the client has said, or that it takes back; it counts when the turn is over.
    says_class: Option<Option<String>>,
}

impl<'a> Exchange<'a> {
    /// At its beginning.
    pub fn new(
        client: &'a mut ClientState,
        server: &'a mut ServerState,
        all: &'a RefCell<Statements>,
    ) -> Self {
        Self {
            client,
            server,
            all,
            turn: Turn::default(),
            fates: VecDeque::new(),
            cycles: 0,
            is_left: false,
            drops: false,
            skips: false,
            has_doubt: false,
            effects: Effects::default(),
            may_bind_copy: false,
            has_said_goodbye: false,
            has_conflicted: false,
            has_local_settings: false,
            forgets: false,
            says_class: None,
        }
    }

    /// Whether the server connection is free, as far as the protocol goes.
    pub fn is_over(&self) -> bool {
        self.turn.is_over()
    }

    /// Whether the server has answered everything.
    pub fn is_answered(&self) -> bool {
        self.turn.is_answered()
    }

    /// Whether a transaction is open and nothing is asked of it.
    pub fn rests(&self) -> bool {
        !self.turn.is_idle() && self.turn.is_answered()
    }

    /// Whether the client has been told by the server that its session ends.
    pub fn has_said_goodbye(&self) -> bool {
        self.has_said_goodbye
    }

    /// Whether the transaction failed because it was in the way of others: its client will try it again.
    pub fn has_conflicted(&self) -> bool {
        self.has_conflicted
    }

    /// How many commands and their like were answered.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// What the client says of its transaction in what it has sent.
    pub fn said(&self, input: &[u8]) -> Said {
        said(input, &self.client.statements)
    }

    /// Whether the client said that it leaves.
    pub fn is_left(&self) -> bool {
        self.is_left
    }

    /// Takes a piece from the client; what goes to the server is written to `out`.
    pub fn from_client(
        &mut self,
        piece: &Piece<'_>,
        out: &mut BytesMut,
    ) -> Result<(), ExchangeError> {
        if piece.part == Part::First {
            match self.turn.admission(piece.tag) {
                _ if piece.tag == b'X' => self.drops = true,
                Admission::Drop => self.drops = true,
                Admission::Pass | Admission::Ask | Admission::Wait { .. } => self.drops = false,
            }
        }
        self.is_left |= piece.tag == b'X';
        if self.drops {
            return Ok(());
        }
        if piece.part == Part::More {
            out.extend_from_slice(piece.bytes);
            return Ok(());
        }
        let message = match FrontendMessage::read(piece.tag, piece.body(), piece.is_last) {
            Ok(message) => message,
            Err(_) => {
                self.pass_malformed(piece, out);
                return Ok(());
            }
        };
        match message {
            FrontendMessage::Parse { name, rest } => self.parse(piece, name, rest, out),
            FrontendMessage::Bind {
                portal,
                statement,
                names_bytes,
            } => {
                self.see_again(statement, &piece.body()[names_bytes..]);
                self.see_effects(statement);
                self.count(|named| named.bound += u64::from(!statement.is_empty()));
                let known = self.known(statement, out);
                write_bind(out, piece.bytes, portal, &known, names_bytes);
                self.turn.sent(Sent::Bind, 0);
            }
            FrontendMessage::Describe(Target::Statement, name) => {
                let known = self.known(name, out);
                write_describe_statement(out, &known);
                self.turn.sent(Sent::Describe, 0);
            }
            FrontendMessage::Close(target, name) => self.close(piece, target, name, out),
            FrontendMessage::Password(_) => {
                let words = "a password that nobody asked for";
                return Err(ExchangeError::Client(Malformed(words)));
            }
            other => {
                self.note(&other, piece, out);
            }
        }
        Ok(())
    }

    /// What is no message as PostgreSQL understands it: it will say so.
    fn pass_malformed(&mut self, piece: &Piece<'_>, out: &mut BytesMut) {
        out.extend_from_slice(piece.bytes);
        match piece.tag {
            b'P' => self.push_parsed(None, None, true),
            b'C' => self.push(Fate::Closed(None)),
            b'Q' => {
                self.push_cycle(Sent::Query);
                self.turn.may_copy();
            }
            _ => {
                self.turn.sent(Sent::Describe, 0);
            }
        }
    }

    /// Believes in what a message that was sent will do, and keeps what is to become of it.
    fn push(&mut self, fate: Fate) {
        let sent = match &fate {
            Fate::Parsed { .. } => Sent::Parse,
            _ => Sent::Close,
        };
        self.turn.sent(sent, fate.kept_bytes());
        self.fates.push_back(fate);
    }

    /// What is passed on as it is.
    fn note(&mut self, message: &FrontendMessage<'_>, piece: &Piece<'_>, out: &mut BytesMut) {
        out.extend_from_slice(piece.bytes);
        match message {
            FrontendMessage::Query(sql) => {
                self.see(sql);
                // A query takes the place of the statement without a name.
                self.client.statements.close(b"");
                self.server.unnamed = Unnamed::Nobodys;
                let may_copy = self.effects.add_query(sql, piece.is_last);
                self.push_cycle(Sent::Query);
                if may_copy {
                    self.turn.may_copy();
                }
            }
            FrontendMessage::FunctionCall => {
                // A number does not say what the function leaves behind.
                self.client.pinned_by.get_or_insert("a function call");
                self.effects.add_query(b"call", true);
                self.push_cycle(Sent::FunctionCall);
            }
            FrontendMessage::Sync => self.push_cycle(Sent::Sync),
            // One with a body is refused like any other message of the extended protocol.
            FrontendMessage::Flush if piece.bytes.len() > HEADER_BYTES || !piece.is_last => {
                self.turn.sent(Sent::Describe, 0);
            }
            FrontendMessage::Flush => self.turn.flushed(),
            FrontendMessage::CopyDone | FrontendMessage::CopyFail => self.turn.copy_ended(),
            FrontendMessage::CopyData => {}
            FrontendMessage::Execute => {
                self.turn.sent(Sent::Execute, 0);
                if self.may_bind_copy {
                    self.turn.may_copy();
                }
            }
            _ => {
                self.turn.sent(Sent::Describe, 0);
            }
        }
    }

    fn push_cycle(&mut self, sent: Sent) {
        if self.turn.sent(sent, 0) {
            self.fates.push_back(Fate::Cycle);
        }
    }

    fn parse(&mut self, piece: &Piece<'_>, name: &[u8], rest: &[u8], out: &mut BytesMut) {
        self.count(|named| named.by_clients += u64::from(!name.is_empty()));
        let text_end = rest.iter().position(|byte| *byte == 0);
        let text = &rest[..text_end.unwrap_or(rest.len())];
        let leaves_something = self.see_prepared(text);
        if !piece.is_last || !self.client.statements.has_room(name.len() + rest.len()) {
            // Too long to be kept, or too many: it is this connection's, and so is the client. It will not be known when it is executed.
            self.see(text);
            self.client
                .pinned_by
                .get_or_insert("a long statement, or many");
            if name.is_empty() {
                self.client.statements.close(b"");
                self.server.unnamed = Unnamed::PassedOn;
            }
            self.push_parsed(None, None, true);
            out.extend_from_slice(piece.bytes);
            return;
        }
        let statement = match name {
            b"" => self.all.borrow_mut().own(rest),
            // What it means here it may not mean elsewhere.
            _ if self.client.is_apart() || self.has_local_settings => {
                self.all.borrow_mut().own(rest)
            }
            _ => {
                let settings = settings::of_meaning(self.server);
                self.all.borrow_mut().share(&settings, rest)
            }
        };
        statement.note_leaves(leaves_something);
        match self.client.statements.prepare(name, statement.clone()) {
            Ok(()) if name.is_empty() => {
                self.push_parsed(None, Some(name), true);
                self.server.unnamed = Unnamed::Known(statement);
                out.extend_from_slice(piece.bytes);
            }
            Ok(()) => self.prepare(&statement, Some(name), out),
            Err(Refused::Exists | Refused::Unknown) => {
                // The server knows it under our name, and says that it does.
                let known = self.known(name, out);
                self.push_parsed(None, None, true);
                write_parse(out, &known, rest);
            }
        }
    }

    /// The name on the server connection of what the client calls `name`, which it knows when what was written to `out` is done. What the client
    /// does not have it does not reach, whosever it is.
    fn known(&mut self, name: &[u8], out: &mut BytesMut) -> Vec<u8> {
        let statement = match self.client.statements.named(name) {
            Ok(statement) => statement.clone(),
            Err(_) if is_ours(name) => return NOBODYS.to_vec(),
            Err(_) if !name.is_empty() => return name.to_vec(),
            Err(_) => {
                return match self.server.unnamed {
                    Unnamed::PassedOn => Vec::new(),
                    _ => NOBODYS.to_vec(),
                };
            }
        };
        if !name.is_empty() {
            self.prepare(&statement, None, out);
            return statement.server_name();
        }
        let is_there = match &self.server.unnamed {
            Unnamed::Known(there) => Arc::ptr_eq(there, &statement),
            _ => false,
        };
        if !is_there {
            self.push_parsed(None, None, false);
            write_parse(out, b"", &statement.parse_rest);
            self.server.unnamed = Unnamed::Known(statement);
        }
        Vec::new()
    }

    /// Prepares a statement on the server connection if it does not know it; `name` is what the client calls it if it prepares it now.
    fn prepare(&mut self, statement: &Arc<Statement>, name: Option<&[u8]>, out: &mut BytesMut) {
        let before = self.server.statements.use_statement(statement);
        if let Some(closed) = before.close {
            write_close_statement(out, &closed.server_name());
            self.push(Fate::ClosedUnseen(Some(closed)));
        }
        match name {
            _ if before.prepare => {
                self.count(|named| named.at_servers += 1);
                self.push_parsed(Some(statement.number()), name, name.is_some());
                write_parse(out, &statement.server_name(), &statement.parse_rest);
            }
            Some(_) if self.turn.has_failed() => {
                // A Close would be done even now: this is refused, unless the transaction has come to its end meanwhile.
                self.push_parsed(None, name, true);
                write_parse(out, NOBODYS, &statement.parse_rest);
                self.push(Fate::ClosedUnseen(None));
                write_close_statement(out, NOBODYS);
            }
            Some(name) => {
                let name = name.to_vec();
                self.push(Fate::ClosedAsParsed { name });
                write_close_statement(out, NOBODYS);
            }
            None => {}
        }
    }

    fn count(&self, note: impl FnOnce(&mut Named)) {
        let mut named = self.client.named.take();
        note(&mut named);
        self.client.named.set(named);
    }

    fn push_parsed(&mut self, number: Option<u64>, name: Option<&[u8]>, is_shown: bool) {
        self.push(Fate::Parsed {
            number,
            name: name.map(<[u8]>::to_vec),
            is_shown,
        });
    }

    fn close(&mut self, piece: &Piece<'_>, target: Target, name: &[u8], out: &mut BytesMut) {
        let had = match target {
            Target::Statement => self.client.statements.close(name),
            Target::Portal => None,
        };
        let is_others = had.is_some() || (target == Target::Statement && is_ours(name));
        match is_others && !name.is_empty() {
            // Others may need it.
            true => write_close_statement(out, NOBODYS),
            false => out.extend_from_slice(piece.bytes),
        }
        if target == Target::Statement && name.is_empty() {
            self.server.unnamed = Unnamed::Nobodys;
        }
        let had = had.map(|statement| (name.to_vec(), statement));
        self.push(Fate::Closed(had));
    }
}

#[cfg(test)]
mod tests;
