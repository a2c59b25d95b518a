//! A client's turn on a server connection, as messages: what of each side goes to the other, and what is put in or left out.
//!
//! Statements prepared by name are the only thing that is changed on the way. On the server connection they have names of ours, because clients
//! choose the same names for different statements. Where a statement is used that the connection does not know it is prepared first, and the
//! answer to that left out. Where a client prepares what the connection knows, a statement that nobody has is closed instead, which a server answers as
//! soon and in its place in the order (and does not answer when something before it failed), and the answer becomes "prepared". Every
//! mistake, like a statement that does not exist, is left to the server to say.

mod from_server;
mod pending;
mod seen;
mod state;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;

use crate::said::{Said, said};
use crate::settings;
use crate::statements::{Refused, Statement, Statements};
use crate::turn::{OutOfStep, Sent, Turn};
use crate::wire::{
    FrontendMessage, Malformed, Part, Piece, Target, write_bind, write_close_statement,
    write_describe_statement, write_parse, write_sync,
};

pub use state::{ClientState, ServerState, Settings, Unnamed};

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
    /// To the Close of a probe.
    Probe,
    /// The end of its cycle.
    ProbeEnd,
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

/// Messages of one client that may be unanswered.
const FATES_MAX: usize = 1 << 16;
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
    /// Whether the rest of a message of the server is left out.
    skips: bool,
    /// Whether the server's last error was that it ends the session (57P01 and its like).
    has_said_goodbye: bool,
    /// Whether something failed because it was in the way of others (SQLSTATE class 40).
    has_conflicted: bool,
    /// Whether SET LOCAL was said.
    has_local_settings: bool,
    /// Whether RESET ALL was.
    says_reset_all: bool,
    /// Whether the last command that is done was it, or some other RESET behind it.
    has_reset: bool,
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
            skips: false,
            has_said_goodbye: false,
            has_conflicted: false,
            has_local_settings: false,
            says_reset_all: false,
            has_reset: false,
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
        if piece.part == Part::More {
            out.extend_from_slice(piece.bytes);
            return Ok(());
        }
        if self.fates.len() >= FATES_MAX {
            let words = "too many messages without an answer";
            return Err(ExchangeError::Client(Malformed(words)));
        }
        let message = FrontendMessage::read(piece.tag, piece.body(), piece.is_last)
            .map_err(ExchangeError::Client)?;
        match message {
            FrontendMessage::Parse { name, rest } => self.parse(piece, name, rest, out),
            FrontendMessage::Bind {
                portal,
                statement,
                names_bytes,
            } => {
                self.turn.sent(Sent::Extended);
                self.see_again(statement);
                let known = self.known(statement, out);
                write_bind(out, piece.bytes, portal, &known, names_bytes);
            }
            FrontendMessage::Describe(Target::Statement, name) => {
                self.turn.sent(Sent::Extended);
                let known = self.known(name, out);
                write_describe_statement(out, &known);
            }
            FrontendMessage::Close(target, name) => self.close(piece, target, name, out),
            FrontendMessage::Terminate => self.is_left = true,
            FrontendMessage::Password(_) => {
                let words = "a password that nobody asked for";
                return Err(ExchangeError::Client(Malformed(words)));
            }
            other => {
                self.note(&other);
                out.extend_from_slice(piece.bytes);
                if matches!(other, FrontendMessage::Sync) && self.turn.wants_probe() {
                    self.probe(out);
                }
            }
        }
        Ok(())
    }

    /// Asks the server for an answer that can be told from all others.
    fn probe(&mut self, out: &mut BytesMut) {
        write_close_statement(out, NOBODYS);
        write_sync(out);
        self.turn.sent(Sent::Probe);
        self.fates.extend([Fate::Probe, Fate::ProbeEnd]);
    }

    /// What is passed on as it is.
    fn note(&mut self, message: &FrontendMessage<'_>) {
        let sent = match message {
            FrontendMessage::Query(sql) => {
                self.see(sql);
                // A query takes the place of the statement without a name.
                self.client.statements.close(b"");
                self.server.unnamed = Unnamed::Nobodys;
                Sent::Cycle
            }
            FrontendMessage::FunctionCall => {
                // A number does not say what the function leaves behind.
                self.client.pinned_by.get_or_insert("a function call");
                Sent::Cycle
            }
            FrontendMessage::Sync => Sent::Sync,
            FrontendMessage::CopyDone | FrontendMessage::CopyFail => Sent::CopyEnd,
            FrontendMessage::CopyData | FrontendMessage::Flush => return,
            _ => Sent::Extended,
        };
        if self.turn.sent(sent) {
            self.fates.push_back(Fate::Cycle);
        }
    }

    fn parse(&mut self, piece: &Piece<'_>, name: &[u8], rest: &[u8], out: &mut BytesMut) {
        self.turn.sent(Sent::Extended);
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
            _ if self.client.pinned_by.is_some() || self.has_local_settings => {
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
            self.fates.push_back(Fate::ClosedUnseen(Some(closed)));
        }
        match name {
            _ if before.prepare => {
                self.push_parsed(Some(statement.number()), name, name.is_some());
                write_parse(out, &statement.server_name(), &statement.parse_rest);
            }
            Some(_) if self.turn.has_failed() => {
                // A Close would be done even now: this is refused, unless the transaction has come to its end meanwhile.
                self.push_parsed(None, name, true);
                write_parse(out, NOBODYS, &statement.parse_rest);
                self.fates.push_back(Fate::ClosedUnseen(None));
                write_close_statement(out, NOBODYS);
            }
            Some(name) => {
                let name = name.to_vec();
                self.fates.push_back(Fate::ClosedAsParsed { name });
                write_close_statement(out, NOBODYS);
            }
            None => {}
        }
    }

    fn push_parsed(&mut self, number: Option<u64>, name: Option<&[u8]>, is_shown: bool) {
        self.fates.push_back(Fate::Parsed {
            number,
            name: name.map(<[u8]>::to_vec),
            is_shown,
        });
    }

    fn close(&mut self, piece: &Piece<'_>, target: Target, name: &[u8], out: &mut BytesMut) {
        self.turn.sent(Sent::Extended);
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
        self.fates.push_back(Fate::Closed(had));
    }
}

#[cfg(test)]
mod tests;
