//! What is changed of a PostgreSQL server's processes.

use std::io;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use sooner_kernel::process_table;

use super::mechanism::Mechanism;
use crate::process_id::ProcessId;
use crate::record::{Record, patiently};

/// What has to be put back of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftovers {
    /// The server's first process: all of its children may have been changed.
    pub server: ProcessId,
    /// By which means.
    pub mechanism: Mechanism,
    /// What they have otherwise: a nice value, or of real time the number of a policy.
    #[serde(alias = "nice")]
    pub usual: i32,
    /// The highest level; 0 is not known.
    #[serde(default)]
    pub top: u8,
    /// How some of them are lowered; none where none is.
    #[serde(default)]
    pub lowering: Option<Lowering>,
    /// Gates that were put above them, each with what it has otherwise.
    #[serde(default)]
    pub gates: Vec<(ProcessId, i32)>,
}

/// How processes are lowered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lowering {
    /// By which means.
    pub mechanism: Mechanism,
    /// What they have otherwise.
    pub usual: i32,
    /// What they get back at most, where the record is another user's.
    #[serde(skip)]
    pub least: Option<i32>,
}

impl Lowering {
    /// Takes it back of one process.
    fn take_back(&self, pid: u32) -> io::Result<()> {
        let target = self.least.map_or(self.usual, |least| self.usual.max(least));
        self.mechanism.take_back_lowering(pid, self.usual, target)
    }
}

impl Record for Leftovers {
    const NAME_BEGIN: &'static str = "postgres-";
    const KIND: &'static str = "PostgreSQL servers";

    fn server(&self) -> u32 {
        self.server.pid
    }

    fn restore(&self) -> io::Result<()> {
        let begin = Instant::now();
        let mut first = Ok(());
        let mut back = |pid, set: &dyn Fn() -> io::Result<()>| {
            let named = patiently(begin, set)
                .map_err(|error| io::Error::new(error.kind(), format!("process {pid}: {error}")));
            if first.is_ok() {
                first = named;
            }
        };
        // A top of 0 is not known where a record is an old one, which has no lowering: else none
        // was raised.
        let has_raised = self.top > 0 || self.lowering.is_none();
        let unraise = |pid, usual| match has_raised {
            true => self.mechanism.put_back(pid, self.top, usual),
            false => Ok(()),
        };
        if self.server.is_there() {
            for pid in process_table::children_among_all(self.server.pid)? {
                back(pid, &|| unraise(pid, self.usual));
                if let Some(lowering) = self.lowering {
                    back(pid, &|| lowering.take_back(pid));
                }
            }
        }
        for (gate, usual) in self.gates.iter().filter(|(gate, _)| gate.is_there()) {
            back(gate.pid, &|| unraise(gate.pid, *usual));
        }
        first
    }

    fn without_trust(mut self) -> Self {
        let trusted = |usual| self.mechanism.usual_without_trust(usual);
        self.usual = trusted(self.usual);
        for (_, usual) in &mut self.gates {
            *usual = trusted(*usual);
        }
        // Real time lowers none: such a record is not ours. By any other no process is put before
        // what is usual.
        let lowering = self
            .lowering
            .filter(|own| Mechanism::LOWERING.contains(&own.mechanism));
        self.lowering = lowering.map(|own| Lowering {
            least: Some(0),
            ..own
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Folder;
    use crate::record::{Cleaned, clean_in, file_of, write_at};
    use sooner_kernel::priority;
    use std::fs;

    fn left(server: ProcessId) -> Leftovers {
        Leftovers {
            server,
            mechanism: Mechanism::Nice,
            usual: 0,
            top: 1,
            lowering: None,
            gates: Vec::new(),
        }
    }

    #[test]
    fn a_lowered_process_is_put_back_and_by_another_users_record_never_raised() {
        // Waits until it has the nice value that it is started with.
        let begin = |nice: &str| {
            let mut command = std::process::Command::new("nice");
            let child = command.args(["-n", nice, "sleep", "60"]).spawn().unwrap();
            while priority::nice(child.id()).unwrap() != nice.parse::<i32>().unwrap() {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            child
        };
        let own = ProcessId::of(std::process::id()).unwrap();
        let of = |usual| Leftovers {
            top: 0,
            lowering: Some(Lowering {
                mechanism: Mechanism::Nice,
                usual,
                least: None,
            }),
            ..left(own)
        };
        if !sooner_kernel::capability::has_sys_nice() {
            return;
        }
        // Lowered from 5, and at 5 again; not lowered from -11, as such a record says, nor raised.
        for (record, nice, expected) in [
            (of(5), "16", 5),
            (of(5).without_trust(), "16", 5),
            (of(-11).without_trust(), "0", 0),
            (of(-5).without_trust(), "6", 0),
            // Set by another one.
            (of(0), "10", 10),
        ] {
            let mut child = begin(nice);
            let lowering = record.lowering.unwrap();
            lowering.take_back(child.id()).unwrap();
            assert_eq!(
                priority::nice(child.id()).unwrap(),
                expected,
                "{lowering:?} {nice}"
            );
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn a_record_that_cannot_be_read_is_named_and_stops_no_other() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder {
            path: temporary.path().to_owned(),
            other: None,
        };
        let gone = ProcessId {
            pid: 4_000_000,
            began: 1,
        };
        let path = |server| folder.path.join(file_of::<Leftovers>(server));
        fs::write(path(4_000_001), "{").unwrap();
        let good = serde_json::to_string(&left(gone)).unwrap();
        fs::write(path(gone.pid), good).unwrap();
        // As it was written before it said how many levels there are.
        let older =
            r#"{"server":{"pid":4000002,"began":1},"mechanism":"round-robin","nice":0,"gates":[]}"#;
        fs::write(path(4_000_002), older).unwrap();
        let mut cleaned = Cleaned::default();
        clean_in::<Leftovers>(&folder, None, &mut cleaned).unwrap();
        cleaned.servers.sort_unstable();
        assert_eq!(cleaned.servers, [4_000_000, 4_000_002]);
        assert!(cleaned.problems[0].contains("postgres-4000001.json"));
        assert!(path(4_000_001).exists() && !path(gone.pid).exists());
    }

    #[test]
    fn only_the_server_that_is_meant_is_put_back() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder {
            path: temporary.path().to_owned(),
            other: None,
        };
        let gone = [4_000_003, 4_000_004].map(|pid| ProcessId { pid, began: 1 });
        let path = |server| folder.path.join(file_of::<Leftovers>(server));
        for server in gone {
            write_at(&left(server), &path(server.pid)).unwrap();
        }
        let mut cleaned = Cleaned::default();
        clean_in::<Leftovers>(&folder, Some(4_000_003), &mut cleaned).unwrap();
        assert_eq!(cleaned.servers, [4_000_003]);
        assert!(!path(4_000_003).exists() && path(4_000_004).exists());
    }

    #[test]
    fn a_record_that_cannot_be_written_is_named_and_leaves_nothing() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("postgres-7.json");
        // Renaming fails.
        fs::create_dir(&path).unwrap();
        let own = ProcessId::of(std::process::id()).unwrap();
        let told = write_at(&left(own), &path).unwrap_err().to_string();
        assert!(told.contains("postgres-7.json"), "{told}");
        let found = fs::read_dir(temporary.path()).unwrap();
        assert_eq!(found.count(), 1, "nothing beside it");
    }
}
