//! What workers do: by BPF programs, or read from /proc where there can be none.

use std::collections::BTreeMap;
use std::future::pending;
use std::io;

use sooner_kernel::workers::{WorkerDoing, WorkerTold, Workers, WorkersBehind, WorkersWanted};
use sooner_processor::{Doing, Ended, Reading, RequestKind, Start};

use crate::postgres::processor::Processes;

/// From where.
#[derive(Debug)]
pub enum Source {
    /// Programs: exact, and each request's beginning is seen.
    Programs(Box<Workers>),
    /// /proc: processor times move with the kernel's tick only.
    Proc(Proc),
}

/// What is read from /proc.
#[derive(Debug, Default)]
pub struct Proc {
    processes: Processes,
    workers: BTreeMap<u32, Read>,
    next_place: u32,
}

#[derive(Debug)]
struct Read {
    thread: u32,
    run_ns: u64,
    changed_ns: u64,
}

impl Source {
    /// Looks at a thread from now on; gives its place, none where there is no more room.
    pub fn add(&mut self, thread: u32, now_ns: u64) -> io::Result<Option<u32>> {
        match self {
            Source::Programs(programs) => programs.add(thread),
            Source::Proc(proc) => {
                let place = proc.next_place;
                proc.next_place += 1;
                let read = Read {
                    thread,
                    run_ns: 0,
                    changed_ns: now_ns,
                };
                proc.workers.insert(place, read);
                Ok(Some(place))
            }
        }
    }

    /// Looks at it no more.
    pub fn remove(&mut self, thread: u32, place: u32) {
        match self {
            Source::Programs(programs) => programs.remove(thread, place),
            Source::Proc(proc) => {
                proc.workers.remove(&place);
                let workers = &proc.workers;
                let is_there = |thread| workers.values().any(|read| read.thread == thread);
                proc.processes.retain(is_there);
            }
        }
    }

    /// Tells of what these processes begin.
    pub fn set_processes<'a>(
        &mut self,
        gone: impl Iterator<Item = &'a u32>,
        new: impl Iterator<Item = &'a u32>,
    ) {
        if let Source::Programs(programs) = self {
            gone.for_each(|process| programs.remove_process(*process));
            for process in new {
                // What one that finds no room begins is found by the next look at all.
                let _ = programs.add_process(*process);
            }
        }
    }

    /// What a worker does, and how long it has waited for a processor in all, ns; an error where it
    /// is gone.
    pub fn read(&mut self, place: u32, now_ns: u64) -> io::Result<(Reading, u64)> {
        match self {
            Source::Programs(programs) => {
                let seen = programs.see(place, now_ns);
                let since_ns = seen.since_ns;
                let doing = match seen.doing {
                    WorkerDoing::Runs => Doing::Runs,
                    WorkerDoing::Ready => Doing::Ready { since_ns },
                    WorkerDoing::Asleep | WorkerDoing::Unknown => Doing::Asleep { since_ns },
                    WorkerDoing::Idle => Doing::Idle { since_ns },
                    WorkerDoing::Gone => return Err(io::ErrorKind::NotFound.into()),
                };
                let reading = Reading {
                    doing,
                    run_ns: seen.run_ns,
                    sleeps: seen.sleeps,
                    requests: seen.requests,
                    begin_run_ns: seen.begin_run_ns,
                    begin_at_ns: seen.begin_at_ns,
                    has_answered: seen.has_answered,
                    kind: seen.kind.map(RequestKind),
                    hands_on: seen.hands_on,
                    said_ns: seen.said_ns,
                };
                Ok((reading, seen.ready_ns))
            }
            Source::Proc(proc) => proc.read(place, now_ns),
        }
    }

    /// Whether a worker is there, and none has its number instead; none where that is not seen.
    pub fn is_there(&self, place: u32) -> Option<bool> {
        match self {
            Source::Programs(programs) => Some(programs.is_there(place)),
            Source::Proc(_) => None,
        }
    }

    /// A worker has another level.
    pub fn set_level(&self, place: u32, level: u8) {
        if let Source::Programs(programs) = self {
            programs.set_level(place, level);
        }
    }

    /// The next request that is over, where beginnings are seen.
    pub fn next_ended(&mut self) -> Option<Ended> {
        let Source::Programs(programs) = self else {
            return None;
        };
        let ended = programs.next_ended()?;
        Some(Ended {
            kind: ended.kind.map(RequestKind),
            began_ns: ended.began_at_ns,
            used_ns: ended.used_ns,
        })
    }

    /// Requests of a kind begin on another level.
    pub fn set_start(&mut self, start: Start) {
        if let Source::Programs(programs) = self {
            // One that finds no room begins on top, and falls at the next look.
            let _ = programs.set_start(start.kind.0, start.level);
        }
    }

    /// Says what is to be told.
    pub fn set_wants(&self, wants: WorkersWanted) {
        if let Source::Programs(programs) = self {
            programs.set_wants(wants);
        }
    }

    /// The oldest that was told and not taken yet.
    pub fn next_told(&mut self) -> Option<WorkerTold> {
        match self {
            Source::Programs(programs) => programs.next_told(),
            Source::Proc(_) => None,
        }
    }

    /// Until something is told; never where nothing is.
    pub async fn told(&self) -> io::Result<()> {
        match self {
            Source::Programs(programs) => programs.told().await,
            Source::Proc(_) => pending().await,
        }
    }

    /// For whom workers waited; none where it is not known.
    pub fn behind(&self) -> Option<WorkersBehind> {
        match self {
            Source::Programs(programs) => programs.behind().ok(),
            Source::Proc(_) => None,
        }
    }
}

impl Proc {
    fn read(&mut self, place: u32, now_ns: u64) -> io::Result<(Reading, u64)> {
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let read = self.workers.get_mut(&place).ok_or_else(gone)?;
        let look = self.processes.look(read.thread)?;
        let had_ns = match look.is_new {
            // What it had before is not of this attachment.
            true => 0,
            false => look.since.run_ns,
        };
        read.run_ns += had_ns;
        if had_ns > 0 {
            read.changed_ns = now_ns;
        }
        let since_ns = read.changed_ns;
        let doing = if had_ns > 0 {
            Doing::Runs
        } else if self.processes.is_on_processor(read.thread) {
            Doing::Ready { since_ns }
        } else {
            Doing::Asleep { since_ns }
        };
        let reading = Reading {
            doing,
            run_ns: read.run_ns,
            sleeps: 0,
            requests: 0,
            begin_run_ns: 0,
            begin_at_ns: 0,
            has_answered: false,
            kind: None,
            hands_on: false,
            said_ns: None,
        };
        Ok((reading, 0))
    }
}
