//! The commands that run everywhere (`advise`, `figures`, `sim` and `solve`): they are compiled
//! without those that need Linux, what they use on Windows and macOS has nothing of Linux, and where
//! a target is installed they are checked for it.

use crate::process;
use crate::tally::Tally;
use anyhow::Result;

/// Systems for which that has to hold.
const TARGETS: [&str; 2] = ["x86_64-pc-windows-msvc", "aarch64-apple-darwin"];
/// Crates that need Linux, or that only commands for Linux use.
const OF_LINUX: [&str; 6] = [
    "sooner-kernel",
    "sooner-operate",
    "sooner-web",
    "sooner-lab",
    "tokio",
    "netlink-packet-core",
];

/// Checks both.
pub fn check(tally: &mut Tally) -> Result<()> {
    let alone = ["check", "-p", "sooner-cli", "--no-default-features"];
    let compiled = process::run(&mut process::cargo(&alone))?.success;
    tally.step("the commands of every system, compiled alone", compiled);
    for target in TARGETS {
        let tree = [
            "tree",
            "-p",
            "sooner-cli",
            "--target",
            target,
            "-e",
            "normal",
            "--prefix",
            "none",
        ];
        let tree = process::run(&mut process::cargo(&tree))?;
        let found = of_linux(&tree.lines);
        if !found.is_empty() {
            println!("{target} would need {}", found.join(", "));
        }
        let name = format!("nothing of Linux for {target}");
        tally.step(&name, tree.success && found.is_empty());
        check_for(target, tally)?;
    }
    Ok(())
}

/// Compiles for a target, where its standard library is installed.
fn check_for(target: &str, tally: &mut Tally) -> Result<()> {
    let name = format!("cargo check for {target}");
    let mut rustc = std::process::Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", target]);
    let folder = rustc.output().ok().filter(|output| output.status.success());
    let folder = folder.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if !folder.is_some_and(|folder| std::path::Path::new(&folder).is_dir()) {
        tally.skip(&name, &format!("`rustup target add {target}` installs it"));
        return Ok(());
    }
    let words = ["check", "-p", "sooner-cli", "--target", target];
    tally.step(&name, process::run(&mut process::cargo(&words))?.success);
    Ok(())
}

/// Crates of Linux among the lines of `cargo tree`.
fn of_linux(lines: &[String]) -> Vec<&str> {
    let names = lines.iter().filter_map(|line| line.split(' ').next());
    names.filter(|name| OF_LINUX.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_linux_are_found_by_their_whole_name() {
        let lines = ["clap v4.6.7", "tokio v1.54.1 (*)", "tokio-util v0.7.0", ""];
        let lines = lines.map(str::to_owned);
        assert_eq!(of_linux(&lines), ["tokio"]);
    }
}
