//! TLS and HTTP/2 against a server of other people's making.

use super::nginx::Nginx;
use super::replay::{assert_valid_or_late, block_on, offered, options_for, run, trace};
use sooner_load::closed::report::ClosedRun;
use sooner_load::closed::{self, ClosedOptions};
use sooner_load::model::Model;
use sooner_load::patience::Patience;
use sooner_load::pool::Reuse;
use sooner_load::replay::{self, Replay, ReplayOptions};
use sooner_load::socket::SocketOptions;
use sooner_load::target::Target;
use sooner_load::tls::TlsOptions;
use sooner_stats::Verdict;
use sooner_workload::{VisitLength, Visits, mkroot};
use std::num::NonZeroU32;
use std::time::Duration;

/// nginx with the files of the test's trace; `None` prints why.
fn nginx() -> Option<(Nginx, tempfile::TempDir)> {
    let root = tempfile::tempdir().unwrap();
    // nginx's worker is not the user that made the folder.
    open_to_everybody(root.path());
    mkroot(&trace(), &root.path().join("root")).unwrap();
    Some((Nginx::start(&root.path().join("root"))?, root))
}

fn open_to_everybody(folder: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn insecure(http2: bool) -> TlsOptions {
    TlsOptions {
        insecure: true,
        http2,
        ..TlsOptions::default()
    }
}

fn reuse(requests_per_connection: u32, http2_streams: Option<u32>) -> Reuse {
    Reuse {
        requests_per_connection: NonZeroU32::new(requests_per_connection).unwrap(),
        http2_streams: http2_streams.and_then(NonZeroU32::new),
    }
}

fn replay_over(url: &str, tls: &TlsOptions, reuse: Reuse) -> Replay {
    run(&ReplayOptions {
        reuse,
        ..options_for(Target::resolve(url, tls).unwrap())
    })
}

/// All answered, the load as requested.
fn assert_sound(replay: &Replay) {
    assert_valid_or_late(replay);
    assert_eq!((replay.run.all.errors, replay.run.incompletes), (0, 0));
    let realised = replay.run.realised_load;
    assert!((realised / 0.8 - 1.0).abs() < 0.011, "realised {realised}");
}

#[test]
fn every_connection_pays_its_handshake_unless_sessions_are_resumed() {
    let Some((nginx, _root)) = nginx() else {
        return;
    };
    let replay = replay_over(&nginx.secured(), &insecure(false), reuse(1, None));
    assert_sound(&replay);
    let whole_bytes = replay.costs.wire.opening_bytes;
    // A certificate of this kind and two tickets.
    assert!((800..4000).contains(&whole_bytes), "{whole_bytes}");
    assert_eq!(replay.run.protocol.as_deref(), Some("HTTP/1.1 over TLS"));
    let resume = TlsOptions {
        resume: true,
        ..insecure(false)
    };
    let resumed = replay_over(&nginx.secured(), &resume, reuse(1, None));
    assert_sound(&resumed);
    let resumed_bytes = resumed.costs.wire.opening_bytes;
    assert!(
        resumed_bytes < whole_bytes * 3 / 4,
        "{resumed_bytes} of {whole_bytes}"
    );
}

#[test]
fn connections_are_kept_over_tls_too() {
    let Some((nginx, _root)) = nginx() else {
        return;
    };
    assert_sound(&replay_over(
        &nginx.secured(),
        &insecure(false),
        reuse(5, None),
    ));
}

#[test]
fn aborts_over_tls_are_no_errors() {
    let Some((nginx, _root)) = nginx() else {
        return;
    };
    let patience = Some(Patience {
        limit: Duration::from_millis(1),
        reloads: 2,
    });
    let replay = run(&ReplayOptions {
        patience,
        ..options_for(Target::resolve(&nginx.secured(), &insecure(false)).unwrap())
    });
    let all = &replay.run.all;
    assert!(all.aborts > 0, "a handshake takes longer");
    assert_eq!((all.errors, all.completed + all.given_up), (0, all.n));
}

#[test]
fn http_2_over_tls_on_connections_of_one_request_and_of_many() {
    let Some((nginx, _root)) = nginx() else {
        return;
    };
    let url = nginx.secured_http2();
    for (requests, streams) in [(1, 1), (5, 1), (u32::MAX, 10)] {
        let replay = replay_over(&url, &insecure(true), reuse(requests, Some(streams)));
        assert_sound(&replay);
        assert_eq!(replay.run.protocol.as_deref(), Some("HTTP/2 over TLS"));
        let head_bytes = replay.costs.head_bytes;
        assert!((10..300).contains(&head_bytes), "head of {head_bytes}");
    }
}

#[test]
fn visits_have_http_2_connections_of_their_own() {
    let Some((nginx, _root)) = nginx() else {
        return;
    };
    let tls = TlsOptions {
        http2: true,
        ..TlsOptions::default()
    };
    let length = VisitLength::Exactly(NonZeroU32::new(3).unwrap());
    let visits = Visits {
        length,
        think_s: 0.02,
    };
    let replay = run(&ReplayOptions {
        model: Model::PartlyOpen(offered(), visits),
        reuse: reuse(u32::MAX, Some(1)),
        ..options_for(Target::resolve(&nginx.clear_http2(), &tls).unwrap())
    });
    assert_sound(&replay);
}

#[test]
fn http_2_in_clear_text_by_prior_knowledge() {
    let Some((nginx, _root)) = nginx() else {
        return;
    };
    let replay = replay_over(
        &nginx.clear_http2(),
        &TlsOptions {
            http2: true,
            ..TlsOptions::default()
        },
        reuse(1, Some(1)),
    );
    assert_sound(&replay);
    let opening_bytes = replay.costs.wire.opening_bytes;
    assert!((1..400).contains(&opening_bytes), "{opening_bytes}");
}

#[test]
fn who_is_trusted_is_said_beforehand() {
    let Some((nginx, _root)) = nginx() else {
        return;
    };
    let tls = TlsOptions {
        authorities: Some(nginx.certificate()),
        ..TlsOptions::default()
    };
    assert_sound(&replay_over(&nginx.secured(), &tls, reuse(1, None)));
    let stranger = rcgen::generate_simple_self_signed(["other".to_owned()]).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), stranger.cert.pem()).unwrap();
    let tls = TlsOptions {
        authorities: Some(file.path().into()),
        ..TlsOptions::default()
    };
    let target = Target::resolve(&nginx.secured(), &tls).unwrap();
    let error = block_on(replay::run(&options_for(target), &mut |_| ())).unwrap_err();
    assert!(error.to_string().contains("--insecure"), "{error}");
}

