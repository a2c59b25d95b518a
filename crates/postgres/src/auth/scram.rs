//! SCRAM-SHA-256 (RFC 5802, RFC 7677) on both sides.
//!
//! **Towards clients** a [`Verifier`] is enough, which is what PostgreSQL keeps. From the proof of
//! a client that knows the password the verifier's owner learns one thing more, the client key; and
//! with client key and verifier it can prove itself to a server that has the same verifier. So no
//! password has to be stored for logging in as them ([`Keys`]).
//!
//! **Left out:** channel binding (`SCRAM-SHA-256-PLUS`). It binds the proof to one TLS connection,
//! and there are two.

use super::same;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::str::FromStr;

/// How a verifier begins.
pub const PREFIX: &str = "SCRAM-SHA-256$";
/// Of the verifiers made here, and of PostgreSQL's.
pub const SALT_BYTES: usize = 16;
/// PostgreSQL's.
pub const ITERATIONS: u32 = 4096;
/// As often as PostgreSQL takes: what is compared costs the same with any number.
const ITERATIONS_MAX: u32 = i32::MAX as u32;
/// As often a password is hashed here, which takes about a second: with more, the author of a
/// verifier, or a false server, could cost much processor time.
const HASHED_MAX: u32 = 2_000_000;
/// The longest message of a client that is read.
const MESSAGE_BYTES_MAX: usize = 4096;

type Key = [u8; 32];

/// What a server keeps of a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    iterations: u32,
    salt: Vec<u8>,
    stored_key: Key,
    server_key: Key,
}

/// A text that begins like a verifier and is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a SCRAM verifier is SCRAM-SHA-256$ITERATIONS:SALT$STOREDKEY:SERVERKEY, with 1 to {ITERATIONS_MAX} iterations"
)]
pub struct BadVerifier;

impl FromStr for Verifier {
    type Err = BadVerifier;

    fn from_str(text: &str) -> Result<Self, BadVerifier> {
        let read = || {
            let (head, keys) = text.strip_prefix(PREFIX)?.split_once('$')?;
            let (iterations, salt) = head.split_once(':')?;
            let (stored, server) = keys.split_once(':')?;
            let iterations = iterations.parse().ok();
            Some(Verifier {
                iterations: iterations.filter(|count| (1..=ITERATIONS_MAX).contains(count))?,
                salt: STANDARD.decode(salt).ok().filter(|salt| !salt.is_empty())?,
                stored_key: key(stored)?,
                server_key: key(server)?,
            })
        };
        read().ok_or(BadVerifier)
    }
}

impl Verifier {
    /// What proves this password.
    pub fn of_password(password: impl AsRef<[u8]>, salt: &[u8]) -> Verifier {
        Keys::of_password(password.as_ref(), salt, ITERATIONS).verifier
    }

    /// What no client can prove, the same each time for the same user: guessing names tells
    /// nothing.
    pub fn of_nobody(secret: &[u8; 32], user: &str, iterations: u32) -> Verifier {
        let salt = salt_of(secret, user);
        Verifier {
            iterations,
            salt: salt.to_vec(),
            stored_key: hmac(secret, &salt),
            server_key: [0; 32],
        }
    }

    /// How often a password is hashed for it.
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// Whether it is of this password; one that is hashed too often is of none.
    pub fn is_password(&self, password: impl AsRef<[u8]>) -> bool {
        if self.iterations > HASHED_MAX {
            return false;
        }
        let salted = salted(password.as_ref(), &self.salt, self.iterations);
        let stored_key = digest(&hmac(&salted, b"Client Key"));
        same(&stored_key, &self.stored_key)
    }
}

/// The salt for a user without one in its secret: the same each time, known or not.
pub fn salt_of(secret: &[u8; 32], user: &str) -> [u8; SALT_BYTES] {
    let salt = hmac(secret, user.as_bytes());
    std::array::from_fn(|index| salt[index])
}

/// Why an exchange ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// Not a message of the exchange.
    #[error("a SCRAM message is malformed: {0}")]
    Malformed(&'static str),
    /// The password is another one, or the server does not know it.
    #[error("the proof is wrong")]
    Wrong,
    /// The server wants a password to be hashed more often than is done here.
    #[error("it wants a password to be hashed more than {HASHED_MAX} times")]
    TooOften,
}

/// What proves a user to servers with the verifier's salt and iterations, without the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    client_key: Key,
    verifier: Verifier,
}

