//! Whatever stands in a command, a users file or an address: read to its end, or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sooner_postgres::auth::{Secret, userlist};
use sooner_postgres::config::ServerAddress;
use sooner_postgres::sql::leaves;

fuzz_target!(|bytes: &[u8]| {
    leaves(bytes);
    if let Ok(text) = str::from_utf8(bytes) {
        let _ = userlist::read(text);
        let _ = Secret::read(text);
        let _ = text.parse::<ServerAddress>();
    }
});
