//! Which ports servers listen on, from what /proc says.
//!
//! A server that runs already is found by its ports and not by its control group: sockets keep the
//! group they were opened in, which need not be the one its processes are in now.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::process::geteuid;
use sooner_kernel::initial_timeout::groups;
use sooner_kernel::{capability, netns, process_table};

use super::config::Servers;

/// Tables of sockets, with the state in which one of them waits for strangers.
const TABLES: [(&str, u8); 4] = [("tcp", 0x0a), ("tcp6", 0x0a), ("udp", 0x07), ("udp6", 0x07)];

/// So many ports are named in an error, so that it stays a line.
const PORTS_NAMED_MAX: usize = 8;

/// What listens for services until it begins them, by the names of its programs.
const HOLD_FOR_OTHERS: [&str; 4] = ["systemd", "init", "inetd", "xinetd"];

/// Why there are no ports to look at.
#[derive(Debug, thiserror::Error)]
pub enum PortsError {
    /// No process listens there.
    #[error("nothing listens on port {}; start the server first, or name another with --port", list(.0))]
    Silent(Vec<u16>),
    /// There is no such process.
    #[error("no process {0}; find it with `pgrep`, or name its ports with --port")]
    NoProcess(u32),
    /// It runs no program.
    #[error("process {0} is a thread of the kernel, or has ended; name the server's first process")]
    NoProgram(u32),
    /// There is no such control group.
    #[error(
        "no control group `{0}`; `systemctl status` shows names like system.slice/nginx.service"
    )]
    NoGroup(String),
    /// Control groups of version 1 have no names that are theirs alone.
    #[error(
        "no control group `{0}`: control groups of version 2 are not mounted here; name the server with --port or --pid"
    )]
    NoGroups(String),
    /// Its sockets cannot be seen.
    #[error(
        "cannot list the sockets of process {pid}: {source}; that needs {}, or name its ports with --port",
        lacks_to_see().unwrap_or("root's rights")
    )]
    Hidden {
        /// The process.
        pid: u32,
        /// What the kernel says.
        source: io::Error,
    },
    /// Which processes listen there cannot be seen.
    #[error("which process listens on port {} cannot be seen; that needs {lacks}", list(.ports))]
    Unseen {
        /// The ports.
        ports: Vec<u16>,
        /// What is missing.
        lacks: &'static str,
    },
    /// It listens on nothing.
    #[error("{0} listens on no port; name the port with --port")]
    ListensOnNothing(String),
    /// Its ports are those of another network namespace.
    #[error(
        "{0} is in another network namespace, and its ports are not those of this one; add the ports that are published here with --port, or attach inside that namespace"
    )]
    Elsewhere(String),
    /// The kernel's tables cannot be read.
    #[error("cannot read which ports are listened on: {0}")]
    Tables(#[source] io::Error),
}

/// A socket that waits for strangers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Listener {
    port: u16,
    inode: u64,
}

/// The ports of these servers, ascending. Ports that were named must be listened on, unless the
/// servers are behind this host.
pub fn of(servers: &Servers) -> Result<Vec<u16>, PortsError> {
    let ports = match servers {
        Servers::Behind(ports) => ports.iter().copied().collect(),
        Servers::Ports(ports) => named(ports)?,
        Servers::Process(pid) => {
            let ports = of_process(*pid)?;
            nonempty(ports, || format!("process {pid}"))?
        }
        Servers::Group(name) => {
            let group = format!("control group `{name}`");
            let ports = of_group(&group, members(name)?)?;
            nonempty(ports, || group)?
        }
    };
    Ok(ports.into_iter().collect())
}

/// The ports that were named beside these servers, ascending, or else those of the servers. A port
/// that leads into another network namespace need not be listened on here.
pub fn beside_or_of(beside: &[u16], servers: &Servers) -> Result<Vec<u16>, PortsError> {
    if beside.is_empty() {
        return of(servers);
    }
    exists(servers)?;
    let ports: BTreeSet<u16> = beside.iter().copied().collect();
    Ok(ports.into_iter().collect())
}

/// Whether there is such a server; an error says what would be right.
pub fn exists(servers: &Servers) -> Result<(), PortsError> {
    match servers {
        Servers::Behind(_) => Ok(()),
        Servers::Ports(ports) => named(ports).map(drop),
        Servers::Process(pid) if !Path::new(&format!("/proc/{pid}")).exists() => {
            Err(PortsError::NoProcess(*pid))
        }
        Servers::Process(pid) => match std::fs::read_link(format!("/proc/{pid}/exe")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(PortsError::NoProgram(*pid))
            }
            _ => Ok(()),
        },
        Servers::Group(name) => members(name).map(drop),
    }
}

