//! One password as an htpasswd file keeps it: which kinds are taken, and whether a password is the
//! one.

use super::apr1;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha_crypt::{PasswordVerifier, ShaCrypt};
use sha1::{Digest, Sha1};
use subtle::ConstantTimeEq;
use thiserror::Error;

/// The highest cost of bcrypt; each step doubles the time, and this takes a second or two.
const BCRYPT_COST_MAX: u32 = 15;
/// The lowest that bcrypt knows.
const BCRYPT_COST_MIN: u32 = 4;
/// The rounds that SHA crypt may have; the highest takes a second or so.
const ROUNDS: std::ops::RangeInclusive<u32> = 1000..=1_000_000;
/// Characters of a bcrypt hash in all.
const BCRYPT_CHARACTERS: usize = 60;
/// Bytes of SHA-1.
const SHA1_BYTES: usize = 20;

/// A password that cannot be told from what is kept.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// `$2y$`, and its elder names: text as the library reads it.
    Bcrypt(Box<str>),
    /// `$apr1$` and `$1$`.
    Md5 {
        /// The name with its dollar signs.
        magic: &'static str,
        /// The salt.
        salt: Box<[u8]>,
        /// What follows the last dollar sign.
        hash: Box<[u8]>,
    },
    /// `$5$` and `$6$`: text as the library reads it.
    Sha2(Box<str>),
    /// `{SHA}`, and `{SSHA}` with a salt.
    Sha1 {
        /// What is hashed behind the password.
        salt: Box<[u8]>,
        /// The hash.
        hash: [u8; SHA1_BYTES],
    },
}

/// Why what is kept of a password is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SecretError {
    /// Nothing is there.
    #[error("has no password")]
    Empty,
    /// Of no known kind.
    #[error("has a password in plain text or in the old crypt format, and neither is safe")]
    Plain,
    /// A kind that is not read here.
    #[error("has a password of the kind `{0}`, which Sooner does not read")]
    Kind(String),
    /// A known kind, but not complete.
    #[error("has a password that is cut off or changed: this is not a valid {0}")]
    Broken(&'static str),
    /// Checking takes too long.
    #[error(
        "has a password of bcrypt with cost {0}; {BCRYPT_COST_MIN} to {BCRYPT_COST_MAX} are allowed, 10 is usual"
    )]
    Cost(u32),
    /// Checking takes too long, or it is no such hash.
    #[error("has a password with rounds={0}; 1000 to 1000000 are allowed, 5000 is usual")]
    Rounds(String),
}

impl Secret {
    /// Reads what stands behind the colon.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        if text.is_empty() {
            return Err(SecretError::Empty);
        }
        if let Some(encoded) = text.strip_prefix("{SHA}") {
            return sha1(encoded, "{SHA}", false);
        }
        if let Some(encoded) = text.strip_prefix("{SSHA}") {
            return sha1(encoded, "{SSHA}", true);
        }
        let kind = text.strip_prefix('$').and_then(|rest| rest.split_once('$'));
        match kind {
            Some(("2y" | "2a" | "2b", _)) => bcrypt(text),
            Some(("apr1", rest)) => md5("$apr1$", rest),
            Some(("1", rest)) => md5("$1$", rest),
            Some(("5", rest)) => sha2(text, rest, 43),
            Some(("6", rest)) => sha2(text, rest, 86),
            // As crypt writes it: a short name of letters and digits between two dollar signs.
            Some((kind, _))
                if (1..9).contains(&kind.len())
                    && kind
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') =>
            {
                Err(SecretError::Kind(format!("${kind}$")))
            }
            _ => Err(SecretError::Plain),
        }
    }

    /// Whether this is the password. Takes up to seconds, and the same time whatever it differs in.
    pub fn fits(&self, password: &[u8]) -> bool {
        match self {
            // It was read, so it can be checked.
            Self::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
            Self::Sha2(hash) => {
                let hash: &str = hash;
                ShaCrypt::default().verify_password(password, hash).is_ok()
            }
            Self::Md5 { magic, salt, hash } => {
                let crypted = apr1::crypt(password, magic, salt);
                crypted.ct_eq(hash).into()
            }
            Self::Sha1 { salt, hash } => {
                let digest = Sha1::new().chain_update(password).chain_update(salt);
                digest.finalize().as_slice().ct_eq(hash).into()
            }
        }
    }
}

fn bcrypt(text: &str) -> Result<Secret, SecretError> {
    let broken = SecretError::Broken("bcrypt");
    let (cost, rest) = text[4..].split_once('$').ok_or(broken.clone())?;
    let is_two_digits = cost.len() == 2 && cost.bytes().all(|byte| byte.is_ascii_digit());
    let cost: u32 = cost.parse().map_err(|_| broken.clone())?;
    if !is_two_digits || text.len() != BCRYPT_CHARACTERS || !rest.bytes().all(is_crypt) {
        return Err(broken);
    }
    if !(BCRYPT_COST_MIN..=BCRYPT_COST_MAX).contains(&cost) {
        return Err(SecretError::Cost(cost));
    }
    Ok(Secret::Bcrypt(text.into()))
}

