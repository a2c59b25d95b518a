//! Settings that follow no client: no session has them for longer than a transaction, whatever SET
//! says, or, as `seed`, none tells their value.

const MOMENTARY: [&str; 4] = [
    "seed",
    "transaction_deferrable",
    "transaction_isolation",
    "transaction_read_only",
];

/// Whether a setting of this name follows no client.
pub fn is_momentary(name: &[u8]) -> bool {
    let is_it = |known: &&str| name.eq_ignore_ascii_case(known.as_bytes());
    MOMENTARY.iter().any(is_it)
}

/// Whether it has no effect in a first packet. What the server would refuse there, it is left to
/// refuse.
pub fn is_idle_at_start(name: &[u8], value: &[u8]) -> bool {
    let value = str::from_utf8(value).unwrap_or_default();
    if name.eq_ignore_ascii_case(b"seed") {
        let seed = value.parse().ok();
        return seed.is_some_and(|seed: f64| (-1.0..=1.0).contains(&seed));
    }
    let words = ["on", "off", "true", "false", "yes", "no", "1", "0"];
    let is_word = words.iter().any(|word| value.eq_ignore_ascii_case(word));
    is_word && name.eq_ignore_ascii_case(b"transaction_read_only")
}
