//! Finding a PostgreSQL server of this machine, and its processes.

mod data_folder;

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use sooner_kernel::peer::Peer;
use sooner_kernel::process_table;

use data_folder::{Written, below_top, written};

/// What a server's program is called; the second is its old name, a link to the first.
const PROGRAMS: [&str; 2] = ["postgres", "postmaster"];
/// For how long a server is waited for that has no room in its queue.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the name of a server's socket file begins with; the port follows.
const SOCKET_NAME: &str = ".s.PGSQL.";

/// Which server is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The only one that is found.
    Only,
    /// The one with this first process.
    Process(u32),
    /// The one with this data folder.
    Data(PathBuf),
    /// The one that listens at this socket file.
    Socket(PathBuf),
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// None listens.
    #[error(
        "no PostgreSQL server of this machine listens at a socket file; start it, or name it with --data or --url"
    )]
    None,
    /// Several do.
    #[error("several PostgreSQL servers run here: {0}; choose one with --pid or --data")]
    Several(String),
    /// It has no such first process.
    #[error(
        "process {0} is not a PostgreSQL server that listens at a socket file; its number is the first line of postmaster.pid in the data folder"
    )]
    NotAServer(u32),
    /// The folder says nothing.
    #[error("cannot read {}: {source}; --data names the data folder of a server that runs, and its owner or root may read it", path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is not as the server writes it.
    #[error("{}: the server has no socket file; name it with --url", .0.display())]
    NoSocket(PathBuf),
    /// The server of the folder has ended without a word, and another one has its place.
    #[error(
        "the server of {} does not run: another one listens at {} (process {}); start it, or name the other one", folder.display(), place.socket.display(), place.pid
    )]
    Another {
        /// The data folder.
        folder: PathBuf,
        /// Of the other one.
        place: Place,
    },
    /// It does not answer.
    #[error("cannot connect to {}: {source}", socket.display())]
    Silent {
        /// Its socket file.
        socket: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Its processes are in a PID namespace beside this one, or above it.
    #[error(
        "the server at {} is in a PID namespace that is not visible from here; run sooner beside it, or as root of the host with --pid", .0.display()
    )]
    Hidden(PathBuf),
    /// What the kernel says cannot be read.
    #[error("cannot read {0}: {1}")]
    Proc(&'static str, #[source] io::Error),
}

/// A server's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its socket file, as this process reaches it.
    pub socket: PathBuf,
    /// Its first process, in this PID namespace.
    pub pid: u32,
    /// Who runs it.
    pub owner: u32,
}

impl Place {
    /// Looks for a server. Waits, 10 s at most, for one that takes no connections.
    pub fn find(wanted: &Wanted) -> Result<Place, ServerError> {
        match wanted {
            Wanted::Socket(socket) => at(socket),
            Wanted::Data(folder) => of_folder(folder),
            Wanted::Process(pid) => of_process(*pid),
            Wanted::Only => {
                let mut all = listening()?;
                match all.len() {
                    0 => Err(ServerError::None),
                    1 => Ok(all.remove(0)),
                    _ => {
                        let words = all
                            .iter()
                            .map(|one| format!("{} (process {})", one.socket.display(), one.pid));
                        Err(ServerError::Several(words.collect::<Vec<_>>().join(", ")))
                    }
                }
            }
        }
    }
}

/// The server behind a socket file: the kernel says which process listens there.
fn at(socket: &Path) -> Result<Place, ServerError> {
    let silent = |source| ServerError::Silent {
        socket: socket.to_owned(),
        source,
    };
    let stream = connect_to(socket).map_err(silent)?;
    let peer = Peer::of(&stream).map_err(silent)?;
    let hidden = || ServerError::Hidden(socket.to_owned());
    Ok(Place {
        socket: socket.to_owned(),
        pid: peer.pid.ok_or_else(hidden)?,
        owner: peer.uid,
    })
}

