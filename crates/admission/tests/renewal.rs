//! Another configuration while jobs wait: in which class they are, who is charged for them, and what
//! classes had before.

use sooner_admission::{
    Admission, AdmissionSettings, ClientId, Goal, KIND_MEMORY, Order, Payer, Renewed, Subject,
    Ticket, Time, Within,
};
use std::collections::HashMap;

const MS: u64 = 1_000_000;
const NOW: Time = Time::ZERO;

struct Play {
    admission: Admission,
    tickets: Vec<Ticket>,
}

impl Play {
    /// None may go in yet.
    fn new(order: Order, names: &[&str]) -> Self {
        let mut play = Self {
            admission: Admission::new(AdmissionSettings {
                limit: 0,
                order,
                waiting_max: None,
                kind_memory: KIND_MEMORY,
            }),
            tickets: Vec::new(),
        };
        play.set_goals(order, names);
        play
    }

    /// Classes of these names, all of one priority.
    fn set_goals(&mut self, order: Order, names: &[&str]) {
        self.renew(order, names, &[]);
    }

    /// The same, and of these jobs something else is known.
    fn renew(&mut self, order: Order, names: &[&str], known: &[(usize, Renewed)]) {
        let goal = |name: &&str| Goal {
            name: (*name).to_owned(),
            weight: 1,
            ..Goal::default()
        };
        let goals = names.iter().map(goal).collect();
        let known = known.iter();
        let known = known.map(|&(job, renewed)| (self.tickets[job].job(), renewed));
        let known: HashMap<_, _> = known.collect();
        self.admission.set_goals(order, goals, &known, NOW);
    }

    fn come(&mut self, class: u8, subject: Subject) {
        let ticket = self.admission.arrive(class, subject, 0, NOW).unwrap();
        self.tickets.push(ticket);
    }

    fn classes(&self) -> Vec<u8> {
        let tickets = self.tickets.iter();
        tickets.map(|it| self.admission.class_of(it)).collect()
    }

    /// One after the other goes in and leaves.
    fn order(&mut self) -> Vec<u64> {
        let mut order = Vec::new();
        self.admission.set_capacity(1);
        while let Some(job) = self.admission.admit(NOW) {
            order.push(job.0);
            self.admission.leave(&self.tickets[job.0 as usize], NOW);
        }
        self.admission.set_capacity(0);
        order
    }
}

fn plain(class: u8) -> Subject {
    Subject {
        plain_class: Some(class),
        ..Subject::default()
    }
}

fn payer(client: u64) -> Payer {
    Payer {
        client: ClientId(client),
        network: None,
    }
}

fn of(client: u64) -> Subject {
    Subject {
        payer: Some(payer(client)),
        ..Subject::default()
    }
}

#[test]
fn where_classes_have_no_names_each_job_keeps_its_number() {
    let mut play = Play::new(Order::Expected, &[]);
    for class in [7, 7, 1] {
        play.come(class, Subject::default());
    }
    play.set_goals(Order::Fcfs, &[]);
    play.come(1, Subject::default());
    assert_eq!(play.classes(), [7, 7, 1, 1]);
    assert_eq!(play.order(), [2, 3, 0, 1]);
}

#[test]
fn where_the_last_name_is_gone_each_job_is_in_its_plain_class() {
    let mut play = Play::new(Order::Fcfs, &["gold", "rest"]);
    for (class, of) in [(0, plain(7)), (1, plain(3)), (1, plain(0))] {
        play.come(class, of);
    }
    play.set_goals(Order::Fcfs, &[]);
    assert_eq!(play.classes(), [7, 3, 0]);
    // Of those that come to names there is nothing to know: they are in none of them.
    play.come(5, plain(5));
    play.set_goals(Order::Fcfs, &["gold", "rest"]);
    assert_eq!(play.classes(), [1, 1, 1, 1]);
    play.set_goals(Order::Fcfs, &[]);
    assert_eq!(play.classes(), [7, 3, 0, 5]);
    assert_eq!(play.order(), [2, 1, 3, 0]);
}

#[test]
fn those_share_who_waited_before_that_was_said() {
    let mut play = Play::new(Order::Fcfs, &["all"]);
    for client in [1, 1, 1, 2] {
        play.come(0, of(client));
    }
    play.set_goals(Order::LeastUsed(Within::Fcfs), &["all"]);
    assert_eq!(play.order(), [0, 3, 1, 2]);
}

#[test]
fn another_one_is_charged_where_that_is_said() {
    for before in [Order::Fcfs, Order::LeastUsed(Within::Fcfs)] {
        let mut play = Play::new(before, &["all"]);
        for _ in 0..4 {
            play.come(0, of(1));
        }
        let others = Renewed {
            class: 0,
            payer: Some(payer(2)),
        };
        let order = Order::LeastUsed(Within::Fcfs);
        play.renew(order, &["all"], &[(3, others), (1, 0_u8.into())]);
        assert_eq!(play.order(), [0, 3, 1, 2], "{before:?}");
    }
}

/// The class `a` has had a second, whatever its number is.
fn a_has_had_a_second(names: &[&str], class: u8) -> Play {
    let mut play = Play::new(Order::Shares, names);
    play.come(class, Subject::default());
    play.admission.set_capacity(1);
    assert!(play.admission.admit(NOW).is_some());
    let ticket = &play.tickets[0];
    play.admission.settle(ticket, 1000 * MS);
    play.admission.leave(ticket, NOW);
    play.admission.set_capacity(0);
    play
}

#[test]
fn what_a_class_had_counts_when_others_change() {
    let mut play = a_has_had_a_second(&["gone", "a", "b"], 1);
    for class in [1, 2, 2] {
        play.come(class, Subject::default());
    }
    play.set_goals(Order::Shares, &["a", "b"]);
    assert_eq!(play.order(), [2, 3, 1]);
    // So it does where none waits meanwhile.
    let mut play = a_has_had_a_second(&["a", "b"], 0);
    play.set_goals(Order::Shares, &["b", "a"]);
    for class in [1, 0, 0] {
        play.come(class, Subject::default());
    }
    assert_eq!(play.order(), [2, 3, 1]);
}
