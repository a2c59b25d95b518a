//! Secrets that the database is asked for.

use super::document::Group;
use super::ini::ImportError;
use super::translation::Translation;

const KEYS: [&str; 3] = ["auth_user", "auth_query", "auth_dbname"];

impl Translation<'_> {
    /// `[auth_query]`: one for all databases.
    pub fn auth_query(&mut self) -> Result<(), ImportError> {
        let [user, query, database] = KEYS.map(|key| self.everywhere(key));
        let Some(user) = user else {
            for key in &KEYS[1..] {
                if self.source.get(key).is_some() {
                    let why = "without auth_user nobody is asked";
                    self.leave_out(Group::AuthQuery, key, why);
                }
            }
            return Ok(());
        };
        self.document.table(Group::AuthQuery, "[auth_query]");
        self.document.text(Group::AuthQuery, "user", &user);
        if let Some(query) = query {
            self.document.text(Group::AuthQuery, "query", &query);
        }
        if let Some(database) = database {
            self.document.text(Group::AuthQuery, "database", &database);
        }
        Ok(())
    }

    /// What holds for all databases: because it is said once, or of each of them.
    pub fn everywhere(&self, key: &str) -> Option<String> {
        let of_all = self.source.get(key).map(|setting| setting.value.as_str());
        let mut values = self
            .source
            .databases
            .iter()
            .map(|entry| entry.get(key).or(of_all));
        let first = match values.next() {
            Some(first) => first,
            None => return of_all.map(str::to_owned),
        };
        let is_same = values.all(|value| value == first);
        let value = if is_same { first } else { of_all };
        value.map(str::to_owned)
    }
}
