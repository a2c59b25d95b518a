//! Sessions in the gate's own database, as its tables show them.

use crate::pooler::Pooler;
use crate::stream::Stream;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Instant, SystemTime};

/// What is known of one.
pub struct ConsoleSession {
    pub user: String,
    /// By the name that its client uses.
    pub database: String,
    pub application_name: String,
    pub peer: Option<SocketAddr>,
    pub tls: Option<String>,
    pub since: SystemTime,
    pub asked_at: Instant,
}

impl ConsoleSession {
    /// One that begins.
    pub fn new(user: &str, database: &str, application_name: String, stream: &Stream) -> Self {
        Self {
            user: user.to_owned(),
            database: database.to_owned(),
            application_name,
            peer: stream.peer(),
            tls: stream.cipher(),
            since: SystemTime::now(),
            asked_at: Instant::now(),
        }
    }
}

/// It is shown as long as this is there.
pub struct ShownSession {
    pooler: Rc<Pooler>,
    number: u64,
}

impl ShownSession {
    /// Shows it.
    pub fn show(pooler: &Rc<Pooler>, session: ConsoleSession) -> Self {
        let number = pooler.next_client();
        pooler.consoles.borrow_mut().insert(number, session);
        Self {
            pooler: pooler.clone(),
            number,
        }
    }

    /// It has asked something.
    pub fn asks(&self) {
        let commands = &self.pooler.console_commands;
        commands.set(commands.get() + 1);
        if let Some(session) = self.pooler.consoles.borrow_mut().get_mut(&self.number) {
            session.asked_at = Instant::now();
        }
    }
}

impl Drop for ShownSession {
    fn drop(&mut self) {
        self.pooler.consoles.borrow_mut().remove(&self.number);
    }
}
