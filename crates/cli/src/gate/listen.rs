//! Where clients come in.

use crate::config_file::all_located;
use anyhow::{Context, Result, bail, ensure};
use rustix::io::Errno;
use sooner_config::{Misconfigured, SourceText, Spanned};
use sooner_operate::ListenError;
use sooner_pooler::Listener;
use sooner_pooler::config::Config;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, UnixListener, UnixStream};

/// Socket files of ours with their numbers; gone when dropped.
#[derive(Default)]
pub struct SocketFiles(Vec<(PathBuf, u64)>);

impl SocketFiles {
    /// Where they are.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.iter().map(|(path, _)| path)
    }
}

impl Drop for SocketFiles {
    fn drop(&mut self) {
        for (path, number) in &self.0 {
            // Another gate may have put its own there meanwhile, or the file may have been removed.
            if fs::metadata(path).is_ok_and(|file| file.ino() == *number) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Listens at an address with a port, at all addresses of a name, at all of the machine (`*:PORT`,
/// `:PORT`), or at the path of a socket file.
pub async fn listen(place: &str, files: &mut SocketFiles) -> Result<Vec<Listener>> {
    if place.starts_with(['/', '.']) {
        return Ok(vec![listen_at_path(place, files).await?]);
    }
    let addresses = addresses(place).await?;
    let mut listeners = Vec::new();
    for address in &addresses {
        match sooner_operate::listen(*address, None) {
            Ok(listener) => listeners.push(Listener::Tcp(TcpListener::from_std(listener)?)),
            // A name may have an address of a kind that this machine has not.
            Err(error) if addresses.len() > 1 && is_of_no_kind(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    ensure!(!listeners.is_empty(), "it has no address on this machine");
    Ok(listeners)
}

/// Whether a gate could listen there, if no other process does; opens nothing.
async fn check(place: &str) -> Result<()> {
    if !place.starts_with(['/', '.']) {
        return check_addresses(&addresses(place).await?);
    }
    let path = Path::new(place);
    ensure!(!path.is_dir(), "it is a directory; name a file in it");
    let folder = path.parent().unwrap_or(path);
    ensure!(
        folder.is_dir(),
        "there is no directory {}",
        folder.display()
    );
    Ok(())
}

/// Whether the machine has one of these addresses, at a port that the system chooses: another
/// process may have theirs until the gate starts.
fn check_addresses(addresses: &[SocketAddr]) -> Result<()> {
    let mut is_missing = None;
    for address in addresses {
        match std::net::TcpListener::bind((address.ip(), 0)) {
            Ok(_) => return Ok(()),
            Err(error) => is_missing = Some((address, error)),
        }
    }
    match is_missing {
        Some((address, error)) => bail!("{}: {error}", address.ip()),
        None => bail!("it has no address on this machine"),
    }
}

/// Why it cannot listen at a place.
pub fn refused(place: &Spanned<String>, error: &anyhow::Error) -> Misconfigured {
    let message = format!("`{}`: {error:#}", place.get_ref());
    Misconfigured::at(place, "listen", message)
}

/// The places where a gate could not listen, even if no other process does.
pub fn refused_by_start(config: &Config) -> Result<Vec<Misconfigured>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut mistakes = Vec::new();
    for place in &config.listen {
        if let Err(error) = runtime.block_on(check(place.get_ref())) {
            mistakes.push(refused(place, &error));
        }
    }
    Ok(mistakes)
}

/// Whether a gate could listen at all its places, if no other process does.
pub fn check_all(config: &Config, source: &SourceText) -> Result<()> {
    let mistakes = refused_by_start(config)?;
    match mistakes.is_empty() {
        true => Ok(()),
        false => Err(all_located(source, &mistakes)),
    }
}

/// What a place without a path means.
async fn addresses(place: &str) -> Result<Vec<SocketAddr>> {
    if let Ok(port) = place.parse::<u16>() {
        bail!(
            "it has no address; write 127.0.0.1:{port} for this machine alone, *:{port} for all addresses"
        );
    }
    let all = place.strip_prefix('*').unwrap_or(place).strip_prefix(':');
    if let Some(port) = all.and_then(|port| port.parse::<u16>().ok()) {
        return Ok(vec![
            (Ipv4Addr::UNSPECIFIED, port).into(),
            (Ipv6Addr::UNSPECIFIED, port).into(),
        ]);
    }
    if !place.contains(':') || place.parse::<IpAddr>().is_ok() {
        let address = match place.parse::<Ipv6Addr>() {
            Ok(address) => format!("[{address}]"),
            Err(_) => place.to_owned(),
        };
        bail!("it has no port; write {address}:6432, or the path of a socket file");
    }
    let found = tokio::net::lookup_host(place).await.context(
        "neither an address with a port, like 127.0.0.1:6432, nor the path of a socket file",
    )?;
    Ok(found.collect())
}

fn is_of_no_kind(error: &ListenError) -> bool {
    match error {
        ListenError::NoSuchAddress { .. } => true,
        ListenError::Other { error, .. } => {
            error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error())
        }
        ListenError::InUse { .. } | ListenError::NotPermitted { .. } => false,
    }
}

pub async fn listen_at_path(place: &str, files: &mut SocketFiles) -> Result<Listener> {
    let path = PathBuf::from(place);
    match UnixStream::connect(&path).await {
        Ok(_) => bail!("another process already listens there"),
        // What a crash left.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(&path)?,
        Err(_) => {}
    }
    let listener = UnixListener::bind(&path)?;
    let number = fs::metadata(&path)?.ino();
    files.0.push((path.clone(), number));
    // As PostgreSQL's own: who may come is for the gate to say, or for the folder's rights.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777))?;
    Ok(Listener::Unix(listener))
}
