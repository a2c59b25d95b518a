//! Databases that belong to strangers, who make objects there by the names that others use.

use crate::support::{Database, Gate, Talk, printed, said, until};

/// What psql says of a login with a password, and a statement; nothing where it succeeds.
fn refusal(gate: &Gate, database: &Database, [user, password, name]: [&str; 3]) -> String {
    let mut psql = gate.psql(database, user);
    // Settings that a server connection is given, and others that it is given next.
    psql.env("PGPASSWORD", password)
        .env("PGOPTIONS", "-c geqo=off");
    let output = psql.args(["-d", name, "-c", "SHOW geqo"]).output().unwrap();
    if output.status.success() {
        String::new()
    } else {
        said(&output)
    }
}

fn ask(database: &Database, user: &str, name: &str, sql: &str) -> String {
    let mut psql = database.psql(database.folder(), 5432, user);
    printed(psql.args(["-q", "-d", name, "-c", sql]))
}

const TRAP: &str = "
    CREATE SCHEMA mine;
    CREATE TABLE mine.seen (by name, what text);
    CREATE FUNCTION mine.note(what text) RETURNS text LANGUAGE sql AS
        $$ INSERT INTO mine.seen VALUES (current_user, what); SELECT 'md5' || md5('minedba') $$;
    CREATE VIEW mine.pg_shadow AS SELECT 'dba'::name AS usename, mine.note('pg_shadow') AS passwd;
    CREATE FUNCTION mine.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS
        $$ SELECT mine.note($1) $$;
    CREATE FUNCTION mine.lookup(name) RETURNS TABLE (name name, secret text) LANGUAGE sql AS
        $$ SELECT $1, mine.note('lookup') $$;
    GRANT ALL ON SCHEMA mine TO public;
    GRANT ALL ON mine.seen TO public;";

/// A role that may create databases has made some, in which it answers for the superuser dba.
fn traps(test: &str) -> Option<Database> {
    let database = Database::start(test)?;
    let secret = "CREATE ROLE dba SUPERUSER LOGIN PASSWORD 'brush'";
    ask(
        &database,
        "postgres",
        "postgres",
        &format!("SET password_encryption = md5; {secret}; CREATE ROLE mallory CREATEDB LOGIN"),
    );
    for name in ["sooner", "pgbouncer", "trap"] {
        let sql = format!("CREATE DATABASE {name}");
        ask(&database, "mallory", "postgres", &sql);
        ask(&database, "mallory", name, TRAP);
        let sql = format!("ALTER DATABASE {name} SET search_path = mine, pg_catalog");
        ask(&database, "mallory", name, &sql);
    }
    database.require("md5", "dba");
    Some(database)
}

/// Who has run what of the trap's owner.
fn seen(database: &Database, name: &str) -> String {
    let sql = "SELECT string_agg(DISTINCT by || ' ' || what, ', ') FROM mine.seen";
    ask(database, "postgres", name, sql)
}

#[test]
fn nobody_but_a_named_database_answers_for_the_console() {
    let Some(database) = traps("nobody_but_a_named_database") else {
        return;
    };
    let begin = "auth = \"md5\"\nadmins = [\"dba\"]\n[auth_query]\nuser = \"postgres\"\n";
    let query = "query = \"SELECT * FROM mine.lookup($1)\"\n";
    let gate = Gate::before(&database, &format!("{begin}{query}"));
    for console in ["sooner", "pgbouncer"] {
        for password in ["mine", "brush"] {
            let said = refusal(&gate, &database, ["dba", password, console]);
            assert!(said.contains("password authentication failed"), "{said}");
        }
        assert_eq!(seen(&database, console), "");
    }
    let named = Gate::before(&database, &format!("{begin}database = \"postgres\"\n"));
    for (password, expected) in [("mine", "password authentication failed"), ("brush", "")] {
        let mut psql = named.psql(&database, "dba");
        psql.env("PGPASSWORD", password);
        let output = psql.args(["-d", "sooner", "-c", "SHOW VERSION"]).output();
        let said = said(&output.unwrap());
        assert!(
            said.contains(expected) && said.is_empty() == expected.is_empty(),
            "{said}"
        );
    }
}

