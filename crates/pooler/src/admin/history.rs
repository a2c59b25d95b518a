//! The last five minutes of servers and classes, second by second. Its size does not grow with
//! them: what comes after the first ones is counted together.

use crate::pooler::Pooler;
use crate::readings;
use crate::statistics::OTHERS;
use sooner_operate::admin::Ring;
use std::mem;

/// Servers, and classes, that are told apart.
const NAMES_MAX: usize = 32;
/// Seconds that count for a mean.
const RECENT_SECONDS: usize = 60;
/// Seconds that count for a rate: as it is now.
const RATE_SECONDS: usize = 10;

/// What is noted once a second.
pub trait Figures: Copy + Default {
    /// The same with counters that begin at `before`.
    fn since(self, before: Self) -> Self;
    /// Both together.
    fn with(self, other: Self) -> Self;
}

/// A server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerFigures {
    /// Transactions that wait.
    pub waiting: usize,
    /// That are inside.
    pub inside: usize,
}

/// A class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassFigures {
    /// Clients that wait.
    pub waiting: usize,
    /// Transactions that are inside.
    pub inside: usize,
    /// What ended.
    pub done: Done,
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Transactions.
    pub transactions: u64,
    /// Turns, however they ended.
    pub turns: u64,
    /// Waiting for a turn, us.
    pub outside_us: u64,
    /// Then for a connection, us.
    pub opening_us: u64,
    /// With a connection, us.
    pub inside_us: u64,
    /// All of it, of transactions alone, us.
    pub response_us: u64,
}

impl Figures for ServerFigures {
    fn since(self, _: Self) -> Self {
        self
    }

    fn with(self, other: Self) -> Self {
        Self {
            waiting: self.waiting + other.waiting,
            inside: self.inside + other.inside,
        }
    }
}

impl Figures for ClassFigures {
    fn since(self, before: Self) -> Self {
        Self {
            done: self.done.each(before.done, u64::saturating_sub),
            ..self
        }
    }

    fn with(self, other: Self) -> Self {
        Self {
            waiting: self.waiting + other.waiting,
            inside: self.inside + other.inside,
            done: self.done.each(other.done, u64::saturating_add),
        }
    }
}

impl Done {
    fn each(self, other: Self, make: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            transactions: make(self.transactions, other.transactions),
            turns: make(self.turns, other.turns),
            outside_us: make(self.outside_us, other.outside_us),
            opening_us: make(self.opening_us, other.opening_us),
            inside_us: make(self.inside_us, other.inside_us),
            response_us: make(self.response_us, other.response_us),
        }
    }
}

/// The seconds of one name.
#[derive(Debug)]
pub struct Series<F> {
    pub name: String,
    before: F,
    seconds: Ring<F>,
}

impl<F: Figures> Series<F> {
    fn new(name: String, now: F) -> Self {
        Self {
            name,
            before: now,
            seconds: Ring::default(),
        }
    }

    /// Oldest first.
    pub fn seconds(&self) -> impl Iterator<Item = &F> {
        self.seconds.seconds()
    }
}

impl Series<ClassFigures> {
    /// What ended in the last minute.
    pub fn recent(&self) -> Done {
        let last = self.seconds.last(RECENT_SECONDS);
        last.fold(Done::default(), |sum, second| {
            sum.each(second.done, u64::saturating_add)
        })
    }

    /// Transactions a second, of late.
    pub fn transactions_per_second(&self) -> Option<f64> {
        let last: Vec<u64> = (self.seconds.last(RATE_SECONDS))
            .map(|second| second.done.transactions)
            .collect();
        (!last.is_empty()).then(|| last.iter().sum::<u64>() as f64 / last.len() as f64)
    }
}

/// Servers and classes.
#[derive(Debug, Default)]
pub struct History {
    pub servers: Vec<Series<ServerFigures>>,
    pub classes: Vec<Series<ClassFigures>>,
}

impl History {
    /// Another second has passed.
    pub fn second_passed(&mut self, pooler: &Pooler) {
        let servers = readings::servers(pooler).into_iter().map(|server| {
            let figures = ServerFigures {
                waiting: server.waiting,
                inside: server.inside,
            };
            (server.address, figures)
        });
        follow(&mut self.servers, servers);
        let measured = pooler.statistics.borrow();
        let classes = readings::classes(pooler, &measured).into_iter();
        let classes = classes.map(|class| {
            let sums = class.tally.map(|tally| tally.sums).unwrap_or_default();
            let figures = ClassFigures {
                waiting: class.present.waiting,
                inside: class.present.active,
                done: Done {
                    transactions: sums.transactions,
                    turns: sums.turns,
                    outside_us: sums.outside_us,
                    opening_us: sums.opening_us,
                    inside_us: sums.inside_us,
                    response_us: class.tally.map_or(0, |tally| tally.total_us),
                },
            };
            (class.name, figures)
        });
        follow(&mut self.classes, classes);
    }

