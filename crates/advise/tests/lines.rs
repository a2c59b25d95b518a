//! Lines as real servers wrote them, and lines that are none.

use sooner_advise::{Entry, FORMATS, LineReader, Logs, NoEntry, Surveyor, TimeTaken};

fn all(log: &str) -> Vec<Entry> {
    let mut reader = LineReader::new(TimeTaken::Guess);
    let read = log
        .lines()
        .filter_map(|line| reader.read(line.as_bytes()).expect(line));
    read.collect()
}

fn one(line: &str) -> Entry {
    let entries = all(line);
    assert_eq!(entries.len(), 1, "{line}");
    entries[0].clone()
}

fn format(entry: &Entry) -> &'static str {
    FORMATS[entry.format].name
}

/// Arrival in milliseconds since 1970, bytes, whether the head is among them, milliseconds taken.
fn figures(entry: &Entry) -> (u64, u64, bool, Option<u64>) {
    let took_ms = entry.took_ns.map(|took_ns| took_ns / 1_000_000);
    (
        entry.arrival_ns() / 1_000_000,
        entry.bytes.unwrap_or(u64::MAX),
        entry.has_head,
        took_ms,
    )
}

const COMMON: &str =
    r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.gif HTTP/1.0" 200 2326"#;

#[test]
fn the_common_format() {
    let common = one(COMMON);
    assert_eq!(figures(&common), (971_211_336_000, 2326, false, None));
    assert_eq!((common.status, format(&common)), (200, "common"));
    assert_eq!(one(&COMMON.replace(" 2326", " -")).bytes, Some(0));
    assert_eq!(one(&format!("{COMMON}\r")), common);
    assert_eq!(one(&format!("\u{feff}{COMMON}")), common);
    let other = one(&COMMON.replace("127.0.0.1", "127.0.0.2"));
    assert_ne!(other.client, common.client);
    for client in [
        "127.0.0.1:4711",
        "[::ffff:127.0.0.1]:80",
        "127.0.0.1, 10.0.0.1",
    ] {
        assert_eq!(
            one(&COMMON.replace("127.0.0.1", client)),
            common,
            "{client}"
        );
    }
}

