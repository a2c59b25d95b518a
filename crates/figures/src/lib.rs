//! The papers' figures that are computed and not measured, computed again, and what they show as
//! findings that can fail.
//!
//! Schroeder's thesis (2005) part III has eight principles about open, closed and partly-open
//! systems, chapter 9 the limit on jobs in a database; Crovella, Frangioso and Harchol-Balter
//! (1999) slowdown by size. Every finding states in numbers of ours what the words of the paper
//! say.

pub mod case_studies;
mod limits;
mod open_closed;
mod partly_open;
mod runs;
mod slowdown;

use anyhow::Result;
use sooner_report::curves::Figure;

/// What the words of a paper say, in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Of which figure or principle.
    pub of: &'static str,
    /// What should hold.
    pub claim: &'static str,
    /// Whether it does.
    pub holds: bool,
    /// The numbers.
    pub evidence: String,
}

/// Figures that belong together, and what they show.
pub struct Drawn {
    /// The pictures.
    pub figures: Vec<Figure>,
    /// What they show.
    pub findings: Vec<Finding>,
}

/// How much to simulate for every point.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Jobs of a point.
    pub jobs: u64,
    /// Names the random numbers.
    pub seed: u64,
    /// Threads.
    pub threads: u32,
    /// Called after each simulated point.
    pub told: fn(),
}

/// A name, what it is, and how it is made.
pub struct Entry {
    /// As the command line names it.
    pub name: &'static str,
    /// What it is, with its source.
    pub title: &'static str,
    make: fn(&Effort) -> Result<Drawn>,
}

impl Entry {
    /// Computes it.
    pub fn draw(&self, effort: &Effort) -> Result<Drawn> {
        (self.make)(effort)
    }
}

/// All that can be drawn.
pub const ALL: [Entry; 8] = [
    Entry {
        name: "13.1",
        title: "What decides the load of a closed system (thesis, Figure 13.1)",
        make: open_closed::load,
    },
    Entry {
        name: "13.2",
        title: "Open and closed systems, first come first served (thesis, Figure 13.2, principles i to iii)",
        make: open_closed::first_come,
    },
    Entry {
        name: "13.3",
        title: "What the order is worth in open and closed systems (thesis, Figure 13.3, principles iv to vi)",
        make: open_closed::order,
    },
    Entry {
        name: "13.4",
        title: "Partly-open systems (thesis, Figure 13.4, principles vii and viii)",
        make: partly_open::draw,
    },
    Entry {
        name: "14.1",
        title: "An auction site and a supercomputer (thesis, Figure 14.1, rows three and four)",
        make: case_studies::draw,
    },
    Entry {
        name: "7-8",
        title: "Slowdown by size under SRPT and processor sharing (1999 paper, Figures 7 and 8)",
        make: slowdown::draw,
    },
    Entry {
        name: "9.7",
        title: "How many jobs a backend needs inside (thesis, Figure 9.7)",
        make: limits::needed,
    },
    Entry {
        name: "9.10",
        title: "Response time by the limit on jobs inside (thesis, Figure 9.10)",
        make: limits::response,
    },
];
