//! Finds how many jobs a backend needs inside: the fewest that cost no more throughput than is said
//! (thesis 9.3, 10.3.5).
//!
//! Each place more than that is a job that Sooner no longer puts in order. The number is found by
//! trying: another limit beside one that is known, by turns of a second, until the loss can be told
//! from chance; halved while that costs nothing, doubled while it gains something, then what is
//! between. Throughput falls again beyond some limit where jobs lock each other out, so more is
//! never taken for better. It is the set point, and not how long jobs take: a controller that looks
//! at that alone drifts. And it is what one limit gives of what another one gives, not how much it
//! gives: machines are faster and slower by themselves.
//!
//! Only while jobs wait outside does the number of those that are done say something about the
//! limit; all other times are left out. Afterwards another limit is tried now and then, and where
//! what is known is true no more everything begins anew.
//!
//! Where classes have targets the time inside must leave room for them: it grows in proportion to
//! the jobs inside, so that gives a highest limit ([`Room`]).
//!
//! Knows no clock: who looks says how long it was.

mod comparing;
mod measuring;
mod room;
mod search;
mod settled;
mod start;

use std::fmt;

use crate::{Need, Window};
use comparing::{Compared, Comparing, Step};
use measuring::{LEFT_OUT, Measured, Measuring};
use room::{Asked, Force, Room};
use search::Search;
use settled::{Finding, Settled};

pub use start::start;

/// Within which bounds a limit is looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControllerLimits {
    /// The fewest; at least 1.
    pub min: usize,
    /// The most.
    pub max: usize,
    /// The first.
    pub start: usize,
    /// The throughput that may be lost, of the most that can be had: 0.05.
    pub throughput_loss: f64,
}

/// Another limit, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Jobs that may be inside from now on.
    pub limit: usize,
    /// For those who read it.
    pub why: Why,
}

/// Why a limit changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// It is not known yet what this one gives: by turns with a limit that is known, and jobs a
    /// second there.
    Tries(usize, f64),
    /// The other one of two that are compared has its turn.
    Turn,
    /// It is the fewest that is enough; jobs a second there.
    Found(f64),
    /// To see whether things have changed: by turns with the one that was found.
    Probes(usize),
    /// What was tried is no better.
    GoesBack,
    /// The class of this number would take longer inside than its target is, so many times.
    Targets(u8, f64),
    /// It does so with the fewest that there can be: its target is given up for an hour.
    OutOfReach(u8, f64),
    /// No class asks for room any more.
    Freed,
    /// What was found is true no more: of this limit and that one the latter gives so many times
    /// what the former gives.
    Changed(usize, usize, f64),
}

impl Why {
    /// The number of the class that is the reason.
    pub fn class(self) -> Option<u8> {
        match self {
            Self::Targets(class, _) | Self::OutOfReach(class, _) => Some(class),
            _ => None,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tries(known, rate) => {
                write!(
                    f,
                    "trying, by turns with {known}, which give {rate:.0} jobs a second"
                )
            }
            Self::Turn => f.write_str("by turns"),
            Self::Found(rate) => write!(f, "enough, with {rate:.0} jobs a second"),
            Self::Probes(known) => {
                write!(
                    f,
                    "trying whether things have changed, by turns with {known}"
                )
            }
            Self::GoesBack => f.write_str("back: the other was no better"),
            Self::Targets(_, factor) => {
                write!(f, "a class is inside for {factor:.2} times its target")
            }
            Self::OutOfReach(_, factor) => {
                write!(
                    f,
                    "with the fewest there can be a class is inside for {factor:.2} times its target, which no number keeps: given up for an hour"
                )
            }
            Self::Freed => f.write_str("no class with a target arrives any more: searching again"),
            Self::Changed(known, tried, ratio) => {
                write!(
                    f,
                    "{tried} give {ratio:.2} times what {known} give: searching again"
                )
            }
        }
    }
}

/// A limit that was found is looked at for so long at a time, ns.
const QUIET_NS: u64 = 10_000_000_000;

/// Looks for the limit of one backend.
#[derive(Debug)]
pub struct Controller {
    limits: ControllerLimits,
    limit: usize,
    room: Room,
    doing: Doing,
    state: State,
}

/// What is under way.
#[derive(Debug)]
enum Doing {
    /// One limit.
    Measuring(Measuring),
    /// Two of them.
    Comparing(Comparing),
}

/// What is known.
#[derive(Debug)]
enum State {
    New,
    Searching(Search),
    Settled(Settled),
}

impl Controller {
    /// Begins at the limits' start.
    pub fn new(limits: ControllerLimits) -> Self {
        Self {
            limits,
            limit: limits.start.clamp(limits.min, limits.max),
            room: Room::new(limits.max),
            doing: Doing::Measuring(Measuring::default()),
            state: State::New,
        }
    }

    /// The limit in force.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether it has been found.
    pub fn is_settled(&self) -> bool {
        matches!(self.state, State::Settled(_))
    }

