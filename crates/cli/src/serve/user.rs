//! `user`: root binds the addresses, opens what only root may, and becomes somebody else.

use super::effective::Effective;
use sooner_kernel::user::User;
use sooner_web::access_log::Destination;
use sooner_web::config::{Misconfigured, Spanned};
use sooner_web::tls;

/// The user of this name.
pub fn find(name: &Spanned<String>) -> Result<User, Misconfigured> {
    let message = match User::find(name.get_ref()) {
        Ok(Some(user)) => return Ok(user),
        Ok(None) => format!("no user `{name}` on this machine; name one of those `getent passwd` lists"),
        Err(error) => format!("cannot look up the user `{name}`: {error}"),
    };
    Err(Misconfigured::at(name, "user", message))
}

/// Becomes the user that the configuration names, if it names one; says what a reload will miss. `needs_bands` keeps the capability for
/// the kernel's bands.
pub fn adopt(effective: &Effective, needs_bands: bool) -> Result<(), Misconfigured> {
    let config = &effective.config;
    let Some(name) = &config.user else {
        return Ok(());
    };
    let user = find(name)?;
    if user.is_current() {
        return Ok(());
    }
    let refused = |error| {
        Misconfigured::at(
            name,
            "user",
            format!("cannot become `{name}`: {error}; start it as root, or remove this"),
        )
    };
    if let Destination::File(log) = config.log.destination() {
        user.own(&log).map_err(refused)?;
    }
    user.adopt(needs_bands).map_err(refused)?;
    for mistake in tls::unreadable(&config.tls) {
        eprintln!("sooner: {}", effective.source.render(&mistake));
    }
    Ok(())
}
