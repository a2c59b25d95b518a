//! Random numbers from the operating system.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::fs::File;
use std::io::{self, Read};

/// Bytes that cannot be guessed.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A nonce of SCRAM: printable, without commas.
pub fn nonce() -> io::Result<String> {
    Ok(STANDARD_NO_PAD.encode(bytes::<18>()?))
}
