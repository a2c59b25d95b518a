//! A path below the root, name by name, where the kernel cannot resolve it alone: for `openat2` an
//! absolute link leads out, even to the root itself; and old kernels lack that call.
//!
//! Every step opens one name in a directory that is open, and none follows a link by itself. `..`
//! goes back to a directory the walk has come through, never to a parent on the disk. So no race
//! leads out.

use super::own_path::OwnPath;
use super::{LOOK, Symlinks};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// As many links as the kernel follows in one path.
const LINKS_MAX: usize = 40;

/// Where a walk begins, and what it may follow.
#[derive(Debug, Clone, Copy)]
pub struct Below<'a> {
    /// The root.
    pub root: &'a OwnedFd,
    /// The root's own path, for links that name it.
    pub own_path: &'a OwnPath,
    /// Which links are followed.
    pub symlinks: Symlinks,
}

impl Below<'_> {
    /// Opens `path`. Fails as `openat2` does: with `XDEV` where it leads out, with `LOOP` where it
    /// leads through links that are not followed or are too many, with `AGAIN` after a race.
    pub fn open(self, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        // The directories between the root and where the walk is; the names to come, backwards.
        let mut entered: Vec<OwnedFd> = Vec::new();
        let mut names = Vec::new();
        push(&mut names, path);
        let mut links = 0;
        while let Some(name) = names.pop() {
            let here = entered.last().unwrap_or(self.root);
            match &name[..] {
                b"" | b"." => {}
                b".." => drop(entered.pop().ok_or(Errno::XDEV)?),
                name => match rustix::fs::readlinkat(here, name, Vec::new()) {
                    Ok(target) => {
                        links += 1;
                        if links > LINKS_MAX || self.symlinks == Symlinks::None {
                            return Err(Errno::LOOP);
                        }
                        let depth = entered.len();
                        let led = self.own_path.lead(target.as_bytes(), depth);
                        let (depth, rest) = led.ok_or(Errno::XDEV)?;
                        entered.truncate(depth);
                        push(&mut names, rest);
                    }
                    // It is no link.
                    Err(Errno::INVAL) if names.is_empty() => {
                        return enter(here.as_fd(), name, flags);
                    }
                    Err(Errno::INVAL) => {
                        let directory = enter(here.as_fd(), name, LOOK | OFlags::DIRECTORY)?;
                        entered.push(directory);
                    }
                    Err(error) => return Err(error),
                },
            }
        }
        let here = entered.last().unwrap_or(self.root);
        rustix::fs::openat(here, ".", flags, Mode::empty())
    }
}

fn push(names: &mut Vec<Box<[u8]>>, path: &[u8]) {
    names.extend(path.split(|&byte| byte == b'/').rev().map(Box::from));
}

fn enter(from: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    match rustix::fs::openat(from, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
        // It has become one meanwhile.
        Err(Errno::LOOP) => Err(Errno::AGAIN),
        opened => opened,
    }
}
