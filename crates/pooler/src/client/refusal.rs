//! Why a client is sent away: what it is told, with a code and a hint, and what the operator reads
//! in one line.

use crate::client::handle::IdleHold;
use crate::client::slots::NoSlot;
use crate::config::ServerAddress;
use crate::pool::Owner;
use crate::pool::server_session::LoginError;
use bytes::{Bytes, BytesMut};
use sooner_postgres::parameters::UnknownReplication;
use sooner_postgres::wire::{
    ErrorReport, StartupError, message_of_error, write_as_fatal, write_authentication, write_error,
};
use std::fmt;

/// Why a client is sent away.
#[derive(Debug)]
pub struct Refusal {
    wording: Wording,
    sqlstate: &'static str,
    message: String,
    hint: Option<&'static str>,
    /// Whether the client has proved who it is and was not told so.
    is_before_welcome: bool,
}

#[derive(Debug)]
enum Wording {
    Own,
    /// In the server's own words.
    Server(Bytes),
    /// It is gone.
    None,
}

/// Why a client is served no longer.
#[derive(Debug)]
pub enum Departure {
    /// It has left.
    Left,
    /// It is told why it must go.
    Refused(Refusal),
}

impl From<Refusal> for Departure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Departure {
    /// The same, of a client that has proved who it is and was not told so: it is told that first, as
    /// PostgreSQL does.
    pub fn before_welcome(self) -> Self {
        match self {
            Self::Left => Self::Left,
            Self::Refused(mut refusal) => {
                refusal.is_before_welcome = true;
                Self::Refused(refusal)
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Refusal {
    fn new(sqlstate: &'static str, message: String, hint: Option<&'static str>) -> Self {
        let wording = Wording::Own;
        Self {
            wording,
            sqlstate,
            message,
            hint,
            is_before_welcome: false,
        }
    }

    /// There are too many clients.
    pub fn full(no_slot: NoSlot) -> Self {
        let (message, hint) = match no_slot {
            NoSlot::Clients(max) => (
                format!("{max} clients are connected, and no more are allowed"),
                "raise --clients-max, or limits.clients in gate.toml",
            ),
            NoSlot::OfOrigin(max) => (
                format!("{max} clients from the same address are connected already"),
                "raise limits.connections_per_address in gate.toml",
            ),
            NoSlot::Consoles(max) => (
                format!("{max} sessions are in the gate's own database already"),
                "close one of them",
            ),
        };
        Self::new("53300", message, Some(hint))
    }

    /// There are too many of the same user or database.
    pub fn full_of(clients_max: usize, what: &str, name: &str) -> Self {
        let message = format!("{clients_max} clients of {what} {name:?} are connected already");
        let hint = "raise clients in its table of gate.toml";
        Self::new("53300", message, Some(hint))
    }

    /// There is no entry for the database it wants.
    pub fn no_database(name: &str) -> Self {
        let message = format!("database {name:?} does not exist here");
        let hint = "gate.toml has no [[database]] of this name and none for \"*\"";
        Self::new("3D000", message, Some(hint))
    }

    /// Its database takes no clients.
    pub fn disabled(name: &str) -> Self {
        let message = format!("database {name:?} takes no clients at the moment");
        Self::new(
            "57P03",
            message,
            Some("an admin sent DISABLE; ENABLE ends it"),
        )
    }

    /// No rule lets it in.
    pub fn not_allowed(user: &str, database: &str, from: &str) -> Self {
        let message = format!("no rule lets user {user:?} into database {database:?} from {from}");
        let hint = "the first [[rule]] of gate.toml that fits counts, and who fits none may not";
        Self::new("28000", message, Some(hint))
    }

    /// It is neither an admin nor a watcher.
    pub fn no_admin(user: &str, database: &str) -> Self {
        let message = format!("user {user:?} may not use {database:?}, the gate's own console");
        Self::new(
            "42501",
            message,
            Some("admins and watchers of gate.toml may"),
        )
    }

    /// It has waited for as long as may be.
    pub fn waited(seconds: u64) -> Self {
        let message = format!("waited {seconds} s for a turn, the longest that is allowed");
        let hint = "limits.query_wait_seconds in gate.toml; 0 waits for as long as it takes";
        Self::new("53300", message, Some(hint))
    }

    /// The gate stops and takes no new client; in PostgreSQL's words.
    pub fn stopping() -> Self {
        let message = "the database system is shutting down".to_owned();
        Self::new("57P03", message, None)
    }

    /// The gate stops, or an admin has said so.
    pub fn terminated() -> Self {
        let message = "terminating connection due to administrator command".to_owned();
        Self::new("57P01", message, None)
    }

    /// It was idle for longer than it lets its own session be.
    pub fn idle_session() -> Self {
        let message = "terminating connection due to idle-session timeout".to_owned();
        Self::new("57P05", message, None)
    }

    /// It has held something for too long that it did not use.
    pub fn idle_timeout(hold: IdleHold) -> Self {
        let (sqlstate, message, hint) = match hold {
            IdleHold::Transaction => (
                "25P03",
                "terminating connection due to idle-in-transaction timeout",
                "limits.idle_in_transaction_seconds in gate.toml; 0 never ends a client",
            ),
            IdleHold::Connection => (
                "57P05",
                "terminating connection due to idle-session timeout",
                "limits.kept_idle_seconds in gate.toml; 0 never ends a client",
            ),
        };
        Self::new(sqlstate, message.to_owned(), Some(hint))
    }

    /// What it wants is not to be had.
    pub fn unsupported(what: String) -> Self {
        Self::new("0A000", what, None)
    }

    /// What it wants is forbidden, in PostgreSQL's words.
    pub fn forbidden(sqlstate: &'static str, words: String) -> Self {
        Self::new(sqlstate, words, None)
    }

    /// Whether it wants replication cannot be understood.
    pub fn unknown_replication(unknown: &UnknownReplication) -> Self {
        let hint = UnknownReplication::HINT;
        Self::new("22023", unknown.to_string(), Some(hint))
    }

    /// Its first packet is wrong.
    pub fn of_startup(error: &StartupError) -> Self {
        Self::new(error.sqlstate(), error.to_string(), None)
    }

    /// The gate's own machine fails it.
    pub fn internal(error: &std::io::Error) -> Self {
        Self::new("58030", format!("the gate cannot go on: {error}"), None)
    }

    /// It has sent what cannot be understood.
    pub fn of_protocol(what: &str) -> Self {
        Self::new("08P01", what.to_owned(), None)
    }

    /// The server connection was lost in the middle of its turn.
    pub fn lost(what: &str) -> Self {
        let message = format!("the connection to the database was lost: {what}");
        let hint = "a transaction that was not yet committed was not; connect again";
        Self::new("08006", message, Some(hint))
    }

    /// The same, when the server's own last words have been passed on: there is nothing to add.
    pub fn after(what: &str) -> Self {
        let wording = Wording::None;
        Self {
            wording,
            ..Self::lost(what)
        }
    }

    /// The same for the log alone: its client takes no more words.
    pub fn unsaid(self) -> Self {
        let wording = Wording::None;
        Self { wording, ..self }
    }

    /// There is no server connection for it.
    pub fn of_login(error: LoginError, address: &ServerAddress, owner: &Owner) -> Self {
        let Owner { user, database, .. } = owner;
        match error {
            LoginError::Unreachable(error) => Self::new(
                "08001",
                format!("the database at {address} does not answer: {error}"),
                Some("is it running, and is its address right?"),
            ),
            LoginError::Worn => Self::lost(&error.to_string()),
            LoginError::Full => Self::new(
                "53300",
                format!("the database at {address} has no connection left"),
                Some("limits.connections is how many the gate may have"),
            ),
            LoginError::Impossible(what) => {
                Self::new("08004", format!("cannot log in at {address}: {what}"), None)
            }
            LoginError::Refused(message) | LoginError::AtLimit(_, message) => Self {
                sqlstate: "08004",
                message: format!(
                    "the database at {address} refuses user {user:?} for {database:?}: {}",
                    message_of_error(&message)
                ),
                wording: Wording::Server(message),
                hint: None,
                is_before_welcome: false,
            },
        }
    }

    /// It has left.
    pub fn left() -> Self {
        let wording = Wording::None;
        Self {
            wording,
            ..Self::new(
                "08006",
                "a client left before it said who it is".into(),
                None,
            )
        }
    }

    /// It has not proved who it is.
    pub fn wrong(user: &str) -> Self {
        let message = format!("password authentication failed for user \"{user}\"");
        Self::new("28P01", message, None)
    }

    /// It has to show a certificate, and did not; in PostgreSQL's words.
    pub fn no_certificate() -> Self {
        let message = "connection requires a valid client certificate".to_owned();
        Self::new("28000", message, None)
    }

    /// Its certificate is another user's.
    pub fn wrong_certificate(user: &str) -> Self {
        let message = format!("certificate authentication failed for user \"{user}\"");
        Self::new("28000", message, None)
    }

    /// Its secret stands in a database that cannot be asked.
    pub fn not_looked_up() -> Self {
        let message = "the gate cannot look up secrets at the moment".to_owned();
        Self::new("57P03", message, Some("the log of the gate has the reason"))
    }

    /// Whether it is because of a wrong proof.
    pub fn is_of_proof(&self) -> bool {
        self.sqlstate == "28P01"
    }

    /// What the client is told.
    pub fn write(&self, out: &mut BytesMut) {
        match &self.wording {
            Wording::None => return,
            _ if self.is_before_welcome => write_authentication(out, 0, b""),
            _ => {}
        }
        match &self.wording {
            Wording::None => {}
            Wording::Server(message) => write_as_fatal(out, message),
            Wording::Own => {
                let report = ErrorReport {
                    severity: "FATAL",
                    sqlstate: self.sqlstate,
                    message: &self.message,
                    hint: self.hint,
                    source: None,
                };
                write_error(out, &report);
            }
        }
    }
}