#[test]
fn what_stands_before_and_behind() {
    let combined = format!(r#"{COMMON} "http://x/ \"y\" 5" "Mozilla [en]""#);
    let plain = one(&combined);
    assert_eq!(figures(&plain), figures(&one(COMMON)));
    assert_eq!(
        figures(&one(&format!("{combined} 0.125"))),
        (971_211_335_875, 2326, false, Some(125))
    );
    assert_eq!(
        figures(&one(&format!("{combined} 2500"))),
        (971_211_336_000, 2326, false, Some(2))
    );
    for before in ["www.example.org:80 ", "Nov 26 04:00:00 web1 nginx: "] {
        assert_eq!(one(&format!("{before}{combined}")), plain, "{before}");
    }
    let blank = one(&combined.replace("frank", "frank of the hill"));
    assert_eq!(blank, plain);
    let forwarded = one(&format!("{combined} \"203.0.113.9, 10.1.1.1\" 0.125"));
    assert_eq!(forwarded.took_ns, Some(125_000_000));
    assert_eq!(
        forwarded.client,
        one(&COMMON.replace("127.0.0.1", "203.0.113.9")).client
    );
    assert_eq!(one(&format!("{combined} \"-\"")).client, plain.client);
    let too_long = one(&format!("{combined} 99999999.000"));
    assert_eq!(too_long.arrival_ns(), plain.stamp_ns);
    let milliseconds =
        LineReader::new(TimeTaken::Milliseconds).read(format!("{combined} 2500").as_bytes());
    let milliseconds = milliseconds.expect("a line").expect("an entry");
    assert_eq!(milliseconds.took_ns, Some(2_500_000_000));
}

/// Written by nginx 1.22, HAProxy 2.6 and Caddy 2.6.
#[test]
fn servers_are_read_as_they_write() {
    let nginx = one(
        r#"{"time":"2026-11-26T04:52:09+00:00","remote_addr":"127.0.0.1","status":200,"body_bytes_sent":3000000,"request_time":0.250,"http_user_agent":"a \"quoted\" agent","request":"GET /f3000000 HTTP/1.1"}"#,
    );
    assert_eq!(
        figures(&nginx),
        (1_795_668_728_750, 3_000_000, false, Some(250))
    );
    let caddy = one(
        r#"{"level":"info","ts":1795668729.2973952,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"41284","proto":"HTTP/1.1","headers":{"User-Agent":["a \"quoted\" agent"]}},"user_id":"","duration":0.050224975,"size":200000,"status":200,"resp_headers":{"Server":["Caddy"]}}"#,
    );
    assert_eq!(
        figures(&caddy),
        (1_795_668_729_247, 200_000, false, Some(50))
    );
    let http = one(
        r#"127.0.0.1:48750 [26/Nov/2026:04:52:04.517] a b/s1 0/0/0/60/61 200 3000209 - - ---- 1/1/0/0/0 0/0 {a #22quoted#22 agent} "GET /f3000000 HTTP/1.1""#,
    );
    assert_eq!(
        figures(&http),
        (1_795_668_724_517, 3_000_209, true, Some(61))
    );
    let clf = one(
        r#"127.0.0.1 - - [26/Nov/2026:04:52:07 +0000] "GET /f3000000 HTTP/1.1" 200 3000209 "" "" 46934 057 "c" "b" "s1" 0 0 0 11 32 ---- 1 1 0 0 0 0 0 "" "" "#,
    );
    assert_eq!(
        figures(&clf),
        (1_795_668_727_057, 3_000_209, true, Some(32))
    );
    let tcp =
        one("127.0.0.1:49420 [26/Nov/2026:04:52:04.917] d t/s1 1/0/105 3000246 -- 1/1/0/0/0 0/0");
    assert_eq!(
        figures(&tcp),
        (1_795_668_724_917, 3_000_246, true, Some(105))
    );
    let aborted = one(
        r#"127.0.0.1:48750 [26/Nov/2026:04:52:04.517] a a/<NOSRV> -1/-1/-1/-1/0 -1 0 - - CR-- 1/1/0/0/0 0/0 "<BADREQ>""#,
    );
    assert_eq!((aborted.status, aborted.bytes), (0, Some(0)));
    assert_eq!(http.client, tcp.client);
    assert_eq!(http.client, caddy.client);
}

/// A member `request` that is a text is the line of the request, and no mark of Caddy's.
#[test]
fn json_with_the_line_of_the_request_keeps_its_client() {
    let text = one(
        r#"{"ts":"2026-02-06T12:00:00Z","remote_addr":"10.0.0.1","request":"GET /a HTTP/1.1","status":200,"size":500}"#,
    );
    assert_eq!(format(&text), "JSON by nginx's names");
    let address = one(&COMMON.replace("127.0.0.1", "10.0.0.1"));
    assert_eq!((text.client, text.bytes), (address.client, Some(500)));
    let mut reader = LineReader::new(TimeTaken::Guess).with_requests();
    let line =
        r#"{"ts":"2026-02-06T12:00:00Z","request":"GET /a HTTP/1.1","status":200,"size":500}"#;
    let entry = reader.read(line.as_bytes()).expect("a line").expect("one");
    let request = entry.request.expect("a request");
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("GET", "/a")
    );
    let caddy =
        one(r#"{"ts":1795668729.25,"request":{"remote_ip":"10.0.0.1"},"status":200,"size":500}"#);
    assert_eq!(format(&caddy), "Caddy, JSON");
}

/// Such as HAProxy and AWS write them, a port with a colon behind an address of either kind.
#[test]
fn ports_behind_addresses_without_brackets_are_no_clients() {
    let haproxy = |peer: &str| {
        one(&format!(
            r#"{peer} [26/Nov/2026:04:52:04.517] a b/s1 0/0/0/60/61 200 3000209 - - ---- 1/1/0/0/0 0/0 "GET /f HTTP/1.1""#
        ))
    };
    let balancer = |peer: &str| {
        one(&format!(
            r#"2015-06-29T18:20:58.072335Z MY-ELB {peer} 10.12.34.56:80 0.000052 0.006129 0.000037 200 200 0 57 "GET https://www.example.com/ HTTP/1.1" "x" - -"#
        ))
    };
    for (address, peers) in [
        (
            "2001:db8::1",
            ["2001:db8::1:50123", "2001:db8:0:0:0:0:0:1:50124"],
        ),
        ("10.0.0.1", ["10.0.0.1:50123", "::ffff:10.0.0.1:50124"]),
    ] {
        let client = one(&COMMON.replace("127.0.0.1", address)).client;
        for peer in peers {
            assert_eq!(haproxy(peer).client, client, "{peer}");
            assert_eq!(balancer(peer).client, client, "{peer}");
        }
    }
}

#[test]
fn times_in_brackets_are_known_by_their_form() {
    let at = |time: &str| COMMON.replace("10/Oct/2000:13:55:36 -0700", time);
    let common = one(COMMON);
    for time in [
        "2000-10-10T13:55:36-07:00",
        "2000-10-10 20:55:36",
        "971211336",
    ] {
        assert_eq!(one(&at(time)), common, "{time}");
        let combined = one(&format!("{} \"-\" \"Mozilla [en]\" 0.125", at(time)));
        assert_eq!(
            figures(&combined),
            (971_211_335_875, 2326, false, Some(125)),
            "{time}"
        );
        assert_eq!(combined.client, common.client);
    }
    let finer = one(&at("971211336.250"));
    assert_eq!(figures(&finer).0, 971_211_336_250);
    // Envoy's time is in brackets too, and behind what a collector wrote.
    let envoy = r#"[2000-10-10T20:55:36.000Z] "GET /a HTTP/2" 200 - 154 2326 7 1 "127.0.0.1" "curl/8" "cc21d9b0" "example.org" "10.0.2.1:80""#;
    assert_eq!(format(&one(envoy)), "Envoy, default");
    assert_eq!(one(&format!("envoy[1]: {envoy}")), one(envoy));
    // No time, and one of the client's.
    let bracket =
        r#"127.0.0.1 - [2000-10-10] [10/Oct/2000:13:55:36 -0700] "GET /a.gif HTTP/1.0" 200 2326"#;
    assert_eq!(one(bracket).stamp_ns, common.stamp_ns);
    let alb = r#"http 2000-10-10T20:55:36.000000Z app/lb/1 127.0.0.1:80 10.0.0.1:80 0.000 0.125 0.000 200 200 34 2326 "GET http://h:80/ HTTP/1.1" "bot [2026-11-26 04:00:00]" - - arn"#;
    assert_eq!(figures(&one(alb)).0, 971_211_335_875);
}

#[test]
fn caddy_may_write_the_time_as_walls_show_it() {
    for time in [
        "\"2000/10/10 20:55:36\"",
        "\"2000/10/10 20:55:36.000\"",
        "\"10/Oct/2000:13:55:36 -0700\"",
        "971211336000",
    ] {
        let line = r#"{"level":"info","ts":TIME,"request":{"remote_ip":"127.0.0.1"},"duration":0.125,"size":2326,"status":200}"#;
        let caddy = one(&line.replace("TIME", time));
        assert_eq!(
            figures(&caddy),
            (971_211_335_875, 2326, false, Some(125)),
            "{time}"
        );
    }
}

#[test]
fn json_says_what_was_asked_and_what_it_was_made_to() {
    let target = |line: &str| {
        let mut reader = LineReader::new(TimeTaken::Guess).with_requests();
        let entry = reader.read(line.as_bytes()).expect(line).expect(line);
        entry.request.expect(line).target
    };
    let head = r#"{"time":"2020-11-19T10:00:00Z","bytes_sent":17,"status":200"#;
    for (members, asked) in [
        (
            r#""request":"GET /blog/post?id=7 HTTP/1.1","uri":"/index.php","args":"id=7""#,
            "/blog/post?id=7",
        ),
        (
            r#""uri":"/index.php","request_uri":"/post?id=7","args":"id=7""#,
            "/post?id=7",
        ),
        (r#""path":"/x","request_query":"a=b""#, "/x?a=b"),
        (
            r#""uri":"/y","query_string":"a=b","method":"GET""#,
            "/y?a=b",
        ),
        (r#""uri":"/y","args":"a=b""#, "/y?a=b"),
        (r#""uri":"/y","args":"""#, "/y"),
    ] {
        assert_eq!(target(&format!("{head},{members}}}")), asked, "{members}");
    }
}

#[test]
fn columns_are_those_that_the_log_names() {
    let iis = "#Software: Microsoft Internet Information Services 10.0\r\n#Date: 2026-11-26 04:00:00\r\n#Fields: date time s-ip cs-method cs-uri-stem c-ip cs(User-Agent) sc-status sc-bytes time-taken\r\n2026-11-26 04:00:01 10.0.0.5 GET /a 203.0.113.9 Mozilla/5.0+(x) 200 5120 1500\r\n";
    let entries = all(iis);
    assert_eq!(
        figures(&entries[0]),
        (1_795_665_599_500, 5120, true, Some(1500))
    );
    let cloudfront = "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs-uri-stem sc-status time-taken x-forwarded-for\n2026-11-26\t04:00:01\tLAX1\t392\t203.0.113.9\tGET\t/a b\t200\t1.500\t-\n";
    let edge = all(cloudfront);
    assert_eq!(
        figures(&edge[0]),
        (1_795_665_599_500, 392, true, Some(1500))
    );
    assert_eq!(edge[0].client, entries[0].client);
    let without_date =
        "#Date: 2026-11-26 00:00:00\n#Fields: time c-ip sc-bytes\n04:00:01 203.0.113.9 17\n";
    assert_eq!(all(without_date)[0].stamp_ns, 1_795_665_601_000_000_000);
}

#[test]
fn collectors_may_wrap_a_line() {
    let common = one(COMMON);
    let docker = serde_json::json!({"log": format!("{COMMON}\n"), "stream": "stdout", "time": "2026-01-01T00:00:00Z"});
    assert_eq!(one(&docker.to_string()), common);
    let object = r#"{"msec":"1700000000.250","remote_addr":"::1","bytes_sent":17}"#;
    let entry = one(object);
    assert_eq!(figures(&entry), (1_700_000_000_250, 17, true, None));
    for wrapped in [
        format!("{object},"),
        format!("2026-11-26T04:00:00.1Z stdout F {object}"),
        format!("<190>Nov 26 04:00:00 web1 nginx: {object}"),
    ] {
        assert_eq!(one(&wrapped), entry, "{wrapped}");
    }
    let mut not_utf8 = object.as_bytes().to_vec();
    not_utf8.splice(1..1, *b"\"agent\":\"\xff\xfe\",");
    let read = LineReader::default().read(&not_utf8);
    assert_eq!(read, Ok(Some(entry)));
}

#[test]
fn lines_that_are_none() {
    let of = |line: &str| LineReader::default().read(line.as_bytes());
    assert_eq!(of(""), Ok(None));
    assert_eq!(of("# a comment"), Ok(None));
    for (line, reason) in [
        ("starting worker process 12", NoEntry::Unknown),
        (&COMMON.replace("Oct", "Okt"), NoEntry::Time),
        (&COMMON.replace(" 2326", " x"), NoEntry::Size),
        (&COMMON.replace(" 2326", ""), NoEntry::Size),
        (&COMMON.replace(" 2326", " 999999999999999"), NoEntry::Size),
        ("{\"a\": 1}", NoEntry::Unknown),
        (r#"{"msec":"soon","bytes_sent":17}"#, NoEntry::Time),
        (r#"{"msec":"1700000000.250"}"#, NoEntry::Size),
        ("{", NoEntry::Unknown),
        (
            "2026-11-26 04:00:01 10.0.0.5 GET /a 200 5120 15",
            NoEntry::Columns,
        ),
    ] {
        assert_eq!(of(line), Err(reason), "{line}");
    }
    let mut reader = LineReader::default();
    assert_eq!(reader.read(b"#Fields: date time c-ip sc-status"), Ok(None));
    let row = b"2026-11-26 04:00:01 203.0.113.9 200";
    assert_eq!(reader.read(row), Err(NoEntry::ColumnOfSizes));
}

/// Damages a log in many places, and reads it compressed and not.
#[test]
fn damaged_logs_are_read_or_refused_in_one_line() {
    let log = format!(
        "#Fields: date time c-ip sc-bytes\n2026-11-26 04:00:01 ::1 5\n{COMMON} \"-\" \"a\" 0.125\n{{\"msec\":\"1700000000.250\",\"remote_addr\":\"::1\",\"bytes_sent\":17}}\n"
    );
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = ruzstd::encoding::compress_to_vec(log.as_bytes(), level);
    let mut gzip = flate2::read::GzEncoder::new(log.as_bytes(), flate2::Compression::fast());
    let mut packed = Vec::new();
    std::io::Read::read_to_end(&mut gzip, &mut packed).expect("memory");
    for whole in [log.into_bytes(), zstd, packed] {
        for place in 0..whole.len() {
            for byte in [0, b'"', b'[', 0xff, whole[place] ^ 1] {
                let mut damaged = whole.clone();
                damaged[place] = byte;
                let streams = [
                    ("whole", damaged.clone()),
                    ("cut", damaged[..place].to_vec()),
                ];
                let streams =
                    streams.map(|(name, bytes)| (name.into(), std::io::Cursor::new(bytes)));
                let mut surveyor = Surveyor::new(1_000_000);
                let read = Logs::of_streams(streams, TimeTaken::Guess)
                    .and_then(|logs| logs.read(&mut surveyor, |_| {}));
                let mut said: Vec<String> = surveyor.broken_files().to_vec();
                said.extend(read.err().map(|error| error.to_string()));
                said.extend(surveyor.first_other_line().map(str::to_owned));
                assert!(said.iter().all(|text| !text.contains('\n')), "{said:?}");
            }
        }
    }
}