/// Connects, with an end where the server takes no connection.
pub fn connect_to(path: &Path) -> io::Result<UnixStream> {
    let (kind, flags) = (SocketType::STREAM, SocketFlags::CLOEXEC);
    let socket = socket_with(AddressFamily::UNIX, kind, flags, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// Of a data folder, where the server that listens is the one that wrote there.
fn of_folder(folder: &Path) -> Result<Place, ServerError> {
    let Written { pid, socket } = written(Path::new("/"), folder)?;
    let place = at(&socket)?;
    // In a container it wrote the number that it has there.
    let is_own = |here: u32| {
        here == pid || process_table::innermost_number(here).is_ok_and(|own| own == pid as i32)
    };
    match is_own(place.pid) {
        true => Ok(place),
        false => Err(ServerError::Another {
            folder: folder.to_owned(),
            place,
        }),
    }
}

/// Of a first process: by its data folder, its working one, where that may be read; else whichever
/// socket file it listens at.
fn of_process(pid: u32) -> Result<Place, ServerError> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    // In a container the folder has another name, and is reached through the process.
    let [folder, top] = ["cwd", "root"].map(|link| fs::read_link(process.join(link)).ok());
    let by_folder = folder.zip(top).and_then(|(folder, top)| {
        let found = written(&process.join("root"), &below_top(&folder, &top));
        at(&found.ok()?.socket).ok()
    });
    let found = match by_folder {
        Some(place) => Some(place),
        None => listening()?.into_iter().find(|place| place.pid == pid),
    };
    found
        .filter(|place| place.pid == pid)
        .ok_or(ServerError::NotAServer(pid))
}

/// Whether a process's program is a server, by its name.
pub fn is_server(pid: u32) -> bool {
    process_table::name(pid).is_ok_and(|name| PROGRAMS.contains(&name.as_str()))
}

/// All servers that listen at socket files of this network namespace. A pooler's socket file has
/// such a name as well.
fn listening() -> Result<Vec<Place>, ServerError> {
    const TABLE: &str = "/proc/net/unix";
    let table = fs::read_to_string(TABLE).map_err(|source| ServerError::Proc(TABLE, source))?;
    let mut places: Vec<Place> = listening_sockets(&table)
        .filter_map(|socket| at(Path::new(socket)).ok())
        .filter(|place| is_server(place.pid))
        .collect();
    places.sort_by(|one, other| one.socket.cmp(&other.socket));
    places.dedup_by_key(|place| place.pid);
    Ok(places)
}

/// Of the kernel's table: what has flag 0x10000 waits for clients.
fn listening_sockets(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let flags = u32::from_str_radix(words.nth(3)?, 16).ok()?;
        let path = words.nth(3)?;
        let name = Path::new(path).file_name()?.to_str()?;
        let is_one = flags & 0x10000 != 0 && name.starts_with(SOCKET_NAME);
        is_one.then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_that_wait_for_clients_are_found() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 77 /run/postgresql/.s.PGSQL.5432\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 78 /run/postgresql/.s.PGSQL.5432\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 79 /run/other.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 80\n";
        let found: Vec<&str> = listening_sockets(table).collect();
        assert_eq!(found, ["/run/postgresql/.s.PGSQL.5432"]);
    }

    #[test]
    fn a_folder_of_a_server_that_is_gone_does_not_mean_who_listens_there_now() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join(".s.PGSQL.5434");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let own = std::process::id();
        let file = folder.path().join("postmaster.pid");
        let place = folder.path().display().to_string();
        let write = |pid: u32| fs::write(&file, format!("{pid}\n/d\n1\n5434\n{place}\n\n\n"));
        let wanted = Wanted::Data(folder.path().to_owned());
        write(own).unwrap();
        assert_eq!(Place::find(&wanted).unwrap().pid, own);
        write(own + 1).unwrap();
        let told = Place::find(&wanted).unwrap_err().to_string();
        assert!(told.contains(&format!("(process {own})")), "{told}");
    }
}
