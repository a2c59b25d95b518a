//! A login is no transaction, and waits for no place of one.

use std::io::Read;
use std::path::Path;
use std::thread;

use super::{PATIENCE, Session, answer};
use crate::support::{Database, GATE_PORT, Gate, Talk, transactions};

/// What a new session is told of its settings and of errors; up to where it may begin, or the end.
pub(super) fn told(folder: &Path, port: u16, parameters: &[(&str, &str)]) -> Vec<String> {
    let mut session = Session::open(folder, port, parameters);
    let mut told = Vec::new();
    loop {
        let mut head = [0; 5];
        if let Err(error) = session.0.read_exact(&mut head) {
            told.push(format!("{:?}", error.kind()));
            return told;
        }
        let length = i32::from_be_bytes(head[1..].try_into().unwrap());
        let mut body = vec![0; length as usize - 4];
        session.0.read_exact(&mut body).unwrap();
        match head[0] {
            b'S' => told.push(String::from_utf8_lossy(&body).replace('\0', " ")),
            b'E' => told.extend(answer(b'E', &body)),
            b'Z' => {
                // In which order is no matter of the protocol.
                told.sort();
                return told;
            }
            _ => {}
        }
    }
}

#[test]
fn a_login_waits_for_no_place() {
    let Some(database) = Database::start("a_login_waits_for_no_place") else {
        return;
    };
    for role in ["ann", "bob", "may"] {
        database.ask(&format!("CREATE ROLE {role} LOGIN"));
    }
    let gate = Gate::before(&database, &transactions(1));
    let mut holder = Talk::begin(&mut gate.psql(&database, "ann"));
    holder.ask("BEGIN");
    let logins: [&[(&str, &str)]; 7] = [
        // Roles that the gate has not met.
        &[("user", "bob")],
        &[("user", "may"), ("options", "-c work_mem=5MB")],
        // Settings of which it does not know what the server says.
        &[("user", "ann"), ("options", "-c statement_timeout=5000")],
        &[("user", "ann"), ("options", "-c DateStyle=german")],
        &[("user", "ann"), ("client_encoding", "latin1")],
        // What the server refuses.
        &[("user", "ann"), ("options", "-c work_mem=much")],
        &[("user", "ann"), ("DateStyle", "wrong")],
    ];
    for parameters in logins {
        let there = told(database.folder(), 5432, parameters);
        let here = told(gate.folder(), GATE_PORT, parameters);
        assert_eq!(here, there, "{parameters:?}");
    }
    // A transaction waits, and has the settings that its login asked for.
    let own = [("user", "ann"), ("options", "-c work_mem=5MB")];
    let (mut waiting, _) = Session::begin(gate.folder(), GATE_PORT, &own);
    let asking = thread::spawn(move || waiting.say(&["Q:show work_mem"]));
    thread::sleep(PATIENCE / 100);
    assert!(!asking.is_finished(), "it does not wait");
    holder.ask("COMMIT");
    assert!(asking.join().unwrap().contains("5MB"));
}