#[test]
fn a_server_without_http_2_is_told_apart() {
    let Some((nginx, _root)) = nginx() else {
        return;
    };
    // nginx of some versions speaks HTTP/2 on every port of a server that has it on one.
    let target = Target::resolve(&nginx.secured(), &insecure(true)).unwrap();
    let options = ReplayOptions {
        reuse: reuse(1, Some(1)),
        ..options_for(target)
    };
    if let Err(error) = block_on(replay::run(&options, &mut |_| ())) {
        assert!(error.to_string().contains("HTTP/2"), "{error}");
    }
}

fn closed_over(url: &str, tls: &TlsOptions, http2_streams: Option<u32>) -> ClosedRun {
    let url = format!("{url}/objects/3.html");
    let options = ClosedOptions {
        asked: closed::gets(vec![Target::resolve(&url, tls).unwrap()], tls.http2).unwrap(),
        connections: 2,
        sources: Vec::new(),
        http2_streams: http2_streams.and_then(NonZeroU32::new),
        duration: Duration::from_secs(1),
        timeout: None,
        expectations: Vec::new(),
        socket: SocketOptions::default(),
    };
    block_on(closed::run(&options, &mut |_| ())).unwrap().run
}

#[test]
fn closed_loops_speak_tls_and_http_2() {
    let Some((nginx, _root)) = nginx() else {
        return;
    };
    for (url, http2_streams) in [
        (nginx.secured(), None),
        (nginx.secured_http2(), Some(5)),
        (nginx.clear_http2(), Some(5)),
    ] {
        let run = closed_over(&url, &insecure(http2_streams.is_some()), http2_streams);
        assert_eq!(run.all.errors, 0, "{url}: {}", run.verdict_reason);
        assert!(run.all.completed > 0);
        // It may be the bottleneck, and then it says so.
        assert!(run.verdict == Verdict::Valid || run.verdict_reason.contains("of a core"));
        let goodput = run.requests_per_sec * 8.0 * 2000.0;
        assert!((run.goodput_bits_per_sec / goodput - 1.0).abs() < 0.1);
    }
}
