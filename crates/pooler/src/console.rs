//! The database that is the gate itself, by the names `sooner` and `pgbouncer`: commands in, tables
//! out, in the simple protocol.

pub mod command;
pub(crate) mod sessions;
mod set;
mod show;
mod table;
mod waiting;

use crate::client::cancel::CancelKey;
use crate::client::cancel_queued::CANCELLED;
use crate::client::connection::refuse;
use crate::client::handle::{ClientHandle, Termination};
use crate::client::refusal::Refusal;
use crate::client::startup::AuthenticatedClient;
use crate::config::OWN_DATABASES;
use crate::console::command::{Command, Invalid};
use crate::console::sessions::{ConsoleSession, ShownSession};
use crate::pool::database::Database;
use crate::pooler::Pooler;
use crate::stream::Stream;
use bytes::BytesMut;
use sooner_config::Spanned;
use sooner_postgres::wire::{
    ErrorReport, FrontendMessage, HEADER_BYTES, Look, ParameterStatus, Splitter, TransactionStatus,
    Version, truncate_name, write_authentication, write_complete, write_empty, write_error,
    write_key_data, write_notice, write_parameter_status, write_ready,
};
use std::rc::Rc;
use std::time::Instant;
use table::Table;
use waiting::{ConsoleKey, left, unless_cancelled, until_unused};

/// The longest command, and all else that is sent here.
const COMMAND_BYTES_MAX: usize = 1 << 16;
/// What the gate says that it is; a version of PostgreSQL where drivers look for one.
const VERSION: &str = concat!("15.0 (sooner ", env!("CARGO_PKG_VERSION"), ")");

/// While all databases are paused; it begins as PgBouncer's words.
const ALREADY_PAUSED: &str = "already suspended/paused; RESUME ends it";

/// What a session is told at its beginning.
const SESSION_SETTINGS: [(&str, &str); 7] = [
    ("server_version", VERSION),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO"),
    ("TimeZone", "UTC"),
    ("standard_conforming_strings", "on"),
    ("is_superuser", "on"),
];

/// What a user may do here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rank {
    Admin,
    Watcher,
}

/// Serves a client that has proved who it is.
pub async fn serve(pooler: &Rc<Pooler>, authenticated: AuthenticatedClient, mut input: BytesMut) {
    let (mut stream, user) = (authenticated.stream, authenticated.user);
    let Some(rank) = rank(pooler, &stream, &user) else {
        let refusal = Refusal::no_admin(&user, &authenticated.database);
        return refuse(&mut stream, &refusal).await;
    };
    let name = authenticated.requested.value(b"application_name");
    let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
    let session = ConsoleSession::new(&user, &authenticated.database, name, &stream);
    let takes_long_key = authenticated.version >= Version::V3_2;
    let key = match ConsoleKey::issue(pooler, &session, takes_long_key) {
        Ok(key) => key,
        Err(error) => return refuse(&mut stream, &Refusal::internal(&error)).await,
    };
    if welcome(&mut stream, &key.key).await.is_err() {
        return;
    }
    let shown = ShownSession::show(pooler, session);
    let session = Session {
        pooler,
        rank,
        handle: &key.handle,
    };
    // A client that has left is told nothing.
    let _ = session.talk(&mut stream, &mut input, &shown).await;
}

/// A session as its commands need it.
struct Session<'a> {
    pooler: &'a Rc<Pooler>,
    rank: Rank,
    /// What cancel requests reach.
    handle: &'a ClientHandle,
}

/// Why a command is refused, or was not done.
struct Failure {
    sqlstate: &'static str,
    words: String,
}

impl Failure {
    /// Its client has cancelled it; in PostgreSQL's words.
    fn cancelled() -> Self {
        Self {
            sqlstate: CANCELLED.sqlstate,
            words: CANCELLED.message.to_owned(),
        }
    }

    fn is_cancelled(&self) -> bool {
        self.sqlstate == CANCELLED.sqlstate
    }
}

impl From<String> for Failure {
    fn from(words: String) -> Self {
        let sqlstate = "22023";
        Self { sqlstate, words }
    }
}

fn rank(pooler: &Pooler, stream: &Stream, user: &str) -> Option<Rank> {
    let configuration = pooler.configuration();
    let is_in = |names: &[Spanned<String>]| {
        names
            .iter()
            .any(|name| truncate_name(name.get_ref()) == user)
    };
    let is_own = OWN_DATABASES.contains(&user) && stream.is_own_user();
    if is_own || is_in(&configuration.config.admins) {
        return Some(Rank::Admin);
    }
    is_in(&configuration.config.watchers).then_some(Rank::Watcher)
}

async fn welcome(stream: &mut Stream, key: &CancelKey) -> std::io::Result<()> {
    let mut out = BytesMut::new();
    write_authentication(&mut out, 0, b"");
    for (name, value) in SESSION_SETTINGS {
        let (name, value) = (name.as_bytes(), value.as_bytes());
        write_parameter_status(&mut out, &ParameterStatus { name, value });
    }
    write_key_data(&mut out, key.process_id, &key.secret);
    write_ready(&mut out, TransactionStatus::Idle);
    stream.flush_all(&mut out).await
}

