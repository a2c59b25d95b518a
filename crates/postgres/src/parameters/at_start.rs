//! What a client is told at its beginning: what its server reports of the settings that it asks for,
//! where that is known without asking the server.

use super::{Parameters, RequestedParameters};

impl RequestedParameters {
    /// What a client that asks for it is told on a server that greets new sessions with these
    /// settings, where that is known without asking the server: it asks for what every session has,
    /// or for what is taken as it is.
    pub fn reported_at_start(&self, initial: &Parameters) -> Option<Parameters> {
        let mut told = initial.clone();
        for (name, value) in &self.parameters {
            let (name, usual) = initial
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name))?;
            let is_usual = usual == value || is_same_encoding(name, usual, value);
            if !is_usual && !is_taken_as_it_is(name, value) {
                return None;
            }
            if !is_usual {
                told.insert(name.clone(), value.clone());
            }
        }
        Some(told)
    }

    /// What it asks the server, as one text: where two clients of one user in one database have the
    /// same, they are told the same, but for a name that is taken as it is.
    pub fn question(&self) -> Vec<u8> {
        let mut question = Vec::new();
        for (name, value) in &self.parameters {
            let asked: &[u8] = match is_taken_as_it_is(name, value) {
                true => &[],
                false => &value[..],
            };
            // What each is made of holds no zero.
            for text in [&name[..], asked] {
                question.extend_from_slice(text);
                question.push(0);
            }
        }
        question
    }

    /// What a client that asks for it is told where another one with the same question was told
    /// this.
    pub fn reported_like(&self, other: &Parameters) -> Parameters {
        let mut told = other.clone();
        let own = self.parameters.iter();
        for (name, value) in own.filter(|(name, value)| is_taken_as_it_is(name, value)) {
            // Where it is the same, both stay one.
            if told.get(name) != Some(value) {
                told.insert(name.clone(), value.clone());
            }
        }
        told
    }
}

/// A name of the client; PostgreSQL cuts longer ones, and replaces what is not printable.
fn is_taken_as_it_is(name: &[u8], value: &[u8]) -> bool {
    const NAME_BYTES_MAX: usize = 63;
    let is_plain = |byte: &u8| (b' '..=b'~').contains(byte);
    name == b"application_name" && value.len() <= NAME_BYTES_MAX && value.iter().all(is_plain)
}

/// Whether two names of encodings mean the same; only the one that nearly every client has is known
/// by more than one.
fn is_same_encoding(name: &[u8], usual: &[u8], value: &[u8]) -> bool {
    let names: [&[u8]; 5] = [b"utf8", b"utf-8", b"'utf-8'", b"'utf8'", b"unicode"];
    let is_utf8 = names.iter().any(|name| value.eq_ignore_ascii_case(name));
    name == b"client_encoding" && usual == b"UTF8" && is_utf8
}
