//! The client with a page, the one that keeps its connections busy, and what both found.

use super::files::{Files, Page, WARM_UP_SECONDS};
use crate::measure::bench::Bench;
use anyhow::Result;
use serde::Deserialize;
use serde_json::{Map, Value};
use sooner_testbed::OwnedChild;
use std::process::Command;

/// Who is there.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Clients {
    #[default]
    Both,
    PageAlone,
    HogAlone,
}

impl Clients {
    /// Whether the one that keeps its connections busy is there.
    pub fn has_hog(self) -> bool {
        self != Self::PageAlone
    }

    /// Whether the one with the page is there.
    pub fn has_page(self) -> bool {
        self != Self::HogAlone
    }
}

/// So many connections, each of which always waits for a response.
pub fn hog(command: &mut Command, connections: u64) {
    command.args(["load", "closed", "--json"]);
    command.args(["--connections", &connections.to_string()]);
}

/// A page every few seconds.
pub fn page(command: &mut Command, page: &Page, files: &Files) {
    command.args(["load", "replay"]).arg(&files.trace);
    command.args(["--json", "--uplink", &format!("{}mbit", page.rate_mbit)]);
    command.args(["--rho", &page.load().to_string()]);
    command.args(["--requests-per-connection", "1000000"]);
    command.args(["--warm-up", &WARM_UP_SECONDS.to_string()]);
}

/// What those found that were there.
pub fn figures(
    bench: &Bench<'_>,
    page: Option<Result<OwnedChild>>,
    hog: Option<Result<OwnedChild>>,
) -> Result<Map<String, Value>> {
    let mut found = Map::new();
    for (name, client) in [("page", page), ("hog", hog)] {
        if let Some(client) = client {
            found.insert(name.to_owned(), bench.run_of(client?)?);
        }
    }
    Ok(found)
}
