//! When a server connection is free for another client: a model of how PostgreSQL takes messages
//! and answers them.
//!
//! What PostgreSQL does (`PostgresMain` in its `postgres.c`, `CopyGetData` in `copyfromparse.c`):
//! - It takes messages one by one, and answers in their order. A query, a function call and a Sync
//!   end with ReadyForQuery; each message of the extended protocol has a last answer of its own.
//! - After an error in a message of the extended protocol it skips everything up to the next Sync:
//!   queries and function calls as well, without an answer. After an error in a query it does not.
//! - While a COPY reads rows, that COPY reads the connection. It passes over Sync and Flush, and
//!   ends the session at any other message that is no row. Rows outside a COPY are passed over.
//!
//! Which messages a COPY read before it failed cannot be seen from outside. The gate therefore
//! sends nothing behind a command that may be such a COPY, or behind the end of its rows, before
//! that is answered; only the Syncs between its rows remain. Where it fails with some of them on
//! the way, a probe of the gate's own (Sync, Close, Sync) tells how many the server answers: all
//! answers before CloseComplete are theirs, but for the last, which is the probe's own.

use crate::wire::TransactionStatus;
use std::collections::VecDeque;

/// A message to the server that has an answer of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Answered by ParseComplete.
    Parse,
    /// By BindComplete.
    Bind,
    /// By RowDescription or NoData.
    Describe,
    /// By CommandComplete, EmptyQueryResponse or PortalSuspended.
    Execute,
    /// As Bind, of a command of the gate's own that returns rows.
    OwnBind,
    /// Its Execute.
    OwnExecute,
    /// By CloseComplete.
    Close,
    /// By ReadyForQuery, as the next two.
    Sync,
    /// Simple query.
    Query,
    /// Function call.
    FunctionCall,
}

impl Sent {
    /// Whether it ends with ReadyForQuery.
    fn ends_cycle(self) -> bool {
        matches!(self, Self::Sync | Self::Query | Self::FunctionCall)
    }
}

/// What a server has answered, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// ParseComplete.
    Parsed,
    /// BindComplete.
    Bound,
    /// RowDescription or NoData, which queries have as well.
    Described,
    /// A command is done, or a portal suspended.
    Executed,
    /// CloseComplete.
    Closed,
    /// ReadyForQuery.
    Ready(TransactionStatus),
    /// Rows are expected.
    CopyIn,
    /// ErrorResponse.
    Error,
}

/// What an answer is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerTo {
    /// Something of the client's, or of what was sent for it.
    Client,
    /// A command of the gate's own.
    Gate,
    /// The probe: the client is not to see it.
    Probe,
    /// A COPY failed, and how many Syncs were read with its rows has to be asked by a probe now.
    Doubt,
}

/// Whether a message from the client can go to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can.
    Pass,
    /// The server would pass over it.
    Drop,
    /// Not before what was sent is answered; with a Flush, without which the server may keep its
    /// answer back.
    Wait {
        /// Whether the Flush is to be sent now.
        flush: bool,
    },
    /// It is no row, and where the COPY has failed it is not known what the server makes of it: a
    /// probe is to be sent, which ends the session like any other message that is no row if the
    /// COPY has not failed.
    Probe,
}

/// An answer to no request: client and server no longer mean the same, so the connection cannot be
/// used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server sent an answer that was not expected")]
pub struct OutOfStep;

/// Messages that may be unanswered; for more the answer to the first is waited for.
const UNANSWERED_MAX: usize = 1024;
/// What may be kept for them.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// A COPY that reads rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Copy {
    /// Syncs that were sent since it began.
    syncs: u32,
    /// Whether the end of its rows was sent.
    is_ending: bool,
}

/// A probe on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Probe {
    /// Whether the end of the query that failed is still to come.
    after_query: bool,
    /// Whether the answer to a Sync is held back, because it may be the probe's own.
    has_ready: bool,
    /// Whether a Sync of the client's was answered: the server does not skip any more.
    has_sync: bool,
    /// Whether the Close was answered, so that only the end of the probe is to come.
    is_closed: bool,
}