impl Keys {
    fn of_password(password: &[u8], salt: &[u8], iterations: u32) -> Keys {
        let salted = salted(password, salt, iterations);
        let client_key = hmac(&salted, b"Client Key");
        let verifier = Verifier {
            iterations,
            salt: salt.to_vec(),
            stored_key: digest(&client_key),
            server_key: hmac(&salted, b"Server Key"),
        };
        Keys {
            client_key,
            verifier,
        }
    }
}

/// What a client proves itself by.
#[derive(Clone, PartialEq, Eq)]
pub enum Proof {
    /// The password.
    Password(Vec<u8>),
    /// What was learned from a client that knew it.
    Keys(Keys),
}

/// The server's side between the client's two messages.
pub struct ServerExchange {
    verifier: Verifier,
    nonce: String,
    header: String,
    /// What both sides sign, without the client's last message.
    signed: String,
}

impl ServerExchange {
    /// Takes the client's first message; gives the answer. `nonce` is printable, without commas,
    /// and new each time.
    pub fn begin(
        first: &[u8],
        verifier: Verifier,
        nonce: &str,
    ) -> Result<(Self, String), ScramError> {
        let first = text(first)?;
        let mut parts = first.splitn(3, ',');
        let mut part = || parts.next().ok_or(ScramError::Malformed("it is too short"));
        let (binding, authorization, bare) = (part()?, part()?, part()?);
        if !["n", "y"].contains(&binding) {
            return Err(ScramError::Malformed("channel binding was not offered"));
        }
        if !authorization.is_empty() {
            return Err(ScramError::Malformed(
                "acting for another user is not supported",
            ));
        }
        // The user's name was in the first packet; what stands here is not looked at, as in
        // PostgreSQL.
        let attributes = bare
            .strip_prefix("n=")
            .and_then(|bare| bare.split_once(",r="));
        let (_, client_nonce) = attributes.ok_or(ScramError::Malformed("it has no nonce"))?;
        let is_printable = |byte: u8| byte.is_ascii_graphic() && byte != b',';
        if client_nonce.is_empty() || !client_nonce.bytes().all(is_printable) {
            return Err(ScramError::Malformed("its nonce is not printable"));
        }
        let nonce = format!("{client_nonce}{nonce}");
        let salt = STANDARD.encode(&verifier.salt);
        let answer = format!("r={nonce},s={salt},i={}", verifier.iterations);
        let exchange = Self {
            signed: format!("{bare},{answer}"),
            header: STANDARD.encode(format!("{binding},,")),
            nonce,
            verifier,
        };
        Ok((exchange, answer))
    }

    /// Takes the client's last message; gives the answer, and what logs in elsewhere.
    pub fn end(self, last: &[u8]) -> Result<(String, Keys), ScramError> {
        let last = text(last)?;
        let (without_proof, proof) = last
            .rsplit_once(",p=")
            .ok_or(ScramError::Malformed("it has no proof"))?;
        if without_proof != format!("c={},r={}", self.header, self.nonce) {
            return Err(ScramError::Malformed("it is not of this exchange"));
        }
        let proof = key(proof).ok_or(ScramError::Malformed("its proof is none"))?;
        let signed = format!("{},{without_proof}", self.signed);
        let client_key = xor(proof, hmac(&self.verifier.stored_key, signed.as_bytes()));
        if !same(&digest(&client_key), &self.verifier.stored_key) {
            return Err(ScramError::Wrong);
        }
        let signature = hmac(&self.verifier.server_key, signed.as_bytes());
        let answer = format!("v={}", STANDARD.encode(signature));
        let keys = Keys {
            client_key,
            verifier: self.verifier,
        };
        Ok((answer, keys))
    }
}

/// The client's side.
pub struct ClientExchange {
    proof: Proof,
    bare: String,
    nonce: String,
}

/// The server's first message.
struct ServerFirst<'a> {
    nonce: &'a str,
    salt: Vec<u8>,
    iterations: u32,
}

impl<'a> ServerFirst<'a> {
    fn read(message: &'a str) -> Option<Self> {
        let (nonce, rest) = message.strip_prefix("r=")?.split_once(",s=")?;
        let (salt, iterations) = rest.split_once(",i=")?;
        let iterations = iterations.parse().ok();
        Some(Self {
            nonce,
            salt: STANDARD.decode(salt).ok()?,
            iterations: iterations.filter(|count| (1..=ITERATIONS_MAX).contains(count))?,
        })
    }
}

