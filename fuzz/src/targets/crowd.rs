//! A crowd that was read is written so that it reads the same, and is a share of the requests.

use sooner_workload::Crowd;

/// Tries one input.
pub fn run(text: &str) {
    let Ok(crowd) = text.parse::<Crowd>() else {
        return;
    };
    assert_eq!(crowd.to_string().parse::<Crowd>(), Ok(crowd));
    assert!(crowd.share() > 0.0 && crowd.share() <= 1.0, "{crowd}");
}
