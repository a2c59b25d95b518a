//! Whether the end of a response was sent, and what is said of it.

use super::frames::*;
use super::support::Site;
use std::collections::BTreeMap;
use std::time::Duration;

/// A client with windows that hold nothing up, which has requested `path` and reads nothing.
fn asking_for(site: &Site, path: &str) -> RawClient {
    let mut client = RawClient::connect(site.address, &[(4, 1 << 24)]);
    client.open_window(0, 1 << 24);
    client.get(1, path, &[]);
    client
}

/// Whether the response's last frame comes before the answer to a PING.
fn gets_the_end(client: &mut RawClient) -> bool {
    client.send(PING, 0, 0, b"are you?");
    let mut has_ended = false;
    loop {
        let frame = client.read().expect("the connection ended");
        has_ended |= frame.stream == 1 && frame.ends_stream();
        if frame.kind == PING {
            return has_ended;
        }
    }
}

#[test]
fn only_what_was_written_to_its_last_frame_is_completed() {
    let mut site = Site::start_with("[log]\naccess = 'FOLDER/log'");
    // Some fit into the buffers between the two sides, some do not, and of some only the end does
    // not.
    let paths: Vec<String> = (1..=60).map(|index| format!("/{index}")).collect();
    let mut clients: BTreeMap<&str, RawClient> = BTreeMap::new();
    for (path, index) in paths.iter().zip(1..) {
        site.write(&path[1..], vec![b'x'; index * 12_000]);
        clients.insert(path, asking_for(&site, path));
    }
    std::thread::sleep(Duration::from_millis(500));
    for client in clients.values_mut() {
        client.send(RST_STREAM, 0, 1, &CANCEL.to_be_bytes());
    }
    let ended: BTreeMap<&str, bool> = clients
        .iter_mut()
        .map(|(path, client)| (*path, gets_the_end(client)))
        .collect();
    drop(clients);
    let lines = site.log_lines();
    let logged: BTreeMap<&str, bool> = lines
        .iter()
        .map(|line| {
            let completed = line["completed"].as_bool().unwrap();
            (line["target"].as_str().unwrap(), completed)
        })
        .collect();
    assert_eq!(logged, ended);
    assert!(ended.values().any(|&ended| ended) && !ended.values().all(|&ended| ended));
}

#[test]
fn responses_that_are_the_last_of_their_connection_are_completed() {
    let mut site = Site::start_with("[log]\naccess = 'FOLDER/log'");
    site.write("a", vec![b'x'; 5000]);
    let mut client = asking_for(&site, "/a");
    client.send(GOAWAY, 0, 0, &[0; 8]);
    assert_eq!(client.read_responses(1), [(1, 5000)]);
    drop(client);
    let lines = site.log_lines();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["completed"], true);
}

#[test]
fn at_the_stop_a_slow_client_gets_all_that_was_written_for_it() {
    let mut site = Site::start_with("[limits]\ngrace_seconds = 60");
    let sizes = [50_000, 150_000, 250_000, 350_000, 450_000];
    let mut clients: Vec<RawClient> = Vec::new();
    for size in sizes {
        let path = format!("/{size}");
        site.write(&path[1..], vec![b'x'; size]);
        clients.push(asking_for(&site, &path));
    }
    std::thread::sleep(Duration::from_millis(200));
    site.ask_to_stop();
    // Longer than a client without a request may take to go.
    std::thread::sleep(Duration::from_secs(4));
    for (client, size) in clients.iter_mut().zip(sizes) {
        // Clients do this while they receive. If the connection were closed, its system would
        // answer by a reset.
        client.open_window(0, 1000);
        assert_eq!(client.read_responses(1), [(1, size)]);
    }
    drop(clients);
    site.stop();
}
