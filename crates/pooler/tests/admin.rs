//! The admin address over real sockets, before a real PostgreSQL: what it shows is what goes on,
//! and what a browser makes of it.

use serde_json::{Value, json};
use sooner_testbed::chromium::{self, Look};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::{Database, Gate, Talk, printed, until};

/// A name that would be a script if it were not text.
const HOSTILE: &str = "<script>document.title = 'taken'</script><img src=x>";
/// How long a page may take to become what it is to be.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two classes, one with a target that nothing can meet.
fn config(limits: &str) -> String {
    format!(
        "{limits}\n[[class]]\nname = \"{HOSTILE}\"\npriority = 1\nuser = [\"ann\"]\ntarget = {{ p95 = \"1us\" }}\n\
         [[class]]\nname = \"reports\"\nuser = [\"bob\"]\n"
    )
}

fn start(test: &str, limits: &str) -> Option<(Database, Gate)> {
    let database = Database::start(test)?;
    database.ask("CREATE ROLE ann LOGIN");
    database.ask("CREATE ROLE bob LOGIN");
    let gate = Gate::before(&database, &config(limits));
    Some((database, gate))
}

/// Head in lower case and body of the answer to a request.
fn request(gate: &Gate, line: &str, host: &str) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", gate.admin_port())).unwrap();
    let text = format!("{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}

fn status(gate: &Gate) -> Value {
    let (_, body) = request(gate, "GET /status.json", "localhost");
    serde_json::from_str(&body).unwrap()
}

/// Waits until the status is so, and gives it.
fn status_when(gate: &Gate, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    until(what, || {
        last = status(gate);
        is_so(&last)
    });
    last
}

fn ask_as(gate: &Gate, database: &Database, user: &str, sql: &str) -> String {
    printed(
        gate.psql(database, user)
            .args(["-d", "postgres", "-c", sql]),
    )
}

/// A psql of this user that has logged in: a login waits for a turn as well.
fn ready(gate: &Gate, database: &Database, user: &str) -> Talk {
    let mut talk = Talk::begin(&mut gate.psql(database, user));
    talk.ask("\\echo in");
    talk
}

#[test]
fn each_path_answers_and_only_its_own_operator_sees_names() {
    let Some((_database, gate)) = start("each_path_answers", "") else {
        return;
    };
    for (path, kind, part) in [
        ("/", "text/html; charset=utf-8", "<noscript>"),
        ("/status.json", "application/json", "\"schema\":1"),
        ("/metrics", "application/openmetrics-text", "# EOF"),
        ("/healthz", "text/plain; charset=utf-8", "ok\n"),
    ] {
        let (head, body) = request(&gate, &format!("GET {path}"), "localhost");
        assert!(head.starts_with("http/1.1 200"), "{path}: {head}");
        assert!(head.contains(&format!("content-type: {kind}")), "{head}");
        assert!(head.contains("x-content-type-options: nosniff"), "{head}");
        assert!(head.contains("content-security-policy: default-src 'none'"));
        assert!(body.contains(part), "{path}: {body}");
    }
    for path in ["/", "/status.json"] {
        let (head, body) = request(&gate, &format!("GET {path}"), "evil.example");
        assert!(head.starts_with("http/1.1 403"), "{path}: {head}");
        assert!(!body.contains("reports"), "{body}");
        let (head, _) = request(&gate, &format!("POST {path}"), "localhost");
        assert!(head.starts_with("http/1.1 405"), "{path}: {head}");
    }
    // A collector reaches it by any name, as before.
    let (head, _) = request(&gate, "GET /metrics", "gate.example:9187");
    assert!(head.starts_with("http/1.1 200"), "{head}");
    let (head, body) = request(&gate, "GET /nothing", "localhost");
    assert!(head.starts_with("http/1.1 404") && body.contains("/status.json"));
}

#[test]
fn the_status_says_who_waits_who_holds_and_who_is_late() {
    let limits = "[limits]\ntransactions = 1\n";
    let Some((database, gate)) = start("the_status_says_who_waits", limits) else {
        return;
    };
    assert_eq!(status(&gate)["servers"], json!([]));
    let mut waiting = ready(&gate, &database, "ann");
    let mut holder = ready(&gate, &database, "bob");
    holder.ask("BEGIN");
    waiting.say("SELECT 'done'");
    let held = status_when(&gate, "ann waits for bob", |status| {
        status["servers"][0]["waiting_transactions"] == 1
    });
    assert_eq!(held["headline"], "1 transaction waits");
    let server = &held["servers"][0];
    assert_eq!(server["limit_transactions"], 1, "{server}");
    assert_eq!(server["inside_transactions"], 1, "{server}");
    assert_eq!(server["idle_transactions"], 1, "{server}");
    let [ann, bob, none] = &held["classes"].as_array().unwrap()[..] else {
        panic!("{}", held["classes"]);
    };
    let is_named = (&ann["name"], &ann["priority"]) == (&json!(HOSTILE), &json!(1));
    assert!(is_named && ann["waiting_clients"] == 1, "{ann}");
    assert_eq!(ann["inside_transactions"], 0, "{ann}");
    assert_eq!(bob["waiting_clients"], 0, "{bob}");
    assert_eq!(bob["inside_transactions"], 1, "{bob}");
    assert_eq!((&none["name"], &none["clients"]), (&json!(""), &json!(0)));
    let line = held["held_up"][0].as_str().unwrap();
    assert!(line.contains("1 waiting; of 1 places"), "{line}");
    assert!(line.contains("1 by open transactions"), "{line}");
    holder.ask("COMMIT");
    assert_eq!(waiting.hear(), "done");
    let late = status_when(&gate, "ann is late", |status| {
        let is_noted = status["classes"][0]["mean_response_seconds"].is_f64();
        status["targets"][0]["is_late"] == true && is_noted
    });
    assert_eq!(late["headline"], format!("Class {HOSTILE} is late"));
    assert_eq!(late["held_up"], json!([]));
    let target = &late["targets"][0];
    assert_eq!(
        (&target["target"], &target["target_seconds"]),
        (&json!("p95"), &json!(1e-6))
    );
    let ann = &late["classes"][0];
    assert_eq!(ann["transactions_total"], 1);
    // It waited for longer than it ran, and both are part of what it took.
    let times = ["outside", "inside", "response"]
        .map(|phase| ann[format!("mean_{phase}_seconds")].as_f64().unwrap());
    assert!(
        times[0] > times[1] && times[2] >= times[0] + times[1],
        "{times:?}"
    );
    let series = &late["per_second"]["classes"][0];
    let ended = series["transactions"].as_array().unwrap();
    assert_eq!(ended.iter().filter_map(Value::as_u64).sum::<u64>(), 1);
    let waited = series["waiting_clients"].as_array().unwrap();
    assert_eq!(waited.len(), ended.len());
}

#[test]
fn what_would_wait_is_shown_where_nothing_is_held() {
    let limits = "observe = true\n[limits]\ntransactions = 1\n";
    let Some((database, gate)) = start("what_would_wait_is_shown", limits) else {
        return;
    };
    let mut first = ready(&gate, &database, "bob");
    let mut second = ready(&gate, &database, "ann");
    first.ask("BEGIN");
    assert_eq!(second.ask("SELECT 1"), "1");
    first.ask("COMMIT");
    let observed = status_when(&gate, "ann would have waited", |status| {
        status["classes"][0]["would_wait"]["would_wait_total"] == 1
    });
    assert_eq!(observed["headline"], "Only observed: nothing is held back");
    let server = &observed["servers"][0];
    assert_eq!(server["observed_limit_transactions"], 1, "{server}");
    let (_, page) = request(&gate, "GET /", "localhost");
    assert!(page.contains("If the gate held them"), "{page}");
}

/// It has a place inside, and SHOW POOLS counts it so.
#[test]
fn a_client_that_keeps_its_connection_and_does_nothing_is_active() {
    let limits = "admins = [\"postgres\"]\nmode = \"session\"\n[limits]\ntransactions = 4\n";
    let test = "a_client_that_keeps_its_connection_and_does_nothing";
    let Some((database, gate)) = start(test, limits) else {
        return;
    };
    let mut kept = ready(&gate, &database, "bob");
    assert_eq!(kept.ask("SELECT 1"), "1");
    let metrics = || request(&gate, "GET /metrics", "localhost").1;
    let is_kept =
        |line: &str| line.starts_with("sooner_gate_kept_connections{") && line.ends_with(" 1.0");
    until("it does nothing", || metrics().lines().any(is_kept));
    let shown = metrics();
    for line in [
        "sooner_gate_clients{doing=\"active\"} 1.0\n",
        "sooner_gate_clients{doing=\"idle\"} 0.0\n",
        "sooner_gate_class_inside_transactions{class=\"reports\"} 1.0\n",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let status = status_when(&gate, "bob is inside", |status| {
        status["classes"][1]["inside_transactions"] == 1
    });
    assert_eq!(status["servers"][0]["inside_transactions"], 1, "{status}");
    let pools = gate.admin(&database, "SHOW POOLS");
    assert!(pools.contains("postgres|bob|1|0|"), "{pools}");
}

/// Also when its last client has left, and its last connection is closed.
#[test]
fn what_was_counted_at_a_server_counts_on() {
    let Some(database) = Database::start("what_was_counted_at_a_server") else {
        return;
    };
    let config = "[limits]\ntransactions = 2\nserver_idle_seconds = 1\n\
                  [[class]]\nname = \"reports\"\nlongest = \"50ms\"\n";
    let gate = Gate::before(&database, config);
    let sum = |name: &str| -> Option<f64> {
        let (_, text) = request(&gate, "GET /metrics", "localhost");
        let mut lines = text.lines();
        let line = lines.find(|line| line.starts_with(&format!("sooner_gate_{name}{{")))?;
        line.rsplit(' ').next()?.parse().ok()
    };
    let overlong = "class_overlong_transactions_total";
    ask_as(&gate, &database, "postgres", "SELECT pg_sleep(0.3)");
    assert_eq!(sum(overlong), Some(1.0));
    until("no connection is left", || {
        sum("server_connections").unwrap_or(0.0) == 0.0
    });
    // For longer than what is not needed is kept in mind.
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(sum(overlong), Some(1.0));
    ask_as(&gate, &database, "postgres", "SELECT pg_sleep(0.3)");
    assert_eq!(sum(overlong), Some(2.0));
}

#[test]
fn a_browser_shows_it_at_both_widths_without_a_complaint() {
    let test = "a_browser_shows_it_at_both_widths";
    if chromium::is_missing(test) {
        return;
    }
    let limits = "[limits]\ntransactions = 1\n";
    let Some((database, gate)) = start(test, limits) else {
        return;
    };
    ask_as(&gate, &database, "ann", "SELECT 1");
    let mut holder = Talk::begin(&mut gate.psql(&database, "bob"));
    holder.ask("BEGIN");
    let mut late = gate.psql(&database, "ann");
    let waits = late
        .args(["-d", "postgres", "-c", "SELECT 1"])
        .spawn()
        .unwrap();
    status_when(&gate, "ann waits", |status| {
        status["servers"][0]["waiting_transactions"] == 1
    });
    let url = format!("http://127.0.0.1:{}/", gate.admin_port());
    let live = "document.getElementById('state').textContent.startsWith('Live')";
    let drawn =
        format!("{live} && document.querySelectorAll('#class-plots path[d^=M]').length > 3");
    for width in [1280, 375] {
        for (until, runs_scripts) in [(drawn.as_str(), true), ("true", false)] {
            let look = Look {
                runs_scripts,
                ..Look::at(&url, width, until)
            };
            let seen: Value = serde_json::from_str(&look.take(PATIENCE)).unwrap();
            assert_eq!(seen["errors"], json!([]), "{width}");
            assert_eq!(seen["failed"], json!([]), "{width}");
            assert_eq!(seen["width_pixels"], width, "{seen}");
            assert!(
                seen["content_pixels"].as_u64().unwrap() <= width.into(),
                "{seen}"
            );
            // The names are text: no script and no picture came of them.
            let (scripts, images) = (&seen["scripts"], &seen["images"]);
            assert_eq!((scripts, images), (&json!(1), &json!(0)), "{seen}");
            let text = seen["text"].as_str().unwrap();
            for part in [HOSTILE, "reports", "by open transactions", "late"] {
                assert!(text.contains(part), "{part} is not in {text}");
            }
        }
    }
    holder.ask("COMMIT");
    assert!(waits.wait_with_output().unwrap().status.success());
}
