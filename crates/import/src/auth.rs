//! How clients prove who they are, and who may do what in the gate's own database.

use crate::document::Group;
use crate::ini::ImportError;
use crate::rules::Rule;
use crate::translation::Translation;
use crate::values;
use sooner_pooler::config::OWN_DATABASES;

impl Translation<'_> {
    /// `auth`, `users` and the rules.
    pub fn auth(&mut self) -> Result<(), ImportError> {
        let method = self.source.word("auth_type");
        self.write_users_file(method.as_deref());
        if self.source.get("auth_hba_file").is_some() && method.as_deref() != Some("hba") {
            let why = "only auth_type = hba looks at it";
            self.leave_out(Group::Rule, "auth_hba_file", why);
        }
        if let Some("any" | "trust" | "hba") = method.as_deref()
            && self.is_for_socket_alone()
        {
            let why = "it left to unix_socket_mode who may come, and the gate has no such socket \
                file; all are refused until you write who may";
            self.leave_out(Group::Rule, "auth_type", why);
            self.write_rule(&Rule::everybody("reject"));
            return Ok(());
        }
        self.reject_clear_text()?;
        match method.as_deref() {
            None => self.demand_with("PgBouncer's default.", "md5"),
            Some("any") => self.anybody(),
            Some("trust") => self.known_users_only("trust")?,
            Some("cert") => {
                self.check_certificates()?;
                self.known_users_only("certificate")?;
            }
            Some("plain") => self.demand("password"),
            Some("md5") => self.demand("md5"),
            Some("scram-sha-256") => self.demand("scram"),
            Some("hba") => self.hba()?,
            Some("pam" | "ldap") => {
                let why = "the gate asks for passwords by SCRAM; write the users' secrets in a file, users = \"FILE\", or ask the database by [auth_query]";
                self.leave_out(Group::Head, "auth_type", why);
                self.demand("scram");
            }
            Some(_) => {
                let setting = &self.source.settings["auth_type"];
                return Err(setting.at.wrong(format!(
                    "auth_type: {:?} is not a method; use any, trust, plain, md5, scram-sha-256, cert, hba, ldap and pam",
                    setting.value
                )));
            }
        }
        Ok(())
    }

    fn write_users_file(&mut self, method: Option<&str>) {
        let Some(setting) = self.source.get("auth_file") else {
            return;
        };
        if let Some(method @ ("any" | "pam")) = method {
            let why = format!("auth_type = {method} does not look at it");
            self.leave_out(Group::Head, "auth_file", &why);
            return;
        }
        let path = self.files.absolute(&setting.value);
        self.document.text(Group::Head, "users", &path);
    }

    /// The same for all clients: a line where there are no rules, else the last of them.
    fn demand(&mut self, method: &str) {
        if self.must_encrypt() {
            self.write_rule(&Rule::everybody(method));
        } else {
            self.document.text(Group::Head, "auth", method);
        }
    }

    /// The same with a remark above it, wherever it stands.
    fn demand_with(&mut self, words: &str, method: &str) {
        if self.must_encrypt() {
            self.write_rule(&Rule {
                comment: Some(words.into()),
                ..Rule::everybody(method)
            });
        } else {
            self.document.comment(Group::Head, words);
            self.document.text(Group::Head, "auth", method);
        }
    }

    fn anybody(&mut self) {
        let words = "PgBouncer let anybody in as admin, too: those who shall be admins here have to be named.";
        self.document.comment(Group::Head, words);
        self.demand("trust");
    }

    /// A method that asks for no secret is for names that PgBouncer knows: to the gate, all names
    /// are equal.
    fn known_users_only(&mut self, method: &str) -> Result<(), ImportError> {
        if self.asks_for_users() {
            let words = format!(
                "PgBouncer asked the database (auth_user) whether there is such a user; with {method:?} the gate does not."
            );
            self.demand_with(&words, method);
            return Ok(());
        }
        let words = "The users of auth_file; no others could log in.";
        self.write_rule(&Rule {
            comment: Some(words.into()),
            user: Some(self.known_users()?),
            ..Rule::everybody(method)
        });
        Ok(())
    }

    /// `admins` and `watchers`.
    pub fn people(&mut self) {
        for (from, to) in [("admin_users", "admins"), ("stats_users", "watchers")] {
            if let Some(setting) = self.source.get(from) {
                let (names, shut_out): (Vec<String>, Vec<String>) = values::list(&setting.value)
                    .into_iter()
                    .partition(|name| self.why_shut_out(name).is_none());
                for name in &shut_out {
                    let why = self.why_shut_out(name).unwrap_or_default().to_owned();
                    let setting = format!("{from} = {name}");
                    self.document.leave_out(Group::Head, &setting, &why);
                }
                if !names.is_empty() {
                    self.document.list(Group::Head, to, &names);
                }
            }
        }
    }

    /// Why this admin or watcher is not carried over, if it is not.
    fn why_shut_out(&self, name: &str) -> Option<&str> {
        let begin = format!("{name:?} ");
        let mut reasons = self.shut_out.iter().map(String::as_str);
        reasons.find(|why| why.starts_with(&begin))
    }

    /// `mode`.
    pub fn mode(&mut self) -> Result<(), ImportError> {
        let Some(setting) = self.source.settings.get("pool_mode") else {
            let words = "PgBouncer's default. In transaction mode a client has a server connection only for a transaction, so few serve many clients.";
            self.document.comment(Group::Head, words);
            self.document.text(Group::Head, "mode", "session");
            return Ok(());
        };
        let (mode, is_same) = crate::translation::mode(&setting.value, &setting.at)?;
        if !is_same {
            let why = crate::translation::NO_STATEMENT_MODE;
            self.leave_out(Group::Head, "pool_mode", why);
        }
        self.document.text(Group::Head, "mode", mode);
        Ok(())
    }
}

