//! `--check`: everything a start looks at, and nothing it changes.

use super::effective::Effective;
use super::user;
use crate::output;
use sooner_kernel::device::by_name;
use sooner_operate::{ListenError, may_listen};
use sooner_web::access_log::Destination;
use sooner_web::config::{Config, ListenAddress, Misconfigured, Spanned};
use sooner_web::{Means, Server};
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Looks at everything; the error is what a start would refuse with.
pub fn look(effective: &Effective, means: Means) -> anyhow::Result<()> {
    let config = &effective.config;
    let warnings = warnings(config, means).map_err(|mistake| effective.located(mistake))?;
    let remarks = config.remarks().into_iter().chain(config.admin.remark());
    effective.say(remarks.chain(warnings));
    Ok(())
}

/// Says `FILE: ok`.
pub fn say_ok(effective: &Effective) -> anyhow::Result<ExitCode> {
    match effective.source.name.as_str() {
        "" => output::line("ok")?,
        name => output::line(format_args!("{name}: ok"))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn warnings(config: &Config, means: Means) -> Result<Vec<Misconfigured>, Misconfigured> {
    if let Some(name) = &config.user {
        user::find(name)?;
    }
    for (key, addresses) in [
        ("listen", &config.listen),
        ("listen_tls", &config.listen_tls),
    ] {
        for address in addresses {
            check_address(address, key)?;
        }
    }
    if let Some(address) = &config.admin.listen {
        check_address(address, "admin.listen")?;
    }
    if let Some(device) = &config.uplink.device {
        by_name(device.get_ref())
            .map_err(|error| Misconfigured::at(device, "uplink.device", error))?;
    }
    check_log(config)?;
    let mut warnings = Server::check(config, means)?;
    warnings.extend(log_remark(config));
    Ok(warnings)
}

fn check_address(address: &Spanned<ListenAddress>, key: &str) -> Result<(), Misconfigured> {
    match may_listen(address.get_ref().0) {
        // Most likely by the server that this configuration is for.
        Ok(()) | Err(ListenError::InUse { .. }) => Ok(()),
        Err(error) => Err(Misconfigured::at(address, key, error)),
    }
}

/// A log that is not there yet must not be made: whether its folder is there has to do.
fn check_log(config: &Config) -> Result<(), Misconfigured> {
    let (Some(access), Destination::File(file)) = (&config.log.access, config.log.destination())
    else {
        return Ok(());
    };
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let error = match folder.metadata() {
        Ok(found) if found.is_dir() && !file.is_dir() => return Ok(()),
        Ok(found) if found.is_dir() => io::ErrorKind::IsADirectory.into(),
        Ok(_) => io::ErrorKind::NotADirectory.into(),
        Err(error) => error,
    };
    let name = file.display();
    Err(Misconfigured::at(
        access,
        "log.access",
        format!("cannot open {name}: {error}; name a file in an existing directory, - or off"),
    ))
}

/// A link that root does not follow: root may look at what another user will serve, who follows it.
fn log_remark(config: &Config) -> Option<Misconfigured> {
    let access = config.log.access.as_ref()?;
    let words = access.get_ref().link_remark()?;
    Some(Misconfigured::at(access, "log.access", words))
}
