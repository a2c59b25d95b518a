//! Becoming another user for good: what needed root is done, the rest runs with as little as it needs.
//!
//! Linux keeps user ids and capabilities by thread. The C library changes the ids of all threads together; with them go the capabilities,
//! but for what the calling thread asks to keep, for itself and for threads it starts afterwards.

use std::ffi::CString;
use std::io;
use std::os::unix::fs::chown;
use std::path::Path;

use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_keep_capabilities};

use crate::{bands, capability, raw};

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: CString,
    uid: u32,
    gid: u32,
}

impl User {
    /// The user of this name, or none.
    pub fn find(name: &str) -> io::Result<Option<Self>> {
        let Ok(name) = CString::new(name) else {
            return Ok(None);
        };
        let ids = raw::user_ids(&name)?;
        Ok(ids.map(|(uid, gid)| Self { name, uid, gid }))
    }

    /// The number of the user.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// Whether this process runs as this user already.
    pub fn is_current(&self) -> bool {
        geteuid().as_raw() == self.uid
    }

    /// Makes a file this user's, so that it can still be written later.
    pub fn own(&self, file: &Path) -> io::Result<()> {
        chown(file, Some(self.uid), Some(self.gid))
    }

    /// Becomes this user, with its groups and no way back. With `keep_net_admin` the capability `CAP_NET_ADMIN` stays, if it was there,
    /// and the user gets a folder of its own for what [`crate::bands`] must remember.
    pub fn adopt(&self, keep_net_admin: bool) -> io::Result<()> {
        let keeps = keep_net_admin && capability::has_net_admin();
        if keeps {
            bands::hand_over_folder(self.uid, self.gid)?;
        }
        set_keep_capabilities(keeps)?;
        raw::become_user(&self.name, self.uid, self.gid)?;
        set_keep_capabilities(false)?;
        let kept = if keeps {
            CapabilitySet::NET_ADMIN
        } else {
            CapabilitySet::empty()
        };
        Ok(set_capabilities(
            None,
            CapabilitySets {
                effective: kept,
                permitted: kept,
                inheritable: CapabilitySet::empty(),
            },
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_found_and_nobody_else_is_made_up() {
        assert_eq!(User::find("root").unwrap().map(|user| user.uid()), Some(0));
        assert_eq!(User::find("no-such-user-here").unwrap(), None);
        assert_eq!(User::find("nul\0nul").unwrap(), None);
    }
}
