//! The page of an experiment: a question, what was published, what came out here, and who pays for
//! it.
//!
//! Its input are runs as `--json` prints them, and what the experiment says of them: cases, claims,
//! how they stand. Everything shown is computed from these alone. Runs that may not be believed are
//! shown as such and count for nothing where there is a valid one.

mod cases;
mod charts;
mod claims;
mod clients;
mod figures;
mod host;
mod overview;
mod page;
mod palette;
mod spread;
mod words;

pub use page::render;
pub use words::headline;

use serde::Deserialize;
use sooner_stats::summary::Spread;
use sooner_stats::{Run, Verdict};

/// Everything that the page of one experiment shows.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The experiment's name.
    pub name: String,
    /// The question, its title.
    pub question: String,
    /// What was published, and where.
    pub published: String,
    /// The rows of the papers' table that it answers.
    pub rows: Vec<String>,
    /// The peer that others are compared with.
    pub baseline: String,
    /// What is claimed, and how it stands.
    pub claims: Vec<Claim>,
    /// Its cases, with what was measured.
    pub cases: Vec<Case>,
    /// What is drawn.
    pub figures: Vec<Figure>,
    /// What the cases' places along a range are, with the unit.
    pub range_title: String,
    /// Who was configured how: name, and the configuration's text.
    pub configurations: Vec<(String, String)>,
    /// How it was measured: name and value, in the order in which they are shown.
    pub about: Vec<(String, String)>,
}

/// A claim.
#[derive(Debug, Clone)]
pub struct Claim {
    /// In words.
    pub text: String,
    /// The limit in words.
    pub limit: String,
    /// One for every case it is made for.
    pub standings: Vec<Standing>,
}

/// How a claim stands in one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The case.
    pub case: String,
    /// The figure over the repetitions; none while nothing valid was measured.
    pub value: Option<Spread>,
    /// Whether the limit holds.
    pub holds: bool,
    /// Whether it rests on fewer repetitions than requested, or on one.
    pub is_thin: bool,
}

impl Standing {
    /// `PASS`, `FAIL`, either with `, thin`, or `not measured`.
    pub fn verdict(&self) -> &'static str {
        match (self.value.is_some(), self.holds, self.is_thin) {
            (false, ..) => "not measured",
            (true, true, false) => "PASS",
            (true, true, true) => "PASS, thin",
            (true, false, false) => "FAIL",
            (true, false, true) => "FAIL, thin",
        }
    }
}

/// A set-up and what was measured with it.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// What was published for it, in words.
    pub published: Option<String>,
    /// The published factor between the baseline's mean and the ordered one.
    pub published_gain: Option<f64>,
    /// Where it stands along a range.
    pub at: Option<f64>,
    /// Who served, each with its runs.
    pub peers: Vec<Peer>,
    /// Keys and values of its set-up.
    pub setup: Vec<(String, String)>,
}

/// A server and its runs of one case.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// One a seed.
    pub runs: Vec<Repetition>,
}

/// One run of a peer.
#[derive(Debug, Clone)]
pub struct Repetition {
    /// What `sooner load --json` printed.
    pub run: Run,
    /// What impatient users did, where that was told.
    pub patience: Patience,
    /// What each client host saw, where there were several.
    pub clients: Vec<Client>,
    /// The server's host and the clients' paths meanwhile: name and value.
    pub host: Vec<(String, Amount)>,
    /// Open connections over time: s since the start, count.
    pub connections: Vec<(f64, f64)>,
}

/// What one client host saw of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Client {
    /// Its address.
    pub address: String,
    /// Mean response time, ms.
    pub mean_response_ms: Option<f64>,
    /// Mean of response time / time alone on the link, which knows nothing of the way to the
    /// client.
    pub mean_slowdown: Option<f64>,
}

/// What impatient users did, by group; absent where it was not told.
#[derive(Debug, Clone, Copy, Default)]
pub struct Patience {
    /// Of all requests.
    pub all: Impatience,
    /// Of the largest 1 %.
    pub largest_1_percent: Impatience,
    /// Of the largest request.
    pub largest: Impatience,
}

/// How often users lost patience.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Impatience {
    /// Responses that were broken off.
    pub aborts: Option<u64>,
    /// Requests that were given up for good.
    pub given_up: Option<u64>,
}

/// A figure of the host.
#[derive(Debug, Clone, PartialEq)]
pub enum Amount {
    /// A number; its unit is in its name.
    Number(f64),
    /// Anything else.
    Text(String),
}

/// A picture of the page; an experiment names it like `by-size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Mean response time by size, one a case.
    BySize,
    /// Distribution of the response time, one a case.
    Distribution,
    /// Mean response time over time, one a case.
    OverTime,
    /// Open connections over time, one a case.
    Connections,
    /// Means over the cases' places, one in all.
    Range,
    /// Means of every case as bars, one in all.
    Cases,
}

impl Case {
    /// The peer of this name.
    pub fn peer(&self, name: &str) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.name == name)
    }

    /// Whether any peer was measured in it.
    pub fn is_measured(&self) -> bool {
        self.peers.iter().any(|peer| !peer.runs.is_empty())
    }
}

impl Peer {
    /// The runs that count: the valid ones; where there is none, all.
    pub fn counted(&self) -> impl Iterator<Item = &Repetition> {
        let any_valid = self.valid() > 0;
        let counts = move |one: &&Repetition| !any_valid || one.run.verdict == Verdict::Valid;
        self.runs.iter().filter(counts)
    }

    /// How many runs may be believed.
    pub fn valid(&self) -> usize {
        let is_valid = |one: &&Repetition| one.run.verdict == Verdict::Valid;
        self.runs.iter().filter(is_valid).count()
    }
}
