//! Databases of TPC-C and TPC-W: data, mix, settings and storage, by name.

use super::slow_disk::Bounds;

/// A database and what is done with it.
#[derive(Debug)]
pub struct SetUp {
    pub name: &'static str,
    pub kit: &'static str,
    pub data: &'static [&'static str],
    pub users: &'static [&'static str],
    pub database: &'static [&'static str],
    pub storage: Storage,
    /// Of the data; users' seeds count from here.
    pub seed: u32,
}

/// Where the database and its log are.
#[derive(Debug)]
pub enum Storage {
    /// A file system in memory: what a disk does that others share is not measured.
    Memory,
    /// The machine's disk.
    Disk,
    /// A slow disk with little memory before it.
    SlowDisk(Bounds),
}

/// Users of a slow disk while it is fast yet: to fill its caches takes it half a minute later, in
/// which no limit is like another.
pub const WARM_UP: &[&str] = &["--users", "20", "--for", "90"];
const DURABLE: &[&str] = &["fsync=on"];
/// A commit does not wait for the log, which shares the slow disk. Neither a checkpoint nor
/// autovacuum comes while it is measured: autovacuum reads a whole table, and for half a minute the
/// database does a fifth, whatever the limit is.
const SLOW_DISK: &[&str] = &[
    "fsync=on",
    "synchronous_commit=off",
    "checkpoint_timeout=1h",
    "max_wal_size=20GB",
    "autovacuum=off",
    "shared_buffers=600MB",
];
const LARGE: &[&str] = &["fsync=on", "shared_buffers=1GB", "max_wal_size=4GB"];

/// Locks, processor, disk and both; then other sizes, a fresh seed, and the log on the machine's
/// own disk.
pub const SET_UPS: [SetUp; 13] = [
    SetUp {
        name: "tpcc-1",
        kit: "tpcc",
        data: &["--warehouses", "1"],
        users: &[],
        database: DURABLE,
        storage: Storage::Memory,
        seed: 1,
    },
    SetUp {
        name: "tpcc-10",
        kit: "tpcc",
        data: &["--warehouses", "10"],
        users: &[],
        database: DURABLE,
        storage: Storage::Memory,
        seed: 1,
    },
    SetUp {
        name: "tpcc-10-repeatable-read",
        kit: "tpcc",
        data: &["--warehouses", "10"],
        users: &["--isolation", "repeatable-read"],
        database: DURABLE,
        storage: Storage::Memory,
        seed: 1,
    },
    SetUp {
        name: "tpcw-browsing",
        kit: "tpcw",
        data: &[],
        users: &["--mix", "browsing"],
        database: LARGE,
        storage: Storage::Memory,
        seed: 1,
    },
    SetUp {
        name: "tpcw-shopping",
        kit: "tpcw",
        data: &[],
        users: &["--mix", "shopping"],
        database: LARGE,
        storage: Storage::Memory,
        seed: 1,
    },
    SetUp {
        name: "tpcw-repeatable-read",
        kit: "tpcw",
        data: &[],
        users: &["--mix", "shopping", "--isolation", "repeatable-read"],
        database: LARGE,
        storage: Storage::Memory,
        seed: 1,
    },
    SetUp {
        name: "tpcw-ordering",
        kit: "tpcw",
        data: &[],
        users: &["--mix", "ordering"],
        database: LARGE,
        storage: Storage::Memory,
        seed: 1,
    },
    // Three gigabytes of which a fifth is in the database's own memory: what 100 connections need
    // besides takes nothing of that.
    SetUp {
        name: "tpcc-30-disk",
        kit: "tpcc",
        data: &["--warehouses", "30"],
        users: &[],
        database: SLOW_DISK,
        storage: Storage::SlowDisk(Bounds {
            memory_mib: 1100,
            reads_per_sec: 1500,
            size_mib: 16384,
        }),
        seed: 1,
    },
    SetUp {
        name: "tpcc-30-balanced",
        kit: "tpcc",
        data: &["--warehouses", "30"],
        users: &[],
        database: SLOW_DISK,
        storage: Storage::SlowDisk(Bounds {
            memory_mib: 1100,
            reads_per_sec: 4500,
            size_mib: 16384,
        }),
        seed: 1,
    },
    // More than shared memory holds, and five times as many books and customers.
    SetUp {
        name: "tpcc-30",
        kit: "tpcc",
        data: &["--warehouses", "30"],
        users: &[],
        database: DURABLE,
        storage: Storage::Memory,
        seed: 1,
    },
    SetUp {
        name: "tpcw-large",
        kit: "tpcw",
        data: &["--items", "50000", "--customers", "50000"],
        users: &["--mix", "shopping"],
        database: LARGE,
        storage: Storage::Memory,
        seed: 1,
    },
    SetUp {
        name: "tpcw-shopping-fresh-seed",
        kit: "tpcw",
        data: &[],
        users: &["--mix", "shopping"],
        database: LARGE,
        storage: Storage::Memory,
        seed: 1000,
    },
    SetUp {
        name: "tpcc-10-on-disk",
        kit: "tpcc",
        data: &["--warehouses", "10"],
        users: &[],
        database: DURABLE,
        storage: Storage::Disk,
        seed: 1,
    },
];

/// The set-up of this name.
pub fn set_up(name: &str) -> Result<&'static SetUp, (String, String)> {
    let names: Vec<&str> = SET_UPS.iter().map(|set_up| set_up.name).collect();
    let found = SET_UPS.iter().find(|set_up| set_up.name == name);
    found.ok_or_else(|| {
        let problem = format!("there is no set-up {name}; there are {}", names.join(", "));
        ("set_up".into(), problem)
    })
}

impl SetUp {
    /// Flags that keep its data small where it only shows that everything works.
    pub fn quick_data(&self) -> &'static [&'static str] {
        match self.kit {
            "tpcc" => &["--customers", "30", "--items", "200"],
            _ => &["--items", "500", "--customers", "500"],
        }
    }
}
