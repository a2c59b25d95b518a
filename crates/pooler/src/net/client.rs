//! A client that has been let in, served turn by turn.

use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::BytesMut;

use super::arrivals::Guest;
use super::cancel::{self, Ticket};
use super::door::{Door, UserDoor};
use super::greet::Greeted;
use super::here::{Doing, Here, Leave};
use super::lend::{Borrower, Inside, Lent, OWN_COMMAND_PATIENCE, owner};
use super::login::LoginSecret;
use super::outside::{Class, Gone as NotIn, Waiting, gives_up, is_there};
use super::pool::Server;
use super::refusal::Refusal;
use super::relay::{End, Played, relay};
use super::shared::Shared;
use super::stream::Stream;
use super::{settle, withdraw};
use crate::measured::Done;
use sooner_postgres::hints::hints_of;
use sooner_postgres::parameters::RequestedParameters;
use sooner_postgres::rewriter::Rewriter;
use sooner_postgres::session::ClientState;
use sooner_postgres::wire::{
    ParameterStatus, TransactionStatus, Version, write_authentication, write_key_data,
    write_parameter_status, write_ready,
};

/// A client that has been let in.
pub struct Client {
    pub stream: Stream,
    input: BytesMut,
    pub here: Rc<Here>,
    wanted: RequestedParameters,
    proof: Option<LoginSecret>,
    state: ClientState,
    shared: Rc<Shared>,
    _guest: Guest,
}

/// The client is gone, or is to be told why it must go.
type Gone = Option<Refusal>;

/// The kind of what began with no more than BEGIN.
const UNSAID: &str = "(not said)";

/// What a turn begins with.
struct Turn {
    lent: Lent,
    /// `None` where nothing was waited for: it is known when something comes.
    class: Option<Class>,
    outside: Duration,
}

impl Client {
    /// One that has proved who it is.
    pub fn new(shared: &Rc<Shared>, greeted: Greeted, input: BytesMut) -> Self {
        let stream = greeted.stream;
        let (peer, tls) = (stream.peer(), stream.cipher());
        let id = shared.next_client();
        Self {
            here: Here::new(id, &greeted.user, &greeted.database, peer, tls),
            stream,
            input,
            wanted: greeted.wanted,
            proof: greeted.proof,
            state: ClientState::default(),
            shared: shared.clone(),
            _guest: greeted.guest,
        }
    }

    /// Serves it turn by turn until it leaves, or is to be told why it must.
    pub async fn begin_and_serve(&mut self, version: Version) -> Result<(), Gone> {
        // Nobody has its key yet, so nothing is withdrawn.
        let held = self.learn_settings().await?;
        let server = held.as_ref().and_then(|lent| lent.server.as_ref());
        let kept_id = server.map(|server| server.key().process_id);
        let takes_long_key = version >= Version::V3_2;
        let ticket = self
            .shared
            .sessions
            .borrow_mut()
            .enter(&self.here, takes_long_key, kept_id);
        let ticket = ticket.map_err(|error| Some(Refusal::ours(&error)))?;
        let served = self.serve(&ticket, held).await;
        self.shared.sessions.borrow_mut().leave(ticket.process_id);
        served
    }

    /// `held` is the server connection that it has already.
    async fn serve(&mut self, ticket: &Ticket, mut held: Option<Lent>) -> Result<(), Gone> {
        self.welcome(ticket).await?;
        loop {
            // Whoever keeps a server connection hears of it as well.
            if self.input.is_empty() && held.is_none() && !self.hear().await? {
                return Ok(());
            }
            if held.is_none() && self.input.first() == Some(&b'X') {
                return Ok(());
            }
            let turn = match held.take() {
                Some(lent) => Some(self.another_turn(lent)),
                // In boxes, like all else that a client is rarely in: whoever is silent keeps no room for it.
                None => Box::pin(self.begin_turn()).await?,
            };
            held = match turn {
                Some(turn) => Box::pin(self.turn(turn)).await?,
                None => None,
            };
        }
    }

