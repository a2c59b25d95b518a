//! The encodings of a session: of the texts that a client sends, and of the settings that it is
//! told.

use super::{Parameters, find};
use crate::sql::Encoding;

/// With this one nothing is converted.
const NO_ENCODING: &[u8] = b"SQL_ASCII";

fn value<'a>(reported: &'a Parameters, name: &str) -> Option<&'a [u8]> {
    let value = find(reported, name.as_bytes()).map(Vec::as_slice);
    value.filter(|value| *value != NO_ENCODING)
}

/// The encoding in which a client's texts come where these settings were reported. Where the client
/// or the database has none, the bytes are taken as they are.
pub fn of_texts(reported: &Parameters) -> Encoding {
    let server = value(reported, "server_encoding");
    let name = server.map(|server| value(reported, "client_encoding").unwrap_or(server));
    name.map_or(Encoding::SingleByte, Encoding::of)
}

/// The encoding in which a client is told settings, where that is not the database's own: a
/// search_path, which PostgreSQL reports from 18 on, may have names beyond ASCII.
pub(super) fn of_reports(reported: &Parameters) -> Option<&[u8]> {
    let client = value(reported, "client_encoding")?;
    let server = value(reported, "server_encoding")?;
    (client != server).then_some(client)
}
