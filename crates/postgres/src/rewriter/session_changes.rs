//! What a client's commands leave behind, noted when they pass: at once what is a text, and each
//! time that it is bound what was prepared.

use super::{OURS, Rewriter};
use crate::parameters::{self, is_strings};
use crate::sql::{self, Encoding, SessionChange, Tie};
use crate::statements::{Statement, TextEffects};
use crate::wire::parameter_of_bind;
use std::borrow::Cow;
use std::sync::Arc;

/// What is noted as the reason where a setting cannot be followed.
const UNREADABLE_NAME: &str = "a setting with a computed name";
const MANY_SETTINGS: &str = "many settings, or long ones";
const MANY_EXECUTED: &str = "many commands that EXECUTE runs";
/// What is executed may execute others: so many are followed for one message.
const EXECUTED_MAX: usize = 64;
/// What a backslash means decides what is seen of a command.
const STRINGS: &str = "standard_conforming_strings";
/// So does which bytes are one character.
const ENCODING: &str = "client_encoding";

const SEARCH_PATH: &[u8] = b"search_path";

impl Rewriter<'_> {
    /// A text as it reads with standard_conforming_strings on, in an encoding that has no ASCII
    /// inside its characters; its bytes stand where they stood. Where an answer decides how the
    /// server reads it, and it makes a difference, its client is tied.
    pub(super) fn read<'t>(&mut self, sql: &'t [u8]) -> Cow<'t, [u8]> {
        if !sql.is_ascii()
            && self.is_context_open
            && self.client.has_named_encoding
            && sql::depends_on_encoding(sql)
        {
            self.pin(ENCODING);
        }
        let sql = self.without_ascii_inside(sql);
        if !sql.contains(&b'\\') {
            return sql;
        }
        let has_escapes = self.has_escapes();
        let may_be_other = has_escapes || self.client.has_named_strings;
        if self.is_context_open && may_be_other && sql::depends_on_backslash(&sql) {
            self.pin(STRINGS);
        }
        match sql {
            sql if !has_escapes => sql,
            Cow::Borrowed(sql) => sql::with_letters(sql),
            Cow::Owned(sql) => Cow::Owned(sql::with_letters(&sql).into_owned()),
        }
    }

    /// A text or a name in the client's encoding without what only looks like ASCII in it.
    fn without_ascii_inside<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        if text.is_ascii() {
            return Cow::Borrowed(text);
        }
        sql::without_ascii_inside(text, self.encoding())
    }

    /// The encoding in which the client's texts come, by what the server has reported.
    pub(super) fn encoding(&self) -> Encoding {
        parameters::encoding::of_texts(&self.server.reported)
    }

    /// Whether a backslash takes the next byte, by what the server has reported.
    pub(super) fn has_escapes(&self) -> bool {
        parameters::has_escapes(&self.server.reported)
    }

    /// Notes what a command leaves behind.
    pub(super) fn note_session_changes(&mut self, sql: &[u8]) {
        let sql = self.read(sql);
        self.note_read(&sql);
    }

    /// The same of a text that has been [`Self::read`].
    pub(super) fn note_read(&mut self, sql: &[u8]) {
        self.note_text(sql, b"", &mut 0);
    }

    /// What a text says that has been [`Self::read`], with so many `executed` before.
    fn note_text(&mut self, sql: &[u8], bind: &[u8], executed: &mut usize) {
        match sql::session_class(sql) {
            Some(word) => self.note_session_class(word),
            None => self.note_changes(&sql::session_changes(sql), bind, executed),
        }
    }

    fn note_changes(&mut self, changes: &[SessionChange<'_>], bind: &[u8], executed: &mut usize) {
        for change in changes {
            self.note_change(change, bind, executed);
        }
    }

    /// What executing a text that is prepared may do: that is seen when it is bound.
    pub(super) fn effects_when_executed(sql: &[u8]) -> TextEffects {
        let changes_session =
            sql::session_class(sql).is_some() || !sql::session_changes(sql).is_empty();
        TextEffects {
            changes_session,
            // Each command that names one changes the session, or may.
            names_statements: changes_session
                && sql::may_name_statements(sql)
                && !sql::statement_names(sql).is_empty(),
        }
    }

    /// What was prepared once leaves the same behind each time that it is executed; `by_sql` is its
    /// text with names of ours, where it has some, and `bind` what stands behind the names of a
    /// Bind.
    pub(super) fn note_executed(
        &mut self,
        name: &[u8],
        statement: Option<&Arc<Statement>>,
        by_sql: Option<&[u8]>,
        bind: &[u8],
    ) {
        match statement {
            Some(statement) if statement.effects().changes_session => {
                let by_sql = by_sql.map(|sql| self.read(sql));
                self.note_text(by_sql.as_deref().unwrap_or(statement.read()), bind, &mut 0);
            }
            Some(_) => {}
            None => {
                self.client.statements.note_bound(name);
                self.note_executed_here(name, bind, &mut 0);
            }
        }
    }

    /// EXECUTE in SQL: as if what it names were bound, with parameters that are not read.
    fn note_executed_by_name(&mut self, name: &[u8], executed: &mut usize) {
        let statement = self.executed(name);
        let changes_session = statement.as_ref().map_or_else(
            || !self.client.prepared_here.of(name).is_empty(),
            |statement| statement.effects().changes_session,
        );
        if !changes_session {
            return;
        }
        if *executed == EXECUTED_MAX {
            return self.pin(MANY_EXECUTED);
        }
        *executed += 1;
        match statement {
            Some(statement) => self.note_text(statement.read(), b"", executed),
            None => self.note_executed_here(name, b"", executed),
        }
    }

    /// What EXECUTE names: by our name where that was put in, else by the client's.
    fn executed(&self, name: &[u8]) -> Option<Arc<Statement>> {
        let known = match number_of(name) {
            Some(number) => self.server.statements.numbered(number),
            None => self.client.statements.named(name).ok(),
        };
        known.cloned()
    }

    /// As [`Self::note_executed`], of a statement that only this server connection knows.
    fn note_executed_here(&mut self, name: &[u8], bind: &[u8], executed: &mut usize) {
        let name = self.without_ascii_inside(name);
        let changes = self.client.prepared_here.of(&name).to_vec();
        self.note_changes(&changes, bind, executed);
    }

    /// What a statement that only this server connection knows leaves behind each time that it is
    /// executed.
    pub(super) fn note_prepared_here(&mut self, name: &[u8], changes: &[SessionChange<'_>]) {
        // By the name that the text of an EXECUTE has when it is read.
        let name = self.without_ascii_inside(name);
        let mut changes = changes.iter();
        if !changes.all(|change| self.client.prepared_here.add(&name, change)) {
            self.pin(MANY_SETTINGS);
        }
    }

    fn note_session_class(&mut self, word: Option<String>) {
        self.says_class = Some(word);
        parameters::hide_session_class(self.server);
    }

    fn note_change(
        &mut self,
        session_changes: &SessionChange<'_>,
        bind: &[u8],
        executed: &mut usize,
    ) {
        match session_changes {
            SessionChange::Parameter {
                name,
                value,
                may_be_local,
            } => self.note_parameter(name, value.as_deref(), *may_be_local),
            SessionChange::Reset(name) if parameters::is_momentary(name) => {}
            SessionChange::Reset(name) => {
                self.note_named(name);
                self.client.changes.has_reset = true;
                self.mark_changed(name, true);
                self.client.changes.note_reset(name);
            }
            SessionChange::BoundName {
                number,
                may_be_local,
            } => match parameter_of_bind(bind, *number) {
                Some(name) => {
                    self.note_parameter(&name.to_ascii_lowercase(), None, *may_be_local);
                }
                None => self.pin(UNREADABLE_NAME),
            },
            SessionChange::ComputedName => self.pin(UNREADABLE_NAME),
            SessionChange::Tie(tie) => self.note_tie(*tie),
            SessionChange::Untie(Tie::PreparedBySql) => self.note_deallocated(),
            SessionChange::Untie(tie) => self.note_untied(*tie),
            SessionChange::Library => self.pin("LOAD"),
            SessionChange::ResetAll => self.note_reset_all(),
            SessionChange::SetLocal(name) => {
                self.has_local_settings = true;
                match name {
                    Some(name) => {
                        self.note_named(name);
                        self.client.changes.note_local(name);
                    }
                    None => self.note_any_named(),
                }
            }
            SessionChange::DeallocateAll => {
                self.forgets = true;
                self.note_deallocated();
            }
            SessionChange::DiscardAll => {
                self.forgets = true;
                self.note_any_named();
            }
            SessionChange::Executes(name) => self.note_executed_by_name(name, executed),
            SessionChange::Prepared(name, change) => {
                self.note_prepared_here(name, std::slice::from_ref(change));
            }
        }
    }

    /// A setting may not be what the server has reported.
    fn note_named(&mut self, name: &[u8]) {
        self.client.has_named_strings |= is_strings(name);
        self.client.has_named_encoding |= name == ENCODING.as_bytes();
        self.is_context_open |= parameters::is_of_parse_context(name);
    }

    /// Any may not be.
    fn note_any_named(&mut self) {
        self.client.has_named_strings = true;
        self.client.has_named_encoding = true;
        self.is_context_open = true;
    }

    fn note_reset_all(&mut self) {
        self.note_any_named();
        self.client.changes.has_reset = true;
        self.says_class = Some(None);
        // Reported ones as well: where one has been set to what new sessions have, the server
        // reports no change.
        let reported = self.server.reported.keys();
        let reported = reported.filter(|name| parameters::is_tracked(&self.server.reported, name));
        let known = self
            .server
            .unreported
            .keys()
            .chain(self.client.unreported.keys());
        let known = known.chain(reported).map(|name| name.to_ascii_lowercase());
        let known: Vec<Vec<u8>> = known.collect();
        for name in known {
            self.mark_changed(&name, true);
            self.client.changes.note_reset(&name);
        }
    }

    pub(super) fn note_tie(&mut self, tie: Tie) {
        self.client.note_tie(tie);
        self.server.has_used_temporary |= tie == Tie::Temporary;
    }

    /// A statement that only this server connection knows may be gone.
    pub(super) fn note_deallocated(&mut self) {
        self.note_untied(Tie::PreparedBySql);
        self.note_untied(Tie::PreparedUnkept);
    }

    fn note_untied(&mut self, tie: Tie) {
        if self.client.ties.contains(tie) {
            self.client.changes.ties.insert(tie);
        }
    }

    fn note_parameter(&mut self, name: &[u8], value: Option<&[u8]>, may_be_local: bool) {
        if parameters::is_momentary(name) {
            return;
        }
        self.note_named(name);
        if may_be_local {
            self.has_local_settings = true;
            self.client.changes.note_either(name, value);
        } else {
            self.client.changes.note_set(name);
        }
        // Also where it is another when the turn is over.
        if name == SEARCH_PATH && value.is_some_and(parameters::is_temporary_path) {
            self.note_tie(Tie::Temporary);
        }
        if is_strings(name) {
            let is_on = value.is_some_and(parameters::is_on);
            if !is_on {
                self.pin(STRINGS);
            }
            return;
        }
        if name == sql::SESSION_CLASS.as_bytes() {
            return parameters::hide_session_class(self.server);
        }
        // A value that is not seen may be NULL, which is RESET.
        if value.is_none() && parameters::is_tracked(&self.server.reported, name) {
            self.client.changes.has_reset = true;
            return self.mark_changed(name, true);
        }
        // What the server reports follows the client, and what stays as it is needs no question;
        // but who a session is also ends the role that it has taken.
        let is_same = value.is_some()
            && name != parameters::ROLES[0]
            && self.client.unreported.get(name).map(Vec::as_slice) == value;
        let is_asked = self.client.changes.parameters.contains_key(name);
        if !parameters::is_tracked(&self.server.reported, name) && (!is_same || is_asked) {
            self.mark_changed(name, false);
        }
    }

    /// The gate is to ask for the value of a setting when the turn is over, unless the setting is
    /// its own.
    pub(super) fn mark_changed(&mut self, name: &[u8], is_reset: bool) {
        // Who a session is decides whether it has taken a role.
        if name == parameters::ROLES[0] {
            self.mark_changed(parameters::ROLES[1], is_reset);
        }
        let is_ours = is_strings(name) || name == sql::SESSION_CLASS.as_bytes();
        if !is_ours && !self.client.changes.add(name, is_reset) {
            self.pin(MANY_SETTINGS);
        }
    }

    fn pin(&mut self, reason: &'static str) {
        self.client.pinned_by.get_or_insert(reason);
    }
}

/// The number of the statement that has this name on server connections.
fn number_of(name: &[u8]) -> Option<u64> {
    let digits = name.strip_prefix(OURS)?;
    str::from_utf8(digits).ok()?.parse().ok()
}
