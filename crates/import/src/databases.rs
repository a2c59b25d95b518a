//! `[[database]]`: what clients' names stand for.

use crate::document::Group;
use crate::ini::ImportError;
use crate::source::Entry;
use crate::translation::{NO_STATEMENT_MODE, Translation, mode, read_number};
use crate::values;
use sooner_pooler::config::{OWN_DATABASES, ServerAddress};
use sooner_postgres::auth::Secret;
use std::net::Ipv6Addr;

const GROUP: Group = Group::Database;
/// PgBouncer's own name, which it refuses there.
const RESERVED: &str = "pgbouncer";

/// Parameters of an entry that are not carried over, and why.
const LEFT_OUT: [(&str, &str); 15] = [
    (
        "connect_query",
        "the gate runs nothing at the beginning; PostgreSQL has ALTER ROLE ... IN DATABASE ... SET",
    ),
    (
        "client_encoding",
        "it is what the client says, else the server's; PostgreSQL has ALTER ROLE ... IN DATABASE ... SET",
    ),
    (
        "datestyle",
        "it is what the client says, else the server's; PostgreSQL has ALTER ROLE ... IN DATABASE ... SET",
    ),
    (
        "timezone",
        "it is what the client says, else the server's; PostgreSQL has ALTER ROLE ... IN DATABASE ... SET",
    ),
    ("application_name", "it is what the client says"),
    (
        "min_pool_size",
        "the gate has no pools, and server connections are opened when they are needed",
    ),
    (
        "reserve_pool",
        "the gate has no pools, and server connections are opened when they are needed",
    ),
    (
        "reserve_pool_size",
        "the gate has no pools, and server connections are opened when they are needed",
    ),
    (
        "server_lifetime",
        "there is one for all, limits.server_lifetime_seconds",
    ),
    ("load_balance_hosts", "a database has one host"),
    ("target_session_attrs", "a database has one host"),
    (
        "client_idle_timeout",
        "clients may be silent as long as they like",
    ),
    (
        "query_timeout",
        "the gate ends nothing that has begun; PostgreSQL has statement_timeout",
    ),
    (
        "idle_transaction_timeout",
        "there is one for all, limits.idle_in_transaction_seconds",
    ),
    (
        "transaction_timeout",
        "the gate ends nothing that has begun; PostgreSQL 17 has transaction_timeout",
    ),
];

impl Translation<'_> {
    /// All of them.
    pub fn databases(&mut self) -> Result<(), ImportError> {
        let entries = self.source.databases.clone();
        for entry in &entries {
            if entry.name == RESERVED || entry.name.is_empty() {
                let what = format!(
                    "{:?} is a name of PgBouncer's own; choose another",
                    entry.name
                );
                return Err(entry.at.wrong(what));
            }
            if self.database(entry)? {
                self.written.push(entry.name.clone());
            }
        }
        for (whole, what) in self.source.unread.clone() {
            let why = format!("PgBouncer cannot read it, and lets no client in by it: {what}");
            self.document.gap(GROUP);
            self.document.leave_out(GROUP, &whole, &why);
        }
        if self.written.is_empty() {
            for words in [
                "There is no database here, and the gate does not start without one:",
                "[[database]]",
                "name = \"*\"",
                "server = \"postgresql:///?host=/run/postgresql\"",
            ] {
                self.document.comment(GROUP, words);
            }
        }
        Ok(())
    }

    /// Whether it could be written.
    fn database(&mut self, entry: &Entry) -> Result<bool, ImportError> {
        let whole = format!("{} = {}", entry.name, entry.value);
        self.document.gap(GROUP);
        if OWN_DATABASES.contains(&entry.name.as_str()) {
            let why = "the name of the gate's own database";
            self.document.leave_out(GROUP, &whole, why);
            return Ok(false);
        }
        let server = match self.server(entry)? {
            Ok(server) => server,
            Err(why) => {
                self.document.leave_out(GROUP, &whole, why);
                return Ok(false);
            }
        };
        self.document.table(GROUP, "[[database]]");
        self.document.text(GROUP, "name", &entry.name);
        self.document.text(GROUP, "server", &server.url);
        if !server.others.is_empty() {
            let setting = format!("host={}", server.others.join(","));
            let why = "a database has one host, the first";
            self.document.leave_out(GROUP, &setting, why);
        }
        if let Some(there) = entry.get("dbname").filter(|there| *there != entry.name) {
            self.document.text(GROUP, "name_there", there);
        }
        self.login(entry)?;
        self.bounds(entry)?;
        self.left_out_of(entry);
        Ok(true)
    }

    fn login(&mut self, entry: &Entry) -> Result<(), ImportError> {
        let password = entry.get("password");
        let Some(user) = entry.get("user") else {
            if password.is_some() {
                let why = "it belongs to no user: user= is missing";
                self.document.leave_out(GROUP, "password", why);
            }
            return Ok(());
        };
        self.document.text(GROUP, "user", user);
        if let Some(password) = password {
            let secret = Secret::read(password);
            secret.map_err(|error| entry.at.wrong(format!("password: {error}")))?;
            self.document.text(GROUP, "password", password);
        }
        Ok(())
    }

    fn bounds(&mut self, entry: &Entry) -> Result<(), ImportError> {
        let of_all = self.bound_of(entry, "max_db_connections")?;
        // All log in as one user, so its pool is all there is.
        let of_pool = match entry.get("user") {
            Some(_) => Some(self.pool(entry)?),
            None => None,
        };
        if let Some(bound) = of_all.into_iter().chain(of_pool).min() {
            self.document.value(GROUP, "transactions", bound);
        }
        if let Some(bound) = self.bound_of(entry, "max_db_client_connections")? {
            self.document.value(GROUP, "clients", bound);
        }
        if let Some(text) = entry.get("pool_mode") {
            let (mode, is_same) = mode(text, &entry.at)?;
            if !is_same {
                let setting = format!("pool_mode={text}");
                self.document.leave_out(GROUP, &setting, NO_STATEMENT_MODE);
            }
            self.document.text(GROUP, "mode", mode);
        }
        Ok(())
    }

    fn left_out_of(&mut self, entry: &Entry) {
        for key in ["auth_user", "auth_query", "auth_dbname"] {
            let own = entry.get(key);
            if own.is_some() && own != self.everywhere(key).as_deref() {
                let setting = format!("{key}={}", own.unwrap_or_default());
                let why = "[auth_query] holds for all databases";
                self.document.leave_out(GROUP, &setting, why);
            }
        }
        if let (Some(size), None) = (entry.get("pool_size"), entry.get("user")) {
            let setting = format!("pool_size={size}");
            let why = "it holds for each user, and is part of the sum in limits.transactions; transactions bounds all users of a database";
            self.document.leave_out(GROUP, &setting, why);
        }
        for (key, why) in LEFT_OUT {
            if let Some(value) = entry.get(key) {
                let setting = format!("{key}={value}");
                self.document.leave_out(GROUP, &setting, why);
            }
        }
    }
}

