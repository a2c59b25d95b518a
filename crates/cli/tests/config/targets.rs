//! `sooner serve --check --observe` beside a server that runs before a backend of a test.

use super::place::{ConfigFolder, Server};
use serde_json::Value;
use sooner_testbed::port;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Answers every request after 10 ms, on any number of connections.
fn backend() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                while read_head(&mut stream) {
                    thread::sleep(Duration::from_millis(10));
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    if stream.write_all(answer).is_err() {
                        break;
                    }
                }
            });
        }
    });
    address
}

/// Whether there was another head; no body comes here.
fn read_head(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return false,
        }
    }
    true
}

/// Two classes before an upstream with two places, and another upstream without targets.
fn config(backend: SocketAddr, admin: SocketAddr, (high, low): (&str, &str)) -> String {
    let classes = format!(
        "[[class]]\nname = \"high\"\npriority = 1\npath = [\"/high*\"]\ntarget = {{ {high} }}\n\
         [[class]]\nname = \"low\"\nupstream = [\"app\"]\ntarget = {{ {low} }}\n"
    );
    let classes = classes.replace("target = {  }\n", "");
    format!(
        "listen = [\"127.0.0.1:0\"]\nadmin = {{ listen = \"{admin}\" }}\n\
         [[upstream]]\nname = \"app\"\nservers = [\"http://{backend}\"]\nlimit = 2\n\
         [[route]]\npath = \"/\"\nupstream = \"app\"\n{classes}"
    )
}

/// Six clients of each class ask for as long as `check` takes.
fn under_load(server: &Server, check: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for path in ["/high", "/low"].repeat(6) {
            let is_over = &is_over;
            scope.spawn(move || {
                let mut stream = TcpStream::connect(&server.address).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    let request = format!("GET {path} HTTP/1.1\r\nhost: h\r\n\r\n");
                    stream.write_all(request.as_bytes()).unwrap();
                    assert!(read_head(&mut stream), "an answer");
                }
            });
        }
        // A check that fails ends the clients as well.
        let over = Over(&is_over);
        check();
        drop(over);
    });
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Checks `text` beside the server that runs; the code, standard output and standard error.
fn check(place: &ConfigFolder, text: &str, flags: &[&str]) -> (Option<i32>, String, String) {
    let running = std::fs::read_to_string(place.file()).unwrap();
    place.write(text);
    let checked = place.check_with(flags);
    place.write(&running);
    checked
}

/// The one line that refuses.
fn refusal(checked: (Option<i32>, String, String)) -> String {
    let (code, output, said) = checked;
    assert_eq!((code, output.as_str()), (Some(2), ""), "{said}");
    let line = said.lines().last().unwrap_or_default().to_owned();
    let others = said.lines().filter(|line| !line.contains(" watching "));
    assert_eq!(others.count(), 1, "{said}");
    line
}

#[test]
fn targets_are_held_against_what_a_server_sees() {
    let (backend, admin) = (backend(), port::free().unwrap());
    let of = |high, low| config(backend, admin, (high, low));
    let place = ConfigFolder::new(&of("", ""));
    // A mean under an order that looks at lengths would be another one.
    let fifo = of("", "").replace("limit = 2", "limit = 2\norder = \"fifo\"");
    place.write(&fifo);
    let server = place.start(&[]);
    let watch = ["--observe", "1s"];
    let nothing = refusal(check(&place, &of("mean = \"1s\"", ""), &watch));
    assert!(
        nothing.contains("no request arrived within 1 s"),
        "{nothing}"
    );
    under_load(&server, || {
        let json = ["--observe", "2", "--json"];
        let report = |checked: &(Option<i32>, String, String)| -> Value {
            serde_json::from_str(&checked.1).unwrap_or_else(|_| panic!("{checked:?}"))
        };
        // Twelve clients, two at a time, 10 ms each: 60 ms in the mean.
        let loose = check(&place, &of("mean = \"300ms\"", "p95 = \"1500ms\""), &json);
        assert_eq!(report(&loose)["verdict"], "FEASIBLE", "{loose:?}");
        assert_eq!(loose.0, Some(0));
        let tight = check(&place, &of("mean = \"15ms\"", "mean = \"16ms\""), &json);
        let tight_report = report(&tight);
        let upstream = &tight_report["upstreams"][0];
        assert_eq!(
            (tight.0, &upstream["verdict"], &upstream["upstream"]),
            (Some(1), &"NOT FEASIBLE".into(), &"app".into())
        );
        assert!(upstream["relax_all_by"].as_f64() > Some(2.0), "{upstream}");
        let classes = &upstream["classes"];
        assert!(classes[0]["requests"].as_u64() > Some(10), "{classes}");
        assert!(
            classes[1]["relaxed_mean_ms"].as_f64() > Some(16.0),
            "{classes}"
        );
        let (code, words, _) = check(&place, &of("mean = \"1ms\"", ""), &watch);
        let file = place.file().display().to_string();
        for line in [
            "upstream app\n",
            &format!("{file}:14: class.target.mean: high: 1.00 ms cannot be met: a job takes"),
            "in the server; lower upstream.limit, or give a longer target",
            "NOT FEASIBLE: high takes longer in the server than its target allows; ",
        ] {
            assert!(words.contains(line), "{line}: {words}");
        }
        assert_eq!(code, Some(1));
    });
    server.stop();
}