    /// The seconds of a class, if it is told apart.
    pub fn class(&self, name: &str) -> Option<&Series<ClassFigures>> {
        self.classes.iter().find(|series| series.name == name)
    }
}

/// Notes what is now, in this order. Names that are gone are forgotten, and those beyond the first
/// ones are one: but for what has no name, as transactions in no class.
fn follow<F: Figures>(all: &mut Vec<Series<F>>, now: impl Iterator<Item = (String, F)>) {
    let mut before = mem::take(all);
    let mut others: Option<F> = None;
    let mut note = |name: String, figures: F| {
        let known = before.iter().position(|series| series.name == name);
        let mut series = match known {
            Some(at) => before.swap_remove(at),
            None => Series::new(name, figures),
        };
        series.seconds.push(figures.since(series.before));
        series.before = figures;
        all.push(series);
    };
    for (number, (name, figures)) in now.enumerate() {
        if number < NAMES_MAX || name.is_empty() {
            note(name, figures);
        } else {
            others = Some(others.unwrap_or_default().with(figures));
        }
    }
    if let Some(others) = others {
        note(OTHERS.to_owned(), others);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use sooner_operate::admin::SECONDS_MAX;

    /// Of a server and a class, of which two transactions ended in the second of two seconds.
    pub fn history() -> History {
        let mut history = History::default();
        let server = ServerFigures {
            waiting: 7,
            inside: 3,
        };
        for count in [5, 7] {
            let server = ("db:5432".to_owned(), server);
            follow(&mut history.servers, [server].into_iter());
            follow(&mut history.classes, [class("checkout", count)].into_iter());
        }
        history
    }

    fn class(name: &str, transactions: u64) -> (String, ClassFigures) {
        let done = Done {
            transactions,
            response_us: 10 * transactions,
            ..Done::default()
        };
        let figures = ClassFigures {
            waiting: 1,
            inside: 2,
            done,
        };
        (name.to_owned(), figures)
    }

    #[test]
    fn counters_are_taken_apart_by_second_and_gauges_are_not() {
        let mut all = Vec::new();
        for count in [100, 103, 103, 108] {
            follow(&mut all, [class("a", count)].into_iter());
        }
        let [series] = &all[..] else {
            panic!("{} series", all.len());
        };
        let seconds: Vec<u64> = series.seconds().map(|at| at.done.transactions).collect();
        assert_eq!(seconds, [0, 3, 0, 5]);
        assert!(series.seconds().all(|at| (at.waiting, at.inside) == (1, 2)));
        assert_eq!(series.recent().response_us, 80);
        assert_eq!(series.transactions_per_second(), Some(2.0));
    }

    #[test]
    fn however_many_there_are_it_keeps_as_much() {
        let mut all = Vec::new();
        for second in 0..SECONDS_MAX as u64 + 10 {
            let many = (0..2 * NAMES_MAX).map(|number| class(&format!("class {number}"), second));
            follow(&mut all, many.chain([class("", second)]));
        }
        // Those in no class and the others besides.
        assert_eq!(all.len(), NAMES_MAX + 2);
        assert!(
            all.iter()
                .all(|series| series.seconds().count() == SECONDS_MAX)
        );
        let [.., none, others] = &all[..] else {
            panic!("{} series", all.len());
        };
        assert_eq!((none.name.as_str(), others.name.as_str()), ("", OTHERS));
        let last = others
            .seconds()
            .last()
            .map(|at| (at.waiting, at.done.transactions));
        assert_eq!(last, Some((NAMES_MAX, NAMES_MAX as u64)));
    }

    #[test]
    fn who_is_gone_is_forgotten_and_begins_anew() {
        let mut all = Vec::new();
        follow(&mut all, [class("a", 5), class("b", 7)].into_iter());
        follow(&mut all, [class("b", 9)].into_iter());
        follow(&mut all, [class("a", 90), class("b", 9)].into_iter());
        let names: Vec<&str> = all.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(all[0].recent().transactions, 0);
        assert_eq!(all[1].recent().transactions, 2);
    }
}
