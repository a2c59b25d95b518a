//! What PgBouncer's tables have of databases, servers and the console itself.

use super::{PgBouncer, answer};
use crate::support::{Database, Gate, Talk, transactions, until};

/// Names of columns with what stands there.
pub type Row = Vec<(String, String)>;

pub fn rows(gate: &Gate, database: &Database, command: &str) -> Vec<Row> {
    rows_of(answer(gate.psql(database, "postgres"), command), command)
}

pub fn rows_of((is_told, printed, said): (bool, String, String), command: &str) -> Vec<Row> {
    assert!(is_told, "{command}: {said}");
    let mut lines = printed.lines().filter(|line| !line.starts_with('('));
    let names: Vec<&str> = lines.next().unwrap_or_default().split('|').collect();
    let row = |line: &str| {
        let fields = line.split('|').map(str::to_owned);
        names
            .iter()
            .map(|name| (*name).to_owned())
            .zip(fields)
            .collect()
    };
    lines.map(row).collect()
}

pub fn field<'a>(row: &'a [(String, String)], name: &str) -> &'a str {
    let found = row.iter().find(|(own, _)| own == name);
    &found.unwrap_or_else(|| panic!("no {name}")).1
}

fn start(test: &str) -> Option<(Database, Gate)> {
    start_with(test, "")
}

fn start_with(test: &str, more: &str) -> Option<(Database, Gate)> {
    let database = Database::start(test)?;
    let server = format!("postgresql:///?host={}", database.folder().display());
    let config = format!(
        "admins = [\"postgres\"]\n{}[[database]]\nname = \"unused\"\nserver = \"{server}\"\n{more}",
        transactions(2)
    );
    let gate = Gate::before(&database, &config);
    Some((database, gate))
}

#[test]
fn databases_that_no_client_uses_are_listed() {
    let Some((database, gate)) = start("databases_that_no_client_uses") else {
        return;
    };
    for _ in 0..2 {
        let all = rows(&gate, &database, "SHOW DATABASES");
        let names: Vec<&str> = all.iter().map(|row| field(row, "name")).collect();
        assert!(names.contains(&"unused"), "{names:?}");
        assert!(!names.contains(&"*"), "{names:?}");
        let lists = rows(&gate, &database, "SHOW LISTS");
        let databases = lists.iter().find(|row| field(row, "list") == "databases");
        let count = databases.map(|row| field(row, "items").to_owned());
        assert_eq!(count, Some(names.len().to_string()));
        // Neither has it been forgotten when no client was seen for a while.
        std::thread::sleep(std::time::Duration::from_millis(1500));
    }
}

/// What SHOW LISTS counts, beside the rows of the tables that have them.
fn counts(who: &str, show: &dyn Fn(&str) -> Vec<Row>) {
    let item = |list: &str| {
        let lists = show("SHOW LISTS");
        let row = lists.iter().find(|row| field(row, "list") == list);
        let items = field(row.unwrap(), "items");
        items.parse::<usize>().unwrap()
    };
    for (list, table) in [
        ("databases", "SHOW DATABASES"),
        ("users", "SHOW USERS"),
        ("pools", "SHOW POOLS"),
        ("used_clients", "SHOW CLIENTS"),
        ("used_servers", "SHOW SERVERS"),
    ] {
        // A console that was left may be there for a moment more.
        let what = format!("{who} counts in {list} what {table} has");
        until(&what, || item(list) == show(table).len());
    }
    let databases = show("SHOW DATABASES");
    let own = databases
        .iter()
        .find(|row| field(row, "name") == "pgbouncer");
    let own = own.unwrap_or_else(|| panic!("{who}: {databases:?}"));
    for (name, expected) in [
        ("host", ""),
        ("database", "pgbouncer"),
        ("force_user", "pgbouncer"),
        ("pool_mode", "statement"),
        ("current_connections", "0"),
        ("paused", "0"),
        ("disabled", "0"),
    ] {
        assert_eq!(field(own, name), expected, "{who}: {name}");
    }
    let users = show("SHOW USERS");
    let is_there = users.iter().any(|row| field(row, "name") == "pgbouncer");
    assert!(is_there, "{who}: {users:?}");
    if who == "the gate" {
        let is_there = users.iter().any(|row| field(row, "name") == "never_seen");
        assert!(is_there, "{users:?}");
    }
}

#[test]
fn the_lists_count_what_the_tables_show_as_pgbouncers_do() {
    let test = "the_lists_count_what_the_tables_show";
    let Some((database, gate)) = start_with(test, "[[user]]\nname = \"never_seen\"\n") else {
        return;
    };
    let mut busy = Talk::begin(&mut gate.psql(&database, "postgres"));
    busy.ask("BEGIN");
    gate.ask(&database, &["SELECT 1"]);
    let show = |command: &str| rows(&gate, &database, command);
    counts("the gate", &show);
    let Some(_bouncer) = PgBouncer::before(&database, test) else {
        return;
    };
    let psql = || PgBouncer::psql(&database);
    let mut busy = Talk::begin(psql().args(["-d", "postgres"]));
    busy.ask("BEGIN");
    let idle = psql().args(["-d", "postgres", "-c", "SELECT 1"]).output();
    assert!(idle.unwrap().status.success());
    counts("PgBouncer", &|command| {
        rows_of(answer(psql(), command), command)
    });
}

