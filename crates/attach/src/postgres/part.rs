//! What a session is doing at a moment, as parts of a transaction's time.

use serde::Serialize;

/// A part of a transaction's response time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A processor runs it.
    Running,
    /// It could run, and no processor is free for it.
    ProcessorWait,
    /// It waits for a row that another transaction has changed or locked.
    RowLocks,
    /// It waits for a table or another object.
    TableLocks,
    /// It waits for an advisory lock.
    AdvisoryLocks,
    /// It waits for its turn to make a table's file longer.
    ExtendLocks,
    /// It waits for a heavyweight lock of another kind.
    OtherLocks,
    /// It waits for one of the server's own lightweight locks.
    LightLocks,
    /// It waits for the write-ahead log: a place in it, a write, a sync.
    Wal,
    /// It waits for data or temporary files.
    DataIo,
    /// It waits for a standby server.
    Replication,
    /// The server waits for its client inside a transaction.
    Client,
    /// Anything else: workers, timers, extensions, what has no name.
    Other,
}

/// How many there are.
pub const PARTS: usize = 13;

impl Part {
    /// All of them, in the order of tables.
    pub const ALL: [Part; PARTS] = [
        Part::Running,
        Part::ProcessorWait,
        Part::RowLocks,
        Part::TableLocks,
        Part::AdvisoryLocks,
        Part::ExtendLocks,
        Part::OtherLocks,
        Part::LightLocks,
        Part::Wal,
        Part::DataIo,
        Part::Replication,
        Part::Client,
        Part::Other,
    ];

    /// Its place in [`Part::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// What tables call it.
    pub fn name(self) -> &'static str {
        match self {
            Part::Running => "processor, running",
            Part::ProcessorWait => "processor, waiting",
            Part::RowLocks => "row locks",
            Part::TableLocks => "table locks",
            Part::AdvisoryLocks => "advisory locks",
            Part::ExtendLocks => "extend locks",
            Part::OtherLocks => "other locks",
            Part::LightLocks => "lightweight locks",
            Part::Wal => "write-ahead log",
            Part::DataIo => "data I/O",
            Part::Replication => "replication",
            Part::Client => "client",
            Part::Other => "other waits",
        }
    }

    /// Whether it is the wait for a heavyweight lock.
    pub fn is_lock(self) -> bool {
        (Part::RowLocks..=Part::OtherLocks).contains(&self)
    }

    /// The part that a wait event belongs to, by the names in pg_stat_activity of PostgreSQL 15 to
    /// 18. Where versions spell a name otherwise only capitals differ.
    pub fn of_wait(kind: &str, event: &str) -> Part {
        let event = event.to_ascii_lowercase();
        match kind {
            "Lock" => match event.as_str() {
                "transactionid" | "tuple" | "spectoken" => Part::RowLocks,
                "relation" | "virtualxid" | "object" => Part::TableLocks,
                "advisory" | "userlock" => Part::AdvisoryLocks,
                "extend" => Part::ExtendLocks,
                _ => Part::OtherLocks,
            },
            "LWLock" | "IO" if event.starts_with("wal") => Part::Wal,
            "IO" => Part::DataIo,
            "LWLock" if event == "bufferio" => Part::DataIo,
            "LWLock" => Part::LightLocks,
            "Client" => Part::Client,
            "IPC" => match event.as_str() {
                "bufferio" => Part::DataIo,
                "syncrep" => Part::Replication,
                "procarraygroupupdate" | "xactgroupupdate" => Part::LightLocks,
                _ => Part::Other,
            },
            _ => Part::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_place() {
        for (at, part) in Part::ALL.iter().enumerate() {
            assert_eq!(part.index(), at);
        }
        let locks = Part::ALL.iter().filter(|part| part.is_lock()).count();
        assert_eq!(locks, 5);
    }

    #[test]
    fn waits_belong_to_parts_whatever_version_names_them() {
        for (kind, event, part) in [
            ("Lock", "transactionid", Part::RowLocks),
            ("Lock", "tuple", Part::RowLocks),
            ("Lock", "relation", Part::TableLocks),
            ("Lock", "applytransaction", Part::OtherLocks),
            ("LWLock", "WALWrite", Part::Wal),
            ("LWLock", "WALInsert", Part::Wal),
            ("LWLock", "LockManager", Part::LightLocks),
            ("IO", "WALSync", Part::Wal),
            ("IO", "WalSync", Part::Wal),
            ("IO", "DataFileRead", Part::DataIo),
            ("IO", "AioIoCompletion", Part::DataIo),
            ("IPC", "BufferIO", Part::DataIo),
            ("IPC", "BufferIo", Part::DataIo),
            ("IPC", "SyncRep", Part::Replication),
            ("IPC", "ExecuteGather", Part::Other),
            ("Client", "ClientRead", Part::Client),
            ("Timeout", "PgSleep", Part::Other),
            ("Extension", "Extension", Part::Other),
            ("BufferPin", "BufferPin", Part::Other),
        ] {
            assert_eq!(Part::of_wait(kind, event), part, "{kind}:{event}");
        }
    }
}
