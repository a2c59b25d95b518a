//! What /proc says of sockets, counters and processes: any text is read, and no port has more
//! sockets than there are lines.

use sooner_lab::counters::{
    Connections, resident_bytes_of, schedstat, stat, table, tcp_counters, time_wait,
};

/// Tries one input.
pub fn run(text: &str) {
    let sockets = table(text, 8080);
    assert!(sockets.len() <= text.lines().count());
    let connections = Connections::of(sockets);
    assert!(connections.established <= connections.open);
    let counters = tcp_counters(text, text);
    let same = counters;
    assert_eq!(counters - same, Default::default());
    let _ = (
        stat(text),
        resident_bytes_of(text),
        time_wait(text),
        schedstat(text),
    );
}
