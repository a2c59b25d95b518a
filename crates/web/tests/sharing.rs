//! Who received least of late goes first on a busy link: fifty downloads of one client beside the
//! page of another with files as large. No times: only which ended before which.

use crate::http2::frames::RawClient;
use crate::site::{CHUNK_BYTES, PATIENCE, Site, rooted};
use sooner_uplink::{Mechanism, Uplink, UplinkConfig};
use sooner_web::config::Config;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::channel;
use std::thread::scope;

const RATE_BITS_PER_SEC: u64 = 20_000_000;
/// A fiftieth of a second of the link.
const FILE_BYTES: usize = 50_000;
const DOWNLOADS: usize = 50;
/// Fewer than the other client has had before.
const PAGE_FILES: usize = 10;
const DOWNLOADS_BEFORE: usize = 20;
const HOG: &str = "127.0.0.2";
const PAGE: &str = "127.0.0.1";

/// A site with a link that is soon busy, and keys of its table `[uplink]`.
fn site(keys: &str) -> Site {
    let config = format!(
        "[uplink]\nrate = \"20mbit\"\n{keys}\n[log]\naccess = 'FOLDER/log'\n\
         [proxy]\ntrusted = [\"127.0.0.1\"]"
    );
    let site = Site::run(&rooted(&config), CHUNK_BYTES, |config: &Config| {
        let mut uplink = UplinkConfig::new(RATE_BITS_PER_SEC, config.uplink.policy());
        uplink.mechanism = Mechanism::UserSpace;
        uplink.by_client = config.uplink.is_by_client();
        Uplink::start(&uplink).unwrap()
    });
    site.write("hog.bin", vec![b'h'; FILE_BYTES]);
    site.write("page.bin", vec![b'p'; FILE_BYTES]);
    site
}

/// A connection from `source` to the server.
fn connect(source: &str, server: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let connected = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket
            .bind(SocketAddr::new(source.parse().unwrap(), 0))
            .unwrap();
        socket.connect(server).await.unwrap().into_std().unwrap()
    });
    connected.set_nonblocking(false).unwrap();
    connected.set_read_timeout(Some(PATIENCE)).unwrap();
    connected
}

fn request(connection: &mut TcpStream, path: &str) {
    let text = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    connection.write_all(text.as_bytes()).unwrap();
}

fn read_all(connection: &mut TcpStream) {
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).unwrap();
    assert!(answer.len() > FILE_BYTES);
}

/// Who ended before whom, as the log has it: the initials of their files.
fn order(site: &mut Site) -> String {
    let lines = site.log_lines();
    assert_eq!(lines.len(), DOWNLOADS + PAGE_FILES);
    let targets = lines.iter().map(|line| line["target"].as_str().unwrap());
    targets.map(|target| &target[1..2]).collect()
}

/// A page on ten connections, while its other client is in the midst of its downloads on fifty.
fn on_many_connections(keys: &str) -> String {
    let mut site = site(keys);
    let server = site.address;
    let mut page: Vec<_> = (0..PAGE_FILES).map(|_| connect(PAGE, server)).collect();
    let (tell_done, done) = channel();
    scope(|scope| {
        for _ in 0..DOWNLOADS {
            let mut connection = connect(HOG, server);
            request(&mut connection, "/hog.bin");
            let tell_done = tell_done.clone();
            scope.spawn(move || {
                read_all(&mut connection);
                tell_done.send(()).unwrap();
            });
        }
        done.iter().take(DOWNLOADS_BEFORE).for_each(drop);
        for connection in &mut page {
            request(connection, "/page.bin");
        }
        page.iter_mut().for_each(read_all);
    });
    order(&mut site)
}

/// The page's files came before all downloads but those that the guard ends meanwhile.
fn assert_page_goes_first(order: &str) {
    let (before, from_first) = order.split_at(order.find('p').unwrap());
    let (page, after) = from_first.split_at(from_first.rfind('p').unwrap() + 1);
    let among = page.matches('h').count();
    assert!(before.len() >= DOWNLOADS_BEFORE && among <= 3, "{order}");
    assert!(after.len() >= 10, "{order}");
}

#[test]
fn a_page_goes_before_downloads_that_began_earlier() {
    for policy in ["srpt", "fcfs"] {
        let keys = format!("policy = \"{policy}\"\nshare_by = \"client\"");
        assert_page_goes_first(&on_many_connections(&keys));
    }
    // Without that it waits for all of them.
    let order = on_many_connections("policy = \"fcfs\"");
    assert!(order.ends_with("pppp"), "{order}");
}

#[test]
fn a_page_goes_before_many_streams_of_one_connection() {
    let mut site = site("policy = \"fcfs\"\nshare_by = \"client\"");
    let server = site.address;
    let mut page: Vec<_> = (0..PAGE_FILES).map(|_| connect(PAGE, server)).collect();
    let mut hog = RawClient::over(connect(HOG, server), &[(4, 1 << 24)]);
    hog.open_window(0, 1 << 24);
    for number in 0..DOWNLOADS as u32 {
        hog.get(2 * number + 1, "/hog.bin", &[]);
    }
    hog.read_responses(DOWNLOADS_BEFORE);
    for connection in &mut page {
        request(connection, "/page.bin");
    }
    hog.read_responses(DOWNLOADS - DOWNLOADS_BEFORE);
    page.iter_mut().for_each(read_all);
    drop(hog);
    assert_page_goes_first(&order(&mut site));
}

#[test]
fn clients_behind_a_trusted_proxy_are_told_apart() {
    let mut site = site("policy = \"fcfs\"\nshare_by = \"client\"");
    let mut proxy = RawClient::connect(site.address, &[(4, 1 << 24)]);
    proxy.open_window(0, 1 << 24);
    let mut streams = (1..).step_by(2);
    for stream in streams.by_ref().take(DOWNLOADS) {
        proxy.get(stream, "/hog.bin", &[("x-forwarded-for", "192.0.2.2")]);
    }
    proxy.read_responses(DOWNLOADS_BEFORE);
    for stream in streams.take(PAGE_FILES) {
        proxy.get(stream, "/page.bin", &[("x-forwarded-for", "198.51.100.1")]);
    }
    proxy.read_responses(DOWNLOADS - DOWNLOADS_BEFORE + PAGE_FILES);
    drop(proxy);
    assert_page_goes_first(&order(&mut site));
}
