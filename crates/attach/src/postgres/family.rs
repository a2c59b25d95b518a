//! The processes of a server by the numbers that it has for them, each one and no other that gets
//! its number later.

use std::collections::HashMap;

use super::numbers::ProcessNumbers;
use crate::process_id::ProcessId;

/// What is known of them.
#[derive(Debug)]
pub struct Family {
    /// The server's first process, which is their parent.
    first: u32,
    numbers: ProcessNumbers,
    /// By the server's number: the process, and when its session began where that is known.
    known: HashMap<i32, (ProcessId, Option<i64>)>,
    inside: HashMap<ProcessId, i32>,
}

impl Family {
    /// Of the server with this first process.
    pub fn new(first: u32, numbers: ProcessNumbers) -> Family {
        Family {
            first,
            numbers,
            known: HashMap::new(),
            inside: HashMap::new(),
        }
    }

    /// The process of this number; none where it is none of this server's.
    pub fn process(&mut self, inside: i32) -> Option<ProcessId> {
        match self.known.get(&inside) {
            Some((process, _)) => Some(*process),
            None => self.learn(inside, None),
        }
    }

    /// The same of a session that began then: where another one had the number, it is learnt anew.
    pub fn session(&mut self, inside: i32, began_us: i64) -> Option<ProcessId> {
        match self.known.get(&inside) {
            Some((process, Some(began))) if *began == began_us => Some(*process),
            Some((process, _)) if process.is_child_of(self.first) => {
                let process = *process;
                self.known.insert(inside, (process, Some(began_us)));
                Some(process)
            }
            _ => {
                self.forget(inside);
                self.learn(inside, Some(began_us))
            }
        }
    }

    fn learn(&mut self, inside: i32, began_us: Option<i64>) -> Option<ProcessId> {
        let outside = self.numbers.outside(inside)?;
        let process = ProcessId::of_child(outside, self.first)?;
        self.known.insert(inside, (process, began_us));
        self.inside.insert(process, inside);
        Some(process)
    }

    /// The number that the server has for a process.
    pub fn number(&self, process: ProcessId) -> Option<i32> {
        self.inside.get(&process).copied()
    }

    /// Whether a process still is one of the server's.
    pub fn has(&self, process: ProcessId) -> bool {
        process.is_child_of(self.first)
    }

    /// The process of this number is gone.
    pub fn forget(&mut self, inside: i32) {
        self.numbers.forget(inside);
        if let Some((process, _)) = self.known.remove(&inside) {
            self.inside.remove(&process);
        }
    }

    /// What was not found may be there now.
    pub fn begin_look(&mut self) {
        self.numbers.begin_look();
    }

    /// Forgets those that `keeps` does not want.
    pub fn retain(&mut self, keeps: impl Fn(ProcessId) -> bool) {
        self.known.retain(|_, (process, _)| keeps(*process));
        self.inside.retain(|process, _| keeps(*process));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeps() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    #[test]
    fn only_children_of_the_server_are_its_processes() {
        let own = std::process::id();
        let (mut one, mut other) = (sleeps(), sleeps());
        let number = |child: &Child| child.id().cast_signed();
        let numbers = ProcessNumbers::of(own, number(&one)).unwrap();
        let mut family = Family::new(own, numbers);
        let process = family.session(number(&one), 5).unwrap();
        assert_eq!(process.pid, one.id());
        assert_eq!(family.number(process), Some(number(&one)));
        assert_eq!(family.process(1), None, "no process of this server");
        for child in [&mut one, &mut other] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(
            family.session(number(&one), 5),
            Some(process),
            "not asked again"
        );
        assert!(!family.has(process));
        assert_eq!(family.session(number(&one), 6), None);
        assert_eq!(family.process(number(&other)), None);
    }
}
