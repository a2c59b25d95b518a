//! Which TLS libraries the servers have mapped, and the probes in them.
//!
//! A library is a file, whatever it is called: the same path may be another file in a container, and
//! a server that has not been restarted since an update has the old one. Processes that come later
//! and map the same file are probed by the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sooner_kernel::classifier::{Classifier, TlsFunctions, TlsProbe};

use super::config::Servers;
use super::ports;

/// A file by its device and its inode.
type FileId = (u64, u64);
/// A library stays probed until so many looks in a row have not seen it.
const MISSES_MAX: u32 = 3;

/// A file that a process has mapped to run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapped {
    inode: u64,
    /// Its addresses, as `/proc/PID/map_files` names it.
    addresses: String,
    /// Where it was, as the process sees it.
    path: PathBuf,
}

/// Those that are probed, and those that need not be looked at again.
#[derive(Debug, Default)]
pub struct TlsLibraries {
    known: BTreeMap<FileId, Known>,
    /// Why a process or a file cannot be looked at, the last reason.
    problem: Option<String>,
}

#[derive(Debug)]
struct Known {
    path: PathBuf,
    missed: u32,
    /// None where it has none of the functions; or why it is not read, which is not tried again.
    probe: Result<Option<TlsProbe>, String>,
}

/// What a look has found.
#[derive(Debug, Default)]
pub struct Looked {
    seen: BTreeSet<FileId>,
    new: Vec<NewFile>,
    problem: Option<String>,
}

/// A file that was not known before the look.
#[derive(Debug)]
struct NewFile {
    id: FileId,
    /// Held, so that the probes stand in what was read, whatever has its name by then.
    file: fs::File,
    path: PathBuf,
    functions: io::Result<TlsFunctions>,
}

impl TlsLibraries {
    /// A look for libraries that came or went, which reads files of all processes: not for an event
    /// loop.
    pub fn look(&self, servers: &Servers) -> impl FnOnce() -> Looked + Send + 'static + use<> {
        let known: BTreeSet<FileId> = self.known.keys().copied().collect();
        let servers = servers.clone();
        move || {
            let mut looked = Looked::default();
            let family = ports::family(&servers);
            if family.is_empty() {
                looked.problem = ports::unseen(&servers).map(|error| error.to_string());
            }
            for pid in family {
                looked.look_at(pid, &known);
            }
            looked
        }
    }

    /// Puts probes into what has come, and takes them out of what has gone.
    pub fn take(&mut self, classifier: &mut Classifier, looked: Looked) {
        self.problem = looked.problem;
        for new in looked.new {
            let probe = new.functions.and_then(|functions| {
                let has_some = !functions.is_empty();
                let place = place_of(&new.file);
                let probe = has_some.then(|| classifier.probe(&place, &functions));
                probe.transpose()
            });
            let known = Known {
                probe: probe.map_err(|error| format!("{}: {error}", new.path.display())),
                path: new.path,
                missed: 0,
            };
            self.known.insert(new.id, known);
        }
        for (file, known) in &mut self.known {
            let is_seen = looked.seen.contains(file);
            known.missed = if is_seen { 0 } else { known.missed + 1 };
        }
        let gone = self
            .known
            .extract_if(.., |_, known| known.missed >= MISSES_MAX);
        for (_, known) in gone {
            if let Ok(Some(probe)) = known.probe {
                classifier.stop_probing(probe);
            }
        }
    }

    /// The paths of those that are read, as their processes see them.
    pub fn paths(&self) -> Vec<String> {
        let read = self
            .known
            .values()
            .filter(|known| matches!(known.probe, Ok(Some(_))));
        read.map(|known| known.path.display().to_string()).collect()
    }

    /// Why one is not read.
    pub fn problem(&self) -> Option<&str> {
        let mut failed = self.known.values();
        let failed = failed.find_map(|known| known.probe.as_ref().err());
        self.problem.as_ref().or(failed).map(String::as_str)
    }
}

