//! What a report says of the machine and the program it was made with.

use std::fs;
use std::thread;

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
    fn a_description_always_counts_the_cpus() {
        assert!(description().contains(" CPU"));
    }
}
