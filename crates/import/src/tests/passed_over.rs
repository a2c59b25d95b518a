//! What PgBouncer passes over with a warning becomes a comment, and what it says twice stands once.

use super::*;

#[test]
fn places_that_are_said_twice_stand_once() {
    for (addresses, expected) in [
        ("localhost, 127.0.0.1", "\"127.0.0.1:6432\", \"[::1]:6432\""),
        ("127.0.0.1, localhost", "\"127.0.0.1:6432\", \"[::1]:6432\""),
        ("127.0.0.1,127.0.0.1", "\"127.0.0.1:6432\""),
        ("*, 127.0.0.1", "\"0.0.0.0:6432\", \"[::]:6432\""),
        ("::1, *", "\"0.0.0.0:6432\", \"[::]:6432\""),
        ("localhost, 0.0.0.0", "\"[::1]:6432\", \"0.0.0.0:6432\""),
    ] {
        let text = format!(
            "[databases]\nshop = host=db\n[pgbouncer]\nauth_type=trust\nauth_file=users.txt\nunix_socket_dir=\nlisten_addr = {addresses}\n"
        );
        let imported = result(&[("p.ini", &text), ("users.txt", "\"ann\" \"\"\n")]);
        let text = imported.unwrap_or_else(|error| panic!("{addresses}: {error}"));
        let listen = format!("listen = [{expected}]");
        assert!(text.text.contains(&listen), "{addresses}: {}", text.text);
        let gone = text.text.lines().filter(|line| line.contains("stands for"));
        assert_eq!(gone.count(), 1, "{addresses}: {}", text.text);
    }
}

/// PgBouncer 1.18 says "could not parse hba config line" of each, and goes on.
#[test]
fn lines_of_a_pg_hba_that_pgbouncer_cannot_read_are_comments() {
    let ini = "[databases]\na = host=x\n[pgbouncer]\nauth_type=hba\nauth_file=users.txt\nauth_hba_file=hba\n";
    for line in [
        "hots all all x y",
        "host all all 127.0.0.1 md5",
        "host all @none.txt 127.0.0.1/32 md5",
        "host all all 127.0.0.1/32 foo",
        "host all all 10.0.0.0/33 md5",
        "host all",
        "host all all 127.0.0.1/32",
        "host all \"abc 10.0.0.0/8 md5",
    ] {
        let hba = format!("{line}\nlocal all all md5\n");
        let files = [
            ("p.ini", ini),
            ("hba", &hba),
            ("users.txt", "\"ann\" \"x\"\n"),
        ];
        let imported = result(&files).unwrap_or_else(|error| panic!("{line}: {error}"));
        let comment = format!("# not carried over: hba:1: {line}: ");
        assert!(imported.text.contains(&comment), "{}", imported.text);
        let config = Config::parse(&imported.text).unwrap();
        assert_eq!(config.rule.len(), 2, "{}", imported.text);
    }
    // PgBouncer reads this one, and the gate could not say the same.
    let hba = "host all all 10.0.0.0 255.0.255.0 reject\n";
    let said = mistake(&[("p.ini", ini), ("hba", hba), ("users.txt", "")]);
    assert!(said.contains("mask with gaps"), "{said}");
}

/// As in PostgreSQL: a rule for it and others is one for the others.
#[test]
fn replication_is_passed_over_and_not_the_databases_beside_it() {
    for (hba, expected) in [
        (
            "host replication,payroll all all reject\nhost all all all md5",
            "payroll - 2 None Reject|- - 2 None Md5",
        ),
        ("host all,replication all all md5", "- - 2 None Md5"),
        (
            "host replication,sameuser ann all md5",
            "ann ann 2 None Md5",
        ),
        ("host replication,replication all all md5", ""),
        (
            "host replication,\"replication\" all all md5",
            "replication - 2 None Md5",
        ),
    ] {
        assert_eq!(rules(hba), expected, "{hba}");
    }
}

/// PgBouncer reads the entry of all databases only when a client comes.
#[test]
fn an_entry_of_all_databases_that_pgbouncer_cannot_read_is_a_comment() {
    let text = "[databases]\na = host=x\n* = host=y # trailing\n[pgbouncer]\nauth_type=trust\nauth_file=users.txt\n";
    has(
        text,
        &[
            "name = \"a\"",
            "# not carried over: * = host=y # trailing: ",
        ],
    );
    let named = "[pgbouncer]\n[databases]\na = host=x # trailing\n";
    assert!(mistake(&[("p.ini", named)]).starts_with("p.ini:3: "));
}

#[test]
fn the_remark_on_pools_has_the_sizes_that_there_were() {
    for (databases, expected) in [
        ("a = host=x pool_size=15", "PgBouncer had a pool of 15 for"),
        (
            "a = host=x pool_size=15\nb = host=x",
            "PgBouncer had a pool of 15 to 20 for",
        ),
        ("a = host=x", "PgBouncer had a pool of 20 for"),
    ] {
        let text = format!("[databases]\n{databases}\n[pgbouncer]\nauth_file=users.txt\n");
        let imported = result(&[("p.ini", &text), ("users.txt", "\"ann\" \"x\"\n")]);
        let text = imported.unwrap().text;
        assert!(text.contains(expected), "{text}");
    }
}

/// Versions of PgBouncer differ in some defaults.
#[test]
fn defaults_of_any_version_are_no_remark_however_they_are_written() {
    for setting in [
        "server_check_query = select 1",
        "server_check_query = SELECT 1;",
        "server_check_query = <empty>",
        "server_reset_query = discard all",
        "client_tls_protocols = secure",
        "client_tls_ciphers = fast",
        "client_tls_ciphers = default",
        "server_tls_ciphers = fast",
        "query_timeout = 0.0",
        "reserve_pool_timeout = 5.0",
        "dns_max_ttl = 15s",
        "disable_pqexec = 00",
    ] {
        let text = format!("[databases]\na = host=x\n[pgbouncer]\n{setting}\n");
        let imported = result(&[("p.ini", &text)]).unwrap();
        assert_eq!(imported.left_out, 0, "{setting}: {}", imported.text);
    }
    for setting in [
        "server_check_query = select 2",
        "client_tls_ciphers = HIGH",
        "client_tls_protocols = tlsv1.3",
        "query_timeout = 0.5",
        "disable_pqexec = 1",
    ] {
        let text = format!("[databases]\na = host=x\n[pgbouncer]\n{setting}\n");
        let imported = result(&[("p.ini", &text)]).unwrap();
        assert_eq!(imported.left_out, 1, "{setting}: {}", imported.text);
    }
}
