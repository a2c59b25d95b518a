//! Secrets that the database is asked for.

use crate::document::Group;
use crate::translation::Translation;
use sooner_pooler::config::OWN_DATABASES;

const GROUP: Group = Group::AuthQuery;

const KEYS: [&str; 3] = ["auth_user", "auth_query", "auth_dbname"];

impl Translation<'_> {
    /// `[auth_query]`: one for all databases.
    pub fn auth_query(&mut self) {
        let [user, query, database] = KEYS.map(|key| self.everywhere(key));
        let Some(user) = user else {
            for key in &KEYS[1..] {
                if self.source.get(key).is_some() {
                    let why = "without auth_user nobody is asked";
                    self.leave_out(GROUP, key, why);
                }
            }
            return;
        };
        self.document.table(GROUP, "[auth_query]");
        self.document.text(GROUP, "user", &user);
        match query {
            Some(query) if !query.contains("$1") => {
                let setting = format!("auth_query = {query}");
                let why = "it has no $1, which stands for the user's name";
                self.document.leave_out(GROUP, &setting, why);
            }
            Some(query) => {
                self.document.text(GROUP, "query", &query);
            }
            None => {}
        }
        let is_there = |name: &String| {
            let is_own = OWN_DATABASES.contains(&name.as_str());
            let mut names = self.written.iter();
            !is_own && names.any(|own| own == "*" || own == name)
        };
        match database {
            Some(database) if is_there(&database) => {
                self.document.text(GROUP, "database", &database);
            }
            Some(database) => {
                let setting = format!("auth_dbname = {database}");
                let why = "there is no [[database]] of this name";
                self.document.leave_out(GROUP, &setting, why);
            }
            None => {}
        }
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
