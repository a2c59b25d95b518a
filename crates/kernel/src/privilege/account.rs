//! Users and groups out of /etc/passwd and /etc/group (passwd(5), group(5)).

use std::fs;

use thiserror::Error;

/// A user to become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its name, or its number where it has none.
    pub user: String,
    /// Its number.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// The groups it is a member of beside that.
    pub groups: Vec<u32>,
}

/// Why there is no such account.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AccountError {
    /// The user is not listed.
    #[error("there is no user {user} in /etc/passwd; `useradd --system {user}` makes one")]
    NoUser {
        /// The requested user.
        user: String,
    },
    /// The group is not listed.
    #[error("there is no group {group} in /etc/group; `groupadd --system {group}` makes one")]
    NoGroup {
        /// The requested group.
        group: String,
    },
    /// A number without a name, and no group with it.
    #[error("user {uid} is not in /etc/passwd, so its group is not known; write {uid}:GROUP")]
    GroupUnknown {
        /// The requested number.
        uid: u32,
    },
    /// That is who may do everything.
    #[error("{user} is root, so no privilege would be dropped; name another user, or none")]
    Root {
        /// The requested user.
        user: String,
    },
    /// A file cannot be read.
    #[error("cannot read {path}: {message}")]
    Unreadable {
        /// The file.
        path: &'static str,
        /// What the system said.
        message: String,
    },
}

impl Account {
    /// The account named by `USER` or `USER:GROUP`; both may be numbers.
    pub fn find(text: &str) -> Result<Self, AccountError> {
        Self::find_in(text, &read("/etc/passwd")?, &read("/etc/group")?)
    }

    /// The same, with the texts of the two files.
    pub fn find_in(text: &str, passwd: &str, group: &str) -> Result<Self, AccountError> {
        let (user, group_name) = match text.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (text, None),
        };
        let (name, uid, own_gid) = match find_user(user, passwd) {
            Some((name, uid, gid)) => (name, uid, Some(gid)),
            None => {
                let no_user = || AccountError::NoUser {
                    user: user.to_owned(),
                };
                (user, number(user).ok_or_else(no_user)?, None)
            }
        };
        if uid == 0 {
            return Err(AccountError::Root {
                user: user.to_owned(),
            });
        }
        let gid = match group_name {
            Some(group_name) => find_group(group_name, group)?,
            None => own_gid.ok_or(AccountError::GroupUnknown { uid })?,
        };
        Ok(Self {
            user: name.to_owned(),
            uid,
            gid,
            groups: groups_of(name, group),
        })
    }
}

/// The number of a group given by name or number.
pub fn group_id(wanted: &str) -> Result<u32, AccountError> {
    find_group(wanted, &read("/etc/group")?)
}

/// The text of a file. A full name in another encoding than UTF-8 concerns its own line.
fn read(path: &'static str) -> Result<String, AccountError> {
    let bytes = fs::read(path).map_err(|error| AccountError::Unreadable {
        path,
        message: error.to_string(),
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Name, number and group of a user given by name or number: `name:password:UID:GID:...`.
fn find_user<'a>(wanted: &str, passwd: &'a str) -> Option<(&'a str, u32, u32)> {
    let entries = || {
        passwd.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let (name, _password) = (fields.next()?, fields.next()?);
            let uid = fields.next()?.parse().ok()?;
            Some((name, uid, fields.next()?.parse().ok()?))
        })
    };
    let number: Option<u32> = wanted.parse().ok();
    entries()
        .find(|(name, _, _)| *name == wanted)
        .or_else(|| entries().find(|(_, uid, _)| Some(*uid) == number))
}

/// A number that can be one's own: to the system calls the highest means no change.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number| *number != u32::MAX)
}

fn find_group(wanted: &str, group: &str) -> Result<u32, AccountError> {
    entries_of(group)
        .find(|(name, _, _)| *name == wanted)
        .map(|(_, gid, _)| gid)
        .or_else(|| number(wanted))
        .ok_or_else(|| AccountError::NoGroup {
            group: wanted.to_owned(),
        })
}

fn groups_of(user: &str, group: &str) -> Vec<u32> {
    entries_of(group)
        .filter(|(_, _, members)| members.split(',').any(|member| member == user))
        .map(|(_, gid, _)| gid)
        .collect()
}

/// Name, number and members of each group: `name:password:GID:member,member`.
fn entries_of(group: &str) -> impl Iterator<Item = (&str, u32, &str)> {
    group.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, _password) = (fields.next()?, fields.next()?);
        let gid = fields.next()?.parse().ok()?;
        Some((name, gid, fields.next().unwrap_or_default()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rustix::fs::{MemfdFlags, memfd_create};
    use std::io::Write;
    use std::os::fd::AsRawFd;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
        # comment\n\
        www-data:x:33:34:www-data:/var/www:/usr/sbin/nologin\n\
        broken:x\n\
        42:x:1000:1000::/:/bin/sh\n";
    const GROUP: &str =
        "root:x:0:\nwww:x:34:\nssl-cert:x:110:postgres,www-data\nlogs:x:4:www-data\nbroken\n";

    fn find(text: &str) -> Result<(u32, u32, Vec<u32>), String> {
        let account = Account::find_in(text, PASSWD, GROUP).map_err(|error| error.to_string())?;
        Ok((account.uid, account.gid, account.groups))
    }

    #[test]
    fn by_name_and_by_number() {
        assert_eq!(find("www-data"), Ok((33, 34, vec![110, 4])));
        assert_eq!(find("33"), Ok((33, 34, vec![110, 4])));
        assert_eq!(find("www-data:ssl-cert"), Ok((33, 110, vec![110, 4])));
        assert_eq!(find("5000:6000"), Ok((5000, 6000, vec![])));
        assert_eq!(find("42"), Ok((1000, 1000, vec![])), "a name of digits");
    }

    #[test]
    fn what_is_missing_is_named() {
        for (text, message) in [
            ("nobody", "there is no user nobody in /etc/passwd"),
            ("", "there is no user"),
            ("broken", "there is no user broken"),
            ("www-data:none", "there is no group none"),
            ("www-data:", "there is no group"),
            ("5000", "user 5000 is not in /etc/passwd"),
            ("root", "root is root"),
            ("0:33", "0 is root"),
            ("4294967296", "there is no user 4294967296"),
        ] {
            let error = find(text).unwrap_err();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }

    #[test]
    fn a_group_is_found_by_name_and_by_number() {
        assert_eq!(group_id("root"), Ok(0));
        assert_eq!(group_id("4000000"), Ok(4_000_000));
        assert!(group_id("nobody_here").is_err());
    }

    #[test]
    fn a_name_in_another_encoding_hides_no_other() {
        let file = memfd_create("passwd", MemfdFlags::CLOEXEC).unwrap();
        let text = b"m:x:1000:1000:J\xf6rg:/:/bin/sh\nweb:x:33:34::/:/bin/sh\n";
        fs::File::from(file.try_clone().unwrap())
            .write_all(text)
            .unwrap();
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let passwd = read(path.leak()).unwrap();
        for (user, uid) in [("m", 1000), ("web", 33)] {
            assert_eq!(Account::find_in(user, &passwd, "").unwrap().uid, uid);
        }
    }

    #[test]
    fn every_machine_has_a_root() {
        assert!(matches!(
            Account::find("root"),
            Err(AccountError::Root { .. })
        ));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String, passwd: String, group: String) {
            let _ = Account::find_in(&text, &passwd, &group);
        }
    }
}
