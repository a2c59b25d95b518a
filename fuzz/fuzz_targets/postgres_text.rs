//! Whatever stands in a command, a users file, a configuration, a row or an address: read to its end, or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sooner_postgres::auth::{Secret, userlist};
use sooner_postgres::command;
use sooner_postgres::config::{Config, ServerAddress};
use sooner_postgres::sql::leaves;
use sooner_postgres::wire::{message_of_error, names_of_columns, texts_of_row};

fuzz_target!(|bytes: &[u8]| {
    leaves(bytes);
    let _ = (names_of_columns(bytes), texts_of_row(bytes));
    message_of_error(bytes);
    if let Ok(text) = str::from_utf8(bytes) {
        let _ = userlist::read(text);
        let _ = Secret::read(text);
        let _ = text.parse::<ServerAddress>();
        let _ = command::read(text);
        let _ = Config::parse(text).and_then(|config| config.check());
    }
});
