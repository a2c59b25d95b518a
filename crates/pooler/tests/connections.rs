//! How many connections there are, on both sides of the gate: clients that say nothing, and server
//! connections that are kept.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::support::{Database, GATE_PORT, Gate, Talk, printed, said, transactions, until};

const SSL_REQUEST: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";
const GSS_REQUEST: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x30";

/// A first packet by which `user` wants `database`.
fn startup(user: &str, database: &str) -> Vec<u8> {
    let body = format!("\0\x03\0\0user\0{user}\0database\0{database}\0\0");
    [&(4 + body.len() as i32).to_be_bytes()[..], body.as_bytes()].concat()
}

/// psql by TCP, from where everything else comes as well.
fn psql_by_tcp(gate: &Gate, database: &Database, user: &str) -> std::process::Command {
    let mut psql = database.program("psql");
    let address = format!(
        "host=127.0.0.1 port={} user={user} password=secret dbname=postgres",
        gate.port()
    );
    psql.args(["-XAt", "-d", &address, "-c", "SELECT 'in'"]);
    psql
}

#[test]
fn silent_connections_keep_nobody_out() {
    let Some(database) = Database::start("silent_connections_keep_nobody_out") else {
        return;
    };
    database.ask("CREATE ROLE ann LOGIN PASSWORD 'secret'");
    let config = "auth = \"scram\"\n[[user]]\nname = \"ann\"\npassword = \"secret\"\n[limits]\ntransactions = 4\nclients = 20\n";
    let gate = Gate::before(&database, config);
    let steps: [&[u8]; 5] = [
        b"",
        // In the middle of a packet.
        b"\0\0",
        // A no, and nothing then.
        SSL_REQUEST,
        GSS_REQUEST,
        // The gate asks it for a proof.
        &startup("ann", "postgres"),
    ];
    for step in steps {
        let mut silent = Vec::new();
        for _ in 0..80 {
            let mut stream = TcpStream::connect(("127.0.0.1", gate.port())).unwrap();
            // One that had to make room already hears nothing.
            let _ = stream.write_all(step);
            silent.push(stream);
        }
        let answer = printed(&mut psql_by_tcp(&gate, &database, "ann"));
        assert_eq!(answer, "in", "{step:?}");
    }
    // Through the socket file as well, where there is no address.
    let path = gate.folder().join(format!(".s.PGSQL.{GATE_PORT}"));
    let silent: Vec<_> = (0..80)
        .map(|_| UnixStream::connect(&path).unwrap())
        .collect();
    let mut psql = gate.psql(&database, "ann");
    assert_eq!(
        printed(psql.env("PGPASSWORD", "secret").args(["-c", "SELECT 'in'"])),
        "in"
    );
    drop(silent);
}

#[test]
fn one_client_too_many_is_told_so_in_the_protocol() {
    let Some(database) = Database::start("one_client_too_many_is_told_so") else {
        return;
    };
    database.ask("CREATE ROLE ann LOGIN");
    let config = "admins = [\"postgres\"]\n[limits]\ntransactions = 4\nclients = 2\nconnections_per_address = 1\n";
    let gate = Gate::before(&database, config);
    let connect = || TcpStream::connect(("127.0.0.1", gate.port())).unwrap();
    let mut first = connect();
    first.write_all(&startup("ann", "postgres")).unwrap();
    let ready = |stream: &mut TcpStream| {
        let mut heard = Vec::new();
        while !heard.ends_with(b"Z\0\0\0\x05I") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            heard.push(byte[0]);
        }
    };
    ready(&mut first);
    let refused = psql_by_tcp(&gate, &database, "ann").output().unwrap();
    let words = "1 clients from the same address are connected already";
    assert!(said(&refused).contains(words), "{}", said(&refused));
    // Each request for encryption is answered first, or libpq would not look at what comes.
    let mut second = connect();
    for request in [SSL_REQUEST, GSS_REQUEST] {
        second.write_all(request).unwrap();
        let mut answer = [0];
        second.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"N");
    }
    second.write_all(&startup("ann", "postgres")).unwrap();
    let mut told = Vec::new();
    second.read_to_end(&mut told).unwrap();
    // Lengths are binary.
    let told = String::from_utf8_lossy(&told);
    assert!(told.starts_with('E') && told.contains("C53300"), "{told:?}");
    // Through the socket file comes another origin, and then there are two clients.
    let mut other = crate::support::Talk::begin(&mut gate.psql(&database, "ann"));
    assert_eq!(other.ask("SELECT 1"), "1");
    gate.rewrite(|text| text.replace("connections_per_address = 1\n", ""));
    gate.admin(&database, "RELOAD");
    let refused = psql_by_tcp(&gate, &database, "ann").output().unwrap();
    let words = "2 clients are connected";
    assert!(said(&refused).contains(words), "{}", said(&refused));
}

