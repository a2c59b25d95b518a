//! The bytes of a transaction in both directions, each as fast as its reader takes them and with a
//! bounded amount between.

mod leaving;
mod output;
mod preempted;

use crate::client::handle::{ClientHandle, Termination};
use crate::pool::server_session::ServerSession;
use crate::stream::Stream;
use bytes::{Buf, BytesMut};
use leaving::Leaving;
use output::{Begun, flush};
use sooner_postgres::rewriter::{Forwarded, Rewriter};
use sooner_postgres::wire::{FrameError, Splitter, look_at_backend, look_at_frontend};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// What may wait to be written before no more is made of what was read.
const OUTPUT_BYTES: usize = 32 * 1024;
/// What most turns write in either direction, so that their buffers need not grow.
const SMALL_BYTES: usize = 512;
/// What may be read before it is looked at: the longest message that has to be whole, and a read.
const INPUT_BYTES: usize = (1 << 20) + (1 << 15);

/// How a transaction ended.
#[derive(Debug)]
pub enum End {
    /// The server connection is free.
    Over,
    /// The client has said goodbye, or is gone.
    ClientLeft,
    /// The client has sent what cannot be understood.
    ClientBroke(String),
    /// The server connection is no more, or no use.
    ServerBroke(String),
    /// The client has been told to go.
    Terminated,
    /// The transaction has to be rolled back: others need its locks, and its client does nothing.
    RolledBack,
    /// It was cancelled for others that need its locks, and its client does not know: this is to be
    /// sent again.
    Again(BytesMut),
}

/// What became of a transaction.
pub struct RelayOutcome {
    /// How it ended.
    pub end: End,
    /// Whether the server connection is free.
    pub is_free: bool,
    /// Whether the server has something to do.
    pub is_busy: bool,
    /// Whether the server itself has told the client that its session ends.
    pub has_said_goodbye: bool,
    /// Whether the client has heard a part of a message and not the rest, or reads nothing.
    pub is_cut_off: bool,
    /// Whether it failed because it was in the way of others.
    pub has_conflicted: bool,
    /// Whether it had to make room for one that matters more.
    pub has_made_room: bool,
    /// How often it was sent again for such a one.
    pub repeats: u64,
    /// Commands and their like that were answered.
    pub cycles: u64,
    /// How long it was, from the client's first message on.
    pub inside: Duration,
    /// How long the server had something to do.
    pub busy: Duration,
    /// From the client.
    pub received_bytes: u64,
    /// To the client.
    pub sent_bytes: u64,
}

impl RelayOutcome {
    /// Adds what an earlier attempt took that its client does not know of.
    pub fn add(&mut self, earlier: &Self) {
        self.repeats += earlier.repeats;
        self.inside += earlier.inside;
        self.busy += earlier.busy;
    }
}

/// Relays a transaction to its end, or until the client is told to leave: before anything has been
/// asked, or at once. `input` is what the client has sent and has not been looked at; with
/// `needs_hints` what it says of its transaction there is noted when that begins; then `begins` is
/// called, perhaps more than once.
pub async fn relay(
    client: &mut Stream,
    input: &mut BytesMut,
    server: &mut ServerSession,
    rewriter: &mut Rewriter<'_>,
    handle: &ClientHandle,
    (needs_hints, begins): (bool, &dyn Fn()),
) -> RelayOutcome {
    let mut relay = Relay {
        client,
        input,
        server,
        rewriter,
        from_client: Splitter::new(look_at_frontend),
        from_server: Splitter::new(look_at_backend),
        to_client: BytesMut::with_capacity(SMALL_BYTES),
        kept_back: BytesMut::new(),
        begun: Begun::default(),
        unflushed_bytes: 0,
        to_server: BytesMut::with_capacity(SMALL_BYTES),
        handle,
        needs_hints,
        begins,
        leaving: None,
        is_unread: false,
        unread_bytes: 0,
        has_terminated: false,
        unwritable: None,
        grace: None,
        repeatable: None,
        has_made_room: false,
        swallows: false,
        began_at: None,
        busy_since: None,
        busy: Duration::ZERO,
        received_bytes: 0,
        sent_bytes: 0,
    };
    let end = relay.run(handle).await;
    relay.note_busy();
    let repeats = u64::from(matches!(end, End::Again(_)));
    RelayOutcome {
        has_made_room: relay.has_made_room,
        repeats,
        is_free: relay.is_server_free() && !relay.has_terminated,
        is_busy: !relay.rewriter.is_settled(),
        has_said_goodbye: relay.rewriter.has_said_goodbye(),
        is_cut_off: relay.is_cut_off(),
        has_conflicted: relay.rewriter.has_conflicted(),
        cycles: relay.rewriter.cycles(),
        inside: relay.began_at.map_or(Duration::ZERO, |at| at.elapsed()),
        busy: relay.busy,
        received_bytes: relay.received_bytes,
        sent_bytes: relay.sent_bytes,
        end,
    }
}

