//! Whole files and what comes of them; the largest one is with the tests of the command.

use super::*;
use proptest::prelude::*;
use sooner_config::Spanned;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

mod passed_over;
mod remarks;

/// What comes of files: the first is the pgbouncer.ini.
fn result(files: &[(&str, &str)]) -> Result<Imported, ImportError> {
    let texts: BTreeMap<_, _> = files
        .iter()
        .map(|(name, text)| (Path::new("/etc/pb").join(name), *text))
        .collect();
    let read = |file: &Path| match texts.get(file) {
        Some(text) => Ok((*text).to_owned()),
        None => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let from = Files {
        folder: Path::new("/etc/pb"),
        read: &read,
    };
    import(files[0].0, &from)
}

/// The lines that a file makes, without remarks but those on what is left out.
fn lines(text: &str) -> Vec<String> {
    let imported = result(&[
        ("p.ini", text),
        ("users.txt", "\"ann\" \"\"\n\"bob\" \"x\"\n"),
    ]);
    let text = imported.unwrap().text;
    let lines = text.lines();
    let told = lines.filter(|line| !line.starts_with("# ") || line.starts_with("# not carried"));
    told.filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

fn has(text: &str, expected: &[&str]) {
    let lines = lines(text);
    for line in expected {
        let found = lines.iter().any(|own| own.starts_with(line));
        assert!(found, "{line}\nis not in\n{}", lines.join("\n"));
    }
}

fn mistake(files: &[(&str, &str)]) -> String {
    result(files).unwrap_err().to_string()
}

#[test]
fn what_is_not_said_is_as_pgbouncer_has_it() {
    assert_eq!(
        lines("[databases]\nshop = host=db\n[pgbouncer]\n"),
        [
            "listen = [\"/tmp/.s.PGSQL.6432\"]",
            "auth = \"md5\"",
            "mode = \"session\"",
            "[limits]",
            "transactions = 20",
            "clients = 100",
            "[[database]]",
            "name = \"shop\"",
            "server = \"postgresql://db:5432\"",
        ]
    );
}

#[test]
fn a_later_value_counts_and_a_section_that_begins_again_forgets() {
    has(
        "[pgbouncer]\nmax_client_conn=5\nmax_client_conn=6\n",
        &["clients = 6"],
    );
    has(
        "[pgbouncer]\nmax_client_conn=5\nauth_file=users.txt\n[databases]\n[pgbouncer]\n",
        &[
            "clients = 100",
            "users = \"/etc/pb/users.txt\"",
            "# not carried over: max_client_conn = 5: PgBouncer forgets it (p.ini:2)",
        ],
    );
    has(
        "[databases] a = host=x\n[pgbouncer]\r\n\tlisten_port\t= 7 \r\n",
        &["listen = [\"/tmp/.s.PGSQL.7\"]", "name = \"a\""],
    );
}

#[test]
fn a_file_that_is_included_stands_in_its_place_and_changes_the_section() {
    let imported = result(&[
        ("p.ini", "[pgbouncer]\n%include sub/more.ini\nb = host=y\n"),
        (
            "sub/more.ini",
            "pool_mode = transaction\n[databases]\na = host=x\n",
        ),
    ]);
    let text = imported.unwrap().text;
    assert!(text.contains("mode = \"transaction\""), "{text}");
    assert!(
        text.contains("name = \"a\"") && text.contains("name = \"b\""),
        "{text}"
    );
}

#[test]
fn bounds_are_of_servers_databases_and_users() {
    has(
        "[databases]\na = host=x pool_size=5\nb = host=x max_db_connections=3\nc = host=y\n* = host=x user=u\n\
         [users]\nann = max_user_connections=0 pool_mode=transaction\n\
         [pgbouncer]\nauth_file=users.txt\ndefault_pool_size=7\nmax_user_connections=9\nmax_db_client_connections=4\n",
        &[
            "transactions = 15",
            "transactions = 3",
            "transactions = 7",
            "clients = 4",
            "name = \"bob\"",
            "transactions = 9",
        ],
    );
}

#[test]
fn a_bound_of_users_that_no_file_names_is_said() {
    for more in [
        "",
        "auth_type=any\nauth_file=users.txt\n",
        "auth_user=u\nauth_file=users.txt\n",
    ] {
        let text = format!(
            "[databases]\na = host=x\n[pgbouncer]\n{more}max_user_connections=7\nmax_user_client_connections=8\n"
        );
        has(
            &text,
            &[
                "# not carried over: max_user_connections = 7: ",
                "# not carried over: max_user_client_connections = 8: ",
            ],
        );
    }
}

#[test]
fn a_socket_file_that_not_all_may_open_is_left_out() {
    let ini = |more: &str| format!("[databases]\na = host=x\n[pgbouncer]\n{more}\n");
    for mode in ["0770", "700", "0755"] {
        let text = ini(&format!(
            "listen_addr = 127.0.0.1\nunix_socket_mode = {mode}"
        ));
        has(
            &text,
            &[
                "listen = [\"127.0.0.1:6432\"]",
                &format!("# not carried over: unix_socket_mode = {mode}: all users of the machine"),
            ],
        );
    }
    for mode in ["0777", "0666"] {
        let text = ini(&format!("unix_socket_mode = {mode}"));
        let listen = "listen = [\"/tmp/.s.PGSQL.6432\"]";
        has(&text, &[listen]);
        let all = lines(&text);
        assert!(
            !all.iter().any(|line| line.contains("unix_socket_mode")),
            "{all:?}"
        );
    }
    // Where nothing else is left, only they may come who prove who they are.
    let alone = "unix_socket_mode = 0700\nauth_file = users.txt\nauth_type = ";
    for method in ["trust", "any"] {
        let own = lines(&ini(&format!("{alone}{method}")));
        let rules: Vec<&String> = own
            .iter()
            .filter(|line| line.starts_with("auth = "))
            .collect();
        assert_eq!(
            rules.first().map(|line| line.as_str()),
            Some("auth = \"reject\""),
            "{own:?}"
        );
    }
    let own = lines(&ini(&format!("{alone}md5")));
    assert!(
        own.iter().all(|line| line != "auth = \"reject\""),
        "{own:?}"
    );
}

#[test]
fn connections_are_bounded_where_every_database_is() {
    let servers = "[databases]\na = host=x max_db_connections=3\nb = host=x\nc = host=y max_db_connections=4\n";
    let all = format!("{servers}[pgbouncer]\nmax_db_connections=5\nuser=pgbouncer\n");
    has(&all, &["connections = 8", "system_user = \"pgbouncer\""]);
    let some = lines(&format!("{servers}[pgbouncer]\n"));
    let is_said = |line: &String| line.starts_with("connections =");
    assert!(!some.iter().any(is_said), "{some:?}");
}

#[test]
fn times_are_whole_and_zero_keeps_its_meaning() {
    has(
        "[pgbouncer]\nserver_lifetime=0\nserver_idle_timeout=0\nclient_login_timeout=0\nserver_connect_timeout=2.5\nquery_wait_timeout=0\nidle_transaction_timeout=30\n",
        &[
            "server_lifetime_seconds = 1",
            "server_idle_seconds = 0",
            "# not carried over: client_login_timeout = 0",
            "patience_seconds = 3",
            "query_wait_seconds = 0",
            "idle_in_transaction_seconds = 30",
        ],
    );
}

#[test]
fn who_proves_nothing_must_be_known() {
    has(
        "[pgbouncer]\nauth_type=trust\nauth_file=users.txt\n",
        &["[[rule]]", "user = [\"ann\", \"bob\"]", "auth = \"trust\""],
    );
    has(
        "[pgbouncer]\nauth_type=trust\nauth_user=asker\n",
        &["auth = \"trust\"", "[auth_query]", "user = \"asker\""],
    );
    has(
        "[databases]\na = auth_user=x\nb = auth_user=y\n[pgbouncer]\nauth_type=trust\nauth_file=users.txt\n",
        &[
            "user = [\"ann\", \"bob\"]",
            "# not carried over: auth_user=x",
        ],
    );
}

#[test]
fn who_must_encrypt_is_rejected_without() {
    let tls = "client_tls_cert_file=c.pem\nclient_tls_key_file=k.pem\nclient_tls_ca_file=ca.pem\n";
    assert_eq!(
        lines(&format!("[pgbouncer]\nclient_tls_sslmode=verify-ca\n{tls}"))[5..],
        [
            "[[tls]]",
            "certificate = \"/etc/pb/c.pem\"",
            "key = \"/etc/pb/k.pem\"",
            "client_ca = \"/etc/pb/ca.pem\"",
            "client_required = true",
            "[[rule]]",
            "transport = \"clear\"",
            "auth = \"reject\"",
            "[[rule]]",
            "auth = \"md5\"",
        ]
        .map(String::from)
    );
    has(
        &format!("[pgbouncer]\n{tls}"),
        &["# not carried over: client_tls_cert_file = c.pem"],
    );
}

/// Files, and how their first mistake begins.
const MISTAKES: &[(&str, &str)] = &[
    ("", "p.ini:1: there is no section [pgbouncer]"),
    ("[databases]\na = host=x", "p.ini:1: there is no section"),
    ("\n[pgbouncer", "p.ini:2: a section without its end"),
    ("[bouncer]", "p.ini:1: \"bouncer\" is not a section"),
    (
        "pool_mode=session",
        "p.ini:1: pool_mode stands in no section",
    ),
    (
        "[pgbouncer]\n\npool mode=x",
        "p.ini:3: \"pool mode=x\" is not a setting",
    ),
    (
        "[pgbouncer]\npool_modus=x",
        "p.ini:2: pool_modus is not a key",
    ),
    (
        "[pgbouncer]\npool_mode=x",
        "p.ini:2: pool_mode: \"x\" is not a mode",
    ),
    (
        "[pgbouncer]\nmax_client_conn=2k",
        "p.ini:2: max_client_conn: \"2k\" is not a whole",
    ),
    (
        "[pgbouncer]\nmax_client_conn=0",
        "p.ini:2: max_client_conn: no client could",
    ),
    (
        "[pgbouncer]\nserver_lifetime=-1",
        "p.ini:2: server_lifetime: \"-1\" is not a time",
    ),
    (
        "[pgbouncer]\nlisten_port=0",
        "p.ini:2: listen_port: 0 is not a port",
    ),
    (
        "[pgbouncer]\nauth_type=cert",
        "p.ini:2: auth_type: cert needs",
    ),
    (
        "[pgbouncer]\nauth_type=hba",
        "p.ini:2: auth_type: hba needs",
    ),
    (
        "[pgbouncer]\nauth_type=gss",
        "p.ini:2: auth_type: \"gss\" is not a method",
    ),
    ("[pgbouncer]\n%include x", "p.ini:2: cannot read x"),
    ("%include p.ini", "p.ini:1: more than 10 files"),
    (
        "[pgbouncer]\nclient_tls_sslmode=require",
        "p.ini:2: client_tls_sslmode: clients can encrypt only",
    ),
    (
        "[pgbouncer]\nauth_type=trust\nauth_file=no",
        "p.ini:3: cannot read no",
    ),
    (
        "[pgbouncer]\n[databases]\na = host",
        "p.ini:3: \"host\" has no value",
    ),
    (
        "[pgbouncer]\n[databases]\na = hots=x",
        "p.ini:3: hots is not a parameter of [databases]",
    ),
    (
        "[pgbouncer]\n[databases]\na = port=0",
        "p.ini:3: port: 0 is not a port",
    ),
    (
        "[pgbouncer]\n[databases]\npgbouncer = host=x",
        "p.ini:3: \"pgbouncer\" is a name",
    ),
    (
        "[pgbouncer]\n[databases]\na = user=u password=SCRAM-SHA-256$x",
        "p.ini:3: password: ",
    ),
    ("[pgbouncer]\nlogfile=\u{fffd}", "p.ini:2: not in UTF-8"),
    ("[pgbouncer]\nlogfile=\0", "p.ini:2: a zero byte"),
    (
        "[pgbouncer]\nauth_type=hba\nauth_hba_file=hba\n;",
        "hba:2: 255.0.255.0 is a mask with gaps",
    ),
];

#[test]
fn mistakes_have_their_line() {
    for (text, said) in MISTAKES {
        let said_really = mistake(&[
            ("p.ini", text),
            ("hba", "# rules\nhost all all 10.0.0.0 255.0.255.0 md5"),
        ]);
        assert!(
            said_really.starts_with(said),
            "{said_really}\nand not\n{said}"
        );
    }
}

/// The rules of a pg_hba.conf, one a line: databases, users, addresses, transport, method.
fn rules(hba: &str) -> String {
    let ini = "[databases]\na = host=x\n[pgbouncer]\nauth_type=hba\nauth_file=users.txt\nauth_hba_file=h/hba.conf\n";
    let files = [
        ("p.ini", ini),
        ("h/hba.conf", hba),
        ("h/names", "cid, \"all\"\n@names2"),
        ("h/names2", "dan"),
        ("users.txt", "\"ann\" \"\"\n\"bob\" \"x\"\n"),
    ];
    let config = Config::parse(&result(&files).unwrap().text).unwrap();
    let list = |names: &Option<Vec<Spanned<String>>>| {
        let each = |names: &Vec<Spanned<String>>| {
            let texts = names.iter().map(|own| own.get_ref().clone());
            texts.collect::<Vec<_>>().join("+")
        };
        names.as_ref().map_or("-".into(), each)
    };
    let rules = config.rule.iter().map(|rule| {
        let addresses = rule.address.as_ref().map_or(0, Vec::len);
        let way = rule.transport.as_ref().map(|way| *way.get_ref());
        let (database, user) = (list(&rule.database), list(&rule.user));
        format!(
            "{database} {user} {addresses} {way:?} {:?}",
            rule.auth.get_ref()
        )
    });
    let rules: Vec<String> = rules.collect();
    let all = rules.join("|");
    all.strip_suffix("- - 0 None Reject")
        .unwrap()
        .trim_end_matches('|')
        .to_owned()
}

#[test]
fn rules_of_a_pg_hba_keep_their_order_and_never_let_more_in() {
    for (hba, expected) in [
        ("", ""),
        ("local all all md5", "- - 0 Some(Unix) Md5"),
        (
            "host a,b \"all\" ::1/128 scram-sha-256 # x",
            "a+b all 1 None Scram",
        ),
        (
            "hostnossl all all all password",
            "- - 2 Some(Clear) Password",
        ),
        (
            "host all all 10.0.0.0 255.0.0.0 trust",
            "- ann+bob 1 None Trust",
        ),
        ("hostssl all all all md5", ""),
        (
            "host sameuser all all trust",
            "ann ann 2 None Trust|bob bob 2 None Trust",
        ),
        ("host sameuser all all md5", "- - 2 None Reject"),
        ("host all a*b all trust", "- - 2 None Reject"),
        ("local all @names md5", "- cid+all+dan 0 Some(Unix) Md5"),
        (
            "local all ann peer\nlocal all all md5",
            "- ann 0 Some(Unix) Reject|- - 0 Some(Unix) Md5",
        ),
        ("host all all all cert", "- - 2 None Reject"),
        ("host all all all ldap ldapserver=x", "- - 2 None Reject"),
        (
            "host all +x all md5\nhost replication all all md5\nhost all all all gss",
            "",
        ),
        ("host all all 10.0.0.1/8 reject", ""),
    ] {
        assert_eq!(rules(hba), expected, "{hba}");
    }
}

#[test]
fn who_could_never_enter_the_console_is_not_carried_over() {
    let asks = "[databases]\n* = host=x\n[pgbouncer]\nauth_file=users.txt\nadmin_users=bob, dba\nauth_user=a\n";
    has(
        asks,
        &[
            "# not carried over: admin_users = dba: \"dba\" can never enter the console",
            "admins = [\"bob\"]",
        ],
    );
    has(
        &format!("{asks}auth_dbname=auth\nauth_query=SELECT 1\n"),
        &[
            "admins = [\"bob\", \"dba\"]",
            "database = \"auth\"",
            "# not carried over: auth_query = SELECT 1: it has no $1",
        ],
    );
    has(
        &format!("{asks}auth_dbname=pgbouncer\n"),
        &["# not carried over: auth_dbname = pgbouncer: there is no"],
    );
}

fn never_our_own_mistake(files: &[(&str, &str)]) {
    if let Err(error @ ImportError::Own { .. }) = result(files) {
        panic!("{error}\nof {files:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(?s).{0,200}", hba in "(?s).{0,100}") {
        let text = format!("[pgbouncer]\nauth_type=hba\nauth_hba_file=hba\n{text}");
        never_our_own_mistake(&[("p.ini", &text), ("hba", &hba)]);
    }

    #[test]
    fn what_looks_like_settings_is_read_or_refused(
        lines in prop::collection::vec((0_usize..200, "[^\n]{0,12}|0|1|5|cert|trust|require|verify-full|session|hba"), 0..12),
        entries in prop::collection::vec(("[a-z*\"]{1,3}", "(host|port|user|password|pool_size|dbname|auth_user)=('[^\n]{0,6}'|[^ \n]{1,6})"), 0..4),
        hba in "((local|host|hostssl) (all|sameuser|a,b) (all|\"[^\n]\") (::1/128 |all |)(trust|md5|peer|cert)\n){0,3}",
    ) {
        let keys = sooner_pooler::pgbouncer::KEYS;
        let lines = lines.iter().map(|(key, value)| format!("{} = {value}\n", keys[key % keys.len()]));
        let entries = entries.iter().map(|(name, value)| format!("{name} = {value}\n"));
        let text = format!("[databases]\n{}[pgbouncer]\n{}", entries.collect::<String>(), lines.collect::<String>());
        never_our_own_mistake(&[("p.ini", &text), ("hba", &hba), ("trust", &hba)]);
    }
}