    /// What it is told at the beginning depends on its database, which may have to be asked. One
    /// that keeps its server connection has it from here on, if one is free: the number that it is
    /// told is that of the server process then.
    async fn learn_settings(&mut self) -> Result<Option<Lent>, Gone> {
        let door = self.door()?;
        let owner = owner(&self.here.user, &door);
        let by_session = self
            .shared
            .settings()
            .by_session(&self.here.user, &door.table);
        let known = {
            let pool = door.backend.pool.borrow();
            let greeting = pool.greeting(&owner);
            greeting.and_then(|greeting| self.wanted.reported_at_start(greeting))
        };
        let mut held = None;
        match known {
            Some(settings) => {
                self.state.reported = settings;
                if by_session {
                    held = Box::pin(self.borrow_now(door)).await?;
                }
            }
            None => {
                let mut lent = Box::pin(self.begin_turn()).await?.ok_or(None)?.lent;
                if let Some(server) = &lent.server {
                    self.state.reported = server.state.reported.clone();
                }
                if by_session {
                    held = Some(lent);
                } else {
                    // No transaction: its time says nothing about its class's.
                    lent.fail();
                    Box::pin(self.give_back(lent)).await;
                }
            }
        }
        if let Some(lent) = &held {
            lent.show(&self.here);
            self.here.does(Doing::Idle);
            self.here.kept.replace(Some(lent.keep()));
        }
        self.note_words();
        Ok(held)
    }

    /// A server connection, where nobody has to be waited for.
    async fn borrow_now(&mut self, door: Rc<Door>) -> Result<Option<Lent>, Gone> {
        let user = self.shared.user(&self.here.user);
        let waiting = Waiting {
            door: &door,
            user: &user,
            here: &self.here,
            shared: &self.shared,
            came_at: Instant::now(),
        };
        match waiting.go_in_now().await {
            Some(inside) => match self.borrow(door.clone(), inside).await? {
                Ok(lent) => Ok(Some(lent)),
                Err(NotIn::Left) => Err(None),
                Err(NotIn::Told) => Err(Some(self.here.refusal())),
                Err(NotIn::Moved | NotIn::Withdrawn) => Ok(None),
            },
            None => Ok(None),
        }
    }

    async fn welcome(&mut self, ticket: &Ticket) -> Result<(), Gone> {
        let mut out = BytesMut::new();
        write_authentication(&mut out, 0, b"");
        for (name, value) in &self.state.reported {
            write_parameter_status(&mut out, &ParameterStatus { name, value });
        }
        write_key_data(&mut out, ticket.process_id, &ticket.secret);
        write_ready(&mut out, TransactionStatus::Idle);
        self.stream.flush_all(&mut out).await.map_err(|_| None)
    }

    /// Waits for something from the client; whether it is still there.
    async fn hear(&mut self) -> Result<bool, Gone> {
        // Whoever is silent keeps no buffer.
        self.input = BytesMut::new();
        self.here.does(Doing::Idle);
        tokio::select! {
            biased;
            heard = self.stream.more(&mut self.input) => Ok(is_there(&heard)),
            () = self.here.told(Leave::WhenIdle) => Err(Some(self.here.refusal())),
        }
    }

    fn door(&self) -> Result<Rc<Door>, Gone> {
        let name = &self.here.database;
        let door = self.shared.door(name);
        door.ok_or_else(|| Some(Refusal::no_database(name)))
    }

    /// Waits to be let in, then for a server connection with the client's settings; `None` where the client wants it no more.
    async fn begin_turn(&mut self) -> Result<Option<Turn>, Gone> {
        let came_at = Instant::now();
        loop {
            match self.go_in(came_at).await? {
                Ok(turn) => return Ok(Some(turn)),
                // It is looked for where it is now.
                Err(NotIn::Moved) => {}
                Err(NotIn::Withdrawn) => {
                    Box::pin(withdraw::withdraw(&mut self.stream, &mut self.input)).await?;
                    return Ok(None);
                }
                Err(NotIn::Left) => return Err(None),
                Err(NotIn::Told) => return Err(Some(self.here.refusal())),
            }
        }
    }

