//! What a client's commands leave behind, noted when they pass: at once what is a text, and each time that it is bound what was prepared.

use std::sync::Arc;

use super::Exchange;
use crate::settings;
use crate::sql::{self, Leaves};
use crate::statements::Statement;
use crate::wire::parameter_of_bind;

/// What is noted as the reason where a setting cannot be followed.
const UNREADABLE_NAME: &str = "a setting whose name is computed";
const MANY_SETTINGS: &str = "many settings, or long ones";
/// What a backslash means decides what is seen of a command.
const STRINGS: &[u8] = b"standard_conforming_strings";

impl Exchange<'_> {
    /// Notes what a command leaves behind.
    pub(super) fn see(&mut self, sql: &[u8]) {
        self.see_bound(sql, b"");
    }

    fn see_bound(&mut self, sql: &[u8], bind: &[u8]) {
        if settings::makes_no_difference(&self.server.settings, sql) {
            return;
        }
        match sql::session_class(sql) {
            Some(word) => self.see_class(word),
            None => sql::leaves(sql)
                .iter()
                .for_each(|leaves| self.see_one(leaves, bind)),
        }
    }

    /// Whether executing what is prepared leaves something behind: that is seen when it is bound.
    pub(super) fn see_prepared(&mut self, sql: &[u8]) -> bool {
        sql::session_class(sql).is_some() || !sql::leaves(sql).is_empty()
    }

    /// What was prepared once leaves the same behind each time that it is executed; `bind` is what
    /// stands behind the names of a Bind.
    pub(super) fn see_again(&mut self, statement: Option<&Arc<Statement>>, bind: &[u8]) {
        if let Some(statement) = statement.filter(|statement| statement.leaves_something()) {
            self.see_bound(statement.sql(), bind);
        }
    }

    fn see_class(&mut self, word: Option<String>) {
        self.says_class = Some(word);
        settings::leave_session_class(self.server);
    }

    fn see_one(&mut self, leaves: &Leaves<'_>, bind: &[u8]) {
        match leaves {
            Leaves::Setting { name, value } => self.see_setting(name, *value),
            Leaves::Default(name) => {
                self.client.asks.has_reset = true;
                self.ask_about(name, true);
            }
            Leaves::Bound(number) => match parameter_of_bind(bind, *number) {
                Some(name) => self.see_setting(&name.to_ascii_lowercase(), None),
                None => self.pin(UNREADABLE_NAME),
            },
            Leaves::Unnamed => self.pin(UNREADABLE_NAME),
            Leaves::Ties(tie) => {
                if self.client.ties.insert(*tie) {
                    self.client.asks.ties.insert(*tie);
                }
            }
            Leaves::Unties(tie) => self.see_end(*tie),
            Leaves::Library => self.pin("LOAD"),
            Leaves::NoSettings => {
                self.client.asks.has_reset = true;
                self.says_class = Some(None);
                // Reported ones as well: where one has been set to what new sessions have, the server reports no change.
                let reported = self.server.settings.keys();
                let reported =
                    reported.filter(|name| settings::follows(&self.server.settings, name));
                let known = self.server.extras.keys().chain(self.client.own.keys());
                let known = known.chain(reported).map(|name| name.to_ascii_lowercase());
                let known: Vec<Vec<u8>> = known.collect();
                known.iter().for_each(|name| self.ask_about(name, true));
            }
            Leaves::Local => self.has_local_settings = true,
            Leaves::NoStatements => {
                self.forgets = true;
                self.see_end(sql::Tie::PreparedBySql);
            }
            Leaves::Nothing => self.forgets = true,
        }
    }

    fn see_end(&mut self, tie: sql::Tie) {
        if self.client.ties.contains(tie) {
            self.client.asks.ties.insert(tie);
        }
    }

    fn see_setting(&mut self, name: &[u8], value: Option<&[u8]>) {
        if name == STRINGS {
            let is_on = value.is_some_and(settings::is_on);
            if !is_on {
                self.pin("standard_conforming_strings");
            }
            return;
        }
        if name == sql::SESSION_CLASS.as_bytes() {
            return settings::leave_session_class(self.server);
        }
        // A value that is not seen may be NULL, which is RESET.
        if value.is_none() && settings::follows(&self.server.settings, name) {
            self.client.asks.has_reset = true;
            return self.ask_about(name, true);
        }
        // What the server reports follows the client, and what stays as it is needs no question.
        let is_same = value.is_some() && self.client.own.get(name).map(Vec::as_slice) == value;
        let is_asked = self.client.asks.settings.contains_key(name);
        if !settings::follows(&self.server.settings, name) && (!is_same || is_asked) {
            self.ask_about(name, false);
        }
    }

    /// The value of a setting is to be asked for when the turn is over, unless it is the gate's.
    pub(super) fn ask_about(&mut self, name: &[u8], is_reset: bool) {
        // Who a session is decides whether it has taken a role.
        if name == settings::ROLES[0] {
            self.ask_about(settings::ROLES[1], is_reset);
        }
        let is_ours = name == STRINGS || name == sql::SESSION_CLASS.as_bytes();
        if !is_ours && !self.client.asks.about(name, is_reset) {
            self.pin(MANY_SETTINGS);
        }
    }

    fn pin(&mut self, reason: &'static str) {
        self.client.pinned_by.get_or_insert(reason);
    }
}