/// The client's side after its last message.
pub struct ClientEnd {
    server_key: Key,
    signed: String,
}

impl ClientExchange {
    /// The first message.
    pub fn begin(proof: Proof, nonce: &str) -> (Self, String) {
        let bare = format!("n=,r={nonce}");
        let first = format!("n,,{bare}");
        let nonce = nonce.to_owned();
        (Self { proof, bare, nonce }, first)
    }

    /// How often [`Self::answer`] hashes a password for the server's first message.
    pub fn hashes(&self, server_first: &[u8]) -> u32 {
        let read = || Some(ServerFirst::read(text(server_first).ok()?)?.iterations);
        match &self.proof {
            Proof::Password(_) => read().unwrap_or_default(),
            Proof::Keys(_) => 0,
        }
    }

    /// Takes the server's first message; gives the answer.
    pub fn answer(self, server_first: &[u8]) -> Result<(ClientEnd, String), ScramError> {
        let server_first = text(server_first)?;
        let ServerFirst {
            nonce,
            salt,
            iterations,
        } = ServerFirst::read(server_first).ok_or(ScramError::Malformed("the server's first"))?;
        if !nonce.starts_with(&self.nonce) {
            return Err(ScramError::Malformed("the server's first"));
        }
        let keys = match self.proof {
            Proof::Password(_) if iterations > HASHED_MAX => return Err(ScramError::TooOften),
            Proof::Password(password) => Keys::of_password(&password, &salt, iterations),
            Proof::Keys(keys) => keys,
        };
        let verifier = &keys.verifier;
        // Another salt is another verifier, with another client key.
        if salt != verifier.salt || iterations != verifier.iterations {
            return Err(ScramError::Wrong);
        }
        let without_proof = format!("c=biws,r={nonce}");
        let signed = format!("{},{server_first},{without_proof}", self.bare);
        let proof = xor(
            keys.client_key,
            hmac(&verifier.stored_key, signed.as_bytes()),
        );
        let answer = format!("{without_proof},p={}", STANDARD.encode(proof));
        let end = ClientEnd {
            server_key: verifier.server_key,
            signed,
        };
        Ok((end, answer))
    }
}

impl ClientEnd {
    /// Takes the server's last message: whether it knows the password as well.
    pub fn check(self, server_last: &[u8]) -> Result<(), ScramError> {
        let signature = text(server_last)?.strip_prefix("v=").and_then(key);
        let signature = signature.ok_or(ScramError::Malformed("the server's last"))?;
        if same(&signature, &hmac(&self.server_key, self.signed.as_bytes())) {
            Ok(())
        } else {
            Err(ScramError::Wrong)
        }
    }
}

fn text(message: &[u8]) -> Result<&str, ScramError> {
    let text = str::from_utf8(message).map_err(|_| ScramError::Malformed("it is not UTF-8"))?;
    if text.len() <= MESSAGE_BYTES_MAX {
        Ok(text)
    } else {
        Err(ScramError::Malformed("it is too long"))
    }
}

fn key(text: &str) -> Option<Key> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

fn xor(a: Key, b: Key) -> Key {
    std::array::from_fn(|index| a[index] ^ b[index])
}

/// What cannot be computed without the key.
pub(super) fn keyed_hash(key: &[u8; 32], message: &[u8]) -> [u8; 32] {
    hmac(key, message)
}

fn hmac(key: &[u8], message: &[u8]) -> Key {
    let mut hmac = keyed(key);
    hmac.update(message);
    hmac.finalize().into_bytes().into()
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"))
}

fn digest(message: &[u8]) -> Key {
    Sha256::digest(message).into()
}

/// PBKDF2 of one block. A password that is no text by SASL's rules is taken as it is, as PostgreSQL
/// does.
fn salted(password: &[u8], salt: &[u8], iterations: u32) -> Key {
    let text = str::from_utf8(password).ok();
    let prepared = text.and_then(|text| stringprep::saslprep(text).ok());
    let keyed = keyed(prepared.as_deref().map_or(password, str::as_bytes));
    let next = |message: &[u8]| -> Key {
        let mut hmac = keyed.clone();
        hmac.update(message);
        hmac.finalize().into_bytes().into()
    };
    let mut last = next(&[salt, &1_u32.to_be_bytes()].concat());
    let mut all = last;
    for _ in 1..iterations {
        last = next(&last);
        all = xor(all, last);
    }
    all
}

#[cfg(test)]
mod tests;
