//! Finding a PostgreSQL server of this machine, and its processes.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use sooner_kernel::peer::Peer;
use sooner_kernel::process_table;

/// What a server's program is called; the second is its old name, a link to the first.
const PROGRAMS: [&str; 2] = ["postgres", "postmaster"];
/// As many symbolic links the kernel follows in a path.
const LINKS_MAX: usize = 40;
/// For how long a server is waited for that has no room in its queue.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the name of a server's socket file begins with; the port follows.
const SOCKET_NAME: &str = ".s.PGSQL.";
/// Lines of postmaster.pid, from 0.
const PID_LINE: usize = 0;
const PORT_LINE: usize = 3;
const FOLDER_LINE: usize = 4;

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
        "process {0} is no PostgreSQL server that listens at a socket file; its number is the first line of postmaster.pid in the data folder"
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
        "the server of {} does not run: at {} listens another one (process {}); start it, or name the other one", folder.display(), place.socket.display(), place.pid
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
        "the server at {} is in a PID namespace that is not seen from here; run sooner beside it, or as root of the host with --pid", .0.display()
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
    let folder = fs::read_link(process.join("cwd"));
    let by_folder = folder.ok().and_then(|folder| {
        let root = process.join("root");
        at(&written(&root, &folder).ok()?.socket).ok()
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

/// What a server wrote into its data folder.
#[derive(Debug)]
struct Written {
    /// Its first process, as it numbers it.
    pid: u32,
    /// Its socket file, as this process reaches it.
    socket: PathBuf,
}

/// What a data folder's postmaster.pid says, below `root`.
fn written(root: &Path, folder: &Path) -> Result<Written, ServerError> {
    // As it was given it may be relative, to this process.
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let path = resolved_below(root, &folder.join("postmaster.pid"));
    let text = path.and_then(|path| Ok((fs::read_to_string(&path)?, path)));
    let (text, path) = text.map_err(|source| ServerError::Data {
        path: root.join(inside(&folder)).join("postmaster.pid"),
        source,
    })?;
    let line = |at| text.lines().nth(at).map_or("", str::trim);
    let pid = line(PID_LINE).parse();
    let Ok(pid) = pid.map_err(drop).and_then(|pid| match line(FOLDER_LINE) {
        "" => Err(()),
        _ => Ok(pid),
    }) else {
        return Err(ServerError::NoSocket(path));
    };
    // Relative to the data folder.
    let socket = folder
        .join(line(FOLDER_LINE))
        .join(format!("{SOCKET_NAME}{}", line(PORT_LINE)));
    // Where it is not there, connecting says so.
    let socket = resolved_below(root, &socket).unwrap_or_else(|_| root.join(inside(&socket)));
    Ok(Written { pid, socket })
}

fn inside(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// A path as the processes see it whose root is `root`, as this process reaches it: symbolic links
/// on the way, of which absolute ones begin at that root, are followed here.
fn resolved_below(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut left: Vec<OsString> = Vec::new();
    let push = |left: &mut Vec<OsString>, path: &Path| {
        let parts = path.components().rev().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        });
        left.extend(parts);
    };
    push(&mut left, path);
    let mut found = PathBuf::new();
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == ".." {
            found.pop();
            continue;
        }
        let next = found.join(&part);
        let here = root.join(&next);
        if !fs::symlink_metadata(&here)?.is_symlink() {
            found = next;
            continue;
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(io::Error::other("too many symbolic links"));
        }
        let target = fs::read_link(&here)?;
        if target.is_absolute() {
            found = PathBuf::new();
        }
        push(&mut left, &target);
    }
    Ok(root.join(found))
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
    fn a_data_folder_names_its_socket() {
        let folder = tempfile::tempdir().unwrap();
        let missing = written(Path::new("/"), folder.path())
            .unwrap_err()
            .to_string();
        assert!(
            missing.contains("postmaster.pid") && missing.contains("--data"),
            "{missing}"
        );
        let file = folder.path().join("postmaster.pid");
        fs::write(&file, "71\n/data\n1700000000\n5433\n/run/x\n\n\nready\n").unwrap();
        let found = written(Path::new("/"), folder.path()).unwrap();
        assert_eq!(found.socket, Path::new("/run/x/.s.PGSQL.5433"));
        assert_eq!(found.pid, 71);
        fs::write(&file, "71\n/data\n1700000000\n5433\n\nlocalhost\n\nready\n").unwrap();
        assert!(written(Path::new("/"), folder.path()).is_err());
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
        assert!(
            told.contains(&format!("another one (process {own})")),
            "{told}"
        );
    }

    #[test]
    fn links_are_followed_below_the_root_of_a_container() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        // As in Debian's images: /var/run is an absolute link.
        for below in ["run/postgresql", "var", "pg"] {
            fs::create_dir_all(root.join(below)).unwrap();
        }
        symlink("/run", root.join("var/run")).unwrap();
        symlink("../pg", root.join("var/data")).unwrap();
        let socket = root.join("run/postgresql/.s.PGSQL.5432");
        fs::write(&socket, "").unwrap();
        let file = "71\n/data\n1700000000\n5432\n/var/run/postgresql\n\n\nready\n";
        fs::write(root.join("pg/postmaster.pid"), file).unwrap();
        let found = written(root, Path::new("/var/data")).unwrap();
        assert_eq!(found.socket, socket);
        // None leads out of it, or goes round in a circle.
        symlink("/../../../pg", root.join("out")).unwrap();
        let out = resolved_below(root, Path::new("/out")).unwrap();
        assert_eq!(out, root.join("pg"));
        symlink("round", root.join("round")).unwrap();
        assert!(resolved_below(root, Path::new("/round")).is_err());
    }
}