const DEFAULT_PORT: i64 = 5432;

/// A server.
pub struct Server {
    /// Its URL.
    pub url: String,
    /// Hosts that PgBouncer used in turn besides.
    pub others: Vec<String>,
}

impl Translation<'_> {
    /// The server of an entry; the inner error says why the gate cannot have it.
    pub fn server(&self, entry: &Entry) -> Result<Result<Server, &'static str>, ImportError> {
        let port = match entry.get("port") {
            Some(text) => read_number("port", text, &entry.at)?,
            None => DEFAULT_PORT,
        };
        if !(1..=i64::from(u16::MAX)).contains(&port) {
            let what = format!("port: {port} is not a port; 1 to 65535 are");
            return Err(entry.at.wrong(what));
        }
        let mut hosts = match entry.get("host") {
            Some(text) => values::list(text),
            None => Vec::from_iter(self.socket_folder()),
        };
        if hosts.is_empty() {
            let what = "no host, and no unix_socket_dir that could stand for it; write host=...";
            return Err(entry.at.wrong(what));
        }
        let host = hosts.remove(0);
        if host.starts_with('@') {
            return Ok(Err("the gate reaches socket files that are files only"));
        }
        let others = hosts;
        let url = if entry.get("host").is_some() && !host.starts_with('/') {
            self.tcp_url(&host, port)?
        } else {
            let folder = self.files.absolute(&host);
            format!("postgresql:///?host={}&port={port}", escaped(&folder))
        };
        match url.parse::<ServerAddress>() {
            Ok(_) => Ok(Ok(Server { url, others })),
            Err(what) => Err(entry.at.wrong(format!("host={host}: {what}"))),
        }
    }

    fn tcp_url(&self, host: &str, port: i64) -> Result<String, ImportError> {
        let bare = host.trim_matches(['[', ']']);
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        let mut url = if bare.parse::<Ipv6Addr>().is_ok() {
            format!("postgresql://[{bare}]:{port}?")
        } else if host.chars().all(is_plain) {
            format!("postgresql://{host}:{port}?")
        } else {
            format!("postgresql:///?host={}&port={port}&", escaped(host))
        };
        for (key, value) in self.encryption()? {
            url += &format!("{key}={}&", escaped(&value));
        }
        url.pop();
        Ok(url)
    }

    /// `server_tls_...` as libpq's parameters.
    fn encryption(&self) -> Result<Vec<(&'static str, String)>, ImportError> {
        let mode = self.source.word("server_tls_sslmode");
        let (mode, is_said) = match &mode {
            Some(mode) => (mode.as_str(), true),
            None => ("prefer", false),
        };
        let mode = match mode {
            "allow" => "prefer",
            "disable" | "prefer" | "require" | "verify-ca" | "verify-full" => mode,
            _ => return Err(self.wrong_mode("server_tls_sslmode")),
        };
        let mut parameters = Vec::new();
        if is_said {
            parameters.push(("sslmode", mode.to_owned()));
        }
        let file = |key| {
            let setting = self.source.get(key)?;
            Some((setting, self.files.absolute(&setting.value)))
        };
        let authorities = file("server_tls_ca_file");
        if let Some((_, path)) = authorities.filter(|_| mode.starts_with("verify")) {
            parameters.push(("sslrootcert", path));
        }
        match (file("server_tls_cert_file"), file("server_tls_key_file")) {
            _ if mode == "disable" => {}
            (Some((_, certificate)), Some((_, key))) => {
                parameters.push(("sslcert", certificate));
                parameters.push(("sslkey", key));
            }
            (None, None) => {}
            (Some((setting, _)), None) | (None, Some((setting, _))) => {
                let what =
                    "server_tls_cert_file and server_tls_key_file belong together; write both";
                return Err(setting.at.wrong(what));
            }
        }
        Ok(parameters)
    }
}

/// A text inside a URL's parameter.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'/' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}
