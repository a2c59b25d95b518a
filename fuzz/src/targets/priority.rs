//! A Priority field gives an urgency that exists, and two fields in a row give what the latter
//! says.

use sooner_http::priority::{Priority, URGENCY_MAX};

/// Tries one input.
pub fn run(field: &[u8]) {
    let Some(said) = Priority::parse(field) else {
        return;
    };
    assert!(said.urgency_or_default() <= URGENCY_MAX);
    if field
        .iter()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c))
    {
        return;
    }
    let twice = [b"u=1, i, ", field].concat();
    let twice = Priority::parse(&twice).expect("two dictionaries are one");
    assert!(twice.urgency == said.urgency || twice.urgency == Some(1));
    assert!(twice.incremental == said.incremental || twice.incremental == Some(true));
}
