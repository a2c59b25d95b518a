//! Clients that guess names: what they are told, message by message, is the same for names that
//! there are and for others.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::{Database, Gate, said};

/// A message with its length.
fn message(tag: &[u8], body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [tag, &length, body].concat()
}

fn read(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 5];
    stream.read_exact(&mut head).unwrap();
    let length = u32::from_be_bytes(head[1..].try_into().unwrap());
    let mut body = vec![0; length as usize - 4];
    stream.read_exact(&mut body).unwrap();
    (head[0], body)
}

/// What a gate asks a user for, and how it refuses the wrong answers.
fn steps(gate: &Gate, user: &str, database: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", gate.port())).unwrap();
    let startup = format!("\0\x03\0\0user\0{user}\0database\0{database}\0\0");
    let mut answer = message(b"", startup.as_bytes());
    let mut steps = Vec::new();
    loop {
        stream.write_all(&answer).unwrap();
        let (tag, body) = read(&mut stream);
        if tag != b'R' {
            let text = String::from_utf8_lossy(&body).replace('\0', " ");
            steps.push(format!("{} {}", tag as char, text.replace(user, "USER")));
            return steps.join(" | ");
        }
        let text = String::from_utf8_lossy(&body[4..]).into_owned();
        let (step, next) = match body[3] {
            10 => (
                text.replace('\0', " "),
                b"SCRAM-SHA-256\0\0\0\0\x0bn,,n=,r=abc".to_vec(),
            ),
            11 => {
                let (nonce, rest) = text.split_once(",s=").unwrap();
                let (salt, iterations) = rest.split_once(',').unwrap();
                let step = format!("{} {} {iterations}", nonce.len(), salt.len());
                (
                    step,
                    format!("c=biws,{nonce},p={}=", "A".repeat(43)).into_bytes(),
                )
            }
            _ => (
                String::new(),
                b"md5b5d85afd1d3b8a30d4ea8a5ef9af0d53\0".to_vec(),
            ),
        };
        steps.push(format!("R{} {step}", body[3]));
        answer = message(b"p", &next);
    }
}

/// Secrets by md5 and by SCRAM, of 10000 iterations in the latter case, in the file and in the
/// database.
const MD5: &str = "md5b5d85afd1d3b8a30d4ea8a5ef9af0d53";
const SCRAM: &str = "SCRAM-SHA-256$10000:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";

fn asked(database: &Database) -> String {
    database.ask("SELECT count(*) FROM admin.asked")
}

#[test]
fn a_name_that_there_is_is_asked_as_one_that_there_is_not() {
    let Some(database) = Database::start("a_name_that_there_is") else {
        return;
    };
    database.ask(
        "CREATE SCHEMA admin; CREATE TABLE admin.asked (name text); CREATE TABLE admin.secrets (name text, secret text);
         CREATE FUNCTION admin.lookup(who text) RETURNS TABLE (name text, secret text) LANGUAGE sql AS $$
            INSERT INTO admin.asked VALUES (who); SELECT name, secret FROM admin.secrets WHERE name = who $$",
    );
    for (method, secret) in [
        ("scram", "pencil"),
        ("scram", SCRAM),
        ("scram", MD5),
        ("md5", "pencil"),
        ("md5", SCRAM),
        ("md5", MD5),
        ("password", "pencil"),
        ("password", SCRAM),
        ("password", MD5),
    ] {
        database.ask(&format!(
            "TRUNCATE admin.secrets; INSERT INTO admin.secrets VALUES ('looked', '{secret}')"
        ));
        let gate = Gate::before(
            &database,
            &format!(
                "auth = \"{method}\"\n[[user]]\nname = \"filed\"\npassword = \"{secret}\"\n[auth_query]\nuser = \"postgres\"\n\
                 database = \"postgres\"\nquery = \"SELECT * FROM admin.lookup($1)\"\n"
            ),
        );
        let expected = steps(&gate, "filed", "postgres");
        assert!(
            expected.contains("password authentication failed"),
            "{expected}"
        );
        for (name, user) in [
            ("postgres", "filed"),
            ("postgres", "looked"),
            ("postgres", "nobody"),
            ("postgres", "other"),
            ("nosuch", "filed"),
            ("nosuch", "looked"),
            ("nosuch", "nobody"),
            ("sooner", "filed"),
            ("sooner", "nobody"),
        ] {
            database.ask("TRUNCATE admin.asked");
            assert_eq!(
                steps(&gate, user, name),
                expected,
                "{method} {secret} {user} {name}"
            );
            assert_eq!(asked(&database), "1", "{method} {secret} {user} {name}");
        }
    }
}

#[test]
fn strangers_do_not_learn_why_a_secret_cannot_be_looked_up() {
    let Some(database) = Database::start("strangers_do_not_learn_why") else {
        return;
    };
    database.ask("CREATE ROLE asker LOGIN PASSWORD 'x'");
    database.require("md5", "asker");
    let gate = |more: &str| {
        let config = format!("auth = \"scram\"\n[auth_query]\nuser = \"asker\"\n{more}");
        Gate::before(&database, &config)
    };
    let told = |gate: &Gate, name: &str| {
        let mut psql = gate.psql(&database, "ann");
        let output = psql
            .env("PGPASSWORD", "pencil")
            .args(["-d", name, "-c", "SELECT 1"])
            .output();
        said(&output.unwrap())
    };
    // No login, no right, no such function.
    let right = "[[user]]\nname = \"asker\"\npassword = \"x\"\n";
    let nothing = "query = \"SELECT * FROM nothing($1)\"\n";
    for more in ["", right, &format!("{nothing}{right}")] {
        let said = told(&gate(more), "postgres");
        assert!(
            said.contains("cannot look up secrets at the moment"),
            "{said}"
        );
        assert!(
            !said.contains("asker") && !said.contains("pg_authid"),
            "{said}"
        );
    }
    // Which databases there are is not for strangers either.
    let said = told(&gate(right), "nosuch");
    assert!(
        said.contains("password authentication failed for user \"ann\""),
        "{said}"
    );
}
