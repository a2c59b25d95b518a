//! `--check`: everything a start looks at, and nothing it changes. `--check-reload`: the same
//! before a reload, which opens no address, device or log.

use super::args::ServeArgs;
use super::effective::Effective;
use super::user;
use crate::config_file::at_next_start;
use crate::output;
use sooner_kernel::device::by_name;
use sooner_operate::{ListenError, may_listen};
use sooner_web::access_log::Destination;
use sooner_web::config::{Config, ListenAddress, Misconfigured, Spanned};
use sooner_web::{Means, Server};
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// What a check comes before, and refuses what that would refuse.
#[derive(Clone, Copy)]
pub enum Before {
    /// The start of a server.
    Start,
    /// A reload of one that runs.
    Reload,
}

impl Before {
    /// What the flags say; `None` if the server is to start.
    pub fn of(args: &ServeArgs) -> Option<Self> {
        match (args.check, args.check_reload) {
            (true, _) => Some(Self::Start),
            (false, true) => Some(Self::Reload),
            (false, false) => None,
        }
    }
}

/// Looks at everything; the error is what a start or a reload would refuse with.
pub fn look(effective: &Effective, means: Means, before: Before) -> anyhow::Result<()> {
    let config = &effective.config;
    let warnings = warnings(config, means, before).map_err(|mistake| effective.located(mistake))?;
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

fn warnings(
    config: &Config,
    means: Means,
    before: Before,
) -> Result<Vec<Misconfigured>, Misconfigured> {
    if let Some(name) = &config.user {
        user::find(name)?;
    }
    let mut warnings = Vec::new();
    for mistake in refused_by_start(config) {
        match before {
            Before::Start => return Err(mistake),
            Before::Reload => warnings.push(at_next_start(mistake)),
        }
    }
    warnings.extend(Server::check(config, means)?);
    warnings.extend(log_remark(config));
    Ok(warnings)
}

/// What a start refuses and a reload does not look at.
fn refused_by_start(config: &Config) -> Vec<Misconfigured> {
    let listen = config.listen.iter().map(|address| (address, "listen"));
    let listen_tls = (config.listen_tls.iter()).map(|address| (address, "listen_tls"));
    let admin = (config.admin.listen.iter()).map(|address| (address, "admin.listen"));
    listen
        .chain(listen_tls)
        .chain(admin)
        .filter_map(|(address, key)| check_address(address, key).err())
        .chain(check_device(config).err())
        .chain(check_log(config).err())
        .collect()
}

fn check_address(address: &Spanned<ListenAddress>, key: &str) -> Result<(), Misconfigured> {
    match may_listen(address.get_ref().0) {
        // Most likely by the server that this configuration is for.
        Ok(()) | Err(ListenError::InUse { .. }) => Ok(()),
        Err(error) => Err(Misconfigured::at(address, key, error)),
    }
}

fn check_device(config: &Config) -> Result<(), Misconfigured> {
    let Some(device) = &config.uplink.device else {
        return Ok(());
    };
    by_name(device.get_ref())
        .map(drop)
        .map_err(|error| Misconfigured::at(device, "uplink.device", error))
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
