//! Where clients come in.

use anyhow::{Context, Result, bail};
use sooner_postgres::net::Listener;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use tokio::net::{TcpListener, UnixListener, UnixStream};

/// Socket files of ours with their numbers; gone when dropped.
#[derive(Default)]
pub struct SocketFiles(Vec<(PathBuf, u64)>);

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

/// Listens at an address with a port, or at the path of a socket file.
pub async fn listen(place: &str, files: &mut SocketFiles) -> Result<Listener> {
    if !place.starts_with(['/', '.']) {
        let address: SocketAddr = place.parse().context(
            "neither an address with a port, like 127.0.0.1:6432, nor the path of a socket file",
        )?;
        return Ok(Listener::Tcp(TcpListener::bind(address).await?));
    }
    let path = PathBuf::from(place);
    match UnixStream::connect(&path).await {
        Ok(_) => bail!("somebody serves there already"),
        // What a crash left.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(&path)?,
        Err(_) => {}
    }
    let listener = UnixListener::bind(&path)?;
    let number = fs::metadata(&path)?.ino();
    files.0.push((path, number));
    Ok(Listener::Unix(listener))
}