impl Looked {
    fn look_at(&mut self, pid: u32, known: &BTreeSet<FileId>) {
        let mapped = match mapped_by(pid) {
            Ok(mapped) => mapped,
            Err(error) => {
                if error.kind() == io::ErrorKind::PermissionDenied {
                    self.problem = Some(format!(
                        "what process {pid} has mapped cannot be seen; that needs CAP_SYS_PTRACE"
                    ));
                }
                return;
            }
        };
        for one in mapped {
            let place = place(pid, &one);
            let opened =
                fs::File::open(&place).and_then(|file| file.metadata().map(|found| (file, found)));
            let (file, found) = match opened {
                Ok(opened) => opened,
                // The process has gone.
                Err(_) if !Path::new(&format!("/proc/{pid}")).exists() => return,
                Err(_) => {
                    self.problem = Some(format!(
                        "{} of process {pid} was replaced and cannot be opened any more; that needs CAP_CHECKPOINT_RESTORE, or a restart of the server",
                        one.path.display()
                    ));
                    continue;
                }
            };
            let id = (found.dev(), found.ino());
            if self.seen.insert(id) && !known.contains(&id) {
                self.new.push(NewFile {
                    id,
                    functions: TlsFunctions::of(&place_of(&file)),
                    file,
                    path: one.path,
                });
            }
        }
    }
}

/// An open file as a path.
fn place_of(file: &fs::File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Its program, and what is called a TLS library.
fn mapped_by(pid: u32) -> io::Result<Vec<Mapped>> {
    let program = fs::read_link(format!("/proc/{pid}/exe"))?;
    let program = without_deleted(&program);
    let text = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let mapped = mapped_in(&text);
    Ok(mapped
        .filter(|one| one.path == program || is_library(&one.path))
        .collect())
}

fn is_library(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let names = ["libssl.so", "libssl-", "libgnutls.so"];
    name.is_some_and(|name| names.iter().any(|own| name.starts_with(own)))
}

/// Files that are mapped to run, in a text like `/proc/PID/maps`.
fn mapped_in(text: &str) -> impl Iterator<Item = Mapped> {
    text.lines().filter_map(|line| {
        let mut words = line.splitn(6, ' ');
        let addresses = words.next()?;
        let is_run = words.next()?.contains('x');
        let inode = words.nth(2)?.parse().ok()?;
        let path = words.next()?.trim_start();
        let path = without_deleted(Path::new(path));
        (is_run && inode > 0 && path.is_absolute()).then(|| Mapped {
            inode,
            addresses: addresses.into(),
            path,
        })
    })
}

/// A path as it was before the file was replaced.
fn without_deleted(path: &Path) -> PathBuf {
    let text = path.to_str();
    let before = text.and_then(|text| text.strip_suffix(" (deleted)"));
    before.map_or_else(|| path.to_owned(), PathBuf::from)
}

/// Where this file can be opened from here: in the process's own root, or, where another one has
/// that name now, by its addresses.
fn place(pid: u32, mapped: &Mapped) -> PathBuf {
    let inside = mapped.path.strip_prefix("/").unwrap_or(&mapped.path);
    let by_name = PathBuf::from(format!("/proc/{pid}/root")).join(inside);
    let is_it = fs::metadata(&by_name).is_ok_and(|found| found.ino() == mapped.inode);
    match is_it {
        true => by_name,
        false => PathBuf::from(format!("/proc/{pid}/map_files/{}", mapped.addresses)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAPS: &str = "\
55d0c0000000-55d0c0021000 r--p 00000000 fe:00 1234                       /usr/sbin/nginx
55d0c0021000-55d0c00f0000 r-xp 00021000 fe:00 1234                       /usr/sbin/nginx
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
7f1000000000-7f1000050000 r-xp 0001d000 fe:00 77                         /usr/lib/libssl.so.3 (deleted)
7f2000000000-7f2000050000 r-xp 0001d000 fe:00 78                         /opt/my libs/libssl-1.1.so
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
";

    #[test]
    fn what_can_run_is_found_by_its_file() {
        let found: Vec<Mapped> = mapped_in(MAPS).collect();
        let words = found
            .iter()
            .map(|one| format!("{} {}", one.inode, one.path.display()));
        assert_eq!(
            words.collect::<Vec<_>>(),
            [
                "1234 /usr/sbin/nginx",
                "77 /usr/lib/libssl.so.3",
                "78 /opt/my libs/libssl-1.1.so"
            ]
        );
        assert_eq!(found[1].addresses, "7f1000000000-7f1000050000");
        let is_read: Vec<bool> = found.iter().map(|one| is_library(&one.path)).collect();
        assert_eq!(is_read, [false, true, true]);
    }

    #[test]
    fn a_process_has_its_program_mapped() {
        let own = std::process::id();
        let mapped = mapped_by(own).unwrap();
        let program = std::env::current_exe().unwrap();
        let one = mapped.iter().find(|one| one.path == program).unwrap();
        let found = fs::metadata(place(own, one)).unwrap();
        assert_eq!(found.ino(), one.inode);
        assert!(ports::family(&Servers::Process(own)).contains(&own));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            let _ = mapped_in(&text).count();
        }
    }
}
