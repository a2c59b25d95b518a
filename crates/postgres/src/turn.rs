//! When a server connection is free for another client: what was asked of it, and what it has answered.
//!
//! A server answers in order and says at the end of each cycle whether it is in a transaction. A cycle begins with a query, a function call or
//! a Sync; clients may send the next before the last is answered. The connection is free when every cycle is answered, no message of the
//! extended protocol waits for its Sync, and no transaction is open. A COPY into the server is the exception to "every Sync is answered":
//! until its end the server throws Syncs away (PostgreSQL's documentation, "COPY Operations"), also those that were sent before it was known
//! that the statement is a COPY. Where such a COPY fails nobody can tell which of them the server threw away. A probe behind the client's next
//! Sync can: a Close of ours and its own Sync, whose answer stands behind all that is still to come. Where something else has been sent that may
//! be answered like it there is none: the turn never ends then, and the connection is closed when its client leaves.

use std::collections::VecDeque;

use crate::wire::TransactionStatus;

/// What a client has sent, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// A query or a function call: a cycle of its own.
    Cycle,
    /// A message of the extended protocol, whose cycle ends with the next Sync.
    Extended,
    /// A Sync.
    Sync,
    /// The end of a COPY's rows, good or bad.
    CopyEnd,
    /// A probe of ours.
    Probe,
}

/// What a server has answered, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// A cycle is over.
    Ready(TransactionStatus),
    /// Rows are expected.
    CopyIn,
    /// Something failed.
    Error,
    /// The probe has been read; the end of its cycle follows.
    Probe,
}

/// An answer that was not asked for: client and server no longer mean the same, so the connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server ended a cycle that nobody began")]
pub struct OutOfStep;

/// Cycles that the server does not answer, because their Syncs came while it waited for rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrownAway {
    /// How many.
    pub syncs: usize,
    /// Whether they are behind the first cycle that is not answered, or begin with it.
    pub behind_first: bool,
}

/// What was sent and is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Cycle,
    Sync,
    CopyEnd,
    Probe,
}

/// The one probe that may be on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    /// There is none.
    None,
    /// Nor may there be.
    Never,
    Sent,
    /// Only the end of its cycle is to come.
    Answered,
}

/// A client's turn on a server connection.
#[derive(Clone, Debug)]
pub struct Turn {
    unanswered: VecDeque<Mark>,
    /// Whether something of the extended protocol was sent since the last Sync.
    is_unsynced: bool,
    /// Whether the server waits for rows whose end was not sent yet.
    copies_in: bool,
    /// Whether Syncs of this cycle are believed to be thrown away.
    has_thrown_away: bool,
    /// Whether it is not known how many answers are to come.
    is_doubtful: bool,
    probe: Probe,
    status: TransactionStatus,
}

impl Default for Turn {
    /// Nothing was sent, and no transaction is open.
    fn default() -> Self {
        Self {
            unanswered: VecDeque::new(),
            is_unsynced: false,
            copies_in: false,
            has_thrown_away: false,
            is_doubtful: false,
            probe: Probe::None,
            status: TransactionStatus::Idle,
        }
    }
}

impl Turn {
    /// The client has sent this; whether it begins a cycle that will be answered.
    pub fn sent(&mut self, what: Sent) -> bool {
        match what {
            Sent::Cycle => {
                self.unanswered.push_back(Mark::Cycle);
                return true;
            }
            Sent::Extended => {
                self.is_unsynced = true;
                if self.copies_in || self.has_thrown_away || self.is_doubtful {
                    self.never_probe();
                }
            }
            Sent::Probe => {
                self.probe = Probe::Sent;
                self.unanswered.push_back(Mark::Probe);
            }
            Sent::Sync => {
                self.is_unsynced = false;
                if !self.copies_in {
                    self.unanswered.push_back(Mark::Sync);
                    return true;
                }
                self.has_thrown_away = true;
            }
            Sent::CopyEnd => {
                // In the extended protocol the Sync that ends the cycle is still to come.
                self.is_unsynced |= self.copies_in && self.unanswered.is_empty();
                // One is enough where nobody waits for rows: a client may send them without end.
                let is_second = self.unanswered.back() == Some(&Mark::CopyEnd);
                if !std::mem::take(&mut self.copies_in) && !is_second {
                    self.unanswered.push_back(Mark::CopyEnd);
                }
            }
        }
        false
    }

