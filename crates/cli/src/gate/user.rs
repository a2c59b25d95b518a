//! `system_user`: root binds the addresses, reads what only root may, and becomes that user.

use std::fs::File;
use std::os::unix::fs::lchown;
use std::path::Path;

use anyhow::Result;
use sooner_config::{Misconfigured, SourceText};
use sooner_kernel::privilege::Keep;
use sooner_pooler::config::Config;
use sooner_web::tls;

use super::listen::SocketFiles;
use super::{own_socket, say};
use crate::config_file::located;
use sooner_operate::account;

const KEY: &str = "system_user";

/// Whether there is such a user.
pub fn check(config: &Config, source: &SourceText) -> Result<()> {
    if let Some(user) = &config.system_user {
        account::find(user, KEY).map_err(|mistake| located(source, &mistake))?;
    }
    Ok(())
}

/// Becomes the user that the configuration names, if it names one; says what a reload will not be
/// able to read.
pub fn adopt(
    config: &Config,
    source: &SourceText,
    file: Option<&Path>,
    sockets: &SocketFiles,
) -> Result<()> {
    let Some(user) = &config.system_user else {
        return Ok(());
    };
    let at = |mistake| located(source, &mistake);
    let account = account::find(user, KEY).map_err(at)?;
    for path in sockets.paths() {
        // Where it fails, the next start finds a socket file without a server, and removes it.
        let _ = lchown(path, Some(account.uid), Some(account.gid));
        // Only its owner can remove the file from the gate's own folder at the end.
        if let Some(own) = own_socket::folder()
            && path.parent() == Some(&own)
        {
            let _ = lchown(&own, Some(account.uid), None);
        }
    }
    account::adopt(&account, user, KEY, Keep::Nothing).map_err(at)?;
    for mistake in tls::unreadable(&config.tls) {
        say(&source.render(&mistake));
    }
    let words = |path: &Path, error| {
        let (path, user) = (path.display(), user.get_ref());
        format!("{path} cannot be read again by {user}: {error}; a reload will fail")
    };
    if let Some(users) = &config.users
        && let Err(error) = File::open(users.get_ref())
    {
        let mistake = Misconfigured::at(users, "users", words(users.get_ref(), error));
        say(&source.render(&mistake));
    }
    if let Some(file) = file
        && let Err(error) = File::open(file)
    {
        say(&words(file, error));
    }
    Ok(())
}

/// Who runs it, for the ready line.
pub fn told(config: &Config) -> String {
    match &config.system_user {
        Some(user) => format!("; as {}", user.get_ref()),
        None if rustix::process::geteuid().is_root() => {
            "; as root, which system_user in gate.toml or --user gives up".into()
        }
        None => String::new(),
    }
}
