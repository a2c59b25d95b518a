//! Names of servers in an experiment: whatever is accepted reads back as the same server.

use sooner_lab::peers::Peer;

/// Tries one input.
pub fn run(text: &str) {
    if let Ok(peer) = text.parse::<Peer>() {
        assert_eq!(peer.to_string().parse::<Peer>().as_ref(), Ok(&peer));
    }
}
