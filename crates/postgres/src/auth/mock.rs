//! Mock secrets for unknown users: a client that guesses names must not see which of them exist. It
//! has to prove an unknown name as any other, by a secret that no client has, in the same exchange
//! with the same parameters; which, depends on the name alone.

use super::scram::{ITERATIONS, Verifier, keyed_hash};
use super::{Secret, scram};

/// What a secret looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A password.
    Plain,
    /// An md5 hash.
    Md5,
    /// A SCRAM verifier of so many iterations.
    Scram(u32),
}

impl Kind {
    /// PostgreSQL's default.
    pub const USUAL: Kind = Kind::Scram(ITERATIONS);

    /// That of a secret.
    pub fn of(secret: &Secret) -> Kind {
        match secret {
            Secret::Plain(_) => Kind::Plain,
            Secret::Md5(_) => Kind::Md5,
            Secret::Scram(verifier) => Kind::Scram(verifier.iterations()),
        }
    }
}

/// A kind for a name, as frequent among unknown names as among those that are known.
pub fn kind_for(known: &[Kind], key: &[u8; 32], user: &str) -> Option<Kind> {
    let [a, b, c, d, ..] = keyed_hash(key, format!("kind of {user}").as_bytes());
    let at = u32::from_be_bytes([a, b, c, d]) as usize;
    known.get(at.checked_rem(known.len())?).copied()
}

/// A secret of this kind that no client can prove.
pub fn secret(kind: Kind, key: &[u8; 32], user: &str) -> Secret {
    let digits = |count: usize| {
        let hash = keyed_hash(key, format!("secret of {user}").as_bytes());
        let hex = hash.iter().map(|byte| format!("{byte:02x}"));
        hex.collect::<String>()[..count].to_owned()
    };
    match kind {
        Kind::Plain => Secret::Plain(digits(16).into()),
        Kind::Md5 => Secret::Md5(format!("md5{}", digits(32))),
        Kind::Scram(iterations) => Secret::Scram(Verifier::of_nobody(key, user, iterations)),
    }
}

/// What an md5 hash or a mocked password is in a SCRAM exchange.
pub fn verifier(key: &[u8; 32], user: &str) -> Verifier {
    Verifier::of_nobody(key, user, scram::ITERATIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_asked_as_known_ones_are() {
        let known = ["pencil", "md5b5d85afd1d3b8a30d4ea8a5ef9af0d53"]
            .map(|text| Kind::of(&Secret::read(text).unwrap()));
        let key = [7; 32];
        let of = |user: &str| kind_for(&known, &key, user).unwrap();
        let names: Vec<String> = (0..100).map(|number| format!("user{number}")).collect();
        let plain = names.iter().filter(|name| of(name) == Kind::Plain).count();
        assert!((20..80).contains(&plain), "{plain}");
        for name in &names {
            // The same at each attempt.
            assert_eq!(of(name), of(name));
            let secret = secret(of(name), &key, name);
            assert_eq!(Kind::of(&secret), of(name));
        }
        assert_eq!(kind_for(&[], &key, "ann"), None);
        let secret = secret(Kind::Scram(10_000), &key, "ann");
        assert_eq!(Kind::of(&secret), Kind::Scram(10_000));
        assert!(!secret.is_password("ann", ""));
    }
}
