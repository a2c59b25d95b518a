//! `[[rule]]`, and a pg_hba.conf as rules in its order.

use crate::document::Group;
use crate::hba::{self, Line, Names};
use crate::ini::{At, ImportError};
use crate::translation::Translation;
use std::sync::Arc;

const GROUP: Group = Group::Rule;

/// One rule. What is not said fits every client.
#[derive(Clone, Default)]
pub struct Rule<'a> {
    /// A remark above it.
    pub comment: Option<String>,
    pub database: Option<Vec<String>>,
    pub user: Option<Vec<String>>,
    pub address: Option<Vec<String>>,
    pub transport: Option<&'a str>,
    pub auth: &'a str,
}

impl<'a> Rule<'a> {
    /// For all, by this method.
    pub fn everybody(auth: &'a str) -> Self {
        Self {
            auth,
            ..Self::default()
        }
    }
}

impl Translation<'_> {
    /// Writes it below those that are there.
    pub fn write_rule(&mut self, rule: &Rule<'_>) {
        self.document.gap(GROUP);
        self.write_rule_below(rule);
    }

    /// The same below the remark that stands there.
    fn write_rule_below(&mut self, rule: &Rule<'_>) {
        let document = &mut self.document;
        if let Some(words) = &rule.comment {
            document.comment(GROUP, words);
        }
        document.table(GROUP, "[[rule]]");
        let lists = [
            ("database", &rule.database),
            ("user", &rule.user),
            ("address", &rule.address),
        ];
        for (key, names) in lists {
            if let Some(names) = names {
                document.list(GROUP, key, names);
            }
        }
        if let Some(transport) = rule.transport {
            document.text(GROUP, "transport", transport);
        }
        document.text(GROUP, "auth", rule.auth);
    }

    /// `auth_type = hba`.
    pub fn hba(&mut self) -> Result<(), ImportError> {
        let Some(setting) = self.source.get("auth_hba_file").cloned() else {
            let at = &self.source.settings["auth_type"].at;
            return Err(at.wrong("auth_type: hba needs auth_hba_file"));
        };
        let text = self.files.text(&setting.value).map_err(|error| {
            let name = &setting.value;
            setting.at.wrong(format!(
                "cannot read {name}: {error}; it says which clients may log in"
            ))
        })?;
        let file: Arc<str> = setting.value.as_str().into();
        for (index, line) in text.lines().enumerate() {
            let at = At {
                file: file.clone(),
                line: index + 1,
            };
            self.hba_line(&at, line.trim())?;
        }
        // A client that fits none may not come, and without any rule every client might.
        let words = format!("Clients that match no line of {file} are refused.");
        self.write_rule(&Rule {
            comment: Some(words),
            ..Rule::everybody("reject")
        });
        Ok(())
    }

    fn hba_line(&mut self, at: &At, line: &str) -> Result<(), ImportError> {
        let setting = format!("{}:{}: {line}", at.file, at.line);
        match hba::read(line, at, self.files)? {
            Line::Nothing => {}
            Line::PassedOver(why) => {
                self.document.gap(GROUP);
                self.document.leave_out(GROUP, &setting, &why);
            }
            Line::Rule(said) => self.hba_rules(said, setting)?,
        }
        Ok(())
    }

    /// The method, and why it is not the one that was said.
    fn method(&self, said: &hba::Rule) -> (&'static str, Option<&'static str>) {
        match said.method.as_str() {
            "trust" => ("trust", None),
            "reject" => ("reject", None),
            "md5" => ("md5", None),
            "password" => ("password", None),
            "scram-sha-256" => ("scram", None),
            "cert" if said.has_options => {
                ("reject", Some("the gate knows no other names of users"))
            }
            "cert" if self.can_check_certificates() => ("certificate", None),
            "cert" => (
                "reject",
                Some("without client_tls_ca_file no certificate is good"),
            ),
            "peer" => ("reject", Some("the gate does not ask who runs a client")),
            _ => ("reject", Some("the gate asks no LDAP server")),
        }
    }

    fn hba_rules(&mut self, said: hba::Rule, setting: String) -> Result<(), ImportError> {
        if said.transport == Some("tls") && !self.can_encrypt() {
            self.document.gap(GROUP);
            let why = "no client can connect like this: client_tls_sslmode is disable, the default";
            self.document.leave_out(GROUP, &setting, why);
            return Ok(());
        }
        let (auth, mut why_not) = self.method(&said);
        let users = match (&said.users, auth) {
            // To the gate all names are equal where it asks for no secret.
            (Names::All, "trust" | "certificate") if !self.asks_for_users() => {
                Names::Only(self.known_users()?)
            }
            (users, _) => users.clone(),
        };
        let has_star = said.databases.has_star() || users.has_star();
        let pairs = said.databases.with_users(&users).filter(|_| !has_star);
        if has_star {
            why_not = Some("names in a rule of the gate have no *");
        } else if pairs.is_none() {
            why_not = Some("the gate cannot compare a database's name with a user's");
        }
        let base = Rule {
            address: said.address,
            transport: said.transport,
            auth,
            ..Rule::default()
        };
        let Some(pairs) = pairs else {
            self.reject_instead(base, &setting, why_not);
            return Ok(());
        };
        if why_not.is_some() {
            let (database, user) = pairs.into_iter().next().unwrap_or_default();
            let base = Rule {
                database,
                user,
                ..base
            };
            self.reject_instead(base, &setting, why_not);
            return Ok(());
        }
        let is_open = ["trust", "certificate"].contains(&auth) && users == Names::All;
        let comment = if is_open {
            format!(
                "{setting}: PgBouncer asked the database (auth_user) whether there is such a user, the gate does not"
            )
        } else {
            setting
        };
        for (database, user) in pairs {
            self.write_rule(&Rule {
                comment: Some(comment.clone()),
                database,
                user,
                ..base.clone()
            });
        }
        Ok(())
    }

    /// No client may come in by a later rule where this one would have demanded more.
    fn reject_instead(&mut self, rule: Rule<'_>, setting: &str, why: Option<&str>) {
        self.document.gap(GROUP);
        let why = format!(
            "{}, so all that it may mean are rejected",
            why.unwrap_or_default()
        );
        self.document.leave_out(GROUP, setting, &why);
        self.write_rule_below(&Rule {
            auth: "reject",
            ..rule
        });
    }
}
