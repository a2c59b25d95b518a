//! Who goes first on a link that is busy. No times: only who ended before whom.

use super::frames::*;
use super::support::Site;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Windows that hold no stream up.
fn connect(site: &Site) -> RawClient {
    let mut client = RawClient::connect(site.address, &[(4, 1 << 24)]);
    client.open_window(0, 1 << 24);
    client
}

/// The streams in the order in which they ended.
fn order(client: &mut RawClient, count: usize) -> Vec<u32> {
    let ended = client.read_responses(count);
    ended.into_iter().map(|(stream, _)| stream).collect()
}

#[test]
fn small_responses_overtake_large_ones_on_the_same_connection() {
    let site = Site::start_ordered();
    site.write("large.html", vec![0; 400_000]);
    site.write("middle.html", vec![0; 100_000]);
    site.write("small.html", vec![0; 5_000]);
    let mut client = connect(&site);
    client.get(1, "/large.html", &[]);
    client.get(3, "/middle.html", &[]);
    client.get(5, "/small.html", &[]);
    assert_eq!(order(&mut client, 3), [5, 3, 1]);
}

#[test]
fn small_responses_overtake_large_ones_on_other_connections() {
    let site = Site::start_ordered();
    site.write("large.html", vec![0; 1_000_000]);
    site.write("small.html", vec![0; 5_000]);
    let mut busy = connect(&site);
    for stream in [1, 3, 5, 7] {
        busy.get(stream, "/large.html", &[]);
    }
    busy.read_until(DATA);
    let mut other = connect(&site);
    other.get(1, "/small.html", &[]);
    assert_eq!(other.read_responses(1), [(1, 5_000)]);
    let site = &site;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..3 {
                let mut client = connect(site);
                client.get(1, "/small.html", &[]);
                client.read_responses(1);
            }
        });
    });
    assert_eq!(busy.read_responses(4).len(), 4, "after all those");
}

#[test]
fn urgency_counts_before_size() {
    let site = Site::start_ordered();
    site.write("large.html", vec![0; 200_000]);
    site.write("small.html", vec![0; 50_000]);
    let mut client = connect(&site);
    client.get(1, "/small.html", &[("priority", "u=5")]);
    client.get(3, "/small.html", &[]);
    client.get(5, "/large.html", &[("priority", "u=1")]);
    assert_eq!(order(&mut client, 3), [5, 3, 1]);
}

#[test]
fn a_navigation_to_a_download_does_not_go_before_pages() {
    let site = Site::start_ordered();
    site.write("image.iso", vec![0; 500_000]);
    site.write("page.html", vec![b' '; 20_000]);
    let mut client = connect(&site);
    client.get(1, "/image.iso", &[("priority", "u=0, i")]);
    client.get(3, "/page.html", &[]);
    assert_eq!(order(&mut client, 2), [3, 1]);
}

#[test]
fn responses_that_are_not_incremental_come_as_they_were_requested() {
    let site = Site::start_ordered();
    site.write("large.html", vec![0; 200_000]);
    site.write("small.html", vec![0; 50_000]);
    let mut client = connect(&site);
    client.get(1, "/large.html", &[("priority", "u=3")]);
    client.get(3, "/small.html", &[("priority", "u=3")]);
    assert_eq!(order(&mut client, 2), [1, 3]);
}

#[test]
fn by_size_where_the_operator_prefers_it() {
    let site = Site::start_ordered_with("streams = \"size\"\n");
    site.write("large.html", vec![0; 200_000]);
    site.write("small.html", vec![0; 50_000]);
    let mut client = connect(&site);
    client.get(1, "/large.html", &[("priority", "u=3")]);
    client.get(3, "/small.html", &[("priority", "u=3")]);
    assert_eq!(order(&mut client, 2), [3, 1]);
}

