//! Settings as commands that give them to a server connection.

use super::*;
use crate::wire::Version;

fn requested(parameters: &[(&str, &str)]) -> Result<RequestedParameters, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).into(), (*value).into());
    RequestedParameters::read(&Startup {
        version: Version::V3_0,
        parameters: parameters.iter().map(owned).collect(),
    })
}

fn settings(pairs: &[(&str, &str)]) -> Parameters {
    let bytes =
        |(name, value): &(&str, &str)| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
    pairs.iter().map(bytes).collect()
}

/// The commands for a client to which this was reported.
fn follow(
    requested: &RequestedParameters,
    seen: &Parameters,
    server: &ServerState,
) -> Option<String> {
    let client = ClientState {
        reported: seen.clone(),
        ..ClientState::default()
    };
    commands_to_apply(requested, &client, server).map(|commands| commands.sql)
}

#[test]
fn what_nobody_may_ask_for_is_said_in_the_servers_words() {
    let told = |options: &str| {
        let requested = requested(&[("user", "ann"), ("options", options)]).unwrap();
        requested
            .forbidden("ann")
            .map(|(code, words)| format!("{code} {words}"))
    };
    let other = "42501 permission denied to set session authorization \"bob\"";
    assert_eq!(told("-c session_authorization=bob").as_deref(), Some(other));
    assert_eq!(told("--Session-Authorization=bob").as_deref(), Some(other));
    assert_eq!(told("-c session_authorization=ann"), None);
    let fixed = "55P02 parameter \"is_superuser\" cannot be changed";
    assert_eq!(told("-c IS_SUPERUSER=on").as_deref(), Some(fixed));
    assert_eq!(told("-c search_path=x -c role=bob"), None);
}

#[test]
fn who_asks_for_what_is_known_need_not_wait_for_a_server() {
    let initial = settings(&[
        ("application_name", ""),
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO, MDY"),
    ]);
    let told =
        |parameters: &[(&str, &str)]| requested(parameters).unwrap().reported_at_start(&initial);
    assert_eq!(told(&[("user", "ann")]), Some(initial.clone()));
    let psql = told(&[("application_name", "psql"), ("client_encoding", "utf-8")]).unwrap();
    assert_eq!(psql[&b"application_name"[..]], b"psql");
    assert_eq!(psql[&b"client_encoding"[..]], b"UTF8");
    assert!(told(&[("DateStyle", "ISO, MDY")]).is_some());
    for asked in [
        ("DateStyle", "ISO"),
        ("client_encoding", "LATIN1"),
        ("application_name", "caf\u{e9}"),
        ("search_path", "x"),
    ] {
        assert_eq!(told(&[asked]), None, "{asked:?}");
    }
}

#[test]
fn clients_that_differ_in_their_names_alone_ask_the_same() {
    let asks = |parameters: &[(&str, &str)]| requested(parameters).unwrap().question();
    let digits = ("extra_float_digits", "3");
    let first = asks(&[digits, ("application_name", "one")]);
    let second = [("Application_Name", "other"), ("EXTRA_float_digits", "3")];
    assert_eq!(asks(&second), first);
    for other in [
        &[digits][..],
        &[digits, ("application_name", "caf\u{e9}")],
        &[("extra_float_digits", "2"), ("application_name", "one")],
        &[digits, ("application_name", "one"), ("search_path", "")],
    ] {
        assert_ne!(asks(other), first, "{other:?}");
    }
    // Where a name ends and a value begins is seen.
    assert_ne!(asks(&[("a.b", "cd")]), asks(&[("a.bc", "d")]));
    let told = settings(&[("application_name", "one"), ("DateStyle", "ISO, MDY")]);
    let own = settings(&[("application_name", "other"), ("DateStyle", "ISO, MDY")]);
    assert_eq!(requested(&second).unwrap().reported_like(&told), own);
    assert_eq!(requested(&[digits]).unwrap().reported_like(&told), told);
    // What is not taken as it is has been reported as the server writes it.
    let replaced = settings(&[("application_name", "caf?")]);
    let written = requested(&[("application_name", "caf\u{e9}")]).unwrap();
    assert_eq!(written.reported_like(&replaced), replaced);
}

#[test]
fn half_a_setting_is_not_completed_by_another_client() {
    let server = ServerState::new(1, settings(&[("DateStyle", "SQL, DMY")]));
    let requested = requested(&[("user", "ann"), ("DateStyle", "ISO")]).unwrap();
    assert_eq!(
        follow(&requested, &Parameters::new(), &server).unwrap(),
        "RESET \"DateStyle\";SELECT pg_catalog.set_config(E'DateStyle',E'ISO',false)"
    );
    let seen = settings(&[("DateStyle", "ISO, MDY")]);
    assert_eq!(
        follow(&requested, &seen, &server).unwrap(),
        "SELECT pg_catalog.set_config(E'DateStyle',E'ISO, MDY',false)"
    );
}

