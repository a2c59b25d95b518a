//! Passwords by md5, as PostgreSQL has it: not safe, and still in use.

use super::{Secret, same};
use md5::{Digest, Md5};

/// What the server sends, so that an answer is good once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Md5Salt(pub [u8; 4]);

impl Md5Salt {
    /// What a client answers who knows the secret; `None` for a SCRAM verifier.
    pub fn answer(self, user: &str, secret: &Secret) -> Option<String> {
        let kept = secret.as_md5(user)?;
        Some(hash(&[&kept.as_bytes()["md5".len()..], &self.0]))
    }

    /// Whether it is the answer.
    pub fn is_answer(self, user: &str, secret: &Secret, answer: impl AsRef<[u8]>) -> bool {
        let expected = self.answer(user, secret);
        expected.is_some_and(|expected| same(expected.as_bytes(), answer.as_ref()))
    }
}

/// What PostgreSQL keeps of a password.
pub fn of_password(user: &str, password: impl AsRef<[u8]>) -> String {
    hash(&[password.as_ref(), user.as_bytes()])
}

fn hash(parts: &[&[u8]]) -> String {
    let mut md5 = Md5::new();
    parts.iter().for_each(|part| md5.update(part));
    let digits = md5
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>();
    format!("md5{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_those_of_other_implementations() {
        let (salt, user) = (Md5Salt([1, 2, 3, 4]), "ann");
        let theirs = postgres_protocol::authentication::md5_hash(b"ann", b"secret", salt.0);
        for secret in [
            Secret::Plain("secret".into()),
            Secret::Md5(of_password(user, "secret")),
        ] {
            assert_eq!(salt.answer(user, &secret).as_deref(), Some(theirs.as_str()));
            assert!(salt.is_answer(user, &secret, &theirs));
            assert!(!Md5Salt([0; 4]).is_answer(user, &secret, &theirs));
        }
    }
}