struct Relay<'a, 'e> {
    client: &'a mut Stream,
    input: &'a mut BytesMut,
    server: &'a mut ServerSession,
    rewriter: &'a mut Rewriter<'e>,
    from_client: Splitter,
    from_server: Splitter,
    to_client: BytesMut,
    /// What the server would not have sent yet, behind that.
    kept_back: BytesMut,
    begun: Begun,
    /// What the client was to hear since the server was made to send all it had last.
    unflushed_bytes: usize,
    to_server: BytesMut,
    handle: &'a ClientHandle,
    needs_hints: bool,
    begins: &'a dyn Fn(),
    leaving: Option<Leaving>,
    /// Whether what is written to the client does not reach it.
    is_unread: bool,
    unread_bytes: u64,
    /// Whether the server was told that its session ends.
    has_terminated: bool,
    /// Why nothing can be written to the server; what it has said may still have to be read.
    unwritable: Option<String>,
    grace: Option<Pin<Box<Sleep>>>,
    /// What the client has sent, where it can be sent again.
    repeatable: Option<BytesMut>,
    /// Whether the server has cancelled something for others that need its locks.
    has_made_room: bool,
    /// Whether the client is not to hear of that.
    swallows: bool,
    /// When something of the client was looked at first.
    began_at: Option<Instant>,
    /// Since when the server has something to do.
    busy_since: Option<Instant>,
    busy: Duration,
    received_bytes: u64,
    sent_bytes: u64,
}

/// Whether something moved, or how it ended.
type Step = Result<bool, End>;

impl Relay<'_, '_> {
    async fn run(&mut self, handle: &ClientHandle) -> End {
        let mut waits_for = Termination::WhenIdle;
        loop {
            tokio::select! {
                biased;
                end = poll_fn(|cx| self.poll(cx)) => return end,
                () = handle.terminated(waits_for) => {
                    let has_nothing = self.began_at.is_none() && self.is_server_free();
                    if waits_for == Termination::Now || has_nothing {
                        return End::Terminated;
                    }
                    waits_for = Termination::Now;
                }
                () = handle.preemption.next_arrival() => {}
                () = handle.preemption.rolls_back() => {
                    if self.can_roll_back() {
                        return End::RolledBack;
                    }
                    handle.preemption.withdraw();
                }
            }
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            let moved = match self.step(cx) {
                Ok(moved) => moved,
                Err(end) => return Poll::Ready(self.ended(end, cx)),
            };
            self.note_busy();
            // All that was sent before a client was gone belongs to this transaction.
            let has_more = self.is_gone() && !self.input.is_empty() && moved;
            if self.is_over() && !has_more {
                return Poll::Ready(self.over());
            }
            if !moved {
                return self.poll_leaving(cx);
            }
        }
    }

    /// Notes since when the server has something to do, for how long it had, and whether what the
    /// client has sent may commit something.
    fn note_busy(&mut self) {
        match (self.busy_since, self.rewriter.is_answered()) {
            (None, false) => {
                self.busy_since = Some(Instant::now());
                self.handle.preemption.busy_since.set(self.busy_since);
                self.handle.idle_in_transaction_since.set(None);
            }
            (Some(since), true) => {
                let now = Instant::now();
                self.busy += now - since;
                self.busy_since = None;
                self.handle.preemption.busy_since.set(None);
                self.handle
                    .idle_in_transaction_since
                    .set(self.rewriter.is_idle_in_transaction().then_some(now));
            }
            _ => {}
        }
        // A batch that waits for its end is committed by it.
        let is_open_batch = self.rewriter.is_answered() && self.rewriter.is_unsynced();
        let may_commit = self.rewriter.may_commit() || is_open_batch;
        self.handle.preemption.may_commit.set(may_commit);
    }

    fn is_over(&self) -> bool {
        self.is_over_but_for_output() && self.to_client.is_empty() && self.client.is_flushed()
    }

    fn is_over_but_for_output(&self) -> bool {
        self.began_at.is_some() && self.is_server_free()
    }

    /// Whether nothing is on its way to the server or from it, in no direction half a message.
    fn is_server_free(&self) -> bool {
        self.rewriter.is_over()
            && self.from_client.is_between_messages()
            && self.from_server.is_between_messages()
            && self.to_server.is_empty()
            && self.unwritable.is_none()
            && self.server.stream.is_flushed()
    }

    fn step(&mut self, cx: &mut Context<'_>) -> Step {
        let mut moved = self.take_from_client();
        moved |= self.flush_server(cx);
        moved |= self.take_from_server()?;
        moved |= self.flush_client(cx)?;
        if self.is_over() {
            return Ok(moved);
        }
        moved |= self.read_server(cx)?;
        moved |= self.read_client(cx);
        Ok(moved)
    }

    fn flush_server(&mut self, cx: &mut Context<'_>) -> bool {
        if self.unwritable.is_none() {
            match flush((&mut self.server.stream, &mut self.to_server), cx) {
                Ok(moved) => return moved,
                Err(error) => self.unwritable = Some(error.to_string()),
            }
        }
        self.to_server.clear();
        false
    }

    /// What the gate has to ask the server it asks between two messages of the client.
    fn follow_up(&mut self) {
        if self.from_client.is_between_messages() {
            self.rewriter.follow_up(&mut self.to_server);
        }
    }