    /// The server has answered this; which cycles it will not answer after all.
    pub fn answered(&mut self, what: Answered) -> Result<ThrownAway, OutOfStep> {
        match what {
            Answered::Ready(status) => {
                self.drop_stray_copy_ends();
                match self.unanswered.front() {
                    // One of those that were perhaps thrown away, and were not.
                    None | Some(Mark::Probe) if self.is_doubtful => {}
                    None => return Err(OutOfStep),
                    Some(Mark::Probe) if self.probe != Probe::Answered => return Err(OutOfStep),
                    Some(mark) => {
                        if *mark == Mark::Probe {
                            self.probe = Probe::None;
                        }
                        self.unanswered.pop_front();
                    }
                }
                self.copies_in = false;
                self.has_thrown_away = false;
                self.status = status;
            }
            Answered::CopyIn => return Ok(self.begin_copy()),
            // A COPY that fails may do so before or after the Syncs that were thrown away: nobody can tell whether they are answered.
            Answered::Error => {
                self.is_doubtful |= self.has_thrown_away;
                self.copies_in = false;
            }
            Answered::Probe => {
                let before = self.unanswered.iter().position(|mark| *mark == Mark::Probe);
                self.unanswered.drain(..before.ok_or(OutOfStep)?);
                self.probe = Probe::Answered;
                self.is_doubtful = false;
            }
        }
        Ok(ThrownAway::default())
    }

    /// Whether a probe is to follow the Sync that was just sent.
    pub fn wants_probe(&self) -> bool {
        let may_be_in_doubt = self.has_thrown_away || self.is_doubtful;
        may_be_in_doubt && !self.copies_in && self.probe == Probe::None
    }

    /// Something was sent whose answer may look like a probe's.
    pub fn never_probe(&mut self) {
        if self.probe == Probe::None {
            self.probe = Probe::Never;
        }
    }

    /// Whether it is not known how many answers are to come.
    pub fn is_doubtful(&self) -> bool {
        self.is_doubtful
    }

    /// Whether the connection is free for another client.
    pub fn is_over(&self) -> bool {
        let all_answered = self.unanswered.iter().all(|mark| *mark == Mark::CopyEnd);
        all_answered
            && !self.is_doubtful
            && !self.is_unsynced
            && !self.copies_in
            && self.status == TransactionStatus::Idle
    }

    /// Whether the transaction had failed when the server was last ready.
    pub fn has_failed(&self) -> bool {
        self.status == TransactionStatus::Failed
    }

    /// Whether every cycle is answered.
    pub fn is_answered(&self) -> bool {
        self.unanswered.iter().all(|mark| *mark == Mark::CopyEnd)
    }

    /// Cycles that are not answered.
    pub fn unanswered_cycles(&self) -> usize {
        let ends_cycle = |mark: &&Mark| **mark != Mark::CopyEnd;
        self.unanswered.iter().filter(ends_cycle).count()
    }

    /// Takes away the Syncs that the server throws away: up to the end of the rows, if that was sent already.
    fn begin_copy(&mut self) -> ThrownAway {
        let own_cycle = match self.unanswered.front() {
            Some(Mark::Cycle) => self.unanswered.pop_front(),
            _ => None,
        };
        let mut syncs = 0;
        while self.unanswered.front() == Some(&Mark::Sync) {
            self.unanswered.pop_front();
            syncs += 1;
            self.has_thrown_away = true;
        }
        match self.unanswered.front() {
            Some(Mark::CopyEnd) => {
                self.unanswered.pop_front();
            }
            _ => self.copies_in = true,
        }
        let behind_first = own_cycle.is_some();
        if let Some(own_cycle) = own_cycle {
            self.unanswered.push_front(own_cycle);
        }
        ThrownAway {
            syncs,
            behind_first,
        }
    }

