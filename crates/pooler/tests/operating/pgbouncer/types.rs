//! The types of columns, beside PgBouncer's: drivers make their values by them.

use super::{PORT, TABLES, start};
use crate::support::GATE_PORT;
use sooner_postgres::wire::{HEADER_BYTES, Look, Splitter, columns, write_query};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A session in the console; its answers are looked at byte by byte.
struct Session {
    stream: UnixStream,
    input: bytes::BytesMut,
}

impl Session {
    fn begin(folder: &Path, port: u16) -> Session {
        let path = folder.join(format!(".s.PGSQL.{port}"));
        let mut stream = UnixStream::connect(path).unwrap();
        let body = b"\0\x03\0\0user\0postgres\0database\0pgbouncer\0\0";
        let length = (body.len() as u32 + 4).to_be_bytes();
        stream.write_all(&[&length[..], body].concat()).unwrap();
        let input = bytes::BytesMut::new();
        let mut session = Session { stream, input };
        session.until_ready();
        session
    }

    /// All messages up to the one that says that the next command may come.
    fn until_ready(&mut self) -> Vec<(u8, Vec<u8>)> {
        let mut all = Vec::new();
        loop {
            let look = |_| Look::Whole(1 << 20);
            let piece = Splitter::new(look).next(&self.input).unwrap();
            let length = piece.map(|piece| piece.bytes.len());
            if let Some(length) = length {
                let message = self.input.split_to(length);
                all.push((message[0], message[HEADER_BYTES..].to_vec()));
                if message[0] == b'Z' {
                    return all;
                }
                continue;
            }
            let mut buffer = [0; 4096];
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the console is gone: {all:?}");
            self.input.extend_from_slice(&buffer[..count]);
        }
    }

    /// The type of each column of an answer, by name.
    fn types(&mut self, command: &str) -> BTreeMap<String, i32> {
        let mut out = bytes::BytesMut::new();
        write_query(&mut out, command.as_bytes());
        self.stream.write_all(&out).unwrap();
        let messages = self.until_ready();
        let described = messages.iter().find(|(tag, _)| *tag == b'T');
        let (_, body) = described.unwrap_or_else(|| panic!("{command}: {messages:?}"));
        let all = columns(body).unwrap();
        let column = |column: &sooner_postgres::wire::Column<'_>| {
            let name = String::from_utf8_lossy(column.name).into_owned();
            (name, column.type_oid)
        };
        all.iter().map(column).collect()
    }
}

const TEXT_OID: i32 = 25;
const INT4_OID: i32 = 23;
const NUMERIC_OID: i32 = 1700;

/// Columns that only newer ones have (1.24 and 1.25), by their source.
const NEWER: [(&str, i32, &str); 9] = [
    (
        "STATS",
        NUMERIC_OID,
        "total_server_assignment_count total_bind_count avg_client_parse_count",
    ),
    ("STATS_TOTALS", NUMERIC_OID, "server_assignment_count"),
    ("STATS_AVERAGES", NUMERIC_OID, "server_parse_count"),
    ("POOLS", TEXT_OID, "load_balance_hosts"),
    ("CLIENTS", INT4_OID, "prepared_statements id"),
    ("SERVERS", INT4_OID, "prepared_statements id"),
    (
        "DATABASES",
        INT4_OID,
        "reserve_pool_size server_lifetime max_client_connections",
    ),
    (
        "USERS",
        INT4_OID,
        "max_user_connections current_connections",
    ),
    ("PEERS", INT4_OID, "peer_id port pool_size"),
];

#[test]
fn columns_have_the_types_of_pgbouncers() {
    let Some((database, _bouncer, gate)) = start("columns_have_the_types") else {
        return;
    };
    let mut theirs = Session::begin(database.folder(), PORT);
    let mut ours = Session::begin(gate.folder(), GATE_PORT);
    let mut wrong = Vec::new();
    for table in TABLES {
        let command = format!("SHOW {table}");
        let own = ours.types(&command);
        for (name, type_oid) in theirs.types(&command) {
            if own.get(&name) != Some(&type_oid) {
                let found = own.get(&name);
                wrong.push(format!("{table}.{name}: {found:?}, not {type_oid}"));
            }
        }
    }
    for (table, type_oid, names) in NEWER {
        let own = ours.types(&format!("SHOW {table}"));
        for name in names.split(' ') {
            let found = own.get(name);
            if found != Some(&type_oid) {
                wrong.push(format!("{table}.{name}: {found:?}, not {type_oid}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
