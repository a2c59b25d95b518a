//! Logs that nginx, HAProxy, httpd and gunicorn write of real requests, and what `sooner advise`
//! says of the queue from them.

use serde_json::Value;
use sooner_testbed::child::OwnedChild;
use sooner_testbed::nginx::Nginx;
use sooner_testbed::{port, program, skip};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Clients at a time, and requests of each.
const CLIENTS: u64 = 8;
const REQUESTS: u64 = 10;
const ALL: u64 = CLIENTS * REQUESTS;
const WAIT: Duration = Duration::from_secs(20);

/// A backend that works on one request at a time: 5 ms each, 20 ms where the path says `slow`.
fn backend() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let processor = Arc::new(Mutex::new(()));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let processor = Arc::clone(&processor);
            thread::spawn(move || answer(&stream.unwrap(), &processor));
        }
    });
    address
}

fn answer(mut stream: &TcpStream, processor: &Mutex<()>) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let Some(request) = lines.next() else { return };
    let _head = lines.take_while(|line| !line.is_empty()).count();
    let works = processor.lock().unwrap();
    thread::sleep(Duration::from_millis(if request.contains("slow") {
        20
    } else {
        5
    }));
    drop(works);
    let _ =
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nyes");
}

/// Sends all requests, some to `/slow`, and reads the answers.
fn request_all(address: SocketAddr) {
    let client = |number: u64| {
        move || {
            for request in 0..REQUESTS {
                let path = if (number + request).is_multiple_of(4) {
                    "slow"
                } else {
                    "fast"
                };
                let mut stream = TcpStream::connect(address).unwrap();
                let head = format!(
                    "GET /{path}/{request} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            }
        }
    };
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| thread::spawn(client(number)))
        .collect();
    clients
        .into_iter()
        .for_each(|client| client.join().unwrap());
}

fn listens(address: SocketAddr, child: &mut OwnedChild) {
    let begin = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(
            begin.elapsed() < WAIT,
            "it does not listen: {}",
            child.message()
        );
        thread::sleep(Duration::from_millis(20));
    }
}

