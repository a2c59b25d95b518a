//! Names as PostgreSQL reads them, and people of the console who can never enter it.

use super::{AuthMethod, Config, OWN_DATABASES};
use sooner_config::{Misconfigured, Spanned};

impl Config {
    /// Admins and watchers, with their keys.
    fn console_users(&self) -> impl Iterator<Item = (&'static str, &Spanned<String>)> {
        let admins = self.admins.iter().map(|name| ("admins", name));
        admins.chain(self.watchers.iter().map(|name| ("watchers", name)))
    }

    /// Admins and watchers who can never enter the console, each with the reason; `has_secret` says
    /// of whom `users` and `[[user]]` have one.
    pub fn shut_out(&self, has_secret: impl Fn(&str) -> bool) -> Vec<Misconfigured> {
        let mut found = Vec::new();
        for (key, name) in self.console_users() {
            let user = name.get_ref().as_str();
            if let Some(why) = self.why_shut_out(user, &has_secret) {
                let words = format!("{user:?} can never enter the console: {why}");
                found.push(Misconfigured::at(name, key, words));
            }
        }
        found
    }

    fn why_shut_out(&self, user: &str, has_secret: impl Fn(&str) -> bool) -> Option<&'static str> {
        // Through a socket file, the user who runs the gate has this name.
        if OWN_DATABASES.contains(&user) {
            return None;
        }
        let rules = self.rule.iter().filter(|rule| rule.may_enter_console(user));
        let methods: Vec<AuthMethod> = if self.rule.is_empty() {
            vec![self.auth]
        } else {
            rules.map(|rule| *rule.auth.get_ref()).collect()
        };
        if methods.iter().all(|method| *method == AuthMethod::Reject) {
            return Some("no [[rule]] lets it into the database \"sooner\"; write one that does");
        }
        let needs_secret = |method: &AuthMethod| method.needs_secret();
        let is_open = methods
            .iter()
            .any(|method| !needs_secret(method) && *method != AuthMethod::Reject);
        let looked_up = self.auth_query.as_ref().map(|table| &table.database);
        match looked_up {
            _ if is_open || has_secret(user) => None,
            Some(Some(_)) => None,
            Some(None) => Some(
                "users and [[user]] have no secret of it, and [auth_query] is not asked without database = \"NAME\", as the client's own is not a server's; write one of the three",
            ),
            None => Some(
                "users and [[user]] have no secret of it; write one, or [auth_query] with a database",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LoginAttempt, Transport, required_auth};
    use super::*;

    const SHOP: &str = "[[database]]\nname = \"shop\"\nserver = \"postgresql://db\"\n";

    fn config(text: &str) -> Config {
        let config = Config::parse(text).unwrap();
        config.check().unwrap();
        config
    }

    #[test]
    fn the_consoles_names_are_no_servers() {
        let config = config(&SHOP.replace("shop", "*"));
        let is_there = |name| config.database(name).is_some();
        assert!(is_there("shop") && is_there("Sooner") && is_there("sooner2"));
        assert!(!OWN_DATABASES.into_iter().any(is_there));
    }

    /// Whom of the admins and watchers the console never lets in, where only `known` has a secret.
    fn shut_out(text: &str) -> Vec<String> {
        let source = sooner_config::SourceText {
            name: "gate.toml".into(),
            text: format!("admins = [\"dba\", \"known\", \"sooner\"]\n{text}{SHOP}"),
            flags: &[],
        };
        let config = config(&source.text);
        let shut_out = config.shut_out(|name| name == "known");
        shut_out.iter().map(|why| source.render(why)).collect()
    }

    #[test]
    fn who_can_never_enter_the_console_is_told_why() {
        let query = "[auth_query]\nuser = \"a\"\n";
        for (text, expected) in [
            ("", "users and [[user]] have no secret of it; write one, or"),
            (
                query,
                "users and [[user]] have no secret of it, and [auth_query] is not asked",
            ),
            (&format!("{query}database = \"shop\"\n"), ""),
            ("auth = \"trust\"\n", ""),
            (
                "[[rule]]\ndatabase = [\"pgbouncer\"]\nuser = [\"dba\"]\nauth = \"trust\"\n[[rule]]\n",
                "",
            ),
            (
                "[[rule]]\ndatabase = [\"shop\"]\nauth = \"trust\"\n[[rule]]\nuser = [\"known\"]\n",
                "no [[rule]] lets it into",
            ),
        ] {
            let hints = shut_out(text);
            let begin = "gate.toml:1: admins: \"dba\" can never enter the console: ";
            match (expected, &hints[..]) {
                ("", []) => {}
                (expected, [one]) if one.starts_with(&format!("{begin}{expected}")) => {}
                _ => panic!("{text}: {hints:?}"),
            }
        }
    }

    #[test]
    fn names_are_cut_where_postgresql_cuts_them() {
        let (name, longer) = ("n".repeat(63), "n".repeat(70));
        let config = config(&format!(
            "[[database]]\nname = \"{longer}\"\nserver = \"postgresql://db\"\n[[rule]]\nuser = [\"{longer}\"]\nauth = \"trust\"\n"
        ));
        assert!(config.database(&name).is_some());
        let client = LoginAttempt {
            user: &name,
            database: &name,
            address: None,
            transport: Transport::Unix,
        };
        assert_eq!(
            required_auth(&config.rule, config.auth, client),
            AuthMethod::Trust
        );
    }
}
