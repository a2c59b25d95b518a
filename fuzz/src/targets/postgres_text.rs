//! Whatever stands in a command, a users file, a configuration, a row or an address: read to its
//! end, or refused.

use sooner_postgres::auth::{Secret, userlist};
use sooner_pooler::console::command;
use sooner_pooler::config::{Config, ServerAddress};
use sooner_postgres::hints::hints_of;
use sooner_postgres::sql::{session_changes, comment_tags, session_class, shape};
use sooner_postgres::statements::ClientStatements;
use sooner_postgres::wire::{message_of_error, names_of_columns, texts_of_row};

/// Tries one input.
pub fn run(bytes: &[u8]) {
    session_changes(bytes);
    comment_tags(bytes);
    session_class(bytes);
    hints_of(bytes, &ClientStatements::default());
    // One that was read once is read the same again, if nothing is cut off.
    if let Some(first) = shape(bytes).filter(|shape| shape.text.len() < 512) {
        assert!(shape(first.text.as_bytes()).is_some(), "{first:?}");
    }
    let _ = (names_of_columns(bytes), texts_of_row(bytes));
    message_of_error(bytes);
    if let Ok(text) = str::from_utf8(bytes) {
        let _ = userlist::read(text);
        let _ = Secret::read(text);
        let _ = text.parse::<ServerAddress>();
        let _ = command::read(text);
        let _ = Config::parse(text).and_then(|config| config.check());
    }
}