/// What is said of the queue; the log has all requests, or will in a moment.
fn queue(log: &Path, more: &[&str]) -> Value {
    let begin = Instant::now();
    loop {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
        let output = command
            .arg("advise")
            .arg(log)
            .arg("--json")
            .args(more)
            .output()
            .unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let requests = found["queue"]["requests"].as_u64().unwrap_or(0);
        if requests >= ALL {
            assert_eq!(found["survey"]["other_lines"], 0, "{found}");
            return found["queue"].clone();
        }
        let text = fs::read_to_string(log).unwrap_or_default();
        assert!(begin.elapsed() < WAIT, "{requests}: {output:?}: {text}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Eight clients are mostly inside together, and two kinds of requests are told apart.
fn check(queue: &Value, timed: &str, what: &str) {
    assert_eq!(queue["requests"], ALL, "{what}: {queue}");
    assert_eq!(queue["timed"], timed, "{what}: {queue}");
    assert_eq!(queue["kinds"]["kinds"], 2, "{what}: {queue}");
    let mean = queue["inside"]["mean"].as_f64().unwrap();
    assert!(mean > 1.0 && mean < 1.5 * CLIENTS as f64, "{what}: {queue}");
}

#[test]
fn nginx_before_a_backend() {
    let test = "nginx_before_a_backend";
    if program::missing(&["nginx"]) {
        skip(test, "no nginx; install nginx-light");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let address = port::free().unwrap();
    let logs = ["named", "behind", "json"].map(|name| dir.path().join(name));
    let [named, behind, json] = logs.each_ref().map(|log| log.display());
    let http = format!(
        r#"log_format named '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" rt=$request_time uct="$upstream_connect_time" uht="$upstream_header_time" urt="$upstream_response_time"';
        log_format behind '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent $request_time $upstream_response_time';
        log_format json escape=json '{{"msec":"$msec","request":"$request","status":$status,"bytes_sent":$bytes_sent,"request_time":$request_time,"upstream_response_time":"$upstream_response_time","upstream_addr":"$upstream_addr"}}';
        access_log {named} named; access_log {behind} behind; access_log {json} json;
        server {{ listen {address}; location / {{ proxy_pass http://{}; }} location /file {{ return 200 "yes"; }} }}
        "#,
        backend()
    );
    let _nginx = Nginx::start(dir.path(), &http, address).unwrap();
    request_all(address);
    // Not of the backend.
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /file HTTP/1.0\r\n\r\n").unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    for log in &logs {
        let queue = queue(log, &[]);
        check(&queue, "at-server", &log.display().to_string());
        assert!(queue["other_requests"].as_u64() <= Some(1), "{queue}");
    }
}

#[test]
fn haproxy_before_a_backend() {
    let test = "haproxy_before_a_backend";
    let Some(haproxy) = program::find(&["haproxy"]) else {
        skip(test, "no HAProxy; install haproxy");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let address = port::free().unwrap();
    let config = dir.path().join("haproxy.cfg");
    let text = format!(
        "global\n  log stdout format raw local0\ndefaults\n  mode http\n  log global\n  option httplog\n  timeout connect 5s\n  timeout client 9s\n  timeout server 9s\n\
         frontend front\n  bind {address}\n  default_backend back\nbackend back\n  server s1 {} maxconn 2\n",
        backend()
    );
    fs::write(&config, text).unwrap();
    let mut child =
        OwnedChild::spawn(Command::new(haproxy).arg("-db").arg("-f").arg(&config)).unwrap();
    listens(address, &mut child);
    request_all(address);
    // Its own words and the look whether it listens are no requests.
    let mut lines = Vec::new();
    while lines.len() < ALL as usize {
        let line = child.next_line(WAIT).unwrap();
        if line.contains("\"GET /") {
            lines.push(format!("Nov 28 06:00:00 web1 haproxy[17]: {line}\n"));
        }
    }
    let log = dir.path().join("haproxy.log");
    fs::write(&log, lines.concat()).unwrap();
    let queue = queue(&log, &[]);
    assert_eq!(
        (&queue["requests"], &queue["timed"]),
        (&ALL.into(), &"at-server".into())
    );
    assert!(
        queue["waits"]["mean_ms"].as_f64() > queue["times"]["mean_ms"].as_f64(),
        "{queue}"
    );
    // Two may be inside; a step of its clock is a millisecond.
    assert!(queue["inside"]["mean"].as_f64() < Some(2.5), "{queue}");
}

#[test]
fn httpd_with_microseconds() {
    let test = "httpd_with_microseconds";
    let modules = Path::new("/usr/lib/apache2/modules");
    let (Some(httpd), true) = (program::find(&["apache2"]), modules.exists()) else {
        skip(test, "no httpd; install apache2");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display();
    let address = port::free().unwrap();
    for kind in ["slow", "fast"] {
        fs::create_dir(dir.path().join(kind)).unwrap();
        for request in 0..REQUESTS {
            fs::write(dir.path().join(kind).join(request.to_string()), "yes").unwrap();
        }
    }
    let config = dir.path().join("httpd.conf");
    let text = format!(
        "ServerRoot {at}\nServerName a\nPidFile {at}/pid\nDefaultRuntimeDir {at}\nListen {address}\nErrorLog {at}/error\n\
         LoadModule mpm_event_module {modules}/mod_mpm_event.so\nLoadModule authz_core_module {modules}/mod_authz_core.so\n\
         DocumentRoot {at}\nLogFormat \"%h %l %u %t \\\"%r\\\" %>s %b \\\"%{{Referer}}i\\\" \\\"%{{User-Agent}}i\\\" %D\" timed\nCustomLog {at}/log timed\n",
        modules = modules.display()
    );
    fs::write(&config, text).unwrap();
    let mut command = Command::new(httpd);
    let mut child = OwnedChild::spawn(command.arg("-DFOREGROUND").arg("-f").arg(&config)).unwrap();
    listens(address, &mut child);
    request_all(address);
    let queue = queue(&dir.path().join("log"), &["--time-taken", "us"]);
    assert_eq!(
        (&queue["timed"], &queue["kinds"]["kinds"]),
        (&"whole".into(), &2.into()),
        "{queue}"
    );
}

#[test]
fn gunicorn_with_one_worker() {
    let test = "gunicorn_with_one_worker";
    let Some(gunicorn) = program::find(&["gunicorn"]) else {
        skip(test, "no gunicorn; install gunicorn");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let address = port::free().unwrap();
    let application = "import time\ndef app(environ, start):\n    time.sleep(0.02 if 'slow' in environ['PATH_INFO'] else 0.005)\n    start('200 OK', [('Content-Length', '3')])\n    return [b'yes']\n";
    fs::write(dir.path().join("queued.py"), application).unwrap();
    let log = dir.path().join("log");
    let mut command = Command::new(gunicorn);
    command
        .current_dir(dir.path())
        .args(["--access-logfile", "log", "-b", &address.to_string()]);
    command.args([
        "--access-logformat",
        r#"%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s" %(L)s"#,
    ]);
    let mut child = OwnedChild::spawn(command.arg("queued:app")).unwrap();
    listens(address, &mut child);
    request_all(address);
    let queue = queue(&log, &[]);
    // The worker's own times: who waits in its backlog is not seen.
    assert_eq!(
        (&queue["requests"], &queue["timed"]),
        (&ALL.into(), &"whole".into())
    );
    assert_eq!(queue["kinds"]["kinds"], 2, "{queue}");
    assert!(
        queue["kinds"]["ranked_rightly_share"].as_f64() > Some(0.6),
        "{queue}"
    );
}