    async fn go_in(&mut self, came_at: Instant) -> Result<Result<Turn, NotIn>, Gone> {
        let door = self.door()?;
        let user = self.shared.user(&self.here.user);
        let (inside, class) = match self.wait_outside(&door, &user, came_at).await? {
            Ok(inside) => inside,
            Err(not_in) => return Ok(Err(not_in)),
        };
        let outside = came_at.elapsed();
        let lent = self.borrow(door, inside).await?;
        Ok(lent.map(|lent| Turn {
            lent,
            class: Some(class),
            outside,
        }))
    }

    /// A server connection with the client's settings, unless the client gives up before there is one.
    async fn borrow(
        &mut self,
        door: Rc<Door>,
        inside: Inside,
    ) -> Result<Result<Lent, NotIn>, Refusal> {
        let borrower = Borrower {
            user: &self.here.user,
            door: door.clone(),
            proof: self.proof.as_ref(),
        };
        let (wanted, state, owner) = (&self.wanted, &mut self.state, borrower.owner());
        let follow = async |server: &mut Server| {
            // Copied only where it is needed, which is not at every transaction.
            let is_new = state.reported.is_empty();
            let pool = is_new.then(|| door.backend.pool.borrow());
            let greeting = pool.and_then(|pool| pool.greeting(&owner).cloned());
            settle::follow(state, wanted, greeting.as_ref(), server).await
        };
        let borrowed = borrower.borrow_for(&self.shared, inside, follow);
        tokio::select! {
            biased;
            lent = borrowed => Ok(lent?.ok_or(NotIn::Moved)),
            not_in = gives_up(&mut self.stream, &mut self.input, &self.here) => Ok(Err(not_in)),
        }
    }

    /// One that begins on a server connection that it has kept.
    fn another_turn(&self, lent: Lent) -> Turn {
        self.here.does(Doing::Idle);
        Turn {
            lent,
            class: None,
            outside: Duration::ZERO,
        }
    }

    /// What it says of its transaction in what it has sent.
    fn listen(&self) {
        if self.shared.settings().listens {
            let said = hints_of(&self.input, &self.state.statements);
            self.here.said.replace(said);
        }
    }

    /// Outside the database, together with all others; a client that leaves meanwhile is waited for no more.
    async fn wait_outside(
        &mut self,
        door: &Door,
        user: &UserDoor,
        came_at: Instant,
    ) -> Result<Result<(Inside, Class), NotIn>, Gone> {
        self.here.does(Doing::Waits);
        self.listen();
        let waiting = Waiting {
            door,
            user,
            here: &self.here,
            shared: &self.shared,
            came_at,
        };
        let go_in = waiting.go_in(&mut self.stream, &mut self.input);
        let Some(most) = self.shared.settings().query_wait() else {
            return Ok(go_in.await);
        };
        let until = tokio::time::Instant::from_std(came_at + most);
        let went = tokio::time::timeout_at(until, go_in).await;
        went.map_err(|_| Some(Refusal::waited(most.as_secs())))
    }

    /// One turn; the server connection, if the client keeps it.
    async fn turn(&mut self, turn: Turn) -> Result<Option<Lent>, Gone> {
        let Turn {
            mut lent,
            class,
            outside,
        } = turn;
        let listens = class.is_none() && self.shared.settings().listens;
        let Some(played) = self.play(&mut lent, listens).await else {
            return Err(None);
        };
        // Before its own SET changes what it is.
        let class = class.unwrap_or_else(|| Class::of(&self.here, self.shared.settings()));
        if played.has_conflicted {
            lent.fail();
        }
        let (opening, is_new) = (lent.opening, lent.is_new);
        self.account(&played, &class, [outside, opening], is_new);
        (lent.opening, lent.is_new) = (Duration::ZERO, false);
        let aside = match played.end {
            End::Over => {
                let by_session = self.by_session(&lent);
                let (state, wanted) = (&mut self.state, &self.wanted);
                let settled = settle::settle(state, wanted, &self.here, &mut lent, by_session);
                settled.await?
            }
            _ => BytesMut::new(),
        };
        self.note_words();
        self.here.said.take();
        match played.end {
            End::Over if self.keeps(&lent) => {
                if !played.has_conflicted {
                    lent.done(played.inside);
                }
                self.here.kept.replace(Some(lent.keep()));
                self.tell(aside).await?;
                Ok(Some(lent))
            }
            End::Over => {
                self.here.running.take();
                self.give_back(lent).await;
                self.tell(aside).await?;
                Ok(None)
            }
            _ => {
                self.here.running.take();
                self.here.kept.take();
                Box::pin(self.end_turn(lent, played)).await
            }
        }
    }