impl Session<'_> {
    async fn talk(
        &self,
        stream: &mut Stream,
        input: &mut BytesMut,
        shown: &ShownSession,
    ) -> std::io::Result<()> {
        let mut out = BytesMut::new();
        let mut skips = false;
        loop {
            let piece = Splitter::new(|_| Look::Whole(COMMAND_BYTES_MAX)).next(input);
            let length = match piece.map(|piece| piece.map(|piece| piece.bytes.len())) {
                Ok(Some(length)) => length,
                Ok(None) if stream.more(input).await? == 0 => return Ok(()),
                Ok(None) => continue,
                Err(error) => {
                    refuse(stream, &Refusal::of_protocol(&error.to_string())).await;
                    return Ok(());
                }
            };
            let message = input.split_to(length);
            match FrontendMessage::read(message[0], &message[HEADER_BYTES..], true) {
                Ok(FrontendMessage::Terminate) => return Ok(()),
                Ok(FrontendMessage::Query(sql)) => {
                    shown.asks();
                    self.handle.asked_at.set(Instant::now());
                    let sql = String::from_utf8_lossy(sql).into_owned();
                    tokio::select! {
                        biased;
                        () = self.run_all(&sql, &mut out) => {}
                        () = left(stream, input) => return Ok(()),
                    }
                    write_ready(&mut out, TransactionStatus::Idle);
                }
                Ok(FrontendMessage::Sync) => {
                    skips = false;
                    write_ready(&mut out, TransactionStatus::Idle);
                }
                _ if skips => {}
                _ => {
                    skips = true;
                    let words = "the gate itself takes commands in the simple protocol only";
                    error(&mut out, "0A000", words);
                }
            }
            stream.flush_all(&mut out).await?;
        }
    }

    async fn run_all(&self, text: &str, out: &mut BytesMut) {
        let commands = match command::read(text) {
            Ok(commands) => commands,
            Err(invalid) => {
                let sqlstate = match invalid {
                    Invalid::NotHere(..) => "0A000",
                    Invalid::Command(_) | Invalid::NoDatabase(_) => "42601",
                };
                return error(out, sqlstate, &invalid.to_string());
            }
        };
        if commands.is_empty() {
            write_empty(out);
        }
        for command in commands {
            let is_harmless = matches!(command, Command::Show(_) | Command::Set(_));
            if self.rank == Rank::Watcher && !is_harmless {
                return error(out, "42501", "watchers may only SHOW; admins may do this");
            }
            let is_help = command == Command::Show("HELP".into());
            match self.run(command).await {
                Ok(Answer::Table(table)) => {
                    if is_help {
                        notice(out, show::COMMANDS);
                    }
                    table.write(out);
                }
                Ok(Answer::Noted(tag, words)) => {
                    notice(out, &words);
                    write_complete(out, tag);
                }
                Ok(Answer::Done(tag)) => write_complete(out, tag),
                Err(Failure { sqlstate, words }) => return error(out, sqlstate, &words),
            }
        }
    }

    async fn run(&self, command: Command) -> Result<Answer, Failure> {
        let pooler = self.pooler;
        let done = match command {
            Command::Show(what) => {
                let table = show::show(pooler, &what);
                let unknown = || format!("cannot show {what}; SHOW HELP lists what can be shown");
                return Ok(Answer::Table(table.ok_or_else(unknown)?));
            }
            Command::Set(name) => {
                set::check(&pooler.configuration().config, &name)?;
                "SET"
            }
            Command::Reload => {
                pooler.reload()?;
                crate::log::log("the configuration was read again");
                "RELOAD"
            }
            Command::Pause(name) => {
                let unseen = name.as_ref().and_then(|name| unseen(pooler, name));
                self.pause(name).await?;
                return Ok(noted("PAUSE", unseen));
            }
            Command::Resume(name) => {
                resume(pooler, name)?;
                "RESUME"
            }
            Command::Reconnect(name) => {
                databases(pooler, name)?
                    .iter()
                    .for_each(|db| db.reconnect());
                "RECONNECT"
            }
            Command::Disable(name) => {
                let unseen = unseen(pooler, &name);
                database(pooler, &name)?.is_disabled.set(true);
                return Ok(noted("DISABLE", unseen));
            }
            Command::Enable(name) => {
                let unseen = unseen(pooler, &name);
                database(pooler, &name)?.is_disabled.set(false);
                return Ok(noted("ENABLE", unseen));
            }
            Command::Kill(name) => {
                kill(pooler, &name)?;
                "KILL"
            }
            Command::KillClient(id) => {
                let is_here = pooler.clients.borrow().contains_key(&id);
                tell(pooler, |handle| handle.id == id);
                is_here.then_some("KILL_CLIENT").ok_or_else(|| {
                    format!("there is no client {id}; SHOW CLIENTS has their numbers as ptr")
                })?
            }
            Command::WaitClose(name) => {
                self.wait_close(databases(pooler, name)?).await?;
                "WAIT_CLOSE"
            }
            Command::Shutdown(how) => {
                crate::log::log("an admin sent SHUTDOWN");
                pooler.stop(how);
                "SHUTDOWN"
            }
        };
        Ok(Answer::Done(done))
    }

    async fn wait_close(&self, databases: Vec<Rc<Database>>) -> Result<(), Failure> {
        let returned = async {
            for db in databases {
                db.leases.old_returned().await;
            }
            Ok(())
        };
        unless_cancelled(self.handle, returned).await
    }

    /// Where its client cancels it nothing is paused any more; where its client leaves it stays so.
    /// Both are as in PgBouncer.
    async fn pause(&self, name: Option<String>) -> Result<(), Failure> {
        let pooler = self.pooler;
        let databases = match &name {
            None if pooler.is_paused() => return Err(ALREADY_PAUSED.to_owned().into()),
            None => {
                pooler.set_paused(true);
                pooler.databases()
            }
            Some(name) => {
                let db = database(pooler, name)?;
                db.pause();
                vec![db]
            }
        };
        let unused = async {
            for db in &databases {
                until_unused(pooler, db).await?;
            }
            Ok(())
        };
        let paused = unless_cancelled(self.handle, unused).await;
        if paused.as_ref().is_err_and(Failure::is_cancelled) {
            // That there is none any more is no failure.
            let _ = resume(pooler, name);
        }
        paused
    }
}

