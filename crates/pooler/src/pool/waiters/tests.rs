//! What waiting transactions are told, as strings, and for any order of events.

use super::*;
use proptest::prelude::*;

/// A pool of connections that are numbers; what happens is written as a string.
struct Play {
    waiters: Waiters<u32, &'static str>,
    begin: Instant,
    now: Instant,
    /// Those that wait, with their names.
    waiting: Vec<(char, Ticket<u32, &'static str>)>,
    /// Openings that go on, by the names of those for which they were begun.
    opening: Vec<(char, Number, GivenUp)>,
    idle: Vec<u32>,
    /// In the hands of transactions.
    held: Vec<(char, u32)>,
    servers: u32,
    said: String,
}

fn owner() -> Owner {
    let (user, database, there) = ("ann".into(), "shop".into(), None);
    Owner {
        user,
        database,
        there,
    }
}

impl Play {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            waiters: Waiters::default(),
            begin: now,
            now,
            waiting: Vec::new(),
            opening: Vec::new(),
            idle: Vec::new(),
            held: Vec::new(),
            servers: 0,
            said: String::new(),
        }
    }

    fn at(&mut self, ms: u64) {
        self.now = self.begin + Duration::from_millis(ms);
    }

    /// A transaction comes.
    fn come(&mut self, name: char, rank: u8) {
        if let Some(server) = self.idle.pop() {
            self.said.push_str(&format!("{name}={server} "));
            return self.held.push((name, server));
        }
        let since = self.now;
        let waiting = Waiting { rank, since };
        let (ticket, given_up) = self.waiters.wait(&owner(), waiting, true);
        if let Some(given_up) = given_up {
            self.said.push_str(&format!("{name}+ "));
            self.opening.push((name, ticket.number, given_up));
        } else {
            self.said.push_str(&format!("{name}? "));
        }
        self.waiting.push((name, ticket));
    }

    /// What the transactions have been told.
    fn hear(&mut self) {
        let mut again = Vec::new();
        let said = &mut self.said;
        let held = &mut self.held;
        self.waiting
            .retain_mut(|(name, ticket)| match ticket.receiver.try_recv() {
                Ok(Handed::Server(server)) => {
                    said.push_str(&format!("{name}={server} "));
                    held.push((*name, server));
                    false
                }
                Ok(Handed::Failed(why)) => {
                    said.push_str(&format!("{name}:{why} "));
                    false
                }
                Ok(Handed::LookAgain) => {
                    again.push(*name);
                    false
                }
                Err(_) => true,
            });
        for name in again {
            self.come(name, 1);
        }
    }

    fn hand(&mut self, server: u32) {
        self.idle
            .extend(self.waiters.hand(&owner(), server, self.now));
        self.hear();
    }

    /// A transaction ends.
    fn end(&mut self, name: char) {
        let at = self.held.iter().position(|(own, _)| *own == name).unwrap();
        let (_, server) = self.held.remove(at);
        self.hand(server);
    }

    fn opened(&mut self, name: char) {
        let at = self.opening.iter().position(|(own, _, _)| *own == name);
        let (_, number, _) = self.opening.remove(at.unwrap());
        self.servers += 1;
        assert!(self.waiters.opened(&owner(), number));
        self.hand(self.servers);
    }

    fn failed(&mut self, name: char) {
        let at = self.opening.iter().position(|(own, _, _)| *own == name);
        let (_, number, _) = self.opening.remove(at.unwrap());
        assert!(self.waiters.failed(&owner(), number, "no"));
        self.hear();
    }

    /// A client gives up.
    fn leave(&mut self, name: char) {
        let at = self.waiting.iter().position(|(own, _)| *own == name);
        let (_, ticket) = self.waiting.remove(at.unwrap());
        let opens = self.waiters.leave(&owner(), ticket.number);
        let before = self.opening.len();
        self.opening
            .retain(|(_, number, _)| *number != ticket.number);
        assert_eq!(before - self.opening.len(), usize::from(opens));
    }

    /// All openings are given up.
    fn reconnect(&mut self) {
        let openings = self.waiters.give_up_all(|_| true);
        assert_eq!(openings, self.opening.len());
        for (_, number, mut given_up) in std::mem::take(&mut self.opening) {
            assert_eq!(
                given_up.try_recv(),
                Err(oneshot::error::TryRecvError::Closed)
            );
            assert!(!self.waiters.opened(&owner(), number), "it counts no more");
        }
        assert!(self.waiters.is_empty());
        self.hear();
    }

    fn said(&self) -> &str {
        self.said.trim_end()
    }
}

#[test]
fn the_first_that_comes_is_taken_and_the_opening_serves_the_next() {
    let mut play = Play::new();
    play.come('a', 1);
    play.opened('a');
    play.come('b', 1);
    // b's opening is slow: it gets what a gives back, and c waits for b's.
    play.end('a');
    play.come('c', 1);
    play.come('d', 1);
    play.opened('b');
    play.opened('d');
    assert_eq!(play.said(), "a+ a=1 b+ b=1 c? d+ c=2 d=3");
    assert!(!play.waiters.has_spare(&owner()));
}

#[test]
fn what_is_opened_for_a_client_that_leaves_is_given_up() {
    let mut play = Play::new();
    play.come('a', 1);
    play.leave('a');
    play.come('b', 1);
    play.opened('b');
    assert_eq!(play.said(), "a+ b+ b=1");
}

