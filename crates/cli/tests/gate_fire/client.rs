//! A client: sessions one after the other, in each some transactions, to which accidents happen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use super::accident::{Accident, Leaving, Sent};
use super::ledger::{Ledger, Outcome};
use super::messages::{query, terminate};
use super::random::Random;
use super::transfer::{Step, Style, Transfer, client_name, prepare_again, prepare_all};
use super::wire::{Answer, Complaint, Lost, ServerAddress, Wire};

/// What all clients share.
pub struct Arena {
    pub places: [ServerAddress; 2],
    pub ledger: Ledger,
    /// No more transactions.
    pub is_over: AtomicBool,
    /// Counted up before the gate is killed and when it serves again: odd while there is none.
    pub gate_age: AtomicU64,
    pub seed: u64,
}

/// Whether a client cancels its own commands; no other client's may ever be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Stranger,
    Victim,
}

/// What the database and the gate may say when a server connection is lost or the database is not
/// there.
const EXPECTED: [&str; 5] = ["57P01", "57P02", "57P03", "08001", "08006"];
const CANCELED: &str = "57014";
/// A little longer than a transaction takes, so that cancel requests come before, in and after it.
const CANCEL_WITHIN: Duration = Duration::from_millis(30);

const CANCEL_AGAIN: Duration = Duration::from_millis(100);

/// A client and what it has done.
pub struct Client {
    arena: Arc<Arena>,
    number: u64,
    kind: Kind,
    random: Random,
    transfers: u64,
    /// The gate's when the client last sent it a request.
    age_asked: u64,
    /// The gate's when the client last sent it a request that it answered.
    age: u64,
}

/// The session is at its end.
struct Over;

impl Client {
    /// Number `number`, from 0.
    pub fn new(arena: Arc<Arena>, number: u64, kind: Kind) -> Self {
        let random = Random::new(arena.seed, number + 1);
        Self {
            arena,
            number,
            kind,
            random,
            transfers: 0,
            age_asked: 0,
            age: 0,
        }
    }

    /// Until it is over.
    pub fn run(mut self) {
        while !self.arena.is_over.load(Ordering::SeqCst) {
            self.age = self.age_now();
            let place = self.place();
            let user = ["postgres", "ann"][self.random.below(2) as usize];
            match Wire::log_in(&place, user, &client_name(self.number)) {
                // The gate is being started.
                None => sleep(Duration::from_millis(20)),
                Some(Err(lost)) => self.look_at(&lost, "login"),
                Some(Ok(wire)) => {
                    let _ = self.session(wire);
                }
            }
        }
    }

    fn place(&self) -> ServerAddress {
        self.arena.places[(self.number % 2) as usize].clone()
    }

    fn age_now(&self) -> u64 {
        self.arena.gate_age.load(Ordering::SeqCst)
    }

    /// Sends something that is to be answered.
    fn say(&mut self, wire: &mut Wire, bytes: &[u8]) {
        self.age_asked = self.age_now();
        wire.send(bytes);
    }

    fn session(&mut self, mut wire: Wire) -> Result<(), Over> {
        self.say(&mut wire, &prepare_all(self.number));
        self.must_hear(&mut wire, "prepare")?;
        if self.random.in_1000(20) {
            self.say(&mut wire, &query("LISTEN fire"));
            self.hear(&mut wire, "listen")?;
        }
        for _ in 0..1 + self.random.below(20) {
            if self.arena.is_over.load(Ordering::SeqCst) {
                break;
            }
            match self.random.below(100) {
                0..3 => {
                    let again = prepare_again(self.number, self.random.below(3) as usize);
                    self.say(&mut wire, &again);
                    self.must_hear(&mut wire, "prepare again")?;
                }
                3..5 => return self.ask_much_and_leave(wire),
                5..50 if self.kind == Kind::Victim => self.sleep_and_cancel(&mut wire)?,
                _ => {}
            }
            wire = self.transfer(wire)?;
            sleep(self.random.pause(Duration::from_millis(10)));
        }
        if self.random.in_1000(500) {
            wire.send(&terminate());
        }
        Ok(())
    }