const KEYS: [&str; 3] = ["auth_user", "auth_query", "auth_dbname"];
/// What PgBouncer asks by itself, in its versions.
const DEFAULT_QUERIES: [&str; 3] = [
    "SELECT usename, passwd FROM pg_shadow WHERE usename=$1",
    "SELECT rolname, CASE WHEN rolvaliduntil < now() THEN NULL ELSE rolpassword END FROM pg_authid WHERE rolname=$1 AND rolcanlogin",
    "SELECT rolname, CASE WHEN rolvaliduntil < pg_catalog.now() THEN NULL ELSE rolpassword END FROM pg_authid WHERE rolname=$1 AND rolcanlogin",
];

impl Translation<'_> {
    /// `[auth_query]`: one for all databases.
    pub fn auth_query(&mut self) {
        let [user, query, database] = KEYS.map(|key| self.everywhere(key));
        let Some(user) = user else {
            for key in &KEYS[1..] {
                let said = self.source.get(key);
                if said.is_some_and(|own| !DEFAULT_QUERIES.contains(&own.value.as_str())) {
                    let why = "without auth_user no query is sent";
                    self.leave_out(Group::AuthQuery, key, why);
                }
            }
            return;
        };
        self.document.table(Group::AuthQuery, "[auth_query]");
        self.document.text(Group::AuthQuery, "user", &user);
        match query {
            Some(query) if !query.contains("$1") => {
                let setting = format!("auth_query = {query}");
                let why = "it has no $1, which stands for the user's name";
                self.document.leave_out(Group::AuthQuery, &setting, why);
            }
            Some(query) => {
                self.document.text(Group::AuthQuery, "query", &query);
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
                self.document.text(Group::AuthQuery, "database", &database);
            }
            Some(database) => {
                let setting = format!("auth_dbname = {database}");
                let why = "there is no [[database]] of this name";
                self.document.leave_out(Group::AuthQuery, &setting, why);
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
