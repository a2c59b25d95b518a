//! The configuration, with everything that it names read and checked.

use crate::config::{AuthQueryTable, Config, DatabaseTable, Mode, ServerAddress};
use crate::tls::{self, Connector};
use rustls::ServerConfig;
use sooner_config::{Misconfigured, Spanned};
use sooner_postgres::auth::mock::Kind;
use sooner_postgres::auth::{Secret, userlist};
use sooner_postgres::wire::truncate_name;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What a gate does.
pub struct Configuration {
    /// As it was written.
    pub config: Config,
    /// The users that may come, unless every user may; the secrets that are passwords log in to
    /// servers as well.
    pub users: BTreeMap<String, Secret>,
    /// What those secrets are like.
    pub kinds: Vec<Kind>,
    /// The secrets by which the pooler logs in to databases as another user, by the entries' names.
    pub logins: BTreeMap<String, Secret>,
    /// What encrypts clients' connections.
    pub tls: Option<Arc<ServerConfig>>,
    /// Whether it matters what transactions say of themselves.
    pub needs_hints: bool,
    /// Whether any class has a `wait_target`.
    pub watches_locks: bool,
    /// What encrypts servers' connections.
    connectors: BTreeMap<ServerAddress, Rc<Connector>>,
}

impl Configuration {
    /// Reads all files. Gives warnings besides, also of certificates that are not valid at `now`.
    pub fn load(
        config: Config,
        now: SystemTime,
    ) -> Result<(Self, Vec<Misconfigured>), Misconfigured> {
        config.check()?;
        let mut users = match &config.users {
            Some(file) => read_users(file)?,
            None => BTreeMap::new(),
        };
        for table in &config.user {
            if let Some(password) = &table.password {
                if password.get_ref().is_empty() {
                    let words = "an empty password lets no user in; leave the key out";
                    return Err(Misconfigured::at(password, "user.password", words));
                }
                let secret = secret(password, "user.password")?;
                users.insert(truncate_name(table.name.get_ref()).to_owned(), secret);
            }
        }
        let mut logins = BTreeMap::new();
        let mut connectors = BTreeMap::new();
        for table in &config.database {
            if let Some(password) = &table.password {
                let secret = secret(password, "database.password")?;
                logins.insert(table.name.get_ref().clone(), secret);
            }
            if let Some(connector) = Connector::for_server(&table.server)? {
                connectors.insert(table.server.get_ref().clone(), Rc::new(connector));
            }
        }
        let (tls, mut warnings) = if config.tls.is_empty() {
            (None, Vec::new())
        } else {
            let prepared = sooner_tls::prepare(&config.tls, &[tls::PROTOCOL], now)?;
            (Some(prepared.config), prepared.warnings)
        };
        let asked = config.auth_query.as_ref();
        warnings.extend(asked.and_then(AuthQueryTable::warning));
        let configuration = Self {
            needs_hints: config.needs_hints(),
            watches_locks: config.watches_locks(),
            config,
            kinds: users.values().map(Kind::of).collect(),
            users,
            logins,
            tls,
            connectors,
        };
        Ok((configuration, warnings))
    }

    /// Admins and watchers who can never enter the console, each with the reason. The gate serves
    /// without them.
    pub fn shut_out(&self) -> Vec<Misconfigured> {
        self.config
            .shut_out(|name| self.users.contains_key(truncate_name(name)))
    }

    /// What encrypts connections to a server.
    pub fn connector(&self, address: &ServerAddress) -> Option<Rc<Connector>> {
        self.connectors.get(address).cloned()
    }

    /// Whether this user's clients of this database keep a server connection.
    pub fn by_session(&self, user: &str, database: &DatabaseTable) -> bool {
        let own = self.user(user).and_then(|table| table.mode);
        let mode = own.or(database.mode).unwrap_or(self.config.mode);
        mode == Mode::Session
    }

    /// What is said of one user.
    pub fn user(&self, name: &str) -> Option<&crate::config::UserTable> {
        let mut tables = self.config.user.iter();
        tables.find(|table| truncate_name(table.name.get_ref()) == name)
    }

    /// How long a client waits for a server that does not answer.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(*self.config.limits.patience_seconds.get_ref())
    }

    /// How long a transaction may wait for admission, if that has an end.
    pub fn query_wait(&self) -> Option<Duration> {
        let seconds = self.config.limits.query_wait_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }
}

fn secret(text: &Spanned<String>, key: &str) -> Result<Secret, Misconfigured> {
    Secret::read(text.get_ref()).map_err(|error| Misconfigured::at(text, key, error))
}

fn read_users(file: &Spanned<PathBuf>) -> Result<BTreeMap<String, Secret>, Misconfigured> {
    let path = file.get_ref();
    let wrong = |what: String| Misconfigured::at(file, "users", what);
    let text = fs::read_to_string(path)
        .map_err(|error| wrong(format!("cannot read {}: {error}", path.display())))?;
    userlist::read(&text).map_err(|error| wrong(format!("{}: {error}", path.display())))
}
