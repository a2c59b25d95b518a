//! Server connections that nobody uses, and what is known of the databases behind them.
//!
//! There are never more connections than transactions are let in, so whoever was let in finds one: an idle one of its own user and database,
//! the last used first, because its caches are warm; else a new one, for which an idle one of somebody else is closed where there are enough.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::login::{LoginError, LoginSecret, ServerAddress, ServerKey, Session, log_in};
use crate::exchange::{ServerState, Settings};

/// Whose connection it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    pub user: String,
    pub database: String,
}

/// A server connection.
pub struct Server {
    pub session: Session,
    pub state: ServerState,
    /// Held while a cancel request is on its way to it: the next client is not to be hit.
    pub cancelling: Rc<tokio::sync::Mutex<()>>,
}

impl Server {
    /// What a cancel request to it has to say.
    pub fn key(&self) -> &ServerKey {
        &self.session.key
    }

    /// Runs a command of the gate's own.
    pub async fn run(&mut self, sql: &[u8]) -> Result<(), LoginError> {
        self.session.run(sql, &mut self.state.settings).await
    }
}

/// All of them that are idle.
#[derive(Default)]
pub struct Pool {
    /// By owner, the last used last.
    #[expect(
        clippy::vec_box,
        reason = "they are lent in their boxes, which are as small as a place in a client's task should be"
    )]
    idle: BTreeMap<Owner, Vec<Box<Server>>>,
    /// Those that are lent as well.
    open: usize,
    /// Settings as each database reported them to a new session.
    greetings: BTreeMap<Owner, Settings>,
}

impl Pool {
    /// An idle one that still works.
    pub fn take(&mut self, owner: &Owner) -> Option<Box<Server>> {
        let idle = self.idle.get_mut(owner)?;
        while let Some(mut server) = idle.pop() {
            if server.session.is_quiet() {
                return Some(server);
            }
            self.open -= 1;
        }
        None
    }

    /// Makes room for one more among `max`; nothing where there is.
    pub fn make_room(&mut self, max: usize) {
        while self.open >= max {
            let Some(idle) = self.idle.values_mut().find(|idle| !idle.is_empty()) else {
                return;
            };
            // The least recently used of that owner.
            drop(idle.remove(0));
            self.open -= 1;
        }
        self.idle.retain(|_, idle| !idle.is_empty());
    }

    /// One is being opened.
    pub fn opens(&mut self) {
        self.open += 1;
    }

    /// One that was lent or opened is no more.
    pub fn closed(&mut self) {
        self.open -= 1;
    }

    /// One comes back.
    pub fn give_back(&mut self, owner: &Owner, server: Box<Server>) {
        self.idle.entry(owner.clone()).or_default().push(server);
    }

    /// What a new session of this owner is told.
    pub fn greeting(&self, owner: &Owner) -> Option<&Settings> {
        self.greetings.get(owner)
    }

    /// A new session has been told this.
    pub fn greeted(&mut self, owner: &Owner, settings: &Settings) {
        self.greetings.insert(owner.clone(), settings.clone());
    }
}

/// Opens a connection.
pub async fn open(
    address: &ServerAddress,
    owner: &Owner,
    secret: Option<&LoginSecret>,
    statements_max: usize,
) -> Result<Box<Server>, LoginError> {
    let mut session = log_in(address, &owner.user, &owner.database, secret).await?;
    let settings = std::mem::take(&mut session.settings);
    Ok(Box::new(Server {
        session,
        state: ServerState::new(statements_max, settings),
        cancelling: Rc::default(),
    }))
}
