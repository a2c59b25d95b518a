//! The experiments that ship can be run: every file reads, every server's name is one, every row is
//! requested once.

use sooner_lab::experiment;
use sooner_lab::peers::Peer;
use sooner_report::experiment::Figure;
use std::path::Path;

#[test]
fn all_experiments_read_and_name_servers_that_exist() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let all = experiment::all(&folder).unwrap_or_else(|error| panic!("{error}"));
    assert!(all.len() >= 8, "{}", all.len());
    for experiment in &all {
        assert!(!experiment.claims.is_empty(), "{}", experiment.name);
        let places = experiment.cases.iter().filter(|case| case.at.is_some());
        assert!(
            !experiment.plots.contains(&Figure::Range) || places.count() >= 2,
            "{}: a range without places draws nothing",
            experiment.name
        );
        for case in &experiment.cases {
            let peers = &case.setup.peers;
            for peer in peers {
                peer.parse::<Peer>()
                    .unwrap_or_else(|error| panic!("{}: {error}", experiment.name));
            }
            assert!(
                peers.contains(&experiment.baseline),
                "{}, {}",
                experiment.name,
                case.name
            );
        }
    }
}
