//! Verifiers of passwords in clear text. Each takes thousands of hashes, which a client would
//! notice: so a login computes one that is still needed, for known users and unknown ones, until
//! those of all users in the files are there. Clients that have proved nothing cause no more work
//! than that.

use sooner_postgres::auth::scram::{Verifier, salt_of};
use sooner_postgres::auth::{Secret, mock};
use std::collections::BTreeMap;

/// Beyond so many that were looked up, all of those are forgotten.
const LOOKED_UP_MAX: usize = 10_000;

/// Where a secret is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// The configuration or its file of users.
    File,
    /// The database.
    Lookup,
    /// There is no such user.
    Mock,
}

/// Those that were computed, by user.
#[derive(Default)]
pub struct Verifiers {
    of_files: BTreeMap<String, (Secret, Verifier)>,
    looked_up: BTreeMap<String, (Secret, Verifier)>,
    /// Users of the files that will need a verifier.
    needed: Vec<(String, Secret)>,
    computed: u64,
}

impl Verifiers {
    /// From now on these are the users of the files.
    pub fn follow(&mut self, users: &BTreeMap<String, Secret>) {
        self.of_files
            .retain(|user, (secret, _)| users.get(user) == Some(secret));
        let plain = users
            .iter()
            .filter(|(_, secret)| matches!(secret, Secret::Plain(_)));
        let needed = plain.filter(|(user, _)| !self.of_files.contains_key(*user));
        self.needed = needed
            .map(|(user, secret)| (user.clone(), secret.clone()))
            .collect();
    }

    /// What a user has to prove.
    pub fn of(
        &mut self,
        user: &str,
        secret: &Secret,
        source: SecretSource,
        key: &[u8; 32],
    ) -> Verifier {
        let before = self.computed;
        let verifier = match secret {
            Secret::Scram(verifier) => verifier.clone(),
            Secret::Md5(_) => mock::verifier(key, user),
            Secret::Plain(password) => self.of_password(user, password, source, key),
        };
        if self.computed == before {
            self.compute_next(key);
        }
        verifier
    }

    fn of_password(
        &mut self,
        user: &str,
        password: &[u8],
        source: SecretSource,
        key: &[u8; 32],
    ) -> Verifier {
        let cache = match source {
            SecretSource::File => &mut self.of_files,
            SecretSource::Lookup => &mut self.looked_up,
            SecretSource::Mock => return mock::verifier(key, user),
        };
        let is_it = |secret: &Secret| matches!(secret, Secret::Plain(own) if own == password);
        if let Some((_, verifier)) = cache.get(user).filter(|(secret, _)| is_it(secret)) {
            return verifier.clone();
        }
        self.computed += 1;
        let verifier = Verifier::of_password(password, &salt_of(key, user));
        if source == SecretSource::Lookup && cache.len() >= LOOKED_UP_MAX {
            cache.clear();
        }
        let secret = Secret::Plain(password.to_owned());
        cache.insert(user.to_owned(), (secret, verifier.clone()));
        verifier
    }

    fn compute_next(&mut self, key: &[u8; 32]) {
        let before = self.computed;
        while self.computed == before
            && let Some((user, secret)) = self.needed.pop()
        {
            if let Secret::Plain(password) = &secret {
                self.of_password(&user, password, SecretSource::File, key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_computes_as_much_whoever_comes() {
        let users: BTreeMap<String, Secret> = ["ann", "bob", "cid"]
            .map(|name| (name.to_owned(), Secret::Plain(name.into())))
            .into();
        let key = [7; 32];
        let known = |user: &str| (users[user].clone(), SecretSource::File);
        let unknown = |kind| (mock::secret(kind, &key, "zoe"), SecretSource::Mock);
        let logins: [(&str, &str); 3] = [
            ("ann zoe bob cid zoe ann", "1 1 1 0 0 0"),
            ("zoe zoe zoe ann zoe bob", "1 1 1 0 0 0"),
            ("cid cid bob zoe cid ann", "1 1 1 0 0 0"),
        ];
        for kind in [mock::Kind::Plain, mock::Kind::Md5, mock::Kind::USUAL] {
            for (names, expected) in logins {
                let mut verifiers = Verifiers::default();
                verifiers.follow(&users);
                let mut steps = Vec::new();
                for user in names.split(' ') {
                    let before = verifiers.computed;
                    let (secret, source) = match user {
                        "zoe" => unknown(kind),
                        user => known(user),
                    };
                    verifiers.of(user, &secret, source, &key);
                    steps.push((verifiers.computed - before).to_string());
                }
                assert_eq!(steps.join(" "), expected, "{names}");
            }
        }
    }

    #[test]
    fn a_new_password_counts_and_an_old_one_is_forgotten() {
        let key = [7; 32];
        let mut verifiers = Verifiers::default();
        let with = |password: &str| -> BTreeMap<String, Secret> {
            [("ann".to_owned(), Secret::Plain(password.into()))].into()
        };
        let (old, new) = (with("old"), with("new"));
        verifiers.follow(&old);
        assert!(
            verifiers
                .of("ann", &old["ann"], SecretSource::File, &key)
                .is_password("old")
        );
        verifiers.follow(&new);
        assert!(verifiers.of_files.is_empty());
        let verifier = verifiers.of("ann", &new["ann"], SecretSource::File, &key);
        assert!(verifier.is_password("new") && !verifier.is_password("old"));
    }
}
