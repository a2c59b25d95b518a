//! What a report says of the machine and the program it was made with.

use std::fs;
use std::thread;
use std::time::SystemTime;

/// The commit this program was built from, if that was known.
pub fn commit() -> Option<String> {
    option_env!("SOONER_COMMIT").map(str::to_owned)
}

/// Processor, number of CPUs this process may use, kernel.
pub fn description() -> String {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let cpus = format!("{cpus} CPU{}", if cpus == 1 { "" } else { "s" });
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").ok();
    let kernel = kernel.map(|release| format!("Linux {}", release.trim()));
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let parts = [model_name(&cpuinfo), Some(cpus), kernel];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Cores and processor as a name for a folder: `2core-intel-xeon`.
pub fn folder_name() -> String {
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
    fn a_description_always_counts_the_cpus() {
        assert!(description().contains(" CPU"));
    }
}
