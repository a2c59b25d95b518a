//! Scripts that fetch over a link.

use super::super::{Keys, Kind, keys_of, page};
use super::{PeerKeys, PeerSpec, Site};
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// `script`: a script of Node that fetches, on the clients' host.
#[derive(Debug)]
pub struct Script {
    keys: ScriptKeys,
    ways: Vec<PeerKeys>,
    cases: Vec<ScriptCase>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptKeys {
    /// In the experiment's folder.
    script: String,
    programs: Vec<String>,
    rate_mbit: u64,
    #[serde(default)]
    tls: bool,
    /// The field of what the script prints, as JSON.
    result: String,
    /// Files to fetch, of so many kilobytes each.
    #[serde(default)]
    files_kb: Vec<usize>,
    /// Whether a page with text and pictures is visited instead.
    #[serde(default)]
    page: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptCase {
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    tls: bool,
}

/// After so long a new link has its last address (IPv6's): Chromium gives up what it loads when one
/// appears.
const SETTLED: Duration = Duration::from_secs(4);

impl Script {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        let script = Self {
            keys: keys.own()?,
            ways: keys.ways()?,
            cases: keys.cases()?,
        };
        PeerKeys::check(&script.ways)?;
        Ok(Box::new(script))
    }

    /// The files that are served, and the arguments of the script behind those of the case.
    fn files(
        &self,
        bench: &Bench<'_>,
        origin: &str,
        case: &ScriptCase,
    ) -> Result<(PathBuf, Vec<String>)> {
        let root = bench.folder("root")?;
        if self.keys.page {
            page::write(&root)?;
            let profile = bench.folder("profile")?.display().to_string();
            return Ok((root, vec![format!("{origin}/index.html"), profile]));
        }
        let mut words = vec![origin.to_owned()];
        words.extend(case.arguments.iter().cloned());
        for (nth, kb) in self.keys.files_kb.iter().enumerate() {
            let name = format!("{nth}-{kb}k.bin");
            fs::write(root.join(&name), vec![b'x'; kb * 1_000])?;
            words.push(format!("/{name}"));
        }
        Ok((root, words))
    }
}

impl Kind for Script {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let programs: Vec<&str> = self.keys.programs.iter().map(String::as_str).collect();
        bench.need(&programs)?;
        bench.by_turns(measure, record, |case, way, _| {
            let case = keys_of(measure.place_of_case(case), &self.cases)?;
            let way = keys_of(measure.place_of_way(way), &self.ways)?;
            let is_tls = self.keys.tls || case.tls;
            let (root, words) = self.files(bench, &Site::origin(is_tls), case)?;
            let spec = PeerSpec {
                peer: &way.name(bench)?,
                rate_mbit: self.keys.rate_mbit,
                is_tls,
            };
            let site = Site::start(bench, &spec, &root)?;
            if self.keys.page {
                bench.pause(SETTLED)?;
            }
            let mut node = site.hosts.on_client("node");
            node.arg(bench.experiment.folder.join(&self.keys.script))
                .args(words);
            let printed: Value =
                serde_json::from_str(&bench.output(node)?).context("the script printed no JSON")?;
            Ok(Map::from_iter([(self.keys.result.clone(), printed)]))
        })
    }
}