/// A client's turn on a server connection.
#[derive(Clone, Debug)]
pub struct Pipeline {
    unanswered: VecDeque<(Sent, usize)>,
    /// How many messages were ever sent that have an answer.
    sent_count: u64,
    kept_bytes: usize,
    /// Whether something of the extended protocol was sent since the last end of a cycle.
    is_unsynced: bool,
    /// Whether a Flush or the end of a cycle was sent behind it.
    is_flushed: bool,
    /// Whether the server skips everything up to the next Sync, which was not sent yet.
    skips: bool,
    /// Whether what was sent last may be a COPY that reads rows.
    may_copy: bool,
    copy: Option<Copy>,
    probe: Option<Probe>,
    /// Whether a COPY began of which the gate did not know: the connection is of no use to another.
    is_lost: bool,
    status: TransactionStatus,
}

impl Default for Pipeline {
    /// Nothing was sent, and no transaction is open.
    fn default() -> Self {
        Self {
            unanswered: VecDeque::new(),
            sent_count: 0,
            kept_bytes: 0,
            is_unsynced: false,
            is_flushed: true,
            skips: false,
            may_copy: false,
            copy: None,
            probe: None,
            is_lost: false,
            status: TransactionStatus::Idle,
        }
    }
}

impl Pipeline {
    /// What is to become of a client's message of this type.
    pub fn verdict(&self, tag: u8) -> Verdict {
        let wait = |flush: bool| Verdict::Wait {
            flush: flush && !self.is_flushed,
        };
        if self.probe.is_some() {
            return wait(false);
        }
        if self.skips {
            return match tag {
                b'S' => Verdict::Pass,
                _ => Verdict::Drop,
            };
        }
        if let Some(copy) = self.copy
            && (!copy.is_ending || self.may_copy)
        {
            return match tag {
                _ if copy.is_ending => wait(true),
                b'd' | b'c' | b'f' | b'S' => Verdict::Pass,
                b'H' => Verdict::Drop,
                // What the server skips if it failed is not to be undone here.
                b'Q' | b'F' if self.is_unsynced => Verdict::Probe,
                _ if copy.syncs > 0 => Verdict::Probe,
                _ => Verdict::Pass,
            };
        }
        let is_full = self.unanswered.len() >= UNANSWERED_MAX || self.kept_bytes >= KEPT_BYTES_MAX;
        if is_full || (self.may_copy && !self.is_answered()) {
            return wait(true);
        }
        match tag {
            b'd' | b'c' | b'f' => Verdict::Drop,
            // Whether the server skips it has to be known first.
            b'Q' | b'F' if self.is_unsynced && !self.is_answered() => wait(true),
            _ => Verdict::Pass,
        }
    }

    /// This was sent to the server, and so many bytes are kept until it is answered. Whether it
    /// begins a cycle that will be answered.
    pub fn sent(&mut self, what: Sent, kept_bytes: usize) -> bool {
        if let (Sent::Sync, Some(copy)) = (what, &mut self.copy)
            && !copy.is_ending
        {
            copy.syncs += 1;
            return false;
        }
        self.may_copy = false;
        self.skips &= what != Sent::Sync;
        if let Some(copy) = &mut self.copy {
            // No row: the session ends now, or the COPY has failed already.
            copy.is_ending = true;
        }
        self.is_unsynced = !what.ends_cycle();
        self.is_flushed = what.ends_cycle();
        self.unanswered.push_back((what, kept_bytes));
        self.sent_count += 1;
        self.kept_bytes += kept_bytes;
        self.check();
        what.ends_cycle()
    }

    /// What was sent last may be a COPY that reads rows: what comes behind it waits.
    pub fn may_copy(&mut self) {
        self.may_copy = true;
    }

    /// The connection is in a transaction that has failed.
    pub fn begin_failed(&mut self) {
        self.status = TransactionStatus::Failed;
    }

    /// A Flush was sent.
    pub fn flushed(&mut self) {
        self.is_flushed = true;
    }