#[test]
fn incremental_responses_share() {
    let site = Site::start_ordered();
    site.write("picture.png", vec![0; 100_000]);
    let mut client = connect(&site);
    for stream in [1, 3] {
        client.get(stream, "/picture.png", &[("priority", "u=3, i")]);
    }
    let mut got = [0_usize; 2];
    while got.iter().sum::<usize>() < 200_000 {
        let frame = client.read_until(DATA);
        got[(frame.stream / 2) as usize] += frame.payload.len();
        let ahead = got[0].abs_diff(got[1]);
        // The first had the link alone before the second was requested.
        assert!(ahead <= 2 * (16 << 10), "{got:?}");
    }
}

#[test]
fn a_client_may_change_its_mind() {
    let site = Site::start_ordered();
    site.write("picture.png", vec![0; 300_000]);
    let mut client = connect(&site);
    for stream in [1, 3, 5] {
        client.get(stream, "/picture.png", &[("priority", "u=4")]);
    }
    client.read_until(DATA);
    client.update_priority(5, "u=0");
    assert_eq!(order(&mut client, 3), [5, 1, 3]);
}

#[test]
fn a_priority_may_come_before_its_request() {
    let site = Site::start_ordered();
    site.write("picture.png", vec![0; 200_000]);
    let mut client = connect(&site);
    client.update_priority(3, "u=0");
    client.get(1, "/picture.png", &[("priority", "u=4")]);
    client.get(3, "/picture.png", &[("priority", "u=5")]);
    assert_eq!(order(&mut client, 2), [3, 1]);
}

#[test]
fn text_comes_before_pictures_also_where_it_is_longer() {
    let site = Site::start_ordered();
    site.write("style.css", vec![b' '; 100_000]);
    site.write("picture.png", vec![0; 60_000]);
    let mut client = connect(&site);
    for stream in [1, 3, 5] {
        client.get(stream, "/picture.png", &[("referer", "http://x/")]);
    }
    client.get(7, "/style.css", &[("referer", "http://x/")]);
    assert_eq!(order(&mut client, 4)[0], 7);
}

#[test]
fn a_tool_gets_pure_size_order() {
    let site = Site::start_ordered();
    site.write("style.css", vec![b' '; 200_000]);
    site.write("picture.png", vec![0; 100_000]);
    let mut client = connect(&site);
    client.get(1, "/style.css", &[]);
    client.get(3, "/picture.png", &[]);
    assert_eq!(order(&mut client, 2), [3, 1]);
}

/// Asks for `path` on many streams at once, each with a claim of urgency 0.
fn greedy(site: &Site, path: &str) -> RawClient {
    let mut client = connect(site);
    for stream in (1..240).step_by(2) {
        client.get(stream, path, &[("priority", "u=0")]);
    }
    client.read_until(DATA);
    client
}

/// Reads what has come for the greedy one: none of its responses is over, and it is not done.
fn assert_not_done(greedy: &mut RawClient) {
    for _ in 0..10 {
        assert!(!greedy.read().unwrap().ends_stream());
    }
}

#[test]
fn what_a_client_claims_orders_no_other_clients_responses() {
    let site = Site::start_ordered();
    site.write("large.html", vec![0; 3_000_000]);
    site.write("small.bin", vec![0; 10_000]);
    let mut greedy = greedy(&site, "/large.html");
    greedy.update_priority(1, "u=0, i");
    for (stream, fields) in [
        (1, &[][..]),
        (3, &[("priority", "u=7")]),
        (5, &[("priority", "u=7, i"), ("referer", "http://x/")]),
    ] {
        let mut modest = connect(&site);
        modest.get(stream, "/small.bin", fields);
        assert_eq!(modest.read_responses(1), [(stream, 10_000)]);
    }
    assert_not_done(&mut greedy);
}

#[test]
fn what_a_client_claims_orders_no_responses_over_http_1() {
    let site = Site::start_ordered();
    site.write("large.html", vec![0; 3_000_000]);
    site.write("small.html", vec![0; 10_000]);
    let mut greedy = greedy(&site, "/large.html");
    let mut stream = TcpStream::connect(site.address).unwrap();
    let request =
        "GET /small.html HTTP/1.1\r\nhost: localhost\r\npriority: u=7\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.len() > 10_000);
    assert_not_done(&mut greedy);
}