enum Answer {
    Table(Table),
    Done(&'static str),
    /// Done, with what should be known of it.
    Noted(&'static str, String),
}

fn kill(pooler: &Pooler, name: &str) -> Result<(), String> {
    // As in PgBouncer: a RESUME of everything would end the pause of this database.
    if pooler.is_paused() {
        return Err(ALREADY_PAUSED.to_owned());
    }
    if unseen(pooler, name).is_some() {
        return Err(unknown_database(name));
    }
    let db = database(pooler, name)?;
    db.pause();
    tell(pooler, |handle| handle.database == name);
    db.reconnect();
    Ok(())
}

fn resume(pooler: &Pooler, name: Option<String>) -> Result<(), String> {
    match name {
        None if pooler.is_paused() || pooler.databases().iter().any(|db| db.is_paused()) => {
            pooler.set_paused(false);
            Ok(())
        }
        None => Err("the gate is not paused".into()),
        Some(name) => {
            let db = match unseen(pooler, &name) {
                // What is paused has been seen.
                Some(_) => return Err(unknown_database(&name)),
                None => database(pooler, &name)?,
            };
            if db.is_paused() {
                db.resume()
            } else {
                return Err(format!("database {name:?} is not paused"));
            }
            Ok(())
        }
    }
}

fn noted(tag: &'static str, words: Option<String>) -> Answer {
    match words {
        Some(words) => Answer::Noted(tag, words),
        None => Answer::Done(tag),
    }
}

/// What to say of a name that fits `*` and that no client has requested so far: it may be a slip.
fn unseen(pooler: &Pooler, name: &str) -> Option<String> {
    let configuration = pooler.configuration();
    let table = configuration.config.database(name)?;
    let is_seen = pooler.databases().iter().any(|db| db.name == name);
    let is_seen = is_seen || pooler.requested.borrow().contains(name);
    let is_seen = is_seen || truncate_name(table.name.get_ref()) == name;
    (!is_seen).then(|| {
        format!("no client has asked for database {name:?} so far; if the name is wrong, undo the command")
    })
}

fn unknown_database(name: &str) -> String {
    format!("there is no database {name:?} here; SHOW DATABASES lists them")
}

fn tell(pooler: &Pooler, is_meant: impl Fn(&ClientHandle) -> bool) {
    let clients: Vec<_> = pooler.clients.borrow().values().cloned().collect();
    for handle in clients.iter().filter(|handle| is_meant(handle)) {
        handle.terminate(Termination::Now);
    }
}

fn database(pooler: &Pooler, name: &str) -> Result<Rc<Database>, String> {
    let db = pooler.database(name);
    db.ok_or_else(|| unknown_database(name))
}

fn databases(pooler: &Pooler, name: Option<String>) -> Result<Vec<Rc<Database>>, String> {
    match name {
        Some(name) => database(pooler, &name).map(|db| vec![db]),
        None => Ok(pooler.databases()),
    }
}

fn notice(out: &mut BytesMut, message: &str) {
    let report = ErrorReport {
        severity: "NOTICE",
        sqlstate: "00000",
        message,
        hint: None,
        source: None,
    };
    write_notice(out, &report);
}

fn error(out: &mut BytesMut, sqlstate: &str, message: &str) {
    let report = ErrorReport {
        severity: "ERROR",
        sqlstate,
        message,
        hint: None,
        source: None,
    };
    write_error(out, &report);
}
