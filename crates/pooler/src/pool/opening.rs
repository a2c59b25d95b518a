//! Server connections that are being opened, each in a task of its own: what is opened for one
//! transaction may be handed to another.

use crate::pool::database::Database;
use crate::pool::server_session::LoginError;
use crate::pool::upstream::Upstream;
use crate::pool::waiters::{GivenUp, Handed, Number, Ticket, Waiting};
use crate::pool::{Owner, Pool, ServerConnection};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A pool of an upstream.
pub type PoolOf = fn(&Upstream) -> &RefCell<Pool>;

/// What a new server connection is told once, to the first that has it.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// How long it took.
    pub took: Duration,
    /// Whether another owner's was given up for it.
    pub is_again: bool,
}

/// What a transaction that waits for a connection is told.
pub type HandedServer = Handed<Box<ServerConnection>, LoginError>;

/// A transaction that waits for a connection; it leaves the queue when this is dropped.
pub struct Wait {
    db: Rc<Database>,
    pool: PoolOf,
    owner: Owner,
    ticket: Ticket<Box<ServerConnection>, LoginError>,
}

impl Wait {
    /// Begins to wait; `opening` opens a connection, where one may be opened, among `most`.
    pub fn begin<F>(
        (db, pool): (&Rc<Database>, PoolOf),
        owner: &Owner,
        waiting: Waiting,
        (most, opening): (usize, Option<F>),
    ) -> Wait
    where
        F: Future<Output = Result<Box<ServerConnection>, LoginError>> + 'static,
    {
        let mut held = pool(&db.upstream).borrow_mut();
        let (ticket, given_up) = held.waiters.wait(owner, waiting, opening.is_some());
        if let (Some(opening), Some(given_up)) = (opening, given_up) {
            let is_again = held.make_room(most);
            held.opens();
            let task = Opening {
                db: db.clone(),
                pool,
                owner: owner.clone(),
                number: ticket.number,
                is_again,
            };
            tokio::task::spawn_local(task.run(opening, given_up));
        }
        drop(held);
        Wait {
            db: db.clone(),
            pool,
            owner: owner.clone(),
            ticket,
        }
    }

    /// What it is told.
    pub async fn handed(&mut self) -> HandedServer {
        let handed = (&mut self.ticket.receiver).await;
        handed.unwrap_or(Handed::LookAgain)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut pool = (self.pool)(&self.db.upstream).borrow_mut();
        if pool.waiters.leave(&self.owner, self.ticket.number) {
            pool.closed();
        }
        self.ticket.receiver.close();
        if let Ok(Handed::Server(server)) = self.ticket.receiver.try_recv() {
            match self.db.keeps(&server) {
                true => pool.give_back(&self.owner, server),
                false => pool.closed(),
            }
        }
    }
}

/// One that is being opened.
struct Opening {
    db: Rc<Database>,
    pool: PoolOf,
    owner: Owner,
    number: Number,
    is_again: bool,
}

impl Opening {
    async fn run<F>(self, opening: F, given_up: GivenUp)
    where
        F: Future<Output = Result<Box<ServerConnection>, LoginError>>,
    {
        let begin = Instant::now();
        let opened = tokio::select! {
            biased;
            // Who gave it up has counted it already.
            _ = given_up => return,
            opened = opening => opened,
        };
        let mut pool = (self.pool)(&self.db.upstream).borrow_mut();
        match opened {
            Ok(server) if !self.db.keeps(&server) => {
                if pool.waiters.discarded(&self.owner, self.number) {
                    pool.closed();
                }
            }
            Ok(mut server) => {
                if !pool.waiters.opened(&self.owner, self.number) {
                    return;
                }
                server.opened = Some(Opened {
                    took: begin.elapsed(),
                    is_again: self.is_again,
                });
                let now = Instant::now();
                pool.note_initial_parameters(&self.owner, &server.state.reported, now);
                pool.give_back(&self.owner, server);
            }
            Err(error) => {
                if pool.waiters.failed(&self.owner, self.number, error) {
                    pool.closed();
                }
            }
        }
    }
}