#[test]
fn what_is_reported_follows_the_client() {
    let reported = [
        ("TimeZone", "UTC"),
        ("server_version", "15.1"),
        ("application_name", ""),
    ];
    let mut server = ServerState::new(1, settings(&reported));
    let requested = requested(&[
        ("user", "ann"),
        ("timezone", "Asia/Tokyo"),
        ("application_name", "it's"),
    ])
    .unwrap();
    let first = follow(&requested, &Parameters::new(), &server).unwrap();
    assert_eq!(
        first,
        "SELECT pg_catalog.set_config(E'TimeZone',E'Asia/Tokyo',false),pg_catalog.set_config(E'application_name',E'it''s',false)"
    );
    // later what was reported last counts
    let seen = settings(&[
        ("TimeZone", "Europe/Rome"),
        ("application_name", ""),
        ("server_version", "14"),
    ]);
    let later = follow(&requested, &seen, &server).unwrap();
    assert_eq!(
        later,
        "SELECT pg_catalog.set_config(E'TimeZone',E'Europe/Rome',false),pg_catalog.set_config(E'application_name',E'',false)"
    );
    server
        .reported
        .insert(b"TimeZone".to_vec(), b"Europe/Rome".to_vec());
    // What it has without a session that set it could not be told from what the client resets.
    assert_eq!(follow(&requested, &seen, &server), Some(later));
    let names = [&b"TimeZone"[..], b"application_name"].map(<[u8]>::to_vec);
    server.set_for_clients.extend(names);
    assert_eq!(follow(&requested, &seen, &server), None);
}

#[test]
fn what_is_not_reported_is_set_and_taken_back() {
    let mut server = ServerState::new(1, settings(&[("TimeZone", "UTC")]));
    let one = requested(&[
        ("extra_float_digits", "2"),
        ("options", "-c statement_timeout=5s --geqo=off"),
    ])
    .unwrap();
    let sql = follow(&one, &Parameters::new(), &server).unwrap();
    assert_eq!(
        sql,
        "SELECT pg_catalog.set_config(E'extra_float_digits',E'2',false),pg_catalog.set_config(E'geqo',E'off',false),pg_catalog.set_config(E'statement_timeout',E'5s',false)"
    );
    server.unreported = one.unreported(&server.reported);
    assert_eq!(follow(&one, &Parameters::new(), &server), None);
    let other = requested(&[("extra_float_digits", "3")]).unwrap();
    let sql = follow(&other, &Parameters::new(), &server).unwrap();
    assert_eq!(
        sql,
        "RESET \"geqo\";RESET \"statement_timeout\";SELECT pg_catalog.set_config(E'extra_float_digits',E'3',false)"
    );
}

#[test]
fn who_a_session_is_is_taken_back_first_and_set_last() {
    let mut server = ServerState::new(1, settings(&[("session_authorization", "ann")]));
    let mut client = ClientState {
        unreported: settings(&[("role", "bob"), ("work_mem", "8MB"), ("zone", "1")]),
        ..ClientState::default()
    };
    let mut follow = |client: &ClientState| {
        let commands = commands_to_apply(&RequestedParameters::default(), client, &server)?;
        server.unreported = commands.unreported;
        Some(commands.sql.replace("pg_catalog.set_config", "set"))
    };
    assert_eq!(
        follow(&client).unwrap(),
        "SELECT set(E'work_mem',E'8MB',false),set(E'zone',E'1',false),set(E'role',E'bob',false)"
    );
    assert_eq!(follow(&client), None);
    client.unreported = settings(&[("role", "bob"), ("session_authorization", "eve")]);
    assert_eq!(
        follow(&client).unwrap(),
        "RESET \"role\";RESET \"work_mem\";RESET \"zone\";SELECT set(E'session_authorization',E'eve',false),set(E'role',E'bob',false)"
    );
    client.unreported = settings(&[("zone", "2")]);
    assert_eq!(
        follow(&client).unwrap(),
        "RESET \"session_authorization\";RESET \"role\";SELECT set(E'zone',E'2',false)"
    );
}

