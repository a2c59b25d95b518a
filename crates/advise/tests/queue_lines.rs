//! What lines with times say of the server and the queue before it, in the words of the programs
//! that write them.

use sooner_advise::{Entry, FORMATS, LineReader, QueueFigures, Surveyor, TimeTaken, forecast};

fn one_with(line: &str, taken: TimeTaken) -> Entry {
    let entry = LineReader::new(taken).read(line.as_bytes());
    entry.expect(line).expect(line)
}

fn one(line: &str) -> Entry {
    one_with(line, TimeTaken::Guess)
}

/// Milliseconds: the whole, at the server, waiting before it; and the kind.
fn times(entry: &Entry) -> (Option<u64>, Option<u64>, Option<u64>, &str) {
    let ms = |ns: Option<u64>| ns.map(|ns| ns / 1_000_000);
    (
        ms(entry.took_ns),
        ms(entry.at_server.took_ns),
        ms(entry.at_server.waited_ns),
        entry.kind.as_deref().unwrap_or("-"),
    )
}

const COMBINED: &str = r#"127.0.0.1 - - [28/Nov/2026:06:00:00 +0000] "POST /api/users/17?x=1 HTTP/1.1" 200 12 "-" "curl""#;
const KIND: &str = "POST /api/users/N";

#[test]
fn nginx_names_the_upstream_or_puts_it_second() {
    for behind in [
        "0.250 0.200",
        "0.250 0.001 0.150 0.200",
        "rt=0.250 uct=\"0.001\" uht=\"0.150\" urt=\"0.200\"",
        "request_time=0.250 upstream_response_time=\"0.050, 0.150\"",
        "0.250 \"0.050, - : 0.150\"",
        "0.250 0.050, 0.150",
    ] {
        let entry = one(&format!("{COMBINED} {behind}"));
        assert_eq!(
            times(&entry),
            (Some(250), Some(200), None, KIND),
            "{behind}"
        );
    }
    let file = one(&format!("{COMBINED} rt=0.250 urt=\"-\""));
    assert_eq!(times(&file), (Some(250), None, None, KIND));
    let json = r#"{"time_iso8601":"2026-11-28T06:00:00+00:00","request":"POST /api/users/17?x=1 HTTP/1.1","status":"200","body_bytes_sent":"12","request_time":"0.250","upstream_response_time":"0.050, 0.150","upstream_addr":"10.0.0.1:80, 10.0.0.2:80"}"#;
    assert_eq!(times(&one(json)), (Some(250), Some(200), None, KIND));
}

#[test]
fn httpd_and_gunicorn_have_one_number() {
    let d = one(&format!("{COMBINED} 250000"));
    assert_eq!(times(&d), (Some(250), None, None, KIND));
    assert!(!d.is_of_the_end);
    let of = |behind: &str, unit| one_with(&format!("{COMBINED} {behind}"), unit).took_ns;
    assert_eq!(of("250", TimeTaken::Milliseconds), Some(250_000_000));
    assert_eq!(of("2", TimeTaken::Seconds), Some(2_000_000_000));
    // gunicorn's %(L)s.
    let l = one(&format!("{COMBINED} 0.250123"));
    assert_eq!(times(&l), (Some(250), None, None, KIND));
    assert!(l.is_of_the_end);
}

#[test]
fn haproxy_has_the_queue_and_the_server_apart() {
    let http = r#"Nov 28 06:00:00 web1 haproxy[14389]: 10.0.1.2:33317 [28/Nov/2026:06:00:00.655] http-in static/srv1 10/40/30/69/159 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "POST /api/users/17?x=1 HTTP/1.1""#;
    let entry = one(http);
    assert_eq!(times(&entry), (Some(159), Some(109), Some(40), KIND));
    let refused = http
        .replace("10/40/30/69/159", "10/-1/-1/-1/20")
        .replace("static/srv1", "static/<NOSRV>");
    let refused = one(&refused);
    assert_eq!(times(&refused), (Some(20), None, None, KIND));
    assert_eq!(refused.at_server.name, None);
    let tcp =
        one("10.0.1.2:33313 [28/Nov/2026:06:00:00.655] fnt bck/srv1 5/0/5007 212 -- 0/0/0/0/3 0/0");
    assert_eq!(times(&tcp), (Some(5007), Some(5002), Some(5), "-"));
    assert_ne!(tcp.at_server.name, entry.at_server.name);
    let clf = one(
        r#"127.0.0.1 - - [28/Nov/2026:06:00:00 +0000] "GET /a HTTP/1.1" 200 300 "" "" 46934 057 "c" "b" "s1" 0 5 1 11 32 ---- 1 1 0 0 0 0 0 "" "" "#,
    );
    assert_eq!(times(&clf), (Some(32), Some(27), Some(5), "GET /a"));
}

