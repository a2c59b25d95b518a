//! What the whole server gets of a processor beside others: the weight of its autogroup, or of its
//! control group.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use sooner_kernel::{priority, process_table};

use crate::process_id::ProcessId;

/// Whether the kernel weighs sessions.
const AUTOGROUPS: &str = "/proc/sys/kernel/sched_autogroup_enabled";
/// Where control groups are.
const GROUPS: &str = "/sys/fs/cgroup";
/// Weights of nice values against that of 0: the kernel's table, from -20 to 0.
const WEIGHTS: [u32; 21] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024,
];
/// What a control group has that nothing was said of, in each version's unit, and the most.
const SHARES: (u64, u64) = (1024, 262_144);
const WEIGHT: (u64, u64) = (100, 10_000);

/// What weighs a process's group against others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Group {
    /// The autogroup of its session.
    Autogroup {
        /// What the kernel calls it; no other one is ever called so.
        name: String,
        /// A process that is in it.
        process: ProcessId,
    },
    /// Its control group, by the file with the weight.
    Control {
        /// `cpu.weight`, or `cpu.shares` of version 1.
        file: PathBuf,
    },
}

/// A weight that is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weighed {
    /// The service that it belongs to.
    pub group: Group,
    /// What it was.
    pub before: i64,
    /// What it was set to.
    pub set: i64,
}

impl Group {
    /// The group of a process; none where nothing weighs it as one.
    pub fn of(pid: u32) -> Option<Group> {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        if let Some(file) = weight_file(&text, Path::new(GROUPS)) {
            return Some(Group::Control { file });
        }
        let is_on = fs::read_to_string(AUTOGROUPS).is_ok_and(|text| text.trim() == "1");
        let process = ProcessId::of(pid).ok()?;
        let name = priority::autogroup_name(pid).ok()?;
        is_on.then_some(Group::Autogroup { name, process })
    }

    /// For messages.
    pub fn name(&self) -> String {
        match self {
            Group::Autogroup { process, .. } => format!("the session of process {}", process.pid),
            Group::Control { file } => file.parent().unwrap_or(file).display().to_string(),
        }
    }

    /// Whether both are the same.
    pub fn is_same(&self, other: &Group) -> bool {
        match (self, other) {
            (Group::Autogroup { name: own, .. }, Group::Autogroup { name: other, .. }) => {
                own == other
            }
            (own, other) => own == other,
        }
    }

    /// A process that is in the autogroup: the session may go on without the one that was known.
    fn member(name: &str, known: ProcessId) -> io::Result<u32> {
        let is_in = |pid: u32| priority::autogroup_name(pid).is_ok_and(|own| own == name);
        if known.is_there() && is_in(known.pid) {
            return Ok(known.pid);
        }
        let mut all = process_table::all()?.into_iter();
        all.find(|pid| is_in(*pid))
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn now(&self) -> io::Result<i64> {
        match self {
            Group::Autogroup { name, process } => {
                Ok(priority::autogroup(Group::member(name, *process)?)?.into())
            }
            Group::Control { file } => fs::read_to_string(file)?
                .trim()
                .parse()
                .map_err(|_| io::ErrorKind::InvalidData.into()),
        }
    }

    fn set(&self, value: i64) -> io::Result<()> {
        match self {
            Group::Autogroup { name, process } => {
                priority::set_autogroup(Group::member(name, *process)?, value as i32)
            }
            Group::Control { file } => fs::write(file, value.to_string()),
        }
    }

    /// The value with which it gets this share of a processor beside one other group, 0 to 1.
    fn value_of(&self, share: f64) -> i64 {
        let times = share / (1.0 - share);
        let of = |(usual, most): (u64, u64)| ((usual as f64 * times) as u64).clamp(usual, most);
        match self {
            Group::Autogroup { .. } => nice_of(times).into(),
            Group::Control { file } if file.ends_with("cpu.weight") => of(WEIGHT) as i64,
            Group::Control { .. } => of(SHARES) as i64,
        }
    }

    /// What is to be changed for a share; none where it has as much already.
    pub fn plan(&self, share: f64) -> io::Result<Option<Weighed>> {
        let (before, set) = (self.now()?, self.value_of(share));
        let has_less = match self {
            Group::Autogroup { .. } => before > set,
            Group::Control { .. } => before < set,
        };
        Ok(has_less.then(|| Weighed {
            group: self.clone(),
            before,
            set,
        }))
    }
}

impl Weighed {
    /// Changes it.
    pub fn apply(&self) -> io::Result<()> {
        self.group.set(self.set)
    }

    /// Puts it back, unless another one has set it since.
    pub fn put_back(&self) -> io::Result<()> {
        if self.group.now()? == self.set {
            self.group.set(self.before)?;
        }
        Ok(())
    }

