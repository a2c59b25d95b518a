//! Becoming another user, for good, once what needs a privilege has been done.

mod account;

use std::io;

use rustix::process::{getgid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_keep_capabilities,
    set_no_new_privs,
};
use thiserror::Error;

use crate::raw;
pub use account::{Account, AccountError, group_id};

/// What is kept of the privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Nothing.
    Nothing,
    /// `CAP_NET_ADMIN`, in the calling thread and those it starts: what bands need to mark sockets,
    /// and to be taken down again.
    NetAdmin,
}

/// Why the process has not become another user.
#[derive(Debug, Error)]
pub enum PrivilegeError {
    /// It may not.
    #[error(
        "cannot become {user}: only root (CAP_SETUID and CAP_SETGID) can; start as root, or name no user"
    )]
    NotPermitted {
        /// The requested user.
        user: String,
    },
    /// A call failed; the process must not go on.
    #[error("cannot become {user}: {what}: {error}")]
    Failed {
        /// The requested user.
        user: String,
        /// The call.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

/// Makes the whole process that of `account`, without a way back, and keeps what `keep` says.
///
/// To be called from the main thread before others are started: capabilities are those of a thread.
/// A process that is that user already only gives up what it has beyond `keep`. After an error the
/// process may be half way, and must end.
pub fn become_user(account: &Account, keep: Keep) -> Result<(), PrivilegeError> {
    let user = || account.user.clone();
    let failed = |what| {
        move |error: io::Error| PrivilegeError::Failed {
            user: account.user.clone(),
            what,
            error,
        }
    };
    let is_that_user = getuid().as_raw() == account.uid && getgid().as_raw() == account.gid;
    if !is_that_user {
        if !may_change_user() {
            return Err(PrivilegeError::NotPermitted { user: user() });
        }
        let keeps_any = keep != Keep::Nothing;
        set_keep_capabilities(keeps_any)
            .map_err(|errno| failed("prctl(PR_SET_KEEPCAPS)")(errno.into()))?;
        raw::set_groups(&account.groups).map_err(failed("setgroups"))?;
        raw::set_group(account.gid).map_err(failed("setresgid"))?;
        raw::set_user(account.uid).map_err(failed("setresuid"))?;
    }
    give_up_all_but(keep).map_err(failed("capset"))?;
    set_no_new_privs(true).map_err(|errno| failed("prctl(PR_SET_NO_NEW_PRIVS)")(errno.into()))
}

fn may_change_user() -> bool {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// What is kept must be permitted still; without it, it is not missed before it is used, and then
/// said.
fn give_up_all_but(keep: Keep) -> io::Result<()> {
    let wanted = match keep {
        Keep::Nothing => CapabilitySet::empty(),
        Keep::NetAdmin => CapabilitySet::NET_ADMIN,
    };
    let kept = wanted & capabilities(None)?.permitted;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, sets)?)
}
