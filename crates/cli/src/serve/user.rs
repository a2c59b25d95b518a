//! `user`: root binds the addresses, opens what only root may, and becomes another user.

use super::effective::Effective;
use sooner_kernel::privilege::{Account, Keep};
use sooner_operate::account;
use sooner_operate::say;
use sooner_web::access_log::Destination;
use sooner_web::config::{Misconfigured, Spanned};
use sooner_web::tls;
use std::os::unix::fs::lchown;

/// The account that `user` names.
pub fn find(user: &Spanned<String>) -> Result<Account, Misconfigured> {
    account::find(user, "user")
}

/// Becomes the user that the configuration names, if it names one; says what a reload will not be
/// able to read. `needs_bands` keeps the capability for the kernel's bands.
pub fn adopt(effective: &Effective, needs_bands: bool) -> Result<(), Misconfigured> {
    let config = &effective.config;
    let Some(user) = &config.user else {
        return Ok(());
    };
    let account = find(user)?;
    if let Destination::File(log) = config.log.destination() {
        // Without it the log could not be opened anew; where it fails, that will be said then.
        if log.symlink_metadata().is_ok_and(|found| found.is_file()) {
            let _ = lchown(&log, Some(account.uid), Some(account.gid));
        }
    }
    let keep = if needs_bands {
        Keep::NetAdmin
    } else {
        Keep::Nothing
    };
    account::adopt(&account, user, "user", keep)?;
    for mistake in tls::unreadable(&config.tls) {
        say(format_args!("{}", effective.source.render(&mistake)));
    }
    Ok(())
}
