//! What a configuration's text says: right ones as values, wrong ones as one line with place, key
//! and remedy.

use proptest::prelude::*;
use sooner_web::config::{Config, Misconfigured, SourceText, StreamOrder, keys};
use std::path::Path;

/// The line for a text that must be wrong.
fn line(text: &str) -> String {
    let source = SourceText {
        name: "f".into(),
        text: text.into(),
        flags: &[],
    };
    let refusal = Config::parse(text)
        .and_then(|config| config.check().and_then(|()| config.check_without_files()));
    source.render(&refusal.expect_err(text))
}

/// Each text gives the line beside it.
fn assert_lines(cases: &[(&str, &str)]) {
    let wrong: Vec<_> = cases
        .iter()
        .map(|(text, expected)| (text, line(text), expected))
        .filter(|(_, said, expected)| said != *expected)
        .map(|(text, said, expected)| format!("{text}\n  {said}\n  instead of {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unknown_keys_are_refused_with_the_nearest() {
    assert_lines(&[
        (
            "lisen = [\"127.0.0.1:80\"]",
            "f:1: lisen: unknown key; did you mean `listen`? The keys here are listen, listen_tls, root, user, workers, uplink, log, limits, admin, tls, proxy_protocol, compress, compression, site, proxy, upstream, route, class, late",
        ),
        (
            "root = \"/x\"\nrate = \"1mbit\"",
            "f:2: rate: unknown key here; there is `uplink.rate`. The keys here are listen, listen_tls, root, user, workers, uplink, log, limits, admin, tls, proxy_protocol, compress, compression, site, proxy, upstream, route, class, late",
        ),
        (
            "[uplink]\n\nrates = \"1mbit\"",
            "f:3: uplink.rates: unknown key; did you mean `rate`? The keys here are rate, policy, share_by, mechanism, bands, ahead, device, replace_qdisc, streams, trust_priority",
        ),
    ]);
}

#[test]
fn values_that_do_not_fit_are_told_what_would() {
    assert_lines(&[
        (
            "listen = \"127.0.0.1:80\"",
            "f:1: listen: the text \"127.0.0.1:80\" does not fit; write a list in brackets, such as [\"...\"]",
        ),
        (
            "listen = [\n  \"127.0.0.1:80\",\n  \"localhost\",\n]",
            "f:3: listen: `localhost` is not an address with a port; write for example 127.0.0.1:8080, 0.0.0.0:80 or [::]:8080",
        ),
        (
            "root = 5",
            "f:1: root: the value `5` does not fit; write a path in quotes",
        ),
        (
            "[limits]\ngrace_seconds = \"ten\"",
            "f:2: limits.grace_seconds: `ten` is not a length of time; write for example 120, 2.5s, 500ms, 10m or 1h30m",
        ),
        (
            "[uplink]\nreplace_qdisc = 1",
            "f:2: uplink.replace_qdisc: the value `1` does not fit; write true or false",
        ),
        (
            "[uplink]\npolicy = \"fastest\"",
            "f:2: uplink.policy: `fastest` is not a policy; choose one of fair, fcfs, srpt, psjf, las, fsp, swift, fcf",
        ),
        (
            "[uplink]\nahead = \"5 packets\"",
            "f:2: uplink.ahead: `5 packets` is not an amount ahead of the link; write packets (\"5\"), bytes (\"30kB\") or time (\"20ms\")",
        ),
        (
            "[uplink]\nbands = \"two\"",
            "f:2: uplink.bands: the text \"two\" does not fit; write a whole number from 0 to 255",
        ),
        (
            "[uplink]\nshare_by = \"clients\"",
            "f:2: uplink.share_by: unknown value `clients`; did you mean \"client\"? Choose one of client",
        ),
        (
            "[uplink]\nmechanism = \"band\"",
            "f:2: uplink.mechanism: unknown value `band`; did you mean \"bands\"? Choose one of auto, user-space, bands, both, none",
        ),
        (
            "[[tls]]\ncertificate = \"a.pem\"",
            "f:1: tls.key: missing; it has no default",
        ),
        (
            "[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\nlimit = 0",
            "f:4: upstream.limit: \"0\" cannot be; write a whole number from 1 on, or \"auto\"",
        ),
        (
            "[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\nlimit = \"automatic\"",
            "f:4: upstream.limit: \"automatic\" cannot be; write a whole number from 1 on, or \"auto\"",
        ),
        (
            "[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\norder = \"random\"",
            "f:4: upstream.order: unknown value `random`; choose one of fcfs, fifo, expected, shortest, longest, boost, hrrn, nudge, auto",
        ),
        (
            "[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\nlimit = 8.5",
            "f:4: upstream.limit: write a whole number from 1 on, or \"auto\"",
        ),
        (
            "[[class]]\nname = \"a\"\ntarget = {}",
            "f:3: class.target: it names no target; write target = { mean = \"30ms\" }, or leave it out",
        ),
        (
            "late = \"never\"",
            "f:1: late: unknown value `never`; choose one of by-priority, in-proportion",
        ),
    ]);
}

#[test]
fn headers_for_upstreams_that_do_not_fit_are_told_what_would() {
    assert_lines(&[
        (
            "root = \"/x\"\n[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\nheaders = { Connection = \"1\" }",
            "f:5: upstream.headers.Connection: the server sets connection itself: leave it out",
        ),
        (
            "root = \"/x\"\n[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\nheaders = { Transfer-Encoding = \"1\" }",
            "f:5: upstream.headers.Transfer-Encoding: the server sets transfer-encoding itself: leave it out",
        ),
        (
            "root = \"/x\"\n[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\nheaders = { content_length = \"1\" }",
            "f:5: upstream.headers.content_length: the server sets content_length itself: leave it out",
        ),
        (
            "root = \"/x\"\n[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\nheaders = { TE = \"1\" }",
            "f:5: upstream.headers.TE: the server sets te itself: leave it out",
        ),
        (
            "root = \"/x\"\n[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\nheaders = { Trailer = \"1\" }",
            "f:5: upstream.headers.Trailer: the server sets trailer itself: leave it out",
        ),
        (
            "root = \"/x\"\n[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\nheaders = { Upgrade = \"1\" }",
            "f:5: upstream.headers.Upgrade: the server sets upgrade itself: leave it out",
        ),
        (
            "root = \"/x\"\n[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\nheaders = { Keep-Alive = \"1\" }",
            "f:5: upstream.headers.Keep-Alive: the server sets keep-alive itself: leave it out",
        ),
        (
            "root = \"/x\"\n[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\nheaders = { Proxy-Authorization = \"1\" }",
            "f:5: upstream.headers.Proxy-Authorization: the server sets proxy-authorization itself: leave it out",
        ),
        (
            "root = \"/x\"\n[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\nheaders = { Host = \"c\" }",
            "f:5: upstream.headers.Host: set upstream.host instead: it is the Host that servers get",
        ),
        (
            "root = \"/x\"\n[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\nheaders = { X-A = \"1\", x-a = \"2\" }",
            "f:5: upstream.headers.x-a: x-a is given twice: names of headers are the same in capitals",
        ),
        (
            "root = \"/x\"\n[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\nheaders = { X-A = \"\\u007f\" }",
            "f:5: upstream.headers.X-A: the value of x-a must be printable ASCII in one line",
        ),
        (
            "root = \"/x\"\n[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\nheaders = { \"X A\" = \"1\" }",
            "f:5: upstream.headers.X A: \"X A\" is not a name of a header: use letters, digits and dashes, as in X-Frame-Options",
        ),
        (
            "root = \"/x\"\n[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\nheaders = { X-A = \"$remote_user\" }",
            "f:5: upstream.headers.X-A: `$remote_user` is no variable; there are $host, $scheme, $remote_addr, $request_uri, $server_port and $http_NAME (a header of the client), and $$ is a dollar",
        ),
        (
            "root = \"/x\"\n[[upstream]]\nname = \"a\"\nservers = [\"http://b\"]\ntell_wait = [\"server\"]\nheaders = { X-Queue-Ms = \"1\" }",
            "f:6: upstream.headers.X-Queue-Ms: tell_wait = [\"server\"] sets it; leave one of the two out",
        ),
        (
            "root = \"/x\"\n[[upstream]]\nname = \"a\"\nservers = [\"fastcgi://b\"]\nfastcgi = { root = \"/r\" }\nheaders = { X_A = \"1\" }",
            "f:6: upstream.headers.X_A: scripts get no header with `_` in its name; write \"x-a\", which is the same to them",
        ),
    ]);
}

#[test]
fn what_is_not_toml_is_said_to_be() {
    assert_lines(&[
        (
            "root = \"/a\"\nroot = \"/b\"",
            "f:2: root: given twice; keep one of them",
        ),
        ("listen = [", "f:1: syntax: unclosed array; expected `]`"),
        (
            "root = /srv",
            "f:1: syntax: string values must be quoted; expected literal string",
        ),
    ]);
}

#[test]
fn what_is_wrong_together_is_found() {
    assert_lines(&[
        (
            "",
            "f: root: nothing to serve; name a directory: root = \"/srv/www\", or add [[site]] or [[route]]",
        ),
        (
            "root = \"/a\"\n[[site]]\nroot = \"/b\"",
            "f:1: root: belongs to the only site, and there is [[site]] too; move it into a [[site]] of its own",
        ),
        (
            "root = \"/a\"\nlisten_tls = [\"[::]:443\"]",
            "f:2: listen_tls: needs a certificate; add [[tls]] with certificate = \"chain.pem\" and key = \"key.pem\", or give --certificate and --key",
        ),
        (
            "root = \"/a\"\n[[class]]\nname = \"a\"\ntls_name = [\"x.org\"]",
            "f:4: class.tls_name: no client names it, as no address speaks TLS; add listen_tls and [[tls]]",
        ),
        (
            "root = \"/a\"\nlisten = [\"[::]:80\", \"127.0.0.1:80\",\n\"[::]:80\"]",
            "f:3: listen: [::]:80 is named twice; keep one of them",
        ),
        (
            "root = \"/a\"\nlisten = [\"127.0.0.1:80\", \"[::]:80\",\n\"0.0.0.0:80\"]",
            "f:3: listen: 0.0.0.0:80 and 127.0.0.1:80 of listen exclude each other; keep one of them, or choose another port",
        ),
        (
            "root = \"/a\"\nlisten = [\"127.0.0.1:80\"]\n[admin]\nlisten = \"127.0.0.1:80\"",
            "f:4: admin.listen: 127.0.0.1:80 is that of listen; choose another port",
        ),
        (
            "root = \"/a\"\n[uplink]\nmechanism = \"bands\"",
            "f:3: uplink.mechanism: means nothing without a rate; add uplink.rate = \"100mbit\", or remove this",
        ),
        (
            "root = \"/a\"\n[uplink]\nbands = 2",
            "f:3: uplink.bands: means nothing without a rate; add uplink.rate = \"100mbit\", or remove this",
        ),
        (
            "root = \"/a\"\n[uplink]\nrate = \"1mbit\"\nmechanism = \"bands\"\nbands = 9",
            "f:5: uplink.bands: out of range; write 2 (cut at the median) to 8",
        ),
        (
            "root = \"/a\"\n[uplink]\nrate = \"1mbit\"\nbands = 2",
            "f:4: uplink.bands: this sets the number of the kernel's bands; add uplink.mechanism = \"bands\", or remove this",
        ),
        (
            "root = \"/a\"\n[uplink]\nrate = \"1mbit\"\nmechanism = \"bands\"\nahead = \"5\"",
            "f:5: uplink.ahead: nothing is held back without turns; choose uplink.mechanism \"user-space\" or \"both\", or remove this",
        ),
        (
            "root = \"/a\"\n[uplink]\nshare_by = \"client\"",
            "f:3: uplink.share_by: means nothing without a rate; add uplink.rate = \"100mbit\", or remove this",
        ),
        (
            "root = \"/a\"\n[uplink]\nrate = \"1mbit\"\nmechanism = \"bands\"\nshare_by = \"client\"",
            "f:5: uplink.share_by: clients are told apart only where responses take turns; choose uplink.mechanism \"user-space\" or \"both\", or remove this",
        ),
        (
            "root = \"/a\"\n[uplink]\nrate = \"1mbit\"\nmechanism = \"none\"\nshare_by = \"client\"",
            "f:5: uplink.share_by: clients are told apart only where responses take turns; choose uplink.mechanism \"user-space\" or \"both\", or remove this",
        ),
        (
            "[proxy_protocol]\nfrom = [\"10.0.0.0/33\"]",
            "f:2: proxy_protocol.from: 10.0.0.0/33: the number after the slash is out of range; write 0 to 32 bits",
        ),
    ]);
}

#[test]
fn ports_the_system_chooses_may_be_asked_for_twice() {
    let text = "root = \"/a\"\nlisten = [\"127.0.0.1:0\", \"127.0.0.1:0\"]";
    assert_eq!(Config::parse(text).unwrap().check(), Ok(()));
}

#[test]
fn values_and_defaults() {
    let config = Config::parse("root = \"www\"\n[uplink]\nstreams = \"size\"").unwrap();
    assert_eq!(config.uplink.streams, StreamOrder::Size);
    assert!(config.uplink.trust_priority);
    assert_eq!(config.uplink.policy().as_str(), "srpt");
    assert_eq!(
        config.clear_addresses(),
        ["127.0.0.1:8080".parse().unwrap()]
    );
    let only_tls = Config::parse("listen_tls = [\"[::]:443\"]").unwrap();
    assert_eq!(only_tls.clear_addresses(), []);
    assert_eq!(only_tls.tls_addresses(), ["[::]:443".parse().unwrap()]);
}

#[test]
fn relative_paths_are_beside_the_file() {
    let text = "root = \"www\"\n[[tls]]\ncertificate = \"a.pem\"\nkey = \"/k/a.key\"\nclient_ca = \"ca.pem\"\n\
                [log]\naccess = \"access.log\"";
    let mut config = Config::parse(text).unwrap();
    config.relative_to(Path::new("/etc/sooner"));
    let root = config.root.unwrap().into_inner();
    assert_eq!(root, Path::new("/etc/sooner/www"));
    let tls = &config.tls[0];
    assert_eq!(tls.certificate.get_ref(), Path::new("/etc/sooner/a.pem"));
    assert_eq!(tls.key.get_ref(), Path::new("/k/a.key"));
    let client_ca = tls.client_ca.as_ref().unwrap().get_ref();
    assert_eq!(client_ca, Path::new("/etc/sooner/ca.pem"));
    assert_eq!(
        config.log.destination().to_string(),
        "/etc/sooner/access.log"
    );
}

#[test]
fn what_a_reload_cannot_change_is_named() {
    let parse = |text: &str| Config::parse(text).unwrap();
    let old = parse("listen = [\"127.0.0.1:80\"]\nuser = \"a\"\n[uplink]\nrate = \"1mbit\"");
    assert!(old.fixed_keys_changed(&old.clone()).is_empty());
    let moved = parse(
        "listen = [\"127.0.0.1:80\"]\n\n\nuser = \"a\"\n[uplink]\nrate = \"1mbit\"\npolicy = \"srpt\"",
    );
    assert!(old.fixed_keys_changed(&moved).is_empty());
    let new = parse("listen = [\"127.0.0.1:81\"]\n[uplink]\nrate = \"2mbit\"\npolicy = \"las\"");
    assert_eq!(
        old.fixed_keys_changed(&new),
        ["listen", "user", "uplink.rate", "uplink.policy"]
    );
    let link = |more: &str| {
        parse(&format!(
            "root = \"/a\"\n[uplink]\nrate = \"1mbit\"\nmechanism = \"both\"\n{more}"
        ))
    };
    assert_eq!(
        link("").fixed_keys_changed(&link("bands = 2\nahead = \"5\"")),
        ["uplink.bands", "uplink.ahead"]
    );
    assert!(link("").fixed_keys_changed(&link("bands = 8")).is_empty());
}

#[test]
fn certificates_nobody_is_shown_are_remarked() {
    let text = "root = \"/a\"\n[[tls]]\ncertificate = \"a\"\nkey = \"b\"";
    let config = Config::parse(text).unwrap();
    let remarks: Vec<Misconfigured> = config.remarks();
    assert_eq!(remarks.len(), 1);
    assert!(remarks[0].message.contains("listen_tls"));
    // Before a start it is not known whether there will be a socket.
    assert!(
        remarks[0]
            .message
            .contains("a socket that the service manager passes counts too")
    );
    assert_eq!(config.remarks_of_server(true), []);
    let without = config.remarks_of_server(false);
    assert_eq!(without.len(), 1);
    assert!(!without[0].message.contains("service manager"));
}

#[test]
fn settings_of_compression_that_nothing_uses_are_remarked() {
    for (lines, count) in [
        ("[compression]\ngzip_level = 9", 1),
        ("compress = true\n[compression]\ngzip_level = 9", 0),
        ("[compression]\n[[site]]\nroot = \"/b\"\ncompress = true", 0),
        (
            "[compression]\n[[route]]\npath = \"/\"\nupstream = \"a\"\ncompress = true",
            0,
        ),
        ("", 0),
    ] {
        let remarks = Config::parse(lines).unwrap().remarks();
        assert_eq!(remarks.len(), count, "{lines}");
    }
}

proptest! {
    #[test]
    fn any_text_is_values_or_one_line(
        parts in prop::collection::vec(
            prop_oneof![
                prop::sample::select(keys()),
                "[\\[\\]={}\"'.,\n# 0-9a-z-]{0,6}",
                ".{0,8}",
            ],
            0..12,
        ),
    ) {
        let source = SourceText { name: "f".into(), text: parts.concat(), flags: &[] };
        if let Err(mistake) = Config::parse(&source.text).and_then(|config| config.check()) {
            let line = source.render(&mistake);
            prop_assert!(line.starts_with("f:") && line.lines().count() == 1, "{}", line);
        }
    }
}

#[test]
fn all_mistakes_of_a_text_are_told_at_once() {
    let keys = |text: &str| -> Vec<String> {
        let mistakes = Config::mistakes(text).into_iter();
        mistakes.map(|mistake| mistake.key).collect()
    };
    let text =
        "lisen = 1\nroot = 5\n[uplink]\npolicy = \"x\"\n[[upstream]]\nname = \"a\"\nserver = 1\n";
    assert_eq!(
        keys(text),
        ["lisen", "root", "uplink.policy", "upstream.server"]
    );
    let text = "[limits]\nhead_bytes = 1\nidle_seconds = 0\n[uplink]\nahead = \"5\"\n";
    assert_eq!(
        keys(text),
        [
            "limits.head_bytes",
            "limits.idle_seconds",
            "uplink.ahead",
            "root"
        ]
    );
    assert_eq!(keys("root = \"/x\""), [""; 0]);
}
