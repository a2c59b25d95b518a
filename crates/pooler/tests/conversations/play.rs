//! Plays a conversation with a database, directly or through a gate.
//!
//! Where a client waits, the direct run looks when the server waits for it, and counts what it has
//! said until then: so much has to come through the gate as well.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use super::script::{Script, Step};
use super::session::Session;

/// Clients of a conversation, at most.
pub const CLIENTS: usize = 3;

/// Enough for the two parts of a message to be read one by one.
const MOMENT: Duration = Duration::from_millis(3);

/// How long a server may take to come back.
const RECOVERY: Duration = Duration::from_secs(20);

/// What a client heard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    pub messages: Vec<String>,
    /// For each place where it waited: how much it had heard for sure, and whether its statement
    /// slept.
    stops: Vec<(usize, bool)>,
}

/// A database with tables of its own for each client.
pub struct ClientTables {
    server: PathBuf,
    path: PathBuf,
    database: &'static str,
    /// One for each client, straight to the server.
    watchers: Vec<Mutex<Session>>,
}

impl ClientTables {
    /// Makes it; `server` is the socket file of the server, `path` the one that clients use.
    pub fn make(server: &Path, path: &Path, database: &'static str) -> Self {
        let watch = || Mutex::new(Session::begin(server, database).unwrap());
        let watchers: Vec<_> = (0..CLIENTS).map(|_| watch()).collect();
        Self {
            server: server.to_owned(),
            path: path.to_owned(),
            database,
            watchers,
        }
    }

    /// Whether the server has lost all its sessions.
    pub fn has_crashed(&self) -> bool {
        self.watchers[0].lock().unwrap().ask("select 1").is_err()
    }

    /// Watches with new sessions, as soon as the server takes some.
    pub fn watch_again(&self) -> Result<(), String> {
        for watcher in &self.watchers {
            let until = Instant::now() + RECOVERY;
            let session = loop {
                match Session::begin(&self.server, self.database) {
                    Err(_) if Instant::now() < until => thread::sleep(MOMENT),
                    begun => break begun,
                }
            };
            *watcher.lock().unwrap() = session?;
        }
        Ok(())
    }

    /// Makes the tables.
    pub fn fill(&self) {
        let mut owner = Session::begin(&self.server, self.database).unwrap();
        let boom = "create function boom() returns trigger language plpgsql as $$ begin raise exception 'boom'; end $$";
        owner.ask(boom).unwrap();
        for client in 0..CLIENTS {
            let sql = format!(
                "create table t{client} (i int primary key); create table g{client} (i int);
                 create table d{client} (i int unique deferrable initially deferred);
                 create trigger b before insert on g{client} for each statement execute function boom()"
            );
            owner.ask(&sql).unwrap();
        }
    }

    /// Empties the tables and gives them their types back; an error where something still holds
    /// them.
    pub fn empty(&self) -> Result<(), String> {
        let names = (0..CLIENTS).map(|client| format!("t{client}, d{client}"));
        let names = names.collect::<Vec<_>>().join(", ");
        let types = (0..CLIENTS).map(|client| format!("; alter table t{client} alter i type int"));
        let types: String = types.collect();
        let sql = format!("set statement_timeout = '15s'; truncate {names}{types}");
        self.watchers[0].lock().unwrap().ask(&sql).map(drop)
    }

    /// What is in the tables.
    pub fn state(&self) -> Result<String, String> {
        let of = |table: String| {
            format!("coalesce((select string_agg(i::text, ' ' order by i) from {table}), '-')")
        };
        let tables = (0..CLIENTS).flat_map(|client| [format!("t{client}"), format!("d{client}")]);
        let sql = tables.map(of).collect::<Vec<_>>().join(" || ', ' || ");
        self.watchers[0]
            .lock()
            .unwrap()
            .ask(&format!("select {sql}"))
    }

    /// Plays all clients at once; `direct` is what they heard without a gate.
    pub fn play(&self, script: &Script, direct: Option<&[Heard]>) -> Result<Vec<Heard>, String> {
        thread::scope(|scope| {
            let clients = script.iter().enumerate().map(|(client, steps)| {
                let before = direct.map(|heard| &heard[client]);
                scope.spawn(move || {
                    let played = self.play_one(client, steps, before);
                    played.map_err(|error| format!("client {client} {error}"))
                })
            });
            let clients: Vec<_> = clients.collect();
            let played = clients.into_iter().map(|client| client.join().unwrap());
            let (heard, errors): (Vec<_>, Vec<_>) = played.partition(Result::is_ok);
            // One client may wait for another one: what each waited for tells which.
            let errors: Vec<String> = errors.into_iter().filter_map(Result::err).collect();
            if errors.is_empty() {
                Ok(heard.into_iter().flatten().collect())
            } else {
                Err(errors.join("; "))
            }
        })
    }