    /// Tells it what came with the answers to the gate's own questions.
    async fn tell(&mut self, mut aside: BytesMut) -> Result<(), Gone> {
        self.stream.flush_all(&mut aside).await.map_err(|_| None)
    }

    /// A turn that did not end as it should is the client's last.
    async fn end_turn(&mut self, lent: Lent, played: Played) -> Result<Option<Lent>, Gone> {
        if played.is_free && !matches!(played.end, End::ServerBroke(_)) {
            self.give_back(lent).await;
        } else if let Some(server) = lent.server.as_ref().filter(|_| played.is_busy) {
            let key = server.key().clone();
            // What it runs is nobody's any more; until that is over it has its place inside.
            let cancelled = cancel::send(&lent.door.backend, &key);
            let _ = tokio::time::timeout(OWN_COMMAND_PATIENCE, cancelled).await;
            drop(lent);
        }
        Err(match played.end {
            End::ClientBroke(what) => Some(Refusal::of_protocol(&what)),
            End::ServerBroke(what) if played.has_said_goodbye => Some(Refusal::after(&what)),
            End::ServerBroke(what) => Some(Refusal::lost(&what)),
            End::Told => Some(self.here.refusal()),
            End::ClientLeft | End::Over => None,
        })
    }

    async fn play(&mut self, lent: &mut Lent, listens: bool) -> Option<Played> {
        lent.show(&self.here);
        let server = lent.server.as_mut()?;
        let statements = &self.shared.statements;
        let mut exchange = Rewriter::new(&mut self.state, &mut server.state, statements);
        let (client, input) = (&mut self.stream, &mut self.input);
        let played = relay(
            client,
            input,
            &mut server.session,
            &mut exchange,
            &self.here,
            listens,
        )
        .await;
        Some(played)
    }

    fn account(
        &self,
        played: &Played,
        class: &Class,
        [outside, opening]: [Duration; 2],
        is_login: bool,
    ) {
        let settings = self.shared.settings();
        let done = Done {
            is_transaction: played.is_free && played.cycles > 0,
            is_conflict: played.has_conflicted,
            queries: played.cycles,
            is_login,
            outside_us: outside.as_micros() as u64,
            opening_us: opening.as_micros() as u64,
            inside_us: played.inside.as_micros() as u64,
            busy_us: played.busy.as_micros() as u64,
            received_bytes: played.received_bytes,
            sent_bytes: played.sent_bytes,
            statements: self.state.statement_counts.take(),
        };
        let Here { user, database, .. } = &*self.here;
        let mut measured = self.shared.measured.borrow_mut();
        measured.done(database, user, class.name(), &done);
        if settings.listens {
            let said = self.here.said.borrow();
            let shape = said.shape.as_ref().map(|shape| shape.text.as_str());
            let kind = said.kind();
            measured.kind_done(kind.as_deref().unwrap_or(UNSAID), shape, &done);
        }
    }

    /// Whether it has its server connection until it leaves.
    fn keeps(&self, lent: &Lent) -> bool {
        self.state.tied_by().is_some() || self.by_session(lent)
    }

    fn by_session(&self, lent: &Lent) -> bool {
        let settings = self.shared.settings();
        settings.by_session(&self.here.user, &lent.door.table)
    }

    async fn give_back(&mut self, lent: Lent) {
        let is_unsettled = !self.state.changes.parameters.is_empty() || self.state.has_discarded;
        let changes_session = self.keeps(&lent) || is_unsettled;
        lent.give_back(changes_session).await;
    }

    fn note_words(&self) {
        self.here.note_words(&self.state, &self.wanted);
    }
}
