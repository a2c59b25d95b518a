//! What a report says of the machine and the program it was made with.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::thread;
use std::time::SystemTime;

/// The commit this program was built from, if that was known.
pub fn commit() -> Option<String> {
    option_env!("SOONER_COMMIT").map(str::to_owned)
}

/// Where a guest keeps what it was told of the machine that it runs on.
const HOST: &str = "/run/sooner-guest.json";
/// How the kernel of a guest calls itself in /proc/cpuinfo.
const GUEST: &str = "User Mode Linux";
/// What the description of a guest begins with.
const GUEST_KERNEL: &str = "user-mode Linux";

/// A machine with a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    description: String,
    folder_name: String,
}

impl Host {
    /// This machine.
    pub fn here() -> Self {
        Self {
            description: description(),
            folder_name: folder_name(),
        }
    }

    /// Writes down, in a guest, that this is the machine below.
    pub fn keep(&self) -> io::Result<()> {
        fs::write(HOST, serde_json::to_vec(self)?)
    }

    /// The machine below this guest, as far as that is known.
    fn kept() -> Option<Self> {
        serde_json::from_slice(&fs::read(HOST).ok()?).ok()
    }
}

/// Whether this is a guest: a kernel that is a program of another machine.
pub fn is_guest() -> bool {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    // Its first process asks before anything is mounted.
    text.contains(GUEST) || text.is_empty() && std::process::id() == 1
}

/// Whether a description is that of a guest.
pub fn is_of_guest(description: &str) -> bool {
    description.starts_with(GUEST_KERNEL)
}

/// Processor, number of CPUs this process may use, kernel; of a guest its kernel and the machine
/// below it.
pub fn description() -> String {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    described(&cpuinfo, cpus, kernel.trim(), Host::kept().as_ref())
}

fn described(cpuinfo: &str, cpus: usize, kernel: &str, host: Option<&Host>) -> String {
    let cpus = format!("{cpus} CPU{}", if cpus == 1 { "" } else { "s" });
    if cpuinfo.contains(GUEST) {
        let on = host.map_or("another machine", |host| &host.description);
        return format!("{GUEST_KERNEL} {kernel}, {cpus}, on {on}");
    }
    let kernel = (!kernel.is_empty()).then(|| format!("Linux {kernel}"));
    let parts = [model_name(cpuinfo), Some(cpus), kernel];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Cores and processor as a name for a folder: `2core-intel-xeon`, and of a guest there
/// `2core-intel-xeon-guest`.
pub fn folder_name() -> String {
    if let Some(host) = Host::kept().filter(|_| is_guest()) {
        return format!("{}-guest", host.folder_name);
    }
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    named_folder(cpus, &model_name(&cpuinfo).unwrap_or_default())
}

fn named_folder(cpus: usize, model: &str) -> String {
    let is_word = |word: &&str| !["", "R", "TM", "CPU", "Processor"].contains(word);
    let words = model
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(is_word);
    let words: Vec<String> = words.take(2).map(str::to_lowercase).collect();
    format!("{cpus}core-{}", words.join("-"))
}

/// The date, UTC: `2026-11-22`.
pub fn today() -> String {
    date_of(&httpdate::fmt_http_date(SystemTime::now()))
}

/// The day in an HTTP date (RFC 9110, 5.6.7), the year first.
fn date_of(http_date: &str) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut words = http_date.split(' ').skip(1);
    let mut word = || words.next().unwrap_or_default();
    let (day, month, year) = (word(), word(), word());
    let month = MONTHS
        .iter()
        .position(|name| *name == month)
        .map_or(0, |at| at + 1);
    format!("{year}-{month:02}-{day}")
}

/// The first processor's model in /proc/cpuinfo; some architectures do not name it.
fn model_name(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))?;
    let (_, model) = line.split_once(':')?;
    Some(model.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_read_where_there_is_one() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: Other\n";
        assert_eq!(model_name(cpuinfo).as_deref(), Some("Some CPU @ 2 GHz"));
        assert_eq!(model_name("processor : 0\n"), None);
    }

    #[test]
    fn folders_are_named_by_machine_and_day() {
        assert_eq!(
            named_folder(2, "Intel(R) Xeon(R) Processor @ 2.1GHz"),
            "2core-intel-xeon"
        );
        assert_eq!(date_of("Sun, 22 Nov 2026 06:35:09 GMT"), "2026-11-22");
    }

    #[test]
    fn a_guest_says_so_and_names_the_machine_below() {
        let cpuinfo = "processor\t: 0\nvendor_id\t: User Mode Linux\nmodel name\t: UML\n";
        let host = Host {
            description: "Some CPU, 2 CPUs, Linux 6.18".into(),
            folder_name: "2core-some-cpu".into(),
        };
        let guest = described(cpuinfo, 1, "6.1.176", Some(&host));
        assert_eq!(
            guest,
            "user-mode Linux 6.1.176, 1 CPU, on Some CPU, 2 CPUs, Linux 6.18"
        );
        assert!(is_of_guest(&guest) && !is_of_guest(&host.description));
        assert!(is_of_guest(&described(cpuinfo, 1, "6.1.176", None)));
    }

    #[test]
    fn a_description_always_counts_the_cpus() {
        assert!(description().contains(" CPU"));
    }
}