    /// What was seen since the last call, best every tenth of a second, and what each target needs
    /// at the limit in force.
    pub fn observe(&mut self, window: &Window, needs: &[Need]) -> Option<Change> {
        self.room.pass(window.duration_ns);
        let (limit, why) = match &mut self.doing {
            Doing::Measuring(measuring) => {
                measuring.add(window);
                let measured = measuring.result()?;
                self.leave_room(needs, measured.rate_per_sec)
                    .or_else(|| self.measured(measured))
            }
            Doing::Comparing(comparing) => {
                match comparing.add(window, self.limits.throughput_loss) {
                    Step::Stay => None,
                    Step::Turn(limit) => Some((limit, Why::Turn)),
                    Step::Done(compared) => self
                        .leave_room(needs, compared.known_per_sec)
                        .or_else(|| Some(self.compared(compared))),
                }
            }
        }?;
        self.limit = limit;
        Some(Change { limit, why })
    }

    /// Another limit, where some class would take longer inside than its target is, or where that
    /// is no reason for few any more.
    fn leave_room(&mut self, needs: &[Need], rate_per_sec: f64) -> Option<(usize, Why)> {
        let limit = match &self.state {
            State::Settled(settled) => settled.limit(),
            _ => self.limit,
        };
        let was_held_down = self.is_settled() && limit >= self.room.ceiling();
        let force = match (&self.doing, &self.state) {
            (Doing::Comparing(_), _) => Force::ByTurns,
            (Doing::Measuring(_), State::Settled(_)) => Force::Long,
            (Doing::Measuring(_), _) => Force::Alone,
        };
        let asked = self.room.look(self.limit, force, needs, &self.limits);
        let ceiling = self.room.ceiling();
        match asked {
            Asked::TooMuch(longest) => {
                let why = Why::OutOfReach(longest.class, longest.factor);
                Some((self.begin_anew(rate_per_sec), why))
            }
            Asked::Nothing if was_held_down && limit < ceiling => {
                Some((self.begin_anew(rate_per_sec), Why::Freed))
            }
            Asked::Most(longest) if limit > ceiling => {
                match &mut self.state {
                    State::Settled(settled) => settled.lower_to(ceiling),
                    // What is above is of no use any more.
                    state => *state = State::New,
                }
                self.measure(ceiling, rate_per_sec);
                Some((ceiling, Why::Targets(longest.class, longest.factor)))
            }
            _ => None,
        }
    }

    /// As at the beginning.
    fn begin_anew(&mut self, rate_per_sec: f64) -> usize {
        self.state = State::New;
        let limit = self.limits.start.clamp(self.limits.min, self.limits.max);
        self.measure(limit, rate_per_sec);
        limit
    }

    /// Within which bounds a limit is looked for at the moment.
    fn bounds(&self) -> ControllerLimits {
        ControllerLimits {
            max: self.room.ceiling().max(self.limits.min),
            ..self.limits
        }
    }

    /// Looks at one limit alone from now on, after those have left that went in under another one.
    fn measure(&mut self, limit: usize, rate_per_sec: f64) {
        let inside = limit.max(self.limit) as f64;
        let left_out_ns = LEFT_OUT * inside / rate_per_sec.max(f64::MIN_POSITIVE) * 1e9;
        let shortest_ns = if self.is_settled() { QUIET_NS } else { 0 };
        // A number that is too large becomes the largest there is; it is bounded where nothing is
        // done.
        let left_out_ns = (left_out_ns as u64).min(QUIET_NS);
        self.doing = Doing::Measuring(Measuring::new(left_out_ns, shortest_ns));
    }

    /// One limit alone was measured.
    fn measured(&mut self, measured: Measured) -> Option<(usize, Why)> {
        let bounds = self.bounds();
        let rate = measured.rate_per_sec;
        let State::Settled(settled) = &mut self.state else {
            return Some(self.search(Search::new(self.limit, rate), None));
        };
        let probe = settled.note(measured, &bounds);
        let Some(tried) = probe else {
            self.doing = Doing::Measuring(Measuring::new(0, QUIET_NS));
            return None;
        };
        let known = settled.limit();
        let threshold = settled.threshold(tried, bounds.throughput_loss);
        self.doing = Doing::Comparing(Comparing::new(known, tried, rate, threshold));
        Some((tried, Why::Probes(known)))
    }

    /// Two limits were compared.
    fn compared(&mut self, compared: Compared) -> (usize, Why) {
        let bounds = self.bounds();
        match &mut self.state {
            State::Settled(settled) => match settled.note_probe(compared, &bounds) {
                Finding::Stay(limit) => {
                    let rate = settled.rate_per_sec();
                    self.measure(limit, rate);
                    if limit == compared.tried {
                        (limit, Why::Found(rate))
                    } else {
                        (limit, Why::GoesBack)
                    }
                }
                Finding::Anew(search, why) => self.search(search, Some(why)),
            },
            State::Searching(search) => {
                search.note(compared);
                let search = search.clone();
                self.search(search, None)
            }
            State::New => {
                let search = Search::knowing(compared);
                self.search(search, None)
            }
        }
    }

    /// The next limit that is tried, or the one that is enough.
    fn search(&mut self, search: Search, why: Option<Why>) -> (usize, Why) {
        let bounds = self.bounds();
        let Some((known, tried)) = search.next(&bounds) else {
            let settled = search.settle(&bounds);
            let (limit, rate) = (settled.limit(), settled.rate_per_sec());
            self.state = State::Settled(settled);
            self.measure(limit, rate);
            return (limit, Why::Found(rate));
        };
        let rate = search.rate_per_sec(known);
        let threshold = search.threshold(known, tried, &bounds);
        self.state = State::Searching(search);
        self.doing = Doing::Comparing(Comparing::new(known, tried, rate, threshold));
        (tried, why.unwrap_or(Why::Tries(known, rate)))
    }
}
