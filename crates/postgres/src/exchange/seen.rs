//! What a client's commands leave behind, noted when they pass: at once what is a text, and each time that it is bound what was prepared.

use super::Exchange;
use crate::settings;
use crate::sql::{self, Leaves};

impl Exchange<'_> {
    /// Notes what a command leaves behind.
    pub(super) fn see(&mut self, sql: &[u8]) {
        if settings::makes_no_difference(&self.server.settings, sql) {
            return;
        }
        match sql::session_class(sql) {
            Some(word) => self.see_class(word),
            None => self.see_leaves(&sql::leaves(sql)),
        }
    }

    /// What is prepared is seen when it comes, but for a word for the gate, which is not said before it is executed. Whether executing it leaves
    /// something behind.
    pub(super) fn see_prepared(&mut self, sql: &[u8]) -> bool {
        if sql::session_class(sql).is_some() {
            return true;
        }
        let leaves = sql::leaves(sql);
        if !settings::makes_no_difference(&self.server.settings, sql) {
            self.see_leaves(&leaves);
        }
        !leaves.is_empty()
    }

    /// What was prepared once leaves the same behind each time that it is executed.
    pub(super) fn see_again(&mut self, name: &[u8]) {
        let statement = self.client.statements.named(name).ok();
        if let Some(statement) = statement.filter(|statement| statement.leaves_something()) {
            let statement = statement.clone();
            self.see(statement.text());
        }
    }

    fn see_class(&mut self, word: Option<String>) {
        self.says_class = Some(word);
        settings::leave_session_class(self.server);
    }

    fn see_leaves(&mut self, all: &[Leaves<'_>]) {
        for leaves in all {
            let keeps = match leaves {
                Leaves::NotListening | Leaves::NoStatements | Leaves::Nothing => false,
                Leaves::Local => {
                    self.has_local_settings = true;
                    false
                }
                Leaves::NoSettings => {
                    self.says_reset_all = true;
                    settings::doubt_extras(self.server);
                    false
                }
                // What the server reports follows the client.
                Leaves::Setting(name) => !settings::follows(&self.server.settings, name),
                _ => true,
            };
            if keeps {
                self.client.pinned_by.get_or_insert(leaves.words());
            }
        }
    }
}