#[test]
fn server_connections_have_their_times_and_addresses() {
    let Some((database, gate)) = start("server_connections_have_their_times") else {
        return;
    };
    let mut psql = gate.psql(&database, "postgres");
    let mut busy = Talk::begin(psql.env("PGAPPNAME", "till"));
    busy.ask("BEGIN");
    gate.ask(&database, &["SELECT 1"]);
    let servers = rows(&gate, &database, "SHOW SERVERS");
    assert_eq!(servers.len(), 2, "{servers:?}");
    for server in &servers {
        let is_time = |name| field(server, name).ends_with(" UTC");
        assert!(
            is_time("connect_time") && is_time("request_time"),
            "{server:?}"
        );
        assert_eq!(field(server, "addr"), "unix");
        assert_eq!(field(server, "port"), "5432");
    }
    let active = servers.iter().find(|row| field(row, "state") == "active");
    assert_eq!(field(active.unwrap(), "application_name"), "till");
    let clients = rows(&gate, &database, "SHOW CLIENTS");
    let console = clients
        .iter()
        .find(|row| field(row, "database") == "pgbouncer");
    assert_eq!(field(console.unwrap(), "user"), "postgres", "{clients:?}");
    let pools = rows(&gate, &database, "SHOW POOLS");
    assert!(
        pools
            .iter()
            .any(|row| field(row, "database") == "pgbouncer"),
        "{pools:?}"
    );
}

/// As in PgBouncer, which makes the pool for the user at the server.
#[test]
fn clients_of_an_entry_with_a_user_are_in_that_users_pool() {
    let Some(database) = Database::start("clients_of_an_entry_with_a_user") else {
        return;
    };
    database.ask("CREATE ROLE keeper LOGIN");
    let server = format!("postgresql:///?host={}", database.folder().display());
    let config = format!(
        "admins = [\"postgres\"]\n{}[[database]]\nname = \"shop\"\nname_there = \"postgres\"\n\
         server = \"{server}\"\nuser = \"keeper\"\n",
        transactions(2)
    );
    let gate = Gate::before(&database, &config);
    let talk = |user: &str| Talk::begin(gate.psql(&database, user).args(["-d", "shop"]));
    let (mut busy, mut idle) = (talk("ann"), talk("bob"));
    busy.ask("BEGIN");
    assert_eq!(idle.ask("SELECT current_user"), "keeper");
    let show = |command: &str| rows(&gate, &database, command);
    let of_shop = |command: &str| {
        let mut rows = show(command);
        rows.retain(|row| field(row, "database") == "shop");
        rows
    };
    let servers = of_shop("SHOW SERVERS");
    let states = servers.iter().map(|row| field(row, "state"));
    assert_eq!(states.collect::<Vec<_>>(), ["active", "idle"]);
    assert!(servers.iter().all(|row| field(row, "user") == "keeper"));
    let pools = of_shop("SHOW POOLS");
    assert_eq!(pools.len(), 1, "{pools:?}");
    for (name, expected) in [("user", "keeper"), ("cl_active", "1"), ("sv_idle", "1")] {
        assert_eq!(field(&pools[0], name), expected, "{name}");
    }
    let users = show("SHOW USERS");
    for (name, expected) in [("keeper", "2"), ("ann", "0"), ("bob", "0")] {
        let row = users.iter().find(|row| field(row, "name") == name);
        let row = row.unwrap_or_else(|| panic!("no {name}: {users:?}"));
        assert_eq!(field(row, "current_connections"), expected, "{name}");
    }
    let clients = of_shop("SHOW CLIENTS");
    let mut names: Vec<&str> = clients.iter().map(|row| field(row, "user")).collect();
    names.sort_unstable();
    assert_eq!(names, ["ann", "bob"]);
}

#[test]
fn the_console_answers_what_drivers_ask_for() {
    let Some((database, gate)) = start("the_console_answers_what_drivers") else {
        return;
    };
    for (command, value) in [
        ("SHOW client_encoding", "UTF8"),
        ("SHOW datestyle", "ISO"),
        ("SHOW timezone", "UTC"),
        ("SHOW standard_conforming_strings", "on"),
    ] {
        let rows = rows(&gate, &database, command);
        assert_eq!(rows[0][0].1, value, "{command}");
    }
    for command in ["KILL", "DISABLE", "ENABLE"] {
        let (is_done, _, said) = answer(gate.psql(&database, "postgres"), command);
        assert!(
            !is_done && said.contains("a database is required"),
            "{command}: {said}"
        );
    }
}
