//! One queue, one health and one set of figures before upstreams, whichever workers requests are at.

use super::backend::Backend;
use super::{CONNECTIONS, PATIENCE, Server, ask, until};
use rustix::process::Signal;
use sooner_testbed::{OwnedChild, port, program, skip};
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Instant;

/// All paths below /app/ to an upstream with these servers and keys.
fn to(servers: &[SocketAddr], keys: &str) -> Server {
    let servers: Vec<String> = servers.iter().map(|it| format!("http://{it}")).collect();
    Server::start(&format!(
        "[[upstream]]\nname = \"app\"\nservers = {servers:?}\n{keys}\n\
         [[route]]\npath = \"/app/\"\nupstream = \"app\"\n"
    ))
}

/// Connections that have asked for one path each, and got no answer yet.
fn asked(server: &Server, paths: impl Iterator<Item = String>) -> Vec<TcpStream> {
    let ask = |path| {
        let mut stream = server.connect();
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    paths.map(ask).collect()
}

fn so_many(path: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |number| format!("/app/{path}/{number}"))
}

fn waiting(server: &Server) -> f64 {
    server.figure("sooner_upstream_waiting_requests")
}

/// Reads one answer.
fn answered(stream: &mut TcpStream) {
    super::read_answer(stream);
}

/// Many clients ask `rounds` times each, all at once.
fn flood(server: &Server, path: &str, rounds: usize) {
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (mut stream, path) = (server.connect(), path.to_owned());
            thread::spawn(move || {
                for _ in 0..rounds {
                    assert_eq!(ask(&mut stream, &path), "yes\n");
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
}

/// Each of the backend's processes has one connection, so that an idle one at one worker could hold
/// up what another one has let in.
#[test]
fn never_more_are_inside_than_the_limit_says() {
    let backend = Backend::start(2);
    let server = to(&[backend.address], "limit = 2");
    let rounds = 10;
    flood(&server, "/app/a", rounds);
    assert_eq!(backend.inside_max(), 2);
    let all = (CONNECTIONS * rounds) as f64;
    assert_eq!(backend.paths().len() as f64, all);
    assert_eq!(server.figure("sooner_upstream_requests_total"), all);
    assert_eq!(server.figure("sooner_upstream_failures_total"), 0.0);
    assert_eq!(server.figure("sooner_upstream_inside_requests"), 0.0);
    assert_eq!(waiting(&server), 0.0);
    // One after the other, from worker to worker: none waits for what another one keeps.
    let mut streams: Vec<_> = (0..CONNECTIONS).map(|_| server.connect()).collect();
    let begin = Instant::now();
    for stream in &mut streams {
        assert_eq!(ask(stream, "/app/b"), "yes\n");
    }
    assert!(begin.elapsed() < PATIENCE / 4, "{:?}", begin.elapsed());
}

#[test]
fn a_limit_that_is_found_holds_for_all() {
    let backend = Backend::start(64);
    let server = to(&[backend.address], "limit = \"auto\"\nlimit_max = 4");
    flood(&server, "/app/a", 20);
    assert!(backend.inside_max() <= 4, "{}", backend.inside_max());
    assert!(server.figure("sooner_upstream_server_requests_max") <= 4.0);
}

#[test]
fn connections_are_kept_where_there_is_room() {
    let backend = Backend::start(64);
    let server = to(&[backend.address], "limit = 64");
    let mut streams: Vec<_> = (0..CONNECTIONS).map(|_| server.connect()).collect();
    for stream in &mut streams {
        assert_eq!(ask(stream, "/app/a"), "yes\n");
    }
    // One for each worker, and one more where the end of a response was not seen in time.
    assert!(backend.connections() < 8, "{}", backend.connections());
}

#[test]
fn a_class_goes_first_whichever_worker_it_is_at() {
    let backend = Backend::start(4);
    let classes = "limit = 1\norder = \"fifo\"\n\
                   [[class]]\nname = \"gold\"\npriority = 1\npath = [\"/app/gold/*\"]\n\
                   [[class]]\nname = \"rest\"\npriority = 5\n";
    let server = to(&[backend.address], classes);
    let mut all = asked(&server, so_many("held", 1));
    until("it is inside", || backend.inside() == 1);
    let count = 15;
    for (path, waits) in [("rest", count), ("gold", 2 * count)] {
        all.extend(asked(&server, so_many(path, count)));
        until("they wait", || waiting(&server) == waits as f64);
    }
    backend.let_go();
    all.iter_mut().for_each(answered);
    let paths = backend.paths();
    let is_gold: Vec<bool> = paths.iter().map(|path| path.contains("gold")).collect();
    assert!(is_gold[1..=count].iter().all(|it| *it), "{paths:?}");
    assert_eq!(paths.len(), 2 * count + 1);
    assert_eq!(backend.inside_max(), 1);
}

#[test]
fn a_server_that_is_out_is_out_for_all() {
    let backend = Backend::start(64);
    let dead = port::free().unwrap();
    let server = to(&[dead, backend.address], "fails = 1");
    let mut streams: Vec<_> = (0..CONNECTIONS).map(|_| server.connect()).collect();
    let begin = Instant::now();
    for stream in &mut streams {
        assert_eq!(ask(stream, "/app/a"), "yes\n");
    }
    // Once at first, and once more after each time out.
    let most = 1 + begin.elapsed().as_secs();
    let failures = server.figure("sooner_upstream_failures_total");
    assert!((1.0..=most as f64).contains(&failures), "{failures}");
    assert_eq!(server.figure("sooner_upstream_up"), 1.0);
}

/// Checks are asked by one worker only.
#[test]
fn a_check_holds_for_all() {
    let backend = Backend::start(64);
    let dead = port::free().unwrap();
    let health = "health = { path = \"/health\", seconds = 0.1, fails = 1 }";
    let server = to(&[dead, backend.address], health);
    until("it is out", || server.figure("sooner_upstream_up") == 1.0);
    let before = backend.paths().len();
    let begin = Instant::now();
    let mut streams: Vec<_> = (0..CONNECTIONS).map(|_| server.connect()).collect();
    for stream in &mut streams {
        assert_eq!(ask(stream, "/app/a"), "yes\n");
    }
    assert_eq!(server.figure("sooner_upstream_failures_total"), 0.0);
    until("they are asked on", || {
        backend.paths().len() > before + CONNECTIONS + 2
    });
    let checks = backend.paths().len() - before - CONNECTIONS;
    let most = begin.elapsed().as_millis() / 100 + 2;
    assert!(checks as u128 <= most, "{checks} checks, {most} at most");
}

#[test]
fn who_waits_waits_on_through_a_reload() {
    let backend = Backend::start(64);
    let server = to(&[backend.address], "limit = 1");
    let mut all = asked(&server, so_many("held", CONNECTIONS));
    let others = (CONNECTIONS - 1) as f64;
    until("they wait", || waiting(&server) == others);
    let file = server.path("sooner.toml");
    let text = fs::read_to_string(&file).unwrap();
    for (limit, loads) in [(1, 2.0), (3, 3.0), (2, 4.0)] {
        let changed = text.replace("limit = 1", &format!("limit = {limit}\nretries = {limit}"));
        fs::write(&file, changed).unwrap();
        server.send(Signal::HUP);
        until("it was read", || {
            server.figure("sooner_config_loads_total") == loads
        });
        let most = limit.max(backend.inside());
        until("as many are inside", || backend.inside() == most);
        assert_eq!(waiting(&server), (CONNECTIONS - most) as f64);
    }
    assert_eq!(backend.inside_max(), 3);
    backend.let_go();
    all.iter_mut().for_each(answered);
    let total = server.figure("sooner_upstream_requests_total");
    assert_eq!(total, CONNECTIONS as f64);
    assert_eq!(backend.inside_max(), 3);
}

#[test]
fn who_leaves_while_it_waits_frees_its_place() {
    let backend = Backend::start(64);
    let server = to(&[backend.address], "limit = 1\nwaiting_max = 10");
    let mut inside = asked(&server, so_many("held", 1));
    until("it is inside", || backend.inside() == 1);
    for _ in 0..3 {
        let leaving = asked(&server, so_many("held", 10));
        until("they wait", || waiting(&server) == 10.0);
        drop(leaving);
        until("they have left", || waiting(&server) == 0.0);
    }
    let mut last = asked(&server, so_many("last", 10));
    until("they wait", || waiting(&server) == 10.0);
    backend.let_go();
    inside.iter_mut().for_each(answered);
    last.iter_mut().for_each(answered);
    assert_eq!(backend.paths().len(), 11);
}

/// Apache, of which each of two processes serves one connection until that ends.
fn apache(folder: &std::path::Path, address: SocketAddr) -> OwnedChild {
    let config = folder.join("apache.conf");
    fs::write(folder.join("a"), "yes\n").unwrap();
    let folder = folder.display();
    let text = format!(
        "ServerRoot {folder}\nServerName localhost\nListen {address}\nPidFile {folder}/pid\n\
         DefaultRuntimeDir {folder}\nErrorLog {folder}/error\nMutex file:{folder}\n\
         LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so\n\
         LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n\
         ServerLimit 2\nMaxRequestWorkers 2\nStartServers 2\n\
         KeepAlive On\nKeepAliveTimeout 300\nMaxKeepAliveRequests 0\n\
         DocumentRoot {folder}\n<Directory {folder}>\nRequire all granted\n</Directory>\n"
    );
    fs::write(&config, text).unwrap();
    let mut command = Command::new("/usr/sbin/apache2");
    command.arg("-f").arg(&config).arg("-DFOREGROUND");
    let child = OwnedChild::spawn(&mut command).unwrap();
    until("Apache listens", || TcpStream::connect(address).is_ok());
    child
}

#[test]
fn no_idle_connection_holds_a_process_of_apache_that_another_worker_needs() {
    let test = "no_idle_connection_holds_a_process_of_apache_that_another_worker_needs";
    let is_there = fs::exists("/usr/lib/apache2/modules/mod_mpm_prefork.so").unwrap_or(false);
    if !is_there || program::missing(&["apache2"]) {
        return skip(test, "needs apache2");
    }
    let folder = tempfile::tempdir().unwrap();
    let address = port::free().unwrap();
    let _apache = apache(folder.path(), address);
    let keys = "limit = 2\nresponse_seconds = 10";
    let server = Server::start(&format!(
        "[[upstream]]\nname = \"app\"\nservers = [\"http://{address}\"]\n{keys}\n\
         [[route]]\npath = \"/app/\"\nupstream = \"app\"\nstrip_prefix = true\n"
    ));
    for _ in 0..3 {
        let mut streams: Vec<_> = (0..CONNECTIONS).map(|_| server.connect()).collect();
        for stream in &mut streams {
            assert_eq!(ask(stream, "/app/a"), "yes\n");
        }
        flood(&server, "/app/a", 10);
    }
    assert_eq!(server.figure("sooner_upstream_failures_total"), 0.0);
}