    /// Asks for much more than fits anywhere between, reads nothing and leaves.
    fn ask_much_and_leave(&mut self, mut wire: Wire) -> Result<(), Over> {
        self.arena.ledger.count("asked for much and left");
        wire.send(&query(
            "SELECT repeat('x', 10000) FROM generate_series(1, 2000)",
        ));
        sleep(self.random.pause(Duration::from_millis(200)));
        if self.random.in_1000(500) {
            wire.reset();
        }
        Err(Over)
    }

    /// A command that takes long, cancelled until it is answered: a request that comes while it
    /// waits outside is forgotten.
    fn sleep_and_cancel(&mut self, wire: &mut Wire) -> Result<(), Over> {
        // The short ones are over at about the time when a request comes.
        let (sql, again) = if self.random.in_1000(500) {
            ("SELECT pg_sleep(1)", CANCEL_AGAIN)
        } else {
            ("SELECT pg_sleep(0.04)", CANCEL_AGAIN / 5)
        };
        // In a transaction it is inside already, and every request finds it.
        let is_inside = self.random.in_1000(500);
        if is_inside {
            self.say(wire, &query("BEGIN"));
            if self.hear(wire, "begin")?.complaint.is_some() {
                return Ok(());
            }
        }
        self.say(wire, &query(sql));
        sleep(self.random.pause(CANCEL_WITHIN));
        loop {
            self.cancel(&wire.key.clone());
            if wire.is_answered_within(again) {
                break;
            }
        }
        let answer = self.hear(wire, "sleep")?;
        let how = match answer.complaint {
            Some(complaint) if complaint.code == CANCELED => "a sleep was cancelled",
            _ => "a sleep was not cancelled",
        };
        self.arena.ledger.count(how);
        if is_inside { self.end(wire) } else { Ok(()) }
    }

    /// Asks to cancel itself; sometimes with a key that is wrong, which must hit no client.
    fn cancel(&mut self, key: &(i32, Vec<u8>)) {
        if self.random.in_1000(500) {
            sleep(self.random.pause(CANCEL_WITHIN / 10));
        }
        let mut key = key.clone();
        if self.random.in_1000(150) {
            key.0 = 1 + self.random.below(400) as i32;
            self.arena.ledger.count("cancel requests with a wrong key");
        }
        self.arena.ledger.count("cancel requests");
        let waits = self.random.in_1000(700);
        // No gate listens, or it is killed: then the request hits no client.
        let _ = Wire::cancel(&self.place(), &key, waits);
    }

    /// One transaction; the connection, if it is still there.
    fn transfer(&mut self, mut wire: Wire) -> Result<Wire, Over> {
        self.transfers += 1;
        let transfer = Transfer::choose(self.number, self.transfers, &mut self.random);
        let style = Style::choose(&mut self.random);
        let steps = transfer.steps(style);
        let cancels = self.kind == Kind::Victim;
        let accident = Accident::choose(&mut self.random, steps.len(), cancels);
        let arena = self.arena.clone();
        let note = |outcome, step: usize| {
            let how = format!("{style:?}, {accident:?}, ended at step {step}");
            arena.ledger.note(&transfer, outcome, how);
        };
        for (index, step) in steps.iter().enumerate() {
            if let Some((sent, leaving)) = accident.leaves_in(index) {
                note(self.leave(wire, step, sent, leaving), index);
                return Err(Over);
            }
            self.send(&mut wire, &step.bytes, accident.slows(index));
            if accident.cancels_in(index) {
                self.cancel(&wire.key.clone());
            }
            let what = format!("{style:?} {index} of {transfer:?}");
            let answer = match self.hear(&mut wire, &what) {
                Ok(answer) => answer,
                Err(Over) if step.commits => {
                    note(Outcome::Unknown, index);
                    return Err(Over);
                }
                Err(Over) => {
                    note(Outcome::Failed, index);
                    return Err(Over);
                }
            };
            if accident.cancels_after(index) {
                self.cancel(&wire.key.clone());
            }
            if !answer.is_done(step.tag) {
                note(Outcome::Failed, index);
                return self.roll_back(wire, &answer, &what);
            }
        }
        note(Outcome::Acknowledged, steps.len());
        Ok(wire)
    }

    /// After a command failed.
    fn roll_back(&mut self, mut wire: Wire, answer: &Answer, what: &str) -> Result<Wire, Over> {
        if answer.complaint.is_none() {
            let told = format!("{what}: neither done nor failed: {answer:?}");
            self.arena.ledger.violation(told);
        }
        self.end(&mut wire)?;
        Ok(wire)
    }