#[test]
fn what_cannot_be_watched_is_one_line() {
    let (backend, admin) = (backend(), port::free().unwrap());
    let wanted = config(backend, admin, ("mean = \"1s\"", ""));
    let place = ConfigFolder::new(&wanted);
    let watch = |text: &str| refusal(check(&place, text, &["--observe", "1"]));
    let unreachable = watch(&wanted);
    assert!(
        unreachable.contains(&format!("the admin address {admin} gives no status"))
            && unreachable.contains("Connection refused")
            && unreachable.contains("--admin"),
        "{unreachable}"
    );
    let nowhere = watch(&wanted.replace("admin = ", "# "));
    assert!(nowhere.contains("sooner.toml: admin.listen: "), "{nowhere}");
    let no_target = watch(&config(backend, admin, ("", "")));
    assert!(
        no_target.contains("sooner.toml: class.target: no class before an upstream has a target"),
        "{no_target}"
    );
    let server = place.start(&[]);
    let others = watch(&wanted.replace("\"low\"", "\"other\""));
    assert!(
        others.contains("has other classes before upstream `app` (high, low)"),
        "{others}"
    );
    let upstream = watch(&wanted.replace("\"app\"", "\"shop\""));
    assert!(
        upstream.contains("has no upstream `shop` (app)"),
        "{upstream}"
    );
    server.stop();
    // Something else that listens there.
    let listener = TcpListener::bind(admin).unwrap();
    let answering = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_head(&mut stream);
        let answer = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).unwrap();
    });
    let stranger = watch(&wanted);
    assert!(
        stranger.contains("status 404 Not Found for /status.json"),
        "{stranger}"
    );
    answering.join().unwrap();
}

#[test]
fn an_upstream_that_holds_nothing_says_nothing_of_a_queue() {
    let (backend, admin) = (backend(), port::free().unwrap());
    let wanted = config(backend, admin, ("mean = \"1s\"", ""));
    let observed = wanted.replace("limit = 2", "limit = 2\nobserve = true");
    let place = ConfigFolder::new(&observed);
    let server = place.start(&[]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let request = b"GET /high HTTP/1.1\r\nhost: h\r\n\r\n";
    stream.write_all(request).unwrap();
    assert!(read_head(&mut stream));
    let refused = refusal(check(&place, &wanted, &["--observe", "1"]));
    assert!(refused.contains("(observe = true)"), "{refused}");
    server.stop();
}

#[test]
fn a_server_is_watched_for_whole_seconds_and_only_by_a_check() {
    let place = ConfigFolder::new("root = \"one\"\n");
    for time in ["500ms", "0", "1 parsec", "soon"] {
        let said = refusal(place.check_with(&["--observe", time]));
        assert!(said.contains("--observe: "), "{said}");
    }
    let said = refusal(place.check_with(&["--json"]));
    assert!(said.contains("--observe"), "{said}");
}