/// The same 445 ms of an event stream of which the first byte came after 1 ms.
#[test]
fn a_server_works_on_a_stream_until_its_last_byte() {
    let of = |line: &str| times(&one(line)).1;
    let haproxy = r#"10.0.1.2:1 [28/Nov/2026:06:00:00.655] in b/s 0/0/0/1/445 200 2750 - - ---- 1/1/1/1/0 0/0 "POST /v1/chat HTTP/1.1""#;
    assert_eq!(of(haproxy), Some(445));
    assert_eq!(of(&haproxy.replace("/445", "/+445")), Some(445));
    let waited = haproxy.replace(" 0/0/0/1/445", " 5/40/0/1/490");
    assert_eq!(of(&waited), Some(445));
    let clf = r#"127.0.0.1 - - [28/Nov/2026:06:00:00 +0000] "GET /a HTTP/1.1" 200 300 "" "" 46934 057 "c" "b" "s1" 0 0 0 1 445 ---- 1 1 0 0 0 0 0 "" "" "#;
    assert_eq!(of(clf), Some(445));
    // The wait for others on the link is none of the server's.
    let sooner = r#"{"time":"2026-11-28T06:00:00.1Z","remote":"10.0.0.1:1","method":"POST","target":"/v1/chat","status":200,"size_bytes":12,"wait_ns":7000000,"service_ns":444000000,"upstream":"app","upstream_ns":1000000}"#;
    assert_eq!(of(sooner), Some(445));
    // Nor is the wait for a place in it.
    let queued = sooner.replace(
        r#""upstream_ns":1000000"#,
        r#""upstream_ns":901000000,"upstream_wait_ns":900000000"#,
    );
    assert_eq!(times(&one(&queued)).1, Some(445));
    assert_eq!(times(&one(&queued)).2, Some(900));
    let envoy = r#"{"start_time":"2026-11-28T06:00:00.1Z","response_code":200,"bytes_sent":12,"duration":445,"upstream_service_time":"1"}"#;
    assert_eq!(of(envoy), Some(445));
}

