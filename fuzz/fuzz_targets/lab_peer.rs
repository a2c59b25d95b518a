//! Names of servers in an experiment: whatever is accepted reads back as the same server.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sooner_lab::peers::Peer;

fuzz_target!(|text: &str| {
    if let Ok(peer) = text.parse::<Peer>() {
        assert_eq!(peer.to_string().parse::<Peer>().as_ref(), Ok(&peer));
    }
});