const PID: &str = "SELECT pg_backend_pid()";

/// Roles u1, u2 and so on, and a client of each.
fn users(database: &Database, gate: &Gate, count: usize) -> Vec<Talk> {
    let name = |number: usize| format!("u{number}");
    (1..=count)
        .map(|number| {
            let name = name(number);
            let sql = format!(
                "DO $$ BEGIN IF to_regrole('{name}') IS NULL THEN CREATE ROLE {name} LOGIN; END IF; END $$"
            );
            database.ask(&sql);
            Talk::begin(&mut gate.psql(database, &name))
        })
        .collect()
}

/// Has each of them run a transaction, so many times by turns; the server processes that did.
fn by_turns(users: &mut [Talk], rounds: usize) -> BTreeSet<String> {
    let all = (0..rounds).flat_map(|_| {
        users
            .iter_mut()
            .map(|user| user.ask(PID))
            .collect::<Vec<_>>()
    });
    all.collect()
}

/// A column of a table that has one row, that of the console apart.
fn column(gate: &Gate, database: &Database, table: &str, name: &str) -> String {
    let mut psql = gate.psql(database, "postgres");
    psql.args(["-d", "sooner", "-P", "tuples_only=off", "-c"]);
    let shown = printed(psql.arg(format!("SHOW {table}")));
    let mut rows = shown
        .lines()
        .filter(|line| !line.starts_with("pgbouncer|"))
        .map(|line| line.split('|').collect::<Vec<_>>());
    let (names, row) = (rows.next().unwrap(), rows.next().unwrap());
    let at = names.iter().position(|known| *known == name).unwrap();
    row[at].to_owned()
}

const ADMINS: &str = "admins = [\"postgres\"]\n";

#[test]
fn users_by_turns_log_in_once_each() {
    let Some(database) = Database::start("users_by_turns_log_in_once_each") else {
        return;
    };
    for (limit, count) in [(4, 6), (1, 2)] {
        let gate = Gate::before(&database, &format!("{ADMINS}{}", transactions(limit)));
        let mut users = users(&database, &gate, count);
        let processes = by_turns(&mut users, 20);
        assert_eq!(processes.len(), count, "{processes:?}");
        // The first of each was at its greeting, which is no transaction.
        assert_eq!(column(&gate, &database, "CLASSES", "logins"), "0");
        assert_eq!(
            column(&gate, &database, "CLASSES", "transactions"),
            (20 * count).to_string()
        );
    }
}

#[test]
fn where_connections_are_few_logins_have_figures_and_a_reload_gives_more() {
    let Some(database) = Database::start("where_connections_are_few") else {
        return;
    };
    let config = "[limits]\ntransactions = 4\nconnections = 2\n";
    let gate = Gate::before(&database, &format!("{ADMINS}{config}"));
    let mut users = users(&database, &gate, 3);
    assert!(by_turns(&mut users, 10).len() > 20);
    let here = "SELECT count(*) FROM pg_stat_activity WHERE usename LIKE 'u_'";
    until("two connections are left", || database.ask(here) == "2");
    let figure =
        |table: &str, name: &str| -> u64 { column(&gate, &database, table, name).parse().unwrap() };
    assert_eq!(figure("GATES", "connections_max"), 2);
    assert_eq!(figure("GATES", "limit"), 2, "each transaction needs one");
    assert_eq!(figure("DATABASES", "max_connections"), 2);
    assert!(figure("CLASSES", "logins") > 20);
    assert!(figure("CLASSES", "mean_opening_us") > 0);
    let waits = figure("STATS", "total_wait_time");
    assert!(waits >= figure("CLASSES", "opening_sum_us"));
    gate.rewrite(|text| text.replace("connections = 2", "connections = 3"));
    gate.admin(&database, "RELOAD");
    assert_eq!(figure("GATES", "limit"), 3);
    by_turns(&mut users, 1);
    let before = figure("CLASSES", "logins");
    assert_eq!(by_turns(&mut users, 10).len(), 3);
    assert_eq!(figure("CLASSES", "logins"), before);
    gate.rewrite(|text| text.replace("connections = 3", "connections = 1"));
    gate.admin(&database, "RELOAD");
    until("one connection is left", || database.ask(here) == "1");
}