    /// The end of a COPY's rows was sent, good or bad.
    pub fn copy_ended(&mut self) {
        let Some(copy) = &mut self.copy else { return };
        copy.is_ending = true;
        if self
            .unanswered
            .front()
            .is_some_and(|(sent, _)| *sent == Sent::Execute)
        {
            self.is_flushed = false;
            // Without Syncs between its rows there is no doubt about what comes behind them.
            self.may_copy &= copy.syncs > 0;
        }
    }

    /// A probe was sent.
    pub fn probed(&mut self) {
        let front = self.unanswered.front();
        self.probe = Some(Probe {
            after_query: front.is_some_and(|(sent, _)| sent.ends_cycle()),
            ..Probe::default()
        });
    }

    /// The server has answered this.
    pub fn answered(&mut self, what: Answered) -> Result<AnswerTo, OutOfStep> {
        self.check();
        let front = self.unanswered.front().map(|(sent, _)| *sent);
        match what {
            Answered::Parsed => self.pop(Sent::Parse)?,
            Answered::Bound if front == Some(Sent::OwnBind) => return self.own(Sent::OwnBind),
            Answered::Bound => self.pop(Sent::Bind)?,
            Answered::Closed => match &mut self.probe {
                Some(probe) => {
                    probe.is_closed = true;
                    return Ok(AnswerTo::Probe);
                }
                None => self.pop(Sent::Close)?,
            },
            Answered::Described if front == Some(Sent::Describe) => self.pop(Sent::Describe)?,
            Answered::Described => {}
            Answered::Executed if self.runs_own() => return self.own(Sent::OwnExecute),
            Answered::Executed => {
                self.copy = None;
                if front == Some(Sent::Execute) {
                    self.pop(Sent::Execute)?;
                }
            }
            Answered::Ready(status) => return self.ready(status),
            Answered::CopyIn => {
                let is_of_one = matches!(front, Some(Sent::Query | Sent::Execute));
                self.is_lost |= !is_of_one || self.unanswered.len() > 1;
                self.copy = Some(Copy::default());
            }
            Answered::Error => return Ok(self.failed()),
        }
        Ok(AnswerTo::Client)
    }

    /// Whether what comes next is of a command of the gate's own.
    pub fn runs_own(&self) -> bool {
        let front = self.unanswered.front();
        front.is_some_and(|(sent, _)| *sent == Sent::OwnExecute)
    }

    fn own(&mut self, what: Sent) -> Result<AnswerTo, OutOfStep> {
        self.pop(what).map(|()| AnswerTo::Gate)
    }

    fn pop(&mut self, what: Sent) -> Result<(), OutOfStep> {
        let front = self.unanswered.pop_front();
        let kept_bytes = front.map(|(_, kept_bytes)| kept_bytes).unwrap_or_default();
        self.release(kept_bytes);
        let is_it = front.is_some_and(|(sent, _)| sent == what);
        is_it.then_some(()).ok_or(OutOfStep)
    }

    fn release(&mut self, kept_bytes: usize) {
        assert!(kept_bytes <= self.kept_bytes, "released more than was kept");
        self.kept_bytes -= kept_bytes;
    }

    /// What holds between two messages.
    fn check(&self) {
        assert!(self.unanswered.len() as u64 <= self.sent_count);
        assert!(!self.unanswered.is_empty() || self.kept_bytes == 0);
        debug_assert_eq!(
            self.kept_bytes,
            self.unanswered.iter().map(|(_, kept)| kept).sum::<usize>()
        );
    }

    fn ready(&mut self, status: TransactionStatus) -> Result<AnswerTo, OutOfStep> {
        self.copy = None;
        self.status = status;
        match &mut self.probe {
            Some(probe) if probe.is_closed => {
                // A Sync of the client's that was answered ended the skipping, and else the
                // probe's.
                self.skips &= !probe.has_sync;
                self.is_unsynced = self.skips;
                self.probe = None;
                return Ok(AnswerTo::Probe);
            }
            Some(probe) if !probe.after_query => {
                let is_shown = probe.has_ready;
                probe.has_sync |= is_shown;
                probe.has_ready = true;
                return Ok(if is_shown {
                    AnswerTo::Client
                } else {
                    AnswerTo::Probe
                });
            }
            Some(probe) => probe.after_query = false,
            None => {}
        }
        let end = self
            .unanswered
            .iter()
            .position(|(sent, _)| sent.ends_cycle());
        let answered = self.unanswered.drain(..=end.ok_or(OutOfStep)?);
        let kept_bytes = answered.map(|(_, kept_bytes)| kept_bytes).sum();
        self.release(kept_bytes);
        Ok(AnswerTo::Client)
    }