#[test]
fn what_cannot_be_followed_is_refused() {
    for (name, value, said) in [
        ("replication", "database", "replication does not go"),
        ("replication", "Tr", "replication does not go"),
        ("replication", "ON", "replication does not go"),
        (
            "replication",
            "o",
            "invalid value for parameter \"replication\"",
        ),
        (
            "replication",
            "",
            "invalid value for parameter \"replication\"",
        ),
        ("options", "-B 5", "options \"-B 5\""),
        ("options", "-c", "options \"-c\""),
        (
            "standard_conforming_strings",
            "off",
            "standard_conforming_strings",
        ),
        (
            "Standard_Conforming_Strings",
            "f",
            "standard_conforming_strings",
        ),
        (
            "options",
            "-c standard_conforming_strings=off",
            "standard_conforming_strings",
        ),
        (
            "options",
            "--STANDARD-conforming-strings=no",
            "standard_conforming_strings",
        ),
    ] {
        assert!(
            requested(&[(name, value)]).unwrap_err().starts_with(said),
            "{name}"
        );
    }
    for on in ["on", "TRUE", "y", "1"] {
        assert!(requested(&[("standard_conforming_strings", on)]).is_ok());
    }
    for off in ["off", "OF", "F", "no", "0"] {
        assert_eq!(
            requested(&[("replication", off)]),
            Ok(RequestedParameters::default())
        );
    }
    let twice = [("replication", "true"), ("replication", "n")];
    assert_eq!(requested(&twice), Ok(RequestedParameters::default()));
    let spaced = requested(&[("options", r"-c search_path=a\ b,\\c")]).unwrap();
    assert_eq!(spaced.parameters[&b"search_path"[..]], b"a b,\\c");
}

#[test]
fn of_two_values_of_a_setting_the_last_counts_in_any_case() {
    let options = "-c TimeZone=UTC -c TIMEZONE=Asia/Tokyo";
    let of_options = requested(&[("user", "ann"), ("options", options)]).unwrap();
    assert_eq!(of_options.value(b"TimeZone"), Some(&b"Asia/Tokyo"[..]));
    // What stands in the packet itself comes behind all options.
    let both = requested(&[("timezone", "Europe/Rome"), ("options", options)]).unwrap();
    assert_eq!(both.value(b"TimeZone"), Some(&b"Europe/Rome"[..]));
    assert_eq!(both.parameters.len(), 1);
}

/// PostgreSQL reports this setting from 16 on, and every client may set it.
#[test]
fn iterations_of_passwords_follow_the_client() {
    let mut server = ServerState::new(1, settings(&[("scram_iterations", "4096")]));
    let one = requested(&[("options", "-c scram_iterations=10000")]).unwrap();
    let set = "SELECT pg_catalog.set_config(E'scram_iterations',E'10000',false)";
    assert_eq!(follow(&one, &Parameters::new(), &server).unwrap(), set);
    assert!(is_tracked(&server.reported, b"scram_iterations"));
    server.reported = settings(&[("scram_iterations", "10000")]);
    let other = follow(
        &RequestedParameters::default(),
        &settings(&[("scram_iterations", "4096")]),
        &server,
    );
    assert_eq!(other.unwrap(), set.replace("10000", "4096"));
}

#[test]
fn a_literal_means_the_same_in_every_encoding() {
    assert_eq!(literal("sch\u{e9}ma".as_bytes()), "E'sch\\303\\251ma'");
    assert_eq!(literal(b"it's a \\ \x83\x5c"), "E'it''s a \\\\ \\203\\\\'");
}

/// As PostgreSQL 18 reports a search_path.
#[test]
fn what_was_reported_in_another_encoding_is_set_in_the_databases_own() {
    let reported = |encoding: &str, path: &[u8]| {
        let encodings = [("server_encoding", "UTF8"), ("client_encoding", encoding)];
        let mut reported = settings(&encodings);
        reported.insert(b"search_path".to_vec(), path.to_vec());
        reported
    };
    let none = RequestedParameters::default();
    let server = ServerState::new(1, reported("LATIN1", b"public"));
    let set = |seen: Parameters| {
        let sql = follow(&none, &seen, &server).unwrap();
        sql.replace("pg_catalog.", "")
    };
    let path = "set_config(E'search_path',convert_from(decode('e92c2061','hex'),E'LATIN1'),false)";
    assert_eq!(
        set(reported("LATIN1", b"\xe9, a")),
        format!("SELECT {path}")
    );
    let encoding = |name: &str| format!("SELECT set_config(E'client_encoding',E'{name}',false)");
    for (name, seen, path) in [
        ("UTF8", "\u{e9}".as_bytes(), "E'\\303\\251'"),
        ("SQL_ASCII", b"\xe9", "E'\\351'"),
        ("LATIN2", b"shop", "E'shop'"),
    ] {
        let path = format!("set_config(E'search_path',{path},false)");
        assert_eq!(
            set(reported(name, seen)),
            format!("{},{path}", encoding(name))
        );
    }
}