#[test]
fn users_who_come_at_once_keep_a_connection_for_some_transactions() {
    let Some(database) = Database::start("users_who_come_at_once") else {
        return;
    };
    const USERS: u64 = 6;
    const EACH: u64 = 500;
    let config = "[limits]\ntransactions = 2\nconnections = 2\n";
    let gate = Gate::before(&database, &format!("{ADMINS}{config}"));
    drop(users(&database, &gate, USERS as usize));
    let script = gate.folder().join("lookup.sql");
    std::fs::write(&script, "SELECT 1;").unwrap();
    let clients = (1..=USERS).map(|number| {
        let mut pgbench = database.program("pgbench");
        pgbench.args(["-h", "127.0.0.1", "-p", &gate.port().to_string()]);
        pgbench.args(["-U", &format!("u{number}"), "-n", "-t", &EACH.to_string()]);
        pgbench.arg("-f").arg(&script).arg("postgres");
        let quiet = pgbench.stdout(Stdio::null()).stderr(Stdio::null());
        quiet.spawn().unwrap()
    });
    let clients: Vec<_> = clients.collect();
    // No user keeps a connection for good: all of them finish.
    for mut client in clients {
        assert!(client.wait().unwrap().success());
    }
    let figure = |name: &str| -> u64 { column(&gate, &database, "CLASSES", name).parse().unwrap() };
    assert_eq!(figure("transactions"), USERS * EACH);
    let logins = figure("logins");
    assert!(logins >= USERS - 2, "they share two connections: {logins}");
    assert!(logins * 5 < USERS * EACH, "{logins} logins");
}

#[test]
fn the_server_is_asked_how_many_connections_there_may_be() {
    let Some(database) = Database::start("the_server_is_asked_how_many_connections") else {
        return;
    };
    // Of 50, 3 are reserved.
    for (limit, inside, most) in [(4, "4", "35"), (40, "40", "40"), (500, "47", "47")] {
        let gate = Gate::before(&database, &format!("{ADMINS}{}", transactions(limit)));
        assert_eq!(gate.ask(&database, &["SELECT 1"]), "1");
        let shown =
            ["limit", "connections_max"].map(|name| column(&gate, &database, "GATES", name));
        assert_eq!(shown, [inside, most]);
    }
}

/// Takes the connections that are left, past the gate.
fn take_all(database: &Database) -> Vec<UnixStream> {
    let mut taken = Vec::new();
    loop {
        let mut stream = UnixStream::connect(database.folder().join(".s.PGSQL.5432")).unwrap();
        stream.write_all(&startup("hog", "postgres")).unwrap();
        match last_tag(&mut stream) {
            b'E' => return taken,
            _ => taken.push(stream),
        }
    }
}

/// Reads until a session is ready or refused, which may be after its proof.
fn last_tag(stream: &mut UnixStream) -> u8 {
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).unwrap();
        let [tag, length @ ..] = head;
        let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
        stream.read_exact(&mut body).unwrap();
        if matches!(tag, b'E' | b'Z') {
            return tag;
        }
    }
}

#[test]
fn a_server_that_others_have_filled_is_waited_for() {
    let Some(database) = Database::start("a_server_that_others_have_filled") else {
        return;
    };
    database.ask("CREATE ROLE hog LOGIN");
    database.ask("CREATE ROLE late LOGIN");
    database.ask("CREATE ROLE single LOGIN CONNECTION LIMIT 1");
    let gate = Gate::before(&database, &format!("{ADMINS}{}", transactions(4)));
    let mut users = users(&database, &gate, 3);
    assert_eq!(by_turns(&mut users, 1).len(), 3);
    let mut taken = take_all(&database);
    // The connection of another user is given up.
    let mut late = Talk::begin(&mut gate.psql(&database, "late"));
    assert_eq!(late.ask("SELECT 'late'"), "late");
    let [first, others @ ..] = &mut users[..] else {
        unreachable!("there are three");
    };
    // Now there is none to be given up.
    let others = others.iter_mut().chain([&mut late]);
    let mut others: Vec<&mut Talk> = others.collect();
    for other in &mut others {
        other.ask("BEGIN");
    }
    first.say("SELECT 'waited'");
    let is_waiting = |user: &str| {
        let waits = format!("C|{user}|postgres|waiting");
        gate.admin(&database, "SHOW CLIENTS").contains(&waits)
    };
    until("it waits", || is_waiting("u1"));
    thread::sleep(Duration::from_millis(300));
    assert!(is_waiting("u1"));
    drop(taken.pop());
    assert_eq!(first.hear(), "waited");
    drop(taken);
    // A role's own bound is no reason to give up what others have, nor to wait: the gate has no
    // connection of the role that could come free.
    let mut beside = Talk::begin(&mut database.psql(database.folder(), 5432, "single"));
    beside.ask("SELECT 1");
    let mut through = gate.psql(&database, "single");
    let refused = through.args(["-c", "SELECT 'single'"]).output().unwrap();
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    let expected = "FATAL:  too many connections for role \"single\"";
    assert!(words.contains(expected), "{words}");
    drop(beside);
    let mut through = gate.psql(&database, "single");
    until("its own connection is gone", || {
        through
            .args(["-c", "SELECT 'single'"])
            .status()
            .unwrap()
            .success()
    });
    for other in others {
        other.ask("COMMIT");
    }
}

