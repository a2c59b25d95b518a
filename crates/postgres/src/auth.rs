//! Who a client is: secrets as they are kept, and the exchanges that prove one.
//!
//! A secret is kept as PostgreSQL keeps it (`pg_authid.rolpassword`) or in clear text: all three
//! come from a file ([`userlist`]), from the configuration or from the database itself. What is
//! sent back and forth is the exchange's business, when and to whom is not.

mod md5;
pub mod mock;
pub mod scram;
pub mod userlist;

pub use md5::Md5Salt;

use scram::Verifier;

/// What is known of a user's password.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// The password itself, in the encoding of the client that has set it.
    Plain(Vec<u8>),
    /// `md5` and 32 digits: of the password and the user's name.
    Md5(String),
    /// What a password is proved with, without being it (RFC 5803).
    Scram(Verifier),
}

/// Never shows what it holds: a secret in a log is none.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "a password",
            Self::Md5(_) => "an md5 hash",
            Self::Scram(_) => "a SCRAM verifier",
        })
    }
}

impl Secret {
    /// Reads what PostgreSQL keeps, or a password.
    pub fn read(text: &str) -> Result<Secret, scram::BadVerifier> {
        if text.starts_with(scram::PREFIX) {
            return Ok(Secret::Scram(text.parse()?));
        }
        let is_md5 = text.strip_prefix("md5").is_some_and(|digits| {
            digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        });
        Ok(if is_md5 {
            Secret::Md5(text.to_ascii_lowercase())
        } else {
            Secret::Plain(text.into())
        })
    }

    /// Whether a password sent in clear text is it.
    pub fn is_password(&self, user: &str, password: impl AsRef<[u8]>) -> bool {
        let password = password.as_ref();
        match self {
            Self::Plain(own) => same(own, password),
            Self::Md5(own) => same(own.as_bytes(), md5::of_password(user, password).as_bytes()),
            Self::Scram(verifier) => verifier.is_password(password),
        }
    }

    /// How often [`Self::is_password`] hashes a password.
    pub fn hashes(&self) -> u32 {
        match self {
            Self::Scram(verifier) => verifier.iterations(),
            Self::Plain(_) | Self::Md5(_) => 0,
        }
    }

    /// Whether it can prove a password by an md5 exchange: a SCRAM verifier cannot.
    pub fn as_md5(&self, user: &str) -> Option<String> {
        match self {
            Self::Plain(password) => Some(md5::of_password(user, password)),
            Self::Md5(hash) => Some(hash.clone()),
            Self::Scram(_) => None,
        }
    }

    /// What it is in a SCRAM exchange; an md5 hash is nothing there. `salt` is for passwords.
    pub fn as_verifier(&self, salt: [u8; scram::SALT_BYTES]) -> Option<Verifier> {
        match self {
            Self::Plain(password) => Some(Verifier::of_password(password, &salt)),
            Self::Md5(_) => None,
            Self::Scram(verifier) => Some(verifier.clone()),
        }
    }
}

/// Whether two texts are the same, in a time that does not tell where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differences) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERIFIER: &str = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
    const MD5: &str = "md5b5d85afd1d3b8a30d4ea8a5ef9af0d53";

    #[test]
    fn a_secret_is_what_its_text_looks_like() {
        assert_eq!(
            format!("{:?}", Secret::read(VERIFIER).unwrap()),
            "a SCRAM verifier"
        );
        assert_eq!(format!("{:?}", Secret::read(MD5).unwrap()), "an md5 hash");
        for password in ["md5", "md5 is old", "pencil", ""] {
            assert_eq!(Secret::read(password), Ok(Secret::Plain(password.into())));
        }
        assert!(Secret::read("SCRAM-SHA-256$oops").is_err());
    }

    #[test]
    fn a_password_in_clear_text_is_held_against_any_of_them() {
        let md5 = md5::of_password("ann", "pencil");
        for secret in [VERIFIER, &md5, "pencil"] {
            let secret = Secret::read(secret).unwrap();
            assert!(secret.is_password("ann", "pencil"), "{secret:?}");
            for wrong in ["pencil ", "", "Pencil"] {
                assert!(!secret.is_password("ann", wrong), "{secret:?} {wrong}");
            }
        }
        // In LATIN1; as UTF-8 it is another one.
        let bytes = b"stra\xdfe";
        let hashed = Secret::Md5(md5::of_password("ann", bytes));
        let verifier = Secret::Scram(Verifier::of_password(bytes, b"salt"));
        for secret in [Secret::Plain(bytes.to_vec()), hashed, verifier] {
            assert!(secret.is_password("ann", bytes), "{secret:?}");
            assert!(!secret.is_password("ann", "stra\u{df}e"), "{secret:?}");
        }
    }

    #[test]
    fn not_every_secret_serves_every_exchange() {
        let [scram, md5, plain] = [VERIFIER, MD5, "pencil"].map(|text| Secret::read(text).unwrap());
        assert!(scram.as_md5("ann").is_none() && md5.as_verifier([0; 16]).is_none());
        assert_eq!(md5.as_md5("ann").as_deref(), Some(MD5));
        assert!(plain.as_md5("ann").is_some() && plain.as_verifier([0; 16]).is_some());
    }
}
