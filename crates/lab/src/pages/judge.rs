//! How every claim of an experiment stands, from the runs that were kept. Only valid runs can prove
//! or refute anything.

use crate::experiment::{Case, Claim, Experiment};
use crate::run::store::Store;
use sooner_report::experiment as report;
use sooner_stats::summary::Spread;

/// All claims, each in every case it is made for; without a store nothing is measured.
pub fn claims(experiment: &Experiment, store: Option<&Store>) -> Vec<report::Claim> {
    let claims = experiment.claims.iter().map(|claim| {
        let cases = experiment.cases.iter();
        let cases = cases.filter(|case| claim.is_for(&case.name));
        report::Claim {
            text: claim.text.clone(),
            limit: claim.limit(),
            standings: cases.map(|case| standing(claim, case, store)).collect(),
        }
    });
    claims.collect()
}

fn standing(claim: &Claim, case: &Case, store: Option<&Store>) -> report::Standing {
    let seeds = &case.setup.seeds;
    let judged = store.and_then(|store| {
        claim.judge(seeds, |peer, seed, pointer| {
            store.figure(case, seed, peer, pointer)
        })
    });
    let count = judged.as_ref().map_or(0, |judged| judged.count);
    report::Standing {
        case: store.map_or(case.name.clone(), |store| store.shown_name(case)),
        value: judged.as_ref().map(|judged| Spread {
            median: judged.value,
            min: judged.range.0,
            max: judged.range.1,
            n: judged.count as u64,
        }),
        holds: judged.is_some_and(|judged| judged.holds),
        is_thin: count < seeds.len() || count < 2,
    }
}