#[test]
fn who_holds_a_place_and_does_nothing_can_be_ended() {
    let Some(database) = Database::start("who_holds_a_place_and_does_nothing") else {
        return;
    };
    let config = "[limits]\ntransactions = 1\nidle_in_transaction = 1\nkept_idle = 1\n";
    let gate = Gate::before(&database, config);
    for (holds, code) in [("BEGIN", "25P03"), ("LISTEN a", "57P05")] {
        let mut holder = RawClient::connect(&gate.folder().join(".s.PGSQL.6432"));
        assert_eq!(holder.ask(holds), "CZ");
        // It waits for the only place, which it gets.
        assert_eq!(gate.ask(&database, &["SELECT 'in'"]), "in");
        assert_eq!(holder.rest(), format!("E({code})"), "{holds}");
    }
    // Who is busy is not idle, however long that takes.
    let slow = "BEGIN; SELECT pg_sleep(1.5); COMMIT; LISTEN a; SELECT pg_sleep(1.5); UNLISTEN a";
    let said = gate.ask(&database, &[slow, "SELECT 'still here'"]);
    assert!(said.ends_with("still here"), "{said}");
}

#[test]
fn the_number_of_a_session_is_its_process_where_that_stays() {
    let Some(database) = Database::start("the_number_of_a_session") else {
        return;
    };
    let session = format!("mode = \"session\"\n{}", transactions(3));
    let gate = Gate::before(&database, &session);
    let path = gate.folder().join(".s.PGSQL.6432");
    let mut clients: Vec<RawClient> = (0..3).map(|_| RawClient::connect(&path)).collect();
    let mut numbers = BTreeSet::new();
    for client in &mut clients {
        let told = client.process_id.to_string();
        assert_eq!(client.value("SELECT pg_backend_pid()"), told);
        assert_eq!(client.ask("LISTEN a; NOTIFY a"), "CCAZ");
        assert_eq!(client.notifier.to_string(), told);
        numbers.insert(told);
    }
    assert_eq!(numbers.len(), 3);
    // By turns no number is a process's, and no two are the same.
    let gate = Gate::before(&database, &transactions(1));
    let path = gate.folder().join(".s.PGSQL.6432");
    let clients: Vec<RawClient> = (0..3).map(|_| RawClient::connect(&path)).collect();
    let numbers: BTreeSet<u32> = clients.iter().map(|client| client.process_id).collect();
    assert_eq!(numbers.len(), 3);
    assert!(
        numbers.iter().all(|number| *number >= 4_194_304),
        "{numbers:?}"
    );
}

/// A client in messages.
struct RawClient {
    stream: UnixStream,
    process_id: u32,
    /// The process that sent the last notification.
    notifier: u32,
    last_value: String,
}

impl RawClient {
    fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut client = Self {
            stream,
            process_id: 0,
            notifier: 0,
            last_value: String::new(),
        };
        client
            .stream
            .write_all(&startup("postgres", "postgres"))
            .unwrap();
        client.hear();
        client
    }

    /// The types of what is said up to ReadyForQuery or to the end, with the SQLSTATE of errors.
    fn hear(&mut self) -> String {
        let mut types = String::new();
        let mut header = [0; 5];
        while self.stream.read_exact(&mut header).is_ok() {
            let length = u32::from_be_bytes(header[1..].try_into().unwrap()) as usize;
            let mut body = vec![0; length - 4];
            self.stream.read_exact(&mut body).unwrap();
            let number = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().unwrap());
            match header[0] {
                b'R' | b'S' => continue,
                b'K' => self.process_id = number(&body),
                b'A' => self.notifier = number(&body),
                b'D' => self.last_value = String::from_utf8(body[6..].to_vec()).unwrap(),
                _ => {}
            }
            types.push(char::from(header[0]));
            if header[0] == b'E' {
                let mut fields = body.split(|byte| *byte == 0);
                let code = fields.find_map(|field| field.strip_prefix(b"C"));
                types += &format!("({})", String::from_utf8_lossy(code.unwrap()));
            }
            if header[0] == b'Z' {
                break;
            }
        }
        types
    }

    fn ask(&mut self, sql: &str) -> String {
        let length = (5 + sql.len() as u32).to_be_bytes();
        let query = [b"Q", &length[..], sql.as_bytes(), b"\0"].concat();
        self.stream.write_all(&query).unwrap();
        self.hear()
    }

    fn value(&mut self, sql: &str) -> String {
        assert_eq!(self.ask(sql), "TDCZ");
        self.last_value.clone()
    }

    /// What comes without a question, to the end of the connection.
    fn rest(&mut self) -> String {
        self.hear()
    }
}