#[test]
fn all_begin_anew_where_connections_are_replaced() {
    let mut play = Play::new();
    play.come('a', 1);
    play.opened('a');
    play.come('b', 1);
    play.end('a');
    play.come('c', 1);
    play.come('d', 1);
    play.reconnect();
    assert_eq!(play.said(), "a+ a=1 b+ b=1 c? d+ c+ d+");
    play.opened('d');
    assert!(play.said().ends_with("c=2"), "{}", play.said());
}

#[test]
fn those_that_count_on_what_is_of_no_use_look_again() {
    let mut play = Play::new();
    play.come('a', 1);
    play.opened('a');
    play.come('b', 1);
    play.end('a');
    play.come('c', 1);
    let (_, number, _) = play.opening.remove(0);
    assert!(play.waiters.discarded(&owner(), number));
    play.hear();
    assert_eq!(play.said(), "a+ a=1 b+ b=1 c? c+");
}

#[test]
fn a_class_that_matters_more_is_served_first_until_another_is_overdue() {
    let mut play = Play::new();
    play.come('a', 1);
    play.opened('a');
    for (ms, name, rank) in [(0, 'x', 9), (1, 'y', 5), (2, 'z', 5), (3, 'h', 1)] {
        play.at(ms);
        play.come(name, rank);
    }
    for name in ['a', 'h', 'y'] {
        play.end(name);
    }
    assert_eq!(play.said(), "a+ a=1 x+ y+ z+ h+ h=1 y=1 z=1");
    play.at(OVERDUE.as_millis() as u64);
    // Openings of those that were served are spare: it counts on one of them.
    play.come('i', 1);
    play.end('z');
    assert_eq!(play.said(), "a+ a=1 x+ y+ z+ h+ h=1 y=1 z=1 i? x=1");
}

/// Not by its place in the configuration.
#[test]
fn a_class_goes_by_its_priority_and_what_is_in_none_last() {
    let now = Instant::now();
    let ranks = [1, 2, 100, 200, 0].map(|priority| Waiting::of(priority, now).rank);
    assert!(ranks.is_sorted_by(|one, next| one < next), "{ranks:?}");
}

#[test]
fn one_that_counts_on_a_spare_opening_looks_again_when_it_fails() {
    let mut play = Play::new();
    play.come('a', 1);
    play.opened('a');
    play.come('b', 1);
    play.end('a');
    play.come('c', 1);
    play.failed('b');
    play.failed('c');
    assert_eq!(play.said(), "a+ a=1 b+ b=1 c? c+ c:no");
}

#[test]
fn only_what_is_not_counted_on_is_given_up() {
    let mut play = Play::new();
    play.come('a', 1);
    play.opened('a');
    play.come('b', 1);
    assert!(!play.waiters.give_up_spare());
    play.end('a');
    play.come('c', 1);
    assert!(!play.waiters.give_up_spare(), "c counts on it");
    play.leave('c');
    assert!(play.waiters.has_opening(|_| true) && play.waiters.has_spare(&owner()));
    assert!(play.waiters.give_up_spare());
    let (_, number, mut given_up) = play.opening.remove(0);
    let is_given_up = given_up.try_recv() == Err(oneshot::error::TryRecvError::Closed);
    assert!(is_given_up);
    assert!(!play.waiters.opened(&owner(), number), "it counts no more");
    assert!(play.waiters.is_empty());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Come(u8),
    End(usize),
    Opened(usize),
    Failed(usize),
    Leave(usize),
    Pass(u64),
    Reconnect,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..4_u8).prop_map(Step::Come),
        3 => any::<usize>().prop_map(Step::End),
        2 => any::<usize>().prop_map(Step::Opened),
        1 => any::<usize>().prop_map(Step::Failed),
        1 => any::<usize>().prop_map(Step::Leave),
        1 => (0..300_u64).prop_map(Step::Pass),
        1 => Just(Step::Reconnect),
    ]
}

fn one<T>(all: &[(char, T)], at: usize) -> Option<char> {
    let at = at.checked_rem(all.len())?;
    Some(all[at].0)
}

proptest! {
    /// Each transaction inside has a connection or one that is on its way; there are
    /// never more connections and openings than there were transactions at a time.
    #[test]
    fn each_that_waits_is_served_and_none_is_opened_in_vain(
        steps in prop::collection::vec(step(), 0..200)
    ) {
        let mut play = Play::new();
        let mut most = 0;
        for (at, step) in steps.into_iter().enumerate() {
            let openings: Vec<(char, ())> = play.opening.iter().map(|one| (one.0, ())).collect();
            match step {
                Step::Come(rank) => play.come(char::from_u32(0x4e00 + at as u32).unwrap(), rank),
                Step::End(at) => one(&play.held, at).into_iter().for_each(|name| play.end(name)),
                Step::Opened(at) => one(&openings, at).into_iter().for_each(|name| play.opened(name)),
                Step::Failed(at) => one(&openings, at).into_iter().for_each(|name| play.failed(name)),
                Step::Leave(at) => one(&play.waiting, at).into_iter().for_each(|name| play.leave(name)),
                Step::Reconnect => play.reconnect(),
                Step::Pass(ms) => play.now += Duration::from_millis(ms),
            }
            let (inside, open) = (
                play.waiting.len() + play.held.len(),
                play.idle.len() + play.held.len() + play.opening.len(),
            );
            most = most.max(inside);
            prop_assert!(open <= most, "{open} of {most}: {}", play.said());
            prop_assert!(play.waiting.is_empty() || play.idle.is_empty());
            prop_assert!(play.opening.len() >= play.waiting.len(), "{}", play.said());
        }
        // All that wait are served by what is under way.
        while let Some((name, _, _)) = play.opening.first() {
            play.opened(*name);
        }
        prop_assert!(play.waiting.is_empty(), "{}", play.said());
    }
}
