//! Conversations in messages, through the gate and directly: what a client hears and what is in the
//! database afterwards.
//!
//! Random ones come from a seed. Some are played in each run of the tests; for as long as
//! `SOONER_CONVERSATIONS_SECONDS` says where that is set, from `SOONER_CONVERSATIONS_SEED` on. One
//! that differs is made as short as can be and shown with its seed.

mod play;
mod script;
pub mod session;
mod statements;
mod turns;

use std::cell::Cell;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{Database, Gate, transactions};
use play::{ClientTables, Heard};
use script::Script;

/// Conversations in a run of the tests, where there is time for them.
const CONVERSATIONS: u64 = 300;
const SECONDS: u64 = 12;
/// How long one that differs is made shorter.
const MINIMISE_SECONDS: u64 = 60;

/// A server and gates before it that let in one transaction at a time, and two.
struct Places {
    direct: ClientTables,
    gated: Vec<ClientTables>,
    _gates: Vec<Gate>,
    /// Conversations that say nothing about the gate.
    left_out: Cell<u64>,
}

impl Places {
    fn make(database: &Database) -> Self {
        let server = database.folder().join(".s.PGSQL.5432");
        for name in ["direct", "gated"] {
            database.ask(&format!("CREATE DATABASE {name}"));
        }
        let make = |path: &Path, name| ClientTables::make(&server, path, name);
        let direct = make(&server, "direct");
        let gates = [1, 2].map(|limit| Gate::before(database, &transactions(limit)));
        let gated: Vec<ClientTables> = gates
            .iter()
            .map(|gate| make(&gate.folder().join(".s.PGSQL.6432"), "gated"))
            .collect();
        direct.fill();
        gated[0].fill();
        Self {
            direct,
            gated,
            _gates: gates.into(),
            left_out: Cell::new(0),
        }
    }

    /// Plays a conversation both ways; how they differ, if they do.
    fn difference(&self, script: &Script, seed: u64) -> Option<String> {
        let gated = &self.gated[(seed % 2) as usize];
        match self.compare(gated, script) {
            Ok(difference) => difference,
            Err(error) => Some(error),
        }
    }

    fn compare(&self, gated: &ClientTables, script: &Script) -> Result<Option<String>, String> {
        self.direct.empty()?;
        gated.empty()?;
        let Some(direct) = self.played_directly(script)? else {
            self.left_out.set(self.left_out.get() + 1);
            return Ok(None);
        };
        let through = gated.play(script, Some(&direct))?;
        for (client, pair) in direct.iter().zip(&through).enumerate() {
            if let Some(difference) = differ(pair) {
                return Ok(Some(format!("client {client}: {difference}")));
            }
        }
        let states = (self.direct.state()?, gated.state()?);
        let differs = states.0 != states.1;
        Ok(differs.then(|| format!("tables: direct {}, through {}", states.0, states.1)))
    }

    /// What each client heard without a gate; `None` where that says nothing.
    fn played_directly(&self, script: &Script) -> Result<Option<Vec<Heard>>, String> {
        let played = self.direct.play(script, None);
        // PostgreSQL 16.14 and 18.4 crash at some of those in which it has left out a transaction's
        // end.
        if self.direct.has_crashed() {
            let mut places = self.gated.iter().chain([&self.direct]);
            places.try_for_each(ClientTables::watch_again)?;
            return Ok(None);
        }
        // 18.4 answers Parse, Bind, Execute, Query, Sync, Query with an internal error of its own.
        let is_internal = |heard: &Heard| heard.messages.iter().any(|one| one.contains(" XX000 "));
        // One that does not come to an end is none either.
        let played = played.ok().filter(|heard| !heard.iter().any(is_internal));
        Ok(played)
    }

    /// Leaves out what is not needed for the difference.
    fn minimise(&self, mut script: Script, seed: u64) -> (Script, String) {
        let until = Instant::now() + Duration::from_secs(MINIMISE_SECONDS);
        let mut difference = self.difference(&script, seed).unwrap_or_default();
        let kind = |difference: &str| -> String {
            let parts = difference.split(['[', ',', ']']);
            parts.skip(1).step_by(2).take(1).collect()
        };
        let first = kind(&difference);
        let mut part = script.iter().map(Vec::len).max().unwrap_or(0);
        while part > 0 {
            for client in 0..script.len() {
                let mut at = 0;
                while at < script[client].len() && Instant::now() < until {
                    let mut shorter = script.clone();
                    let end = (at + part).min(shorter[client].len());
                    shorter[client].drain(at..end);
                    match self.difference(&shorter, seed) {
                        Some(other) if kind(&other) == first => {
                            (script, difference) = (shorter, other);
                        }
                        _ => at += part,
                    }
                }
            }
            part /= 2;
        }
        (script, difference)
    }
}

/// What one heard and the other did not.
fn differ((direct, through): (&Heard, &Heard)) -> Option<String> {
    let (direct, through) = (&direct.messages, &through.messages);
    let same = direct
        .iter()
        .zip(through)
        .take_while(|(one, other)| one == other)
        .count();
    (direct != through).then(|| {
        let behind = |heard: &[String]| heard[same..heard.len().min(same + 6)].join(", ");
        format!(
            "behind {same} messages directly [{}], through the gate [{}]",
            behind(direct),
            behind(through)
        )
    })
}

fn shown(script: &Script) -> String {
    let mut text = String::new();
    for (client, steps) in script.iter().enumerate() {
        let _ = writeln!(text, "  {client}: {steps:?}");
    }
    text
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn random_conversations_are_the_same_through_the_gate() {
    let Some(database) = Database::start("random_conversations") else {
        return;
    };
    let places = Places::make(&database);
    let told = number("SOONER_CONVERSATIONS_SECONDS");
    let (most, seconds) = told.map_or((CONVERSATIONS, SECONDS), |seconds| (u64::MAX, seconds));
    let first = number("SOONER_CONVERSATIONS_SEED").unwrap_or(1);
    let begin = Instant::now();
    let mut played = 0;
    while played < most && begin.elapsed() < Duration::from_secs(seconds) {
        let seed = first + played;
        let script = script::script(seed);
        if let Some(difference) = places.difference(&script, seed) {
            let (short, last) = places.minimise(script.clone(), seed);
            panic!(
                "seed {seed}: {difference}\n{}made shorter: {last}\n{}",
                shown(&script),
                shown(&short)
            );
        }
        played += 1;
    }
    let left_out = places.left_out.get();
    println!(
        "{played} conversations without a difference, from seed {first} on; {left_out} say nothing"
    );
    assert!(
        left_out <= 3 + played / 20,
        "{left_out} of {played} say nothing"
    );
}