fn md5(magic: &'static str, rest: &str) -> Result<Secret, SecretError> {
    let broken = SecretError::Broken(match magic {
        "$1$" => "MD5 crypt",
        _ => "MD5 of Apache",
    });
    let (salt, hash) = rest.split_once('$').ok_or(broken.clone())?;
    if hash.len() != 22 || !hash.bytes().all(is_crypt) || salt.len() > 8 {
        return Err(broken);
    }
    Ok(Secret::Md5 {
        magic,
        salt: salt.as_bytes().into(),
        hash: hash.as_bytes().into(),
    })
}

fn sha2(text: &str, rest: &str, characters: usize) -> Result<Secret, SecretError> {
    let broken = SecretError::Broken("SHA crypt");
    let rest = match rest.strip_prefix("rounds=") {
        None => rest,
        Some(rest) => {
            let (rounds, rest) = rest.split_once('$').ok_or(broken.clone())?;
            let number = rounds.parse().ok().filter(|number| ROUNDS.contains(number));
            number.ok_or_else(|| SecretError::Rounds(rounds.chars().take(12).collect()))?;
            rest
        }
    };
    let (salt, hash) = rest.split_once('$').ok_or(broken.clone())?;
    let is_hash = hash.len() == characters && hash.bytes().all(is_crypt);
    if !is_hash || salt.len() > 16 || !salt.bytes().all(is_crypt) {
        return Err(broken);
    }
    Ok(Secret::Sha2(text.into()))
}

/// The alphabet that all kinds of crypt share, in different orders.
fn is_crypt(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/')
}

fn sha1(encoded: &str, name: &'static str, has_salt: bool) -> Result<Secret, SecretError> {
    let broken = SecretError::Broken(name);
    let plain = STANDARD.decode(encoded).map_err(|_| broken.clone())?;
    let (hash, salt) = plain.split_at_checked(SHA1_BYTES).ok_or(broken.clone())?;
    let hash = hash.try_into().map_err(|_| broken.clone())?;
    if salt.is_empty() == has_salt || salt.len() > 64 {
        return Err(broken);
    }
    Ok(Secret::Sha1 {
        salt: salt.into(),
        hash,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BCRYPT: &str = "$2y$04$H8RxKIw3vm4Ww4aXx.pRkeDlt6nsZxTKU.W5HeIHBOLgbXpRwCDfi";

    fn error(text: &str) -> String {
        match Secret::parse(text) {
            Ok(_) => panic!("{text} is read"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_is_no_hash_is_refused_with_its_reason() {
        let hash = "x".repeat(86);
        for (text, reason) in [
            ("", "has no password"),
            ("secret", "plain text"),
            ("rqXexS6ZhobKA", "old crypt"),
            ("{PLAIN}secret", "plain text"),
            ("$", "plain text"),
            ("$money$", "`$money$`"),
            ("$y$j9T$abc$def", "`$y$`"),
            ("$argon2id$v=19$m=65536", "`$argon2id$`"),
            ("$a b$c", "plain text"),
            (&BCRYPT[..59], "a valid bcrypt"),
            ("$2y$", "a valid bcrypt"),
            (&BCRYPT.replace("04", "31"), "cost 31"),
            (&BCRYPT.replace("04", "+4"), "a valid bcrypt"),
            ("$apr1$salt$short", "a valid MD5"),
            ("$apr1$", "a valid MD5"),
            ("$6$salt$short", "a valid SHA crypt"),
            (
                &format!("$6$rounds=999999999$salt${hash}"),
                "rounds=999999999;",
            ),
            (&format!("$6$rounds=10$salt${hash}"), "rounds=10;"),
            (&format!("$6$rounds=x$salt${hash}"), "rounds=x;"),
            ("{SHA}AAAA", "a valid {SHA}"),
            ("{SSHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "a valid {SSHA}"),
            ("{SHA}!", "a valid {SHA}"),
        ] {
            let error = error(text);
            assert!(error.contains(reason), "{text}: {error}");
            assert_eq!(error.lines().count(), 1);
        }
    }

    #[test]
    fn sha1_has_a_salt_or_not() {
        let plain = Secret::parse("{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=")
            .ok()
            .unwrap();
        assert!(plain.fits(b"password") && !plain.fits(b"Password"));
        let salted = [&Sha1::digest(b"passwordsalt")[..], b"salt"].concat();
        let salted = Secret::parse(&format!("{{SSHA}}{}", STANDARD.encode(salted)));
        let salted = salted.ok().unwrap();
        assert!(salted.fits(b"password") && !salted.fits(b"passwor") && !salted.fits(b""));
    }
}