    /// Ends of rows that no COPY waited for are thrown away by the server.
    fn drop_stray_copy_ends(&mut self) {
        while self.unanswered.front() == Some(&Mark::CopyEnd) {
            self.unanswered.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a conversation, one letter an event, and says after each whether the turn is over: `-` not yet, `o` over, `!` out of step.
    /// The client: `q` query, `x` extended, `s` Sync, `c` end of rows; `p` a probe of ours, if one is wanted. The server: `P` the probe was read, `I`, `T`, `F` ready in no, an open or a failed transaction, `G` rows
    /// are expected, `E` an error.
    fn played(events: &str) -> String {
        let mut turn = Turn::default();
        let after = |event| {
            let answered = match event {
                'q' => Err(Sent::Cycle),
                'x' => Err(Sent::Extended),
                's' => Err(Sent::Sync),
                'c' => Err(Sent::CopyEnd),
                'p' if !turn.wants_probe() => return 'n',
                'p' => Err(Sent::Probe),
                'P' => Ok(Answered::Probe),
                'I' => Ok(Answered::Ready(TransactionStatus::Idle)),
                'T' => Ok(Answered::Ready(TransactionStatus::Open)),
                'F' => Ok(Answered::Ready(TransactionStatus::Failed)),
                'G' => Ok(Answered::CopyIn),
                _ => Ok(Answered::Error),
            };
            let in_step = match answered {
                Ok(answer) => turn.answered(answer).is_ok(),
                Err(sent) => {
                    turn.sent(sent);
                    true
                }
            };
            match (in_step, turn.is_over()) {
                (false, _) => '!',
                (true, true) => 'o',
                (true, false) => '-',
            }
        };
        events.chars().map(after).collect()
    }

    #[test]
    fn a_query_is_a_turn_and_a_transaction_keeps_it() {
        assert_eq!(played("qI"), "-o");
        assert_eq!(played("qTqTqI"), "-----o");
        assert_eq!(played("qTqEFqI"), "------o");
    }

    #[test]
    fn a_cycle_of_the_extended_protocol_ends_with_its_sync() {
        assert_eq!(played("xxxsI"), "----o");
        // an error is no end: the server skips to the Sync
        assert_eq!(played("xEsI"), "---o");
        // what was sent and not synced keeps the connection
        assert_eq!(played("xsxI"), "----");
    }

    #[test]
    fn pipelined_cycles_are_all_waited_for() {
        assert_eq!(played("xsxsqIII"), "-------o");
        assert_eq!(played("xsxsITxsI"), "--------o");
    }

    #[test]
    fn a_copy_by_a_query_takes_its_rows() {
        assert_eq!(played("qGcI"), "---o");
        // rows sent before the server asked for them
        assert_eq!(played("qcGI"), "---o");
        assert_eq!(played("qGEI"), "---o");
    }

    #[test]
    fn syncs_during_a_copy_are_not_answered() {
        // libpq: the Sync behind Execute is thrown away, another follows the rows
        assert_eq!(played("xsGcsI"), "-----o");
        // everything sent at once
        assert_eq!(played("xscsGI"), "-----o");
        assert_eq!(played("xsGsscsI"), "-------o");
    }

    #[test]
    fn a_copy_that_fails_with_syncs_on_their_way_leaves_a_doubt() {
        // one answer or two: the connection is never free again
        assert_eq!(played("xsGEcsI"), "-------");
        assert_eq!(played("xsGcsEII"), "--------");
        assert_eq!(played("qGsEI"), "-----");
        // without them there is none
        assert_eq!(played("qGEI"), "---o");
        assert_eq!(played("xsGcsIxsEI"), "-----o---o");
    }

    #[test]
    fn a_probe_tells_how_many_answers_there_were() {
        // the copy went well
        assert_eq!(played("xsGcspIPI"), "--------o");
        // it failed behind the Sync that was thrown away, or before it
        assert_eq!(played("xsGEcspIPI"), "---------o");
        assert_eq!(played("xsGEIcspIPI"), "----------o");
        assert_eq!(played("xsGcspEIIPI"), "----------o");
        assert_eq!(played("xsGcspEIPqII"), "-----------o");
        // what is sent next does not make it wait
        assert_eq!(played("xsGcspqEIPII"), "-----------o");
    }

    #[test]
    fn where_an_answer_may_be_mistaken_for_a_probes_there_is_none() {
        assert_eq!(played("xsGxcsp"), "------n");
        assert_eq!(played("xsGExsp"), "------n");
        // nor where there is no doubt, or two at a time
        assert_eq!(played("xsp"), "--n");
        assert_eq!(played("xsGsp"), "----n");
        assert_eq!(played("xsGcspsp"), "-------n");
    }

    #[test]
    fn an_end_of_rows_that_nobody_waits_for_is_nothing() {
        assert_eq!(played("cqI"), "o-o");
        assert_eq!(played("qcI"), "--o");
        assert_eq!(played("qcccGI"), "-----o");
    }

    #[test]
    fn an_answer_too_many_is_noticed() {
        assert_eq!(played("I"), "!");
        assert_eq!(played("qII"), "-o!");
    }
}
