//! Network namespaces: which one this thread is in, and how to enter another.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::raw;

/// Where `ip netns add NAME` keeps its namespaces.
const DIRECTORY: &str = "/run/netns";

/// Moves the calling thread, and what it opens from now on, into the namespace made by `ip netns
/// add NAME`; needs `CAP_SYS_ADMIN`.
pub fn enter(name: &str) -> io::Result<()> {
    let path = Path::new(DIRECTORY).join(name);
    let in_place = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("network namespace {}: {error}", path.display()),
        )
    };
    let namespace = File::open(&path).map_err(in_place)?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|errno| in_place(errno.into()))
}

/// Runs `body` in a thread of its own, in a namespace of its own that goes with it; needs
/// `CAP_SYS_ADMIN`. Namespaces that are made there take what this one says of its children.
pub fn in_new<T: Send>(body: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    in_a_thread(|| {
        raw::leave_network()?;
        body()
    })
}

/// Runs `body` in a thread of its own that is in the namespace made by `ip netns add NAME`.
pub fn inside<T: Send>(name: &str, body: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    in_a_thread(|| {
        enter(name)?;
        body()
    })
}

/// Runs `body` in a thread of its own that is in this namespace; needs `CAP_SYS_ADMIN`.
pub fn within<T: Send>(
    namespace: &File,
    body: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    in_a_thread(|| {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        body()
    })
}

/// The namespaces other than the calling thread's that have a name or a process, as far as they may
/// be opened.
pub fn others() -> Vec<File> {
    let entries = |folder: &str| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries(DIRECTORY).map(|entry| entry.path());
    let of_processes = entries("/proc").map(|entry| entry.path().join("ns/net"));
    let mut seen: Vec<u64> = current_id().into_iter().collect();
    let mut others = Vec::new();
    for path in named.chain(of_processes) {
        let Ok(file) = File::open(path) else { continue };
        let Ok(found) = file.metadata() else { continue };
        if !seen.contains(&found.ino()) {
            seen.push(found.ino());
            others.push(file);
        }
    }
    others
}

fn in_a_thread<T: Send>(body: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| scope.spawn(body).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A number that tells the calling thread's namespace from all others that exist (its inode).
pub fn current_id() -> io::Result<u64> {
    Ok(std::fs::metadata("/proc/thread-self/ns/net")?.ino())
}

/// The same of another one.
pub fn id_of(namespace: &File) -> io::Result<u64> {
    Ok(namespace.metadata()?.ino())
}

/// The same of the one that a process is in; needs the right to look into the process.
pub fn id_of_process(pid: u32) -> io::Result<u64> {
    Ok(std::fs::metadata(format!("/proc/{pid}/ns/net"))?.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_namespace_is_named() {
        let error = enter("sooner-no-such").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("/run/netns/sooner-no-such"));
        assert!(current_id().unwrap() > 0);
    }
}