    fn take_from_client(&mut self) -> bool {
        let mut moved = false;
        if self.began_at.is_none() && !self.input.is_empty() {
            if self.needs_hints {
                self.handle.hints.replace(self.rewriter.hints(self.input));
            }
            (self.begins)();
            self.keep_cycle();
        }
        while self.to_server.len() < OUTPUT_BYTES
            && !self.has_all_to_repeat()
            && !self.waits_for_cancel()
            && matches!(self.leaving, None | Some(Leaving::Gone))
        {
            let before = self.from_client.clone();
            let piece = match self.from_client.next(self.input) {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(error) => {
                    self.leaving = Some(Leaving::Broke(error.to_string()));
                    return true;
                }
            };
            if self.rewriter.must_wait(&piece, &mut self.to_server) {
                self.from_client = before;
                break;
            }
            let taken = match self.rewriter.from_client(&piece, &mut self.to_server) {
                Ok(taken) => taken,
                Err(error) => {
                    self.leaving = Some(Leaving::Broke(error.to_string()));
                    return true;
                }
            };
            let count = piece.bytes.len();
            // Rows that come when their COPY is over begin nothing.
            if self.began_at.is_none() && !self.rewriter.passes_over() {
                self.began_at = Some(Instant::now());
                self.handle.set_active();
            }
            if taken == Forwarded::NotYet {
                self.from_client = before;
                break;
            }
            self.input.advance(count);
            self.received_bytes += count as u64;
            moved = true;
            self.follow_up();
            let is_more = |cycle: &BytesMut| self.received_bytes > cycle.len() as u64;
            if self.repeatable.as_ref().is_some_and(is_more) {
                self.forget_cycle();
            }
            if self.rewriter.is_left() {
                self.leaving = Some(Leaving::Goodbye);
                return true;
            }
            // What comes behind the end of a transaction is the next one's.
            if self.rewriter.is_over() && self.from_client.is_between_messages() {
                break;
            }
        }
        moved
    }

    fn take_from_server(&mut self) -> Step {
        let mut moved = false;
        // What comes behind the end of a turn, such as that the server ends this connection, is no
        // answer to the client: if it keeps the connection it hears of it in its next turn, else
        // the connection is not lent again.
        while self.to_client.len() < OUTPUT_BYTES && !self.is_over_but_for_output() {
            self.release();
            let is_first = self.from_server.is_between_messages();
            if is_first && preempted::is_cancelled(&self.server.input) {
                self.note_cancelled();
            }
            let broke = |error: FrameError| End::ServerBroke(error.to_string());
            let Some(piece) = self.from_server.next(&self.server.input).map_err(broke)? else {
                break;
            };
            let is_kept = self.rewriter.is_hurried();
            let out = if is_kept {
                &mut self.kept_back
            } else {
                &mut self.to_client
            };
            let before = out.len();
            let taken = self.rewriter.from_server(&piece, out);
            taken.map_err(|error| End::ServerBroke(error.to_string()))?;
            if self.swallows && !preempted::is_unasked(piece.tag) {
                out.truncate(before);
            }
            let shown_bytes = out.len() - before;
            self.begun.note(&piece, shown_bytes, is_kept && before == 0);
            self.unflushed_bytes += shown_bytes;
            let count = piece.bytes.len();
            self.server.input.advance(count);
            self.sent_bytes += count as u64;
            moved = true;
            self.follow_up();
        }
        Ok(moved)
    }

    /// Not before what came last was passed on: a client that does not read slows its server down,
    /// and nothing piles up here.
    fn read_server(&mut self, cx: &mut Context<'_>) -> Step {
        if !self.to_client.is_empty() || self.server.input.len() > INPUT_BYTES {
            return Ok(false);
        }
        let ended = match self.server.stream.poll_more(cx, &mut self.server.input) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(1..)) => return Ok(true),
            Poll::Ready(_) if self.has_terminated => return Err(End::ClientLeft),
            Poll::Ready(Ok(_)) => "the server has closed the connection".into(),
            Poll::Ready(Err(error)) => error.to_string(),
        };
        Err(End::ServerBroke(self.unwritable.take().unwrap_or(ended)))
    }

    fn read_client(&mut self, cx: &mut Context<'_>) -> bool {
        let is_full = !self.to_server.is_empty() || self.input.len() > INPUT_BYTES;
        if is_full || self.leaving.is_some() {
            return false;
        }
        match self.client.poll_more(cx, self.input) {
            Poll::Pending => {
                self.note_cut_off();
                return false;
            }
            Poll::Ready(Ok(1..)) => self.handle.cut_off_since.set(None),
            Poll::Ready(_) => self.leave(Leaving::Gone),
        }
        true
    }

    /// Notes since when the rest of a message does not come: the server waits for it. Rows of a
    /// COPY may come slowly, and where a pause falls says nothing.
    fn note_cut_off(&self) {
        let is_cut_off = self.input.is_empty()
            && !self.from_client.is_between_messages()
            && !self.rewriter.is_copying();
        if is_cut_off && self.handle.cut_off_since.get().is_none() {
            self.handle.cut_off_since.set(Some(Instant::now()));
        }
    }
}