/// What is missing to see what processes of other users hold; none where nothing is.
pub fn lacks_to_see() -> Option<&'static str> {
    let reads_folders = geteuid().is_root() || capability::has_dac_read();
    match (capability::has_sys_ptrace(), reads_folders) {
        (true, true) => None,
        (false, true) => Some("CAP_SYS_PTRACE"),
        (true, false) => Some("CAP_DAC_READ_SEARCH"),
        (false, false) => Some("CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"),
    }
}

/// Why no process of these servers is found although their ports are listened on; none where
/// nothing is missing to see them.
pub fn unseen(servers: &Servers) -> Option<PortsError> {
    let (Servers::Ports(ports), Some(lacks)) = (servers, lacks_to_see()) else {
        return None;
    };
    Some(PortsError::Unseen {
        ports: ports.clone(),
        lacks,
    })
}

/// The same of some ports, of which no process is found; none where one is, or there are none.
pub fn unseen_of(ports: &[u16]) -> Option<PortsError> {
    if ports.is_empty() || !processes(ports).is_empty() {
        return None;
    }
    unseen(&Servers::Ports(ports.into()))
}

/// Those that were named, if a process listens on at least one of them.
fn named(ports: &[u16]) -> Result<BTreeSet<u16>, PortsError> {
    let listeners = listeners(Path::new("/proc/thread-self/net")).map_err(PortsError::Tables)?;
    let is_heard = |port: &u16| listeners.iter().any(|listener| listener.port == *port);
    if !ports.iter().any(is_heard) {
        return Err(PortsError::Silent(ports.into()));
    }
    Ok(ports.iter().copied().collect())
}

/// Those of these ports on which no process listens now, ascending.
pub fn silent(ports: &[u16]) -> io::Result<BTreeSet<u16>> {
    let mut silent: BTreeSet<u16> = ports.iter().copied().collect();
    for listener in listeners(Path::new("/proc/thread-self/net"))? {
        silent.remove(&listener.port);
    }
    Ok(silent)
}

fn nonempty(
    ports: BTreeSet<u16>,
    who: impl FnOnce() -> String,
) -> Result<BTreeSet<u16>, PortsError> {
    if ports.is_empty() {
        return Err(PortsError::ListensOnNothing(who()));
    }
    Ok(ports)
}

/// The processes that listen on one of these ports, as far as they can be seen.
pub fn processes(ports: &[u16]) -> BTreeSet<u32> {
    let listeners = listeners(Path::new("/proc/thread-self/net")).unwrap_or_default();
    let wanted = listeners.iter().filter(|one| ports.contains(&one.port));
    let wanted: BTreeSet<u64> = wanted.map(|one| one.inode).collect();
    let listens = |pid: &u32| {
        sockets(*pid).is_ok_and(|own| !own.is_disjoint(&wanted)) && !holds_for_others(*pid)
    };
    let all = process_table::all().unwrap_or_default();
    all.into_iter().filter(listens).collect()
}

/// Whether a process listens for services that it begins, and is none itself.
fn holds_for_others(pid: u32) -> bool {
    process_table::name(pid).is_ok_and(|name| HOLD_FOR_OTHERS.contains(&name.as_str()))
}

/// The processes of these servers: those that were named or listen, and all that they have begun.
pub fn family(servers: &Servers) -> BTreeSet<u32> {
    let mut all = match servers {
        Servers::Behind(_) => BTreeSet::new(),
        Servers::Process(pid) => BTreeSet::from([*pid]),
        Servers::Group(name) => members(name).unwrap_or_default(),
        Servers::Ports(wanted) => processes(wanted),
    };
    let parents: Vec<(u32, u32)> = process_table::all()
        .unwrap_or_default()
        .into_iter()
        .filter_map(|pid| Some((pid, process_table::parent(pid).ok()?)))
        .collect();
    loop {
        // What begins services has begun strangers too.
        let begun = parents
            .iter()
            .filter(|(_, parent)| all.contains(parent) && !holds_for_others(*parent));
        let more: Vec<u32> = begun
            .map(|(pid, _)| *pid)
            .filter(|pid| !all.contains(pid))
            .collect();
        if more.is_empty() {
            return all;
        }
        all.extend(more);
    }
}

/// The inodes of a process's sockets.
fn sockets(pid: u32) -> io::Result<BTreeSet<u64>> {
    let mut inodes = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        let target = entry.and_then(|entry| fs::read_link(entry.path()));
        if let Err(error) = &target
            && error.kind() == io::ErrorKind::PermissionDenied
        {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        // A descriptor may be closed meanwhile.
        inodes.extend(target.ok().and_then(|target| socket_inode(&target)));
    }
    Ok(inodes)
}

