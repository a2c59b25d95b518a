//! What people write who know PgBouncer or have not seen a gate.toml: the right form, where serde
//! can only say that something does not fit.

use sooner_config::Misconfigured;

/// Keys of PgBouncer and what they are here.
const OF_PGBOUNCER: [(&str, &str); 27] = [
    ("listen_addr", "listen = [\"ADDRESS:PORT\"]"),
    ("listen_port", "listen = [\"ADDRESS:PORT\"]"),
    ("unix_socket_dir", "listen = [\"FOLDER/.s.PGSQL.6432\"]"),
    ("auth_type", "auth"),
    ("auth_file", "users"),
    ("auth_user", "[auth_query] user"),
    ("auth_dbname", "[auth_query] database"),
    ("auth_hba_file", "[[rule]]"),
    ("admin_users", "admins"),
    ("stats_users", "watchers"),
    ("pool_mode", "mode"),
    ("default_pool_size", "[limits] transactions"),
    ("pool_size", "[limits] transactions"),
    ("max_client_conn", "[limits] clients"),
    ("max_db_connections", "transactions in [[database]]"),
    ("max_user_connections", "transactions in [[user]]"),
    ("max_db_client_connections", "clients in [[database]]"),
    ("max_user_client_connections", "clients in [[user]]"),
    ("query_wait_timeout", "[limits] query_wait_seconds"),
    ("client_login_timeout", "[limits] login_seconds"),
    ("server_idle_timeout", "[limits] server_idle_seconds"),
    ("server_lifetime", "[limits] server_lifetime_seconds"),
    ("max_prepared_statements", "[limits] statements"),
    ("client_tls_cert_file", "certificate in [[tls]]"),
    ("client_tls_key_file", "key in [[tls]]"),
    ("client_tls_ca_file", "client_ca in [[tls]]"),
    ("databases", "[[database]], one each, with name and server"),
];

/// Keys that others have in the table of a database, and what is meant.
const OF_DATABASE: [(&str, &str); 4] = [
    ("host", "server = \"postgresql://HOST:PORT\""),
    ("port", "server = \"postgresql://HOST:PORT\""),
    ("dbname", "name_there"),
    ("url", "server = \"postgresql://HOST:PORT\""),
];

/// The mistake in better words, where its key says what was meant.
pub fn explain(mut mistake: Misconfigured) -> Misconfigured {
    let key = mistake.key.as_str();
    let last = key.rsplit('.').next().unwrap_or_default();
    let is_unknown = mistake.message.starts_with("unknown key");
    let is_it = |name: &str| {
        if name == "databases" {
            key == name
        } else {
            last == name
        }
    };
    let of_pgbouncer = OF_PGBOUNCER.iter().find(|(name, _)| is_it(name));
    let of_database = OF_DATABASE.iter().find(|(name, _)| *name == last);
    let words = match (of_pgbouncer, of_database) {
        (Some((_, here)), _) if is_unknown => Some(format!(
            "PgBouncer's name; here it is {here} (sooner gate import translates a whole pgbouncer.ini)"
        )),
        (_, Some((_, here))) if is_unknown && key.starts_with("database.") => {
            Some(format!("unknown key; write {here}"))
        }
        _ if last == "mode" && mistake.message.contains("`observe`") => Some(
            "it is how long a client keeps its server connection: transaction, session; write observe = true to hold nothing and see what would be"
                .into(),
        ),
        _ => None,
    };
    match words {
        Some(words) => {
            mistake.message = words;
            mistake
        }
        None => sooner_config::classes::explain(mistake),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    #[test]
    fn what_people_write_is_answered_with_the_right_form() {
        let class = "[[class]]\nname = \"a\"\n";
        let database = "[[database]]\nname = \"*\"\n";
        for (text, expected) in [
            (
                format!("{class}users = [\"ann\"]\n"),
                "class.users: unknown key; did you mean `user`?",
            ),
            (
                format!("{class}databases = [\"a\"]\n"),
                "class.databases: unknown key; did you mean `database`?",
            ),
            (
                format!("{class}target = \"30ms\"\n"),
                "class.target: targets have names; write target = { mean = \"30ms\" }",
            ),
            (
                format!("{class}target = {{ mean = 30 }}\n"),
                "class.target.mean: a time has a unit and stands in quotes; write mean = \"30ms\"",
            ),
            (
                format!("{class}target.p95 = 1.5\n"),
                "class.target.p95: a time has a unit and stands in quotes; write p95 = \"30ms\"",
            ),
            (
                "max_client_conn = 5\n".into(),
                "max_client_conn: PgBouncer's name; here it is [limits] clients",
            ),
            (
                "pool_mode = \"transaction\"\n".into(),
                "pool_mode: PgBouncer's name; here it is mode",
            ),
            (
                format!("{database}host = \"db\"\n"),
                "database.host: unknown key; write server = \"postgresql://HOST:PORT\"",
            ),
            (
                "auth = \"SCRAM\"\n".into(),
                "auth: unknown value `SCRAM`; did you mean \"scram\"?",
            ),
        ] {
            let mistakes = Config::parse_all(&text).unwrap_err();
            let hints = mistakes[0].to_string();
            assert!(hints.starts_with(expected), "{hints}");
        }
        for name in ["scram-sha-256", "plain", "cert"] {
            assert!(
                Config::parse(&format!("[[rule]]\nauth = \"{name}\"\n")).is_ok(),
                "{name}"
            );
        }
    }

    #[test]
    fn mistakes_are_told_together() {
        let text = "admin = [\"a\"]\npool_mode = \"x\"\n[limits]\ntransactions = 0\n";
        assert_eq!(Config::parse_all(text).unwrap_err().len(), 3);
        let server = "server = \"postgresql://db\"\n";
        let text = format!(
            "order = \"shortest\"\n[[database]]\nname = \"sooner\"\n{server}[[class]]\nname = \"a\"\nuser = []\n\
             [[rule]]\ntransport = \"tls\"\n[[rule]]\nauth = \"certificate\"\n"
        );
        let mistakes = Config::parse(&text).unwrap().mistakes();
        let keys: Vec<&str> = mistakes
            .iter()
            .map(|mistake| mistake.key.as_str())
            .collect();
        assert_eq!(
            keys,
            ["database.name", "class.user", "rule.transport", "rule.auth"]
        );
    }
}
