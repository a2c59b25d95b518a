//! A client from its first byte to its last: let in, then served turn by turn.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use sooner_gate::Permit;

use super::cancel::{self, Running, Ticket};
use super::greet::{self, Refusal};
use super::login::{LoginError, LoginSecret};
use super::pool::{self, Owner, Server};
use super::relay::{End, relay};
use super::stream::Stream;
use super::{Shared, log};
use crate::exchange::{ClientState, Exchange, Unnamed};
use crate::settings::{self, Wanted};
use crate::wire::{
    BackendMessage, HEADER_BYTES, ParameterStatus, TransactionStatus, Version,
    write_authentication, write_key_data, write_parameter_status, write_ready,
};

/// What a client may send ahead while it waits for its turn.
const AHEAD_BYTES: usize = 64 * 1024;
/// Between two attempts to reach a server that does not answer.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// The class of every transaction, as long as there are no others.
const CLASS: u8 = 0;

/// Serves a client.
pub async fn serve(shared: Rc<Shared>, mut stream: Stream) {
    let here = Here::one_more(&shared);
    let mut input = BytesMut::new();
    let patience = shared.settings.login_patience;
    // In a box, like all else that a client is rarely in: whoever is silent keeps no room for it.
    let greeting = Box::pin(greet::greet(&shared, &mut stream, &mut input));
    let greeted = match tokio::time::timeout(patience, greeting).await {
        Ok(Ok(greeted)) => greeted,
        Ok(Err(refusal)) => return refuse(&mut stream, &refusal).await,
        Err(_) => return log("a client took too long to say who it is"),
    };
    let Some(greeted) = greeted else {
        return;
    };
    if here.is_too_many() {
        let refusal = Refusal::full(shared.settings.clients_max);
        return refuse(&mut stream, &refusal).await;
    }
    let mut client = Client {
        stream,
        input,
        owner: greeted.owner,
        wanted: greeted.wanted,
        proof: greeted.proof,
        state: ClientState::default(),
        shared: shared.clone(),
    };
    if let Err(Some(refusal)) = client.begin_and_serve(greeted.version).await {
        refuse(&mut client.stream, &refusal).await;
    }
}

/// One of those who are connected, whoever they are; no more when dropped.
struct Here(Rc<Shared>);

impl Here {
    fn one_more(shared: &Rc<Shared>) -> Self {
        shared.clients.set(shared.clients.get() + 1);
        Self(shared.clone())
    }

    fn is_too_many(&self) -> bool {
        self.0.clients.get() > self.0.settings.clients_max
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        self.0.clients.set(self.0.clients.get() - 1);
    }
}

/// Tells a client why, and the operator in one line.
async fn refuse(stream: &mut Stream, refusal: &Refusal) {
    log(&refusal.to_string());
    let mut out = BytesMut::new();
    refusal.write(&mut out);
    let told = stream.flush_all(&mut out);
    // Whoever does not read is not waited for.
    let _ = tokio::time::timeout(RETRY_PAUSE, told).await;
}

struct Client {
    stream: Stream,
    input: BytesMut,
    owner: Owner,
    wanted: Wanted,
    proof: Option<LoginSecret>,
    state: ClientState,
    shared: Rc<Shared>,
}

/// A server connection that a client has; closed when dropped, unless it was given back.
struct Lent {
    server: Option<Box<Server>>,
    shared: Rc<Shared>,
    /// Leave to be in the database, for as long.
    _permit: Permit,
}

impl Lent {
    fn close_server(&mut self) {
        if self.server.take().is_some() {
            self.shared.pool.borrow_mut().closed();
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.close_server();
    }
}

/// The client is gone, or is to be told why it must go.
type Gone = Option<Refusal>;

impl Client {
    async fn begin_and_serve(&mut self, version: Version) -> Result<(), Gone> {
        let takes_long_key = version >= Version::V3_2;
        let ticket = self.shared.sessions.borrow_mut().enter(takes_long_key);
        let ticket = ticket.map_err(|error| Some(Refusal::ours(&error)))?;
        let served = self.serve(&ticket).await;
        self.shared.sessions.borrow_mut().leave(ticket.process_id);
        served
    }

    async fn serve(&mut self, ticket: &Ticket) -> Result<(), Gone> {
        // What it is told depends on its database, which may have to be asked.
        let known = self.shared.pool.borrow().greeting(&self.owner).cloned();
        match known {
            Some(greeting) if self.wanted.is_empty() => self.state.settings = greeting,
            _ => {
                let lent = Box::pin(self.borrow_server()).await?;
                if let Some(server) = &lent.server {
                    self.state.settings = server.state.settings.clone();
                }
                Box::pin(self.give_back(lent)).await;
            }
        }
        self.welcome(ticket).await?;
        let mut held = None;
        loop {
            if self.input.is_empty() && held.is_none() && !self.hear().await {
                return Ok(());
            }
            if held.is_none() && self.input.first() == Some(&b'X') {
                return Ok(());
            }
            let lent = match held.take() {
                Some(lent) => lent,
                None => Box::pin(self.borrow_server()).await?,
            };
            held = Box::pin(self.turn(lent, ticket)).await?;
        }
    }