fn of_process(pid: u32) -> Result<BTreeSet<u16>, PortsError> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    if !process.exists() {
        return Err(PortsError::NoProcess(pid));
    }
    let inodes = sockets(pid).map_err(|source| PortsError::Hidden { pid, source })?;
    let own = netns::current_id().map_err(PortsError::Tables)?;
    if netns::id_of_process(pid).is_ok_and(|other| other != own) {
        return Err(PortsError::Elsewhere(format!("process {pid}")));
    }
    let listeners = listeners(&process.join("net")).map_err(PortsError::Tables)?;
    let of_process = listeners
        .iter()
        .filter(|listener| inodes.contains(&listener.inode));
    Ok(of_process.map(|listener| listener.port).collect())
}

/// The processes of a control group, and of the groups below it.
pub fn members(name: &str) -> Result<BTreeSet<u32>, PortsError> {
    let root = groups().map_err(PortsError::Tables)?;
    let root = root.ok_or_else(|| PortsError::NoGroups(name.into()))?;
    members_below(&root, name).ok_or_else(|| PortsError::NoGroup(name.into()))
}

/// The same where control groups are mounted at `root`; none where there is no such group.
fn members_below(root: &Path, name: &str) -> Option<BTreeSet<u32>> {
    // People give it as /proc and systemd write it, or as a folder.
    let name = Path::new(name)
        .strip_prefix(root)
        .unwrap_or(Path::new(name));
    let name = name.strip_prefix("/").unwrap_or(name);
    // All groups together are no server.
    let mut parts = name.components();
    if name.as_os_str().is_empty() || !parts.all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let candidates = [root.join(name), root.join("system.slice").join(name)];
    let mut candidates = candidates.into_iter();
    let group = candidates.find(|folder| folder.join("cgroup.procs").exists())?;
    let mut folders = vec![group];
    let mut all = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        // A group may go away meanwhile.
        let list = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        all.extend(
            list.lines()
                .filter_map(|line| line.trim().parse::<u32>().ok()),
        );
        let below = fs::read_dir(folder).into_iter().flatten().flatten();
        let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.extend(below.map(|entry| entry.path()));
    }
    Some(all)
}

/// The ports of the members of `group`; those in another network namespace have none here.
fn of_group(group: &str, members: BTreeSet<u32>) -> Result<BTreeSet<u16>, PortsError> {
    let mut ports = BTreeSet::new();
    let mut is_elsewhere = false;
    for pid in members {
        match of_process(pid) {
            Ok(found) => ports.extend(found),
            // It ended meanwhile.
            Err(PortsError::NoProcess(_)) => {}
            Err(PortsError::Elsewhere(_)) => is_elsewhere = true,
            Err(error) => return Err(error),
        }
    }
    match ports.is_empty() && is_elsewhere {
        true => Err(PortsError::Elsewhere(group.into())),
        false => Ok(ports),
    }
}

/// The inode in the target of a descriptor's link, `socket:[123]`.
fn socket_inode(target: &Path) -> Option<u64> {
    let text = target.to_str()?;
    text.strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// All that wait for strangers, from the tables in this folder; tables that are not there have
/// none.
fn listeners(folder: &Path) -> io::Result<Vec<Listener>> {
    let mut all = Vec::new();
    for (name, state) in TABLES {
        match fs::read_to_string(folder.join(name)) {
            Ok(text) => all.extend(listeners_in(&text, state)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// Those of a table in the format of /proc/net/tcp that are in this state.
fn listeners_in(text: &str, state: u8) -> impl Iterator<Item = Listener> {
    text.lines().skip(1).filter_map(move |line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (_, port) = words.get(1)?.rsplit_once(':')?;
        let is_wanted = u8::from_str_radix(words.get(3)?, 16).ok()? == state;
        let listener = Listener {
            port: u16::from_str_radix(port, 16).ok()?,
            inode: words.get(9)?.parse().ok()?,
        };
        is_wanted.then_some(listener)
    })
}

/// Each once; of many the first.
fn list(ports: &[u16]) -> String {
    let mut seen = BTreeSet::new();
    let ports: Vec<u16> = ports
        .iter()
        .copied()
        .filter(|one| seen.insert(*one))
        .collect();
    let named = match ports.len() {
        0..=PORTS_NAMED_MAX => ports.len(),
        _ => PORTS_NAMED_MAX - 1,
    };
    let mut words: Vec<String> = ports.iter().take(named).map(ToString::to_string).collect();
    if named < ports.len() {
        words.push(format!("one of {} others", ports.len() - named));
    }
    words.join(" or ")
}

#[cfg(test)]
mod tests;