    /// Of a record that another user wrote: it only gives weight back that is usual, and writes to
    /// no file.
    pub fn is_harmless(&self) -> bool {
        matches!(self.group, Group::Autogroup { .. }) && self.before <= 0
    }
}

impl fmt::Display for Weighed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.group {
            Group::Autogroup { process, .. } => write!(
                f,
                "nice {} for the autogroup of process {}",
                self.set, process.pid
            ),
            Group::Control { file } => write!(f, "{} in {}", self.set, file.display()),
        }
    }
}

/// The lowest nice value with a weight of no more than so many times that of 0.
fn nice_of(times: f64) -> i32 {
    let most = times * f64::from(WEIGHTS[20]);
    let at = WEIGHTS.iter().position(|weight| f64::from(*weight) <= most);
    at.map_or(0, |at| at as i32 - 20)
}

/// The file with the weight of a control group, by a text like /proc/PID/cgroup; none of the first
/// group, which has no weight.
fn weight_file(text: &str, groups: &Path) -> Option<PathBuf> {
    let lines = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        Some((controllers, path.strip_prefix('/')?))
    });
    // A group above those of this namespace is not mounted here.
    let is_outside = |text: &str| {
        Path::new(text)
            .components()
            .any(|part| part == Component::ParentDir)
    };
    let lines = lines.filter(|(controllers, path)| !is_outside(controllers) && !is_outside(path));
    let candidates = lines.flat_map(|(controllers, path)| {
        let folders = match controllers {
            "" => vec![(groups.join(path), "cpu.weight")],
            _ if controllers.split(',').any(|one| one == "cpu") => vec![
                (groups.join(controllers).join(path), "cpu.shares"),
                (groups.join("cpu").join(path), "cpu.shares"),
            ],
            _ => vec![],
        };
        let is_first = path.is_empty();
        folders
            .into_iter()
            .filter(move |_| !is_first)
            .map(|(folder, file)| folder.join(file))
    });
    candidates.into_iter().find(|file| file.exists())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_session_is_found_though_a_process_of_it_is_gone() {
        let Ok(name) = priority::autogroup_name(std::process::id()) else {
            return;
        };
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let known = ProcessId::of(child.id()).unwrap();
        assert_eq!(Group::member(&name, known).unwrap(), child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        let found = Group::member(&name, known).unwrap();
        assert_eq!(priority::autogroup_name(found).unwrap(), name);
        let none = Group::member("/autogroup-0", known).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_share_is_a_nice_value() {
        let nice = [0.5, 0.6, 0.8, 0.9, 0.99].map(|share: f64| nice_of(share / (1.0 - share)));
        assert_eq!(nice, [0, -1, -6, -9, -20]);
    }

    #[test]
    fn a_group_above_this_namespace_has_no_weight_here() {
        let folder = tempfile::tempdir().unwrap();
        let groups = folder.path().join("cgroup");
        fs::create_dir_all(groups.join("web")).unwrap();
        fs::create_dir_all(folder.path().join("outside")).unwrap();
        for file in ["cgroup/web/cpu.weight", "outside/cpu.weight"] {
            fs::write(folder.path().join(file), "100").unwrap();
        }
        let found = |path: &str| weight_file(&format!("0::{path}\n"), &groups);
        assert_eq!(found("/web"), Some(groups.join("web/cpu.weight")));
        assert_eq!(found("/../outside"), None);
        assert_eq!(found("/web/../../outside"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String, path in "0:(cpu|[.]{2})?:/([a-z./]{0,12})") {
            let groups = Path::new("/sys/fs/cgroup");
            for text in [text, path] {
                let found = weight_file(&text, groups);
                prop_assert!(found.is_none_or(|file| file.starts_with(groups)));
            }
        }
    }

    #[test]
    fn the_weight_of_a_control_group_is_found_and_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().join("system.slice/web.service");
        fs::create_dir_all(&group).unwrap();
        let text = "0::/system.slice/web.service\n";
        assert_eq!(weight_file(text, folder.path()), None);
        let file = group.join("cpu.weight");
        fs::write(&file, "100\n").unwrap();
        assert_eq!(weight_file(text, folder.path()), Some(file.clone()));
        assert_eq!(weight_file("0::/\n5:memory:/x\nx\n", folder.path()), None);
        let old = folder.path().join("cpu,cpuacct/web");
        fs::create_dir_all(&old).unwrap();
        fs::write(old.join("cpu.shares"), "1024").unwrap();
        let found = weight_file("3:cpu,cpuacct:/web\n", folder.path());
        assert_eq!(found, Some(old.join("cpu.shares")));

        let group = Group::Control { file: file.clone() };
        let weighed = group.plan(0.8).unwrap().unwrap();
        weighed.apply().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "400");
        assert_eq!(group.plan(0.8).unwrap(), None);
        weighed.put_back().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "100");
        // Another one's value stays.
        weighed.apply().unwrap();
        fs::write(&file, "50").unwrap();
        weighed.put_back().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "50");
        assert!(!weighed.is_harmless());
    }
}