    async fn welcome(&mut self, ticket: &Ticket) -> Result<(), Gone> {
        let mut out = BytesMut::new();
        write_authentication(&mut out, 0, b"");
        for (name, value) in &self.state.settings {
            write_parameter_status(&mut out, &ParameterStatus { name, value });
        }
        write_key_data(&mut out, ticket.process_id, &ticket.secret);
        write_ready(&mut out, TransactionStatus::Idle);
        self.stream.flush_all(&mut out).await.map_err(|_| None)
    }

    /// Waits for something from the client; whether it is still there.
    async fn hear(&mut self) -> bool {
        // Whoever is silent keeps no buffer.
        self.input = BytesMut::new();
        matches!(self.stream.more(&mut self.input).await, Ok(1..))
    }

    /// Waits to be let in, then for a server connection with the client's settings.
    async fn borrow_server(&mut self) -> Result<Lent, Gone> {
        let permit = self.wait_outside().await?;
        let mut lent = Lent {
            server: None,
            shared: self.shared.clone(),
            _permit: permit,
        };
        let begin = Instant::now();
        loop {
            let found = self.find_server(begin).await.map_err(Some)?;
            let Err(error) = self.follow(lent.server.insert(found)).await else {
                return Ok(lent);
            };
            lent.close_server();
            let is_late = begin.elapsed() >= self.shared.settings.connect_patience;
            if is_late || !matches!(error, LoginError::Unreachable(_)) {
                return Err(Some(self.refusal(error)));
            }
            // It has ended a moment ago, and nothing of the client's was on it: another one will do.
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Gives a server connection the client's settings.
    async fn follow(&mut self, server: &mut Server) -> Result<(), LoginError> {
        // Before anything was reported to it, and after it threw that away, a client has what new ones have.
        if self.state.settings.is_empty()
            && let Some(greeting) = self.shared.pool.borrow().greeting(&self.owner)
        {
            self.state.settings = self.wanted.besides(greeting);
        }
        let seen = &self.state.settings;
        if let Some(sql) = settings::to_follow(&self.wanted, seen, &server.state) {
            run(server, sql.as_bytes()).await?;
            server.state.extras = self.wanted.extras(&server.state.settings);
        }
        Ok(())
    }

    /// Outside the database, together with all others; a client that leaves meanwhile is waited for no more.
    async fn wait_outside(&mut self) -> Result<Permit, Gone> {
        let enter = self.shared.gate.enter(CLASS, String::new());
        tokio::pin!(enter);
        loop {
            tokio::select! {
                biased;
                permit = &mut enter => return permit.map_err(|_| None),
                heard = self.stream.more(&mut self.input), if self.input.len() < AHEAD_BYTES => {
                    if !matches!(heard, Ok(1..)) {
                        return Err(None);
                    }
                }
            }
        }
    }

    /// An idle one or a new one; for the latter the client's patience has begun at `begin`.
    async fn find_server(&mut self, begin: Instant) -> Result<Box<Server>, Refusal> {
        let config = &self.shared.settings;
        loop {
            if let Some(server) = self.shared.pool.borrow_mut().take(&self.owner) {
                return Ok(server);
            }
            let opening = Opening::begin(&self.shared);
            let proof = self.proof.as_ref();
            let open = pool::open(&config.server, &self.owner, proof, config.statements_max);
            let opened = in_time(config.connect_patience, open).await;
            match opened {
                Ok(server) => {
                    opening.done();
                    let mut pool = self.shared.pool.borrow_mut();
                    pool.greeted(&self.owner, &server.state.settings);
                    return Ok(server);
                }
                Err(LoginError::Unreachable(error))
                    if begin.elapsed() < config.connect_patience =>
                {
                    drop(opening);
                    log(&format!(
                        "{} does not answer: {error}; trying again",
                        config.server
                    ));
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(error) => return Err(self.refusal(error)),
            }
        }
    }

    fn refusal(&self, error: LoginError) -> Refusal {
        Refusal::of_login(error, &self.shared.settings.server, &self.owner)
    }

    /// One turn; the server connection, if the client keeps it.
    async fn turn(&mut self, mut lent: Lent, ticket: &Ticket) -> Result<Option<Lent>, Gone> {
        let Some(server) = &mut lent.server else {
            return Err(None);
        };
        *ticket.running.borrow_mut() = Some(Running {
            key: server.key().clone(),
            cancelling: server.cancelling.clone(),
        });
        let was_pinned = self.state.pinned_by.is_some();
        let (end, is_free) = {
            let statements = &self.shared.statements;
            let mut exchange = Exchange::new(&mut self.state, &mut server.state, statements);
            let (client, input) = (&mut self.stream, &mut self.input);
            relay(client, input, &mut server.session, &mut exchange).await
        };
        let key = server.key().clone();
        if std::mem::take(&mut self.state.has_discarded) {
            self.state.settings.clear();
        }
        if let (false, Some(leaves)) = (was_pinned, self.state.pinned_by) {
            let Owner { user, database } = &self.owner;
            log(&format!(
                "a client of user {user:?} keeps its server connection to {database:?} until it leaves, for {leaves}"
            ));
        }
        let keeps = self.shared.settings.by_session || self.state.pinned_by.is_some();
        match end {
            End::Over if keeps => return Ok(Some(lent)),
            End::Over => {
                ticket.running.take();
                Box::pin(self.give_back(lent)).await;
                return Ok(None);
            }
            _ => {
                ticket.running.take();
            }
        }
        if is_free && !matches!(end, End::ServerBroke(_)) {
            Box::pin(self.give_back(lent)).await;
        } else {
            // What it runs is nobody's any more; until that is over it has its place inside.
            let cancelled = cancel::send(&self.shared.settings.server, &key);
            let _ = tokio::time::timeout(OWN_COMMAND_PATIENCE, cancelled).await;
            drop(lent);
        }
        Err(match end {
            End::ClientBroke(what) => Some(Refusal::of_protocol(&what)),
            End::ServerBroke(what) => Some(Refusal::lost(&what)),
            End::ClientLeft | End::Over => None,
        })
    }

    /// Gives a server connection to whoever waits, as it was when it was new but for what is kept track of.
    async fn give_back(&mut self, mut lent: Lent) {
        let Some(mut server) = lent.server.take() else {
            return;
        };
        let cancelling = server.cancelling.clone();
        // A cancel request that is on its way is this client's, and must not hit the next.
        let _arrived = cancelling.lock().await;
        if server.state.is_spoilt {
            self.shared.pool.borrow_mut().closed();
            return;
        }
        let leaves_something = self.shared.settings.by_session || self.state.pinned_by.is_some();
        if leaves_something {
            server.state.statements.forget_all();
            server.state.unnamed = Unnamed::Nobodys;
            server.state.extras.clear();
            if run(&mut server, b"DISCARD ALL").await.is_err() {
                self.shared.pool.borrow_mut().closed();
                return;
            }
        }
        self.shared.pool.borrow_mut().give_back(&self.owner, server);
    }
}

/// How long a command of the gate's own may take.
const OWN_COMMAND_PATIENCE: Duration = Duration::from_secs(10);

async fn run(server: &mut Server, sql: &[u8]) -> Result<(), LoginError> {
    in_time(OWN_COMMAND_PATIENCE, server.run(sql)).await
}

/// A database that takes a connection and says nothing is one that does not answer. One that is starting, or full, is one as well: it will be
/// there later.
async fn in_time<T>(
    patience: Duration,
    asking: impl Future<Output = Result<T, LoginError>>,
) -> Result<T, LoginError> {
    match tokio::time::timeout(patience, asking).await {
        Ok(Err(LoginError::Refused(message))) if is_for_now(&message) => {
            let words = "it takes no sessions at the moment";
            Err(LoginError::Unreachable(io::Error::other(words)))
        }
        Ok(answer) => answer,
        Err(_) => Err(LoginError::Unreachable(io::ErrorKind::TimedOut.into())),
    }
}

/// Whether the database says that it starts, stops or is full (57P03, 57P01, 53300).
fn is_for_now(message: &[u8]) -> bool {
    let read = BackendMessage::read(message[0], &message[HEADER_BYTES..]);
    let codes: [&[u8]; 3] = [b"57P03", b"57P01", b"53300"];
    matches!(read, Ok(BackendMessage::Error(Some(code))) if codes.contains(&code))
}

/// A place among the server connections while one is opened; given up when dropped.
struct Opening<'a>(Option<&'a Shared>);

impl<'a> Opening<'a> {
    fn begin(shared: &'a Shared) -> Self {
        let mut pool = shared.pool.borrow_mut();
        pool.make_room(shared.settings.limit);
        pool.opens();
        Self(Some(shared))
    }

    fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.0 {
            shared.pool.borrow_mut().closed();
        }
    }
}