#[test]
fn what_the_gate_runs_itself_finds_no_object_of_a_stranger() {
    let Some(database) = traps("what_the_gate_runs_itself") else {
        return;
    };
    let query = "query = \"SELECT usename, passwd FROM pg_shadow WHERE usename = lower($1)\"";
    let config = format!("auth = \"md5\"\n[auth_query]\nuser = \"postgres\"\n{query}\n");
    let gate = Gate::before(&database, &config);
    for (password, expected) in [
        ("mine", "password authentication failed"),
        ("brush", ""),
        ("brush", ""),
    ] {
        let said = refusal(&gate, &database, ["dba", password, "trap"]);
        assert!(
            said.contains(expected) && said.is_empty() == expected.is_empty(),
            "{said}"
        );
    }
    assert_eq!(seen(&database, "trap"), "");
}

#[test]
fn a_name_that_postgresql_cuts_is_the_one_it_is_cut_to() {
    let Some(database) = Database::start("a_name_that_postgresql_cuts") else {
        return;
    };
    let name = "n".repeat(63);
    database.ask(&format!("CREATE ROLE {name} LOGIN"));
    let rules =
        format!("[[rule]]\nuser = [\"{name}\"]\nauth = \"reject\"\n[[rule]]\nauth = \"trust\"\n");
    let gate = Gate::before(&database, &rules);
    for more in ["", "n", "x"] {
        let said = refusal(&gate, &database, [&format!("{name}{more}"), "", "postgres"]);
        assert!(said.contains("no rule lets user"), "{more}: {said}");
    }
}

#[test]
fn a_name_that_a_client_chooses_does_nothing_to_a_terminal() {
    let Some(database) = Database::start("a_name_that_a_client_chooses") else {
        return;
    };
    let gate = Gate::before(&database, "admins = [\"postgres\"]\n");
    let name = "x\u{9b}2J\u{9d}\u{202e}\u{2066}";
    database.ask(&format!("CREATE ROLE \"{name}\" LOGIN"));
    let mut client = Talk::begin(&mut gate.psql(&database, name));
    client.ask("SELECT 1");
    let shown = gate.admin(&database, "SHOW CLIENTS");
    assert!(
        shown.contains("x\\u{9b}2J\\u{9d}\\u{202e}\\u{2066}"),
        "{shown}"
    );
    let is_raw = |character: char| character != '\n' && !(' '..='~').contains(&character);
    assert!(!shown.contains(is_raw), "{shown:?}");
}

/// Under as many names as they know of, also where the role that asks may have one session.
#[test]
fn wrong_passwords_fill_no_server_with_sessions() {
    let Some(database) = Database::start("wrong_passwords_fill_no_server") else {
        return;
    };
    database.ask("CREATE ROLE asker LOGIN");
    let names: Vec<String> = (1..=6).map(|number| format!("d{number}")).collect();
    for name in &names {
        database.ask(&format!("CREATE DATABASE {name}"));
    }
    let query = "query = \"SELECT $1, 'secret'\"";
    let config = format!("auth = \"scram\"\n[auth_query]\nuser = \"asker\"\n{query}\n");
    let gate = Gate::before(&database, &config);
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'asker'";
    for (limit, most) in [(-1, "2"), (1, "1")] {
        database.ask(&format!("ALTER ROLE asker CONNECTION LIMIT {limit}"));
        database
            .ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'asker'");
        until("none is left", || database.ask(sessions) == "0");
        for name in &names {
            let said = refusal(&gate, &database, ["ann", "wrong", name]);
            assert!(said.contains("password authentication failed"), "{said}");
        }
        until("the others are closed", || database.ask(sessions) == most);
    }
}