    /// Something failed: in the extended protocol what was sent up to the next Sync is not
    /// answered.
    fn failed(&mut self) -> AnswerTo {
        let copy = self.copy.take();
        let front = self.unanswered.front();
        if front.is_some_and(|(sent, _)| !sent.ends_cycle()) {
            let sync = self
                .unanswered
                .iter()
                .position(|(sent, _)| *sent == Sent::Sync);
            let skipped = self
                .unanswered
                .drain(..sync.unwrap_or(self.unanswered.len()));
            let kept_bytes = skipped.map(|(_, kept_bytes)| kept_bytes).sum();
            self.release(kept_bytes);
            self.skips = sync.is_none();
        }
        if self.probe.is_some() || copy.is_none_or(|copy| copy.syncs == 0) {
            return AnswerTo::Client;
        }
        self.probed();
        AnswerTo::Doubt
    }

    /// Whether the connection is free for another client.
    pub fn is_over(&self) -> bool {
        self.is_answered()
            && !self.is_unsynced
            && !self.is_lost
            && self.status == TransactionStatus::Idle
    }

    /// Whether the server has begun a COPY that nothing announced: no other client gets it.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Whether the server skips everything up to a Sync that was not sent yet.
    pub fn skips(&self) -> bool {
        self.skips
    }

    /// Whether an Execute is not answered.
    pub fn has_unanswered_execute(&self) -> bool {
        let mut sent = self.unanswered.iter();
        sent.any(|(sent, _)| *sent == Sent::Execute)
    }

    /// Whether this is to be answered next.
    pub fn is_next(&self, message: Sent) -> bool {
        let front = self.unanswered.front();
        front.is_some_and(|(sent, _)| *sent == message)
    }

    /// Whether no transaction was open when the server was last ready.
    pub fn is_idle(&self) -> bool {
        self.status == TransactionStatus::Idle
    }

    /// Whether the transaction that is open has failed; `None` where that depends on what is not
    /// answered.
    pub fn has_failed(&self) -> Option<bool> {
        let changes = |(sent, _): &(Sent, usize)| sent.ends_cycle() || *sent == Sent::Execute;
        let is_known = self.probe.is_none() && !self.unanswered.iter().any(changes);
        is_known.then_some(self.status == TransactionStatus::Failed)
    }

    /// Whether everything is answered.
    pub fn is_answered(&self) -> bool {
        self.unanswered.is_empty() && self.probe.is_none()
    }

    /// Whether a COPY reads rows and the end of them was not sent.
    pub fn is_copying(&self) -> bool {
        self.copy.is_some_and(|copy| !copy.is_ending)
    }

    /// Whether the server has nothing to do before more comes: everything is answered, or it waits
    /// for rows.
    pub fn is_settled(&self) -> bool {
        self.is_answered() || self.is_copying()
    }

    /// Whether the cycle is not ended by what was sent.
    pub fn is_unsynced(&self) -> bool {
        self.is_unsynced
    }

    /// Whether a Flush may bring answers that the server keeps back.
    pub fn wants_flush(&self) -> bool {
        !self.is_answered() && !self.is_flushed
    }

    /// How many messages were sent that have an answer.
    pub fn sent_count(&self) -> u64 {
        self.sent_count
    }

    /// How many of them are answered or skipped.
    pub fn answered_count(&self) -> u64 {
        self.sent_count - self.unanswered.len() as u64
    }

    /// Cycles that are not answered.
    pub fn unanswered_cycles(&self) -> usize {
        let ends_cycle = |(sent, _): &&(Sent, usize)| sent.ends_cycle();
        self.unanswered.iter().filter(ends_cycle).count()
    }
}

#[cfg(test)]
mod tests;