#[test]
fn proxies_that_write_json_name_the_origin() {
    let traefik = one(
        r#"{"ClientHost":"10.0.0.1","Duration":250000000,"OriginDuration":200000000,"DownstreamContentSize":12,"DownstreamStatus":200,"RequestMethod":"POST","RequestPath":"/api/users/17?x=1","ServiceAddr":"10.0.0.9:80","StartUTC":"2026-11-28T06:00:00.1Z"}"#,
    );
    assert_eq!(times(&traefik), (Some(250), Some(200), None, KIND));
    // Traefik answered this one itself; nginx has a 0 of what was quick.
    let refused = one(
        r#"{"ClientHost":"10.0.0.1","DownstreamContentSize":0,"DownstreamStatus":403,"Duration":19808199303,"OriginContentSize":0,"OriginDuration":0,"OriginStatus":0,"RequestMethod":"POST","RequestPath":"/x","StartUTC":"2026-04-30T11:58:27Z"}"#,
    );
    assert_eq!(times(&refused), (Some(19_808), None, None, "POST /x"));
    let nginx = one(
        r#"{"time_iso8601":"2026-11-28T06:00:00+00:00","status":200,"body_bytes_sent":12,"request_method":"POST","request_uri":"/x","request_time":0.250,"upstream_response_time":"0.000"}"#,
    );
    assert_eq!(times(&nginx), (Some(250), Some(0), None, "POST /x"));
    let caddy = one(
        r#"{"ts":1795845600.1,"request":{"remote_ip":"127.0.0.1","method":"POST","uri":"/api/users/17?x=1"},"duration":0.25,"size":12,"status":200}"#,
    );
    assert_eq!(times(&caddy), (Some(250), None, None, KIND));
    let envoy = one(
        r#"[2026-11-28T06:00:00.310Z] "POST /api/users/17 HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "tcp://10.0.2.1:80""#,
    );
    assert_eq!(times(&envoy), (Some(226), Some(226), None, KIND));
    assert_eq!(envoy.bytes, Some(0));
    // Without an upstream.
    let refused =
        one(r#"[2026-11-28T06:00:00.310Z] "GET / HTTP/1.1" 404 NR 0 0 0 - "-" "curl" "1" "h" "-""#);
    assert_eq!(times(&refused), (Some(0), None, None, "GET /"));
    let sooner = one(
        r#"{"time":"2026-11-28T06:00:00.1Z","remote":"10.0.0.1:1","method":"POST","target":"/api/users/17?x=1","status":200,"size_bytes":12,"wait_ns":1000000,"service_ns":2000000,"upstream":"app","upstream_ns":250000000,"upstream_server":"http://a","upstream_tries":1}"#,
    );
    assert_eq!(times(&sooner), (Some(3), Some(252), None, KIND));
    assert!(sooner.at_server.is_link_time);
}

/// `duration` of JSON names no unit: lograge writes milliseconds, most others seconds, and the flag
/// says what it is.
#[test]
fn a_field_that_names_no_unit_is_in_the_one_that_is_given() {
    let of = |line: &str, unit| one_with(line, unit).took_ns.map(|ns| ns / 1_000_000);
    let rails = r#"{"method":"GET","path":"/orders/17","format":"html","controller":"OrdersController","action":"show","status":200,"duration":1040.5,"view":900.1,"db":12.2,"@timestamp":"2026-11-28T06:00:00.1Z"}"#;
    let plain =
        r#"{"time":"2026-11-28T06:00:00.1Z","status":200,"size":12,"path":"/a","duration":250}"#;
    let model = r#"{"timestamp":"2026-11-28T06:00:02.5Z","model":"m","latency":2500,"usage":{"prompt_tokens":26,"completion_tokens":298}}"#;
    let caddy = r#"{"ts":1795845600.1,"request":{"method":"GET","uri":"/"},"duration":250,"size":12,"status":200}"#;
    let named =
        r#"{"time":"2026-11-28T06:00:00.1Z","status":200,"size":12,"path":"/a","duration_ms":250}"#;
    for (line, guessed, seconds, milliseconds, microseconds, none) in [
        (rails, 1040, 1_040_500, 1040, 1, None),
        (plain, 250_000, 250_000, 250, 0, None),
        (model, 2_500_000, 2_500_000, 2500, 2, None),
        (caddy, 250_000, 250_000, 250, 0, None),
        (named, 250, 250, 250, 250, Some(250)),
    ] {
        assert_eq!(of(line, TimeTaken::Guess), Some(guessed), "{line}");
        assert_eq!(of(line, TimeTaken::Seconds), Some(seconds), "{line}");
        assert_eq!(
            of(line, TimeTaken::Milliseconds),
            Some(milliseconds),
            "{line}"
        );
        assert_eq!(
            of(line, TimeTaken::Microseconds),
            Some(microseconds),
            "{line}"
        );
        let sized = line.replace("\"status\"", "\"size\":3,\"status\"");
        let read = LineReader::new(TimeTaken::None).read(sized.as_bytes());
        let took = read.ok().flatten().and_then(|entry| entry.took_ns);
        assert_eq!(took.map(|ns| ns / 1_000_000), none, "{line}");
    }
    let of_first =
        |unit| one_with(&model.replace("\"model\"", "\"ttft\":250,\"model\""), unit).first_token_ns;
    assert_eq!(of_first(TimeTaken::Guess), Some(250_000_000_000));
    assert_eq!(of_first(TimeTaken::Milliseconds), Some(250_000_000));
}

#[test]
fn what_lacks_the_time_taken_says_so() {
    let reason = |line: &str| {
        LineReader::default()
            .read(line.as_bytes())
            .unwrap_err()
            .to_string()
    };
    for line in [
        r#"{"timestamp":"2026-11-28T06:00:02.5Z","model":"m","usage":{"prompt_tokens":26,"completion_tokens":298}}"#,
        r#"{"id":"c","object":"chat.completion","created":1795845602,"model":"m","usage":{"prompt_tokens":26,"completion_tokens":298}}"#,
        r#"{"time":"2026-11-28T06:00:00Z","status":200,"path":"/a"}"#,
    ] {
        let reason = reason(line);
        assert!(reason.contains("without the time"), "{reason}: {line}");
    }
}

/// Milliseconds taken, tokens of prompt and answer, milliseconds until the first, kind.
type Answer = (Option<u64>, Option<(u64, u64)>, Option<u64>, String);

fn model(line: &str) -> Answer {
    let entry = one(line);
    assert_eq!(
        FORMATS[entry.format].name, "JSON of language models",
        "{line}"
    );
    assert_eq!(entry.arrival_ns() / 1_000_000, 1_795_845_600_000, "{line}");
    (
        entry.took_ns.map(|ns| ns / 1_000_000),
        entry
            .tokens
            .map(|tokens| (tokens.prompt, tokens.completion)),
        entry.first_token_ns.map(|ns| ns / 1_000_000),
        entry.kind.unwrap_or_default(),
    )
}

#[test]
fn gateways_of_language_models_have_tokens() {
    let expected = |first| (Some(2500), Some((26, 298)), first, "llama3:8b".to_owned());
    let payload = r#"{"id":"c","status":"success","startTime":1795845600.0,"endTime":1795845602.5,"completionStartTime":1795845600.25,"response_time":0.25,"prompt_tokens":26,"completion_tokens":298,"total_tokens":324,"model":"llama3:8b","end_user":"u1","messages":[{"content":"{}"}]}"#;
    assert_eq!(model(payload), expected(Some(250)));
    for wrapped in [
        format!(r#"{{"standard_logging_object":{payload}}}"#),
        format!(r#"{{"kwargs":{{"standard_logging_object":{payload}}},"level":"INFO"}}"#),
        format!("06:00:02 - LiteLLM:INFO: {payload}"),
    ] {
        assert_eq!(model(&wrapped), expected(Some(250)), "{wrapped}");
    }
    let spend = r#"{"startTime":"2026-11-28T06:00:00+00:00","endTime":"2026-11-28T06:00:02.5+00:00","completionStartTime":null,"prompt_tokens":26,"completion_tokens":298,"model":"llama3:8b","user":"u1"}"#;
    assert_eq!(model(spend), expected(None));
    for line in [
        r#"{"timestamp":"2026-11-28T06:00:02.5Z","model":"llama3:8b","latency_ms":2500,"ttft_ms":250,"usage":{"prompt_tokens":26,"completion_tokens":298}}"#,
        r#"{"ts":1795845602.5,"model":"llama3:8b","duration":2.5,"ttft":0.25,"input_tokens":26,"output_tokens":298}"#,
        r#"{"arrival_time":1795845600.0,"finished_time":1795845602.5,"first_token_time":1795845600.25,"num_prompt_tokens":26,"num_generation_tokens":298,"model":"llama3:8b"}"#,
    ] {
        assert_eq!(model(line), expected(Some(250)), "{line}");
    }
    let ollama = r#"{"model":"llama3:8b","created_at":"2026-11-28T06:00:02.5Z","done":true,"total_duration":2500000000,"load_duration":6338219,"prompt_eval_count":26,"prompt_eval_duration":130079000,"eval_count":298,"eval_duration":2300000000}"#;
    assert_eq!(model(ollama), expected(None));
    let llama_cpp = r#"{"model":"llama3:8b","created":1795845602.5,"timings":{"prompt_n":26,"prompt_ms":200.0,"predicted_n":298,"predicted_ms":2300.0}}"#;
    assert_eq!(model(llama_cpp), expected(None));
}

#[test]
fn what_is_no_request_is_none_though_it_has_a_time() {
    let of = |line: &str| LineReader::default().read(line.as_bytes()).is_ok();
    assert!(!of(
        r#"{"time":"2026-11-28T06:00:00Z","msg":"job done","duration_ms":17}"#
    ));
    assert!(!of(r#"{"time":"2026-11-28T06:00:00Z","status":200}"#));
    assert!(!of(
        r#"{"prompt_tokens":26,"completion_tokens":298,"model":"m"}"#
    ));
    assert!(of(
        r#"{"time":"2026-11-28T06:00:00Z","status":200,"duration_ms":17}"#
    ));
    let deep = format!("{}1{}", "{\"kwargs\":".repeat(5000), "}".repeat(5000));
    assert!(!of(&deep));
}

fn queue(lines: &[String]) -> QueueFigures {
    let mut surveyor = Surveyor::without_link();
    let mut reader = LineReader::new(TimeTaken::Guess);
    for line in lines {
        surveyor.add(reader.read(line.as_bytes()).expect(line).expect(line));
    }
    let found = forecast(surveyor).expect("requests");
    found.queue.expect("times")
}

/// Whether one of the sentences on what is assumed has these words.
fn said(lines: &[String], words: &str) -> bool {
    let caveats = queue(lines).caveats;
    caveats.iter().any(|sentence| sentence.contains(words))
}

/// All in one second by its clock.
#[test]
fn a_short_log_is_as_long_as_its_clock_can_tell() {
    let lines = vec![format!("{COMBINED} 0.050"); 40];
    let inside = queue(&lines).inside;
    assert!(
        (inside.mean - 40.0 * 0.05 / 1.05).abs() < 1e-3,
        "{inside:?}"
    );
    assert!(inside.busiest_minute < 2.1, "{inside:?}");
}

#[test]
fn what_the_log_cannot_say_is_said() {
    let whole = vec![format!("{COMBINED} 0.250"); 3];
    let upstream = vec![format!("{COMBINED} 0.250 0.200"); 3];
    let haproxy = ["srv1", "srv2"].map(|server| {
        format!(r#"10.0.1.2:33317 [28/Nov/2026:06:00:00.655] in back/{server} 10/40/30/69/159 200 2750 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1""#)
    });
    for (lines, words, is_said) in [
        (&whole[..], "The log has whole seconds", true),
        (&whole, "sending to slow clients", true),
        (&whole, "does not name the servers", true),
        (&upstream, "sending to slow clients", false),
        (&upstream, "includes waiting in it", true),
        (&haproxy, "The log has whole seconds", false),
        (&haproxy, "2 servers answered", true),
        (&haproxy, "one request in n", true),
    ] {
        assert_eq!(said(lines, words), is_said, "{words}");
    }
}
