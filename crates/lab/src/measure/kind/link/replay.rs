//! Traces replayed side by side.

use super::super::{Keys, Kind, keys_of};
use super::PeerKeys;
use crate::experiment::{Setup, SetupTable};
use crate::measure::bench::Bench;
use crate::measure::rows::slim;
use crate::measure::{Measure, Record};
use crate::peers::Peer;
use crate::run::served_files;
use crate::run::stand::Stand;
use anyhow::{Result, anyhow};
use serde::Deserialize;
use serde_json::{Map, Value};
use sooner_testbed::scratch::Scratch;

/// `replay`: a trace against servers that stand side by side, each on a link of its own, with the
/// very same arrivals.
#[derive(Debug)]
pub struct Replay {
    ways: Vec<PeerKeys>,
    setups: Vec<Setup>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplayKeys {
    setup: SetupTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplayCase {
    #[serde(default)]
    setup: SetupTable,
}

impl Replay {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        let (all, cases): (ReplayKeys, Vec<ReplayCase>) = (keys.own()?, keys.cases()?);
        let ways: Vec<PeerKeys> = keys.ways()?;
        PeerKeys::check(&ways)?;
        let peers: Vec<String> = ways.iter().map(|way| way.peer.clone()).collect();
        let setups = cases.into_iter().map(|case| {
            let setup = case.setup.over(&all.setup).with_peers(peers.clone());
            setup
                .complete()
                .map_err(|error| (error.key.to_owned(), error.to_string()))
        });
        Ok(Box::new(Self {
            setups: setups.collect::<Result<_, _>>()?,
            ways,
        }))
    }

    /// One run of each server, all at the same time.
    async fn side_by_side(
        &self,
        bench: &Bench<'_>,
        setup: &Setup,
        root: &Scratch,
        seed: u64,
    ) -> Result<Vec<Value>> {
        let mut stands = Vec::new();
        for way in &self.ways {
            let peer: Peer = way.peer.parse()?;
            let tag = format!("m{}", bench.number());
            stands.push(Stand::up(
                setup,
                &peer,
                &tag,
                seed,
                root.path(),
                bench.program,
            )?);
        }
        let samples = bench.scratch().join("samples");
        let loads = stands.iter().zip(&self.ways);
        let loads = loads.map(|(stand, way)| stand.load(setup, &way.peer, seed, &samples));
        let mut runs = Vec::new();
        for load in loads.collect::<Result<Vec<_>>>()? {
            runs.push(slim(load.run(setup).await?));
        }
        Ok(runs)
    }
}

impl Kind for Replay {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        for case in bench.cases(measure) {
            let mut setup = keys_of(measure.place_of_case(&case), &self.setups)?.clone();
            if bench.is_quick {
                setup.seconds = 10;
                setup.warm_up_seconds = 1;
                setup.drain_seconds = setup.drain_seconds.min(10);
            }
            let root = served_files(&setup.trace)?;
            for turn in 0..bench.turns(measure) {
                bench.tell(&format!("{}, seed {}", case.id, turn + 1));
                let seed = u64::from(turn) + 1;
                bench.until_undisturbed(
                    || {
                        let runs =
                            bench.block_on_work(self.side_by_side(bench, &setup, &root, seed))?;
                        Ok(Map::from_iter([("runs".to_owned(), Value::Array(runs))]))
                    },
                    |mut figures, attempt| {
                        let Some(Value::Array(runs)) = figures.remove("runs") else {
                            return Err(anyhow!("no runs"));
                        };
                        for (way, run) in measure.listed_ways().iter().zip(runs) {
                            let own = Map::from_iter([
                                ("run".to_owned(), run),
                                ("quick".to_owned(), bench.is_quick.into()),
                            ]);
                            record.add(measure.row(&case, way, turn, own, attempt))?;
                        }
                        Ok(())
                    },
                )?;
            }
        }
        Ok(())
    }
}
