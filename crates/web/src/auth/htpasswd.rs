//! The file of names and passwords that Apache's `htpasswd` makes: read whole, and every line
//! looked at.

use super::secret::{Secret, SecretError};
use sha2::digest::Output;
use sha2::{Digest, Sha256};
use sooner_http::basic_auth::PART_BYTES_MAX;
use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::path::Path;
use thiserror::Error;

/// The longest file, bytes: ten thousand users.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The users of one file.
pub struct Users {
    /// The same for files with the same bytes.
    pub id: Output<Sha256>,
    secrets: Vec<Secret>,
    by_name: HashMap<Box<[u8]>, usize>,
    decoys: RandomState,
}

/// Why a file is not taken.
#[derive(Debug, Error)]
pub enum UsersError {
    /// It cannot be read.
    #[error("cannot read {file}: {error}; make it with: htpasswd -B -c {file} NAME")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        error: io::Error,
    },
    /// It is no such file.
    #[error("{file} is longer than 1 MiB")]
    TooLong {
        /// The file.
        file: String,
    },
    /// It lets no client in.
    #[error("{file} names no user; add one: htpasswd -B {file} NAME")]
    NoUser {
        /// The file.
        file: String,
    },
    /// A line is wrong.
    #[error("{file}:{line}: {mistake}")]
    Line {
        /// The file.
        file: String,
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        mistake: LineMistake,
    },
}

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum LineMistake {
    /// Not of this form.
    #[error("a line is NAME:HASH, as htpasswd makes it")]
    Form,
    /// A name that no client can send.
    #[error("a name has 1 to {PART_BYTES_MAX} characters, and none of them is a control character")]
    Name,
    /// Two lines with one name.
    #[error("`{0}` is in line {1} already; keep one of them")]
    Twice(String, usize),
    /// The password.
    #[error("`{0}` {1}; set it again: htpasswd -B FILE {0}")]
    Secret(String, SecretError),
}

impl Users {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, UsersError> {
        let file = path.display().to_string();
        let mut bytes = Vec::new();
        // One byte more tells that it is longer.
        let read =
            File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
        match read {
            Err(error) => Err(UsersError::Unreadable { file, error }),
            Ok(_) if bytes.len() as u64 > FILE_BYTES_MAX => Err(UsersError::TooLong { file }),
            Ok(_) => match Self::parse(&bytes) {
                Ok(users) if users.secrets.is_empty() => Err(UsersError::NoUser { file }),
                Ok(users) => Ok(users),
                Err((line, mistake)) => Err(UsersError::Line {
                    file,
                    line,
                    mistake,
                }),
            },
        }
    }

    /// Reads a file's bytes; the first mistake with its line.
    pub fn parse(bytes: &[u8]) -> Result<Self, (usize, LineMistake)> {
        let mut users = Self {
            id: Sha256::digest(bytes),
            secrets: Vec::new(),
            by_name: HashMap::new(),
            decoys: RandomState::new(),
        };
        let mut lines: Vec<usize> = Vec::new();
        for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
            let line = line.trim_ascii_end();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let (name, secret) = user(line).map_err(|mistake| (number, mistake))?;
            if let Some(&before) = users.by_name.get(name) {
                let mistake = LineMistake::Twice(shown(name), lines[before]);
                return Err((number, mistake));
            }
            users.by_name.insert(name.into(), users.secrets.len());
            users.secrets.push(secret);
            lines.push(number);
        }
        Ok(users)
    }

    /// Whether a user has this password. Takes as long for a name that is not there as for one that
    /// is: which names there are cannot be found out.
    pub fn know(&self, name: &[u8], password: &[u8]) -> bool {
        let user = self.by_name.get(name).copied();
        let decoy = || self.decoys.hash_one(name) as usize % self.secrets.len().max(1);
        let secret = self.secrets.get(user.unwrap_or_else(decoy));
        secret.is_some_and(|secret| secret.fits(password)) && user.is_some()
    }
}

/// A name and its password; what follows another colon is a remark.
fn user(line: &[u8]) -> Result<(&[u8], Secret), LineMistake> {
    let colon = line.iter().position(|&byte| byte == b':');
    let (name, rest) = line.split_at(colon.ok_or(LineMistake::Form)?);
    let is_name = (1..=PART_BYTES_MAX).contains(&name.len())
        && !name.iter().any(|byte| byte.is_ascii_control());
    if !is_name {
        return Err(LineMistake::Name);
    }
    let secret = rest[1..].split(|&byte| byte == b':').next();
    let secret = std::str::from_utf8(secret.unwrap_or_default());
    let secret = secret
        .map_err(|_| SecretError::Plain)
        .and_then(Secret::parse);
    let secret = secret.map_err(|error| LineMistake::Secret(shown(name), error))?;
    Ok((name, secret))
}

/// A name in a message.
fn shown(name: &[u8]) -> String {
    sooner_config::printable(&String::from_utf8_lossy(name)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `password`.
    const SHA: &str = "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=";

    fn mistake(text: &str) -> (usize, String) {
        match Users::parse(text.as_bytes()) {
            Ok(_) => panic!("{text} is read"),
            Err((line, mistake)) => (line, mistake.to_string()),
        }
    }

    #[test]
    fn names_comments_and_remarks() {
        let text = format!("# staff\n\nanna:{SHA}\nbob smith:{SHA}:Bob\r\n \n");
        let users = Users::parse(text.as_bytes()).ok().unwrap();
        assert!(users.know(b"anna", b"password") && users.know(b"bob smith", b"password"));
        assert!(!users.know(b"anna", b"passwor") && !users.know(b"bob", b"password"));
        assert!(!users.know(b"", b"password") && !users.know(b"# staff", b""));
        let other = Users::parse(b"").ok().unwrap();
        assert!(users.id != other.id && !other.know(b"anna", b"password"));
    }

    #[test]
    fn a_mistake_has_its_line() {
        let is = |text: &str, line: usize, part: &str| {
            let (number, message) = mistake(text);
            assert_eq!(number, line, "{text}");
            assert!(message.contains(part), "{text}: {message}");
            assert_eq!(message.lines().count(), 1);
        };
        is("anna", 1, "NAME:HASH");
        is(&format!("a:{SHA}\n:{SHA}"), 2, "a name has");
        is(
            &format!("a:{SHA}\n\nb:{SHA}\na:{SHA}"),
            4,
            "in line 1 already",
        );
        is("#\nanna:secret", 2, "`anna` has a password in plain text");
        is("a\x1b[2Jb:secret", 1, "a name has");
        is("an\u{202e}na:", 1, "has no password");
        let long = format!("{}:{SHA}", "a".repeat(256));
        is(&long, 1, "a name has");
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users");
        let error = || Users::read(&path).err().unwrap().to_string();
        assert!(error().contains("htpasswd -B -c"), "{}", error());
        std::fs::write(&path, "# none\n").unwrap();
        assert!(error().contains("names no user"), "{}", error());
        std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
        assert!(error().contains("1 MiB"), "{}", error());
        std::fs::write(&path, "anna:b").unwrap();
        assert!(error().contains("users:1: `anna`"), "{}", error());
    }
}
