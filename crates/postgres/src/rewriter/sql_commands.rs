//! Commands in SQL that name prepared statements: EXECUTE, DEALLOCATE and PREPARE share their names
//! with the protocol.
//!
//! A client's names stand for ours on the server connection, so they are replaced in such a
//! command: when it runs, because one that is prepared means what its names mean then. DEALLOCATE
//! of a statement that other clients may need, and PREPARE of a name that is taken, get an empty
//! statement that stands in.

use super::expected::Expected;
use super::positions::Replacements;
use super::prepared::escaped;
use super::{Forwarded, OURS, Rewriter, is_ours};
use crate::pipeline::Sent;
use crate::session::Unnamed;
use crate::sql::{self, StatementName, Uses};
use crate::statements::Statement;
use crate::wire::{Piece, write_query};
use bytes::BytesMut;
use std::sync::Arc;

/// A text with the server connection's names in it.
struct Rewritten {
    sql: Vec<u8>,
    /// What its answers say of the client's statements.
    expected: Vec<Expected>,
    replacements: Replacements,
}

/// What a statement that is named has to be prepared for first.
struct NotYet;

/// The number of the stand-in for a prepared statement that names others; a text of 8 KB has fewer
/// names.
const NAMING: usize = 9999;

impl Rewriter<'_> {
    /// A client's Query.
    pub(super) fn query(&mut self, piece: &Piece<'_>, sql: &[u8], out: &mut BytesMut) -> Forwarded {
        let Ok(rewritten) = self.rewritten(sql, piece.is_last, &Uses::ALL, out) else {
            self.holds_query = true;
            return Forwarded::NotYet;
        };
        // Before what it says itself, which the server does when it has read all of it.
        let read = self.read(sql);
        // By our names: what it executes first it may deallocate then.
        match &rewritten {
            Some(rewritten) => self.note_session_changes(&rewritten.sql),
            None => self.note_read(&read),
        }
        // A query takes the place of the statement without a name.
        self.client.statements.close(b"");
        self.server.unnamed = Unnamed::Absent;
        match rewritten {
            Some(rewritten) => {
                self.expected.extend(rewritten.expected);
                self.begin_replaced_text(rewritten.replacements);
                write_query(out, &rewritten.sql);
            }
            None => out.extend_from_slice(piece.bytes),
        }
        let may_copy = self.effects.add_query(&read, piece.is_last);
        self.push_cycle(Sent::Query);
        if may_copy {
            self.pipeline.may_copy();
        }
        Forwarded::Yes
    }

    /// As [`Self::ready`], of a statement that names others: where one of these is the client's, it
    /// is prepared anew, with their names on the server connection. For a Bind it is `executed`, for
    /// a Describe not. Gives its name there, and the text with the names.
    pub(super) fn ready_by_sql(
        &mut self,
        name: &[u8],
        statement: &Arc<Statement>,
        is_executed: bool,
        out: &mut BytesMut,
    ) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let uses: &[Uses] = if is_executed {
            &Uses::ALL
        } else {
            &[Uses::Execute]
        };
        let Ok(rewritten) = self.rewritten(statement.sql(), true, uses, out) else {
            return None;
        };
        let Some(rewritten) = rewritten else {
            return Some((self.ready(name, out)?, None));
        };
        let sql = rewritten.sql;
        let rest = [&sql, statement.types()].concat();
        let stand_in = self.stand_in_of(NAMING, &rest, out);
        self.begin_replaced_text(rewritten.replacements);
        self.expected.extend(rewritten.expected);
        let stands_for = Expected::StandsFor(NAMING, name.to_vec());
        self.expected.push_back(stands_for);
        Some((stand_in.into_bytes(), Some(sql)))
    }

    /// Whether a prepared EXECUTE is one of a statement that the client has.
    pub(super) fn executes_own(&self, statement: &Statement) -> bool {
        let (sql, read) = (statement.sql(), statement.read());
        let mut names = sql::statement_names(read);
        names.iter_mut().for_each(|name| name.restore(sql, read));
        let mut names = names.iter().filter(|name| name.uses == Uses::Execute);
        names.any(|name| self.client.statements.named(&name.name).is_ok())
    }

    /// A text with the names that the server connection has for this client's statements, where it
    /// uses them so; `None` where there is nothing to replace. The error: the server's answer to
    /// what was written decides.
    fn rewritten(
        &mut self,
        sql: &[u8],
        is_whole: bool,
        uses: &[Uses],
        out: &mut BytesMut,
    ) -> Result<Option<Rewritten>, NotYet> {
        let may_be_named = is_whole
            && (self.client.statements.has_named() || contains(sql, OURS))
            && sql::may_name_statements(sql);
        if !may_be_named {
            return Ok(None);
        }
        let read = self.read(sql);
        let mut names = sql::statement_names(&read);
        names.retain(|name| uses.contains(&name.uses));
        names.iter_mut().for_each(|name| name.restore(sql, &read));
        if names.is_empty() {
            return Ok(None);
        }
        let executed = names.iter().filter(|name| name.uses == Uses::Execute);
        for name in executed {
            let statement = self.client.statements.named(&name.name).ok().cloned();
            let is_ready = |statement| self.ready_statement(&statement, out).is_some();
            if !name.name.is_empty() && !statement.is_none_or(is_ready) {
                return Err(NotYet);
            }
        }
        Ok(self.with_names(sql, &names, out))
    }

    fn with_names(
        &mut self,
        sql: &[u8],
        names: &[StatementName],
        out: &mut BytesMut,
    ) -> Option<Rewritten> {
        let encoding = self.encoding();
        let mut rewritten = Rewritten {
            sql: Vec::with_capacity(sql.len() + 16),
            expected: Vec::new(),
            replacements: Replacements::default(),
        };
        let mut done = 0;
        for (index, name) in names.iter().enumerate() {
            let Some(replacement) = self.replacement(index, name, &mut rewritten.expected, out)
            else {
                continue;
            };
            let (between, clients) = (&sql[done..name.at.start], &sql[name.at.clone()]);
            rewritten.sql.extend_from_slice(between);
            rewritten.sql.extend_from_slice(&replacement);
            rewritten
                .replacements
                .add(encoding, between, &replacement, clients);
            done = name.at.end;
        }
        rewritten.sql.extend_from_slice(&sql[done..]);
        (done > 0).then_some(rewritten)
    }

    /// What stands for a client's name, as it is written in SQL; `None` where that stays as it is.
    fn replacement(
        &mut self,
        index: usize,
        name: &StatementName,
        expected: &mut Vec<Expected>,
        out: &mut BytesMut,
    ) -> Option<Vec<u8>> {
        let statement = self.client.statements.named(&name.name).ok().cloned();
        let statement = statement.filter(|_| !name.name.is_empty());
        let stand_in = match (name.uses, statement) {
            (_, None) if is_ours(&name.name) => return Some(quoted(&escaped(&name.name))),
            (_, None) => return None,
            (Uses::Execute, Some(statement)) => return self.ready_statement(&statement, out),
            (Uses::Deallocate, Some(statement)) => {
                self.client.statements.close(&name.name);
                expected.push(Expected::Deallocated(name.name.clone(), statement));
                self.stand_in(index, out)
            }
            (Uses::Prepare, Some(_)) => {
                expected.push(Expected::StandsFor(index, name.name.clone()));
                self.stand_in(index, out)
            }
        };
        Some(quoted(stand_in.as_bytes()))
    }
}

/// In any case; `word` begins with a letter.
fn contains(sql: &[u8], word: &[u8]) -> bool {
    let is_it =
        |bytes: &[u8]| bytes[0].eq_ignore_ascii_case(&word[0]) && bytes.eq_ignore_ascii_case(word);
    sql.windows(word.len()).any(is_it)
}

fn quoted(name: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in name {
        quoted.extend((*byte == b'"').then_some(b'"'));
        quoted.push(*byte);
    }
    quoted.push(b'"');
    quoted
}