    fn play_one(
        &self,
        client: usize,
        steps: &[Step],
        direct: Option<&Heard>,
    ) -> Result<Heard, String> {
        let mut session = Session::begin(&self.path, self.database)?;
        let end = missing_end(steps);
        let mut stops = Vec::new();
        let mut output = Vec::new();
        let mut rest_bytes = 0;
        for step in steps.iter().chain(&end) {
            match step {
                Step::Send(tag, body) => {
                    output.push(*tag);
                    output.extend((4 + body.len() as i32).to_be_bytes());
                    output.extend(body);
                    // Of a short message a part of its head as well.
                    rest_bytes = (5 + body.len()) * 2 / 3;
                    continue;
                }
                Step::Halt => {
                    let rest = output.split_off(output.len() - rest_bytes);
                    session.send(&std::mem::replace(&mut output, rest));
                    rest_bytes = 0;
                    thread::sleep(MOMENT);
                    continue;
                }
                Step::CutOff => {
                    output.truncate(output.len() - rest_bytes);
                    session.send(&std::mem::take(&mut output));
                    session.close();
                    break;
                }
                Step::Close | Step::Wait | Step::Cancel => {
                    session.send(&std::mem::take(&mut output))
                }
            }
            rest_bytes = 0;
            let sleeps = match direct.map(|direct| direct.stops.get(stops.len())) {
                None => self.stop(client, &mut session, *step == Step::Cancel)?,
                // The direct run was at its end before.
                Some(None) => break,
                Some(Some((count, sleeps))) => {
                    let what = format!("message {count} at {step:?} {}", stops.len());
                    session.until(&what, |session| {
                        session.heard.len() >= *count && (!sleeps || self.sleeps(client))
                    })?;
                    *sleeps
                }
            };
            if session.is_over {
                break;
            }
            stops.push((session.sure(), sleeps));
            match step {
                Step::Cancel if sleeps => {
                    session.cancel();
                    session.until("it sleeps no more", |_| !self.sleeps(client))?;
                }
                // Not before: a client that breaks off while it waits for its turn gives that up.
                Step::Close => session.close(),
                _ => {}
            }
        }
        session.send(&output);
        session.until("the end", |_| false)?;
        let messages = std::mem::take(&mut session.heard);
        Ok(Heard { messages, stops })
    }

    /// Waits until the server waits for the client, or sleeps; whether it sleeps.
    fn stop(&self, client: usize, session: &mut Session, may_sleep: bool) -> Result<bool, String> {
        let process_id = session.process_id();
        let mut sleeps = false;
        session.until("the server waits", |_| {
            // One that was woken and has not run yet is not asleep.
            let stat = fs::read_to_string(format!("/proc/{process_id}/stat")).unwrap_or_default();
            let is_asleep = stat
                .rsplit(')')
                .next()
                .is_some_and(|rest| rest.starts_with(" S"));
            let sql = format!("select wait_event from pg_stat_activity where pid = {process_id}");
            let event = self.watchers[client].lock().unwrap().ask(&sql);
            sleeps = may_sleep && event == Ok("PgSleep".into());
            sleeps || (is_asleep && event == Ok("ClientRead".into()))
        })?;
        session.hear();
        Ok(sleeps)
    }

    /// Whether the statement of a client sleeps, where its connection is not known.
    fn sleeps(&self, client: usize) -> bool {
        let sql = format!(
            "select count(*) from pg_stat_activity where datname = '{}' and wait_event = 'PgSleep' and query like '%of {client} %'",
            self.database
        );
        self.watchers[client].lock().unwrap().ask(&sql) == Ok("1".into())
    }
}

/// What steps that have been made shorter may have lost.
fn missing_end(steps: &[Step]) -> Option<Step> {
    let has_end = steps.last() == Some(&Step::Send(b'X', Vec::new()));
    (!has_end).then_some(Step::Close)
}
