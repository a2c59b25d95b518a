//! Where clients come in.

use anyhow::{Context, Result, bail, ensure};
use rustix::io::Errno;
use rustix::net::sockopt::set_ipv6_v6only;
use sooner_postgres::net::Listener;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixStream};

/// Connections that have not been accepted yet.
const BACKLOG: u32 = 1024;

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
            // Another gate may have put its own there meanwhile, or somebody removed it.
            if fs::metadata(path).is_ok_and(|file| file.ino() == *number) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// An IPv6 address takes IPv6 alone, so `0.0.0.0` and `[::]` go together.
fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address.is_ipv6() {
        true => TcpSocket::new_v6()?,
        false => TcpSocket::new_v4()?,
    };
    socket.set_reuseaddr(true)?;
    if address.is_ipv6() {
        set_ipv6_v6only(&socket, true)?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Listens at an address with a port, at all addresses of a name, or at the path of a socket file.
pub async fn listen(place: &str, files: &mut SocketFiles) -> Result<Vec<Listener>> {
    if place.starts_with(['/', '.']) {
        return Ok(vec![listen_at_path(place, files).await?]);
    }
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host(place)
        .await
        .context(
            "neither an address with a port, like 127.0.0.1:6432, nor the path of a socket file",
        )?
        .collect();
    let mut listeners = Vec::new();
    for address in &addresses {
        match listen_at(*address) {
            Ok(listener) => listeners.push(Listener::Tcp(listener)),
            // A name may have an address of a kind that this machine has not.
            Err(error) if addresses.len() > 1 && is_of_no_kind(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    ensure!(!listeners.is_empty(), "it has no address on this machine");
    Ok(listeners)
}

fn is_of_no_kind(error: &io::Error) -> bool {
    let errors = [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL];
    errors
        .iter()
        .any(|known| error.raw_os_error() == Some(known.raw_os_error()))
}

async fn listen_at_path(place: &str, files: &mut SocketFiles) -> Result<Listener> {
    let path = PathBuf::from(place);
    match UnixStream::connect(&path).await {
        Ok(_) => bail!("somebody serves there already"),
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