    /// Rolls back, until that is done: a victim's ROLLBACK may be cancelled as well.
    fn end(&mut self, wire: &mut Wire) -> Result<(), Over> {
        loop {
            self.say(wire, &query("ROLLBACK"));
            if self.hear(wire, "rollback")?.status == b'I' {
                return Ok(());
            }
        }
    }

    fn send(&mut self, wire: &mut Wire, bytes: &[u8], slowly: bool) {
        let first = if slowly { bytes.len() / 2 } else { bytes.len() };
        self.say(wire, &bytes[..first]);
        if slowly {
            sleep(self.random.pause(Duration::from_millis(50)));
            wire.send(&bytes[first..]);
        }
    }

    /// Leaves with so much of a step sent; what it knows of its transaction then.
    fn leave(&mut self, mut wire: Wire, step: &Step, sent: Sent, leaving: Leaving) -> Outcome {
        let count = match sent {
            Sent::Nothing => 0,
            Sent::Half => step.bytes.len() / 2,
            Sent::All => step.bytes.len(),
        };
        wire.send(&step.bytes[..count]);
        self.arena.ledger.count(&format!("left by {leaving:?}"));
        sleep(self.random.pause(Duration::from_millis(3)));
        let unheard = if step.commits && sent == Sent::All {
            Outcome::Unknown
        } else {
            Outcome::Failed
        };
        match leaving {
            Leaving::Close => {}
            Leaving::Reset => wire.reset(),
            Leaving::Terminate if sent == Sent::Half => {}
            Leaving::Terminate => wire.send(&terminate()),
            Leaving::HalfClose => {
                wire.half_close();
                match wire.answer() {
                    Ok(answer) if step.commits && answer.is_done(step.tag) => {
                        return Outcome::Acknowledged;
                    }
                    // A client that says that it is going is not told anything, but is not left
                    // waiting either.
                    Err(lost) if lost.is_late => self.look_at(&lost, "half closed"),
                    _ => {}
                }
            }
        }
        unheard
    }

    fn hear(&mut self, wire: &mut Wire, what: &str) -> Result<Answer, Over> {
        match wire.answer() {
            Ok(answer) => {
                self.age = self.age_asked;
                if let Some(complaint) = &answer.complaint {
                    self.look_at_complaint(complaint, what);
                    if complaint.severity == "FATAL" {
                        let told = format!("{what}: a session ends and goes on: {answer:?}");
                        self.arena.ledger.violation(told);
                    }
                }
                Ok(answer)
            }
            Err(lost) => {
                self.look_at(&lost, what);
                Err(Over)
            }
        }
    }

    /// The same; a session without its statements is none.
    fn must_hear(&mut self, wire: &mut Wire, what: &str) -> Result<(), Over> {
        match self.hear(wire, what)?.complaint {
            Some(_) => Err(Over),
            None => Ok(()),
        }
    }

    fn look_at(&self, lost: &Lost, what: &str) {
        let ledger = &self.arena.ledger;
        let who = client_name(self.number);
        if lost.is_late {
            ledger.violation(format!("{who} hangs at {what}"));
        }
        match &lost.complaint {
            Some(complaint) => self.look_at_complaint(complaint, what),
            // The gate is gone: it could not have said anything.
            None if self.age % 2 == 1 || self.age_now() != self.age => ledger.count(&format!(
                "lost with the gate at {}",
                what.split(' ').next().unwrap_or_default()
            )),
            None => ledger.violation(format!("{who} lost its connection at {what}: {}", lost.why)),
        }
    }

    fn look_at_complaint(&self, complaint: &Complaint, what: &str) {
        let (who, code) = (client_name(self.number), complaint.code.as_str());
        let ledger = &self.arena.ledger;
        ledger.count(&format!("{} {code}", complaint.severity));
        let is_expected =
            EXPECTED.contains(&code) || (code == CANCELED && self.kind == Kind::Victim);
        if !is_expected {
            let (kind, words) = (self.kind, &complaint.words);
            ledger.violation(format!(
                "{who}, a {kind:?}, was told at {what}: {code} {words}"
            ));
        }
    }
}
